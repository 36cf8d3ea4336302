"""Cases as people write them: read whole, or refused with the place, what is wrong and what would be right."""

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillshelf.errors import EvalError
from skillshelf.skills import Diagnostic
from skillshelf_agent.testing import Fail, ScriptedCall
from skillshelf_evals import Case, Edit, Message, check, find_cases, list_cases, run_trial
from skillshelf_evals._case import digest_text
from skillshelf_evals.formats._document import parse_document

FIXTURES = Path(__file__).parent / "fixtures"
GREETER = str(FIXTURES / "greeter")


def one(folder: str) -> tuple[dict[str, Case], list[Diagnostic]]:
    cases, faults = find_cases([FIXTURES / folder])
    return {case.name: case for case in cases}, list(faults)


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Reads a text as a suite of this name: its cases, and its faults as sentences."""

    def read_text(text: str, name: str = "suite.yaml") -> tuple[tuple[Case, ...], list[str]]:
        (tmp_path / name).write_text(text)
        cases, faults = find_cases([tmp_path / name])
        return cases, [f"{Path(one.path).name}:{one.line}: {one.message}. {one.fix}".rstrip() for one in faults]

    return read_text


# -- YAML -------------------------------------------------------------------------------------------------------------


def test_a_case_in_yaml_is_read_completely() -> None:
    """Files, a script, checks, and the values that its file shares."""
    case = one("greeter")[0]["greets by name"]
    path = f"{GREETER}/evals/cases.yaml"
    assert (case.turns, case.skill, case.skills, case.policy, case.tags, case.location, case.id) == (
        (Message("Greet Ada."),),
        "greeter",
        (GREETER,),
        "auto-edit",
        ("smoke",),
        f"{path}:4",
        "greeter/greets by name",
    )
    shop = b'print("shop")\n'
    assert case.files == {"people.txt": b"Ada\n", "shop.py": shop, "shop/main.py": shop}
    assert case.script == (
        ScriptedCall("load_skill_instructions", {"skill_name": "greeter"}),
        ["Just a moment.", ScriptedCall("read_file", {"path": "people.txt", "limit": 10})],
        "Hello, Ada!",
    )
    assert [check.name for check in case.checks] == [
        "skill_loaded greeter",
        "response_contains 'Hello'",
        "not tool_called write_file",
        "golden golden/hello.txt",
        "max_tokens 20000",
    ]


def test_a_case_may_have_several_turns_and_edits_between_them() -> None:
    case = one("greeter")[0]["sees an edit"]
    skill = "---\nname: greeter\ndescription: Waves.\n---\n\nWave.\n"
    assert case.turns == (
        Message("Greet Ada."),
        Edit(".skillshelf/skills/greeter/SKILL.md", skill),
        Message("/skills:greeter Bob"),
        Edit("people.txt", None),
        Message("And now?"),
    )
    assert (case.policy, case.tags) == ("yolo", ("smoke", "reload"))
    assert case.script is not None
    assert isinstance(case.script[2], Fail)
    assert (str(case.script[2].error), case.script[2].after) == ("The line is dead", "Well")


def test_a_case_from_a_file_can_be_run() -> None:
    from skillshelf_agent import ChosenModel
    from skillshelf_agent.testing import ScriptedModel

    case = one("greeter")[0]["greets by name"]
    trace = asyncio.run(run_trial(case, ChosenModel.from_model(ScriptedModel(*(case.script or ())))))
    verdicts = [asyncio.run(check.look(one, trace)) for one in case.checks]
    assert [verdict for verdict in verdicts if not verdict.passed] == []


def test_should_trigger_is_a_check() -> None:
    case = one("greeter")[0]["is left alone"]
    assert (case.should_trigger, [one.name for one in case.checks]) == (False, ["not skill_loaded greeter"])


def test_a_suite_names_its_skills_for_all_cases_or_for_one() -> None:
    first, second = one("suite")[0].values()
    assert (first.skills, first.skill, first.model) == (
        (GREETER, str(FIXTURES / "wild-triggers")),
        "greeter",
        "anthropic:claude-sonnet-5-5",
    )
    assert (second.skills, second.id) == ((str(FIXTURES / "wild-triggers"),), "minutes/other shelf")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cases: [{name: a, promt: x}]", ":1: the case has no key 'promt'. Did you mean 'prompt'?"),
        ("skils: x\ncases: []", ":1: the file has no key 'skils'. Did you mean 'skills'?"),
        ("case: []", ":1: the file has no key 'case'. Did you mean 'cases'?"),
        ("policy: yolo", ":1: it has no cases. Write `cases:` and a list of them"),
        ("", ":1: the file is None. It must be a mapping of skill, skills, code_skills, policy, model, tags, cases"),
        ("cases: x", ":1: 'cases' is 'x'. It must be a list: lines that begin with `- `"),
        ("cases:\n- x", ":2: the case is 'x'. It must be a mapping of skill, skills"),
        ("cases:\n- prompt: x", ":2: the case has no name. Write `name:` with a few words"),
        ("cases:\n- {name: a, checks: [skill_loaded: a]}", ":2: a case has either `prompt` or `turns`"),
        ("cases:\n- {name: a, prompt: ' ', checks: [skill_loaded: a]}", ":2: a message is blank"),
        ("cases:\n- {name: 1.0, prompt: x}", ":2: 'name' is 1.0. It must be text: put it in quotes"),
        ("cases:\n- {name: a, prompt: x}", ":2: the case checks nothing. Write `checks:`"),
        ("cases:\n- name: a\n  prompt: x\n  policy: yol", ":4: 'policy' is 'yol'. It must be 'ask', "),
        ("cases:\n- name: a\n  prompt: x\n  skills: [no]", ":4: there is no folder"),
        ("cases:\n- name: a\n  prompt: x\n  tags: {a: b}", ":4: 'tags' is {'a': 'b'}. It must be a list of texts"),
        ("cases:\n- name: a\n  prompt: x\n  should_trigger: yes", ":4: 'should_trigger' is 'yes'. It must be true or"),
        ("cases:\n- name: a\n  prompt: x\n  should_trigger: true", ":4: it is not known which skill should trigger"),
        ("cases:\n- name: a\n  turns:\n  - x\n  - {writ: {}}", ":5: this is not a turn. Write a text, {write:"),
        ("cases:\n- name: a\n  turns:\n  - {remove: ../x}", ":4: the path '../x' is not inside the workspace"),
        ("cases:\n- name: a\n  turns:\n  - {remove: x}", ":3: `turns` has no message"),
        ("cases:\n- name: a\n  prompt: x\n  files:\n    /etc/x: y", ":5: the path '/etc/x' is not inside"),
        ("cases:\n- name: a\n  prompt: x\n  files:\n    a: 1", ":5: the text of a file is 1. It must be text"),
        ("cases:\n- name: a\n  prompt: x\n  files:\n    a: {from: /etc/passwd}", ":5: the path '/etc/passwd' leads"),
        ("cases:\n- name: a\n  prompt: x\n  files:\n    a: {from: no.txt}", ":5: there is no file 'no.txt'. Paths in"),
        (
            "cases:\n- name: a\n  prompt: x\n  script:\n  - x\n  - {tol: x}",
            ":6: {'tol': 'x'} is not a step",
        ),
        ("cases:\n- name: a\n  prompt: x\n  checks:\n  - skill_loade: a", ":5: there is no check 'skill_loade'. Did"),
        ("cases:\n- name: a\n  prompt: x\n  checks:\n  - {a: 1, b: 2}", ":5: {'a': 1, 'b': 2} is not a check. Write"),
        ("cases:\n- name: a\n  prompt: x\n  checks:\n  - golden: ../x", ":5: the path '../x' leads out of"),
        ("cases:\n- name: a\n   prompt: x", ":3: it cannot be read as YAML: "),
        ("a: 1\na: 2", ":2: 'a' is given twice"),
        ("a: !!python/object:os.system x", ":1: the tag 'tag:yaml.org,2002:python/object:os.system' has no meaning"),
        ("a: 1\n---\nb: 2", ":2: there is a second document"),
        ("a: *b", ":1: it cannot be read as YAML: alias 'b' is not defined"),
    ],
)
def test_a_fault_in_yaml_is_reported_with_its_line_and_a_fix(read: Any, text: str, said: str) -> None:
    cases, faults = read(text)
    assert cases == ()
    assert faults[0].startswith(f"suite.yaml{said}")
    assert len(faults) == 1


def test_one_bad_case_does_not_hide_the_others(read: Any) -> None:
    rest = "prompt: x, checks: [max_tokens: 1]"
    cases, faults = read(f"cases:\n- {{name: a}}\n- {{name: b, {rest}}}\n- {{name: b, {rest}}}")
    assert [case.name for case in cases] == ["b"]
    assert [fault.split(". ")[0] for fault in faults] == [
        "suite.yaml:2: a case has either `prompt` or `turns`",
        f"suite.yaml:4: there is a case 'b' already, at {cases[0].location}",
    ]


def test_a_bomb_of_aliases_is_refused(read: Any) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert read("\n".join(lines))[1][0].startswith("suite.yaml:5: it cannot be read as YAML: more than 100000 values")
    assert "nested deeper than 64" in read("[" * 5000)[1][0]


def test_a_file_that_is_too_large_or_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_bytes(b"#" * (1024 * 1024 + 1))
    (tmp_path / "latin.yaml").write_bytes(b"cases:\n- \xe4")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "words.txt").write_text("cases: []")
    faults = [find_cases([tmp_path / name])[1] for name in ("large.yaml", "latin.yaml", "words.txt")]
    assert [(one.line, one.message) for [one] in faults] == [
        (0, "it is larger than 1024 KiB"),
        (2, "it is not UTF-8 text"),
        (0, "it is not a case file"),
    ]


# JSON escapes what is beyond as two halves, which YAML has no word for.
_TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=60)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner),
    max_leaves=20,
)


@given(_JSON)
def test_json_is_read_as_yaml_with_the_same_values(value: Any) -> None:
    assert parse_document(json.dumps(value), "") == value


@given(_JSON.filter(lambda value: not isinstance(value, str | float)))
def test_values_written_as_yaml_are_read_back(value: Any) -> None:
    import yaml

    class Quoted(yaml.SafeDumper):
        pass

    Quoted.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))
    assert parse_document(yaml.dump(value, Dumper=Quoted), "") == value


@given(st.sampled_from(["yes", "No", "on", "2026-11-15", "1_000", "0x10", "1:30", "007a", ".5", "Ada", "a: b"[:1]]))
def test_values_that_json_does_not_have_are_texts(text: str) -> None:
    """`no` is a word, and a date is read as it is written."""
    assert parse_document(f"- {text}", "") == [text]


@given(st.text(max_size=80))
def test_any_text_is_a_value_or_a_fault(text: str) -> None:
    """Nothing else is raised."""
    with suppress(EvalError):
        parse_document(text, "x.yaml")


# -- Python -----------------------------------------------------------------------------------------------------------


def test_cases_in_python_are_read() -> None:
    """The values that their file implies are filled in, and functions become checks."""
    cases, _ = one("greeter")
    path = f"{GREETER}/evals/more.py"
    ada, stored = cases["greets Ada"], cases["stored"]
    assert (ada.skill, ada.skills, ada.location) == ("greeter", (GREETER,), f"{path}:13")
    assert [one.name for one in ada.checks] == ["response_contains 'Ada'", "short"]
    assert (stored.turns, stored.location) == ((Message("Greet Eve."),), f"{path}:16")
    assert stored.checks[0].arguments["path"] == f"{GREETER}/evals/golden/hello.txt"


def test_files_may_use_checks_that_a_module_beside_them_registers() -> None:
    assert [one.name for one in one("greeter")[0]["is polite"].checks] == ["courteous please"]


def test_reading_a_module_leaves_nothing_behind() -> None:
    """There is neither a compiled file nor a new entry in sys.path."""
    before = list(sys.path)
    one("greeter")
    assert sys.path == before
    assert not list(Path(GREETER).rglob("__pycache__"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CASES = [", ":1: it is not Python: '[' was never closed"),
        ("x = 1", ":1: it has no cases. Define CASES, or a function cases(), with Case objects"),
        ("CASES = 5", ":1: its cases are int. Define CASES"),
        ("CASES = []\n\n1 / 0", ":3: it raises ZeroDivisionError: division by zero. Run it with python"),
        ("def cases():\n    raise SystemExit(3)", ":2: it raises SystemExit: 3."),
        ("import no_such_module\nCASES = []", ":1: it raises ModuleNotFoundError: No module named 'no_such_module'"),
        (
            "from skillshelf_evals import check\nCASES = [\n check.response_matches('(')]",
            ":3: '(' is not a regular",
        ),
        ("CASES = [5]", ":1: case 1 is int. Define CASES"),
        ("from skillshelf_evals import *\nCASES = [\n  Case('a', ())]", ":3: 'a' has no message"),
        ("from skillshelf_evals import *\nCASES = [\n  Case('a', (5,), (print,))]", ":3: a turn is int"),
        ("from skillshelf_evals import *\nCASES = [\n  Case('a', ('x',))]", ":3: 'a' checks nothing"),
        (
            "from skillshelf_evals import *\nCASES = [\n  Case('a', ('x',), (print,), code_skills=5)]",
            ":3: code_skills of 'a'",
        ),
        (
            "from skillshelf_evals import *\nCASES = [\n  Case('a', ('x',), (print,), skills=('no',))]",
            ":3: there is no fo",
        ),
        (
            "from skillshelf_evals import *\nCASES = [\n  Case('a', ('x',), (print,), files={'a': 1})]",
            ":3: the file 'a' is",
        ),
        (
            "from skillshelf_evals import *\nCASES = [\n  Case('a', ('x',), should_trigger=True)]",
            ":3: it is not known which",
        ),
        ("from skillshelf_evals import *\nCASES = [\n  Case('a', ('x',), (5,))]", ":3: a check is int"),
        (
            "from skillshelf_evals import *\nCASES = [\n  Case('a', ('x',), (print,), files={'../a': b''})]",
            ":3: the path '../a'",
        ),
        (
            "from skillshelf_evals import *\nCASES = [\n  Case('a', (Edit('/a', ''),), (print,))]",
            ":3: the path '/a' is not",
        ),
    ],
)
def test_a_fault_in_python_has_its_line(read: Any, text: str, said: str) -> None:
    cases, faults = read(text, "suite.py")
    assert cases == ()
    assert faults[0].startswith(f"suite.py{said}")


def test_one_bad_case_in_python_does_not_hide_the_others(read: Any) -> None:
    cases, faults = read("from skillshelf_evals import *\nCASES = [5, Case('b', ('x',), (print,))]", "suite.py")
    assert ([case.name for case in cases], len(faults)) == (["b"], 1)


# -- what other tools write -------------------------------------------------------------------------------------------


def test_an_evals_json_is_read_as_it_is() -> None:
    """Sentences go to a judge, files come from the skill's folder, and keys of other tools are reported."""
    cases, notes = one("wild-expectations")
    first, second, third = cases.values()
    path = f"{FIXTURES}/wild-expectations/evals/evals.json"
    assert [(note.severity, note.code, note.message) for note in notes] == [
        ("info", "case-note", "these fields of the file are not used: notes"),
        ("info", "case-note", "no check uses these fields: expected_output (1 case), assertions[].kind (1 case)"),
    ]
    assert (first.id, first.location) == ("sales-figures/evals 1", f"{path}:7")
    assert first.files == {"evals/files/sales.csv": b"month,sold\nJan,8\nFeb,10\nMar,12\n"}
    assert [one.name for one in first.checks] == [
        "judge 'The answer names March'",
        "judge 'The answer has the figure 12'",
    ]
    assert (second.name, second.location) == ("sum-of-months", f"{path}:15")
    assert [one.name for one in second.checks] == ["judge 'The answer is 30'"]
    assert (third.name, third.skills) == ("only-expected", (str(FIXTURES / "wild-expectations"),))
    assert [one.name for one in third.checks] == ["judge 'The outcome is as described here: January'"]


