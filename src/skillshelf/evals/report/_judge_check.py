"""The report of `skillshelf eval judge-check`: a judge against the labels of a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skillshelf.evals._labels import LabelledSentence, list_verdicts
from skillshelf.evals.report._format import NO_VALUE, format_interval, format_percent, format_rate
from skillshelf.evals.stats import JudgeQuality, Rate, measure_judge
from skillshelf.tables import Column, Table
from skillshelf.text import clip, count_noun

MAX_SENTENCE = 60
MAX_REASON = 120


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """A judge, its quality, and the sentences behind it."""

    run: str
    judge: str
    sentences: Sequence[LabelledSentence]
    quality: JudgeQuality

    @property
    def disputed(self) -> list[LabelledSentence]:
        return [sentence for sentence in self.sentences if sentence.is_disputed]

    @property
    def failed(self) -> int:
        """The number of sentences on which the judge failed. They are in no rate."""
        return sum(sentence.judged.holds is None for sentence in self.sentences)


def check_judge(run: str, judge: str, sentences: Sequence[LabelledSentence]) -> JudgeReport:
    """Measure a judge by the sentences of a run that have a label."""
    return JudgeReport(run, judge, sentences, measure_judge(list_verdicts(sentences)))


def judge_tables(report: JudgeReport) -> tuple[Table, ...]:
    tables = [_quality_table(report), _disputes_table(report)]
    return tuple(table for table in tables if table.rows)


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
        key = sentence.judged.key
        rows.append(
            (
                "true" if sentence.judged.holds else "false",
                "true" if sentence.label else "false",
                f"{key.case} ({key.arm} {key.repeat})",
                clip(" ".join(key.sentence.split()), MAX_SENTENCE),
                clip(sentence.judged.reason, MAX_REASON),
            )
        )
    columns = (Column("judge"), Column("label"), Column("trial"), Column("sentence"), Column("the judge's reason"))
    return Table("Where they differ", columns, rows)


def judge_verdict(report: JudgeReport) -> Iterator[str]:
    """Yield the result in sentences."""
    quality = report.quality
    interval = format_interval(quality.corrected_interval)
    number = count_noun(quality.said.total, "sentence")
    yield f"Of {number} in the run, the judge says that {format_rate(quality.said)} are true."
    if quality.corrected is not None:
        yield f"Corrected for its errors, {format_percent(quality.corrected)} {interval} are."
    elif not quality.sensitivity.total or not quality.specificity.total:
        missing = "false" if quality.sensitivity.total else "true"
        yield f"That cannot be corrected: no sentence is labelled {missing}. Label more of them."
    else:
        yield "That cannot be corrected: on these labels, the judge is not better than a coin. Choose another judge."
    if report.failed:
        yield f"The judge failed on {count_noun(report.failed, 'sentence')}, which are in no rate."


def judge_report_as_json(report: JudgeReport) -> dict[str, Any]:
    """Return the report for `--json`."""
    quality = report.quality
    rates = {
        name: {**asdict(rate), "value": rate.value}
        for name, rate in (
            ("agreement", quality.agreement),
            ("sensitivity", quality.sensitivity),
            ("specificity", quality.specificity),
            ("said", quality.said),
        )
    }
    corrected = {"value": quality.corrected, "interval": asdict(quality.corrected_interval)}
    disputed = [
        {
            **sentence.judged.key._asdict(),
            "judge_says": sentence.judged.holds,
            "label": sentence.label,
            "reason": sentence.judged.reason,
        }
        for sentence in report.disputed
    ]
    return {
        "run": report.run,
        "judge": report.judge,
        "statistics": {**rates, "kappa": quality.kappa, "corrected": corrected, "failed": report.failed},
        "disputed": disputed,
    }
