"""`skillshelf eval choose`: the best of several descriptions, judged on held-out queries."""

import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from evals.processes import Child, count_responses, model_options
from evals.provider import Provider
from evals.run_kit import outcome
from skillshelf.errors import EvalError
from skillshelf.evals import make_variants, read_current_skill, select_queries
from skillshelf.evals._case import digest_text
from skillshelf.evals._descriptions import find_majority
from skillshelf.evals.formats import find_cases
from skillshelf.evals.stats import choose_best
from skillshelf.skillmd import read

pytest.importorskip("dbos", reason="the extra `evals` is not installed")
sys.path.append(str(Path(__file__).parents[2] / "examples"))
from stand_in import StandIn

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]
TASKS = ("merge", "rotate", "split", "stamp")
CURRENT = "Does things with documents."
BETTER = "Use it to merge, rotate, split or stamp PDFs."
GREEDY = "Use it to merge, to rotate, to bake and to sew."


@pytest.fixture
def model() -> Iterator[list[str]]:
    """The options for a model that loads a skill whose description has the word for the task."""
    stand_in = StandIn(dict.fromkeys([*TASKS, "bake", "sew"], "pdf"))
    yield ["--base-url", stand_in.url, "--model", "stand-in"]
    stand_in.close()


@pytest.fixture
def skill(write: Write, tmp_path: Path) -> Callable[..., Path]:
    """Writes a skill with a trigger set, and descriptions to choose from."""

    def write_all(*descriptions: Any, queries: dict[str, bool] | None = None) -> Path:
        folder = write("skills/pdf", CURRENT, references__a_md="# A\n").parent
        (folder / "evals").mkdir(exist_ok=True)
        asked = {f"{task} file {at}": True for task in TASKS for at in range(3)} if queries is None else queries
        if queries is None:
            asked |= {f"{task} number {at}": False for task in ("bake", "sew") for at in range(2)}
        triggers = [{"query": query, "should_trigger": should} for query, should in asked.items()]
        (folder / "evals" / "triggers.json").write_text(json.dumps(triggers))
        (tmp_path / "new.yaml").write_text(yaml.safe_dump(list(descriptions)))
        return folder

    return write_all


CHOOSE = ("eval", "choose", "skills/pdf", "--descriptions", "new.yaml")


def told(run: Run, *words: str) -> dict[str, Any]:
    code, out, said = run(*CHOOSE, "--json", *words)
    assert code == 0, out + said
    found: dict[str, Any] = json.loads(out)["statistics"]
    return found


def test_a_clearly_better_description_wins(run: Run, skill: Callable[..., Path], model: list[str]) -> None:
    """The scores are honest, the result can be pasted into the file, and the skill stays as it is."""
    folder = skill(GREEDY, BETTER)
    before = (folder / "SKILL.md").read_text()
    code, out, said = run(*CHOOSE, *model, "--report", "out")
    assert code == 0, out + said
    assert said.startswith("skillshelf: 48 live trials, estimated at about ")
    shown = " ".join(out.split())
    assert "1 current 13 2/8 2/8 25% [" in shown
    assert "] Does things with documents. 2 " in shown
    assert "3 best 19 8/8 8/8 100% [" in shown
    assert "Description 3 is the best on the 8 queries to choose by: right on 8. On the 8 held out" in shown
    assert "Over all 16, corrected for the choice: 100% [" in shown
    assert "on those held out: +75 pp [" in shown
    assert "p 0.031, better beyond chance." in shown
    assert f"\ndescription: {BETTER}\n" in out
    assert (folder / "SKILL.md").read_text() == before


def test_the_current_description_wins_a_tie(run: Run, skill: Callable[..., Path], model: list[str]) -> None:
    skill("Draws.", "Paints.")
    code, out, _ = run(*CHOOSE, *model)
    assert code == 0
    assert "The current description is the best" in out
    assert "right on 2, like 2 of the others; a tie changes nothing." in out
    assert "Keep yours: no other description did better." in out
    assert "description: " not in out


def test_a_description_that_is_better_by_chance_is_not_recommended(
    run: Run, skill: Callable[..., Path], model: list[str]
) -> None:
    """Two held-out queries can never settle it, so nothing is printed for the SKILL.md."""
    queries = {"merge": True, "merge all": True, "bake": False, "sew": False}
    skill("Can merge.", queries=queries)
    code, out, _ = run(*CHOOSE, *model)
    assert (code, "description: " in out) == (0, False)
    assert "which may be chance" in out
    assert "Keep yours: description 2 is not better beyond chance." in out
    assert told(run, *model)["recommended"] == 1


