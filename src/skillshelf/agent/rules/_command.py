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


_OPERATOR = re.compile(r"[;&|\n(){}`]+|\$\(|<\(|>\(")
_REDIRECTION = re.compile(r"(?<!\d)\d*(?:<<<|<<-?|<>|>>|>\||<|>)[ \t]*[^\s<>]*")
_ROUGH_WORD = re.compile(r"""(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|\S)+""", re.S)
_QUOTING = str.maketrans("", "", "'\"\\")


def find_simple_commands(text: str) -> list[Words]:
    """Return the simple commands in a line of shell, to look for those that the user denied.

    This is a guess, and may only serve to refuse: an operator inside of quotes separates, too.
    """
    whole = split_command(text)
    if whole is not None:
        return [whole]

    commands: list[Words] = []
    for part in _OPERATOR.split(text.replace("\\\n", "")):
        words = [word.translate(_QUOTING) for word in _ROUGH_WORD.findall(_REDIRECTION.sub(" ", part))]
        while words and ("=" in words[0] or words[0] in _SHELL_WORDS or words[0] == "!"):
            del words[0]
        if words:
            commands.append(tuple(words))
    return commands
