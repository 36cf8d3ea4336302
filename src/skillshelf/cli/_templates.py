"""What `skillshelf new` writes. Each passes the checks as it is."""

SKILL = """\
---
name: {name}
description: Say here what the skill does. Use when … name the words, files and errors that people ask with.
---

# {title}

1. Write the steps to follow, one a line, each beginning with a verb.
2. Say what a good result looks like, and what to do when a step fails.
3. For what is needed only sometimes, load the reference `details.md`.
"""

DETAILS = """\
# {title}: details

Tables, long examples, special cases. A model reads this file only when the instructions tell it to.
"""

CODE_SKILL = '''\
from skillshelf import BaseSkill, tool


class {cls}Skill(BaseSkill):
    name = "{name}"
    description = "Say here what the skill does. Use when … name the words, files and errors that people ask with."
    references = ("references/guide.md",)
    instructions = """
    Say when to call `lookup`, and what to do with its answer. For special cases load the reference `guide.md`.
    """

    @tool
    def lookup(self, question: str, limit: int = 5) -> list[str]:
        """Say what the model gets from this call.

        Args:
            question: What to look up, in a sentence.
            limit: At most so many answers.
        """
        return [f"Nothing is known about {{question!r}} yet."][:limit]
'''

CODE_GUIDE = """\
# {title}: guide

Tables, long examples, special cases. A model reads this file only when the instructions tell it to.
"""
