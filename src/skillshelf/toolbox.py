"""The tools that a shelf's code skills give to the model, and those that they cannot give."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from skillshelf.catalog import Catalog, Place
from skillshelf.descriptor import Diagnostic, SkillDescriptor
from skillshelf.discovery import own_tool_names
from skillshelf.sources import ClassSource, ObjectSource, Source
from skillshelf.tools import Tool


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The tools of the code skills on a shelf, each with a name of its own."""

    tools: tuple[Tool, ...] = ()
    by_place: Mapping[Place, tuple[Tool, ...]] = field(default_factory=dict)
    """The same tools by the place of their skill."""
    missing: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    """The tools that a skill's instructions speak of and the model does not have, by the skill's place."""
    diagnostics: tuple[Diagnostic, ...] = ()

    def add_note(self, place: Place, instructions: str) -> str:
        """Return a skill's instructions, after a note for the model if it does not have all of the skill's tools."""
        names = self.missing.get(place)
        if not names:
            return instructions
        listed = ", ".join(f"`{name}`" for name in names)
        return (
            f"Note: these tools are not available here: {listed}. Take the instructions as guidance, and tell the user "
            f"if the task needs one of the tools.\n\n{instructions}"
        )


def collect_tools(sources: Sequence[Source], catalog: Catalog, reserved: Collection[str]) -> Toolbox:
    """Return the tools of the code skills, constructing skills of packages if that takes no argument.

    The first skill with a tool of a name has it; `reserved` names and those of the find-skills tools belong to the
    host. A skill that another one of its name comes before is not constructed, unless the program has done so.
    """
    owners = dict.fromkeys(reserved, "")
    by_place: dict[Place, tuple[Tool, ...]] = {}
    missing: dict[Place, tuple[str, ...]] = {}
    diagnostics: list[Diagnostic] = []

    for rank, source in enumerate(sources):
        if not isinstance(source, ClassSource):
            continue
        for key in source.classes:
            place = Place(rank, key)
            skill = catalog.descriptor_at(place)
            if skill is None or not skill.tools:
                continue
            is_first = catalog.candidates(skill.name)[0].place == place
            if not is_first and not isinstance(source, ObjectSource):
                missing[place] = skill.tools
                continue
            own = source.bound_tools(key)
            if isinstance(own, Diagnostic):
                missing[place] = skill.tools
                diagnostics.append(own)
                continue

            if not isinstance(source, ObjectSource):  # of the program's own skills, `all_tools` refuses these names
                owners = dict.fromkeys(own_tool_names(), "") | owners
            free = tuple(tool for tool in own if tool.name not in owners)
            taken = tuple(tool.name for tool in own if tool.name in owners)
            if taken:
                missing[place] = taken
                diagnostics += [_report_taken(skill, name, owners[name]) for name in taken]
            owners |= dict.fromkeys((tool.name for tool in free), skill.name)
            by_place[place] = free

    tools = tuple(tool for free in by_place.values() for tool in free)
    return Toolbox(tools, by_place, missing, tuple(diagnostics))


def _report_taken(skill: SkillDescriptor, tool: str, owner: str) -> Diagnostic:
    other = f"the skill {owner!r} has a tool of that name" if owner else "that name belongs to the program itself"
    return Diagnostic(
        "warning",
        "tool-taken",
        f"the model does not have its tool {tool!r}: {other}",
        skill.location,
        fix='give it another name: @tool(name="…")',
    )
