"""Commands that can be compared word by word: one program with plain arguments, and nothing left to the shell.

This is a list of what is allowed, not of what is dangerous. Whatever is not on it (an operator, a substitution, a
variable, a pattern of file names, a redirection, a line break, an assignment) makes a command one that no rule covers,
and so do characters that some shell might take for more than themselves.
"""

import os
import re
from collections.abc import Iterator, Sequence

_PLAIN = r"[A-Za-z0-9_@%+=:,./-]"
# The words of some languages are only safe inside quotes: a shell may take a byte of theirs for a blank.
_SINGLE_QUOTED = r"'[^'\x00-\x1f\x7f]*'"
_DOUBLE_QUOTED = r'"[^"$`\\!\x00-\x1f\x7f]*"'
_WORD = re.compile(rf"(?:{_PLAIN}|{_SINGLE_QUOTED}|{_DOUBLE_QUOTED})+")
_PIECE = re.compile(rf"(?P<plain>{_PLAIN}+)|(?P<quoted>{_SINGLE_QUOTED}|{_DOUBLE_QUOTED})")
_BLANKS = " \t"

Words = tuple[str, ...]


def split_command(text: str) -> Words | None:
    """Return the words of a command, or None unless a shell would run exactly one program with exactly these words."""
    words: list[str] = []
    position = 0
    while position < len(text):
        if text[position] in _BLANKS:
            position += 1
            continue
        match = _WORD.match(text, position)
        if match is None:
            return None
        words.append(_remove_quotes(match[0]))
        position = match.end()
        if position < len(text) and text[position] not in _BLANKS:
            return None

    if not words or not _is_program(words[0]):
        return None
    return tuple(words)


def _is_program(word: str) -> bool:
    """Return False for an assignment such as `PAGER=x`, a word of the shell's own, and for an empty word."""
    return bool(word) and "=" not in word and word not in _SHELL_WORDS


# The shell does not start a program for these: it reads on in its own way, or changes itself for the words after it.
_SHELL_WORDS = frozenset(
    "! { } . alias break builtin case command continue coproc declare do done elif else enable esac eval exec exit "
    "export fc fi for function getopts hash if in let local readonly return select set shift shopt source then time "
    "times trap typeset ulimit umask unalias unset until while".split()
)


def _remove_quotes(word: str) -> str:
    plain: list[str] = []
    for piece in _PIECE.finditer(word):
        if piece["plain"]:
            plain.append(piece["plain"])
        else:
            plain.append(piece["quoted"][1:-1])
    return "".join(plain)


# --- denied commands ---

_OPERATOR = re.compile(r"[;&|\n(){}`]+")
_ESCAPED = r"\\."
_QUOTED = r"""'[^']*'|"(?:\\.|[^"\\])*\""""
_SUBSTITUTED = r"\$\([^()]*\)|\$\{[^{}]*\}|`[^`]*`"
_ROUGH_WORD = rf"(?:{_ESCAPED}|{_QUOTED}|{_SUBSTITUTED}|[^\s;&|()<>])+"
_REDIRECTION = rf"\d*(?:<<<|<<-?|<>|<&|>>|>\||>&|<|>)(?!\()[ \t]*(?:{_ROUGH_WORD})?"
_ROUGH_PIECE = re.compile(rf"{_REDIRECTION}|(?P<operator>[;&|\n()<>])|(?P<word>{_ROUGH_WORD})", re.S)
_QUOTING = str.maketrans("", "", "'\"\\")
_ENV_OPTIONS_WITH_VALUE = ("-u", "--unset", "-C", "--chdir")


def find_simple_commands(text: str, count: int) -> Iterator[Words]:
    """Yield the first `count` words of the simple commands in a line of shell, to look for those that the user denied.

    Each is yielded as it is written, and with the base name of its program. One behind `env` also comes without it.
    This is a guess, and may only serve to refuse: an operator inside of quotes separates, too.
    """
    whole = split_command(text)
    if whole is not None:
        yield from _name_program(whole, count)
        return

    text = text.replace("\\\n", "")
    for part in (text, *_OPERATOR.split(text)):
        for words in _split_roughly(part):
            yield from _name_program(words, count)


def _split_roughly(text: str) -> Iterator[Sequence[str]]:
    """Yield the words between the operators that are not quoted, without redirections."""
    words: list[str] = []
    for piece in _ROUGH_PIECE.finditer(text):
        if piece["word"]:
            words.append(piece["word"].translate(_QUOTING))
        elif piece["operator"]:
            yield words
            words = []
    yield words


def _name_program(words: Sequence[str], count: int) -> Iterator[Words]:
    start = _find_program(words, 0)
    while start < len(words):
        program = os.path.basename(words[start])
        arguments = words[start + 1 : start + count]
        yield (words[start], *arguments)
        yield (program, *arguments)
        if program != "env":
            return

        start += 1
        while start < len(words) and words[start].startswith("-"):
            start += 2 if words[start] in _ENV_OPTIONS_WITH_VALUE else 1
        start = _find_program(words, start)


def _find_program(words: Sequence[str], start: int) -> int:
    """Return where the program is, behind assignments, words of the shell and their options, or the number of words."""
    for index in range(start, len(words)):
        if _is_program(words[index]) and not words[index].startswith("-"):
            return index
    return len(words)
