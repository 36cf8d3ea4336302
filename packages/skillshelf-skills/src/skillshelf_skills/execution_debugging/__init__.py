"""Commands and Python in a sandboxed working folder, with their failures explained."""
