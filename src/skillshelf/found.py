"""What a source reports about one place."""

from dataclasses import dataclass, replace

from skillshelf.descriptor import Diagnostic, SkillDescriptor


@dataclass(slots=True, eq=False)
class Found:
    """A skill that a source found, or the reasons why there is none at this place.

    Treat it as immutable. It is not frozen because a scan makes one for each of ten thousand skills.
    """

    descriptor: SkillDescriptor | None
    """None if there is no usable skill here."""
    diagnostics: tuple[Diagnostic, ...] = ()
    digest: bytes = b""
    """A hash of the file's bytes; empty if the file's times alone show whether it changed."""
    is_last_good: bool = False
    """True for an earlier version that stays in use because the file is broken now."""

    @property
    def name(self) -> str:
        """The skill's name; empty if there is no skill."""
        return self.descriptor.name if self.descriptor else ""

    def as_last_good(self, diagnostics: tuple[Diagnostic, ...]) -> "Found":
        """Return this version with the diagnostics of the broken one that it stands in for."""
        return replace(self, diagnostics=diagnostics, is_last_good=True)

    def says_the_same(self, other: "Found") -> bool:
        """Return True if a shelf would not notice the difference."""
        return self.diagnostics == other.diagnostics and self.descriptor == other.descriptor