def test_each_query_of_a_trigger_set_is_a_case() -> None:
    cases, faults = one("wild-triggers")
    path = f"{FIXTURES}/wild-triggers/evals/trigger-eval.json"
    assert [fault.message for fault in faults] == ["no check uses these fields: note (1 case)"]
    first, second = (f"minutes/trigger-eval {digest_text(case.prompt)}" for case in cases.values())
    assert [(case.id, case.should_trigger, case.location, case.checks[0].name) for case in cases.values()] == [
        (first, True, f"{path}:2", "skill_loaded minutes"),
        (second, False, f"{path}:3", "not skill_loaded minutes"),
    ]


def test_a_query_is_known_by_its_text_wherever_it_stands(write: Callable[..., Path]) -> None:
    def read(*queries: str) -> dict[str, str]:
        entries = [{"query": query, "should_trigger": True} for query in queries]
        skill = write("pdf", evals__triggers_json=json.dumps(entries)).parent
        return {case.prompt: case.id for case in find_cases([skill])[0]}

    before = read("Read the csv.", "Tell a joke.")
    after = read("A new one.", "Tell a joke.", "Read the csv.")
    assert before.items() <= after.items()
    assert len(set(after.values())) == 3


def test_a_query_that_is_written_twice_runs_once(write: Callable[..., Path]) -> None:
    entries = [{"query": "x", "should_trigger": True}, {"query": "x", "should_trigger": True}]
    skill = write("pdf", evals__triggers_json=json.dumps(entries)).parent
    [case], [note] = find_cases([skill])
    assert (note.severity, note.code) == ("warning", "case-twice")
    assert f"this case is also at {case.location}; it is run once" in note.message
    entries[1]["should_trigger"] = False
    write("pdf", evals__triggers_json=json.dumps(entries))
    assert [note.severity for note in find_cases([skill])[1]] == ["error"], "it cannot be both"


