"""Commands that can be compared word by word: one program with plain arguments, and nothing left to the shell.

This is a list of what is allowed, not of what is dangerous. Whatever is not on it (an operator, a substitution, a
variable, a pattern of file names, a redirection, a line break, an assignment) makes a command one that no rule covers,
and so do characters that some shell might take for more than themselves.
"""

import re

_PLAIN = r"[A-Za-z0-9_@%+=:,./-]"
# The words of some languages are only safe inside quotes: a shell may take a byte of theirs for a blank.
_SINGLE_QUOTED = r"'[^'\x00-\x1f\x7f]*'"
_DOUBLE_QUOTED = r'"[^"$`\\!\x00-\x1f\x7f]*"'
_WORD = re.compile(rf"(?:{_PLAIN}|{_SINGLE_QUOTED}|{_DOUBLE_QUOTED})+")
_PIECE = re.compile(rf"(?P<plain>{_PLAIN}+)|(?P<quoted>{_SINGLE_QUOTED}|{_DOUBLE_QUOTED})")
_BLANKS = " \t"
_MAX_LENGTH = 10_000

Words = tuple[str, ...]


def split_command(text: str) -> Words | None:
    """Return the words of a command, or None unless a shell would run exactly one program with exactly these words."""
    if len(text) > _MAX_LENGTH:
        return None

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
    ". alias break builtin case command continue coproc declare do done elif else enable esac eval exec exit export fc "
    "fi for function getopts hash if in let local readonly return select set shift shopt source then time times trap "
    "typeset ulimit umask unalias unset until while".split()
)


def _remove_quotes(word: str) -> str:
    plain: list[str] = []
    for piece in _PIECE.finditer(word):
        if piece["plain"]:
            plain.append(piece["plain"])
        else:
            plain.append(piece["quoted"][1:-1])
    return "".join(plain)


# An operator of the shell, as far as it separates one command from the next.
_SEPARATOR = re.compile(r"[;&|\n(){}`]+|\$\(|<\(|>\(")


def find_commands(text: str) -> list[Words]:
    """Return the commands that a longer one seems to be made of, to look for those that the user denied.

    This is a guess: a shell has many ways to spell a command. It may only serve to refuse.
    """
    whole = split_command(text)
    if whole is not None:
        return [whole]

    commands: list[Words] = []
    for part in _SEPARATOR.split(text):
        words = [word.strip("'\"\\") for word in part.split()]
        while words and ("=" in words[0] or words[0] in _SHELL_WORDS or words[0] == "!"):
            del words[0]
        if words:
            commands.append(tuple(words))
    return commands
