"""Completion: a pure function from the commands and the text before the cursor to suggestions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from skillshelf.slash._commands import SKILL_PREFIX, Commands, FaceT, RegisteredCommand, Suggestion, parse_command
from skillshelf.slash._ranking import MAX_SUGGESTIONS, NameIndex

ListFiles = Callable[[str], Sequence[str]]
"""Returns the paths that match a typed one, relative to the workspace; a folder ends in a slash."""


def complete(commands: Commands[FaceT], text_before_cursor: str, *, files: ListFiles | None = None) -> list[Suggestion]:
    """Suggest what could come next, best first: files after `@`, commands, or their arguments."""
    path = _find_path_at_end(text_before_cursor)
    if path is not None and files:
        names = files(path.removeprefix("@").removeprefix('"'))
        suggestions = [_suggest_file(name, path) for name in names]
    elif text_before_cursor == "/" or parse_command(text_before_cursor):
        suggestions = _suggest_commands(commands, text_before_cursor[1:])
    else:
        suggestions = []
    return [suggestion for suggestion in suggestions if suggestion.text.isprintable()][:MAX_SUGGESTIONS]


def quote_path(path: str) -> str:
    """Return the path as one word."""
    has_space = any(char.isspace() for char in path)
    return f'"{path}"' if has_space else path


def _find_last_word(text: str) -> str:
    """Return the word that ends the text, with the quote that opens it; empty after a space."""
    has_open_quote = text.count('"') % 2 == 1
    if has_open_quote:
        return text[text.rindex('"') :]
    return _find_last_unquoted_word(text)


def _find_last_unquoted_word(text: str) -> str:
    if not text or text[-1].isspace():
        return ""
    return text.rsplit(maxsplit=1)[-1]


def _find_path_at_end(text: str) -> str | None:
    """Return the word that begins with `@`, if the cursor is at its end."""
    word = _find_last_unquoted_word(text)
    if word.startswith("@") and '"' not in word:
        return word

    word = _find_last_word(text)
    before = text[: len(text) - len(word)]
    starts_a_word = before == "@" or (before.endswith("@") and before[-2].isspace())
    if word.startswith('"') and starts_a_word:
        return f"@{word}"
    return None


def _suggest_file(name: str, typed: str) -> Suggestion:
    text = quote_path(name)
    if name.endswith("/") and text != name:
        text = f'"{name}'  # the quote stays open: something inside the folder comes next
    return Suggestion(f"@{text}", -len(typed), name)


def _suggest_commands(commands: Commands[FaceT], typed: str) -> list[Suggestion]:
    table = commands.table()
    scope = table.find_scope(typed)
    entries, names = table.list_scope(scope)
    arguments: list[Suggestion] = []

    resolved = table.resolve(typed)
    if resolved and resolved.end < len(typed):
        arguments = _suggest_arguments(commands, resolved.entry, typed[resolved.end :])
        if resolved.entry.prefix in (scope, SKILL_PREFIX):
            # A name may begin with the whole of another: `/skills:my` and `/skills:my skill`.
            longer = [entry for entry in entries if entry.spelling.startswith(typed)]
            return [_suggest_command(entry, scope, typed) for entry in longer] + arguments

    if "\n" in typed:
        return arguments
    ranked = commands.rank(typed[len(scope) :], names)
    return [_suggest_command(entries[index], scope, typed) for index in ranked] + arguments


def _suggest_command(entry: RegisteredCommand[FaceT], scope: str, typed: str) -> Suggestion:
    command = entry.command
    label = entry.spelling.removeprefix(scope) if scope else f"/{entry.spelling}"
    if command.usage:
        label = f"{label} {command.usage}"
    return Suggestion(f"/{entry.spelling}", -len(typed) - 1, label, command.summary, command.cost)


def _suggest_arguments(commands: Commands[FaceT], entry: RegisteredCommand[FaceT], rest: str) -> list[Suggestion]:
    complete_arguments = entry.command.complete
    if complete_arguments is None:
        return []

    arguments = rest.lstrip()
    given = commands.call_extension(entry.owner, lambda: complete_arguments(arguments))
    placed = [suggestion for suggestion in given if suggestion.start]
    choices = tuple(suggestion for suggestion in given if not suggestion.start)
    if not choices:
        return placed

    word = _find_last_word(arguments)
    ranked = commands.rank(word.lstrip('"'), _prepare_names(choices))
    return placed + [_place(choices[index], word) for index in ranked]


def _place(choice: Suggestion, word: str) -> Suggestion:
    return replace(choice, start=-len(word), label=choice.label or choice.text)


# While the user types one argument, the choices stay the same.
@lru_cache(maxsize=4)
def _prepare_names(choices: tuple[Suggestion, ...]) -> NameIndex:
    labels = [choice.label or choice.text for choice in choices]
    names = [label.rpartition("/")[2] or label for label in labels]
    return NameIndex(names, labels, [choice.meta for choice in choices])
