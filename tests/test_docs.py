"""The documentation is true: examples run and show what happens, links lead somewhere, nothing is missing."""

import dataclasses
import html
import importlib.util
import itertools
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from docs_examples import COLUMNS, REPO, pages, plain, refreshed, terminal, workspace
from markdown_it import MarkdownIt
from rich.text import Text

import skillshelf
from skillshelf.agent import events
from skillshelf.cli._main import COMMANDS
from skillshelf.lint import CODES

REFRESH = "run `python tests/docs_examples.py --write` and read the diff"
# The words that the design and its two records use for things, and that people and models meet.
WORDS = [
    *("skill", "descriptor", "instructions", "reference", "source", "catalog", "shelf", "listing", "load", "turn"),
    *("activation", "diagnostic", "face", "case", "check", "find-skills", "raw", "frontmatter", "Available Skills"),
    *("SkillDescriptor", "BaseSkill", "SkillDiscoverySkill", "load_skill_instructions", "ReferenceNotFoundError"),
    *("loadSkills", "reloadSkills", "hot reload", "registry"),
    *("agent", "event", "policy", "approval", "session", "trust", "pending", "grant", "route", "feed", "script"),
]


def text(path: str) -> str:
    return (REPO / path).read_text(encoding="utf-8")


def named(paths: list[Path]) -> list[str]:
    return [path.relative_to(REPO).as_posix() for path in paths]


def markdown_files() -> list[Path]:
    """All that people read here; skills are for models, and have checks of their own."""
    folders = (REPO / ".github", REPO / "docs")
    return [*sorted(REPO.glob("*.md")), *(path for folder in folders for path in sorted(folder.rglob("*.md")))]


@pytest.mark.parametrize("page", named(pages()))
def test_the_examples_of_a_page_run_and_show_what_happens(page: str) -> None:
    """Python and console blocks, --help texts, signatures and tables are what the code gives today."""
    assert text(page) == refreshed(REPO / page), REFRESH


@pytest.mark.parametrize("page", named(markdown_files()))
def test_the_links_of_a_page_lead_somewhere(page: str) -> None:
    """Relative links and images name files of the repository, and headings that are there."""
    assert [target for target in targets(REPO / page) if not leads_somewhere(REPO / page, target)] == []


def targets(page: Path) -> Iterator[str]:
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        for inner in token.children or ():
            target = inner.attrGet("href") or inner.attrGet("src")
            if target and not re.match(r"[a-z]+:", str(target)):
                yield str(target)


def leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists() or not file.is_relative_to(REPO):
        return False
    return not anchor or anchor in anchors(file)


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings; the second of two that are alike gets a number."""
    found: list[str] = []
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            slug = re.sub(r"[^\w\- ]", "", token.content.lower()).replace(" ", "-")
            found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return set(found)


def test_every_page_can_be_reached() -> None:
    """From docs/index.md, link by link, one comes to each page."""
    reached: set[Path] = set()
    open_pages = [REPO / "docs" / "index.md"]
    while open_pages:
        page = open_pages.pop()
        reached.add(page)
        linked = {(page.parent / target.partition("#")[0]).resolve() for target in targets(page)}
        open_pages += [one for one in linked if one.suffix == ".md" and one not in reached]
    assert sorted(set((REPO / "docs").rglob("*.md")) - reached) == []


def test_every_picture_is_shown() -> None:
    """No picture lies about that no page uses."""
    shown = {(page.parent / target).resolve() for page in markdown_files() for target in targets(page)}
    assert sorted(set((REPO / "docs" / "images").glob("*.svg")) - shown) == []


def test_every_public_name_is_in_the_reference() -> None:
    """A name that is promised has a heading, a signature and an example."""
    page = text("docs/reference/api.md")
    sections = {section.partition("\n")[0]: section for section in page.split("\n## ")}
    missing = [name for name in skillshelf.__all__ if f"generated: signature {name} " not in sections.get(name, "")]
    without_example = [name for name in skillshelf.__all__ if "```python" not in sections.get(name, "")]
    assert (missing, without_example) == ([], [])


def test_every_command_is_in_the_reference() -> None:
    """A command that can be typed has its --help on the page."""
    page = text("docs/reference/cli.md")
    assert [name for name in COMMANDS if f"\n## {name}\n\n<!-- generated: help {name} -->" not in page] == []


def test_every_code_is_in_the_reference() -> None:
    """A code that a diagnostic can have says on the page what it means."""
    page = text("docs/reference/diagnostics.md")
    assert [code for code in CODES if f"\n| `{code}` | " not in page] == []


def test_every_event_is_in_the_guide() -> None:
    """With the keys of its JSON form, which programs read."""
    page = text("docs/guides/agent-library.md")
    kinds = typing.get_args(events.Event)
    rows = [(kind, ", ".join(f'"{field.name}"' for field in dataclasses.fields(kind))) for kind in kinds]
    written = [f'| `{kind.__name__}` | `{{"event": "{kind.kind}", {keys}}}` |' for kind, keys in rows]
    assert [row for row in written if row not in page] == []


def test_the_words_are_in_the_glossary() -> None:
    """One word for each thing, and each word explained."""
    page = text("docs/glossary.md")
    assert [word for word in WORDS if not re.search(rf"[`* (]{re.escape(word)}[`* ,(.]", page)] == []


def test_every_module_is_in_the_table_of_layers() -> None:
    """Readers find each room of the package in how-it-fits.md."""
    page = text("docs/concepts/how-it-fits.md").partition("## The layers")[2]
    rooms = {path.stem for path in (REPO / "src" / "skillshelf").iterdir() if not path.name.startswith(("_", "."))}
    assert sorted(room for room in rooms - {"py"} if f"`{room}`" not in page) == []


def test_the_error_tree_is_the_one_of_the_code() -> None:
    """The tree in the reference is that of errors.py, line by line."""
    tree = (skillshelf.errors.__doc__ or "").split("\n\n")[1]
    drawn = "\n".join(line.removeprefix("    ") for line in tree.splitlines())
    assert drawn in text("docs/reference/api.md")


def test_every_decision_is_in_the_index() -> None:
    """Each record has the short form, a number of its own, and a line in the index."""
    records = sorted((REPO / "docs" / "adr").glob("0*.md"))
    index = text("docs/adr/README.md")
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        record = path.read_text(encoding="utf-8")
        title = re.match(r"# (\d{4}): (.+)\n", record)
        assert title
        assert f"| [{title[1]}]({path.name}) | {title[2]} |" in index
        assert re.findall(r"^## (.+)$", record, re.M) == ["Context", "Decision", "Consequences"]


def test_the_tour_shows_its_stops() -> None:
    """What `make run` shows: every stop, no colour codes in a pipe, no failure; a small model answers at the end."""
    done = subprocess.run(
        [sys.executable, "examples/tour.py"], cwd=REPO, capture_output=True, text=True, check=True, timeout=120
    )
    stops = re.findall(r"^(\d)\. .+ ─+$", done.stdout, re.M)
    assert (stops, done.stderr, "\x1b" in done.stdout) == (list("1234567"), "", False)
    assert max(map(len, done.stdout.splitlines())) <= COLUMNS
    assert "ReferenceNotAllowedError" in done.stdout
    assert "from the turn's cache" in done.stdout
    assert "Delta(added=('triage',), changed=('release-notes',), removed=('weekly-report',)" in done.stdout
    assert (
        "skill incident-runbook, loaded by the shelf" in done.stdout or "not installed  make run-agent" in done.stdout
    )
    assert "pip install 'skillshelf[chat]'" in done.stdout


def test_the_code_skills_of_the_examples_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples keep the rules they teach."""
    from skillshelf.testing import check_package

    monkeypatch.syspath_prepend(REPO / "examples")
    check_package("code_skills")


def test_the_pictures_show_what_a_terminal_shows() -> None:
    """Each line of a picture is a line of what the commands write today."""
    make = picture_maker()
    for name, commands in make.PICTURES.items():
        svg = (REPO / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        with workspace():
            written = "".join(f"$ {command}\n{plain(terminal(command))}" for command in commands)
        shown = re.findall(r"<text[^>]*>([^<]*)</text>", svg)[1:]  # less the title
        assert without_spaces("".join(map(html.unescape, shown))) == without_spaces(written), (
            f"run `python docs/images/make.py`: {name}.svg"
        )


def test_the_pictures_of_the_agent_show_what_a_session_shows() -> None:
    """Keys are pressed in a real session, and its last screen is the picture, but for the numbers of tokens."""
    make = picture_maker()
    for name, session in make.SESSIONS.items():
        svg = (REPO / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        expected = make.shown(svg)

        def letters(lines: list[Text]) -> str:
            return str(make.same_numbers("".join(line.plain for line in lines)))

        def is_ready(lines: list[Text], expected: str = expected) -> bool:
            return letters(lines) == expected

        assert letters(make.played(session, is_ready)) == expected, f"run `python docs/images/make.py`: {name}.svg"


def picture_maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pictures", REPO / "docs" / "images" / "make.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_spaces(shown: str) -> str:
    return "".join(shown.split())


@pytest.mark.skipif(not (REPO / ".git").exists(), reason="not a checkout: git does not say which files are ours")
def test_nothing_of_the_machine_is_in_the_repository() -> None:
    """No path of whoever wrote them in code, documents, tests or pictures."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, text=True, check=True).stdout
    homes = re.compile(rb"/(?:tmp|home|root|work|Users|private|var/folders)/")
    files = [name for name in listed.split("\0") if name and (REPO / name).is_file()]
    assert [name for name in files if homes.search((REPO / name).read_bytes())] == []
