"""What a judge is asked, and what is known of it afterwards."""

import asyncio

from skillshelf.agent.events import ToolCalled, Usage
from skillshelf.evals import Check, FileState, Trace, check
from skillshelf.evals.check._judge import write_question
from skillshelf.testing import ScriptedModel


def trace_in(root: str) -> Trace:
    """A trial whose workspace is named in all that it left, in texts too long to be shown."""
    events = (ToolCalled("1", "write_file", {"path": f"{root}/out.txt", "content": "word " * 200}),)
    return Trace(events, (f"See {root}/out.txt. " * 2000,), files={"out.txt": FileState(f"In {root}. " * 1000, True)})


def test_the_same_trial_asks_the_same_question_in_any_folder() -> None:
    """A temporary folder with a long name leaves no less room for the work."""
    roots = ("/t/skillshelf-eval-aaaaaaaa", "/var/folder/zz/zyxvpxvq6csfxvn_n0/T/skillshelf-eval-bb_bbbb9")
    first, second = (write_question("It is well.", trace_in(root)) for root in roots)
    assert first == second
    assert "See /skillshelf-eval-workspace/out.txt." in first[1]


def test_the_usage_of_a_judge_is_reported() -> None:

    async def taken(*checks: Check) -> list[Usage]:
        with check.judged_by(lambda name: ScriptedModel("YES")) as usages:
            for one in checks:
                await check.look(one, Trace())
        return usages

    first, second = asyncio.run(taken(check.judge("Well?"), ~check.judge("Well?", ScriptedModel("NO, not so"))))
    assert (first.input, first.output, first.cost) == (second.input, 1, None)
    assert first.input > 0
    assert second.output > first.output
    assert asyncio.run(taken(check.max_tokens(1))) == []
