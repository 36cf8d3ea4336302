"""What the steps share: the stage, the conversation on it, and how they say what was expected."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skillshelf.listing import parse
from skillshelf.testing.conformance._face import Call, Conversation, Promise, Result, Said
from skillshelf.testing.conformance._stage import Stage

LOAD = "load_skill_instructions"
# A note at the end of a request names what is gone; what came or changed is in a section of its own.
_GONE = re.compile(r"^The available skills changed\..*? Removed: ([^\n]+)\.$", re.M)
_SHOWN = 500


class Unmet(Exception):
    """Something that was expected did not come."""


def check(holds: bool, wanted: str, found: object) -> None:
    if not holds:
        shown = repr(found)
        raise Unmet(f"expected {wanted}; found {shown if len(shown) < _SHOWN else shown[:_SHOWN] + '…'}")


@dataclass
class Scene:
    stage: Stage
    conversation: Conversation
    exceptions: Mapping[Promise, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """The exceptions that the present step has come upon."""

    async def ask(self, *calls: Call, text: str = "Go on.") -> Said:
        """A message, in answer to which the model makes these calls."""
        said = await self.conversation.say(text, calls, "Done.")
        check(isinstance(said, Said), "what was said, as Said(…)", said)
        answered, called = len(said.results), len(calls)
        check(answered == called, f"a result for each of {called} tool calls, not {answered}", said.results)
        check(
            len(said.systems) == called + 1,
            f"the system prompt of each of {called + 1} model calls, not of {len(said.systems)}",
            said.systems,
        )
        check(len(said.ends) in (0, called + 1), "the end of each request, or of none", said.ends)
        check(said.answer == "Done.", "the model's answer, after its calls", said.answer)
        return said

    async def load(self, skill: str, reference: str = "") -> Result:
        [result] = (await self.ask(loading(skill, reference))).results
        return result

    def keeps(self, promise: Promise) -> bool:
        """Whether the face has to do this; what it declares not to is noted for the report."""
        if promise in self.exceptions and self.exceptions[promise] not in self.notes:
            self.notes.append(self.exceptions[promise])
        return promise not in self.exceptions

    def succeeded(self, result: Result, text: str, wanted: str) -> None:
        marked = result.failed is False or ("errors-marked" in self.exceptions and result.failed is None)
        check(text in result.text and marked, f"{wanted}, with failed=False", result)

    def refused(self, result: Result, words: tuple[str, ...], wanted: str) -> None:
        check(all(word in result.text for word in words), wanted, result)
        marked = result.failed is True or (not self.keeps("errors-marked") and result.failed is None)
        check(marked, "a refusal that is marked as an error: failed=True", result)

    def ran(self, tool: str) -> int:
        return self.stage.recorded("ran").count(tool)

    @property
    def activations(self) -> list[Any]:
        return self.stage.recorded("activation")


def loading(skill: str, reference: str = "") -> Call:
    return Call(LOAD, {"skill_name": skill, **({"reference": reference} if reference else {})})


def told(said: Said, at: int) -> dict[str, str]:
    """The skills that a model call knows of, by name: from its system prompt, and from a note at the end."""
    known = {entry.name: entry.description for entry in parse(said.systems[at])}
    end = said.ends[at] if said.ends else ""
    known |= {entry.name: entry.description for entry in parse(end)}
    gone = [name for names in _GONE.findall(end) for name in names.split(", ")]
    return {name: description for name, description in known.items() if name not in gone}
