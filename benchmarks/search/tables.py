"""The tables of `make bench-search`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.report import aligned, amount, times
from benchmarks.search.baselines import RECORDED
from benchmarks.search.choosing import Choice
from benchmarks.search.collections import Collection, Query
from benchmarks.search.measures import Answer, Quality, calibration_error, mean, sort_into_bins
from benchmarks.search.speed import Speed
from benchmarks.search.worker import Findings

KINDS = {"trigger": "short trigger", "expected": "routing", "task": "long task"}
LANGUAGES = {"en": "English", "de": "German", "pt": "Portuguese", "zh": "Chinese", "ja": "Japanese"}
EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_MOST_SILENT = 0.05


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


def show_summary(collection: Collection, methods: Sequence[Measured], *, has_recorded: bool) -> str:
    """Return the table of the whole collection. The recorded figures belong to the public data alone."""
    headings = ["hit@1 / nDCG@10", "all", "MetaTool hit@1", "Chinese, Japanese hit@1", "near misses first"]
    rows: list[list[str]] = []
    if has_recorded:
        rows += [[each.title, each.hit_rate, each.metatool, each.cjk, each.near_misses] for each in RECORDED]
    for method in methods:
        cjk = _choose(collection.queries, method.whole, lambda query: query.is_cjk)
        rows.append(
            [
                method.title,
                str(Quality(method.whole)),
                _hit_rate(Quality(method.metatool)),
                _hit_rate(cjk, with_interval=True),
                _near_misses(method),
            ]
        )
        if method.findings and method.findings.choices:
            chosen = method.findings.choices
            rows.append([f"{method.title}, chosen on the other half", _mean_of_halves(chosen), "", "", ""])
    return aligned(headings, rows)


def show_kinds(collection: Collection, methods: Sequence[Measured]) -> str:
    """Return the table by kind of query, by script and by half."""
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
    return aligned(headings, rows)


def show_sizes(methods: Sequence[Measured]) -> str:
    sizes = sorted(methods[0].by_size)
    headings = ["hit@1 / nDCG@10 among", *(f"{size:,} skills" for size in sizes)]
    rows = [[method.title, *(str(Quality(method.by_size[size])) for size in sizes)] for method in methods]
    return aligned(headings, rows)


def show_languages(collection: Collection, methods: Sequence[Measured]) -> str:
    """Return hit@1 by the language of the query and that of the right skill."""

    def language_of(query: Query) -> str:
        skill = collection.skills[min(query.answers)]
        return f"{LANGUAGES[query.language or 'en']} → {LANGUAGES[skill.get('lang', 'en')]}"

    return _show_groups("hit@1, query → skill", collection, methods, language_of)


def show_traits(collection: Collection, methods: Sequence[Measured]) -> str:
    return _show_groups("hit@1, what is difficult", collection, methods, lambda query: query.trait)


def _show_groups(
    heading: str, collection: Collection, methods: Sequence[Measured], group_of: Callable[[Query], str]
) -> str:
    groups: dict[str, int] = {}
    for query in collection.queries:
        group = group_of(query)
        if group:
            groups[group] = groups.get(group, 0) + 1
    rows: list[list[str]] = []
    for group, count in groups.items():
        row = [f"{group} ({count})"]
        for method in methods:
            quality = _choose(collection.queries, method.whole, lambda query, group=group: group_of(query) == group)
            row.append(_hit_rate(quality, with_interval=True))
        rows.append(row)
    return aligned([heading, *(method.title for method in methods)], rows)


def show_silence(methods: Sequence[Measured]) -> str:
    """Return how often a search stays silent: it should if the right skill is missing, and should not otherwise."""
    headings = [
        "nothing fits",
        "skills",
        "threshold",
        "answers though the skill is missing",
        "silent though it is there",
        "of them it would have been first",
        f"silent if missing, at {_MOST_SILENT:.0%} silent if there",
    ]
    rows: list[list[str]] = []
    for method in methods:
        if method.findings is None:
            continue
        threshold = method.findings.threshold
        for size, presence in sorted(method.findings.by_size.items()):
            silenced = [answer for answer in presence.present if answer.score < threshold]
            strict = find_threshold(presence.present, _MOST_SILENT)
            rows.append(
                [
                    method.title,
                    f"{size:,}",
                    f"{threshold:g}",
                    _percent(1 - silent_share(presence.absent, threshold)),
                    _percent(silent_share(presence.present, threshold)),
                    str(sum(answer.is_hit for answer in silenced)),
                    f"{_percent(silent_share(presence.absent, strict))} (threshold {strict:.2f})",
                ]
            )
    return aligned(headings, rows)


def show_unanswerable(methods: Sequence[Measured]) -> str:
    lines: list[str] = []
    for method in methods:
        if method.findings and method.findings.unanswerable:
            answers = method.findings.unanswerable
            silent = round(silent_share(answers, method.findings.threshold) * len(answers))
            lines.append(f"{method.title}: silent at {silent} of {len(answers)} queries that no skill is for")
    return "\n".join(lines)


def show_reliability(method: Measured) -> str:
    """Return how often the first skill is right, by its score: as often as the score says, if it is calibrated."""
    if method.findings is None:
        return ""
    by_size = method.findings.by_size
    sizes = sorted(by_size)
    columns = {f"{size:,} skills": by_size[size].present for size in sizes}
    whole = by_size[sizes[-1]]
    columns[f"{sizes[-1]:,}, every second query without its skill"] = [*whole.present, *whole.absent]
    binned = {title: sort_into_bins(answers, EDGES) for title, answers in columns.items()}
    rows: list[list[str]] = []
    for at, (low, high) in enumerate(pairwise(EDGES)):
        cells = [bins[at] for bins in binned.values()]
        rows.append([f"{low:.1f}–{high:.1f}", *(f"{_percent(each.share_right)} of {each.count}" for each in cells)])
    rows.append(["off by, on average", *(f"{100 * calibration_error(bins):.0f} points" for bins in binned.values())])
    return aligned([f"right, by score: {method.title}", *binned], rows)


def show_choices(methods: Sequence[Measured]) -> str:
    lines: list[str] = []
    for method in methods:
        if method.findings is None or not method.findings.choices:
            continue
        lines.append(f"{method.title}, weights as shipped: {_weights(method.findings.weights)}")
        for choice in method.findings.choices:
            lines.append(
                f"{method.title}, chosen on half {1 - choice.reported_half}: {_weights(choice.weights)} → "
                f"half {choice.reported_half}: {Quality(choice.answers)}"
            )
        lines.append(f"{method.title}, mean of both halves: {_mean_of_halves(method.findings.choices)}")
    return "\n".join(lines)


def show_speed(speeds: Mapping[str, Sequence[tuple[Speed, float]]]) -> str:
    headings = [
        "speed (processor time)",
        "skills",
        "query p50",
        "p95",
        "build",
        "cold scan",
        "ratio",
        "first search of the next process",
        "after an edit",
        "memory a skill",
        "disk a skill",
    ]
    rows: list[list[str]] = []
    for title, measured in speeds.items():
        smallest = min((speed for speed, _ in measured), key=lambda speed: speed.skills)
        for speed, again in measured:
            rows.append(
                [
                    title,
                    f"{speed.skills:,}",
                    amount(speed.median, "s"),
                    amount(speed.slow, "s"),
                    amount(speed.build, "s"),
                    amount(speed.scan, "s"),
                    times(speed.build / speed.scan),
                    amount(again, "s"),
                    amount(speed.update, "s"),
                    _bytes_per_skill(speed, smallest),
                    f"{speed.stored / speed.skills:,.0f} B",
                ]
            )
    return aligned(headings, rows)


def silent_share(answers: Sequence[Answer], threshold: float) -> float:
    """Return the share of answers that a threshold holds back."""
    return mean(answer.score < threshold for answer in answers)


def find_threshold(answers: Sequence[Answer], share: float) -> float:
    """Return the highest threshold that holds back at most this share of the answers."""
    ordered = sorted(answer.score for answer in answers)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _bytes_per_skill(speed: Speed, smallest: Speed) -> str:
    """Return what a further skill takes: the difference between two sizes, without the table of vectors."""
    if speed is smallest:
        return f"{speed.memory / speed.skills:,.0f} B, tables included"
    return f"{(speed.memory - smallest.memory) / (speed.skills - smallest.skills):,.0f} B"


def _near_misses(method: Measured) -> str:
    if not method.near_misses:
        return "–"
    first = Quality(method.near_misses).hit_rate
    if method.findings is None:
        return f"{first:.1f} %"
    threshold = method.findings.threshold
    wrong = mean(answer.is_hit and answer.score >= threshold for answer in method.near_misses)
    return f"{_percent(wrong)} ({first:.1f} % without the threshold)"


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
