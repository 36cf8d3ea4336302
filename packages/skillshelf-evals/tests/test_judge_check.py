"""A judge against the labels of a person: agreement, kappa, and the corrected rate."""

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging import decide
from provider import Provider
from skillshelf_evals.stats import Interval, JudgeQuality, JudgeVerdict, measure_judge
from skillshelf_evals.stats._judging import cohen_kappa

Run = Callable[..., tuple[int, str, str]]


def verdicts(*, both: int = 0, neither: int = 0, judge_only: int = 0, label_only: int = 0) -> list[JudgeVerdict]:
    """Return verdicts by who says that the sentence is true, each about a case of its own."""
    pairs = [(True, True)] * both + [(False, False)] * neither
    pairs += [(True, False)] * judge_only + [(False, True)] * label_only
    return [JudgeVerdict(str(number), said, label) for number, (said, label) in enumerate(pairs)]


# -- agreement --------------------------------------------------------------------------------------------------------


def test_kappa_is_that_of_the_textbook() -> None:
    """20 and 15 of 50 agree, 5 and 10 do not: observed 0.7, expected by chance 0.5."""
    labelled = verdicts(both=20, neither=15, judge_only=5, label_only=10)
    kappa = cohen_kappa(labelled)
    assert kappa is not None
    assert abs(kappa - 0.4) < 1e-12
    assert measure_judge(labelled).agreement.value == 0.7


@pytest.mark.parametrize(
    ("labelled", "kappa"),
    [
        (verdicts(both=5, neither=5), 1.0),
        (verdicts(judge_only=5, label_only=5), -1.0),
        (verdicts(both=4, neither=4, judge_only=4, label_only=4), 0.0),
        (verdicts(both=9, judge_only=1), 0.0),
        (verdicts(both=10), None),
        ([], None),
    ],
)
def test_kappa_is_the_agreement_beyond_chance(labelled: list[JudgeVerdict], kappa: float | None) -> None:
    assert cohen_kappa(labelled) == kappa


# -- the corrected rate -----------------------------------------------------------------------------------------------


def test_the_corrected_rate_takes_out_false_alarms_and_adds_what_was_overlooked() -> None:
    """Sensitivity 0.9, specificity 0.8: of 100 sentences of which 50 are true, such a judge says 45 + 10."""
    labelled = verdicts(both=45, label_only=5, neither=40, judge_only=10)
    quality = measure_judge(labelled)
    assert (quality.sensitivity.value, quality.specificity.value, quality.said.value) == (0.9, 0.8, 0.55)
    assert quality.corrected is not None
    assert abs(quality.corrected - 0.5) < 1e-12
    assert 0.5 in quality.corrected_interval


def test_without_labels_of_both_kinds_nothing_can_be_corrected() -> None:
    for labelled in (verdicts(both=20), verdicts(neither=20), verdicts(judge_only=20)):
        assert measure_judge(labelled).corrected is None
    unlabelled = measure_judge([JudgeVerdict("a", True), JudgeVerdict("b", False)])
    assert (unlabelled.agreement.value, unlabelled.corrected) == (None, None)
    assert unlabelled.corrected_interval == Interval(0.0, 1.0)


def test_a_judge_that_is_not_better_than_a_coin_cannot_be_corrected() -> None:
    for labelled in (verdicts(judge_only=5, label_only=5), verdicts(both=5, neither=5, judge_only=5, label_only=5)):
        quality = measure_judge(labelled)
        assert quality.corrected is None
        assert quality.corrected_interval == Interval(0.0, 1.0)


def test_a_judge_that_never_errs_still_leaves_the_doubt_of_few_labels() -> None:
    few = measure_judge(verdicts(both=5, neither=5))
    many = measure_judge(verdicts(both=200, neither=200))
    assert few.corrected == many.corrected == 0.5
    assert few.corrected_interval.high - few.corrected_interval.low > 0.5
    assert many.corrected_interval.high - many.corrected_interval.low < 0.2


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.sampled_from([True, False, None])), max_size=30))
def test_the_corrected_rate_lies_in_its_interval(rows: list[tuple[int, bool, bool | None]]) -> None:
    quality = measure_judge([JudgeVerdict(str(case), said, label) for case, said, label in rows])
    assert 0 <= quality.corrected_interval.low <= quality.corrected_interval.high <= 1
    if quality.corrected is not None:
        assert quality.corrected_interval.low - 1e-6 <= quality.corrected <= quality.corrected_interval.high + 1e-6
    if quality.kappa is not None:
        assert -1 <= quality.kappa <= 1


