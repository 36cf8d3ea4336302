"""The calibration of a judge: what a person says about the sentences that it decided on, and how often they agree.

A template lists the sentences of a run in an order drawn from their digests, so that the first fifty are a random
sample. The text to read has the evidence that the judge had. Neither shows what the judge said, because that would lead
the person.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import StrictBool

from skillshelf.errors import EvalError
from skillshelf.text import clean, clean_line, count_noun, truncate
from skillshelf.text.tables import Column, Table
from skillshelf_evals._results import Arm, Outcome, Run
from skillshelf_evals.check import describe_work, judge, look_at_all
from skillshelf_evals.formats import DocumentModel, read_list
from skillshelf_evals.report._format import MAX_REASON, NO_VALUE, format_interval, format_percent, format_rate, to_plain
from skillshelf_evals.stats import JudgeQuality, JudgeVerdict, Rate, measure_judge

if TYPE_CHECKING:
    from skillshelf_evals.engine import Options

MAX_TEMPLATE = 1_000
"""More sentences than anybody labels. A file of so many can be read back."""
MAX_SENTENCE = 60
_RULE = "=" * 80
_HOW_TO_LABEL = "`skillshelf eval judge-check RUN --template FILE` writes one to fill in"


class SentenceKey(NamedTuple):
    """A sentence about one trial."""

    case: str
    arm: Arm
    repeat: int
    sentence: str


@dataclass(frozen=True, slots=True)
class JudgedSentence:
    """A sentence that a judge decided on."""

    key: SentenceKey
    holds: bool | None
    """None if the judge failed."""
    reason: str = ""
    label: bool | None = None
    """What a person says; None if nobody has labelled it."""

    @property
    def is_disputed(self) -> bool:
        return None not in (self.label, self.holds) and self.label != self.holds


class Label(DocumentModel):
    """An item of a file of labels."""

    case: str
    arm: Arm = "with"
    repeat: int = 1
    sentence: str
    holds: StrictBool | None = None
    """None if the person has not decided yet."""
    number: int = 0
    """The place of the sentence in the text to read; of no meaning to us."""

    @property
    def key(self) -> SentenceKey:
        return SentenceKey(self.case, self.arm, self.repeat, self.sentence)


def _find_judged_sentences(run: Run) -> list[JudgedSentence]:
    """Return the sentences that the judges of a run decided on, each once for a trial. Raises EvalError."""
    found: dict[SentenceKey, JudgedSentence] = {}
    for outcome in run.outcomes:
        for result in outcome.checks:
            if not result.about.sentence:
                continue
            key = SentenceKey(outcome.case, outcome.arm, outcome.repeat, result.about.sentence)
            verdict = result.verdict
            holds = None if verdict.error else verdict.passed != result.about.is_negated
            found.setdefault(key, JudgedSentence(key, holds, verdict.reason))
    if not found:
        raise EvalError(f"No check of the run {run.id} asked a judge", "Choose a run whose cases have `judge` checks")
    return list(found.values())


def _find_sentences(outcome: Outcome) -> list[str]:
    """Return the sentences that a judge was asked about in a trial, each once."""
    return list(dict.fromkeys(result.about.sentence for result in outcome.checks if result.about.sentence))


class LabelTemplate(NamedTuple):
    """What a person needs to label the sentences of a run."""

    labels: str
    """A file of labels to fill in, as JSON, which is YAML too."""
    text: str
    """The text to read for it: each sentence with the evidence that the judge had."""
    sentences: int


def make_label_template(run: Run) -> LabelTemplate:
    """Return the sentences to label, in random order, which is the same each time. Raises EvalError."""
    keys = sorted((judged.key for judged in _find_judged_sentences(run)), key=_digest)[:MAX_TEMPLATE]
    items = [{"number": number, **key._asdict(), "holds": None} for number, key in enumerate(keys, 1)]
    labels = json.dumps(items, indent=1, ensure_ascii=False) + "\n"  # a person reads it, in any language
    return LabelTemplate(labels, _describe_sentences(keys, run), len(keys))


def _digest(key: SentenceKey) -> str:
    return hashlib.sha256("\0".join(map(str, key)).encode("utf-8", "surrogatepass")).hexdigest()


def _describe_sentences(keys: Sequence[SentenceKey], run: Run) -> str:
    outcomes = {(outcome.case, outcome.arm, outcome.repeat): outcome for outcome in run.outcomes}
    parts = []
    for number, key in enumerate(keys, 1):
        sentence = clean_line(key.sentence)
        work = clean(describe_work(outcomes[key.case, key.arm, key.repeat].trace))
        parts.append(f"{_RULE}\n{number}. {sentence}\n   {clean_line(_name_trial(key))}\n{_RULE}\n\n{work}\n")
    return "\n".join(parts)


def _read_labels(path: str, judged: Iterable[JudgedSentence]) -> dict[SentenceKey, bool]:
    """Return the labels in a file by sentence. Raises EvalError for a label of a sentence that no judge decided on."""
    known = {sentence.key for sentence in judged}
    labels: dict[SentenceKey, bool] = {}
    for label, line in read_list(Label, path, "label", _HOW_TO_LABEL):
        if label.key not in known:
            problem = f"no judge of the run decided on {truncate(label.sentence, 80)!r} in {_name_trial(label.key)}"
            raise EvalError(problem, "Use the labels with the run that they were written for", path, line)
        if label.key in labels:
            raise EvalError("this sentence has a label already", "Remove one of them", path, line)
        if label.holds is not None:
            labels[label.key] = label.holds
    if not labels:
        raise EvalError("no sentence has a label", "Set `holds` to true or false, for some of them at least", path)
    return labels


def _name_trial(key: SentenceKey) -> str:
    return f"trial {key.repeat} of {truncate(key.case, 80)!r}, {key.arm}"


async def _judge_again(run: Run, options: Options, path: str) -> list[JudgedSentence]:
    """Ask the judge of these options about every sentence that a judge of the run was asked about.

    Its answers are stored in the file `path`, so that none is paid for twice. Raises RunStoppedError.
    """
    from skillshelf_evals.engine import RunModels, open_file_store  # imports the libraries of models

    store = open_file_store(path, run.id)
    models = RunModels(options, store)
    turn = asyncio.Semaphore(options.parallel)

    async def judge_trial(outcome: Outcome) -> list[JudgedSentence]:
        sentences = _find_sentences(outcome)
        name = f"{outcome.case}#{outcome.arm}#{outcome.repeat}/judge"
        async with turn:
            checks = [judge(sentence) for sentence in sentences]
            looked = await look_at_all(checks, outcome.trace, partial(models.model_for_judge, name=name))
        judged = []
        for sentence, verdict in zip(sentences, looked.verdicts, strict=True):
            key = SentenceKey(outcome.case, outcome.arm, outcome.repeat, sentence)
            holds = None if verdict.error else verdict.passed
            judged.append(JudgedSentence(key, holds, verdict.error or verdict.reason))
        return judged

    try:
        trials = await asyncio.gather(*(judge_trial(outcome) for outcome in run.outcomes if _find_sentences(outcome)))
    finally:
        store.close()
    if models.guard.stopped:
        raise models.guard.stopped
    return [sentence for trial in trials for sentence in trial]


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """A judge, its quality, and the sentences behind it."""

    run: str
    judge: str
    sentences: Sequence[JudgedSentence]
    quality: JudgeQuality

    @property
    def disputed(self) -> list[JudgedSentence]:
        return [sentence for sentence in self.sentences if sentence.is_disputed]

    @property
    def failed(self) -> int:
        """The number of sentences on which the judge failed. They are in no rate."""
        return sum(sentence.holds is None for sentence in self.sentences)

    @property
    def tables(self) -> tuple[Table, ...]:
        tables = (_quality_table(self), _disputes_table(self))
        return tuple(table for table in tables if table.rows)

    @property
    def lines(self) -> Iterator[str]:
        """The result in sentences."""
        quality = self.quality
        interval = format_interval(quality.corrected_interval)
        number = count_noun(quality.said.total, "sentence")
        yield f"Of {number} in the run, the judge says that {format_rate(quality.said)} are true."
        if quality.corrected is not None:
            yield f"Corrected for its errors, {format_percent(quality.corrected)} {interval} are."
        elif not quality.sensitivity.total or not quality.specificity.total:
            missing = "false" if quality.sensitivity.total else "true"
            yield f"That cannot be corrected: no sentence is labelled {missing}. Label more of them."
        else:
            yield (
                "That cannot be corrected: on these labels, the judge is not better than a coin. Choose another judge."
            )
        if self.failed:
            yield f"The judge failed on {count_noun(self.failed, 'sentence')}, which are in no rate."

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        statistics = to_plain(self.quality)
        statistics["corrected"] = {"value": self.quality.corrected, "interval": statistics.pop("corrected_interval")}
        disputed = [
            {
                **sentence.key._asdict(),
                "judge_says": sentence.holds,
                "label": sentence.label,
                "reason": sentence.reason,
            }
            for sentence in self.disputed
        ]
        return {
            "run": self.run,
            "judge": self.judge,
            "statistics": {**statistics, "failed": self.failed},
            "disputed": disputed,
        }


def check_judge(run: Run, labels: str, judge: str = "", options: Options | None = None, store: str = "") -> JudgeReport:
    """Measure the judge of a run by the sentences that have a label in the file `labels`. Raises EvalError.

    With `options`, their judge is asked about the same trials instead, and called `judge` in the report. Its answers
    are kept in the file `store`, so that none is paid for twice. Raises RunStoppedError.
    """
    judged = _find_judged_sentences(run)
    labels_by_sentence = _read_labels(labels, judged)
    if options:
        judged = asyncio.run(_judge_again(run, options, store))
    sentences = [replace(sentence, label=labels_by_sentence.get(sentence.key)) for sentence in judged]
    # Sentences on which the judge failed are in no rate.
    verdicts = [JudgeVerdict(one.key.case, one.holds, one.label) for one in sentences if one.holds is not None]
    return JudgeReport(run.id, judge or run.judge, sentences, measure_judge(verdicts))


def _quality_table(report: JudgeReport) -> Table:
    quality = report.quality
    kappa = NO_VALUE if quality.kappa is None else f"{quality.kappa:.2f}".replace("-", "−")
    rows = [
        ("agreement", _count(quality.agreement), format_rate(quality.agreement)),
        ("kappa", "", kappa),
        ("true sentences it recognizes", _count(quality.sensitivity), format_rate(quality.sensitivity)),
        ("false sentences it recognizes", _count(quality.specificity), format_rate(quality.specificity)),
    ]
    columns = (Column("with the labels"), Column("sentences", right=True), Column("rate [95%]", right=True))
    return Table(f"Judge {report.judge}" if report.judge else "Judge", columns, rows)


def _count(rate: Rate) -> str:
    return f"{rate.passed}/{rate.total}"


def _disputes_table(report: JudgeReport) -> Table:
    rows = []
    for sentence in report.disputed:
        key = sentence.key
        rows.append(
            (
                "true" if sentence.holds else "false",
                "true" if sentence.label else "false",
                f"{key.case} ({key.arm} {key.repeat})",
                truncate(" ".join(key.sentence.split()), MAX_SENTENCE),
                truncate(sentence.reason, MAX_REASON),
            )
        )
    columns = (Column("judge"), Column("label"), Column("trial"), Column("sentence"), Column("the judge's reason"))
    return Table("Where they differ", columns, rows)
