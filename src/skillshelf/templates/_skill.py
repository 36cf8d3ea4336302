"""The templates of a skill with a SKILL.md and of a code skill. `<<…>>` marks what the author has to replace."""

_DESCRIPTION = "<<Say here what the skill does.>> <<Use when … name the words, files and errors that people ask with.>>"

_GUIDE = """\
# $title

<<Write here what a model should know and cannot guess: rules, tables, examples.>> <<Give each subject its paragraph.>>
"""

SKILL = {
    "SKILL.md": f"""\
---
name: $name
description: {_DESCRIPTION}
---

# $title

1. <<Write the steps to follow, one per line, each starting with a verb.>>
2. <<Say what a good result looks like, and what to do when a step fails.>>
3. Load the reference `details.md` for details that are rarely needed.
""",
    "references/details.md": """\
# $title: details

<<Tables, long examples, special cases.>> <<A model reads this file only when the instructions tell it to.>>
""",
}

CODE_SKILL = {
    "__init__.py": "",
    "skill.py": f'''\
from importlib import resources

from skillshelf import BaseSkill, tool


class $cls(BaseSkill):
    name = "$name"
    description = "{_DESCRIPTION}"
    references = ("references/guide.md",)
    instructions = """
    1. Call `search_$module` with the words that matter in the question.
    2. If it finds nothing, load the reference `guide.md`.
    3. <<Say what to do with the answer, and what a good result looks like.>>
    """

    @tool
    def search_$module(self, words: str, limit: int = 3) -> list[str]:
        """Return the paragraphs of the guide that contain all of these words.

        Args:
            words: One or more words, in any order.
            limit: Return at most this many paragraphs.
        """
        guide = resources.files(__package__).joinpath("references/guide.md").read_text(encoding="utf-8")
        wanted = words.casefold().split()
        found = []
        for paragraph in guide.strip().split("\\n\\n"):
            if all(word in paragraph.casefold() for word in wanted):
                found.append(paragraph)
        return found[:limit]
''',
    "references/guide.md": _GUIDE,
}