def test_the_skill_is_found_by_its_name_beside_the_file() -> None:
    """In a collection, the evals may be at the top."""
    [case] = one("wild-collection")[0].values()
    assert (case.id, case.skills) == ("reports/evals 0", (str(FIXTURES / "wild-collection/skills/reports"),))


def test_a_json_file_may_hold_a_single_case(read: Any, tmp_path: Path) -> None:
    """Some guides write it so, with the skill in a list."""
    (tmp_path / "pdf").mkdir()
    (tmp_path / "pdf" / "SKILL.md").write_text("---\nname: pdf\ndescription: PDFs.\n---\n\nDo.\n")
    [case], faults = read('{"skills": ["pdf"], "query": "Read it.", "expected_behavior": ["It reads"]}', "one.json")
    assert (case.id, [one.name for one in case.checks], faults) == (
        f"pdf/one {digest_text('Read it.')}",
        ["judge 'It reads'"],
        [],
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{", "1: it is not JSON: "),
        ("[" * 100_000, "1: it cannot be read as JSON: it is nested too deeply"),
        ('{"results": 1}', '1: it has no cases. Write {"evals": '),
        ('[\n{"query": "x"}]', "2: the case checks nothing"),
        ('[\n{"query": "x", "should_trigger": "yes"}]', "2: should_trigger is 'yes'. It must be true or false"),
        ('[{"query": "x", "should_trigger": true}]', "1: it is not known which skill should trigger"),
        ('{"evals": [{"id": 1}]}', "1: case 1 has no prompt"),
        ('{"skill_name": "none", "evals": [{"prompt": "x"}]}', "1: the skill 'none' is not found near the file"),
        ('[{"prompt": "x", "files": ["no.csv"], "assertions": ["y"]}]', "1: there is no file 'no.csv'"),
        ('[{"prompt": "x", "files": ["/etc/passwd"], "assertions": ["y"]}]', "1: the path '/etc/passwd' is not inside"),
        ('[{"prompt": "x", "files": "a", "assertions": ["y"]}]', "1: files is 'a'. It must be a list of paths"),
        ('[{"prompt": "x", "assertions": [5]}]', "1: assertions has 5. Each item must be a sentence"),
    ],
)
def test_a_fault_in_json_is_reported_with_its_line(read: Any, value: str, said: str) -> None:
    cases, faults = read(value, "set.json")
    assert cases == ()
    assert faults[0].startswith(f"set.json:{said}")


