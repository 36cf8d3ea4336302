"""`skillshelf doctor`: how skillshelf is set up here, what is missing, and what to do about it.

Nothing is changed, and nothing is asked over the network. Keys and passwords are never shown.
"""

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Literal
from urllib.parse import urlsplit

from skillshelf import __version__
from skillshelf.agent import find_confinement, preview_model
from skillshelf.choices import load_choices
from skillshelf.cli._output import Output, list_names
from skillshelf.cli._overview import describe_pending, find_pending, group_skills, name_group
from skillshelf.cli._parsers import Parser
from skillshelf.cli._problems import find_problems
from skillshelf.cli._workspace import locate_workspace, open_shelf
from skillshelf.errors import SettingsError, TrustError
from skillshelf.files import cache_home, state_home, user_skill_folders
from skillshelf.settings import Settings, load_settings, settings_file, trace_settings
from skillshelf.text import clean_line, count_noun
from skillshelf.trust import Trust
from skillshelf.workspace import Workspace

EXAMPLES = """
  skillshelf doctor                     explain the setup of this folder
  skillshelf doctor -C ~/src/app        explain the setup of another one
  skillshelf doctor --json              for another program; exit code 1 if something is broken
"""
Status = Literal["ok", "note", "problem"]
_STYLES: dict[Status, str] = {"ok": "green", "note": "cyan", "problem": "red"}
_MAX_GROUPS = 10
_MAX_CHOICES = 10


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional part of skillshelf, and the modules that its libraries bring."""

    purpose: str
    modules: tuple[str, ...]
    is_adapter: bool = False
    """True if it brings the shelf into a framework, which only users of that framework miss."""
    is_skill: bool = False
    """True if a bundled skill needs it, which only users of that skill miss."""


EXTRAS = {
    "chat": Extra(
        "skillshelf chat", ("pydantic_ai", "pydantic_ai_harness", "prompt_toolkit", "rapidfuzz", "anthropic", "openai")
    ),
    "evals": Extra("skillshelf eval", ("pydantic_ai_harness", "dbos", "psycopg", "jinja2")),
    "mcp": Extra("skillshelf serve", ("mcp",)),
    "tokens": Extra("exact token counts", ("rs_bpe",)),
    "watch": Extra("edits picked up at once", ("watchfiles",)),
    "search": Extra("search by meaning, and faster", ("numpy", "tantivy", "tokenizers", "wordllama")),
    "fetch": Extra("skills that fetch", ("anyio", "httpx2"), is_skill=True),
    "rag": Extra(
        "the skill agentic-rag", ("anyio", "httpx2", "ladybug", "lxml_html_clean", "trafilatura"), is_skill=True
    ),
    "rag-azure": Extra("agentic-rag with Azure AI Search", ("azure.search.documents",), is_skill=True),
    "rag-neo4j": Extra("agentic-rag with Neo4j", ("neo4j",), is_skill=True),
    "rag-postgres": Extra("agentic-rag with PostgreSQL", ("psycopg",), is_skill=True),
    "authentication-gates": Extra("the skill authentication-gates", ("anyio", "httpx2"), is_skill=True),
    "browser": Extra("the skill browser", ("anyio", "httpx2", "playwright"), is_skill=True),
    "database": Extra("the skill database", ("psycopg",), is_skill=True),
    "execution-debugging": Extra("the skill execution-debugging", (), is_skill=True),
    "pdf-extraction": Extra("the skill pdf-extraction", ("pdfplumber", "pypdfium2"), is_skill=True),
    "weather": Extra("the skill weather", ("anyio", "httpx2"), is_skill=True),
    "pydantic-ai": Extra("skills in pydantic-ai", ("pydantic_ai",), is_adapter=True),
    "langchain": Extra("skills in LangChain", ("langchain",), is_adapter=True),
    "openai-agents": Extra("skills in the OpenAI Agents SDK", ("agents",), is_adapter=True),
    "claude-agent": Extra("skills in the Claude Agent SDK", ("claude_agent_sdk",), is_adapter=True),
    "google-adk": Extra("skills in Google ADK", ("google.adk",), is_adapter=True),
    "agent-framework": Extra("skills in Microsoft Agent Framework", ("agent_framework",), is_adapter=True),
}


@dataclass(frozen=True, slots=True)
class Remark:
    """One line of the report."""

    area: str
    status: Status
    message: str
    fix: str = ""


def add_arguments(parser: Parser) -> None:
    """Add nothing: the shared options suffice."""


def run(args: argparse.Namespace, out: Output) -> int:
    remarks = list(_examine(args))
    if args.json:
        out.print_json({"version": __version__, "remarks": [asdict(remark) for remark in remarks]})
    else:
        _print_remarks(remarks, out)
    return 1 if any(remark.status == "problem" for remark in remarks) else 0


def _examine(args: argparse.Namespace) -> Iterator[Remark]:
    workspace = locate_workspace(args)
    yield from _examine_installation()
    yield from _examine_settings()
    yield from _examine_workspace(args, workspace)
    yield from _examine_trust(args, workspace)
    yield from _examine_sandbox()
    yield from _examine_folders()


def _examine_installation() -> Iterator[Remark]:
    area = "installation"
    yield Remark(area, "ok", f"skillshelf {__version__} on Python {platform.python_version()} ({sys.executable})")
    installed = [name for name, extra in EXTRAS.items() if _is_installed(extra)]
    if installed:
        yield Remark(area, "ok", f"extras: {', '.join(installed)}")

    missing = {name: extra for name, extra in EXTRAS.items() if name not in installed}
    for name, extra in missing.items():
        if not extra.is_adapter and not extra.is_skill:
            message = f"the extra {name} is not installed: {extra.purpose}"
            yield Remark(area, "note", message, f"pip install 'skillshelf[{name}]'")
    skills = [name for name, extra in missing.items() if extra.is_skill]
    if skills:
        message = f"libraries of bundled skills are not installed: {', '.join(skills)}"
        yield Remark(area, "note", message, "pip install 'skillshelf[NAME]' with the one you use")
    adapters = [name for name, extra in missing.items() if extra.is_adapter]
    if adapters:
        message = f"adapters for other frameworks are not installed: {', '.join(adapters)}"
        yield Remark(area, "note", message, "pip install 'skillshelf[NAME]' with the one you use")


def _is_installed(extra: Extra) -> bool:
    return all(_has_module(module) for module in extra.modules)


def _has_module(name: str) -> bool:
    """Return True if a module can be found. It is not imported."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False


