"""Run the examples in README.md and docs/, and update the output that the pages show.

    python tests/docs_examples.py            lists the pages that are out of date
    python tests/docs_examples.py --write    updates them

Each page runs from top to bottom in a copy of examples/workspace, with an empty home folder:

- ```python blocks share one namespace. Their output follows in a ```text block after `<!-- output -->`. A ```text block
  without this mark that follows at once is taken for the output as well, and gets the mark.
- ```console blocks have `$ command` lines, each followed by the output on a terminal of 100 columns, without colours.
- `<!-- generated: KIND ARGUMENT -->` … `<!-- end -->` has the text that the function KIND below generates.

Other blocks (```sh, ```yaml, ```text …) do not run. A page with `<!-- one shell -->` is a walk from an empty folder on:

- Its ```console and ```sh blocks run in one shell, so that `cd` and an activated environment last. Commands of ```sh
  must succeed. pip finds what is installed here, and nothing else.
- A block after a line with nothing but a path (`src/skill.py`:) is written into that file.
"""

import contextlib
import fcntl
import gc
import importlib
import io
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

import prepared
from repository import PACKAGES, REPO

WORKSPACE = REPO / "examples" / "workspace"
COLUMNS = 100
_FENCE = re.compile(r"(`{3,})(\w*)\s*")
_GENERATED = re.compile(r"<!-- generated: (\w+) ?(.*?) -->")
_FILE = re.compile(r"`(\S+)`:")
_RUNS = re.compile(r"^(`{3,}(python|console)\b|<!-- generated: )", re.M)
_ONE_SHELL = "<!-- one shell -->"
_OUTPUT = "<!-- output -->"
_END = "<!-- end -->"
_ERASED = re.compile(r"[^\n]*(?:\n(?:\x1b\[\?25h)?\r\x1b\[1A|\r)\x1b\[2K")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def list_pages() -> list[Path]:
    """Return every page with examples that run, or with generated text."""
    pages = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
    return [page for page in pages if _RUNS.search(page.read_text(encoding="utf-8"))]


def refresh_page(page: Path) -> str:
    """Return the text of a page with current outputs."""
    with open_workspace() as session:
        refreshed = run_page(page, session)

    # MCP clients leave pipes to the collector. Collect them here, not in the middle of another page's test.
    del session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    return refreshed


def run_page(page: Path, session: "Session") -> str:
    """Run the examples of a page, and return its text with current outputs."""
    lines = page.read_text(encoding="utf-8").split("\n")
    return "\n".join(_refresh(lines, session, page))