def test_the_numbers_are_those_of_choose_best(run: Run, skill: Callable[..., Path], model: list[str]) -> None:
    """The scores are those of each description's own run, which is a run like any other."""
    queries = {"merge": True, "merge all": True, "split": True, "split all": True, "bake": False, "sew": False}
    skill("Can merge and bake.", "Can split and merge.", "Can sew.", queries=queries)
    found = told(run, *model, "--repeat", "2", "--report", "out")
    scores, asked, kinds = {}, [], []
    for number in range(1, 5):
        plain = json.loads(Path("out", f"description-{number}", "run.json").read_text())
        asked = [case["prompt"] for case in plain["cases"]]
        kinds = [case["should_trigger"] for case in plain["cases"]]
        passed = {case["id"]: 0 for case in plain["cases"]}
        for one in plain["outcomes"]:
            passed[one["case"]] += one["status"] == "passed"
        scores[str(number)] = [times == 2 for times in passed.values()]
    choice = choose_best(scores, asked, kinds)
    assert [one["scores"] for one in found["descriptions"]] == list(scores.values())
    assert str(found["best"]) == choice.best
    assert found["held_out"]["passed"] == choice.held_out.passed
    assert found["corrected"]["value"] == choice.corrected
    assert found["corrected"]["interval"] == {
        "low": choice.corrected_interval.low,
        "high": choice.corrected_interval.high,
    }
    assert (found["naive"]["value"], found["flattery"]) == (choice.naive.value, choice.flattery)
    held = [query["case"] for query in found["queries"] if query["part"] == "held_out"]
    assert held == [found["queries"][at]["case"] for at in choice.held_out_queries]
    code, out, _ = run("eval", "compare", "out/description-1", "out/description-2")
    assert (code, "on 6 cases" in out) == (0, True), "bake is lower, which may be chance"
    code, _, _ = run("eval", "compare", "out/description-1", "out/description-2", "--gate", "no-new-failures")
    assert code == 1
    assert json.loads(Path("out/choice.json").read_text())["statistics"] == found


@pytest.mark.long
def test_the_score_of_a_description_that_won_by_chance_is_corrected(run: Run, skill: Callable[..., Path]) -> None:
    """Of descriptions that toss a coin for each query, the best looks better than any of them is."""
    words = [f"w{at:02}x" for at in range(20)]
    draw = random.Random(4)
    tossed = [" ".join(word for word in words if draw.random() < 0.5) for _ in range(5)]
    skill(*tossed, queries={f"do {word} now": at % 2 == 0 for at, word in enumerate(words)})
    stand_in = StandIn(dict.fromkeys(words, "pdf"))
    found = told(run, "--base-url", stand_in.url, "--model", "stand-in")
    stand_in.close()
    assert found["naive"]["value"] == max(sum(one["scores"]) for one in found["descriptions"]) / 20
    assert found["corrected"]["value"] < found["naive"]["value"] - 0.05
    assert found["flattery"] > 0.05
    assert found["gain"] is None or found["gain"]["verdict"] == "open"


def test_a_recorded_choice_is_replayed_without_a_model(run: Run, skill: Callable[..., Path], model: list[str]) -> None:
    """It still works if a description has been removed from the list."""
    skill(GREEDY, BETTER, queries={"merge": True, "split": True, "bake": False, "sew": False})
    first = told(run, *model, "--record", "kept")
    again = told(run, "--replay", "kept")
    assert {**again, "run": "", "folder": ""} == {**first, "run": "", "folder": ""}
    Path("new.yaml").write_text(f"- {BETTER}\n")
    fewer = told(run, "--replay", "kept")
    assert fewer["descriptions"] == [first["descriptions"][0], {**first["descriptions"][2], "number": 2}]


def test_missing_recordings_are_to_be_recorded(run: Run, skill: Callable[..., Path], model: list[str]) -> None:
    """Each cause is shown once, all trials are counted, and --resume, which would fail, is not advised."""
    queries = {"merge": True, "split": True, "bake": False, "sew": False}
    skill(BETTER, queries=queries)
    told(run, *model, "--record", "kept")
    skill(BETTER, "One.", "Two.", queries=queries)
    code, out, _ = run(*CHOOSE, "--replay", "kept")
    assert code == 3
    assert out.count("could not be completed") == 1
    assert "8 trials could not be completed: " in out
    assert "The same command with --record instead of --replay asks the model" in out
    assert "--resume" not in out
    folder = skill(BETTER, queries=queries)
    names = {query: f"triggers {digest_text(query)}" for query in queries}
    changed = [
        {"name": names[query], "query": f"{query} it", "should_trigger": should}  # each differs in its own way
        for query, should in queries.items()
    ]
    (folder / "evals" / "triggers.json").write_text(json.dumps(changed))
    code, out, _ = run(*CHOOSE, "--replay", "kept")
    assert code == 3
    assert "\nand 2 trials more, for 1 other reason\n" in out


