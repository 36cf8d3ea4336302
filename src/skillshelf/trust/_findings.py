"""Points in a skill that the user should look at twice. They are advice; the boundary is the user's approval."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice

from skillshelf.hidden import CONTROL
from skillshelf.skillmd import Unreadable, decode, read
from skillshelf.sources import SKILL_FILES
from skillshelf.text import decode_text, find_hidden
from skillshelf.trust._snapshot import Entry, Snapshot

_SUFFIXES = (
    *(".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".ps1"),
    *(".bat", ".cmd", ".exe", ".com", ".jar", ".so", ".dylib", ".pyc", ".pth"),
)
_LINES_NAMED = 10
MOST_INSTANCES = 10_000
"""The most of one kind that are collected: a file of fifty megabytes can have millions."""
_COMMAND = re.compile(r"!`([^`\n]+)`")
_CASE_FILES = (".yaml", ".yml", ".json")
# Commands in cases: the argument of a scripted call of the shell.
_CASE_COMMAND = re.compile(r"""["']?\bcommand["']?[ \t]*:[ \t]*([^\n]+)""")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`)\]}]+", re.I)


def is_script(entry: Entry, data: bytes | None) -> bool:
    """Return True for a script, by its mode, its first line or its name."""
    return entry.executable or entry.path.lower().endswith(_SUFFIXES) or (data or b"").startswith(b"#!")


def findings(snapshot: Snapshot, first: str, contents: Mapping[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """Yield each kind of finding with its instances. `first`: the file whose frontmatter counts."""
    texts: dict[str, str] = {}
    for path, data in contents.items():
        text = decode_text(data)
        if text is not None:
            texts[path] = text

    yield "allowed-tools", list(_allowed_tools(contents.get(first, b"")))
    yield "commands in the text", [f"{path}: {match[1]}" for path, match in _some(_COMMAND, texts)]
    yield "python that `skillshelf eval` runs", [path for path in texts if _is_eval_file(path, first, (".py",))]
    yield "commands in eval cases", list(_case_commands(texts, first))
    yield "addresses", list(dict.fromkeys(match[0].rstrip(".,;:") for _, match in _some(_URL, texts)))
    files = [entry for entry in snapshot.entries if entry.target is None]
    links = [entry for entry in snapshot.entries if entry.target is not None]
    yield "scripts", [file.path for file in files if is_script(file, contents.get(file.path))]
    yield "links", [f"{link.path} -> {link.target}" for link in links]
    yield "hidden characters", list(_hidden(texts))


def _is_eval_file(path: str, first: str, endings: tuple[str, ...]) -> bool:
    """True for files of a skill's `evals/` folder, and for all files of a folder that is not a skill."""
    is_skill = first in SKILL_FILES
    return path.lower().endswith(endings) and (path.startswith("evals/") or not is_skill)


def _case_commands(texts: Mapping[str, str], first: str) -> Iterator[str]:
    cases = {path: text for path, text in texts.items() if _is_eval_file(path, first, _CASE_FILES)}
    for path, match in _some(_CASE_COMMAND, cases):
        yield f"{path}: {match[1].strip()}"


def _allowed_tools(data: bytes) -> tuple[str, ...]:
    try:
        return read(decode(data)).optional.allowed_tools
    except Unreadable:
        return ()


def _some(pattern: re.Pattern[str], texts: Mapping[str, str]) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the first matches in all texts, with their paths."""
    matches = ((path, match) for path, text in texts.items() for match in pattern.finditer(text))
    return islice(matches, MOST_INSTANCES)


def _hidden(texts: Mapping[str, str]) -> Iterator[str]:
    for path, text in texts.items():
        count = 0
        lines: list[int] = []
        for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
            found = chain(find_hidden(line), CONTROL.finditer(line))
            on_line = sum(1 for _ in islice(found, MOST_INSTANCES))
            count += on_line
            if on_line and len(lines) <= _LINES_NAMED:
                lines.append(number)
            if count >= MOST_INSTANCES:
                break
        if count:
            some = ", ".join(map(str, lines[:_LINES_NAMED])) + (" …" if len(lines) > _LINES_NAMED else "")
            more = " or more" if count >= MOST_INSTANCES else ""
            yield f"{path}: {count}{more} in line {some}"
