"""The tables of `make bench-search`, for the terminal and for docs/concepts/search.md."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.report import aligned, amount, markdown, times
from benchmarks.search.choosing import Choice
from benchmarks.search.collections import Collection, Query
from benchmarks.search.measures import (
    Answer,
    Quality,
    calibration_error,
    compare_scores,
    mean,
    percentile,
    resample,
    sort_into_bins,
)
from benchmarks.search.presence import Presence
from benchmarks.search.speed import Speed
from benchmarks.search.worker import Findings

KINDS = {"trigger": "short trigger", "expected": "routing", "task": "long task"}
LANGUAGES = {"en": "English", "de": "German", "pt": "Portuguese", "zh": "Chinese", "ja": "Japanese"}
WITHOUT_EXTRA = "ours without the extra"
WITH_EXTRA = "ours with the extra"
EARLIER = "the other checkout without the extra"
EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_CONFIDENT = 0.5


@dataclass
class Measured:
    """The answers of one method to the queries of one collection."""

    title: str
    by_size: dict[int, list[Answer]]
    near_misses: list[Answer] = field(default_factory=list)
    metatool: list[Answer] = field(default_factory=list)
    findings: Findings | None = None
    """More about our own search."""

    @property
    def whole(self) -> list[Answer]:
        return self.by_size[max(self.by_size)]


@dataclass(frozen=True)
class Table:
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def for_terminal(self) -> str:
        return f"{self.title}\n\n{aligned(self.headings, self.rows)}"

    def for_page(self) -> str:
        return f"### {self.title}\n\n{markdown(self.headings, self.rows)}"


# --- quality ---


def show_summary(collection: Collection, methods: Sequence[Measured]) -> Table:
    """Return the results in the whole collection."""
    headings = [
        "hit@1 / nDCG@10",
        "all",
        "recall@10",
        "interval of hit@1 over authors",
        "MetaTool, hit@1",
        "Chinese and Japanese, hit@1",
        "near misses first",
    ]
    rows: list[list[str]] = []
    for method in methods:
        cjk = _choose(collection.queries, method.whole, lambda query: query.is_cjk)
        rows.append(
            [
                method.title,
                str(Quality(method.whole)),
                f"{Quality(method.whole).recall:.1f}",
                _interval_over_authors(collection.queries, method.whole),
                _hit_rate(Quality(method.metatool)),
                _hit_rate(cjk, with_interval=True),
                _near_misses(method),
            ]
        )
        if method.findings and method.findings.choices:
            unseen = Quality([answer for choice in method.findings.choices for answer in choice.answers])
            rows.append(
                [
                    f"{method.title}, weights chosen on the other half",
                    str(unseen),
                    f"{unseen.recall:.1f}",
                    "",
                    "",
                    "",
                    "",
                ]
            )
    return Table(f"{len(collection.queries):,} queries, {len(collection.skills):,} skills", headings, rows)


def show_kinds(collection: Collection, methods: Sequence[Measured]) -> Table:
    """Return the results by kind of query, by script and by half."""
    queries = collection.queries
    columns: dict[str, Callable[[Query], bool]] = {}
    for kind, title in KINDS.items():
        columns[title] = lambda query, kind=kind: query.kind == kind
    columns["Latin script"] = lambda query: not query.is_cjk
    columns["Chinese, Japanese"] = lambda query: query.is_cjk
    columns["half 0"] = lambda query: query.half == 0
    columns["half 1"] = lambda query: query.half == 1
    used = {title: test for title, test in columns.items() if any(map(test, queries))}
    headings = ["hit@1 / nDCG@10", *(f"{title} ({sum(map(test, queries))})" for title, test in used.items())]
    rows: list[list[str]] = []
    for method in methods:
        rows.append([method.title, *(str(_choose(queries, method.whole, test)) for test in used.values())])
    return Table("By kind of query, script and half", headings, rows)


def show_sizes(methods: Sequence[Measured]) -> Table:
    sizes = sorted(methods[0].by_size)
    headings = ["hit@1 / nDCG@10", *(f"{size:,} skills" for size in sizes)]
    rows = [[method.title, *(str(Quality(method.by_size.get(size, []))) for size in sizes)] for method in methods]
    return Table("By number of skills", headings, rows)


def show_languages(collection: Collection, methods: Sequence[Measured]) -> Table:
    """Return hit@1 by the language of the query and that of the right skill."""

    def name_languages(query: Query) -> str:
        asked = query.language or "en"
        written = collection.skills[min(query.answers)].get("lang", "en")
        if asked == written != "en":
            return "another language → the same"
        if asked == "en" != written:
            return "English → another language"
        return f"{LANGUAGES[asked]} → {LANGUAGES[written]}"

    return _show_groups("By language", "hit@1, query → skill", collection, methods, name_languages)


def show_traits(collection: Collection, methods: Sequence[Measured]) -> Table:
    return _show_groups("By difficulty", "hit@1", collection, methods, lambda query: query.trait)


def _show_groups(
    title: str, heading: str, collection: Collection, methods: Sequence[Measured], name_group: Callable[[Query], str]
) -> Table:
    counts: dict[str, int] = {}
    for query in collection.queries:
        group = name_group(query)
        if group:
            counts[group] = counts.get(group, 0) + 1
    rows: list[list[str]] = []
    for group, count in counts.items():
        row = [f"{group} ({count})"]
        for method in methods:
            quality = _choose(collection.queries, method.whole, lambda query, group=group: name_group(query) == group)
            row.append(_hit_rate(quality, with_interval=True))
        rows.append(row)
    return Table(title, [heading, *(method.title for method in methods)], rows)


def show_choices(methods: Sequence[Measured]) -> Table:
    """Return the weights that each half would choose, beside the shipped ones."""
    rows: list[list[str]] = []
    for method in methods:
        if method.findings is None or not method.findings.choices:
            continue
        rows.append([method.title, "both (shipped)", _weights(method.findings.weights), str(Quality(method.whole))])
        for choice in method.findings.choices:
            where = f"half {1 - choice.reported_half}, reported on half {choice.reported_half}"
            rows.append([method.title, where, _weights(choice.weights), str(Quality(choice.answers))])
        unseen = Quality([answer for choice in method.findings.choices for answer in choice.answers])
        rows.append([method.title, "the other half, all queries", "", str(unseen)])
        rows.append([method.title, "the other half, mean of the halves", "", _mean_of_halves(method.findings.choices)])
    return Table("Weights chosen on one half of the authors", ["", "chosen on", "weights", "hit@1 / nDCG@10"], rows)


# --- nothing fits ---


def show_silence(methods: Sequence[Measured]) -> Table:
    """Return how often all matches are weak: they should be if the right skill is missing, and not otherwise."""
    headings = [
        "",
        "skills",
        "not weak though the skill is missing",
        "weak though it is there",
        "of them it would have been first",
        "score of 0.5 or more though it is missing",
        "score is higher with the skill (AUC)",
    ]
    rows: list[list[str]] = []
    for method in methods:
        if method.findings is None:
            continue
        threshold = method.findings.threshold
        title = f"{method.title}, weak below {threshold:g}"
        together = Presence()
        for size, presence in sorted(method.findings.by_size.items()):
            together.present += presence.present
            together.absent += presence.absent
            rows.append([title, f"{size:,}", *_silence(presence, threshold)])
        if len(method.findings.by_size) > 1:
            rows.append([title, "all sizes", *_silence(together, threshold)])
    return Table("Nothing fits", headings, rows)


def _silence(presence: Presence, threshold: float) -> list[str]:
    silenced = [answer for answer in presence.present if answer.score < threshold]
    return [
        _percent(1 - silent_share(presence.absent, threshold)),
        _percent(silent_share(presence.present, threshold)),
        str(sum(answer.is_hit for answer in silenced)),
        _percent(1 - silent_share(presence.absent, _CONFIDENT)),
        f"{compare_scores(presence.present, presence.absent):.2f}",
    ]


def show_forks(methods: Sequence[Measured]) -> Table:
    """Return what a changed copy beside the right skill does. Both are right, so nothing should get worse."""
    rows: list[list[str]] = []
    for method in methods:
        if method.findings is None:
            continue
        size = method.findings.forked_size
        threshold = method.findings.threshold
        for title, answers in (
            (method.title, method.findings.by_size[size].present),
            (f"{method.title}, with a changed copy", method.findings.with_forks.present),
        ):
            scores = [answer.score for answer in answers]
            rows.append(
                [
                    title,
                    f"{size:,}",
                    f"{Quality(answers).hit_rate:.1f}",
                    _percent(silent_share(answers, threshold)),
                    f"{percentile(scores, 0.5):.2f}",
                ]
            )
    headings = ["", "skills", "hit@1", "weak though it is there", "median score"]
    return Table("A changed copy beside the right skill", headings, rows)


def show_unanswerable(methods: Sequence[Measured]) -> Table:
    rows: list[list[str]] = []
    for method in methods:
        if method.findings and method.findings.unanswerable:
            answers = method.findings.unanswerable
            silent = sum(answer.score < method.findings.threshold for answer in answers)
            rows.append([method.title, f"{silent} of {len(answers)}"])
    return Table("Queries that no skill is for", ["", "weak matches only"], rows)


def show_reliability(method: Measured) -> Table:
    """Return how often the first skill is right, by its score: as often as the score says, if it is calibrated.

    Every second query is one whose right skill is missing.
    """
    assert method.findings is not None
    by_size = method.findings.by_size
    columns = {f"{size:,} skills": [*by_size[size].present, *by_size[size].absent] for size in sorted(by_size)}
    columns["all sizes"] = [answer for answers in columns.values() for answer in answers]
    binned = {title: sort_into_bins(answers, EDGES) for title, answers in columns.items()}
    rows: list[list[str]] = []
    for at, (low, high) in enumerate(pairwise(EDGES)):
        cells = [bins[at] for bins in binned.values()]
        rows.append([f"{low:.1f}–{high:.1f}", *(f"{_percent(each.share_right)} of {each.count}" for each in cells)])
    rows.append(["off by, on average", *(f"{100 * calibration_error(bins):.0f} points" for bins in binned.values())])
    title = f"First skill right, by score, if half of the requests have a skill: {method.title}"
    return Table(title, ["score", *binned], rows)


def silent_share(answers: Sequence[Answer], threshold: float) -> float:
    """Return the share of answers that a threshold holds back."""
    return mean(answer.score < threshold for answer in answers)


# --- speed ---


def show_speed(speeds: Mapping[str, Sequence[Speed]]) -> Table:
    headings = [
        "processor time",
        "skills",
        "query, median",
        "95th percentile",
        "build",
        "build / scan",
        "first search of the next process",
        "added by an edit",
        "disk of a skill",
    ]
    rows: list[list[str]] = []
    for title, measured in speeds.items():
        for speed in measured:
            rows.append(
                [
                    title,
                    f"{speed.skills:,}",
                    amount(speed.median, "s"),
                    amount(speed.slow, "s"),
                    amount(speed.build, "s"),
                    times(speed.build / speed.scan),
                    amount(speed.next_process, "s"),
                    amount(speed.update, "s"),
                    amount(speed.stored / speed.skills, "B"),
                ]
            )
    return Table("Speed and disk", headings, rows)


# --- goals ---


@dataclass(frozen=True)
class Goals:
    """What is expected of one mode. The quality is that on the public data."""

    quality: Mapping[str, float]
    build: float
    """Times a cold scan of the same skills."""


GOALS = {
    WITHOUT_EXTRA: Goals({"hit@1": 68, "nDCG@10": 78.5, "recall@10": 88}, build=14),
    WITH_EXTRA: Goals({"hit@1": 68.5, "nDCG@10": 79.5}, build=18),
}
MAX_MEDIAN = 0.060
"""Seconds of a query, at every measured size."""
PUBLIC_SKILLS = 4_672
"""How many skills the public data has."""


def show_goals(collection: Collection, methods: Sequence[Measured], speeds: Mapping[str, Sequence[Speed]]) -> Table:
    """Return each goal with what was measured. The worst of several sizes counts."""
    rows: list[list[str]] = []
    for method in methods:
        if method.title not in GOALS or len(collection.skills) != PUBLIC_SKILLS:
            continue
        quality = Quality(method.whole)
        measured = {"hit@1": quality.hit_rate, "nDCG@10": quality.gain, "recall@10": quality.recall}
        for name, least in GOALS[method.title].quality.items():
            value = measured[name]
            rows.append([f"{name}, {method.title}", f"≥ {least:g}", f"{value:.1f}", _verdict(value >= least)])

    for title, goals in GOALS.items():
        timed = speeds.get(title)
        if not timed:
            continue
        build = max(speed.build / speed.scan for speed in timed)
        rows.append([f"build / scan, {title}", f"≤ {goals.build:g}x", times(build), _verdict(build <= goals.build)])
        median = max(speed.median for speed in timed)
        most = amount(MAX_MEDIAN, "s")
        rows.append([f"query, median, {title}", f"≤ {most}", amount(median, "s"), _verdict(median <= MAX_MEDIAN)])

    for ours, earlier in zip(speeds.get(WITHOUT_EXTRA, ()), speeds.get(EARLIER, ()), strict=False):
        ratio = ours.median / earlier.median
        what = f"query, median, against {EARLIER}, {ours.skills:,} skills"
        rows.append([what, "≤ 1x", times(ratio), _verdict(ratio <= 1)])
    return Table("Goals", ["what", "goal", "measured", "verdict"], rows)


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "missed"


# --- cells ---


def _near_misses(method: Measured) -> str:
    if not method.near_misses:
        return "–"
    return f"{Quality(method.near_misses).hit_rate:.1f} %"


def _interval_over_authors(queries: Sequence[Query], answers: Sequence[Answer]) -> str:
    groups: dict[str, list[Answer]] = {}
    for query, answer in zip(queries, answers, strict=True):
        groups.setdefault(query.repository, []).append(answer)
    interval = resample(groups.values())
    return f"{100 * interval.low:.0f}–{100 * interval.high:.0f}"


def _mean_of_halves(choices: Sequence[Choice]) -> str:
    qualities = [Quality(choice.answers) for choice in choices if choice.answers]
    return f"{mean(each.hit_rate for each in qualities):.1f} / {mean(each.gain for each in qualities):.1f}"


def _choose(queries: Sequence[Query], answers: Sequence[Answer], test: Callable[[Query], bool]) -> Quality:
    return Quality([answer for query, answer in zip(queries, answers, strict=True) if test(query)])


def _hit_rate(quality: Quality, *, with_interval: bool = False) -> str:
    if not quality.answers:
        return "–"
    if not with_interval:
        return f"{quality.hit_rate:.1f}"
    return f"{quality.hit_rate:.1f} ({quality.interval.low:.0f}–{quality.interval.high:.0f})"


def _weights(weights: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in weights.items())


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
