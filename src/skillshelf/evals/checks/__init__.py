"""The checks: `check.skill_loaded("pdf")`, `~check.tool_called("run_command")`. They read what was recorded."""
