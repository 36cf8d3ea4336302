"""Checks an author can run: faults as diagnostics."""
