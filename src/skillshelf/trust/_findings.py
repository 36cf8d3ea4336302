"""What stands out in a skill: the things that the user should look at twice before approving it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice

from skillshelf.descriptor import SkillDescriptor
from skillshelf.hidden import CONTROL
from skillshelf.skillmd import Unreadable, decode, find_declared_variables, read
from skillshelf.sources import SKILL_FILES
from skillshelf.text import count_noun, decode_text, find_hidden
from skillshelf.trust._snapshot import Snapshot, SnapshotEntry

MAX_INSTANCES = 10_000
"""No more instances of one kind are collected: a file of fifty megabytes can have millions."""
_MAX_LISTED_LINES = 10
_SCRIPT_ENDINGS = (
    *(".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".ps1"),
    *(".bat", ".cmd", ".exe", ".com", ".jar", ".so", ".dylib", ".pyc", ".pth"),
)
_CASE_ENDINGS = (".yaml", ".yml", ".json")
_COMMAND = re.compile(r"!`([^`\n]+)`")
# The argument of a scripted call of the shell, or a `run` check, in an eval case.
_CASE_COMMAND = re.compile(r"""["']?\b(?:command|run)["']?[ \t]*:[ \t]*([^\n]+)""")
_BLOCK_MARK = re.compile(r"([|>])[-+0-9]*[ \t]*(?:#.*)?")
_MAX_COMMAND_LINES = 20
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`)\]}]+", re.I)


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of thing that the user should look at twice. It is advice: only the user's approval decides."""

    kind: str
    instances: list[str]


def list_findings(snapshot: Snapshot, first: str, contents: Mapping[str, bytes]) -> Iterator[Finding]:
    """Yield each kind of finding, even if it has no instances. `first` is the file whose frontmatter counts."""
    texts: dict[str, str] = {}
    for path, data in contents.items():
        text = decode_text(data)
        if text is not None:
            texts[path] = text
    urls = (match[0].rstrip(".,;:") for _, match in _find_all(_URL, texts))
    links = [entry for entry in snapshot.entries if entry.target is not None]

    skill = _read_skill(contents.get(first, b""))
    if skill is not None:
        yield Finding("allowed-tools", list(skill.allowed_tools))
        yield Finding("how it runs", list(_describe_run(skill)))
    yield Finding("commands in the text", [f"{path}: {match[1]}" for path, match in _find_all(_COMMAND, texts)])
    yield Finding(
        "python that `skillshelf eval` runs", [path for path in texts if _is_eval_file(path, first, (".py",))]
    )
    yield Finding("commands in eval cases", list(_find_case_commands(texts, first)))
    yield Finding("addresses", list(dict.fromkeys(urls)))
    yield Finding("scripts", [file.path for file in snapshot.files if is_script(file, contents.get(file.path))])
    yield Finding("links", [f"{link.path} -> {link.target}" for link in links])
    yield Finding("hidden characters", list(_find_hidden_characters(texts)))


def is_script(file: SnapshotEntry, data: bytes | None) -> bool:
    """Return True for a script, by its mode, its first line or its name."""
    return file.executable or file.path.lower().endswith(_SCRIPT_ENDINGS) or (data or b"").startswith(b"#!")


def _read_skill(data: bytes) -> SkillDescriptor | None:
    try:
        return read(decode(data)).describe(references=(), source="", location="")
    except Unreadable:
        return None


def _describe_run(skill: SkillDescriptor) -> Iterator[str]:
    """Yield what a skill asks for when it is used, apart from tools."""
    if skill.runs_apart:
        yield "context: fork: it runs in a conversation of its own, with the same tools and under the same policy"
    if skill.model:
        yield f"model: {skill.model}: it asks for this model, at its price, if your provider has it"
    variables = find_declared_variables(skill.metadata)
    if variables:
        yield f"environment variables for its scripts, which you are asked for: {', '.join(variables)}"


def _is_eval_file(path: str, first: str, endings: tuple[str, ...]) -> bool:
    """Return True for a file in a skill's `evals/` folder, and for any file of a folder that is not a skill."""
    is_skill = first in SKILL_FILES
    return path.lower().endswith(endings) and (path.startswith("evals/") or not is_skill)


def _find_case_commands(texts: Mapping[str, str], first: str) -> Iterator[str]:
    cases = {path: text for path, text in texts.items() if _is_eval_file(path, first, _CASE_ENDINGS)}
    for path, match in _find_all(_CASE_COMMAND, cases):
        yield f"{path}: {_join_command(match)}"


def _join_command(match: re.Match[str]) -> str:
    """Return the command on one line, with the lines that YAML continues it on: those that are indented deeper."""
    text = match.string
    line_start = text.rfind("\n", 0, match.start()) + 1
    before = text[line_start : match.start()]
    parent_indent = len(before) - len(before.lstrip(" \t-"))
    block = _BLOCK_MARK.fullmatch(match[1].strip())
    lines = [] if block else [match[1].strip()]
    more = 0
    position = match.end()
    while position < len(text):
        end = text.find("\n", position + 1)
        line = text[position + 1 : end if end >= 0 else len(text)]
        if line.strip() and len(line) - len(line.lstrip(" \t")) <= parent_indent:
            break
        if line.strip() and len(lines) < _MAX_COMMAND_LINES:
            lines.append(line.strip())
        elif line.strip():
            more += 1
        position = end if end >= 0 else len(text)

    joined = (" ⏎ " if block and block[1] == "|" else " ").join(lines)
    return f"{joined} … and {count_noun(more, 'more line')}" if more else joined


def _find_all(pattern: re.Pattern[str], texts: Mapping[str, str]) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the first matches in all texts, with their paths."""
    matches = ((path, match) for path, text in texts.items() for match in pattern.finditer(text))
    return islice(matches, MAX_INSTANCES)


def _find_hidden_characters(texts: Mapping[str, str]) -> Iterator[str]:
    for path, text in texts.items():
        count = 0
        lines: list[int] = []
        for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
            matches = chain(find_hidden(line), CONTROL.finditer(line))
            on_line = sum(1 for _ in islice(matches, MAX_INSTANCES))
            count += on_line
            if on_line and len(lines) <= _MAX_LISTED_LINES:
                lines.append(number)
            if count >= MAX_INSTANCES:
                break
        if count:
            listed = ", ".join(map(str, lines[:_MAX_LISTED_LINES]))
            if len(lines) > _MAX_LISTED_LINES:
                listed += " …"
            or_more = " or more" if count >= MAX_INSTANCES else ""
            yield f"{path}: {count}{or_more} in line {listed}"
