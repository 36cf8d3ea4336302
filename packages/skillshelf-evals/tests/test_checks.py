"""Checks read what was recorded; each has a negative; one that cannot be made is neither a pass nor a miss."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillshelf.errors import EvalError
from skillshelf.listing import Entry
from skillshelf.listing._markup import render
from skillshelf.skills import BaseSkill, tool
from skillshelf_agent.events import (
    ReferenceDenied,
    ReferenceLoaded,
    SkillInvoked,
    SkillLoaded,
    SkillsReloaded,
    Text,
    ToolCalled,
    ToolReturned,
    Usage,
)
from skillshelf_agent.testing import ScriptedModel
from skillshelf_evals import Case, Check, FileState, Message, Trace, Verdict, check, run_trial
from skillshelf_evals.check._behavior import is_part
from skillshelf_evals.check._check import BUILT_IN

TRACE = Trace(
    (
        SkillInvoked("pdf", "form.pdf"),
        SkillLoaded("pdf", "user", 10),
        ReferenceLoaded("pdf", "references/forms.md", "model", 5),
        ReferenceDenied("pdf", "../secret.md", "not on the list"),
        SkillsReloaded(("new",), ("pdf",), ("old",)),
        ToolCalled("2", "run_command", {"command": "python scripts/fill.py --quick"}),
        ToolCalled("3", "run_command", {"command": "rm -r build"}),
        ToolReturned("3", "run_command", "No.", False, refused=True),
        ToolCalled("1", "write_file", {"path": "out.txt", "content": "Hello", "options": {"mode": 420, "mark": True}}),
        Text('skill_loaded: "docx"'),
    ),
    ("First.", 'I called skill_loaded("docx") and wrote out.txt.'),
    (f"You are.\n\n# Available Skills\n\n{render([Entry('pdf', 'Fills <forms> & more.', ('references/forms.md',))])}",),
    {"out.txt": FileState("Hello\n", True), "in.txt": FileState("Hi\n", False), "a.bin": FileState(None, False)},
    ("gone.txt",),
    Usage(100, 50, 0, 0.01),
)


def verdict(one: Check, trace: Trace = TRACE) -> Verdict:
    return asyncio.run(check.look(one, trace))


HOLD: list[Check] = [
    check.skill_invoked("pdf"),
    check.skill_loaded("pdf"),
    check.reference_loaded("pdf", "references/forms.md"),
    check.reference_loaded("pdf", "forms.md"),
    check.reference_denied("pdf"),
    check.reference_denied("pdf", "../secret.md"),
    check.skill_reloaded("pdf"),
    check.skill_reloaded("pdf", "changed"),
    check.skill_reloaded("old", "removed"),
    check.tool_called("write_file"),
    check.tool_called("write_file", {"path": "out.txt", "options": {"mode": 420}}),
    check.command_run("scripts/fill.py"),
    check.file_contains("out.txt", "Hello"),
    check.file_exists("out.txt"),
    check.file_exists("*.bin"),
    check.file_exists("./in.txt"),
    check.file_matches("out.txt", "^H.l+o$"),
    check.file_unchanged("in.txt"),
    check.response_contains("out.txt"),
    check.response_contains("First", turn=1),
    check.response_matches(r"wrote \w+\.txt"),
    check.response_matches(r"(?i)^i (called|ran) .*txt\.$"),
    check.listing_contains("pdf"),
    check.listing_contains("Fills <forms> & more"),
    check.listing_contains("references/forms.md"),
    check.max_tokens(150),
    check.max_cost(0.01),
    check.custom(lambda trace: Verdict(True)),
    check.custom(lambda trace: trace.usage.input == 100),
]
MISS: list[Check] = [
    check.skill_invoked("docx"),
    check.skill_loaded("docx"),
    check.reference_loaded("docx", "references/forms.md"),
    check.reference_denied("pdf", "secret.md"),
    check.skill_reloaded("pdf", "added"),
    check.tool_called("edit_file"),
    check.tool_called("write_file", {"path": "other.txt"}),
    check.tool_called("write_file", {"options": {"mark": 1}}),
    check.command_run("scripts/sign.py"),
    check.command_run("rm -r"),
    check.file_exists("gone.txt"),
    check.file_exists("*/out.txt"),
    check.file_matches("out.txt", "B.e"),
    check.file_matches("none.txt", "H"),
    check.json_schema("out.txt", {"type": "string"}),
    check.json_schema("none.json", {"type": "string"}),
    check.file_contains("out.txt", "Bye"),
    check.file_contains("none.txt", "Hello"),
    check.file_unchanged("out.txt"),
    check.file_unchanged("gone.txt"),
    check.response_contains("sorry"),
    check.response_contains("First"),
    check.response_matches("^wrote"),
    check.listing_contains("docx"),
    check.listing_contains("You are"),
    check.max_tokens(149),
    check.max_cost(0.009),
]


@pytest.mark.parametrize("one", HOLD, ids=lambda one: one.name)
def test_a_check_holds_on_a_trace_that_has_what_it_looks_for_and_its_opposite_does_not(one: Check) -> None:
    assert (verdict(one).passed, verdict(~one).passed) == (True, False)


@pytest.mark.parametrize("one", MISS, ids=lambda one: one.name)
def test_a_check_misses_on_other_values_and_its_opposite_holds(one: Check) -> None:
    """Words in a message are not events: the answer names docx, and no event does."""
    found = verdict(one)
    assert (found.passed, found.error, verdict(~one).passed) == (False, "", True)
    assert found.reason


def test_every_built_in_check_is_tried_above() -> None:
    """Only those that need files, a workspace or a model are not."""
    tried = {one.name.split(" ")[0] for one in HOLD}
    assert BUILT_IN.keys() - tried == {"golden", "json_schema", "judge", "run", "table_equals"}


UNMADE: list[Check] = [
    check.file_contains("a.bin", "Hello"),
    check.file_matches("a.bin", "Hello"),
    check.json_schema("a.bin", {"type": "string"}),
    check.table_equals("out.txt", "/nowhere/table.csv"),
    check.file_unchanged("none.txt"),
    check.response_contains("First", turn=7),
    check.response_matches("First", turn=3),
    check.golden("/nowhere/answer.txt"),
]


@pytest.mark.parametrize("one", UNMADE, ids=lambda one: one.name)
def test_a_check_of_something_the_case_lacks_is_an_error(one: Check) -> None:
    """The opposite of a check must not pass because there was nothing to look at."""
    for found in map(verdict, (one, ~one, ~~one)):
        assert (found.passed, found.error != "") == (False, True)


def test_not_loading_a_reference_that_the_skill_lacks_is_an_error() -> None:
    """If the listing does not show all references, the opposite passes."""
    assert verdict(~check.reference_loaded("pdf", "orms.md")).error
    gone = check.reference_loaded("pdf", "renamed.md")
    assert verdict(gone) == Verdict(False, "references loaded: pdf/references/forms.md")
    assert verdict(~gone).error == (
        "pdf has no reference renamed.md that could be left alone; it has: references/forms.md"
    )
    unread = check.reference_loaded("pdf", "forms.md")
    listed = render([Entry("pdf", "Fills forms.", ("references/forms.md",))])
    more = render([Entry("pdf", "Fills forms.", (), more=2)])
    denied = Trace((ReferenceDenied("pdf", "../renamed.md", "not on the list"),), systems=(listed,))
    assert verdict(~gone, denied).passed, "it was asked for, so there was something to leave alone"
    for one, section in ((unread, listed), (gone, more), (gone, render([Entry("pdf", "")])), (gone, render([]))):
        assert verdict(~one, Trace(systems=(section,))).passed


@pytest.mark.parametrize(
    "make",
    [
        lambda: check.response_contains(""),
        lambda: check.response_matches(""),
        lambda: check.file_contains("a.txt", ""),
        lambda: check.file_contains("", "a"),
        lambda: check.file_unchanged(""),
        lambda: check.file_exists(""),
        lambda: check.file_matches("a.txt", ""),
        lambda: check.command_run(""),
        lambda: check.json_schema("a.json", {}),
        lambda: check.listing_contains(""),
        lambda: check.skill_loaded(""),
        lambda: check.reference_loaded("pdf", ""),
        lambda: check.tool_called(""),
        lambda: check.golden(""),
        lambda: check.response_contains("a", turn=0),
        lambda: check.response_matches("a", turn=-1),
        lambda: check.from_config("response_contains", ""),
        lambda: check.from_config("response_contains", {"text": "a", "turn": 0}),
    ],
)
def test_a_check_with_only_one_possible_result_is_refused_before_a_run(make: Callable[[], Check]) -> None:
    """Every answer contains the empty text, and there is no answer 0."""
    with pytest.raises(EvalError, match=r"is empty\. Say what|turn is (0|-1)\. The first answer is 1"):
        make()


def test_a_refused_call_does_not_count_as_made() -> None:
    """A call that failed does: it may have had an effect. The reason names both."""
    call = ToolCalled("1", "run_command", {"command": "c"})
    refused = Trace((call, ToolReturned("1", "run_command", "No.", ok=False, refused=True)))
    assert verdict(check.tool_called("run_command"), refused) == Verdict(
        False, "tools called: run_command {'command': 'c'} (refused)"
    )
    assert verdict(~check.tool_called("run_command"), refused).passed
    failed = Trace((call, ToolReturned("1", "run_command", "It broke off.", ok=False)))
    assert verdict(check.tool_called("run_command"), failed) == Verdict(
        True, "tools called: run_command {'command': 'c'} (failed)"
    )


@settings(deadline=None)  # a pattern may want a process of its own
@given(st.sampled_from([*HOLD, *MISS]))
def test_the_opposite_of_the_opposite_passes_like_the_check(one: Check) -> None:
    assert verdict(~~one).passed == verdict(one).passed


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), _JSON, max_size=4), st.data())
def test_any_part_of_the_arguments_is_a_part(arguments: dict[str, Any], data: st.DataObject) -> None:
    keys = data.draw(st.sets(st.sampled_from(sorted(arguments)))) if arguments else set()
    assert is_part({key: arguments[key] for key in keys}, arguments)
    assert is_part(arguments, arguments)


# -- patterns ---------------------------------------------------------------------------------------------------------


def test_a_pattern_that_takes_forever_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict of the check and of its opposite is an error."""
    monkeypatch.setattr("skillshelf_evals.check._search.SEARCH_SECONDS", 0.5)
    slow = check.response_matches(r"(a+)+$")
    found = verdict(slow, Trace(answers=("a" * 40 + "b",)))
    assert "took more than" in found.error
    assert verdict(~slow, Trace(answers=("a" * 40 + "b",))).error == found.error