def test_cases_that_are_not_queries_are_left_out_with_a_note(
    run: Run, skill: Callable[..., Path], model: list[str]
) -> None:
    """A scripted model answers the same for every description, and other checks say nothing about one."""
    folder = skill(BETTER)
    (folder / "evals" / "more.yaml").write_text(
        "cases:\n"
        "  - {name: other, prompt: merge it, checks: [{response_contains: x}]}\n"
        "  - {name: scripted, prompt: merge it, should_trigger: true, script: [no]}\n"
        "  - {name: both, prompt: merge them all, should_trigger: true, checks: [{response_contains: never said}]}\n"
    )
    code, out, said = run(*CHOOSE, *model, "-k", "pdf/both")
    assert code == 2, "of the triggers none is left, and the one of `both` is too few"
    assert "1 that should load it and 0 that should not" in said
    code, out, said = run(*CHOOSE, *model, "--report", "out")
    assert code == 0, out + said
    assert "2 cases not used" in said
    found = json.loads(Path("out/choice.json").read_text())["statistics"]
    assert found["descriptions"][1]["scores"] == [True] * 17


def test_an_error_leaves_a_query_out_for_all_descriptions(run: Run, skill: Callable[..., Path]) -> None:
    """If too few queries are left, nothing is decided: exit code 3."""
    skill(BETTER, queries={f"prompt {at}": at < 3 for at in range(6)})
    with Provider(1) as provider:
        provider.broken = lambda number: 400 if number == 1 else 0
        words = [*model_options(provider), "--parallel", "1", "--report", "out"]
        code, out, _ = run(*CHOOSE, *words)
        assert code == 0, out
        assert "Left out for all descriptions: 1 query without a score" in out
        assert "1 trial could not be completed: " in out
        code, out, _ = run("eval", "--resume", "out")
        assert (code, "Left out" in out) == (0, False), out
        assert provider.asked == 6 * 2 + 1

        provider.broken = lambda number: 400
        code, out, _ = run(*CHOOSE, *words)
        assert (code, "Undecided: infrastructure errors left 6 queries without a score" in out) == (3, True)
        assert "`skillshelf eval --resume out` tries the failed trials again" in out
        report = json.loads(run(*CHOOSE, *words, "--json")[1])
        found = report["statistics"]
        assert (report["exit_code"], found["best"], found["gain"]) == (3, None, None)


@pytest.mark.long
def test_a_killed_choice_is_resumed(tmp_path: Path, skill: Callable[..., Path]) -> None:
    """A second start or --resume puts every query to every description once."""
    queries = {f"prompt {at}": at < 2 for at in range(4)}
    skill(BETTER, queries=queries)
    report = tmp_path / "out"
    with Provider(2) as provider:
        words = [*CHOOSE[1:], *model_options(provider), "--report", "out", "--parallel", "1"]
        for number in (3, 8):
            with provider.lock:
                child = Child(*words, cwd=tmp_path)
                provider.kill_at(number, child.process.pid, lambda: count_responses(report))
            assert child.end() == -9, child.said()
        child = Child("--resume", "out", cwd=tmp_path)
        assert child.end() == 0, child.said()
        assert "The current description is the best" in child.said()
        assert dict(provider.answered) == {(query, call): 2 for query in queries for call in (1, 2)}
    for number in (1, 2):
        outcomes = json.loads((report / f"description-{number}" / "run.json").read_text())["outcomes"]
        assert [one["case"] for one in outcomes] == [f"pdf/triggers {digest_text(query)}" for query in queries]


