"""The ten steps: what a model can rely on, no matter how it reaches the shelf. One function for each."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from skillshelf.listing import parse
from skillshelf.shelf import LOAD_TOOL
from skillshelf.testing.conformance._face import Call, FaceConversation, Promise, Reply, Result
from skillshelf.testing.conformance._stage import Stage
from skillshelf.text import truncate

# A note at the end of a request names removed skills; new and changed ones are in a section of its own.
_REMOVED = re.compile(r"^The available skills changed\..*? Removed: ([^\n]+)\.$", re.M)
# Providers cache a prompt of 1,024 tokens or more. From there on the listing stays as it was sent, and notes announce
# changes.
_LONG_MESSAGE = "These words are only here to make the conversation long. " * 200
# A face that watches files may hear late of an earlier step's change, and a change ends a turn.
_MAX_TRIES = 3
_MAX_SHOWN = 500


class UnmetExpectation(Exception):
    """Something that was expected did not come."""


def expect(condition: bool, expected: str, found: object) -> None:
    """Raise UnmetExpectation unless the condition holds."""
    if condition:
        return
    raise UnmetExpectation(f"expected {expected}; found {truncate(repr(found), _MAX_SHOWN)}")


@dataclass
class Scene:
    """The stage and the conversation that all steps share."""

    stage: Stage
    conversation: FaceConversation
    exceptions: Mapping[Promise, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """The exceptions that the current step has come upon."""

    async def ask(self, *calls: Call, text: str = "Go on.") -> Reply:
        """Send a message to which the model responds with these calls."""
        reply = await self.conversation.say(text, calls, "Done.")
        requests = len(calls) + 1
        expect(isinstance(reply, Reply), "a Reply(…)", reply)
        expect(
            len(reply.results) == len(calls),
            f"a result for each of {len(calls)} tool calls, not {len(reply.results)}",
            reply.results,
        )
        expect(
            len(reply.system_prompts) == requests,
            f"the system prompt of each of {requests} model calls, not of {len(reply.system_prompts)}",
            reply.system_prompts,
        )
        expect(
            len(reply.last_messages) in (0, requests),
            "the last message of each request, or of none",
            reply.last_messages,
        )
        expect(reply.answer == "Done.", "the model's answer, after its calls", reply.answer)
        return reply

    async def load(self, skill: str, reference: str = "") -> Result:
        """Let the model load a skill or a reference."""
        reply = await self.ask(make_load(skill, reference))
        return reply.results[0]

    def requires(self, promise: Promise) -> bool:
        """Return True if the face must keep the promise. An exception it declares is noted for the report."""
        if promise not in self.exceptions:
            return True
        if self.exceptions[promise] not in self.notes:
            self.notes.append(self.exceptions[promise])
        return False

    def expect_success(self, result: Result, text: str, expected: str) -> None:
        may_be_unmarked = "errors-marked" in self.exceptions
        is_success = result.failed is False or (may_be_unmarked and result.failed is None)
        expect(text in result.text and is_success, f"{expected}, with failed=False", result)

    def expect_refusal(self, result: Result, words: tuple[str, ...], expected: str) -> None:
        expect(all(word in result.text for word in words), expected, result)
        is_error = result.failed is True or (not self.requires("errors-marked") and result.failed is None)
        expect(is_error, "a refusal that is marked as an error: failed=True", result)

    def count_runs(self, tool: str) -> int:
        return self.stage.recorded("ran").count(tool)

    @property
    def activations(self) -> list[Any]:
        return self.stage.recorded("activation")


def make_load(skill: str, reference: str = "") -> Call:
    """Return the call that loads a skill's instructions or a reference."""
    arguments = {"skill_name": skill}
    if reference:
        arguments["reference"] = reference
    return Call(LOAD_TOOL, arguments)


def listed_skills(reply: Reply, request: int) -> dict[str, str]:
    """Return the skills that the model knows of in a request: from its system prompt and a note at its end."""
    skills = {entry.name: entry.description for entry in parse(reply.system_prompts[request])}
    if not reply.last_messages:
        return skills

    note = reply.last_messages[request]
    skills |= {entry.name: entry.description for entry in parse(note)}
    for names in _REMOVED.findall(note):
        for name in names.split(", "):
            skills.pop(name, None)
    return skills


async def check_listing(scene: Scene) -> None:
    reply = await scene.ask(Call("list_skills", {}))
    for request, system_prompt in enumerate(reply.system_prompts):
        description = listed_skills(reply, request).get("alpha")
        expect(description == "First skill.", "alpha in the Available Skills of each call", system_prompt)
    expect(reply.system_prompts[0] == reply.system_prompts[1], "the same bytes in each call", reply.system_prompts)
    expect({"list_skills", "search_skills", LOAD_TOOL} <= set(reply.tools), "the find-skills tools", reply.tools)
    expect({"add_skill", "publish"} <= set(reply.tools), "the tools of the code skill", reply.tools)

    next_reply = await scene.ask()
    expect(
        next_reply.system_prompts[0] == reply.system_prompts[0],
        "the same bytes in the next turn, as nothing changed",
        next_reply.system_prompts,
    )
    await _check_new_skill(scene, "gamma")