def _examine_settings() -> Iterator[Remark]:
    area = "settings"
    path = settings_file()
    if path is None:
        yield Remark(area, "note", "this user has no home, so there is no settings file")
    elif os.path.lexists(path):
        yield Remark(area, "ok", f"file: {path}")
    else:
        yield Remark(area, "ok", f"no settings file; it would be {path}")

    try:
        traced = trace_settings({})
        settings = load_settings({})
    except SettingsError as error:
        yield Remark(area, "problem", str(error), "Correct the setting, or remove it.")
        return
    for name, chosen in traced.items():
        if chosen.origin != "default":
            yield Remark(area, "ok", f"{name} = {_show_value(name, chosen.value)}, from {chosen.origin}")
    yield from _examine_choices()
    yield from _examine_model(settings)


def _examine_choices() -> Iterator[Remark]:
    """Yield what the user chose for single skills with `skillshelf set`."""
    area = "settings"
    try:
        choices = load_choices()
    except SettingsError as error:
        yield Remark(area, "problem", str(error), "Correct the file, or remove it.")
        return
    if choices:
        chosen = [f"{name} {choice}" for name, choice in sorted(choices.items())]
        message = f"your choices for single skills: {list_names(chosen, _MAX_CHOICES)}"
        yield Remark(area, "ok", message, "`skillshelf set` lists them, `skillshelf set NAME auto` removes one.")


def _show_value(name: str, value: object) -> str:
    if name == "base_url":
        return _without_secrets(str(value))
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)