@pytest.mark.parametrize(
    ("letters", "right"),
    [
        ("p", True),
        ("m", False),
        ("e", None),
        ("ppm", True),
        ("pm", False),
        ("ppe", True),
        ("pme", None),
        ("mme", False),
    ],
)
def test_more_than_half_of_a_query_s_trials_decide(letters: str, right: bool | None) -> None:
    """p is passed, m missed, e an error that could change the answer."""
    assert find_majority([outcome("a", letter) for letter in letters]) is right


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Fills forms.\n", "new.yaml:1: it is not a list of descriptions"),
        ("[]", "new.yaml:1: it is not a list of descriptions"),
        ("- a: b\n", "new.yaml:1: the description is {'a': 'b'}. It must be text"),
        ("- Good one.\n- ''\n", "new.yaml:2: the description is empty"),
        (
            f"- Good one.\n- {'x' * 1025}\n",
            "new.yaml:2: `skillshelf check` would complain: the description exceeds 1024 characters (1025)",
        ),
        (
            '- Good one.\n- "a\\u200bb"\n',
            "new.yaml:2: `skillshelf check` would complain: the description has a hidden character",
        ),
        (
            "- Good one.\n- >\n  Good\n  one.\n",
            "new.yaml:2: the description is the same as in line 1",
        ),
        (f"- {CURRENT}\n", "new.yaml:1: the skill has this description"),
        ("- 'open\n", "new.yaml:2: it cannot be read as YAML"),
    ],
)
def test_a_wrong_description_is_named(run: Run, skill: Callable[..., Path], text: str, says: str) -> None:
    skill()
    Path("new.yaml").write_text(text)
    code, out, said = run(*CHOOSE)
    assert (code, out) == (2, "")
    assert says in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["choose"], "choose takes the folder of one skill, and descriptions for it"),
        (["choose", "skills/pdf"], "choose takes the folder of one skill, and descriptions for it"),
        (["choose", "skills", "--descriptions", "new.yaml"], "skills is not the folder of a skill"),
        (["choose", "skills/pdf", "--descriptions", "none.yaml"], "none.yaml: it cannot be read"),
        ([*CHOOSE[1:], "--baseline", "none"], "unrecognized arguments: --baseline none"),
        ([*CHOOSE[1:], "--update-golden"], "unrecognized arguments: --update-golden"),
        (["skills/pdf", "--descriptions", "new.yaml"], "unrecognized arguments: --descriptions"),
        (CHOOSE[1:], "No model was chosen"),
    ],
)
def test_wrong_use_of_choose_is_explained(run: Run, skill: Callable[..., Path], words: list[str], says: str) -> None:
    skill(BETTER)
    code, out, said = run("eval", *words)
    assert (code, out) == (2, "")
    assert says in said


def test_too_few_queries_say_how_many_are_needed(run: Run, skill: Callable[..., Path]) -> None:
    """Both kinds are needed: otherwise a description that is always loaded would be the best."""
    skill(BETTER, queries={"merge": True, "split": True, "bake": False})
    code, _, said = run(*CHOOSE)
    assert code == 2
    assert "pdf has too few queries to choose by: 2 that should load it and 1 that should not" in said
    assert "At least 2 of each are needed" in said


def test_a_copy_of_the_skill_differs_only_in_its_description(tmp_path: Path, skill: Callable[..., Path]) -> None:
    """Evals are left out, and other skills stay on the shelf."""
    folder = skill(BETTER)
    fields = f"name: pdf\ndescription: {CURRENT}\nlicense: MIT\nuser-invocable: no\nmetadata: {{owner: '7'}}"
    (tmp_path / "linked.md").write_text(f"---\n{fields}\n---\n\nDo.\n")
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to(tmp_path / "linked.md")
    before = (tmp_path / "linked.md").read_text()
    other = tmp_path / "skills" / "csv"
    other.mkdir()
    (other / "SKILL.md").write_text("---\nname: csv\ndescription: Tables.\n---\n\nDo.\n")
    (folder / "evals" / "more.yaml").write_text(
        "skills: [../..]\ncases: [{name: beside, prompt: merge, should_trigger: true}]\n"
    )
    current = read_current_skill(str(folder))
    queries = select_queries(find_cases([folder])[0], "pdf")
    made = make_variants(current, [CURRENT, "It says: more # than\nthat."], queries, str(tmp_path / "stage"))
    assert (tmp_path / "linked.md").read_text() == before
    for one in made:
        copy = tmp_path / "stage" / str(one.number) / "pdf"
        text = read((copy / "SKILL.md").read_text())
        assert text.description == one.description
        assert (text.values, text.instructions) == (
            {**current.text.values, "description": one.description},
            current.text.instructions,
        )
        assert sorted(path.name for path in copy.iterdir()) == ["SKILL.md", "references"]
        [beside] = [case for case in one.cases if case.name.startswith("beside")]
        assert beside.skills == (str(other), str(copy))
    assert len({case.id for one in made for case in one.cases}) == 2 * len(queries)


def test_a_query_without_the_skill_on_its_shelf_is_refused(tmp_path: Path, skill: Callable[..., Path]) -> None:
    """Its description would make no difference."""
    folder = skill(BETTER)
    (tmp_path / "elsewhere").mkdir()
    queries = select_queries(find_cases([folder])[0], "pdf")
    queries = (replace(queries[0], skills=(str(tmp_path / "elsewhere"),)), *queries[1:])
    with pytest.raises(EvalError, match=r"triggers\.json:1: the skill 'pdf' is not on the case's shelf"):
        make_variants(read_current_skill(str(folder)), [CURRENT, BETTER], queries, str(tmp_path / "stage"))
