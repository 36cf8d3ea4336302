"""find-skills: the tools with which a model looks for skills and loads them."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from skillshelf.errors import InvalidSkillError, SkillNotFoundError, ToolArgumentError
from skillshelf.shelf._turn import Turn, current_turn_of
from skillshelf.skills import BaseSkill, SkillDescriptor, Tool, tool, tool_methods
from skillshelf.text import truncate

if TYPE_CHECKING:
    from skillshelf.search import Match
    from skillshelf.shelf._shelf import Shelf

LOAD_TOOL = "load_skill_instructions"
"""The name of the tool that loads a skill's instructions and references."""
_SKILLS_PER_PAGE = 100

# What a search says of each skill it found: together at most 2,000 characters, however much the skill has of it.
_MAX_REFERENCES = 10
_MAX_REFERENCES_LENGTH = 500
_MAX_WORDS = 5
_MAX_WORDS_LENGTH = 200
_MAX_COPIES = 3
_MAX_COPIES_LENGTH = 150


class SkillDiscoverySkill(BaseSkill):
    """The tools of a shelf for the model.

    Inside `with shelf.turn():` they share that turn's cache; outside, each call is a turn of its own.
    """

    name = "find-skills"
    description = "Find skills and load their instructions and references."
    disclosure = "manual"  # the listing says how to use these tools, and the tools describe themselves
    instructions = (
        "Search for a skill with `search_skills`, then load it with `load_skill_instructions`. A skill's references "
        "are files of further guidance: load one only when the task needs it, by the name the skill gives."
    )

    def __init__(self, shelf: "Shelf") -> None:
        self.shelf = shelf

    @tool
    def list_skills(self, offset: int = 0) -> dict[str, Any]:
        """Name every skill on the shelf, with its description and references.

        Args:
            offset: Where to go on when an earlier answer gave a next_offset.
        """
        if offset < 0:
            raise ToolArgumentError("list_skills", f"offset is {offset}; begin at 0 and go on at next_offset")

        skills = [skill for skill in self.shelf.catalog.values() if skill.disclosure != "manual"]
        end = offset + _SKILLS_PER_PAGE
        page: dict[str, Any] = {
            "skills": [_describe(skill) for skill in skills[offset:end]],
            "total": len(skills),
        }
        if end < len(skills):
            page["next_offset"] = end
        return page

    @tool
    def search_skills(self, query: str) -> dict[str, Any]:
        """Find the skills that fit a task, best first.

        Args:
            query: What the task is about, in a few words.
        """
        matches = self.shelf.search(query)
        if not matches:
            return {"skills": [], "note": "No skill has any of these words. Try others, or go on without a skill."}
        skills = [_describe_match(match) for match in matches]
        if matches[0].is_weak:
            return {"skills": skills, "note": "These are weak matches: perhaps no skill fits."}
        return {"skills": skills}

    @tool
    def load_skill_instructions(self, skill_name: str, reference: str | None = "", offset: int = 0) -> str:
        """Load a skill's instructions, or one of its references.

        Args:
            skill_name: The skill's name as listed.
            reference: A reference of that skill as listed; leave it out for the instructions and the references' names.
            offset: Where to go on in a long reference, as an earlier answer said.
        """
        turn = current_turn_of(self.shelf) or self.shelf.turn()
        find_for_model(skill_name, turn)
        return str(turn.load(skill_name, reference or "", offset=offset))


def all_tools(shelf: "Shelf") -> tuple[Tool, ...]:
    """Return the find-skills tools and those of the shelf's code skills. Raises InvalidSkillError if names collide."""
    own = SkillDiscoverySkill(shelf).tools()
    others = shelf.tools()
    refuse_own_names(others)
    return (*own, *others)


@cache
def own_tool_names() -> frozenset[str]:
    """Return the names of the find-skills tools."""
    return frozenset(method.name for method in tool_methods(SkillDiscoverySkill))


def refuse_own_names(tools: Iterable[Tool]) -> None:
    """Raise InvalidSkillError for a tool of a code skill that has the name of a find-skills tool."""
    for each in tools:
        if each.name in own_tool_names():
            raise InvalidSkillError(
                f"A code skill has a tool {each.name!r}, as every shelf has. Rename it with @tool(name=…)."
            )


def find_for_model(name: str, turn: Turn) -> SkillDescriptor:
    """Return a skill that the model may load. Raises SkillNotFoundError, which tells it if the user turned it off."""
    if is_for_user_only(name, turn):
        raise SkillNotFoundError(name)
    try:
        return turn.shelf.catalog.find(name).descriptor
    except SkillNotFoundError as error:
        from skillshelf.explain import explain_to_model  # loads the approvals, which only a mistake pays

        closest = [name for name in error.closest if not is_for_user_only(name, turn)]
        raise explain_to_model(turn.shelf, SkillNotFoundError(name, closest)) from None


def is_for_user_only(name: str, turn: Turn) -> bool:
    """Return True if only the user may invoke a skill, and has not done so."""
    skill = turn.shelf.catalog.get(name)
    return skill is not None and skill.disclosure == "manual" and skill.name not in turn.invoked


def _describe(skill: SkillDescriptor) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": skill.name,
        "description": skill.description,
        "references": list(skill.main_references),
    }
    if skill.more_references:
        described["more_references"] = skill.more_references
    return described


def _describe_match(match: "Match") -> dict[str, Any]:
    """Return a found skill for the model, within about 2,000 characters. Loading the skill shows the rest."""
    skill = match.descriptor
    references = _take(skill.main_references, _MAX_REFERENCES, _MAX_REFERENCES_LENGTH)
    copies = _take(match.copies, _MAX_COPIES, _MAX_COPIES_LENGTH)
    best_words = sorted(match.words, key=lambda word: -word.share)[:_MAX_WORDS]
    described: dict[str, Any] = {
        "name": match.name,
        "description": skill.summary,
        "references": references,
        "score": round(match.score, 2),
        "matched": truncate(", ".join(map(str, best_words)), _MAX_WORDS_LENGTH) or "similar meaning",
    }
    if match.is_weak:
        described["weak"] = True
    if len(references) < len(skill.references):
        described["more_references"] = len(skill.references) - len(references)
    if match.copies:
        described["copies"] = copies
    return described


def _take(names: Sequence[str], limit: int, length: int) -> list[str]:
    """Return the first names: at most `limit`, and no more than fit into `length` characters."""
    taken: list[str] = []
    for name in names[:limit]:
        length -= len(name)
        if length < 0:
            break
        taken.append(name)
    return taken
