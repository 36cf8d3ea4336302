"""The user's choices for single skills, applied to the skills of a shelf."""

from collections.abc import Mapping
from dataclasses import replace

from skillshelf.errors import SettingsError, SkillNotFoundError
from skillshelf.skills import Candidate, Catalog, Choice, Disclosure, Found, Place, SkillDescriptor
from skillshelf.text import closest_names

_DISCLOSURES: dict[Choice, Disclosure] = {"full": "always", "name": "auto", "manual": "manual"}


class ChosenSkills:
    """The skills that a choice changes or switches off, each as its source has it.

    A choice goes by a skill's name, or by `name@source`, which counts before one for the name. See
    `skillshelf.settings` for the file that keeps them.
    """

    def __init__(self, choices: Mapping[str, Choice]) -> None:
        self.choices: dict[str, Choice] = dict(choices)
        self._originals: dict[Place, Found] = {}

    def key_for(self, skill: SkillDescriptor) -> str:
        """Return the name that the choice for a skill is kept by, or would be."""
        return skill.qualified if skill.qualified in self.choices else skill.name

    def choice_for(self, skill: SkillDescriptor) -> Choice | None:
        """Return the choice for a skill, if there is one."""
        return self.choices.get(self.key_for(skill))

    @property
    def off(self) -> tuple[Candidate, ...]:
        """The skills that are switched off, by name."""
        chosen = [Candidate(place, found) for place, found in list(self._originals.items())]
        off = [candidate for candidate in chosen if self.choice_for(candidate.descriptor) == "off"]
        return tuple(sorted(off, key=lambda candidate: (candidate.found.name, candidate.place)))

    def apply(self, place: Place, found: Found | None) -> Found | None:
        """Return a skill that a source has found as the user wants it, or None if it is off."""
        self._originals.pop(place, None)
        if not self.choices or found is None or found.descriptor is None:
            return found
        choice = self.choice_for(found.descriptor)
        if choice is None:
            return found

        self._originals[place] = found
        if choice == "off":
            return None
        return replace(found, descriptor=replace(found.descriptor, disclosure=_DISCLOSURES[choice]))

    def replace_choices(self, choices: Mapping[str, Choice], catalog: Catalog) -> dict[Place, Found | None]:
        """Follow these choices from now on. Return the changes for the catalog."""
        keys = {key for key in {*self.choices, *choices} if self.choices.get(key) != choices.get(key)}
        names = {key.partition("@")[0] for key in keys}
        originals = {place: found for place, found in self._originals.items() if found.name in names}
        for name in names:
            for candidate in catalog.candidates(name):
                originals.setdefault(candidate.place, candidate.found)

        self.choices = dict(choices)
        return {place: self.apply(place, found) for place, found in originals.items()}

    def list_names(self, catalog: Catalog) -> set[str]:
        """Return the names that a choice can go by: `name` and `name@source` of every skill, even if it is off."""
        skills = [candidate.descriptor for candidate in self.off]
        for name in catalog:
            skills += [candidate.descriptor for candidate in catalog.candidates(name)]
        return {skill.name for skill in skills} | {skill.qualified for skill in skills}

    def check(self, name: str, choice: Choice | None, catalog: Catalog) -> None:
        """Raise SkillNotFoundError or SettingsError if there is no skill to make this choice for."""
        is_removal = choice is None and name in self.choices
        names = self.list_names(catalog)
        if is_removal or name in names:
            return
        if name in catalog:
            qualified = catalog[name].qualified
            raise SettingsError(f"A choice is kept by NAME or NAME@SOURCE: give {qualified!r} instead of {name!r}.")
        bare_name = name.partition("@")[0] or name
        bare_names = {each.partition("@")[0] for each in names}
        raise SkillNotFoundError(name, closest_names(bare_name, sorted(bare_names)))
