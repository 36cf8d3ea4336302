"""The documentation is true: its examples run, its links work, and nothing is missing."""

import dataclasses
import functools
import hashlib
import html
import importlib.util
import itertools
import os
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt
from rich.text import Text

from docs_examples import COLUMNS, list_pages, open_workspace, refresh_page, run_in_terminal, strip_styles
from repository import REPO
from skillshelf.lint import CODES
from skillshelf_agent import events
from skillshelf_skills import ATTACHABLE

REFRESH = "run `python tests/docs_examples.py --write` and read the diff"


def read_text(path: str) -> str:
    return (REPO / path).read_text(encoding="utf-8")


def relative_names(paths: list[Path]) -> list[str]:
    return [path.relative_to(REPO).as_posix() for path in paths]


def markdown_files() -> list[Path]:
    """Return all documents for people; skills are for models and have their own checks."""
    folders = (REPO / ".github", REPO / "docs")
    return [*sorted(REPO.glob("*.md")), *(path for folder in folders for path in sorted(folder.rglob("*.md")))]


# test_company_package.py runs this one: its shell is needed afterwards.
WALKTHROUGH = REPO / "docs" / "guides" / "company-package.md"


@pytest.mark.parametrize("page", relative_names([page for page in list_pages() if page != WALKTHROUGH]))
def test_the_examples_of_a_page_run_and_show_their_output(page: str, pytestconfig: pytest.Config) -> None:
    """Python and console blocks and tables match the code as it is now.

    A page that was right runs again when it or one of its packages has changed, and always in CI.
    """
    cache = None if os.environ.get("CI") else getattr(pytestconfig, "cache", None)
    key = f"docs/{page}"
    digest = digest_inputs(page)
    if cache and cache.get(key, "") == digest:
        pytest.skip("it was right, and neither it nor its packages have changed")
    assert read_text(page) == refresh_page(REPO / page), REFRESH
    if cache:
        cache.set(key, digest)


PACKAGES_OF_WORDS = {
    "skillshelf": "",
    "skillshelf-agent": "skillshelf_agent|skillshelf chat|skillshelf demo|skillshelf doctor",
    "skillshelf-evals": "skillshelf_evals|skillshelf eval|skillshelf demo|skillshelf doctor",
    "skillshelf-skills": "skillshelf_skills|--with|skillshelf doctor",
}
"""Words by which a page shows that its examples use a package."""


def digest_inputs(page: str) -> str:
    """Return a digest of the page and of all that its examples run."""
    text = read_text(page)
    packages = [package for package, words in PACKAGES_OF_WORDS.items() if re.search(words, text)]
    used = [page, "examples", "constraints.txt", "tests/docs_examples.py", *(f"packages/{name}" for name in packages)]
    return hashlib.sha256("".join(map(digest_files, used)).encode()).hexdigest()


