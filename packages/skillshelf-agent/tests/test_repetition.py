"""A model that makes the same call again and again is noticed."""

from pathlib import Path
from typing import Any

import pytest

from agent_kit import User, agent, of, requests, say
from skillshelf_agent import Refusal
from skillshelf_agent.events import Failed, Finished, ToolReturned
from skillshelf_agent.testing import call

LOOK = call("read_file", path="a.txt")
OTHER = call("list_directory", path=".")


def start(tmp_path: Path, *script: Any, user: User | None = None) -> Any:
    (tmp_path / "a.txt").write_text("a")
    return agent(tmp_path, *script, user=user)


@pytest.mark.parametrize("round_of_calls", [[LOOK], [LOOK, OTHER]])
def test_without_a_user_to_ask_a_turn_that_goes_in_circles_is_stopped(
    tmp_path: Path, round_of_calls: list[Any]
) -> None:
    """Five rounds with equal results are enough. The failure is typed, and the conversation can go on."""
    core = start(tmp_path, *round_of_calls * 5, LOOK, "Sorry.")
    events = say(core, "go")
    assert len(of(events, ToolReturned)) == 5 * len(round_of_calls)
    assert isinstance(events[-1], Failed)
    assert events[-1].code == "repeated-call"
    assert "5 times" in events[-1].message
    assert say(core, "and now?")[-1] == Finished("Sorry.")


def test_the_user_decides_whether_it_goes_on(tmp_path: Path) -> None:
    """A yes begins the count anew, also in yolo; a no ends the turn."""
    user = User("yes", "no")
    core = start(tmp_path, *[LOOK] * 20, user=user)
    events = say(core, "go")
    assert len(of(events, ToolReturned)) == 10
    assert [question.repetition.rounds for question in user.questions if question.repetition] == [5, 5]
    assert isinstance(events[-1], Failed)


def test_a_reason_reaches_the_model_and_the_turn_goes_on(tmp_path: Path) -> None:
    """The call is refused with the user's words."""
    core = start(tmp_path, *[LOOK] * 6, "Done.", user=User(Refusal("it will not change")))
    events = say(core, "go")
    assert of(events, ToolReturned)[-1].refused
    assert "it will not change" in requests(core)[-1].text
    assert events[-1] == Finished("Done.")


def test_results_that_differ_are_progress_for_a_while(tmp_path: Path) -> None:
    """Polling is fine, but not without end."""
    count = call("run_command", command="echo x >> log; wc -l log")
    assert say(start(tmp_path, *[count] * 12, "ok"), "go")[-1] == Finished("ok")
    events = say(start(tmp_path, *[count] * 25), "go")
    assert len(of(events, ToolReturned)) == 20
    assert isinstance(events[-1], Failed)


def test_the_same_call_in_another_turn_begins_anew(tmp_path: Path) -> None:
    """The user has spoken in between."""
    core = start(tmp_path, *[*[LOOK] * 4, "ok"] * 2)
    assert [event.text for event in of(say(core, "go", "again"), Finished)] == ["ok", "ok"]


def test_other_calls_in_between_are_no_circle(tmp_path: Path) -> None:
    """Tests that run after each edit are work."""
    writes = [call("write_file", path="b.txt", content=str(number)) for number in range(8)]
    script = [step for write in writes for step in (LOOK, write)]
    assert say(start(tmp_path, *script, "ok"), "go")[-1] == Finished("ok")


def test_a_call_that_the_user_refused_counts_too(tmp_path: Path) -> None:
    """A model that does not take no for an answer goes in circles."""
    user = User("no", "no", "no", "no", "no", "no")
    write = call("write_file", path="b.txt", content="b")
    core = agent(tmp_path, *[write] * 10, mode="ask", user=user)
    events = say(core, "go")
    assert user.questions[-1].repetition is not None
    assert isinstance(events[-1], Failed)


def test_a_refusal_can_carry_a_reason(tmp_path: Path) -> None:
    """The model gets the user's words as the result of the call."""
    core = agent(
        tmp_path, call("run_command", command="npm i"), "ok", mode="ask", user=User(Refusal("use pnpm instead"))
    )
    (result,) = of(say(core, "go"), ToolReturned)
    assert result.refused
    assert result.text == "The user denied this call to 'run_command': use pnpm instead"
