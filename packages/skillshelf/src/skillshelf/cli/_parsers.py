"""The argument parser that every command shares, and the argument types that several of them use."""

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from skillshelf.cli._errors import ArgumentsError
from skillshelf.text import clean, closest_names

_MAX_ECHOED = 100


class Parser(argparse.ArgumentParser):
    """A parser that keeps the line breaks of examples, takes no abbreviations and prints safe error messages."""

    def __init__(self, **options: Any) -> None:
        self.options: set[str] = set()
        self.flags: set[str] = set()
        """The options that take no value."""
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)
        # The innermost parser wins, so an unknown option is reported with the usage of its own command.
        self.set_defaults(parser=self)
        self._actions_by_name: Mapping[str, Parser] = {}
        self._default_action = ""
        self._two_word_values: set[tuple[str, str]] = set()

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        argument = super().add_argument(*names, **options)
        self.note_argument(argument)
        return argument

    def note_argument(self, argument: argparse.Action) -> None:
        """Take note of an argument. An exclusive group adds its arguments itself, so they need a call of their own."""
        self.options.update(argument.option_strings)
        if argument.nargs == 0:
            self.flags.update(argument.option_strings)

    def set_default_action(self, default: str, actions: "Mapping[str, Parser]") -> None:
        """Run the sub-command `default` if the words name none, such as `run` for `skillshelf eval`."""
        self._actions_by_name = actions
        self._default_action = default

    def join_next_word(self, option: str, word: str) -> None:
        """Read the word after `option word` as part of the value, so that `--gate worse-than RUN` gives one value."""
        self._two_word_values.add((option, word))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._two_word_values and args is not None:
            args = self._join_words(args)
        if self._default_action and args is not None:
            args = self._put_action_first(args)
        return super().parse_known_args(args, namespace)

    def _join_words(self, words: Sequence[str]) -> list[str]:
        joined: list[str] = []
        for word in words:
            if tuple(joined[-2:]) in self._two_word_values and not word.startswith("-"):
                joined[-1] = f"{joined[-1]} {word}"
            else:
                joined.append(word)
        return joined

    def _put_action_first(self, words: Sequence[str]) -> list[str]:
        """Return the words with the action in front, so that options may come before it as well as after it."""
        flags = self.flags.union(*(action.flags for action in self._actions_by_name.values()))
        position = find_first_argument(words, flags)
        if any(word in ("-h", "--help") for word in words[:position]):
            return list(words)
        if position < len(words) and words[position] in self._actions_by_name:
            return [words[position], *words[:position], *words[position + 1 :]]
        return [self._default_action, *words]

    def reject_unknown(self, words: Sequence[str]) -> NoReturn:
        """Raise ArgumentsError for words that no argument takes, and suggest the option that may have been meant."""
        hint = ""
        for word in words:
            option = word.partition("=")[0]
            # Without the dashes, which would make short words alike.
            known = [name.removeprefix("--") for name in self.options if name.startswith("--")]
            closest = closest_names(option.removeprefix("--"), known, limit=1, min_similarity=0.7)
            if option.startswith("--") and closest:
                hint = f"Did you mean --{closest[0]}?"
                break
        self._fail(f"unrecognized arguments: {' '.join(words)}.", hint)

    def reject_command(self, word: str, commands: Sequence[str]) -> NoReturn:
        """Raise ArgumentsError for a word that is not a command."""
        closest = closest_names(word, commands, limit=2, min_similarity=0.7)
        hint = "`skillshelf --help` lists the commands."
        if closest:
            hint = f"Did you mean {' or '.join(closest)}?"
        self._fail(f"there is no command {word[:_MAX_ECHOED]!r}.", hint)

    def error(self, message: str) -> NoReturn:
        hint = self._explain_order(message)
        self._fail(f"{message}." if hint else message, hint)

    def _explain_order(self, message: str) -> str:
        """Return what to write if an option may have taken the words of an argument, as in `--skill NAME SOURCE`."""
        takers = [action for action in self._actions if action.nargs == "+" and action.option_strings]
        missing = [action.metavar for action in self._actions if not action.option_strings and action.required]
        if not takers or not missing or "are required" not in message:
            return ""
        option = takers[0]
        return f"Write it first: {self.prog} {missing[0]} {option.option_strings[0]} {option.metavar}."

    def _fail(self, message: str, hint: str = "") -> NoReturn:
        raise ArgumentsError(clean(message), hint, usage=self.format_usage(), program=self.prog)


def find_first_argument(words: Sequence[str], flags: Collection[str]) -> int:
    """Return the index of the first word that is neither an option nor the value of one, or the number of words."""
    position = 0
    while position < len(words):
        word = words[position]
        if not word.startswith("-"):
            break
        has_own_value = "=" in word or (len(word) > 2 and word[1] != "-")  # `--repeat=5`, `-Cfolder`
        position += 1 if word in flags or has_own_value else 2
    return min(position, len(words))


def add_shared_options(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    """Add the options that nearly every command takes.

    They may come before the command or after it. An option that is absent here leaves the value that was given there.
    """
    if json:
        parser.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print JSON for another program"
        )
    parser.add_argument(
        "-C",
        "--workspace",
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="use this folder as it is (default: the current folder, with the repository around it)",
    )


def add_package_option(parser: argparse.ArgumentParser) -> None:
    """Add `--package`, which commands that open the shelf take: `find_packages` in `_workspace` returns its values."""
    parser.add_argument(
        "--package",
        metavar="PACKAGE",  # not NAME, which shells complete to the name of a skill
        dest="packages",
        action="append",
        type=_package_name,
        default=argparse.SUPPRESS,
        help="include the code skills of an installed package, such as my_skills; repeatable",
    )


def add_python_option(parser: argparse.ArgumentParser) -> None:
    """Add `--python`, which commands take that read the skills of installed packages."""
    parser.add_argument(
        "--python",
        metavar="PATH",
        default=argparse.SUPPRESS,
        help="look for skills in the packages of this Python, such as .venv/bin/python (default: the running one)",
    )


def add_attach_option(parser: argparse.ArgumentParser) -> None:
    """Add `--with`, which commands that open the shelf take: `attach_skills` in `_workspace` makes the skills."""
    parser.add_argument(
        "--with",
        metavar="SKILL[=SETTING]",
        dest="attached",
        action="append",
        default=argparse.SUPPRESS,
        help="attach a skill that comes with skillshelf, such as weather or database=app.db; repeatable",
    )


def add_listing_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the listing of skills, which override the user's settings of the same names."""
    parser.add_argument(
        "--disclosure",
        metavar="FORM",
        help="auto (default): instructions as far as the budget goes; catalog: none; full: all, in every call",
    )
    parser.add_argument("--budget", metavar="TOKENS", help="maximum tokens for the skill listing")


def _package_name(text: str) -> str:
    if all(part.isidentifier() for part in text.split(".")):
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} is not the name of a package. Give the name that `import` takes; to use code in a folder, install "
        f"it first: pip install -e FOLDER"
    )


def positive_number(text: str) -> int:
    """Parse a whole number of at least 1."""
    return _parse_number(text, at_least=1)


def count_or_zero(text: str) -> int:
    """Parse a whole number of at least 0."""
    return _parse_number(text, at_least=0)


def _parse_number(text: str, at_least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = at_least - 1
    if number < at_least:
        raise argparse.ArgumentTypeError(f"give a whole number of at least {at_least}, not {text!r}")
    return number