class JudgeDesign(NamedTuple):
    """A population of sentences, and a judge that errs at random."""

    truth: float
    sensitivity: float
    specificity: float

    def simulate(self, draw: random.Random) -> JudgeQuality:
        """Let the judge decide on 200 sentences, and a person on the first 80 of them."""
        found = []
        for number in range(200):
            is_true = draw.random() < self.truth
            said = draw.random() < (self.sensitivity if is_true else 1 - self.specificity)
            found.append(JudgeVerdict(str(number), said, is_true if number < 80 else None))
        return measure_judge(found)


@cache
def simulate_runs(design: JudgeDesign) -> list[JudgeQuality]:
    draw = random.Random(15)
    return [design.simulate(draw) for _ in range(80)]


DESIGNS = [
    JudgeDesign(0.5, 0.9, 0.8),
    JudgeDesign(0.8, 0.95, 0.6),
    JudgeDesign(0.9, 0.8, 0.95),
    JudgeDesign(0.2, 0.7, 0.8),
]
"""Their judges say 0.55, 0.84, 0.725 and 0.3 on average."""


@pytest.mark.parametrize("design", [*DESIGNS, JudgeDesign(0.97, 0.99, 0.9), JudgeDesign(0.5, 0.5, 0.5)])
def test_the_interval_of_the_corrected_rate_holds_the_truth_in_95_percent_of_runs(design: JudgeDesign) -> None:
    """Even if hardly any label is false, and for a judge that tosses a coin."""
    assert fmean(design.truth in quality.corrected_interval for quality in simulate_runs(design)) >= 0.95


@pytest.mark.parametrize("design", DESIGNS)
def test_the_corrected_rate_is_the_truth_on_average_and_the_judge_s_own_is_not(design: JudgeDesign) -> None:
    qualities = simulate_runs(design)
    corrected = [quality.corrected for quality in qualities if quality.corrected is not None]
    assert len(corrected) == len(qualities)
    assert abs(fmean(corrected) - design.truth) < 0.02
    assert abs(fmean(quality.said.value or 0.0 for quality in qualities) - design.truth) > 0.03


def test_sentences_about_one_case_are_not_counted_as_independent() -> None:
    alone = [JudgeVerdict(str(number), True, True) for number in range(30)]
    together = [JudgeVerdict(str(number % 3), True, True) for number in range(30)]
    spread = [measure_judge(found).sensitivity.interval for found in (alone, together)]
    assert spread[0]
    assert spread[1]
    assert spread[1].low < spread[0].low


# -- the command ------------------------------------------------------------------------------------------------------

JUDGED = """
cases:
  - name: greets
    prompt: Grüß mich, bitte 😀.
    files: {who.txt: Ada}
    script: ["Hello, Ada!"]
    checks:
      - judge: It greets.
      - not: {judge: It is rude.}
  - name: parts
    prompt: Say goodbye.
    script: ["Hello!"]
    checks: [judge: It says goodbye.]
"""


@pytest.fixture
def judged(run: Run, write: Callable[..., Path]) -> Run:
    """A run in the folder `out`, whose judge says: It greets, it is not rude, it says goodbye."""
    write("skills/pdf", evals__cases_yaml=JUDGED)

    def says(body: dict[str, Any], number: int) -> str:
        return decide("yes", "no") if "greets" in str(body) else decide("yes", reason="Hello is a goodbye.")

    with Provider(1, says) as provider:
        code, _, said = run("eval", "--report", "out", "--judge", "wise", "--base-url", provider.url)
        assert code == 0, said
        assert provider.asked == 2
    return run


def fill_in(path: Path, labels: dict[str, bool]) -> None:
    items = json.loads(path.read_text("utf-8"))
    for item in items:
        item["holds"] = labels.get(item["sentence"])
    path.write_text(json.dumps(items, ensure_ascii=False), "utf-8")


def test_labels_are_filled_in_and_the_judge_is_measured(judged: Run, tmp_path: Path) -> None:
    code, out, said = judged("eval", "judge-check", "out", "--template", "labels.json")
    assert (code, out) == (0, "")
    assert "3 sentences in random order. Read labels.json.txt from the top" in said
    items = {item["sentence"]: item for item in json.loads((tmp_path / "labels.json").read_text("utf-8"))}
    assert sorted(item["number"] for item in items.values()) == [1, 2, 3]
    text = (tmp_path / "labels.json.txt").read_text("utf-8")
    for item in items.values():
        assert f"\n{item['number']}. {item['sentence']}\n" in text
    for shown in ("| Grüß mich, bitte 😀.", "## who.txt\n| Ada", "| Hello, Ada!"):
        assert text.count(shown) == 2
    assert "It is so." not in text + str(items)

    fill_in(tmp_path / "labels.json", {"It greets.": True, "It is rude.": False, "It says goodbye.": False})
    code, out, _ = judged("eval", "judge-check", "out", "--labels", "labels.json", "--json")
    report = json.loads(out)
    assert (code, report["judge"]) == (0, "openai-chat:wise")
    assert report["statistics"]["agreement"]["value"] == 2 / 3
    assert report["statistics"]["sensitivity"]["value"] == 1
    assert report["statistics"]["specificity"]["value"] == 0.5
    assert abs(report["statistics"]["kappa"] - 0.4) < 1e-9
    assert abs(report["statistics"]["corrected"]["value"] - 1 / 3) < 1e-9
    assert report["disputed"] == [
        {
            "case": "pdf/parts",
            "arm": "with",
            "repeat": 1,
            "sentence": "It says goodbye.",
            "judge_says": True,
            "label": False,
            "reason": "Hello is a goodbye.",
        }
    ]

    code, out, _ = judged("eval", "judge-check", "out", "--labels", "labels.json")
    assert code == 0
    assert "Judge openai-chat:wise" in out
    assert "Hello is a goodbye." in out
    assert "Corrected for its errors, 33% [0%, 100%] are." in out


