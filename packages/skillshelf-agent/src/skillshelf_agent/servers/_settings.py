"""The MCP servers in the user's settings: `[mcp.NAME]` in config.toml."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skillshelf.errors import SettingsError
from skillshelf.settings import SERVERS_SECTION, read_toml, settings_file
from skillshelf.text import closest_names

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_WORKSPACE = "WORKSPACE"
_EXAMPLE = '[mcp.github]\ncommand = "github-mcp-server"\nargs = ["stdio"]'
_WORKSPACE_FILES = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")


class ServerSettings(BaseModel):
    """A server that the user has named: a program to start, or an address."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str
    command: str = ""
    """A program on the user's PATH, or its path."""
    args: list[str] = Field(default_factory=list)
    """`${WORKSPACE}` stands for the folder that the agent works in."""
    env: dict[str, str] = Field(default_factory=dict)
    """The program gets these variables and a few that every program needs. `${NAME}` is taken from the user's own."""
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    enabled: bool = True
    tools: list[str] | None = None
    """The tools that the model gets, by the server's names. None: all of them."""
    start_seconds: float = Field(default=30, gt=0, le=600)
    call_seconds: float = Field(default=120, gt=0, le=3600)

    @property
    def address(self) -> str:
        """How the server is reached, for display: no values of variables or headers, and no password."""
        if self.url:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        return " ".join([self.command, *self.args])

    def expand_args(self, workspace: str) -> list[str]:
        """Return the arguments with the workspace's folder in its place."""
        return [argument.replace(f"${{{_WORKSPACE}}}", workspace) for argument in self.args]

    def expand_env(self) -> dict[str, str]:
        """Return the declared variables. Raises SettingsError if one comes from a variable that is not set."""
        return {name: self._expand(value, f"env.{name}") for name, value in self.env.items()}

    def expand_headers(self) -> dict[str, str]:
        """Return the headers. Raises SettingsError, without the value, for one that HTTP cannot send."""
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            headers[name] = self._expand(value, f"headers.{name}").strip()
            if not headers[name].isascii() or not headers[name].isprintable():
                raise SettingsError(
                    f"mcp.{self.name}: headers.{name} has a character that a header cannot have, such as a line break."
                )
        return headers

    def list_secrets(self) -> dict[str, str]:
        """Return the values that must not appear in a message, by their names."""
        secrets: dict[str, str] = {}
        for name, value in (*self.env.items(), *self.headers.items()):
            for variable in _VARIABLE.findall(value):
                secrets[variable] = os.environ.get(variable, "").strip()
            with suppress(SettingsError):  # a variable is not set: nothing to hide
                secrets[name] = self._expand(value, name).strip()
        return secrets

    def _expand(self, value: str, place: str) -> str:
        def replace(match: re.Match[str]) -> str:
            variable = os.environ.get(match[1])
            if variable is None:
                raise SettingsError(f"mcp.{self.name}: {place} needs the variable {match[1]}, which is not set.")
            return variable

        return _VARIABLE.sub(replace, value)


def load_servers(names: Sequence[str] | None = None) -> list[ServerSettings]:
    """Return the servers to start: those that are enabled, or exactly the named ones. Raises SettingsError."""
    servers = _read_servers()
    if names is None:
        return [server for server in servers.values() if server.enabled]

    for name in names:
        if name not in servers:
            raise SettingsError(f"Your settings have no MCP server named {name!r:.80}. {_suggest(name, servers)}")
    return [servers[name] for name in dict.fromkeys(names)]


def _suggest(name: str, servers: Mapping[str, ServerSettings]) -> str:
    closest = closest_names(name, servers, limit=1)
    if closest:
        return f"Did you mean {closest[0]!r}?"
    return f"Add one to {settings_file()}:\n{_EXAMPLE}"


def _read_servers() -> dict[str, ServerSettings]:
    path = settings_file()
    if path is None:
        return {}
    file = read_toml(path, f"A server looks like this:\n{_EXAMPLE}")
    if file is None:
        return {}
    section = file.table.get(SERVERS_SECTION, {})
    if not isinstance(section, dict):
        raise SettingsError(f"{path}: `{SERVERS_SECTION}` is a section. A server looks like this:\n{_EXAMPLE}")
    return {name: _check(name, entry, path) for name, entry in section.items()}


def _check(name: str, entry: Any, path: str) -> ServerSettings:
    where = f"{path}: mcp.{name}"
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{where:.200}: the name of a server has up to 24 small letters, digits and hyphens.")
    if not isinstance(entry, dict):
        raise SettingsError(f"{where} is not a section. A server looks like this:\n{_EXAMPLE}")
    try:
        server = ServerSettings.model_validate({**entry, "name": name})
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        if fault["type"] == "extra_forbidden":
            raise SettingsError(f"{where}: {place!r} is not a setting of a server. {_suggest_key(place)}") from None
        raise SettingsError(f"{where}: {place!r}: {fault['msg']}.") from None

    if bool(server.command) == bool(server.url):
        raise SettingsError(f"{where} needs either a `command` to start or a `url` to reach.")
    if server.url and not server.url.startswith(("https://", "http://")):
        raise SettingsError(f"{where}: `url` must begin with https:// or http://.")
    if "/" in server.command and not os.path.isabs(os.path.expanduser(server.command)):
        raise SettingsError(
            f"{where}: `command` is a name on your PATH, or a path that begins with / or ~/. Otherwise the folder in "
            "which the agent is started would decide which program runs."
        )
    return server


def _suggest_key(key: str) -> str:
    keys = [name for name in ServerSettings.model_fields if name != "name"]
    closest = closest_names(key, keys, limit=1)
    if closest:
        return f"Did you mean {closest[0]!r}?"
    return f"Settings: {', '.join(keys)}."


def find_workspace_servers(folder: str) -> list[str]:
    """Return the files of a workspace in which other tools keep MCP servers. They are not read."""
    return [name for name in _WORKSPACE_FILES if os.path.lexists(os.path.join(folder, name))]
