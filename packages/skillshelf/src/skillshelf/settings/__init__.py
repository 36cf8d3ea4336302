"""The user's settings, and their choices for single skills."""

from skillshelf.settings._choices import (
    CHOICES,
    choices_file,
    describe_choice,
    load_choices,
    save_choice,
)
from skillshelf.settings._settings import (
    MODES,
    NAMES,
    SERVERS_SECTION,
    Mode,
    Settings,
    load_settings,
    read_toml,
    settings_file,
    trace_settings,
    without_secrets,
)

__all__ = [
    "CHOICES",
    "MODES",
    "NAMES",
    "SERVERS_SECTION",
    "Mode",
    "Settings",
    "choices_file",
    "describe_choice",
    "load_choices",
    "load_settings",
    "read_toml",
    "save_choice",
    "settings_file",
    "trace_settings",
    "without_secrets",
]