def test_an_invalid_pattern_is_refused_before_a_run() -> None:
    with pytest.raises(EvalError, match=r"'\(' is not a regular expression"):
        check.response_matches("(")


@settings(max_examples=20, deadline=None)  # a process for each
@given(st.text(max_size=30), st.sampled_from(["a|b", "x*y", "^.?$", r"\d+\.", "(?s).*"]))
def test_a_pattern_matches_like_in_python(text: str, pattern: str) -> None:
    """Short searches run in this process, others in one that can be stopped."""
    import re

    assert verdict(check.response_matches(pattern), Trace(answers=(text,))).passed == bool(re.search(pattern, text))


# -- configuration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("skill_loaded", "pdf", "skill_loaded pdf"),
        ("skill_loaded", None, "skill_loaded demo"),
        ("reference_loaded", "forms.md", "reference_loaded demo/forms.md"),
        ("reference_loaded", {"skill": "pdf", "reference": "forms.md"}, "reference_loaded pdf/forms.md"),
        ("reference_denied", None, "reference_denied demo"),
        ("tool_called", {"name": "run", "arguments": {"a": 1}}, "tool_called run {'a': 1}"),
        ("max_tokens", 10, "max_tokens 10"),
        ("not", {"skill_loaded": "pdf"}, "not skill_loaded pdf"),
        ("not", "skill_loaded", "not skill_loaded demo"),
        ("not", {"not": {"max_tokens": 1}}, "max_tokens 1"),
    ],
)
def test_a_case_file_names_a_check_and_its_arguments(name: str, argument: Any, expected: str) -> None:
    """A mapping holds the arguments, another value is the only one, and the skill defaults to that of the case."""
    assert check.from_config(name, argument, skill="demo").name == expected


