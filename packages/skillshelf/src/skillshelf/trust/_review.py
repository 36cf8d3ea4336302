"""The review: the page that the user reads before approving, and the questions.

The page has what changed, what stands out, and every file. Every line is cleaned for a terminal when it is added. The
command line and the terminal ask the same questions, each in its own way.
"""

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from typing import Literal, NamedTuple, Protocol

from skillshelf.errors import TrustError
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, find_declared_variables, read
from skillshelf.skills import SkillDescriptor
from skillshelf.sources import SKILL_FILES
from skillshelf.text import clean, clean_line, count_noun, decode_text, find_hidden, show_hidden
from skillshelf.text.hidden import CONTROL
from skillshelf.trust._approvals import Kind, Pending
from skillshelf.trust._capabilities import (
    find_addresses,
    find_commands,
    find_host,
    find_outside_files,
    find_packed,
    find_remote_instructions,
    find_variables,
)
from skillshelf.trust._limits import (
    MAX_COMMAND_LINES,
    MAX_COMPARE_STEPS,
    MAX_INSTANCES,
    MAX_LISTED_INSTANCES,
    MAX_LISTED_LINES,
)
from skillshelf.trust._trees import Snapshot, SnapshotEntry

# --- what stands out ---

_SCRIPT_ENDINGS = (
    *(".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".ps1"),
    *(".bat", ".cmd", ".exe", ".com", ".jar", ".so", ".dylib", ".pyc", ".pth"),
)
_CASE_ENDINGS = (".yaml", ".yml", ".json")
_COMMAND = re.compile(r"!`([^`\n]+)`")
# The argument of a scripted call of the shell, or a `run` check, in an eval case.
_CASE_COMMAND = re.compile(r"""["']?\b(?:command|run)["']?[ \t]*:[ \t]*([^\n]+)""")
_BLOCK_MARK = re.compile(r"([|>])[-+0-9]*[ \t]*(?:#.*)?")


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
    links = [entry for entry in snapshot.entries if entry.target is not None]

    skill = _read_skill(contents.get(first, b""))
    if skill is not None:
        yield Finding("allowed-tools", list(skill.allowed_tools))
        if first in SKILL_FILES:  # nothing else runs apart, or with the model that it names
            yield Finding("how it runs", list(_describe_run(skill)))
    yield Finding("commands in the text", [f"{path}: {match[1]}" for path, match in _find_all(_COMMAND, texts)])
    yield Finding(
        "python that `skillshelf eval` runs", [path for path in texts if _is_eval_file(path, first, (".py",))]
    )
    yield Finding("commands in eval cases", list(_find_case_commands(texts, first)))
    yield Finding("commands it names", _take(find_commands(texts)))
    yield Finding("addresses", _take(find_addresses(texts)))
    yield Finding("remote instructions", _take(find_remote_instructions(texts)))
    yield Finding("environment variables", _take(find_variables(texts)))
    yield Finding("files outside its folder", _take(find_outside_files(texts)))
    yield Finding("scripts", [file.path for file in snapshot.files if is_script(file, contents.get(file.path))])
    yield Finding("packed content", _take(find_packed(contents.items(), texts)))
    yield Finding("links", [f"{link.path} -> {link.target}" for link in links])
    yield Finding("hidden characters", list(_find_hidden_characters(texts)))


def _take(instances: Iterable[str]) -> list[str]:
    """Return the first instances, each once."""
    unique: dict[str, None] = {}
    for instance in instances:
        unique[instance] = None
        if len(unique) == MAX_INSTANCES:
            break
    return list(unique)


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
        if line.strip() and len(lines) < MAX_COMMAND_LINES:
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
            if on_line and len(lines) <= MAX_LISTED_LINES:
                lines.append(number)
            if count >= MAX_INSTANCES:
                break
        if count:
            listed = ", ".join(map(str, lines[:MAX_LISTED_LINES]))
            if len(lines) > MAX_LISTED_LINES:
                listed += " …"
            or_more = " or more" if count >= MAX_INSTANCES else ""
            yield f"{path}: {count}{or_more} in line {listed}"


# --- the page ---


LineKind = Literal[
    "title", "fact", "warning", "heading", "risk", "file", "entry", "note", "quote", "added", "removed", "hunk"
]
_INDENT = "  "
_BAR = "  │ "
_DIFF_HEAD = 2
"""The lines at the beginning of a diff that name the file. Their first letters mean nothing."""
_DIFF_KINDS: dict[str, LineKind] = {"+": "added", "-": "removed", "@": "hunk"}


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """A line of the page, cleaned for a terminal."""

    kind: LineKind
    """What it is, for a screen with colours. `risk` is the heading of a finding."""
    text: str = ""
    margin: str = ""
    """What stands before the text. A bar marks a line of the skill, so that none of them can pass for one of ours."""

    def __str__(self) -> str:
        return self.margin + self.text


_BLANK = ReviewLine("entry")


def summary(pending: Pending) -> str:
    """Return a line about a pending skill, file or folder."""
    files = pending.snapshot.files
    scripts = sum(is_script(file, None) for file in files)
    facts = [count_noun(len(files), "file"), f"{sum(file.size for file in files):,} bytes"]
    if scripts:
        facts.append(count_noun(scripts, "script"))
    if pending.by_agent:
        facts.append("changed by the agent")
    if pending.blocked:
        facts.append(f"cannot be approved: {pending.blocked}")
    return _show_line(f"{pending.name} ({pending.status}): {', '.join(facts)}")


_NOUNS: dict[Kind, str] = {"skill": "skill", "command": "command", "folder": "eval folder"}
"""What to call so many of a kind. Files of instructions are named."""


def describe_kinds(pending: Sequence[Pending], adjective: str = "") -> str:
    """Count pending content by its kind: `2 pending skills, AGENTS.md and 1 pending eval folder`."""
    counts = Counter(content.kind for content in pending)
    parts = []
    for kind, noun in _NOUNS.items():
        if counts[kind]:
            parts.append(count_noun(counts[kind], f"{adjective} {noun}".lstrip()))
        if kind == "skill":
            parts += [_show_line(content.name) for content in pending if content.kind == "file"]
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def review_text(pending: Pending) -> str:
    """Return the page as plain text, safe for a terminal."""
    return "".join(f"{line}\n" for line in review_lines(pending))


def review_lines(pending: Pending, *, whole: bool = True) -> list[ReviewLine]:
    """Return the page: the changes since the approved version, the findings, and every file.

    Without `whole`, only the changes and the findings, for a skill of which an approved version exists.
    """
    return list(_write_page(pending, whole))


def shorten_review(lines: Sequence[ReviewLine]) -> list[ReviewLine]:
    """Return the heading of a page and its findings in one line, for a user who has seen the rest."""
    return list(takewhile(lambda line: line != _BLANK, lines))


def _write_page(pending: Pending, whole: bool) -> Iterator[ReviewLine]:
    try:
        contents = {file.path: pending.read(file) for file in pending.snapshot.files}
    except TrustError as error:
        yield from _write_heading(pending, [])
        yield ReviewLine("warning", _show_line(str(error)))
        return

    findings = [finding for finding in list_findings(pending.snapshot, pending.file, contents) if finding.instances]
    yield from _write_heading(pending, findings)
    if pending.approved:
        yield from _write_news(pending, pending.approved, findings)
        yield from _write_changes(pending, pending.approved, contents)
    for finding in findings:
        yield from _show_finding(finding)
    if whole:
        if pending.snapshot.entries:
            yield from (_BLANK, ReviewLine("heading", "Files:"))
        for entry in pending.snapshot.entries:
            yield _write_entry(_describe_entry(entry, contents.get(entry.path)))
        yield from _quote_texts(pending, contents)


def _write_heading(pending: Pending, findings: Sequence[Finding]) -> Iterator[ReviewLine]:
    yield ReviewLine("title", _show_line(f"{pending.name} ({pending.status})"))
    place = pending.location.removeprefix(pending.root).lstrip("/")
    yield ReviewLine("fact", _show_line(f"where: {place}"), _INDENT)
    yield ReviewLine("fact", f"hash:  {pending.tree or 'none'}", _INDENT)
    if pending.blocked:
        yield ReviewLine("warning", _show_line(f"It cannot be approved: {pending.blocked}"), _INDENT)
    if pending.by_agent:
        words = "It changed while the agent was at work, so it does not apply by itself."
        yield ReviewLine("warning", words, _INDENT)
    if findings:
        yield ReviewLine("warning", f"check: {', '.join(finding.kind for finding in findings)}", _INDENT)


def _show_finding(finding: Finding) -> Iterator[ReviewLine]:
    count = len(finding.instances)
    yield from (_BLANK, ReviewLine("risk", f"{finding.kind[0].upper()}{finding.kind[1:]}:"))
    for instance in finding.instances[:MAX_LISTED_INSTANCES]:
        yield _write_entry(instance)
    if count > MAX_LISTED_INSTANCES:
        at_least = "at least " if count >= MAX_INSTANCES else ""
        yield ReviewLine("note", f"… and {at_least}{count - MAX_LISTED_INSTANCES:,} more", _INDENT)


def _quote_texts(pending: Pending, contents: Mapping[str, bytes]) -> Iterator[ReviewLine]:
    """Quote the first file; if the skill is new, the other texts too, because all of them are approved with it."""
    paths = [pending.file]
    if not pending.approved:
        paths += [path for path in contents if path != pending.file]
    for path in paths:
        text = decode_text(contents.get(path, b"\0"))
        if text is not None:
            yield from (_BLANK, ReviewLine("file", _show_line(f"{path}:")))
            yield from _quote(text)


def _quote(text: str) -> Iterator[ReviewLine]:
    """Yield the lines of a text, each behind a bar."""
    data = text.encode()
    beginning = data[:MAX_FILE].decode(errors="ignore")
    for line in _split_lines(beginning.replace("\r\n", "\n")):
        yield ReviewLine("quote", _show_line(line), _BAR)
    left = len(data) - MAX_FILE
    if left > 0:
        words = f"… {left:,} more bytes are not shown here: read the file itself before you approve it"
        yield ReviewLine("note", words, _INDENT)


def _write_entry(text: str) -> ReviewLine:
    return ReviewLine("entry", _show_line(text), _INDENT)


def _describe_entry(entry: SnapshotEntry, data: bytes | None) -> str:
    if entry.target is not None:
        return f"{entry.path} -> {entry.target} (a link, not followed)"
    marks = []
    if entry.executable:
        marks.append("executable")
    if is_script(entry, data):
        marks.append("script")
    if data is not None and decode_text(data) is None:
        marks.append("binary")
    facts = f"{entry.path}  {entry.size:,} bytes"
    return f"{facts}  [{', '.join(marks)}]" if marks else facts


# --- changes ---


def _write_news(pending: Pending, approved: Snapshot, findings: Sequence[Finding]) -> Iterator[ReviewLine]:
    """Yield what the approved version did not have."""
    try:
        contents = {file.path: pending.read_approved(file) for file in approved.files}
    except TrustError:
        return  # the changes say so
    before = {finding.kind: set(finding.instances) for finding in list_findings(approved, pending.file, contents)}
    news: dict[str, None] = {}
    for finding in findings:
        known = before.get(finding.kind, set())
        hosts = {find_host(address) for address in known}
        for instance in finding.instances:
            if finding.kind != "addresses":
                news |= {} if instance in known else {f"new: {finding.kind}: {instance}": None}
            elif find_host(instance) not in hosts:
                news[f"new: talks to {find_host(instance)}"] = None
    if news:
        yield _BLANK
    for text in islice(news, MAX_LISTED_INSTANCES):
        yield ReviewLine("risk", _show_line(text), _INDENT)
    if len(news) > MAX_LISTED_INSTANCES:
        yield ReviewLine("note", f"… and {len(news) - MAX_LISTED_INSTANCES:,} more", _INDENT)


def _write_changes(pending: Pending, approved: Snapshot, contents: Mapping[str, bytes]) -> Iterator[ReviewLine]:
    before = {entry.path: entry for entry in approved.entries}
    now = {entry.path: entry for entry in pending.snapshot.entries}
    yield from (_BLANK, ReviewLine("heading", "Changes since the approved version:"))
    for path in sorted(before.keys() | now.keys()):
        if before.get(path) != now.get(path):
            yield from _write_change(pending, path, before.get(path), now.get(path), contents)
    if approved.name != pending.snapshot.name:
        yield _write_entry(f"the folder was called {approved.name}")


def _write_change(
    pending: Pending, path: str, old: SnapshotEntry | None, new: SnapshotEntry | None, contents: Mapping[str, bytes]
) -> Iterator[ReviewLine]:
    if old and new and old.executable != new.executable:
        words = f"{path}: {'now' if new.executable else 'no longer'} executable"
        yield ReviewLine("warning", _show_line(words), _INDENT)
    try:
        old_data = pending.read_approved(old) if old and old.target is None else b""
    except TrustError as error:
        yield ReviewLine("warning", _show_line(f"{path}: {error}"), _INDENT)
        return
    if old and new and old.sha256 == new.sha256 and old.target == new.target:
        return

    old_text = decode_text(old_data)
    new_text = decode_text(contents.get(path, b""))
    is_link = any(entry and entry.target for entry in (old, new))
    versions = f"{_describe_version(old)} -> {_describe_version(new)}"
    if old_text is None or new_text is None or is_link:
        yield _write_entry(f"{path}: {versions}")
        return

    # With the CR at the end of each line: it may be the only change.
    before = _split_lines(old_text)
    after = _split_lines(new_text)
    if _is_quick_to_compare(before, after):
        old_name = path if old else "/dev/null"
        new_name = path if new else "/dev/null"
        yield from _write_diff(before, after, old_name, new_name)
    else:
        yield _write_entry(f"{path}: too long to compare; {versions}; the new text:")
        yield from _quote(new_text)


def _write_diff(before: list[str], after: list[str], old_name: str, new_name: str) -> Iterator[ReviewLine]:
    import difflib  # takes 5 ms, which only a review pays

    diff = difflib.unified_diff(before, after, old_name, new_name, lineterm="")
    for position, line in enumerate(diff):
        kind: LineKind = "file" if position < _DIFF_HEAD else _DIFF_KINDS.get(line[:1], "quote")
        yield ReviewLine(kind, _show_line(line), _BAR)


def _is_quick_to_compare(before: list[str], after: list[str]) -> bool:
    """Return True if difflib finds the changes soon, however the lines were chosen.

    It looks at each pair of equal lines once for every block that it finds. It leaves lines out of its search that make
    up more than a hundredth of the text, and a common beginning or end costs next to nothing.
    """
    common = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        common += 1
    before = before[common:]
    after = after[common:]

    most_repeats = len(after) // 100 + 1 if len(after) >= 200 else len(after)
    old_counts = Counter(before)
    pairs = sum(old_counts[line] * count for line, count in Counter(after).items() if count <= most_repeats)
    steps = (pairs + len(before) + len(after)) * min(len(before), len(after))
    return steps <= MAX_COMPARE_STEPS


def _describe_version(entry: SnapshotEntry | None) -> str:
    if entry is None:
        return "nothing"
    if entry.target is not None:
        return f"a link to {entry.target}"
    return f"{entry.size:,} bytes, {entry.sha256[:16]}…"


# --- words ---


def _split_lines(text: str) -> list[str]:
    """Split at LF alone, without an empty line after the last one."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _show_line(text: str) -> str:
    """Return text on one line, with nothing in it that hides or steers the terminal."""
    return clean(show_hidden(text)).replace("\n", "<U+000A>")


# --- the questions ---


class ReviewQuestion(NamedTuple):
    """A question to the user. Anything but one of its answers means no."""

    text: str
    answers: Mapping[str, str]
    """By key: `yes`, `no`, `view`, `all`, `mine` or `later`."""


MINE_CONSEQUENCE = (
    "Its skills, commands, AGENTS.md and CLAUDE.md apply as soon as they change, without a question: your own edits, "
    "and also whatever `git pull` or another checkout brings. Only what the agent changes still waits for you."
)
"""What follows if the user declares a repository their own."""
MINE_QUESTION = ReviewQuestion(
    f"Is this repository your own? If so: {MINE_CONSEQUENCE} [y]es [n]o", {"y": "yes", "n": "no"}
)


class ReviewFace(Protocol):
    """The place where the user reads a review, and the record that keeps the approvals."""

    @property
    def offers_mine(self) -> bool:
        """True if the user may declare the repository their own."""

    def show_page(self, skill: Pending, *, whole: bool) -> None:
        """Show a pending skill: everything in it, or only what changed since the approved version."""

    def approve(self, skill: Pending) -> None:
        """Record an approval. Raises TrustError if the skill changed meanwhile or the record cannot be written."""

    def declare_mine(self) -> None:
        """Record that the repository is the user's own. Raises TrustError."""

    def warn(self, message: str) -> None:
        """Tell the user that a skill cannot be approved."""


class Review:
    """Goes through pending skills one by one: `question` is the next question, until `answer` leaves none."""

    def __init__(self, pending: Sequence[Pending], face: ReviewFace) -> None:
        self._pending = pending
        self._face = face
        self._steps = self._ask_about_all()
        self.question = next(self._steps, None)

    def answer(self, answer: str) -> None:
        """Act on the answer to the question, and go on to the next one."""
        try:
            self.question = self._steps.send(answer)
        except StopIteration:
            self.question = None

    def _ask_about_all(self) -> Generator[ReviewQuestion, str, None]:
        for position, skill in enumerate(self._pending):
            self._face.show_page(skill, whole=skill.approved is None)
            progress = f"({position + 1}/{len(self._pending)})"
            if skill.blocked:  # the page says why
                self._face.warn(f"{progress} {clean_line(skill.name)} cannot be trusted.")
                continue

            left = [other for other in self._pending[position:] if not other.blocked]
            answer = yield from self._ask_about(progress, left)
            if answer in ("later", "mine"):
                return
            if answer == "all":
                self._approve(left)
                return
            if answer == "yes":
                self._approve([skill])

    def _ask_about(self, progress: str, left: Sequence[Pending]) -> Generator[ReviewQuestion, str, str]:
        """Ask about the first of the skills that are left. `all` includes pages not shown, so it is confirmed."""
        answers = {"y": "yes", "n": "no", "v": "view"}
        choices = ["[y]es", "[n]o", "[v]iew all of it"]
        if len(left) > 1:
            answers["a"] = "all"
            choices.append("[a]ll that are left")
        if self._face.offers_mine:
            answers["m"] = "mine"
            choices.append("[m]y own repository")
        answers["l"] = "later"
        choices.append("[l]ater")
        name = clean_line(left[0].name)
        question = ReviewQuestion(f"{progress} Trust {name} as it is now? {' '.join(choices)}", answers)
        confirmation = ReviewQuestion(
            f"Trust all {len(left):,} that are left, {len(left) - 1:,} of them unseen? [y]es [n]o",
            {"y": "yes", "n": "no"},
        )

        while True:
            answer = yield question
            if answer == "view":
                self._face.show_page(left[0], whole=True)
            elif answer == "mine":
                if (yield MINE_QUESTION) == "yes" and self._declare_mine():
                    return "mine"
            elif answer != "all" or (yield confirmation) == "yes":
                return answer

    def _declare_mine(self) -> bool:
        try:
            self._face.declare_mine()
        except TrustError as error:
            self._face.warn(str(error))
            return False
        return True

    def _approve(self, skills: Sequence[Pending]) -> None:
        for skill in skills:
            try:
                self._face.approve(skill)
            except TrustError as error:  # the other skills can still be approved
                self._face.warn(str(error))
