"""What the loaders of other hosts make of a SKILL.md, for `skillshelf check --hosts`.

    python -m benchmarks.portability             what differs from the table, for the hosts installed here
    python -m benchmarks.portability --write     and writes that
    python -m benchmarks.portability --install   the same, with all hosts, in an environment made for it and thrown away

A file for each condition is written to a folder of its own, the host's loader runs over it, and what came out is
compared with what went in. The part that runs the loaders needs nothing but the standard library and the hosts.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import subprocess
import sys
import tempfile
import venv
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "src" / "skillshelf" / "lint" / "hosts.json"
BODY = "Say hello, then stop.\n"
SAYS = "Greets people by name."
# A condition that every loader copes with, and without which its probe itself is wrong.
CONTROL = "plain"


@dataclass(frozen=True, slots=True)
class Variant:
    """A skill with one thing about it, and what its author means by it."""

    text: str | bytes
    name: str = "plain"
    description: str = SAYS
    folder: str = ""
    """Where it differs from the name."""
    file: str = "SKILL.md"
    nested: bool = False
    linked: bool = False

    def write(self, root: Path) -> None:
        folder = root / ("group" if self.nested else "") / (self.folder or self.name)
        home = root.parent / "elsewhere" if self.linked else folder
        home.mkdir(parents=True)
        if self.linked:
            root.mkdir()
            folder.symlink_to(home, target_is_directory=True)
        (home / self.file).write_bytes(self.text if isinstance(self.text, bytes) else self.text.encode())


def _text(description: str = SAYS, name: str = "plain", more: str = "", body: str = BODY) -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}"


def _named(name: str) -> Variant:
    return Variant(_text(name=name), name)


_LONG = ("Greets people by name. " * 60).strip()
VARIANTS = {
    CONTROL: Variant(_text()),
    "allowed-tools-list": Variant(_text(more="allowed-tools:\n  - Read\n  - Grep\n")),
    "bom": Variant("\ufeff" + _text()),
    "comment-cuts-value": Variant(
        _text("Greets people by name # and title."), description="Greets people by name # and title."
    ),
    "compatibility-too-long": Variant(_text(more=f"compatibility: {'Needs Python. ' * 40}\n")),
    "cr-only": Variant(_text().replace("\n", "\r")),
    "crlf": Variant(_text().replace("\n", "\r\n")),
    "dashes-in-frontmatter": Variant(_text("Greets people --- by name."), description="Greets people --- by name."),
    "delimiter-spaces": Variant(_text().replace("---\n", "---  \n")),
    "description-block": Variant(_text(">-\n  Greets people\n  by name.")),
    "description-escaped": Variant(_text('"Greets \\"people\\" by name."'), description='Greets "people" by name.'),
    "description-markup": Variant(_text("Greets <b>people</b> & cats."), description="Greets <b>people</b> & cats."),
    "description-missing": Variant(f"---\nname: plain\n---\n\n{BODY}", description=BODY.strip()),
    "description-too-long": Variant(_text(_LONG), description=_LONG),
    "description-wrapped": Variant(_text("Greets people\n  by name.")),
    "empty": Variant(""),
    "field-extension": Variant(_text(more="user-invocable: true\nargument-hint: name\n")),
    "file-lowercase": Variant(_text(), file="skill.md"),
    "folder-linked": Variant(_text(), linked=True),
    "folder-nested": Variant(_text(), nested=True),
    "frontmatter-last": Variant(_text(body="").rstrip()),
    "frontmatter-missing": Variant(BODY, description=BODY.strip()),
    "frontmatter-not-first": Variant("\n\n" + _text()),
    "frontmatter-unclosed": Variant(f"---\nname: plain\ndescription: {SAYS}\n\n{BODY}"),
    "instructions-missing": Variant(_text(body="")),
    "metadata-nested": Variant(_text(more="metadata:\n  tags: [a, b]\n")),
    "metadata-number": Variant(_text(more="metadata:\n  version: 1.0\n")),
    "name-characters": _named("my_skill"),
    "name-hyphens": _named("my--skill"),
    "name-mismatch": Variant(_text(), folder="other"),
    "name-missing": Variant(f"---\ndescription: {SAYS}\n---\n\n{BODY}"),
    "name-not-ascii": _named("café"),
    "name-too-long": _named("a" * 65),
    "name-uppercase": _named("Plain"),
    "not-utf8": Variant(_text("Grüßt Menschen.").encode("latin-1"), description="Grüßt Menschen."),
    "unexpected-fields": Variant(_text(more="author: me\n")),
    "yaml-duplicate-key": Variant(_text(more=f"description: {SAYS}\n")),
    "yaml-repaired": Variant(_text("Use when: asked to greet."), description="Use when: asked to greet."),
}

# -- the hosts: each gives the names and descriptions that its loader found below a folder ----------------------------

Found = dict[str, str]


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

    return {one.name: one.description for one in read_skills(sorted(root.iterdir()))}


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
    for folder in sorted(root.iterdir()):
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
    return _compare(variant, found, bool(warned))


def _compare(variant: Variant, found: Found, warned: bool) -> str:
    if not found:
        return "drops" if warned else "drops-silently"
    [(name, description)] = found.items()
    got, meant = " ".join(description.split()), " ".join(variant.description.split())
    if name == variant.name and got == meant:
        return "warns" if warned else "loads"
    shorter = got.rstrip(".… ")
    return "truncates" if name == variant.name and shorter and meant.startswith(shorter) else "corrupts"


def measure() -> dict[str, dict[str, Any]]:
    """The rows of the table for the hosts that are installed here."""
    logging.lastResort = None  # what is heard need not be printed too
    rows: dict[str, dict[str, Any]] = {}
    for host, (package, probe) in HOSTS.items():
        try:
            installed = version(package)
        except PackageNotFoundError:
            continue
        makes = {code: observe(variant, probe) for code, variant in VARIANTS.items()}
        if makes.pop(CONTROL) != "loads":
            raise SystemExit(f"{host} {installed} does not load a plain skill: its probe is out of date")
        rows[host] = {"version": installed, "package": package, "makes": makes}
    return rows


def measure_with(python: str) -> dict[str, dict[str, Any]]:
    """The same for the hosts of another interpreter, where nothing but them can be imported by mistake."""
    done = subprocess.run([python, "-P", __file__, "--json"], check=True, capture_output=True, text=True)
    rows: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return rows


def install_and_measure() -> dict[str, dict[str, Any]]:
    """The same with every host, in an environment that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = f"{folder}/bin/python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *(package for package, _ in HOSTS.values())], check=True)
        return measure_with(python)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="bring the table up to date")
    parser.add_argument("--install", action="store_true", help="with every host, in an environment made for it")
    parser.add_argument("--json", action="store_true", help="print what was measured and do nothing else")
    args = parser.parse_args()
    rows = install_and_measure() if args.install else measure()
    if args.json:
        print(json.dumps(rows))
        return 0
    before = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    after = dict(sorted({**before, **rows}.items()))
    for host in rows:
        print(f"{host}: {'as in the table' if before.get(host) == rows[host] else 'differs from the table'}")
    if args.write:
        TABLE.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if args.write or before == after else 1


if __name__ == "__main__":
    sys.exit(main())
