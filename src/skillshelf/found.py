"""What a source found at one place."""

from typing import Any

from skillshelf.descriptor import Diagnostic, SkillDescriptor, descriptor_of


class Found:
    """A skill, or something that cannot become one, and what is to be said about it.

    A scan finds ten thousand skills of which a session looks at a few, so a descriptor is made from its values when it
    is first wanted.
    """

    __slots__ = ("_descriptor", "_values", "diagnostics", "digest", "name")

    def __init__(
        self, descriptor: SkillDescriptor | None, diagnostics: tuple[Diagnostic, ...] = (), digest: bytes = b""
    ) -> None:
        self._descriptor: SkillDescriptor | None = descriptor
        self._values: tuple[Any, ...] | None = None
        self.name = descriptor.name if descriptor else ""
        """The skill's name; empty where there is no skill."""
        self.diagnostics = diagnostics
        self.digest = digest
        """Of the file's bytes; empty where its times alone tell a change."""

    @classmethod
    def of(cls, values: tuple[Any, ...], diagnostics: tuple[Diagnostic, ...] = (), digest: bytes = b"") -> "Found":
        """From all values of a descriptor, in order, checked already."""
        found = cls(None, diagnostics, digest)
        found.name, found._values = values[0], values
        return found

    @property
    def descriptor(self) -> SkillDescriptor | None:
        values = self._values
        if values is not None:
            self._descriptor = descriptor_of(*values)
            self._values = None
        return self._descriptor

    def with_diagnostics(self, diagnostics: tuple[Diagnostic, ...]) -> "Found":
        return Found(self.descriptor, diagnostics, self.digest)

    def says_the_same(self, other: "Found") -> bool:
        return self.diagnostics == other.diagnostics and self.descriptor == other.descriptor