# -- where they are ---------------------------------------------------------------------------------------------------


def test_the_cases_of_all_skills_below_a_folder_are_found() -> None:
    """Each file is read once, however many paths lead to it."""
    cases, faults = find_cases([FIXTURES, GREETER, f"{GREETER}/evals", f"{GREETER}/evals/cases.yaml"])
    assert {case.skill for case in cases} == {"greeter", "sales-figures", "minutes", "reports"}
    assert len({case.id for case in cases}) == len(cases)
    assert [fault for fault in faults if fault.severity == "error"] == []


def test_other_files_beside_the_cases_are_ignored() -> None:
    """A grader is not run, and results are not cases."""
    faults = one("greeter")[1]
    assert {(Path(one.path).name, one.severity, one.code) for one in faults} == {
        ("grader.py", "info", "no-cases"),
        ("results.json", "info", "no-cases"),
    }


def test_cases_whose_skill_is_gone_are_an_error(write: Callable[..., Path], tmp_path: Path) -> None:
    """Left out, they would leave the exit code at 0. A suite that names its skills may be anywhere."""
    text = "cases: [{name: a, prompt: x, checks: [response_contains: x]}]"
    for name in ("here", "gone"):
        skill = write(f"skills/{name}", evals__cases_yaml=text)
    skill.unlink()
    cases, [fault] = find_cases([tmp_path])
    assert [case.id for case in cases] == ["here/a"]
    assert (fault.severity, fault.message) == (
        "error",
        f"these cases belong to no skill: there is no SKILL.md in {skill.parent}",
    )
    (skill.parent / "evals" / "cases.yaml").write_text(
        f"skills: [../../here]\nskill: here\n{text.replace(': a', ': b')}"
    )
    assert [case.id for case in find_cases([tmp_path])[0]] == ["here/b", "here/a"]


