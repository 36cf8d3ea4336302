"""What a source found at one place."""

from typing import Any

from skillshelf.descriptor import Diagnostic, SkillDescriptor, descriptor_of


class Found:
    """A skill, or something that cannot become one, and what is to be said about it.

    A scan finds ten thousand skills of which a session looks at a few, so a descriptor is made from its values when it
    is first wanted.
    """

    __slots__ = ("_skill", "diagnostics", "digest", "kept", "name")

    def __init__(
        self,
        skill: SkillDescriptor | tuple[Any, ...] | None,
        diagnostics: tuple[Diagnostic, ...] = (),
        digest: bytes = b"",
    ) -> None:
        """`skill`: its descriptor, or all values of one in order, checked already; None where there is no skill."""
        self._skill = skill
        self.name: str = "" if skill is None else skill[0] if type(skill) is tuple else skill.name  # type: ignore[union-attr]
        """The skill's name; empty where there is no skill."""
        self.diagnostics = diagnostics
        self.digest = digest
        """Of the file's bytes; empty where its times alone tell a change."""
        self.kept = False
        """Whether this is an earlier version, in use while the file is broken."""

    @property
    def descriptor(self) -> SkillDescriptor | None:
        skill = self._skill  # read once: another thread may put the descriptor there meanwhile
        if type(skill) is tuple:
            skill = self._skill = descriptor_of(*skill)
        return skill  # type: ignore[return-value]

    def kept_with(self, diagnostics: tuple[Diagnostic, ...]) -> "Found":
        found = Found(self.descriptor, diagnostics, self.digest)
        found.kept = True
        return found

    def says_the_same(self, other: "Found") -> bool:
        return self.diagnostics == other.diagnostics and self.descriptor == other.descriptor
