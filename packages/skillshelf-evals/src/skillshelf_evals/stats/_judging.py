"""How far a judge can be trusted, and the rate that remains after correcting for its errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skillshelf_evals.stats._bounds import Interval
from skillshelf_evals.stats._rates import CONFIDENCE, Rate, rate_by_case

_ANYTHING = Interval(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """What a judge said about a sentence, and what a person said about it."""

    case: str
    said: bool
    label: bool | None = None
    """None if no person has labelled it."""


@dataclass(frozen=True, slots=True)
class JudgeQuality:
    """A judge against the labels of a person."""

    agreement: Rate
    """The share of labelled sentences on which they agree."""
    kappa: float | None
    """Cohen's kappa: the agreement beyond chance. None if all verdicts and labels are the same."""
    sensitivity: Rate
    """Of the sentences that are labelled true, the share that the judge says are true."""
    specificity: Rate
    """Of the sentences that are labelled false, the share that the judge says are false."""
    said: Rate
    """Of all sentences, labelled or not, the share that the judge says are true."""
    corrected: float | None
    """The share of all sentences that is true, corrected for the judge's errors.

    None if the labels are all true or all false, or if the judge is not better than a coin on them."""
    corrected_interval: Interval


def measure_judge(verdicts: Iterable[JudgeVerdict]) -> JudgeQuality:
    """Measure a judge by the verdicts that have a label, and correct the rate of all of its verdicts.

    The corrected rate is that of Rogan & Gladen (1978, American Journal of Epidemiology 107:71). Sentences about the
    same case are not independent, so the case is the unit of every interval.
    """
    all_verdicts = list(verdicts)
    labelled = [verdict for verdict in all_verdicts if verdict.label is not None]
    agreement = [(verdict.case, verdict.said == verdict.label) for verdict in labelled]
    labelled_true = [(verdict.case, verdict.said) for verdict in labelled if verdict.label]
    labelled_false = [(verdict.case, not verdict.said) for verdict in labelled if not verdict.label]
    said_true = [(verdict.case, verdict.said) for verdict in all_verdicts]

    sensitivity = rate_by_case(labelled_true)
    specificity = rate_by_case(labelled_false)
    # Three intervals that all hold at once: each gets a third of the risk (Bonferroni).
    shared = 1 - (1 - CONFIDENCE) / 3
    return JudgeQuality(
        agreement=rate_by_case(agreement),
        kappa=cohen_kappa(labelled),
        sensitivity=sensitivity,
        specificity=specificity,
        said=rate_by_case(said_true),
        corrected=_correct(rate_by_case(said_true).value, sensitivity.value, specificity.value),
        corrected_interval=_bound_corrected(
            rate_by_case(said_true, shared).interval or _ANYTHING,
            rate_by_case(labelled_true, shared).interval or _ANYTHING,
            rate_by_case(labelled_false, shared).interval or _ANYTHING,
        ),
    )


def cohen_kappa(labelled: Iterable[JudgeVerdict]) -> float | None:
    """Return the agreement beyond chance (Cohen 1960, Educational and Psychological Measurement 20:37).

    1 is full agreement, 0 the agreement of two who guess at their own rates. None if only one answer was ever given.
    """
    pairs = [(verdict.said, bool(verdict.label)) for verdict in labelled]
    if not pairs:
        return None
    observed = sum(said == label for said, label in pairs) / len(pairs)
    said_true = sum(said for said, _ in pairs) / len(pairs)
    label_true = sum(label for _, label in pairs) / len(pairs)
    by_chance = said_true * label_true + (1 - said_true) * (1 - label_true)
    if by_chance == 1:
        return None
    return (observed - by_chance) / (1 - by_chance)


def _correct(said: float | None, sensitivity: float | None, specificity: float | None) -> float | None:
    if said is None or sensitivity is None or specificity is None:
        return None
    false_alarms = 1 - specificity
    if sensitivity <= false_alarms:
        return None
    return _clamp((said - false_alarms) / (sensitivity - false_alarms))


def _bound_corrected(said: Interval, sensitivity: Interval, specificity: Interval) -> Interval:
    """Return all corrected rates that are possible if the three rates are in their intervals.

    The corrected rate grows with the share that the judge says is true. It falls with the sensitivity and with the
    share of false alarms, as long as it is between 0 and 1. So its ends are at corners.
    """
    fewest_false_alarms = 1 - specificity.high
    most_false_alarms = 1 - specificity.low
    low = 0.0
    if said.low > most_false_alarms and sensitivity.high > most_false_alarms:
        low = _clamp((said.low - most_false_alarms) / (sensitivity.high - most_false_alarms))
    high = 1.0
    if said.high < sensitivity.low and sensitivity.low > fewest_false_alarms:
        high = _clamp((said.high - fewest_false_alarms) / (sensitivity.low - fewest_false_alarms))
    return Interval(low, max(low, high))


def _clamp(share: float) -> float:
    return min(1.0, max(0.0, share))