def test_one_bad_entry_does_not_hide_a_trigger_set(write: Callable[..., Path]) -> None:
    entries = [{"query": "x", "should_trigger": True}, {"q": "y", "should_trigger": True}, {"query": " ", "note": "z"}]
    skill = write("pdf", evals__triggers_json="[\n" + ",\n".join(map(json.dumps, entries)) + "\n]").parent
    cases, faults = find_cases([skill])
    assert [case.turns for case in cases] == [(Message("x"),)]
    assert [(fault.line, fault.message) for fault in faults] == [
        (3, "case 2 has no prompt"),
        (4, "case 3 has no prompt"),
    ]


def test_a_folders_own_case_files_are_read_too(write: Callable[..., Path], tmp_path: Path) -> None:
    """Other files in it are ignored."""
    text = "cases: [{name: NAME, prompt: x, checks: [response_contains: x]}]"
    write("skills/pdf", evals__cases_yaml=text.replace("NAME", "below"))
    (tmp_path / "top.yaml").write_text(text.replace("NAME", "top"))
    (tmp_path / "compose.yaml").write_text("services: {{ broken")
    (tmp_path / "playbook.yml").write_text("- hosts: all\n")
    (tmp_path / "matrix.yaml").write_text("cases: {a: 1}\n")
    (tmp_path / "queries.json").write_text('[{"query": "SELECT 1"}]')
    (tmp_path / "prompt.json").write_text('{"prompt": "x", "input": "y"}')
    (tmp_path / "cases.py").write_text("CASES = [1 / 0]\n")
    cases, faults = find_cases([tmp_path])
    assert ([case.name for case in cases], faults) == (["top", "below"], ())


