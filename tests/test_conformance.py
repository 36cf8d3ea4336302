"""The conformance kit finds what is wrong with a face, and every face of ours passes."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence

import pytest

from skillshelf import Shelf, SkillDiscoverySkill, SkillError
from skillshelf.testing.conformance import FACES, STEPS, Call, Result, Said, run

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("name", FACES)
def test_every_face_passes_every_step(name: str) -> None:
    """In process, offline, with the framework's own fake model."""
    report = asyncio.run(run(FACES[name]()))
    assert [one.step for one in report.outcomes] == list(STEPS)
    assert report.passed, report


class Careless:
    """A face as somebody might write it in an hour: it lists once, forgets turns, and lets errors through as text."""

    name = "careless"

    def __init__(self, **faults: bool) -> None:
        self.faults = faults

    async def open(self, shelf: Shelf) -> "Careless":
        self.shelf = shelf
        self.listing = shelf.listing().text
        self.tools = {tool.name: tool for tool in (*SkillDiscoverySkill(shelf).tools(), *shelf.tools())}
        return self

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Said:
        results, systems = [], []
        with self.shelf.turn():
            for call in calls:
                systems.append(self._system())
                results.append(self._call(call))
        return Said((*systems, self._system()), tuple(self.tools), tuple(results), answer)

    def _system(self) -> str:
        return self.listing if self.faults.get("stale") else self.shelf.listing().text

    def _call(self, call: Call) -> Result:
        try:
            approved = bool(self.faults.get("approves"))
            tool = self.tools[call.tool]
            if approved and tool.permission == "blocked":
                return Result(str(tool.method(**call.arguments)), False)
            return Result(str(tool.call(call.arguments)), False)
        except SkillError as error:
            return Result("Something went wrong." if self.faults.get("masks") else str(error), True)

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("", []),
        ("stale", ["edit seen next turn", "removed skill gone"]),
        ("masks", ["traversal refused", "unknown skill", "removed skill gone", "denial typed"]),
        ("approves", ["denial typed"]),
    ],
)
def test_a_fault_is_found_by_the_steps_it_breaks(fault: str, found: list[str]) -> None:
    """And by no other: a report says where to look."""
    report = asyncio.run(run(Careless(**{fault: True} if fault else {})))
    assert [one.step for one in report.outcomes if one.problem] == found


def test_the_matrix_is_printed_and_for_programs(run: Run) -> None:
    """One row a face, one column a step."""
    code, out, _ = run("conformance", "pydantic-ai")
    assert code == 0
    assert out.splitlines()[1].split()[:3] == ["pydantic-ai", "ok", "ok"]
    code, out, _ = run("conformance", "pydantic-ai", "--json")
    (face,) = json.loads(out)["faces"]
    assert (face["face"], face["passed"], list(face["steps"])) == ("pydantic-ai", True, list(STEPS))


def test_an_unknown_face_is_wrong_use(run: Run) -> None:
    """With the ones there are."""
    code, _, err = run("conformance", "nope")
    assert code == 2
    assert "langchain" in err


def test_a_face_that_is_not_installed_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, and nothing failed."""
    for module in ("skillshelf.adapters.langchain", "skillshelf.testing.conformance.faces.langchain"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "langchain", None)
    monkeypatch.setitem(sys.modules, "langchain.agents", None)
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    code, out, _ = run("conformance", "langchain", "pydantic-ai")
    assert code == 0
    assert "langchain was not tried" in out
    assert "skillshelf[langchain]" in out
