"""What could be typed next: a pure function over the commands there are."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from skillshelf.slash._command import Candidate, Host, parse
from skillshelf.slash._ranking import LIMIT, Names
from skillshelf.slash._registry import Commands, Entry

Files = Callable[[str], Sequence[str]]
"""The paths that begin like this one, relative to the workspace; a folder ends in a slash."""


def complete(commands: Commands[Host], text_before_cursor: str, *, files: Files | None = None) -> list[Candidate]:
    """The candidates for what stands before the cursor, best first: files after `@`, commands, their arguments."""
    path = _path_at_end(text_before_cursor)
    if path is not None and files:
        found = [_file(name, path) for name in files(path.removeprefix("@").removeprefix('"'))]
    elif text_before_cursor == "/" or parse(text_before_cursor):
        found = _commands(commands, text_before_cursor[1:])
    else:
        found = []
    return [candidate for candidate in found if candidate.text.isprintable()][:LIMIT]


def quoted(path: str) -> str:
    """The path as one word."""
    return f'"{path}"' if any(map(str.isspace, path)) else path


def last_word(text: str) -> str:
    """The word that ends the text, with the quote that opens it; empty after a space."""
    if text.count('"') % 2:
        return text[text.rindex('"') :]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    return "" if not text or text[-1].isspace() else text.rsplit(maxsplit=1)[-1]


def _path_at_end(text: str) -> str | None:
    """The word that begins with `@`, if the cursor is at its end."""
    word = _unquoted(text)
    if word.startswith("@") and '"' not in word:
        return word
    word = last_word(text)
    before = text[: len(text) - len(word)]
    opened = word.startswith('"') and before.endswith("@") and not before[:-1][-1:].strip()
    return f"@{word}" if opened else None


def _file(name: str, typed: str) -> Candidate:
    # A folder's quote stays open: what is in it comes next.
    text = f'"{name}' if name.endswith("/") and quoted(name) != name else quoted(name)
    return Candidate(f"@{text}", -len(typed), name)


def _commands(commands: Commands[Host], typed: str) -> list[Candidate]:
    table = commands.table()
    scope = table.scope(typed)
    entries, names = table.within(scope)
    resolved = table.resolve(typed)
    found: list[Candidate] = []
    if resolved and resolved[1] < len(typed):
        entry, end = resolved
        found = _arguments(commands, entry, typed[end:])
        if entry.prefix == scope:
            # A name may begin with the whole of another: `/skills:my` and `/skills:my skill`.
            longer = [one for one in entries if one.spelling.startswith(typed)]
            return [_command(one, scope, typed) for one in longer] + found
    chosen = commands.rank(typed[len(scope) :], names) if "\n" not in typed else []
    return [_command(entries[at], scope, typed) for at in chosen] + found


def _command(entry: Entry[Host], scope: str, typed: str) -> Candidate:
    command = entry.command
    name = entry.spelling.removeprefix(scope) if scope else f"/{entry.spelling}"
    label = f"{name} {command.usage}" if command.usage else name
    return Candidate(f"/{entry.spelling}", -len(typed) - 1, label, command.summary, command.cost)


def _arguments(commands: Commands[Host], entry: Entry[Host], rest: str) -> list[Candidate]:
    ask = entry.command.complete
    if ask is None:
        return []
    arguments = rest.lstrip()
    given = commands.attempt(entry.owner, lambda: ask(arguments))
    choices = tuple(candidate for candidate in given if not candidate.start)
    word = last_word(arguments)
    chosen = commands.rank(word.lstrip('"'), _names(choices)) if choices else []
    ranked = [_replacing(choices[at], word) for at in chosen]
    return [candidate for candidate in given if candidate.start] + ranked


def _replacing(choice: Candidate, word: str) -> Candidate:
    return Candidate(choice.text, -len(word), choice.label or choice.text, choice.meta, choice.cost)


# While somebody types one argument, the choices stay the same.
@lru_cache(maxsize=4)
def _names(choices: tuple[Candidate, ...]) -> Names:
    labels = [choice.label or choice.text for choice in choices]
    return Names([label.rpartition("/")[2] or label for label in labels], labels, [choice.meta for choice in choices])