def test_an_empty_list_of_cases_is_reported(write: Callable[..., Path]) -> None:
    skill = write("pdf", evals__a_yaml="cases: []", evals__b_py="CASES = []").parent
    assert [(Path(one.path).name, one.code, one.severity) for one in find_cases([skill])[1]] == [
        ("b.py", "no-cases", "warning"),
        ("a.yaml", "no-cases", "warning"),
    ]


def test_two_skills_in_folders_of_one_name_are_refused(read: Any, write: Callable[..., Path]) -> None:
    """They would be the same folder of the workspace."""
    write("a/pdf")
    write("b/pdf")
    _, faults = read("skills: [a, b/pdf]\ncases: [{name: a, prompt: x, checks: [response_contains: x]}]")
    assert "would be the same folder of the workspace" in faults[0]


def test_a_missing_path_raises_an_exception(tmp_path: Path) -> None:
    """It is the caller's fault, not that of a file."""
    with pytest.raises(EvalError, match=r"there is no .*nowhere"):
        find_cases([tmp_path / "nowhere"])


def test_a_folder_without_cases_gives_no_fault(tmp_path: Path) -> None:
    assert find_cases([tmp_path]) == ((), ())


def test_reading_cases_imports_no_model_library() -> None:
    """They take seconds to import."""
    import subprocess

    code = "import sys; from skillshelf_evals import find_cases; find_cases(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(FIXTURES / "suite")], capture_output=True, text=True, check=True
    )
    assert "pydantic_ai" not in done.stdout.split()