def _without_secrets(url: str) -> str:
    """Return an address without the user, the password and the query, each of which may hold a key."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port:
        host += f":{parts.port}"
    return f"{parts.scheme}://{host}{parts.path}"


def _examine_model(settings: Settings) -> Iterator[Remark]:
    area = "model"
    model = preview_model(settings)
    variables = " or ".join(model.key_variables)
    if model.alternatives:
        yield Remark(
            area,
            "note",
            "no model is chosen, and the keys of several providers are set",
            f"Pass --model, or put it into the settings: {', '.join(model.alternatives)}",
        )
    elif not model.name and settings.base_url:
        yield Remark(area, "problem", "there is a base_url but no model", "Set model to the server's name for it.")
    elif not model.name:
        yield Remark(
            area,
            "note",
            "no model is chosen; only chat and eval need one",
            "Set a provider's key, such as ANTHROPIC_API_KEY, or see `skillshelf chat`.",
        )
    elif model.is_default:
        yield Remark(area, "ok", f"{model.name}, because {variables} is set")
    elif not model.has_key:
        yield Remark(area, "problem", f"{model.name} needs a key, and there is none", f"Set {variables}.")
    elif model.key_variables:
        yield Remark(area, "ok", f"{model.name}; {variables} is set")
    elif settings.base_url:
        yield Remark(area, "ok", f"{model.name} at {_without_secrets(settings.base_url)}")
    else:
        yield Remark(area, "ok", model.name)


def _examine_workspace(args: argparse.Namespace, workspace: Workspace) -> Iterator[Remark]:
    area = "skills"
    for searched in workspace.searched:
        yield Remark(area, "ok", f"project skills: {searched.path} ({searched.reason})")
    for note in workspace.notes:
        yield Remark(area, "note", note)
    for folder in user_skill_folders():
        if os.path.isdir(folder):
            yield Remark(area, "ok", f"your own skills: {folder}")

    try:
        shelf = open_shelf(args)
    except SettingsError:  # reported above
        return
    groups = group_skills(shelf)
    for group in groups[:_MAX_GROUPS]:
        yield Remark(area, "ok", f"{count_noun(group.count, 'skill')} in {name_group(group)} ({group.source})")
    if len(groups) > _MAX_GROUPS:
        yield Remark(area, "ok", f"skills in {count_noun(len(groups) - _MAX_GROUPS, 'other place')}")

    problems = find_problems(shelf, workspace.folder)
    if problems:
        has_errors = any(note.severity == "error" for note in problems.diagnostics)
        status: Status = "problem" if has_errors else "note"
        message = f"{problems.summary} in skills" if problems.is_checked else problems.summary
        yield Remark(area, status, message, problems.command)


def _examine_trust(args: argparse.Namespace, workspace: Workspace) -> Iterator[Remark]:
    area = "trust"
    try:
        trust = Trust.open()
    except TrustError as error:
        yield Remark(area, "problem", str(error), "Update skillshelf.")
        return
    for problem in trust.problems:
        yield Remark(area, "problem", problem)
    refusal = trust.refusal(workspace.root)
    if refusal:
        yield Remark(area, "problem", refusal)
    else:
        approved = count_noun(len(trust.approvals.trees), "approved version")
        yield Remark(area, "ok", f"record of approvals: {trust.path} ({approved})")
    own = trust.find_own(workspace.root)
    if own:
        message = (
            f"{workspace.root} has been your own repository since {own.since[:10]}: its skills apply as they change"
        )
        yield Remark(area, "ok", message, "`skillshelf trust --not-mine` takes that back.")
    lost = trust.explain_lost_own(workspace.root)
    if lost:
        yield Remark(area, "note", lost)
    pending = find_pending(args)
    if pending:
        yield Remark(area, "note", describe_pending(pending), "skillshelf trust")


def _examine_sandbox() -> Iterator[Remark]:
    confinement = find_confinement()
    if confinement:
        yield Remark(
            "sandbox",
            "ok",
            f"a command of the agent can write in this folder only (level: {confinement.level}). "
            f"Still open: {'; '.join(confinement.stays_open)}.",
        )
    else:
        fix = "The agent asks before every command; answer with care."
        yield Remark("sandbox", "note", f"commands cannot be confined here: {confinement.reason}", fix)


def _examine_folders() -> Iterator[Remark]:
    area = "folders"
    for home, purpose in ((state_home(), "sessions and approvals"), (cache_home(), "caches")):
        if home is None:
            yield Remark(area, "note", f"there is no folder for {purpose}: this user has no home", "Set HOME.")
        elif not _is_writable(home):
            yield Remark(area, "problem", f"{home} ({purpose}) cannot be written", "Correct its owner and its mode.")
        elif not os.path.isdir(home):
            yield Remark(area, "ok", f"{purpose}: none yet; they would be in {home}")
        else:
            yield Remark(area, "ok", f"{purpose}: {home} ({_measure(home)})")


def _is_writable(folder: str) -> bool:
    """Return True if the folder can be written, or can be created."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _measure(folder: str) -> str:
    size = 0
    files = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(parent, name)).st_size
                files += 1
            except OSError:  # removed meanwhile
                continue
    return f"{count_noun(files, 'file')}, {size / 1024:,.0f} KB"


def _print_remarks(remarks: list[Remark], out: Output) -> None:
    area = ""
    for remark in remarks:
        if remark.area != area:
            if area:
                out.print()
            area = remark.area
            out.print_styled(area.capitalize(), "bold")
        out.print_styled(f"{remark.status:7} {clean_line(remark.message)}", _STYLES[remark.status], indent=2)
        if remark.fix:
            out.print_styled(clean_line(remark.fix), "dim", indent=10)
    out.print()
    problems = sum(remark.status == "problem" for remark in remarks)
    if problems:
        out.print_styled(f"{count_noun(problems, 'problem')} to solve", "red")
    else:
        out.print_styled("Nothing is broken.", "green")
