"""The scenario: what a model can rely on, whichever way it reaches the shelf. One function for each step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from skillshelf.descriptor import Activation
from skillshelf.errors import MissingExtraError
from skillshelf.listing import parse
from skillshelf.shelf import Shelf
from skillshelf.skill import BaseSkill, tool
from skillshelf.sources.directory import DirectorySource
from skillshelf.sources.package import ObjectSource
from skillshelf.testing.conformance.face import Call, Conversation, Face, Result, Said

_SKILL = "---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"
_LOAD = "load_skill_instructions"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one step went: empty where it passed, else what was expected and what came."""

    step: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """How a face went through the scenario."""

    face: str
    outcomes: tuple[Outcome, ...] = ()
    missing: str = ""
    """What to install first, where the face could not run."""

    @property
    def passed(self) -> bool:
        return not self.missing and all(not one.problem for one in self.outcomes)

    def __str__(self) -> str:
        faults = [f"{one.step}: {one.problem}" for one in self.outcomes if one.problem]
        return f"{self.face}: {self.missing or '; '.join(faults) or 'passed'}"


class Raw(BaseSkill):
    """A code skill whose tool must never run."""

    name = "raw-tools"
    description = "Tools that change things."
    category = "raw"
    instructions = "Call erase."

    def __init__(self) -> None:
        self.ran = 0

    @tool
    def erase(self, path: str) -> str:
        """Erase a file."""
        self.ran += 1
        return f"erased {path}"


@dataclass
class Scene:
    """What the steps share: a shelf on real files, a conversation, and what the shelf recorded."""

    root: str
    shelf: Shelf
    raw: Raw
    conversation: Conversation
    activations: list[Activation] = field(default_factory=list)

    def write(self, name: str, description: str, body: str) -> None:
        folder = os.path.join(self.root, name, "references")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(self.root, name, "SKILL.md"), "w", encoding="utf-8") as file:
            file.write(_SKILL.format(name=name, description=description, body=body))
        with open(os.path.join(folder, "guide.md"), "w", encoding="utf-8") as file:
            file.write(f"Guide of {name}.\n")

    async def ask(self, *calls: Call) -> Said:
        return await self.conversation.say("Go on.", calls, "Done.")

    async def load(self, skill: str, reference: str = "") -> Result:
        arguments = {"skill_name": skill, **({"reference": reference} if reference else {})}
        return (await self.ask(Call(_LOAD, arguments))).results[0]


Step = Callable[[Scene], Awaitable[None]]


async def listing_present(scene: Scene) -> None:
    said = await scene.ask(Call("list_skills", {}))
    _check(len(said.systems) == 2, "two model calls", said.systems)
    for system in said.systems:
        listed = {entry.name: entry.description for entry in parse(system)}
        _check(listed.get("alpha") == "First skill.", "alpha in the Available Skills of the system prompt", system)
    _check(said.systems[0] == said.systems[1], "the same bytes in each call", said.systems)
    _check({"list_skills", "search_skills", _LOAD} <= set(said.tools), "the find-skills tools", said.tools)
    _check(said.answer == "Done.", "the model's answer", said.answer)


async def legal_load(scene: Scene) -> None:
    result = await scene.load("alpha", "references/guide.md")
    _check("Guide of alpha." in result.text and result.failed is not True, "the reference's text", result)


async def bare_name_load(scene: Scene) -> None:
    result = await scene.load("alpha", "guide.md")
    _check("Guide of alpha." in result.text, "the reference by its file name", result)


async def traversal_refused(scene: Scene) -> None:
    wrong = Call(_LOAD, {"skill_name": "alpha", "reference": "../../../etc/passwd"})
    right = Call(_LOAD, {"skill_name": "alpha", "reference": "guide.md"})
    said = await scene.ask(wrong, right)
    refused, recovered = said.results
    _check("references/guide.md" in refused.text, "a refusal that names what is allowed", refused)
    _check("root:" not in refused.text, "nothing from outside", refused)
    _check("Guide of alpha." in recovered.text and said.answer == "Done.", "the run to go on", said)


async def unknown_skill(scene: Scene) -> None:
    result = await scene.load("alhpa")
    _check("alpha" in result.text, "an answer that names what is near", result)