def test_an_emoji_that_json_writes_in_two_halves_may_be_a_key(read: Any) -> None:
    """JSON is YAML, and many writers of JSON escape characters beyond the first plane as surrogate pairs."""
    cases, faults = read(
        '{"cases": [{"name": "a", "prompt": "x", "files": {"\\ud83d\\ude00.txt": "hi"}, '
        '"checks": [{"response_contains": "x"}]}]}'
    )
    assert faults == []
    assert list(cases[0].files) == ["😀.txt"]


# -- typos -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check_line", "said"),
    [
        (
            "skill_loaded: csv-claen",
            "there is no skill 'csv-claen' on the shelf of this case. Did you mean 'csv-clean'?",
        ),
        ("not: {skill_loaded: zzz}", "there is no skill 'zzz' on the shelf of this case. It has csv-clean"),
        ("skill_invoked: csv_clean", "Did you mean 'csv-clean'?"),
        ("reference_loaded: formt.md", "csv-clean has no reference 'formt.md'. Did you mean 'references/format.md'?"),
        ("not: {reference_loaded: x.md}", "csv-clean has no reference 'x.md'. It has references/format.md"),
        ("reference_denied: {skill: csv, reference: x}", "there is no skill 'csv' on the shelf"),
    ],
)
def test_a_check_of_a_skill_or_reference_that_is_not_there_is_refused(
    write: Callable[..., Path], check_line: str, said: str
) -> None:
    """The line is that of the check. Nothing is run, so nothing is paid for."""
    text = f"cases:\n- name: a\n  prompt: x\n  checks:\n  - response_contains: x\n  - {check_line}\n"
    body = "See references/format.md.\n"
    skill = write("csv-clean", body=body, references__format_md="# F\n", evals__cases_yaml=text).parent
    cases, [fault] = find_cases([skill])
    assert cases == ()
    assert (fault.severity, fault.line) == ("error", 6)
    assert said in f"{fault.message}. {fault.fix}"
    assert list_cases([skill])[1] == (fault,)