@pytest.mark.parametrize(
    ("name", "argument", "said"),
    [
        ("skil_loaded", "pdf", "there is no check 'skil_loaded'. Did you mean skill_loaded"),
        ("zzz", None, "file_contains, file_exists, file_matches, file_unchanged, golden, js"),
        ("skill_loaded", None, "skill_loaded: it is not known which skill is meant"),
        ("skill_loaded", {"nam": "pdf"}, "Its arguments: name"),
        ("response_contains", 1.5, "response_contains: text is 1.5. It must be text: put it in quotes"),
        ("response_contains", {"text": "a", "turn": "1"}, "turn is '1'. It must be a whole number"),
        ("golden", True, "golden: path is True. It must be text"),
        ("max_tokens", "many", "It must be a whole number"),
        ("max_cost", "much", "max_cost: dollars is 'much'. It must be a number"),
        ("tool_called", {"name": "run", "arguments": "x"}, "It must be a mapping"),
        ("skill_reloaded", {"name": "a", "kind": "moved"}, "It must be 'added', 'changed' or 'removed'"),
        ("judge", " ", "the rubric is empty"),
        ("not", ["a", "b"], "Give it one check"),
        ("golden", "../../etc/passwd", "leads out of"),
    ],
)
def test_a_faulty_check_in_a_case_file_says_what_would_be_right(
    name: str, argument: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(EvalError) as caught:
        check.from_config(name, argument, folder=str(tmp_path), root=str(tmp_path))
    assert said in str(caught.value)


def mentions(trace: Trace, word: str) -> Verdict:
    return Verdict(word in trace.answer)


def test_users_register_checks_by_name() -> None:
    """The names of built-in checks are taken."""
    check.register(mentions)
    made = check.register(mentions)
    assert verdict(made("wrote")).passed
    assert verdict(check.from_config("mentions", "wrote")).passed
    assert verdict(~check.from_config("mentions", {"word": "sorry"})).passed
    assert check.mentions("wrote").name == made("wrote").name == "mentions wrote"
    with pytest.raises(EvalError, match=r"mentions: word is 1\. It must be text"):
        check.from_config("mentions", 1)
    with pytest.raises(AttributeError, match="Did you mean mentions"):
        check.mention  # noqa: B018


def _judge_of_my_own(trace: Trace) -> bool:
    return True


def _takes_anything(trace: Trace, *words: str) -> bool:
    return True


@pytest.mark.parametrize(
    ("function", "name"),
    [(_judge_of_my_own, "judge"), (_judge_of_my_own, "mentions"), (_judge_of_my_own, "a b"), (_takes_anything, "any")],
)
def test_a_check_needs_a_free_name_and_named_arguments(function: Any, name: str) -> None:
    check.register(mentions)
    with pytest.raises(EvalError):
        check.register(FunctionType(function.__code__, globals(), name))


def is_short(trace: Trace, most: int) -> bool:
    return len(trace.answer) <= most


async def is_short_later(trace: Trace, most: int) -> bool:
    return len(trace.answer) <= most


@pytest.mark.parametrize("function", [is_short, is_short_later])
def test_a_registered_check_may_return_a_bool(function: Callable[..., Any]) -> None:
    """It may be async, and `not` works with it."""
    check.register(function)
    name = function.__name__
    assert verdict(check.from_config(name, 80)) == Verdict(True, "held")
    assert verdict(check.from_config(name, 8)) == Verdict(False, "did not hold")
    assert verdict(check.from_config("not", {name: 8})).passed


def test_a_check_knows_its_subject() -> None:
    """Reports need no look at its name."""
    about = (~check.reference_loaded("pdf", "forms.md")).about
    assert about == check.About("reference_loaded", "pdf", "forms.md", is_negated=True, is_of_loading=True)
    assert check.custom(is_nice).about == check.About("")


def is_nice(trace: Trace) -> bool:
    return True


@pytest.mark.parametrize("function", [lambda trace: 1 / 0, lambda trace: None, lambda trace: "yes"])
def test_a_check_that_raises_is_an_error(function: Callable[[Trace], Any]) -> None:
    assert verdict(check.custom(function, "mine")).error.startswith("The check mine failed: ")


def test_the_checks_read_a_real_trial(tmp_path: Path) -> None:
    from skillshelf_agent import ChosenModel
    from skillshelf_agent.testing import call

    skill = tmp_path / "demo"
    (skill / "references").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: demo\ndescription: Does demos.\n---\n\nSee references/a.md.\n")
    (skill / "references" / "a.md").write_text("A\n")
    model = ScriptedModel(
        call("load_skill_instructions", skill_name="demo", reference="references/a.md"),
        call("load_skill_instructions", skill_name="demo", reference="b.md"),
        call("write_file", path="out.txt", content="Hello"),
        "Written.",
    )
    case = Case("demo", (Message("/skills:demo now"),), files={"in.txt": b"In"}, skills=(str(skill),))
    trace = asyncio.run(run_trial(case, ChosenModel.from_model(model)))
    checks = [
        check.skill_invoked("demo"),
        check.skill_loaded("demo"),
        check.reference_loaded("demo", "references/a.md"),
        check.reference_denied("demo", "b.md"),
        check.listing_contains("demo"),
        check.tool_called("write_file", {"path": "out.txt"}),
        check.file_contains("out.txt", "Hello"),
        check.file_unchanged("in.txt"),
        check.file_unchanged(".skillshelf/skills/demo/SKILL.md"),
        check.response_contains("Written"),
        check.max_tokens(100_000),
        ~check.skill_reloaded("demo"),
    ]
    assert [one.name for one in checks if not verdict(one, trace).passed] == []


class Eraser(BaseSkill):
    name = "eraser"
    description = "Erases."
    instructions = "Call erase."
    category = "raw"

    @tool
    def erase(self, path: str) -> str:
        """Erase a file."""
        return path


@pytest.mark.parametrize(
    ("policy", "name", "arguments"),
    [
        ("read-only", "write_file", {"path": "out.txt", "content": "x"}),
        ("ask", "run_command", {"command": "true"}),
        ("yolo", "erase", {"path": "out.txt"}),
    ],
)
def test_the_agent_s_refusals_are_known(policy: str, name: str, arguments: dict[str, Any]) -> None:
    """Refusals of the gate and of a skill policy are marked in the events, so that a refused call does not count."""
    from skillshelf_agent import ChosenModel
    from skillshelf_agent.testing import call

    blocked = Eraser().with_policy({"erase": "blocked"})
    case = Case("refused", (Message("Go."),), code_skills=(blocked,), policy=policy)
    trace = asyncio.run(run_trial(case, ChosenModel.from_model(ScriptedModel(call(name, **arguments), "Refused."))))
    assert verdict(check.tool_called(name), trace) == Verdict(False, f"tools called: {name} {arguments} (refused)")