@functools.cache
def digest_files(path: str) -> str:
    place = REPO / path
    digest = hashlib.sha256()
    for file in [place] if place.is_file() else sorted(place.rglob("*")):
        parts = file.relative_to(REPO).parts
        if file.is_file() and not {"tests", "__pycache__"} & set(parts[2:]):
            digest.update(f"{parts} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


@pytest.mark.parametrize("shown", ["", "```text\nan old output\n```\n\n", "<!-- output -->\n```text\n5\n```\n\n"])
def test_an_output_is_shown_once(shown: str, tmp_path: Path) -> None:
    """The output replaces the one that the author wrote below the example, with or without the mark."""
    page = tmp_path / "page.md"
    page.write_text(f"```python\nprint(2 + 3)\n```\n\n{shown}The end.\n", encoding="utf-8")
    assert refresh_page(page) == "```python\nprint(2 + 3)\n```\n\n<!-- output -->\n```text\n5\n```\n\nThe end.\n"


def test_links_work() -> None:
    """Relative links and images point to files of the repository and to existing headings."""
    broken = [
        f"{page.relative_to(REPO)}: {target}"
        for page in markdown_files()
        for target in find_targets(page)
        if not target_exists(page, target)
    ]
    assert broken == []


def find_targets(page: Path) -> Iterator[str]:
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        for inner in token.children or ():
            target = inner.attrGet("href") or inner.attrGet("src")
            if target and not re.match(r"[a-z]+:", str(target)):
                yield str(target)


def target_exists(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists() or not file.is_relative_to(REPO):
        return False
    return not anchor or anchor in find_anchors(file)


@functools.cache
def find_anchors(page: Path) -> set[str]:
    """Return the anchors GitHub makes for headings; a repeated heading gets a number."""
    anchors: list[str] = []
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            slug = re.sub(r"[^\w\- ]", "", token.content.lower()).replace(" ", "-")
            if slug in anchors:
                slug = f"{slug}-{anchors.count(slug)}"
            anchors.append(slug)
    return set(anchors)


def test_every_page_can_be_reached() -> None:
    """Links lead from docs/index.md to every page."""
    reached: set[Path] = set()
    open_pages = [REPO / "docs" / "index.md"]
    while open_pages:
        page = open_pages.pop()
        reached.add(page)
        linked = {(page.parent / target.partition("#")[0]).resolve() for target in find_targets(page)}
        open_pages += [link for link in linked if link.suffix == ".md" and link not in reached]
    assert sorted(set((REPO / "docs").rglob("*.md")) - reached) == []


def test_every_picture_is_used() -> None:
    """A picture that no page shows should be deleted."""
    shown = {(page.parent / target).resolve() for page in markdown_files() for target in find_targets(page)}
    assert sorted(set((REPO / "docs" / "images").glob("*.svg")) - shown) == []


def test_every_code_is_in_the_reference() -> None:
    """The page explains each diagnostic code."""
    page = read_text("docs/reference/diagnostics.md")
    assert [code for code in CODES if f"\n| `{code}` | " not in page] == []


def test_every_event_is_in_the_guide() -> None:
    """The table lists each event with the keys of its JSON form."""
    page = read_text("docs/guides/agent-library.md")
    missing: list[str] = []
    for event in typing.get_args(events.Event):
        # `side` is a field of every event, which the text says.
        keys = ", ".join(f'"{field.name}"' for field in dataclasses.fields(event) if field.name != "side")
        row = f'| `{event.__name__}` | `{{"event": "{event.kind}", {keys}}}` |'
        if row not in page:
            missing.append(row)
    assert missing == []


def test_every_decision_is_in_the_index() -> None:
    """Each record has the three sections, a unique number, and a line in the index."""
    records = sorted((REPO / "docs" / "adr").glob("0*.md"))
    index = read_text("docs/adr/README.md")
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        record = path.read_text(encoding="utf-8")
        title = re.match(r"# (\d{4}): (.+)\n", record)
        assert title
        assert f"| [{title[1]}]({path.name}) | {title[2]} |" in index
        assert re.findall(r"^## (.+)$", record, re.M) == ["Context", "Decision", "Consequences"]


def test_the_tour_shows_its_stops() -> None:
    """`make run` shows every stop without errors, and without colour codes in a pipe."""
    done = subprocess.run(
        [sys.executable, "examples/tour.py"], cwd=REPO, capture_output=True, text=True, check=True, timeout=120
    )
    stops = re.findall(r"^(\d)\. .+ ─+$", done.stdout, re.M)
    assert (stops, done.stderr, "\x1b" in done.stdout) == (list("123456"), "", False)
    assert max(map(len, done.stdout.splitlines())) <= COLUMNS
    assert "ReferenceNotAllowedError" in done.stdout
    assert "from the turn's cache" in done.stdout
    assert "Delta(added=('triage',), changed=('release-notes',), removed=('weekly-report',)" in done.stdout
    assert "pip install 'skillshelf[chat]'" in done.stdout


def test_the_code_skills_of_the_examples_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples follow the rules that they teach."""
    from skillshelf.testing import check_package

    monkeypatch.syspath_prepend(REPO / "examples")
    check_package("code_skills")


def test_the_pictures_of_commands_show_their_output() -> None:
    """The text in each picture is what its commands print now, on a machine that has what every bundled skill needs."""
    obstacles = [f"{skill.name}: {obstacle}" for skill in ATTACHABLE if (obstacle := skill.find_obstacle())]
    if obstacles:
        pytest.skip(f"`skillshelf list` says what is missing here: {', '.join(obstacles)}")
    make = load_picture_maker()
    for name, commands in make.PICTURES.items():
        svg = (REPO / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        with open_workspace():
            written = "".join(f"$ {command}\n{strip_styles(run_in_terminal(command))}" for command in commands)
        shown = re.findall(r"<text[^>]*>([^<]*)</text>", svg)[1:]  # without the title
        assert remove_spaces("".join(map(html.unescape, shown))) == remove_spaces(written), (
            f"run `python docs/images/make.py`: {name}.svg"
        )


def test_the_pictures_of_the_agent_show_a_real_session() -> None:
    """The last screen of a real session is the picture, apart from token counts."""
    make = load_picture_maker()
    for name, session in make.SESSIONS.items():
        svg = (REPO / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        expected = make.visible_text(svg)

        def letters(lines: list[Text]) -> str:
            return str(make.ignore_numbers("".join(line.plain for line in lines)))

        def is_ready(lines: list[Text], expected: str = expected) -> bool:
            return letters(lines) == expected

        assert letters(make.play(session, is_ready)) == expected, f"run `python docs/images/make.py`: {name}.svg"


def load_picture_maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pictures", REPO / "docs" / "images" / "make.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def remove_spaces(shown: str) -> str:
    return "".join(shown.split())


@pytest.mark.skipif(not (REPO / ".git").exists(), reason="not a checkout: git does not say which files are ours")
def test_no_path_of_a_developers_machine_is_in_the_repository() -> None:
    """Code, documents, tests and pictures contain no absolute path of the machine they were made on."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, text=True, check=True).stdout
    homes = re.compile(rb"/(?:tmp|home|root|work|Users|private|var/folders)/")
    # Data that an earlier version stored keeps the temporary folders it was made in.
    files = [name for name in listed.split("\0") if not name.startswith("tests/stored/") and (REPO / name).is_file()]
    assert [name for name in files if homes.search((REPO / name).read_bytes())] == []