@contextlib.contextmanager
def open_workspace() -> "Iterator[Session]":
    """Work in a copy of the example workspace, with an empty home folder."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "workspace")
        home = Path(folder, "home")
        shutil.copytree(WORKSPACE, copy)
        home.mkdir()
        variables = {
            "HOME": str(home),
            "COLUMNS": str(COLUMNS),
            "TERM": "xterm-256color",
            "PYTHONPATH": str(REPO / "examples"),
        }
        left_out = ("NO_COLOR", "FORCE_COLOR", "LINES", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
        inherited = {key: value for key, value in os.environ.items() if key not in left_out}
        with (
            mock.patch.dict(os.environ, inherited | variables, clear=True),
            mock.patch.object(sys, "path", [str(REPO / "examples"), *sys.path]),
        ):
            os.chdir(copy)
            try:
                yield Session()
            finally:
                os.chdir(before)


class Session:
    """What the blocks of one page share: a namespace and, if the page wants one, a shell."""

    def __init__(self) -> None:
        self.main = ModuleType("__main__")
        self.shell: Shell | None = None

    def run_python(self, code: str, place: str, line: int) -> str:
        """Run a block and return what it prints. `place` and `line` appear in tracebacks."""
        printed = io.StringIO()
        # Classes defined in the block look for their module, as they would in a script.
        real_main = sys.modules["__main__"]
        sys.modules["__main__"] = self.main
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + code, place, "exec"), vars(self.main))
        finally:
            sys.modules["__main__"] = real_main
        return printed.getvalue()


def run_in_terminal(command: str) -> str:
    """Return the output of a command on a terminal of 100 columns, with its colours."""
    # Test the skillshelf of this interpreter, whatever PATH says.
    script = f'skillshelf() {{ {shlex.join(prepared.command())} "$@"; }}\n{command}'
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    shell = subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    output = b""
    # At the end of the output Linux raises an error; other systems return nothing.
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 65536):
            output += chunk
    os.close(ours)
    shell.wait()
    return output.decode().replace("\r\n", "\n")


class Shell:
    """A shell in an empty folder. Its folder and its variables last from one command to the next."""

    def __init__(self, place: Path) -> None:
        self._variables = place / "variables"
        self._folder = place / "folder"
        self._status = place / "status"
        start = place / "start"
        start.mkdir(parents=True)
        self._folder.write_text(str(start))
        # New environments have everything that is installed here, pip too, but not the packages of this page.
        installed = [path for path in sys.path if path.endswith("-packages")]
        self._installed = place / "installed.pth"
        sources = [str(path.parent) for path in PACKAGES.values()]
        self._installed.write_text("\n".join([*sources, *installed, ""]))
        variables = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_BUILD_ISOLATION": "false",  # pip's word for: build with what is installed
            "PIP_NO_INDEX": "1",
            "PYDANTIC_AI_NO_BANNER": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
        }
        self._variables.write_text("".join(f"export {name}='{value}'\n" for name, value in variables.items()))

    @property
    def folder(self) -> Path:
        """The current folder."""
        return Path(self._folder.read_text().strip())

    def run(self, command: str) -> str:
        """Return the output of a command, with its colours."""
        return run_in_terminal(
            f'. "{self._variables}"; cd "{self.folder}"\n'
            'python() { if [ "$1 $2" = "-m venv" ]; then command python -m venv --without-pip "$3" && '
            f'cp "{self._installed}" "$3"/lib/python*/site-packages; else command python "$@"; fi; }}\n'
            'pip() { python -m pip "$@"; }\n'
            'skillshelf() { python -m skillshelf "$@"; }\n'
            'pytest() { python -m pytest "$@"; }\n'
            f"{command}\n"
            f'echo $? > "{self._status}"; export -p > "{self._variables}"; pwd > "{self._folder}"\n'
        )

    def check(self, command: str) -> None:
        """Run a command that must succeed."""
        output = self.run(command)
        if self._status.read_text().strip() != "0":
            raise RuntimeError(f"{command!r} failed:\n{strip_styles(output)}")


def strip_styles(text: str) -> str:
    """Return terminal output without colours, trailing spaces, and what a progress bar has erased again."""
    return "\n".join(line.rstrip() for line in _STYLE.sub("", _ERASED.sub("", text)).split("\n"))


# -- a page, line by line ---------------------------------------------------------------------------------------------


def _refresh(lines: list[str], session: Session, page: Path) -> Iterator[str]:
    at = 0
    while at < len(lines):
        fence = _FENCE.fullmatch(lines[at])
        file = _FILE.fullmatch(lines[at])
        if lines[at] == _ONE_SHELL:
            session.shell = Shell(Path.cwd().parent / "shell")
        if file and session.shell:
            end = _write_file(lines, at + 2, session.shell.folder / file[1])
            yield from lines[at : end + 1]
            at = end + 1
            continue
        generated = _GENERATED.fullmatch(lines[at])
        if generated:
            end = lines.index(_END, at)
            yield from (lines[at], "", *_KINDS[generated[1]](generated[2]), "")
            at = end
        elif fence:
            end = lines.index(fence[1], at + 1)
            inside = lines[at + 1 : end]
            if fence[2] == "console":
                inside = list(_run_console(inside, session))
            elif fence[2] == "sh" and session.shell:
                for command in inside:
                    session.shell.check(command)
            yield from (lines[at], *inside, lines[end])
            at = end + 1
            if fence[2] == "python":
                printed = session.run_python("\n".join(inside), os.path.relpath(page, REPO), end - len(inside))
                after = _skip_output(lines, at)
                if printed or after > at:
                    yield from ("", _OUTPUT, "```text", *printed.removesuffix("\n").split("\n"), "```")
                at = after
            continue
        if at < len(lines):
            yield lines[at]
        at += 1


def _skip_output(lines: list[str], at: int) -> int:
    """Return the index after the output block at `at`, or `at` if there is none."""
    start = at
    while start < len(lines) and not lines[start]:
        start += 1
    if lines[start : start + 1] == [_OUTPUT]:
        start += 1
    if lines[start : start + 1] != ["```text"]:
        return at
    return lines.index("```", start + 1) + 1


def _write_file(lines: list[str], start: int, file: Path) -> int:
    """Write the block that starts at a line into a file, and return the index of its last line."""
    fence = _FENCE.fullmatch(lines[start])
    assert fence, f"no block follows after {file.name}"
    end = lines.index(fence[1], start + 1)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([*lines[start + 1 : end], ""]), encoding="utf-8")
    return end


def _run_console(lines: list[str], session: Session) -> Iterator[str]:
    run = session.shell.run if session.shell else run_in_terminal
    commands = [line for line in lines if line.startswith("$ ")]
    for number, command in enumerate(commands):
        if number:
            yield ""
        yield command
        output = strip_styles(run(command.removeprefix("$ "))).strip("\n")
        if output:
            yield from output.split("\n")


# -- generated text -------------------------------------------------------------------------------------------------


def _codes(family: str) -> list[str]:
    from skillshelf.lint import _codes as codes

    table: dict[str, str] = getattr(codes, family)
    rows = [f"| `{code}` | {meaning.replace('<', '&lt;')} |" for code, meaning in sorted(table.items())]
    return ["| code | meaning |", "|---|---|", *rows]


def _excerpt(count: str) -> list[str]:
    """Return the beginning of the example workspace's listing, wrapped for reading."""
    from skillshelf import Shelf

    listing = Shelf.open(".").listing("catalog")
    head, _, rest = listing.text.partition("<skill ")
    entries = ["<skill " + entry for entry in rest.partition("</available_skills>")[0].split("<skill ")]
    shown = head + "".join(entries[: int(count)]) + f"… {len(entries) - int(count)} more skills …\n</available_skills>"
    lines = [part for line in shown.split("\n") for part in _wrap(line, COLUMNS) or [""]]
    return ["```xml", *lines, "```", "", f"For all six skills this takes {listing.tokens} tokens."]


