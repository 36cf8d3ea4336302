"""The ten steps: what a model can rely on, whichever way it reaches the shelf. One function for each."""

from collections.abc import Awaitable, Callable
from typing import Any

from skillshelf.testing.conformance._face import Call
from skillshelf.testing.conformance._scene import LOAD, Scene, check, loading, told

Step = Callable[[Scene], Awaitable[None]]
# Providers cache a prompt from 1,024 tokens on; from there the section stays as it was sent, and notes tell of changes.
_LONG = "These words are only here to make the conversation long. " * 200
# A face that watches files may hear late of what an earlier step wrote, and a change ends a turn.
_TRIES = 3


async def listing_present(scene: Scene) -> None:
    said = await scene.ask(Call("list_skills", {}))
    for at, system in enumerate(said.systems):
        check(told(said, at).get("alpha") == "First skill.", "alpha in the Available Skills of each call", system)
    check(said.systems[0] == said.systems[1], "the same bytes in each call", said.systems)
    check({"list_skills", "search_skills", LOAD} <= set(said.tools), "the find-skills tools", said.tools)
    check({"add_skill", "publish"} <= set(said.tools), "the tools of the code skill", said.tools)
    again = await scene.ask()
    check(again.systems[0] == said.systems[0], "the same bytes in the next turn, as nothing changed", again.systems)
    await _skill_comes(scene, "gamma")


async def _skill_comes(scene: Scene, name: str) -> None:
    """Between two model calls of one run."""
    said = await scene.ask(Call("add_skill", {"name": name}))
    scene.succeeded(said.results[0], f"added {name}", "the result of the code skill's safe tool")
    check(name not in told(said, 0), f"no {name} before it is there", said.systems[0])
    if not scene.keeps("each-call"):
        said = await scene.ask()
    what = f"the skill {name}, which came between two model calls, in the next of them"
    check(told(said, -1).get(name) == f"Added as {name}.", what, (said.systems[-1], said.ends[-1:]))


async def legal_load(scene: Scene) -> None:
    result = await scene.load("alpha", "references/guide.md")
    scene.succeeded(result, "Guide of alpha.", "the reference's text")


async def bare_name_load(scene: Scene) -> None:
    scene.succeeded(await scene.load("alpha", "guide.md"), "Guide of alpha.", "the reference by its file name")


async def traversal_refused(scene: Scene) -> None:
    said = await scene.ask(loading("alpha", "../../../etc/passwd"), loading("alpha", "guide.md"))
    refused, recovered = said.results
    check("root:" not in refused.text, "nothing from outside", refused)
    scene.refused(refused, ("references/guide.md",), "a refusal that names what is allowed")
    scene.succeeded(recovered, "Guide of alpha.", "the run to go on")


async def unknown_skill(scene: Scene) -> None:
    scene.refused(await scene.load("alhpa"), ("alpha",), "an answer that names what is near")


async def repeat_load_cached(scene: Scene) -> None:
    reads: list[Any] = []
    for _ in range(_TRIES):
        before = len(scene.activations)
        said = await scene.ask(loading("alpha"), loading("alpha"))
        check(said.results[0].text == said.results[1].text, "the same text twice", said.results)
        reads = scene.activations[before:]
        if len(reads) == 1:
            return
    check(False, "one read in the turn", reads)


async def edit_seen_next_turn(scene: Scene) -> None:
    await _edit_is_seen(scene, "Edited")
    await scene.ask(text=_LONG)
    await _edit_is_seen(scene, "Edited in a long conversation")
    await _skill_comes(scene, "delta")


async def _edit_is_seen(scene: Scene, how: str) -> None:
    scene.stage.write("alpha", f"{how}.", f"{how}: the body.")
    said = await scene.ask(loading("alpha"))
    told_of = (said.systems[0], said.ends[:1])
    check(told(said, 0).get("alpha") == f"{how}.", f"the new description ({how}) in the next turn", told_of)
    scene.succeeded(said.results[0], f"{how}: the body.", "the new text")


async def removed_skill_gone(scene: Scene) -> None:
    scene.stage.remove("beta")
    said = await scene.ask(loading("beta"))
    check("beta" not in told(said, 0), "beta gone", (said.systems[0], said.ends[:1]))
    scene.refused(said.results[0], ("no skill",), "an answer that says so")


async def denial_typed(scene: Scene) -> None:
    [blocked] = (await scene.ask(Call("erase", {"path": "all"}))).results
    check(scene.ran("erase") == 0, "a blocked tool not to run", blocked)
    scene.refused(blocked, ("erase", "blocked"), "a refusal that names the tool and says why")
    [denied] = (await scene.ask(Call("publish", {"path": "a.md"}))).results
    check(scene.ran("publish") == 0, "a tool that asks not to run without the person's yes", denied)
    scene.refused(denied, (), "a refusal")
    if scene.keeps("approval"):
        said = await scene.ask(Call("publish", {"path": "b.md"}, approve=True))
        what = "a tool that asks to run once, after the person's yes (a face that cannot ask declares `approval`)"
        check(scene.ran("publish") == 1, what, said.results)
        scene.succeeded(said.results[0], "published b.md", "the result of the approved call")


async def events_recorded(scene: Scene) -> None:
    before = len(scene.activations)
    await scene.ask(loading("alpha"), loading("alpha", "guide.md"))
    found = scene.activations[before:]
    wanted = [["alpha", "", "model"], ["alpha", "references/guide.md", "model"]]
    check(found == wanted, f"the activations {wanted}", found)


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
