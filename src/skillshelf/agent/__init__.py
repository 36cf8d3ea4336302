"""The agent: a loop over a model that lives from its shelf. Needs the extra `chat`."""
