"""The forecast for a place."""
