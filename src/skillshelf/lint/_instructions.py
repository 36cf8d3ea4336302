"""Check a skill's instructions: their size, and characters in them that a reader does not see."""

from collections.abc import Iterator

from skillshelf.descriptor import Diagnostic
from skillshelf.lint._lines import find_instructions_line
from skillshelf.skillmd import SkillText
from skillshelf.text import find_hidden
from skillshelf.tokens import estimate

MAX_TOKENS = 5_000
MAX_LINES = 500
_MAX_LISTED_CHARACTERS = 10
_MAX_HIDDEN_LINES = 10


def check_instructions(skill: SkillText) -> Iterator[Diagnostic]:
    """Report instructions that are missing or too long, and characters in them that hide."""
    instructions = skill.instructions
    first_line = find_instructions_line(skill)
    if not instructions.strip():
        message = "there are no instructions below the frontmatter"
        fix = "write the steps that the model should follow"
        yield Diagnostic("warning", "instructions-missing", message, line=first_line, fix=fix)

    yield from check_instructions_size(instructions, first_line)
    yield from _check_hidden_characters(instructions, first_line)


def check_instructions_size(instructions: str, line: int) -> Iterator[Diagnostic]:
    """Report instructions that are too long to be loaded as a whole. `line` is the line that they begin on."""
    tokens = estimate(instructions)
    lines = len(instructions.splitlines())
    if tokens > MAX_TOKENS or lines > MAX_LINES:
        message = (
            f"the instructions have {tokens:,} tokens and {lines:,} lines; "
            f"keep them below {MAX_TOKENS:,} tokens and {MAX_LINES} lines"
        )
        fix = "move parts into references/ and say in the instructions when to load them"
        yield Diagnostic("warning", "instructions-too-long", message, line=line, fix=fix)


def _check_hidden_characters(instructions: str, first_line: int) -> Iterator[Diagnostic]:
    fix = "remove them; a model sees them written out, as <U+200B>"
    affected_lines = 0
    for number, line in enumerate(instructions.split("\n"), first_line):
        characters = dict.fromkeys(f"U+{ord(match[0]):04X}" for match in find_hidden(line))
        if not characters:
            continue
        affected_lines += 1
        if affected_lines <= _MAX_HIDDEN_LINES:
            listed = ", ".join(list(characters)[:_MAX_LISTED_CHARACTERS])
            message = f"the instructions have hidden characters on this line: {listed}"
            yield Diagnostic("warning", "hidden-in-instructions", message, line=number, fix=fix)

    unlisted = affected_lines - _MAX_HIDDEN_LINES
    if unlisted > 0:
        message = f"the instructions have hidden characters on {unlisted} more lines"
        yield Diagnostic("warning", "hidden-in-instructions", message, line=first_line, fix=fix)