async def _check_new_skill(scene: Scene, name: str) -> None:
    """Add a skill between two model calls of one run."""
    reply = await scene.ask(Call("add_skill", {"name": name}))
    scene.expect_success(reply.results[0], f"added {name}", "the result of the code skill's safe tool")
    expect(name not in listed_skills(reply, 0), f"no {name} before it exists", reply.system_prompts[0])
    if not scene.requires("each-call"):
        reply = await scene.ask()
    expect(
        listed_skills(reply, -1).get(name) == f"Added as {name}.",
        f"the skill {name}, which came between two model calls, in the next of them",
        (reply.system_prompts[-1], reply.last_messages[-1:]),
    )


async def check_load(scene: Scene) -> None:
    result = await scene.load("alpha", "references/guide.md")
    scene.expect_success(result, "Guide of alpha.", "the reference's text")


async def check_load_by_file_name(scene: Scene) -> None:
    result = await scene.load("alpha", "guide.md")
    scene.expect_success(result, "Guide of alpha.", "the reference by its file name")


async def check_traversal(scene: Scene) -> None:
    reply = await scene.ask(make_load("alpha", "../../../etc/passwd"), make_load("alpha", "guide.md"))
    traversal, recovery = reply.results
    expect("root:" not in traversal.text, "nothing from outside", traversal)
    scene.expect_refusal(traversal, ("references/guide.md",), "a refusal that names what is allowed")
    scene.expect_success(recovery, "Guide of alpha.", "the run to go on")


async def check_unknown_skill(scene: Scene) -> None:
    result = await scene.load("alhpa")
    scene.expect_refusal(result, ("alpha",), "an answer that names the closest skill")


async def check_repeated_load(scene: Scene) -> None:
    reads: list[Any] = []
    for _ in range(_MAX_TRIES):
        before = len(scene.activations)
        reply = await scene.ask(make_load("alpha"), make_load("alpha"))
        first, second = reply.results
        expect(first.text == second.text, "the same text twice", reply.results)
        reads = scene.activations[before:]
        if len(reads) == 1:
            return
    expect(False, "one read in the turn", reads)


async def check_edit(scene: Scene) -> None:
    await _check_one_edit(scene, "Edited")
    await scene.ask(text=_LONG_MESSAGE)
    await _check_one_edit(scene, "Edited in a long conversation")
    await _check_new_skill(scene, "delta")


async def _check_one_edit(scene: Scene, words: str) -> None:
    scene.stage.write("alpha", f"{words}.", f"{words}: the body.")
    reply = await scene.ask(make_load("alpha"))
    expect(
        listed_skills(reply, 0).get("alpha") == f"{words}.",
        f"the new description ({words}) in the next turn",
        (reply.system_prompts[0], reply.last_messages[:1]),
    )
    scene.expect_success(reply.results[0], f"{words}: the body.", "the new text")


async def check_removal(scene: Scene) -> None:
    scene.stage.remove("beta")
    reply = await scene.ask(make_load("beta"))
    expect("beta" not in listed_skills(reply, 0), "beta gone", (reply.system_prompts[0], reply.last_messages[:1]))
    scene.expect_refusal(reply.results[0], ("no skill",), "an answer that says so")


async def check_permissions(scene: Scene) -> None:
    reply = await scene.ask(make_load("bench-tools"))
    expect("erase" not in reply.tools, "no blocked tool among those that the model is offered", reply.tools)
    scene.expect_success(reply.results[0], "not available here: `erase`", "a note that a blocked tool is not there")

    reply = await scene.ask(Call("publish", {"path": "a.md"}))
    expect(scene.count_runs("publish") == 0, "a tool that asks not to run without the user's yes", reply.results)
    scene.expect_refusal(reply.results[0], (), "a refusal")

    if scene.requires("approval"):
        reply = await scene.ask(Call("publish", {"path": "b.md"}, approve=True))
        expected = "a tool that asks to run once, after the user's yes (a face that cannot ask declares `approval`)"
        expect(scene.count_runs("publish") == 1, expected, reply.results)
        scene.expect_success(reply.results[0], "published b.md", "the result of the approved call")


async def check_activations(scene: Scene) -> None:
    before = len(scene.activations)
    await scene.ask(make_load("alpha"), make_load("alpha", "guide.md"))
    activations = scene.activations[before:]
    expected = [["alpha", "", "model"], ["alpha", "references/guide.md", "model"]]
    expect(activations == expected, f"the activations {expected}", activations)


Step = Callable[[Scene], Awaitable[None]]
STEPS: dict[str, Step] = {
    "listing present": check_listing,
    "legal load": check_load,
    "bare-name load": check_load_by_file_name,
    "traversal refused": check_traversal,
    "unknown skill": check_unknown_skill,
    "repeat load cached": check_repeated_load,
    "edit seen next turn": check_edit,
    "removed skill gone": check_removal,
    "denial typed": check_permissions,
    "events recorded": check_activations,
}