async def repeat_load_cached(scene: Scene) -> None:
    before = len(scene.activations)
    call = Call(_LOAD, {"skill_name": "alpha"})
    said = await scene.ask(call, call)
    _check(said.results[0].text == said.results[1].text, "the same text twice", said.results)
    _check(len(scene.activations) == before + 1, "one read in the turn", scene.activations[before:])


async def edit_seen_next_turn(scene: Scene) -> None:
    scene.write("alpha", "First skill, edited.", "Edited body.")
    said = await scene.ask(Call(_LOAD, {"skill_name": "alpha"}))
    listed = {entry.name: entry.description for entry in parse(said.systems[0])}
    _check(listed.get("alpha") == "First skill, edited.", "the new description in the next turn", said.systems[0])
    _check("Edited body." in said.results[0].text, "the new text", said.results)


async def removed_skill_gone(scene: Scene) -> None:
    os.unlink(os.path.join(scene.root, "beta", "SKILL.md"))
    said = await scene.ask(Call(_LOAD, {"skill_name": "beta"}))
    _check("beta" not in [entry.name for entry in parse(said.systems[0])], "beta gone", said.systems[0])
    _check("no skill" in said.results[0].text, "an answer that says so", said.results)


async def denial_typed(scene: Scene) -> None:
    said = await scene.ask(Call("erase", {"path": "all"}))
    (result,) = said.results
    _check(scene.raw.ran == 0, "a blocked tool not to run", scene.raw.ran)
    _check("blocked" in result.text and result.failed is not False, "a refusal that says why", result)
    _check(said.answer == "Done.", "the run to go on", said)


async def events_recorded(scene: Scene) -> None:
    before = len(scene.activations)
    await scene.ask(Call(_LOAD, {"skill_name": "alpha"}), Call(_LOAD, {"skill_name": "alpha", "reference": "guide.md"}))
    found = [(one.skill, one.reference, one.by) for one in scene.activations[before:]]
    wanted = [("alpha", "", "model"), ("alpha", "references/guide.md", "model")]
    _check(found == wanted, f"the activations {wanted}", found)


STEPS: dict[str, Step] = {
    "listing present": listing_present,
    "legal load": legal_load,
    "bare-name load": bare_name_load,
    "traversal refused": traversal_refused,
    "unknown skill": unknown_skill,
    "repeat load cached": repeat_load_cached,
    "edit seen next turn": edit_seen_next_turn,
    "removed skill gone": removed_skill_gone,
    "denial typed": denial_typed,
    "events recorded": events_recorded,
}


async def run(face: Face) -> Report:
    """The whole scenario through one face, on a shelf of its own. A step that fails does not end it."""
    with tempfile.TemporaryDirectory(prefix="skillshelf-conformance-") as root:
        raw = Raw()
        bound = raw.with_policy({"erase": "blocked"})
        scene = Scene(root, Shelf([]), bound, None)  # type: ignore[arg-type]  # opened below
        scene.write("alpha", "First skill.", "Body of alpha.")
        scene.write("beta", "Second skill.", "Body of beta.")
        scene.shelf = Shelf([ObjectSource([bound]), DirectorySource(root, "project", cache=False)])
        end = scene.shelf.on_activation(scene.activations.append)
        try:
            scene.conversation = await face.open(scene.shelf)
        except MissingExtraError as error:
            return Report(face.name, missing=str(error))
        try:
            return Report(face.name, tuple([await _outcome(name, step, scene) for name, step in STEPS.items()]))
        finally:
            end()
            await scene.conversation.close()


async def _outcome(name: str, step: Step, scene: Scene) -> Outcome:
    try:
        await step(scene)
    except Exception as error:  # a framework may raise anything: that is the finding
        return Outcome(name, f"{type(error).__name__}: {error}" if not isinstance(error, _Unmet) else str(error))
    return Outcome(name)


class _Unmet(Exception):
    pass


def _check(holds: bool, wanted: str, found: object) -> None:
    if not holds:
        shown = repr(found)
        raise _Unmet(f"expected {wanted}; found {shown if len(shown) < 500 else shown[:500] + '…'}")
