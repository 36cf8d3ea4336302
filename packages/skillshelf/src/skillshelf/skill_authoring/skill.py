"""How to write a skill: for a terminal agent that is asked to write or improve one."""

from skillshelf.skills import BaseSkill


class SkillAuthoringSkill(BaseSkill):
    name = "skill-authoring"
    description = (
        "Write, check and improve SKILL.md skills. Use when asked to create a skill, "
        "or when one is not found or not followed."
    )
    references = ("references/format.md", "references/descriptions.md")
    instructions = """
    A skill is a folder with a SKILL.md: frontmatter (`name`, `description`) between two lines `---`, then instructions.

    1. Choose a name: lowercase letters, digits and hyphens, the same as the folder. Put it under `.agents/skills/`.
    2. Write the description first: what the skill does and when to use it, in the words a person would ask with. It is
       all a model sees before it loads the skill. Load the reference `descriptions.md` for how to word it.
    3. Write the instructions as steps to follow, under 500 lines. Move what is needed only sometimes into files under
       `references/`, and say in the instructions when to load which.
    4. Run `skillshelf check PATH` and fix what it reports; `skillshelf cost` shows what the skill costs in tokens.

    For the fields of the frontmatter and the folders a skill may have, load the reference `format.md`.
    """
