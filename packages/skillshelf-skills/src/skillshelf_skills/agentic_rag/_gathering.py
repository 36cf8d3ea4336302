"""Asks all sources, merges and reranks their passages, and takes the best within a budget of tokens."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from skillshelf.errors import SkillError
from skillshelf.search import SearchText, TextSearch
from skillshelf.skills.results import text_of
from skillshelf.text.tokens import estimate
from skillshelf_skills.agentic_rag._errors import (
    RagError,
    SourceFailedError,
    find_reason,
)
from skillshelf_skills.agentic_rag._graphs import find_graph_passages
from skillshelf_skills.agentic_rag._limits import MAX_QUESTION
from skillshelf_skills.agentic_rag._passages import fuse_ranks, rate_rank, show_passage
from skillshelf_skills.agentic_rag._results import NOTICE, Evidence, FoundPassages, Gathered
from skillshelf_skills.agentic_rag._sources import GraphSource, Passage, PassageSource, Sources

_PER_SOURCE = 20
_COMPARED = 2
"""How much the comparison with the question counts, beside the order that a source gave."""
_TRUSTED = 3
"""The first passages of a source stay, whatever the comparison says: the source may know more of meaning."""

logger = logging.getLogger(__name__)


class SourceAnswer(NamedTuple):
    """What one source has on a question."""

    passages: Sequence[Passage] = ()
    remarks: Sequence[str] = ()
    failure: str = ""


Ask = Callable[[], Awaitable[SourceAnswer]]


class Answers(NamedTuple):
    """What all sources have on a question."""

    lists: list[Sequence[Passage]]
    failures: list[str]
    remarks: list[str]


async def ask_sources(sources: Sources, question: str, seconds: float) -> Answers:
    """Ask all sources at the same time. One that fails, or takes too long, is reported and holds up no other."""
    if not question.strip():
        raise RagError("There is no question.")
    question = question[:MAX_QUESTION]
    searched: list[PassageSource] = [*sources.documents]
    if sources.web is not None:
        searched.append(sources.web)
    asked = [_ask(source.name, _asking(source, question), seconds) for source in searched]
    if sources.graph is not None:
        asked.append(_ask(sources.graph.name, _asking_graph(sources.graph, question), seconds))

    answers = await asyncio.gather(*asked)
    failures = [answer.failure for answer in answers if answer.failure]
    if failures and len(failures) == len(answers):
        raise RagError(f"No source could be asked. {' '.join(failures)}")
    remarks = [remark for answer in answers for remark in answer.remarks]
    return Answers([answer.passages for answer in answers], failures, remarks)


def _asking(source: PassageSource, question: str) -> Ask:
    async def ask() -> SourceAnswer:
        passages = await source.search(question, _PER_SOURCE)
        return SourceAnswer(passages, tuple(source.remarks))

    return ask


def _asking_graph(graph: GraphSource, question: str) -> Ask:
    async def ask() -> SourceAnswer:
        return SourceAnswer(await find_graph_passages(graph, question, _PER_SOURCE))

    return ask


async def _ask(name: str, ask: Ask, seconds: float) -> SourceAnswer:
    """Ask a source. Whatever it raises is its failure, and not that of the others."""
    try:
        async with asyncio.timeout(seconds):
            return await ask()
    except TimeoutError:
        return SourceAnswer(failure=f"{name}: there was no answer within {seconds:g} seconds.")
    except SourceFailedError as error:  # it names the source itself
        return SourceAnswer(failure=find_reason(error))
    except SkillError as error:
        return SourceAnswer(failure=f"{name}: {find_reason(error)}")
    except Exception as error:
        logger.exception("the source %s failed", name)
        return SourceAnswer(failure=f"{name}: it failed ({type(error).__name__}).")


# -- merging ----------------------------------------------------------------------------------------------------------


def merge(question: str, lists: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Return the passages of all lists, best first. Of those that say almost the same, only the best is there.

    Scores of different sources cannot be compared, so ranks are fused: that in the passage's own list, and that in a
    comparison of all passages with the question. A passage that loses this comparison stays only if its own source
    ranks it high.
    """
    scores = fuse_ranks(lists)
    passages = list(scores)
    index = TextSearch()
    ids = index.change(added=[SearchText(passage.title, passage.text) for passage in passages])
    by_id = dict(zip(ids, passages, strict=True))
    kept = {passage for found in lists for passage in found[:_TRUSTED]}
    for rank, match in enumerate(index.search(question, len(passages)), 1):
        scores[by_id[match.id]] += _COMPARED * rate_rank(rank)
        kept.add(by_id[match.id])
        kept.difference_update(by_id[copy] for copy in match.copies)

    best: dict[str, Passage] = {}
    for passage in sorted(kept, key=lambda passage: (-scores[passage], passage)):
        best.setdefault(passage.text, passage)
    return list(best.values())


def assemble(question: str, answers: Answers, budget: int) -> Gathered:
    """Return the best passages that fit into a budget of tokens, with numbers to cite them by. Raises RagError."""
    merged = merge(question, answers.lists)
    if not merged:
        raise RagError(
            " ".join(["No source has anything on this.", *answers.failures, *answers.remarks]), reference="sources.md"
        )
    evidence: list[Evidence] = []
    spent = 0
    for passage in merged:
        numbered = Evidence(number=len(evidence) + 1, **show_passage(passage))
        cost = _count_tokens(numbered)
        if spent + cost <= budget:
            evidence.append(numbered)
            spent += cost
        elif not evidence:  # without the best passage, the others would mislead
            raise RagError(f"The best passage takes {cost:,} tokens, and the budget is {budget:,}.")
    return Gathered(
        notice=NOTICE,
        evidence=evidence,
        citations=[_cite(each) for each in evidence],
        tokens=spent,
        left_out=len(merged) - len(evidence),
        failures=answers.failures,
        remarks=answers.remarks,
    )


def _count_tokens(evidence: Evidence) -> int:
    """Return about how many tokens a passage takes in the result, with its line in the list of sources."""
    return estimate(text_of(evidence)) + estimate(_cite(evidence))


def _cite(evidence: Evidence) -> str:
    """Return a line for the list of sources at the end of an answer."""
    return f"[{evidence['number']}] {evidence['title']} ({evidence['locator']})"


async def search_all(documents: Sequence[PassageSource], query: str, limit: int, seconds: float) -> FoundPassages:
    """Return the best passages of the sources of documents. Raises RagError."""
    if not documents:
        raise RagError("The user has attached no documents.", reference="sources.md")
    answers = await ask_sources(Sources(documents), query, seconds)
    passages = await asyncio.to_thread(merge, query, answers.lists)
    if not passages:
        raise RagError(
            " ".join(["No document has anything on this.", *answers.failures, *answers.remarks]), reference="sources.md"
        )
    return FoundPassages(
        notice=NOTICE,
        passages=[show_passage(passage) for passage in passages[:limit]],
        failures=answers.failures,
        remarks=answers.remarks,
    )
