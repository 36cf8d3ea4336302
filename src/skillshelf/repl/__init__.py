"""The terminal in which a person talks with the agent."""