@pytest.mark.parametrize(
    "case",
    [
        "{prompt: Make the skill new-one., checks: [skill_reloaded: new-one]}",
        "{prompt: x, script: [{tool: write_file, arguments: {path: new-one/a}}, y], checks: [skill_loaded: new-one]}",
        "{turns: [x, {write: {.skillshelf/skills/a/SKILL.md: 'name: new'}}, y], checks: [skill_reloaded: a]}",
        '{prompt: x, files: {a/SKILL.md: "---\\nname: new-one\\n---"}, checks: [skill_loaded: new-one]}',
        "{prompt: Read secret.txt, checks: [not: {reference_loaded: secret.txt}]}",
        "{prompt: x, checks: [reference_denied: secret.txt, listing_contains: nothing]}",
        "{prompt: x, checks: [reference_loaded: format.md, reference_loaded: references/format.md]}",
    ],
)
def test_a_name_that_the_case_itself_mentions_may_come_to_be(write: Callable[..., Path], case: str) -> None:
    text = f"cases:\n- {case.replace('{', '{name: a, ', 1)}\n"
    body = "See references/format.md.\n"
    skill = write("csv-clean", body=body, references__format_md="# F\n", evals__cases_yaml=text).parent
    assert [note.message for note in find_cases([skill])[1]] == []


def test_all_faulty_checks_of_a_case_are_reported_together(write: Callable[..., Path]) -> None:
    text = "cases:\n- name: a\n  prompt: x\n  checks:\n  - skill_loaded: csv-claen\n  - max_tokens: many\n  - judg: x\n"
    skill = write("csv-clean", evals__cases_yaml=text).parent
    cases, faults = find_cases([skill])
    assert (cases, [fault.line for fault in faults]) == ((), [5, 6, 7])


def test_the_skill_under_test_must_be_on_the_shelf(write: Callable[..., Path], tmp_path: Path) -> None:
    write("skills/csv-clean")
    (tmp_path / "suite.yaml").write_text(
        "skills: [skills]\ncases:\n- {name: a, prompt: x, skill: csv-claen, should_trigger: true}\n"
    )
    [fault] = find_cases([tmp_path / "suite.yaml"])[1]
    assert (fault.line, fault.fix) == (3, "Did you mean 'csv-clean'?")


def test_the_only_skill_of_a_folder_is_the_skill_under_test(write: Callable[..., Path], tmp_path: Path) -> None:
    """With a second one, a check has to say which skill it means, and the fault says where to write it."""
    write("skills/pdf")
    suite = tmp_path / "suite.yaml"
    suite.write_text("skills: [skills]\ncases: [{name: a, prompt: x, checks: [skill_loaded]}]\n")
    [case], notes = find_cases([suite])
    assert (case.skill, notes) == ("pdf", ())

    write("skills/docx")
    [fault] = find_cases([suite])[1]
    assert "not known which skill is meant" in fault.message
    assert "`skill: NAME`" in fault.fix


def test_typos_in_python_cases_are_found_too(write: Callable[..., Path]) -> None:
    text = "from skillshelf_evals import *\nCASES = [Case('a', ('x',), (check.skill_loaded('csv-claen'),))]\n"
    skill = write("csv-clean", evals__cases_py=text).parent
    [fault] = find_cases([skill])[1]
    assert (fault.line, fault.fix) == (2, "Did you mean 'csv-clean'?")
