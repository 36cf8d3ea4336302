"""The eval files of other tools: each field is a check or a note, and a file loads whole."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from benchmarks.eval_files import load_files
from skillshelf.skills import Diagnostic
from skillshelf_evals import Case, find_cases
from skillshelf_evals._case import digest_text
from skillshelf_evals.formats._json_values import EntryValues

Read = Callable[..., tuple[list[Case], list[Diagnostic]]]


def make_skill(folder: Path, name: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name or folder.name}\ndescription: Does it.\n---\n\nDo it.\n")
    return folder


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a value as the evals.json of the skill `pdf`, which is beside the skill `docx`."""
    skill = make_skill(tmp_path / "skills/pdf")
    make_skill(tmp_path / "skills/docx")
    (skill / "evals").mkdir()

    def read_value(value: Any) -> tuple[list[Case], list[Diagnostic]]:
        path = skill / "evals/evals.json"
        path.write_text(json.dumps(value, indent=1))
        cases, notes = find_cases([path])
        return list(cases), list(notes)

    return read_value


def check_names(case: Case) -> list[str]:
    return [check.name for check in case.checks]


@pytest.mark.parametrize("place", ["evals.json", "evals/evals.json"])
def test_the_evals_of_a_plugin_are_found_beside_its_skills(tmp_path: Path, place: str) -> None:
    """In a marketplace of plugins, too. A case names its skill, or is about the only one there is."""
    for plugin, skills in (("office", ("pdf", "docx")), ("single", ("csv",))):
        for skill in skills:
            make_skill(tmp_path / "plugins" / plugin / "skills" / skill)
        file = tmp_path / "plugins" / plugin / place
        file.parent.mkdir(exist_ok=True)
        named = {"skill_name": skills[0]} if plugin == "office" else {}
        file.write_text(json.dumps({**named, "evals": [{"prompt": "Do it.", "expectations": ["It is done."]}]}))
    (tmp_path / "other").mkdir()
    (tmp_path / "other/evals.json").write_text('{"evals": [{"prompt": "No.", "expectations": ["No."]}]}')

    for top in (tmp_path, tmp_path / "plugins"):
        cases, notes = find_cases([top])
        assert ([case.skill for case in cases], notes) == (["pdf", "csv"], ())


def test_a_question_with_its_ground_truth_skill_and_script_is_read(read: Read) -> None:
    entry = {
        "id": "fills",
        "question": "Fill in the form.",
        "expected_skill": "pdf",
        "expected_script": "scripts/fill.py",
        "ground_truth": "It runs fill.py.",
        "expected_behavior": ["It read the form first"],
    }
    [case], notes = read([entry])
    assert (case.id, case.prompt, case.should_trigger, notes) == ("pdf/fills", "Fill in the form.", True, [])
    assert check_names(case) == [
        "skill_loaded pdf",
        "command_run 'fill.py'",
        "judge 'It read the form first'",
        "judge 'The answer agrees with this reference answer: It runs fill.py.'",
    ]


@pytest.mark.parametrize("none", [None, "", "none", "None"])
def test_no_expected_skill_means_that_the_skill_must_not_be_loaded(read: Read, none: str | None) -> None:
    entry = {"id": "joke", "question": "A joke?", "expected_skill": none, "expected_script": none}
    [case], notes = read([entry])
    assert (case.should_trigger, check_names(case), notes) == (False, ["not skill_loaded pdf"], [])


def test_another_expected_skill_joins_the_shelf(read: Read) -> None:
    [case], notes = read([{"id": "letter", "question": "Write a letter.", "expected_skill": "docx"}])
    assert [Path(folder).name for folder in case.skills] == ["pdf", "docx"]
    assert (check_names(case), notes) == (["not skill_loaded pdf", "skill_loaded docx"], [])


def test_an_expected_skill_that_is_not_there_decides_nothing(read: Read) -> None:
    """It may be the skill itself under an earlier name, and then the opposite would be checked."""
    entry = {"id": "a", "question": "x", "expected_skill": "old-pdf", "ground_truth": "y"}
    [case], [note] = read([entry])
    assert (case.should_trigger, len(case.checks)) == (None, 1)
    assert (note.severity, note.line) == ("info", 4)
    assert note.message == "the skill 'old-pdf' is not found near the file, so whether it is loaded is not checked"


def test_should_trigger_counts_if_it_contradicts_the_expected_skill(read: Read) -> None:
    [case], [note] = read([{"id": "a", "query": "x", "expected_skill": "pdf", "should_trigger": False}])
    assert check_names(case) == ["not skill_loaded pdf"]
    assert note.message == "expected_skill is 'pdf', but should_trigger is false, and counts"


@pytest.mark.parametrize("key", ["evals", "cases", "queries", "test_cases", "tests", "items", "scenarios"])
def test_cases_may_be_listed_under_many_names(read: Read, key: str) -> None:
    [case], notes = read({"skill": "pdf", key: [{"query": "x", "expected": True}]})
    assert (check_names(case), notes) == (["skill_loaded pdf"], [])


