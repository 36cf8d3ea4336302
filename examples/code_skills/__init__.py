"""Two code skills: one that answers from documents, and a raw one that runs commands under a policy."""
