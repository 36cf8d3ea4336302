"""The names of the agent's own tools. Policy, rules and gate go by them, so no other tool may have one of them."""

READING = frozenset({"read_file", "list_directory", "find_files", "search_files"})
WRITING = frozenset({"write_file", "edit_file"})
SHELL = "run_command"
RUN_SCRIPT = "run_skill_script"
INSTALL_PACKAGES = "install_packages"
"""Not a tool of the model, but a question of its own: may packages be installed for a script?"""
RUN_SKILL = "run_skill"
"""The tool that starts a side conversation. It asks nothing: the tools in there do."""
CHECK_JOB = "check_job"
"""Reads the output of a background command, and stops it. Starting one was asked about."""
UPDATE_TODOS = "update_todos"
OWN_TOOLS = READING | WRITING | {SHELL, RUN_SCRIPT, INSTALL_PACKAGES, RUN_SKILL, CHECK_JOB, UPDATE_TODOS}