@pytest.mark.parametrize(
    ("word", "should_trigger"),
    [(True, True), ("trigger", True), (False, False), ("NO_TRIGGER", False), ("do not trigger", False)],
)
def test_expected_may_say_whether_the_skill_is_loaded(read: Read, word: bool | str, should_trigger: bool) -> None:
    [case], notes = read({"items": [{"query": "x", "expected": word}]})
    assert (case.should_trigger, len(case.checks), notes) == (should_trigger, 1, [])


def test_expected_may_be_the_outcome(read: Read) -> None:
    [case], notes = read({"items": [{"input": "x", "expected": "A form"}]})
    assert (check_names(case), notes) == (["judge 'The outcome is as described here: A form'"], [])


@pytest.mark.parametrize("wrap", [lambda lists: lists, lambda lists: [lists], lambda lists: {"trigger_tests": lists}])
def test_lists_of_queries_that_should_and_should_not_trigger(read: Read, wrap: Callable[[Any], Any]) -> None:
    lists = {"should_trigger": ["Fill it in.", {"request": "Sign it."}], "should_not_trigger": ["2 + 2?"]}
    cases, notes = read(wrap(lists))
    assert [(case.prompt, case.should_trigger) for case in cases] == [
        ("Fill it in.", True),
        ("Sign it.", True),
        ("2 + 2?", False),
    ]
    assert cases[0].id == f"pdf/evals {digest_text('Fill it in.')}"
    assert len({case.location for case in cases}) == 3, "each has its own line"
    assert notes == []


def test_a_file_may_hold_cases_and_lists_of_queries(read: Read) -> None:
    triggers = {"should_trigger": ["Sign it."], "reason": "why not"}
    cases, notes = read({"evals": [{"id": 1, "prompt": "x", "assertions": ["y"]}], "triggers": triggers})
    assert [case.prompt for case in cases] == ["x", "Sign it."]
    assert [note.message for note in notes] == ["no check uses these fields: reason (1 case)"]


def test_files_may_be_folders(read: Read, tmp_path: Path) -> None:
    folder = tmp_path / "skills/pdf/evals/files/forms"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("A")
    (folder / "b.txt").symlink_to("/etc/passwd")
    [case], notes = read([{"prompt": "x", "files": ["evals/files/"], "assertions": ["y"]}])
    assert (case.files, notes) == ({"evals/files/forms/a.txt": b"A"}, [])
    assert read([{"prompt": "x", "files": ["../docx/SKILL.md"], "assertions": ["y"]}])[0] == []


def test_references_artefacts_and_forbidden_acts_are_checked(read: Read, tmp_path: Path) -> None:
    reference = tmp_path / "skills/pdf/references/forms.md"
    reference.parent.mkdir()
    reference.write_text("# Forms\n")
    skill = tmp_path / "skills/pdf/SKILL.md"
    skill.write_text(skill.read_text() + "\nSee references/forms.md.\n")
    entry = {"prompt": "x", "tags": "smoke", "category": "forms", "must_not": ["Change the original"]}
    entry |= {"expected_references": ["references/forms.md"], "required_artifacts": ["out/*.pdf"]}
    [case], notes = read([entry])
    assert (case.tags, notes) == (("smoke", "forms"), [])
    assert check_names(case) == [
        "reference_loaded pdf/references/forms.md",
        "file_exists out/*.pdf",
        "not judge 'The assistant did this: Change the original'",
    ]
    cases, [fault] = read([entry | {"expected_references": ["references/form.md"]}])
    assert (cases, fault.severity, fault.fix) == ([], "error", "Did you mean 'references/forms.md'?")


def test_other_skills_that_a_case_names_join_the_shelf(read: Read) -> None:
    entry = {"query": "x", "skills": ["docx", "pdf", "gone"], "should_trigger": True}
    [case], [note] = read([entry])
    assert (case.skill, [Path(folder).name for folder in case.skills]) == ("pdf", ["pdf", "docx"])
    assert note.message == "the skill 'gone' is not found near the file, so it is not on the shelf"


def test_a_skill_is_found_by_its_name_and_never_by_a_path(read: Read) -> None:
    [case], [note] = read([{"query": "x", "expected_skill": "../docx", "assertions": ["y"]}])
    assert [Path(folder).name for folder in case.skills] == ["pdf"]
    assert "'../docx' is not found" in note.message


