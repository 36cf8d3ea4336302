"""Labels: what a person says about the sentences that a judge decided on, for `skillshelf eval judge-check`.

A template lists the sentences of a run in an order drawn from their digests, so that the first fifty are a random
sample. The text to read has the evidence that the judge had. Neither shows what the judge said, because that would lead
the person.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from skillshelf.errors import EvalError
from skillshelf.evals._results import Arm, Outcome, Run
from skillshelf.evals._validation import explain_expected, show_value
from skillshelf.evals.check import describe_work
from skillshelf.evals.formats import YamlList, YamlMapping, parse_document, read_text
from skillshelf.evals.stats import JudgeVerdict
from skillshelf.text import clean, clean_line, clip

MAX_TEMPLATE = 1_000
"""More sentences than anybody labels. A file of so many can be read back."""
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


class Label(BaseModel):
    """An item of a file of labels."""

    model_config = ConfigDict(extra="forbid", strict=True)

    case: str
    arm: Arm = "with"
    repeat: int = 1
    sentence: str
    holds: bool | None
    """None if the person has not decided yet."""
    number: int = 0
    """The place of the sentence in the text to read; of no meaning to us."""

    @property
    def key(self) -> SentenceKey:
        return SentenceKey(self.case, self.arm, self.repeat, self.sentence)


@dataclass(frozen=True, slots=True)
class LabelledSentence:
    """A sentence with the verdict of the judge and the label of a person."""

    judged: JudgedSentence
    label: bool | None

    @property
    def is_disputed(self) -> bool:
        return None not in (self.label, self.judged.holds) and self.label != self.judged.holds


def find_judged_sentences(run: Run) -> list[JudgedSentence]:
    """Return the sentences that the judges of a run decided on, each once for a trial."""
    found: dict[SentenceKey, JudgedSentence] = {}
    for outcome in run.outcomes:
        for result in outcome.checks:
            if not result.about.sentence:
                continue
            key = SentenceKey(outcome.case, outcome.arm, outcome.repeat, result.about.sentence)
            verdict = result.verdict
            holds = None if verdict.error else verdict.passed != result.about.is_negated
            found.setdefault(key, JudgedSentence(key, holds, verdict.reason))
    return list(found.values())


def find_sentences(outcome: Outcome) -> list[str]:
    """Return the sentences that a judge was asked about in a trial, each once."""
    return list(dict.fromkeys(result.about.sentence for result in outcome.checks if result.about.sentence))


def sample_sentences(run: Run) -> list[SentenceKey]:
    """Return the sentences to label, in random order, which is the same each time."""
    keys = [judged.key for judged in find_judged_sentences(run)]
    return sorted(keys, key=_digest)[:MAX_TEMPLATE]


def _digest(key: SentenceKey) -> str:
    return hashlib.sha256("\0".join(map(str, key)).encode("utf-8", "surrogatepass")).hexdigest()


def make_label_template(keys: Sequence[SentenceKey]) -> str:
    """Return a file of labels to fill in, as JSON, which is YAML too."""
    items = [{"number": number, **key._asdict(), "holds": None} for number, key in enumerate(keys, 1)]
    return json.dumps(items, indent=1, ensure_ascii=False) + "\n"  # a person reads it, in any language


def describe_sentences(keys: Sequence[SentenceKey], run: Run) -> str:
    """Return the text to read for labelling: each sentence with the evidence that the judge had."""
    outcomes = {(outcome.case, outcome.arm, outcome.repeat): outcome for outcome in run.outcomes}
    parts = []
    for number, key in enumerate(keys, 1):
        sentence = clean_line(key.sentence)
        work = clean(describe_work(outcomes[key.case, key.arm, key.repeat].trace))
        parts.append(f"{_RULE}\n{number}. {sentence}\n   {clean_line(_name_trial(key))}\n{_RULE}\n\n{work}\n")
    return "\n".join(parts)


def read_labels(path: str, judged: Iterable[JudgedSentence]) -> dict[SentenceKey, bool]:
    """Return the labels in a file by sentence. Raises EvalError for a label of a sentence that no judge decided on."""
    items = parse_document(read_text(path), path)
    if not isinstance(items, YamlList):
        raise EvalError("it is not a list of labels", _HOW_TO_LABEL, path, 1)

    known = {sentence.key for sentence in judged}
    labels: dict[SentenceKey, bool] = {}
    for item, line in zip(items, items.lines, strict=True):
        label = _read_label(item, path, line)
        if label.key not in known:
            problem = f"no judge of the run decided on {clip(label.sentence, 80)!r} in {_name_trial(label.key)}"
            raise EvalError(problem, "Use the labels with the run that they were written for", path, line)
        if label.key in labels:
            raise EvalError("this sentence has a label already", "Remove one of them", path, line)
        if label.holds is not None:
            labels[label.key] = label.holds
    if not labels:
        raise EvalError("no sentence has a label", "Set `holds` to true or false, for some of them at least", path)
    return labels


def _read_label(item: Any, path: str, line: int) -> Label:
    if not isinstance(item, YamlMapping):
        raise EvalError(f"the label is {show_value(item)}", _HOW_TO_LABEL, path, line)
    try:
        return Label.model_validate(dict(item))
    except ValidationError as fault:
        [first, *_] = fault.errors()
        field = str(first["loc"][0])
        if first["type"] == "missing":
            raise EvalError(f"the label has no `{field}`", _HOW_TO_LABEL, path, line) from None
        if first["type"] == "extra_forbidden":
            known = ", ".join(Label.model_fields)
            raise EvalError(f"`{field}` has no meaning here", f"Keys: {known}", path, item.line_of(field)) from None
        problem = f"{field} is {show_value(first['input'])}"
        raise EvalError(problem, explain_expected(first), path, item.line_of(field)) from None


def _name_trial(key: SentenceKey) -> str:
    return f"trial {key.repeat} of {clip(key.case, 80)!r}, {key.arm}"


def join_labels(judged: Sequence[JudgedSentence], labels: Mapping[SentenceKey, bool]) -> list[LabelledSentence]:
    return [LabelledSentence(sentence, labels.get(sentence.key)) for sentence in judged]


def list_verdicts(sentences: Iterable[LabelledSentence]) -> list[JudgeVerdict]:
    """Return the verdicts to measure a judge by. Sentences on which it failed are not among them."""
    verdicts = []
    for sentence in sentences:
        judged = sentence.judged
        if judged.holds is not None:
            verdicts.append(JudgeVerdict(judged.key.case, judged.holds, sentence.label))
    return verdicts
