"""Runs the loaders of other hosts over skills: `python -P host_loaders.py`, with skills as JSON on standard input.

Each skill is written to a folder of its own, the loader runs over it, and what came out is compared with what its
author meant. This file needs nothing but the standard library and the hosts, so that any interpreter can run it.
"""

import asyncio
import base64
import contextlib
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Variant:
    """A skill, and what its author means by it."""

    text: str | bytes
    name: str = "plain"
    description: str = "Greets people by name."
    folder: str = ""
    """Where it differs from the name."""
    file: str = "SKILL.md"
    nested: bool = False
    linked: bool = False
    hidden: bool = False
    """Its author keeps it from the model: only the user may call it."""

    @property
    def data(self) -> bytes:
        return self.text if isinstance(self.text, bytes) else self.text.encode()

    def write(self, root: Path) -> None:
        folder = root / ("group" if self.nested else "") / (self.folder or self.name)
        home = root.parent / "elsewhere" if self.linked else folder
        home.mkdir(parents=True)
        if self.linked:
            root.mkdir()
            folder.symlink_to(home, target_is_directory=True)
        (home / self.file).write_bytes(self.data)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "text": base64.b64encode(self.data).decode()}


def from_json(plain: dict[str, Any]) -> Variant:
    return Variant(**{**plain, "text": base64.b64decode(plain["text"])})


# -- the hosts: each gives the names and descriptions that its loader found below a folder ----------------------------

Found = dict[str, str]


def _skill_folders(root: Path) -> list[Path]:
    """The folders of skills, however deep: for hosts that are given each of them and look for none themselves."""
    folders = [folder for folder in (*root.glob("*"), *root.glob("*/*")) if folder.is_dir()]
    return sorted(folder for folder in folders if any((folder / name).exists() for name in ("SKILL.md", "skill.md")))


def _google_adk(root: Path) -> Found:
    from google.adk.skills import list_skills_in_dir

    return {one.name: one.description for one in list_skills_in_dir(root).values()}


def _deepagents(root: Path) -> Found:
    from deepagents.backends import FilesystemBackend
    from deepagents.middleware.skills import SkillsMiddleware

    middleware = SkillsMiddleware(backend=FilesystemBackend(root_dir=root, virtual_mode=False), sources=[str(root)])
    update = middleware.before_agent({"messages": []}, None, {}) or {}
    return {one["name"]: one["description"] for one in update.get("skills_metadata", [])}


def _harness(root: Path) -> Found:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.workspaces import LocalWorkspaceBackend
    from pydantic_ai_harness.skills import Skills

    skills: Skills[None] = Skills(".", workspace=LocalWorkspaceBackend(root))
    Agent(TestModel(call_tools=[]), capabilities=[skills]).run_sync("hi")  # a run says what a look does not
    return {one.name: one.description for one in asyncio.run(skills.load()).skills}


def _inspect(root: Path) -> Found:
    from inspect_ai.tool import read_skills

    return {one.name: one.description for one in read_skills(_skill_folders(root))}


def _agent_framework(root: Path) -> Found:
    from agent_framework import FileSkillsSource, SkillsSourceContext

    skills = asyncio.run(FileSkillsSource(root).get_skills(SkillsSourceContext(agent=None)))
    return {one.frontmatter.name: one.frontmatter.description for one in skills}


def _openai_agents(root: Path) -> Found:
    from agents.sandbox.capabilities.skills import LocalDirLazySkillSource
    from agents.sandbox.entries import LocalDir

    source = LocalDirLazySkillSource(source=LocalDir(src=Path(root.name)))
    with contextlib.chdir(root.parent):  # it reads only below the current folder
        return {one.name: one.description for one in source.list_skill_metadata(skills_path=".agents")}


def _skills_ref(root: Path) -> Found:
    from skills_ref import read_properties, validate

    found = {}
    for folder in _skill_folders(root):
        properties = read_properties(folder)
        found[properties.name] = properties.description
        for problem in validate(folder):
            warnings.warn(problem, stacklevel=1)
    return found


HOSTS: dict[str, tuple[str, Callable[[Path], Found]]] = {
    "agent-framework": ("agent-framework-core", _agent_framework),
    "deepagents": ("deepagents", _deepagents),
    "google-adk": ("google-adk", _google_adk),
    "inspect-ai": ("inspect-ai", _inspect),
    "openai-agents": ("openai-agents", _openai_agents),
    "pydantic-ai-harness": ("pydantic-ai-harness", _harness),
    "skills-ref": ("skills-ref", _skills_ref),
}


class _Heard(logging.Handler):
    """Whether a loader said a word of warning."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.heard += 1


def observe(variant: Variant, probe: Callable[[Path], Found]) -> str:
    """What a host makes of a skill, in the words of `skillshelf.lint.hosts`."""
    handler = _Heard()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        root = Path(folder, "skills")
        variant.write(root)
        logging.getLogger().addHandler(handler)
        try:
            found = probe(root)
        except Exception:  # whatever it raises, the skills beside this one are gone with it
            return "crashes"
        finally:
            logging.getLogger().removeHandler(handler)
    warned = handler.heard or any(issubclass(one.category, UserWarning) for one in told)
    return compare(variant, found, bool(warned))


def compare(variant: Variant, found: Found, warned: bool) -> str:
    """Compare what a host found with what the author meant, in the words of `skillshelf.lint.hosts`."""
    if variant.hidden and found:
        return "exposes"
    if variant.hidden and not warned:
        return "loads"
    if not found:
        return "drops" if warned else "drops-silently"
    if len(found) > 1:
        return "corrupts"
    [(name, description)] = found.items()
    got = " ".join(description.split())
    meant = " ".join(variant.description.split())
    # Claude Code shows the author's `when_to_use` behind the description.
    if name == variant.name and (got == meant or got.startswith(f"{meant} - ")):
        return "warns" if warned else "loads"
    shorter = got.rstrip(".… ")
    return "truncates" if name == variant.name and shorter and meant.startswith(shorter) else "corrupts"


def observed(variants: Mapping[str, Variant]) -> dict[str, dict[str, Any]]:
    """What each host that is installed here makes of each of them."""
    logging.lastResort = None  # what is heard need not be printed too
    rows: dict[str, dict[str, Any]] = {}
    for host, (package, probe) in HOSTS.items():
        with contextlib.suppress(PackageNotFoundError):
            installed = version(package)
            makes = {name: observe(variant, probe) for name, variant in variants.items()}
            rows[host] = {"kind": "library", "version": installed, "package": package, "makes": makes}
    return rows


if __name__ == "__main__":
    skills = {name: from_json(plain) for name, plain in json.load(sys.stdin).items()}
    with contextlib.redirect_stdout(sys.stderr):  # a loader may print
        rows = observed(skills)
    print(json.dumps(rows))