def test_no_field_is_ignored_without_a_note(read: Read) -> None:
    entry: dict[str, Any] = {
        "prompt": "x",
        "expected_output": "A form",
        "expectation": "y",
        "why_tricky": "z",
        "empty": None,
    }
    entry |= {"assertions": [{"text": "y", "type": "contains"}]}
    [case], notes = read({"skill_name": "other", "version": 1, "evals": [entry]})
    assert check_names(case) == ["judge 'y'"]
    assert [note.message for note in notes] == [
        "these fields of the file are not used: version",
        "the case names the skill 'other', but is about 'pdf'",
        "no check uses these fields: expected_output (1 case), expectation (1 case), why_tricky (1 case), "
        "assertions[].type (1 case)",
    ]
    assert notes[-1].fix == "If 'expectation' is a typo, write 'expectations'"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"question": " "}, "case 1 has no prompt"),
        ({"question": "x", "ground_truth": 5}, "ground_truth is 5"),
        ({"question": "x", "expected_skill": 5}, "expected_skill is 5"),
        ({"question": "x", "expected_skill": ["pdf", 5]}, "expected_skill has 5"),
        ({"question": "x", "must_not": [{}]}, "must_not has {}"),
        ({"question": "x", "should_trigger": 1}, "should_trigger is 1"),
        ({"question": "x", "expected_script": None}, "the case checks nothing"),
        (5, "case 1 has no prompt"),
    ],
)
def test_a_field_of_the_wrong_type_is_an_error(read: Read, entry: Any, said: str) -> None:
    cases, [fault] = read([entry])
    assert (cases, fault.severity, fault.message) == ([], "error", said)


KEYS = [*EntryValues.model_fields, "query", "question", "expected", "skill_name", "evals", "should_not_trigger", "odd"]
TEXTS = st.sampled_from(["", " ", "x", "pdf", "docx", "none", "..", "a/b", "a\0b", "\ud800", "evals/evals.json"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_any_value_is_read_or_refused_with_a_reason(read: Read, value: Any) -> None:
    cases, notes = read(value)
    assert cases or notes
    assert all(case.checks for case in cases)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(st.from_regex("[a-z]{1,8}_[a-z]{1,8}", fullmatch=True), st.integers(1), max_size=9))
def test_each_field_that_is_not_known_is_named(read: Read, fields: dict[str, int]) -> None:
    assume(not fields.keys() & set(KEYS))
    [_], notes = read([{**fields, "query": "x", "should_trigger": True}])
    named = " ".join(note.message for note in notes)
    assert all(f"{field} (1 case)" in named for field in fields)


def test_a_set_at_the_top_of_a_repository_is_about_its_only_skill(tmp_path: Path) -> None:
    make_skill(tmp_path / "plugin/skills/pdf")
    (tmp_path / "evals/files").mkdir(parents=True)
    (tmp_path / "evals/files/a.txt").write_text("A")
    entry = {"query": "x", "should_trigger": True, "files": ["evals/files/a.txt"]}
    path = tmp_path / "evals/triggers.json"
    path.write_text(json.dumps([entry]))
    [case], notes = find_cases([tmp_path])
    assert (case.skill, case.files, notes) == ("pdf", {"evals/files/a.txt": b"A"}, ())

    make_skill(tmp_path / "plugin/skills/docx")
    cases, faults = find_cases([path])
    assert cases == ()
    assert "it is not known which skill should trigger" in [fault.message for fault in faults]


@pytest.mark.parametrize("name", ["triggers.json", "evals/triggers.json"])
def test_a_set_that_lies_elsewhere_is_about_the_given_skill(tmp_path: Path, name: str) -> None:
    skill = make_skill(tmp_path / "skills/pdf")
    make_skill(tmp_path / "skills/docx")
    path = tmp_path / "elsewhere" / name
    path.parent.mkdir(parents=True)
    path.write_text('[{"query": "x", "should_trigger": true}]')
    [case], notes = find_cases([path], skill_folder=skill)
    assert (case.skill, case.skills, notes) == ("pdf", (str(skill),), ())


def test_a_suite_for_a_given_skill_still_reads_its_own_files(tmp_path: Path) -> None:
    skill = make_skill(tmp_path / "skills/pdf")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "a.txt").write_text("A")
    text = "cases: [{name: a, prompt: x, files: {b.txt: {from: a.txt}}, checks: [skill_loaded]}]"
    (suite / "cases.yaml").write_text(text)
    [case], notes = find_cases([suite], skill_folder=skill)
    assert (case.id, case.files, check_names(case), notes) == ("pdf/a", {"b.txt": b"A"}, ["skill_loaded pdf"], ())


def test_data_of_questions_and_answers_is_not_taken_for_cases(tmp_path: Path) -> None:
    (tmp_path / "squad.json").write_text('[{"question": "Who?", "ground_truth": "Ada", "input": "x"}]')
    assert find_cases([tmp_path]) == ((), ())


def test_the_share_of_files_that_load_whole_is_counted(tmp_path: Path) -> None:
    files = {
        "good.json": {"skill_name": "pdf", "evals": [{"prompt": "x", "files": ["a/b.txt"], "assertions": ["y"]}]},
        "partly.json": [{"query": "x", "should_trigger": True}, {"query": "", "should_trigger": True}],
        "results.json": {"results": []},
    }
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value))
    loaded = list(load_files(tmp_path, stand_in=True))
    assert [(Path(file.path).name, file.cases, file.is_whole) for file in loaded] == [
        ("good.json", 1, True),
        ("partly.json", 1, False),
        ("results.json", 0, False),
    ]