def test_another_judge_is_asked_about_the_same_trials_and_paid_once(judged: Run, tmp_path: Path) -> None:
    """It sees what the run's own judge saw, and a judge that fails on a trial is asked again."""
    judged("eval", "judge-check", "out", "--template", "labels.json")
    fill_in(tmp_path / "labels.json", {"It greets.": True, "It is rude.": False, "It says goodbye.": False})
    asked: list[str] = []

    def says(body: dict[str, Any], number: int) -> str:
        asked.append(str(body["messages"][-1]["content"]))
        if number == 1:
            return "Hm."
        return decide("yes", "no") if "greets" in str(body) else decide("no")

    words = ("eval", "judge-check", "out", "--labels", "labels.json", "--json", "--judge", "strict")
    with Provider(1, says) as provider:
        first = json.loads(judged(*words, "--base-url", provider.url)[1])
        second = json.loads(judged(*words, "--base-url", provider.url)[1])
        third = json.loads(judged(*words, "--base-url", provider.url)[1])
    assert len(asked) == 3
    assert any("## who.txt\n| Ada" in work and "Grüß mich" in work for work in asked)
    assert first["statistics"]["failed"] > 0
    assert second == third
    assert (second["judge"], second["statistics"]["failed"], second["disputed"]) == ("openai-chat:strict", 0, [])
    assert second["statistics"]["agreement"]["value"] == 1


def test_a_file_of_labels_is_never_overwritten(judged: Run, tmp_path: Path) -> None:
    for name in ("labels.json", "other.json.txt"):
        (tmp_path / name).write_text("an hour of work")
        code, _, said = judged("eval", "judge-check", "out", "--template", name.removesuffix(".txt"))
        assert (code, f"{name} exists" in said) == (2, True)
        assert (tmp_path / name).read_text() == "an hour of work"
    assert not (tmp_path / "other.json").exists()


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("{}", "it is not a list of labels"),
        ("[]", "no sentence has a label"),
        ("- yes", "the label is"),
        ("- {case: pdf/greets, holds: true}", "the label has no `sentence`"),
        ("- {case: pdf/greets, sentence: It greets., holds: 1}", "'holds' is 1. It must be true or false"),
        ("- {case: pdf/greets, sentence: It greets., hold: true}", "Did you mean 'holds'?"),
        ("- {case: pdf/greets, sentence: It sings., holds: true}", "no judge of the run decided on 'It sings.'"),
        ("- {case: pdf/greets, sentence: It greets., holds: true, why: x}", "the label has no key 'why'"),
        ("- {case: pdf/greets, sentence: It greets., holds: null}", "no sentence has a label"),
        (
            "- {case: pdf/greets, sentence: It greets., holds: true}\n"
            "- {case: pdf/greets, sentence: It greets., holds: false}",
            "labels.yaml:2: this sentence has a label already",
        ),
    ],
)
def test_faulty_labels_are_refused_with_their_line(judged: Run, tmp_path: Path, labels: str, said: str) -> None:
    (tmp_path / "labels.yaml").write_text(labels)
    code, out, complaint = judged("eval", "judge-check", "out", "--labels", "labels.yaml")
    assert (code, out) == (2, "")
    assert said in complaint


def test_judge_check_needs_labels_and_a_run_with_judges(judged: Run, write: Callable[..., Path]) -> None:
    assert "--template FILE, and then --labels FILE" in judged("eval", "judge-check", "out")[2]
    write("other/csv", evals__cases_yaml=JUDGED.split("    checks:")[0] + "    checks: [response_contains: Hello]\n")
    assert judged("eval", "other", "--report", "plain")[0] == 0
    assert "No check of the run" in judged("eval", "judge-check", "plain", "--template", "x.json")[2]