def _limits(_: str) -> list[str]:
    rows = []
    for module, name, what in _LIMITS:
        value = getattr(importlib.import_module(f"skillshelf.{module}"), name)
        shown = f"{value:,}"
        if what.endswith(", in bytes"):
            shown = f"{value >> 20} MiB" if value >= 1 << 20 else f"{value >> 10} KiB"
        rows.append(f"| {what.removesuffix(', in bytes')} | {shown} |")
    return ["| item | limit |", "|---|--:|", *rows]


def _measured(_: str) -> list[str]:
    """Summarize the ratios in docs/benchmarks.md that matter when choosing a library."""
    page = (REPO / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    _, _, table = page.partition("### Ratios")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.partition("###")[0].split("\n")]
    ratio = {row[0]: row[3] for row in rows if row}
    [scan_floor] = [row[2].partition(":")[0] for row in rows if row and row[0] == "cold scan"]
    [skills] = re.findall(r"^skillshelf .*?, ([\d,]+ skills)", page, re.M)
    return _wrap(
        f"With {skills}, a first scan takes {ratio['cold scan']} the time of the bare system calls ({scan_floor}), the "
        f"check at the start of a turn takes {ratio['sweep: reload()']} the time of the bare `stat` calls, and "
        f"reloading one file takes {ratio['reload(changed=[path]), wall time']} as long as with 100 skills.",
        120,
    )


def _skipped(_: str) -> list[str]:
    from skillshelf.sources import SKIPPED_FOLDERS

    return _wrap(", ".join(f"`{name}`" for name in sorted(SKIPPED_FOLDERS)) + ".", 120)


def _wrap(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, break_on_hyphens=False)


_LIMITS = (
    ("skillmd", "MAX_FILE", "a `SKILL.md`, in bytes"),
    ("skillmd.bounded_yaml", "MAX_BLOCK", "its frontmatter, in bytes"),
    ("skillmd.bounded_yaml", "MAX_DEPTH", "levels of nesting in the frontmatter"),
    ("skillmd.bounded_yaml", "MAX_NODES", "values in the frontmatter, aliases counted in full"),
    ("skillmd._limits", "MAX_REPAIRED_FIELDS", "fields read one by one if the block is not valid YAML"),
    ("skillmd._limits", "MAX_USABLE_NAME", "characters of a name that can be loaded (the format allows 64)"),
    ("sources._limits", "MAX_SKILL_FILES", "files of a skill, its `SKILL.md` included"),
    ("sources._limits", "MAX_SKILL_BYTES", "all of them together, in bytes"),
    ("skills._descriptor", "MAX_DESCRIPTION", "characters of a description that are listed and searched"),
    ("listing._section", "MAX_REFERENCES", "references of a skill that the listing names"),
    ("shelf._turn", "_MAX_LISTED_REFERENCES", "references of a skill that loading its instructions names"),
    ("text.tokens", "DEFAULT_BUDGET", "tokens of a listing (default)"),
    ("shelf.pages", "PAGE_BYTES", "a page of a reference, in bytes"),
    ("shelf._discovery", "_SKILLS_PER_PAGE", "skills in one answer of `list_skills`"),
    ("skills.results", "MAX_MEDIA", "images and sound in one tool result, in bytes"),
    ("sources._limits", "MAX_DEPTH", "nested folders"),
    ("sources._limits", "MAX_FOLDERS", "folders below a root (`DirectorySource(max_folders=…)`)"),
    ("lint._limits", "MAX_TOKENS", "tokens of instructions before `check` warns"),
    ("lint._limits", "MAX_LINES", "lines of instructions before `check` warns"),
)
_KINDS = {
    "codes": _codes,
    "excerpt": _excerpt,
    "limits": _limits,
    "measured": _measured,
    "skipped": _skipped,
}


def main(write: bool) -> int:
    stale = 0
    for page in list_pages():
        try:
            text = refresh_page(page)
        except Exception:
            print(f"{page.relative_to(REPO)}: failed\n{traceback.format_exc()}")
            stale += 1
            continue
        if text != page.read_text(encoding="utf-8"):
            stale += not write
            print(f"{page.relative_to(REPO)}: {'written' if write else 'out of date'}")
            if write:
                page.write_text(text, encoding="utf-8")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
