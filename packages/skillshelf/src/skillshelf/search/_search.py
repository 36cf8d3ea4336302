"""Search the skills of a catalog: rank them, fold copies, rate how well they fit, give reasons."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skillshelf.files import make_lock
from skillshelf.search._database import SkillDatabase
from skillshelf.search._document import FIELDS, Field
from skillshelf.search._index import Announce, Index, decode_place, is_searchable
from skillshelf.search._query import weigh_rarity
from skillshelf.search._ranking import (
    WEAK_SCORE,
    WEIGHTS,
    Ranked,
    Ranking,
    rank_texts,
    rate_fit,
    rate_later_fit,
)
from skillshelf.search._similarity import load_encoder
from skillshelf.skills import Candidate, Catalog, SkillDescriptor


@dataclass(frozen=True, slots=True)
class FoundWord:
    """A word of the query that a skill has."""

    word: str
    """As the query spells it."""
    field: Field
    """The most telling field that has it."""
    rarity: float
    """1 for a word that a single skill has, less for a more common one."""
    share: float
    """The part of the score that it brought, between 0 and 1."""
    corrected: str = ""
    """The beginning of the word that was looked for instead, if no skill has this spelling."""

    def __str__(self) -> str:
        if self.corrected:
            return f"{self.word} (read as {self.corrected}) in {self.field}"
        return f"{self.word} in {self.field}"


@dataclass(frozen=True, slots=True)
class Match:
    """A skill that fits a query."""

    name: str
    """The shortest name that leads to the skill: `pdf`, or `pdf@user` if another skill takes the bare name."""
    descriptor: SkillDescriptor
    score: float
    """How well the skill fits, between 0 and 1. It means the same in small and large collections.

    For the best skill it is the probability that it is right, if for half of all requests there is a right skill. For
    the others it is less, the further they are behind.
    """
    words: tuple[FoundWord, ...]
    """The words that were found, in the order of the query."""
    similarity_share: float
    """The part of the score that similarity of meaning brought. 0 without the extra `search`."""
    next_score: float
    """The score of the next match; 0 if there is none."""
    copies: tuple[str, ...] = ()
    """The names of skills that say almost the same and are left out."""
    excluded_words: tuple[str, ...] = ()
    """Words of the query that are about what the skill says it is not for. They count against it."""

    @property
    def is_weak(self) -> bool:
        """True if the skill hardly fits, and may have nothing to do with the query."""
        return self.score < WEAK_SCORE

    @property
    def is_clear(self) -> bool:
        """True if the query has a word of the skill's name, two of its description, or four of its whole text.

        The score alone does not tell: a short reply such as `go on` scores high if one skill has these words somewhere.
        """
        in_name = sum(word.field == "name" for word in self.words)
        in_description = sum(word.field == "description" for word in self.words)
        return in_name >= 1 or in_description >= 2 or len(self.words) >= 4

    @property
    def why(self) -> tuple[str, ...]:
        """The reasons in words: `pdf in name`."""
        reasons = [str(word) for word in self.words]
        if self.similarity_share >= 0.005:
            # A share of the score: 100 % would read like a perfect match.
            reasons.append(f"{self.similarity_share:.0%} similar meaning" if self.words else "similar meaning alone")
        if self.excluded_words:
            reasons.append(f"says it is not for {', '.join(self.excluded_words)}")
        return tuple(reasons)


@dataclass(slots=True)
class _Result:
    """A skill that was found, with the copies of it."""

    candidate: Candidate
    ranked: Ranked
    copies: list[Candidate]


class SkillSearch:
    """The search of one shelf. It builds its index at the first query and keeps it up to date with the catalog."""

    def __init__(
        self,
        read_instructions: Callable[[Candidate], str],
        *,
        with_similarity: bool = True,
        path: str | None = None,
    ) -> None:
        """`path`: the file of the index, which need not exist. Without one, the index stays in memory."""
        self.weights = WEIGHTS
        encoder = load_encoder() if with_similarity else None
        self.has_similarity = encoder is not None
        """Whether similarity of meaning counts. It needs the extra `search`."""
        self._index = Index(read_instructions, path, encoder)
        self._lock = make_lock()

    def prepare(self, catalog: Catalog, announce: Announce | None = None) -> None:
        """Build the index or bring it up to date, so that the next search need not. Another thread can do this.

        `announce` is called with the number of skills to be indexed, if there are any.
        """
        with self._lock:
            self._index.use(catalog, lambda database: None, announce)

    def search(self, catalog: Catalog, query: str, limit: int = 5, *, min_score: float = 0.0) -> list[Match]:
        """Return the skills that fit a query, best first, and those that hardly fit, which are marked as weak.

        Skills for the user alone are left out, and those below `min_score`.
        """
        with self._lock:
            return self._index.use(catalog, lambda database: self._search(database, catalog, query, limit, min_score))

    def _search(
        self, database: SkillDatabase, catalog: Catalog, query: str, limit: int, min_score: float
    ) -> list[Match]:
        if limit < 1:
            return []
        ranking = rank_texts(database, query, 2 * limit, weights=self.weights)
        results = _fold_copies(_find_skills(ranking, catalog), limit + 1)
        scores = _rate(results, ranking, database.size)
        matches: list[Match] = []
        for rank, result in enumerate(results[:limit]):
            if scores[rank] < min_score:
                break
            following = scores[rank + 1] if rank + 1 < len(scores) else 0.0
            matches.append(_make_match(result, catalog, ranking, database.size, scores[rank], following))
        return matches


def _find_skills(ranking: Ranking, catalog: Catalog) -> list[_Result]:
    """Return the skills of a catalog that were found. Another process may have indexed others."""
    results: list[_Result] = []
    for ranked in ranking.texts:
        place = decode_place(ranked.entry.place or b"")
        found = catalog.found.get(place)
        if found is not None and is_searchable(found):
            results.append(_Result(Candidate(place, found), ranked, []))
    return results


def _fold_copies(results: Sequence[_Result], wanted: int) -> list[_Result]:
    """Return the best skills, each with the copies of it among those that come after.

    Copies are folded within a kind of source. A tenth of a copy, and all that is beyond the searched part, can say
    something else, so a project's copy must not hide the user's own skill. Of two folders of one kind, such as the
    user's, the skill of the first stands for its copies.
    """
    kept: list[_Result] = []
    for result in results[: 2 * wanted + 8]:
        first = next((each for each in kept if _is_copy(result, each)), None)
        if first is None:
            if len(kept) < wanted:
                kept.append(result)
            continue
        if result.candidate.place.source < first.candidate.place.source:
            first.copies.insert(0, first.candidate)
            first.candidate = result.candidate
            result.ranked.score = first.ranked.score
            first.ranked = result.ranked
        else:
            first.copies.append(result.candidate)
    return kept


def _is_copy(result: _Result, other: _Result) -> bool:
    is_same_kind = result.candidate.descriptor.source == other.candidate.descriptor.source
    return is_same_kind and result.ranked.is_copy_of(other.ranked)


def _rate(results: Sequence[_Result], ranking: Ranking, size: int) -> list[float]:
    """Return how well each skill fits."""
    if not results:
        return []
    best = results[0].ranked
    # A changed copy that comes right after the best skill doesn't make it less likely that the best one is right.
    rivals = (each.score for each in ranking.texts if each is not best and not each.is_related_to(best))
    has_similarity = ranking.weights.similarity > 0
    best_fit = rate_fit(best, next(rivals, 0.0), ranking.query, size=size, has_similarity=has_similarity)
    return [best_fit, *(rate_later_fit(best_fit, each.ranked.score, best.score) for each in results[1:])]


def _make_match(
    result: _Result, catalog: Catalog, ranking: Ranking, size: int, score: float, next_score: float
) -> Match:
    ranked = result.ranked
    similarity_share = 0.0
    if ranked.score > 0:
        similarity_share = min(1.0, ranking.weights.similarity * ranked.similarity / ranked.score)
    return Match(
        name=catalog.reach(result.candidate),
        descriptor=result.candidate.descriptor,
        score=round(score, 4),
        words=_explain_words(ranked, ranking, size, 1 - similarity_share),
        similarity_share=round(similarity_share, 3),
        next_score=round(next_score, 4),
        copies=tuple(map(catalog.reach, result.copies)),
        excluded_words=tuple(ranking.query.spelling[word] for word in ranked.excluded),
    )


def _explain_words(ranked: Ranked, ranking: Ranking, size: int, share: float) -> tuple[FoundWord, ...]:
    """Return the words that a skill has, and share out the part of the score that they brought."""
    query = ranking.query
    weights = ranking.weights
    fields: dict[str, Field] = {}
    parts: dict[str, float] = {}
    words_of = {name: frozenset(getattr(ranked.entry, name).split()) for name in FIELDS}
    for word in query.weights:
        if word in ranked.counts:
            fields[word] = next(name for name in FIELDS if word in words_of[name])
            weight = weights.long
            if word in ranked.card_counts:
                weight += weights.short
            if fields[word] == "name":
                weight += weights.name
            parts[word] = weight * query.weights[word]
    total = sum(parts.values()) or 1.0
    highest = weigh_rarity(1, size)
    return tuple(
        FoundWord(
            word=query.spelling[word],
            field=field,
            rarity=round(min(1.0, query.rarity[word] / highest), 3),
            share=round(share * parts[word] / total, 3),
            corrected=word if word in query.corrected else "",
        )
        for word, field in fields.items()
    )
