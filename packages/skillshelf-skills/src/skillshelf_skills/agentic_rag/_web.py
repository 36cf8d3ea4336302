"""Pages of the web, fetched under the network rules and reduced to their readable text."""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from skillshelf.errors import SkillError
from skillshelf.search import SearchText, TextSearch
from skillshelf.text import clean_line, unify_lines
from skillshelf_skills.agentic_rag._errors import (
    RagError,
    SourceFailedError,
    find_reason,
)
from skillshelf_skills.agentic_rag._isolated import extract_page
from skillshelf_skills.agentic_rag._passages import cut_into_passages
from skillshelf_skills.agentic_rag._sources import Passage, WebPage
from skillshelf_skills.net import Fetched, Fetcher, NetworkRules

_HTML = ("text/html", "application/xhtml+xml")
_PLAIN = ("application/json", "application/xml", "application/yaml")
_MAX_AGE = 600.0
"""Seconds for which a page that the user named is not fetched again."""
_DENIED = (401, 403)


class _CachedPage(NamedTuple):
    page: WebPage
    fetched_at: float


class WebPages:
    """Pages of the web. Any address that the rules allow can be read; the named ones can be searched."""

    def __init__(self, pages: Sequence[str] = (), *, rules: NetworkRules | None = None, name: str = "web") -> None:
        """`pages` are the addresses that `search` asks. `rules` default to public hosts only."""
        self.name = name
        self.remarks: list[str] = []
        self._pages = tuple(pages)
        self._rules = rules or NetworkRules()
        self._cached: dict[str, _CachedPage] = {}

    async def read(self, url: str) -> WebPage:
        async with Fetcher(self._rules) as fetcher:
            fetched = await fetcher.fetch(url)
        _check_status(fetched)
        if fetched.media_type in _HTML or (not fetched.media_type and b"<html" in fetched.body[:2000].lower()):
            page = await extract_page(fetched.text)
            if page is None:
                raise RagError(f"{clean_line(fetched.url)} has no text: it may be made by scripts.")
            return WebPage(fetched.url, page.title, unify_lines(page.text), fetched.is_whole)
        is_text = fetched.media_type.startswith("text/") or fetched.media_type in _PLAIN
        if not is_text or b"\0" in fetched.body[:100_000]:
            kind = clean_line(fetched.media_type) or "not named"
            raise RagError(f"{clean_line(fetched.url)} is not a page to read: its type is {kind}.")
        return WebPage(fetched.url, "", unify_lines(fetched.text), fetched.is_whole)

    async def search(self, question: str, limit: int) -> Sequence[Passage]:
        if not question.strip():
            raise RagError("There is nothing to look for.")
        results = await asyncio.gather(*(self._read_cached(url) for url in self._pages), return_exceptions=True)
        pages: list[WebPage] = []
        problems: list[str] = []
        for url, result in zip(self._pages, results, strict=True):
            if isinstance(result, SkillError):
                problems.append(f"{clean_line(url)} could not be read: {find_reason(result)}")
            elif isinstance(result, BaseException):
                raise result
            else:
                pages.append(result)
        self.remarks = [f"{self.name}: {problem}" for problem in problems]
        if problems and not pages:
            raise SourceFailedError(self.name, " ".join(problems))
        return await asyncio.to_thread(self._find, question, pages, limit)

    def _find(self, question: str, pages: Sequence[WebPage], limit: int) -> list[Passage]:
        passages: list[Passage] = []
        for page in pages:
            passages += cut_into_passages(self.name, page.url, page.title or page.url, page.text, has_lines=False)
        return _rank(question, passages, limit)

    async def _read_cached(self, url: str) -> WebPage:
        cached = self._cached.get(url)
        if cached is not None and time.monotonic() - cached.fetched_at < _MAX_AGE:
            return cached.page
        page = await self.read(url)
        self._cached[url] = _CachedPage(page, time.monotonic())
        return page


def _rank(question: str, passages: Sequence[Passage], limit: int) -> list[Passage]:
    index = TextSearch()
    ids = index.change(added=[SearchText(passage.title, passage.text) for passage in passages])
    by_id = dict(zip(ids, passages, strict=True))
    return [by_id[match.id] for match in index.search(question, limit)]


def _check_status(fetched: Fetched) -> None:
    if fetched.status in _DENIED:
        raise RagError(
            f"{clean_line(fetched.url)} wants a sign-in (status {fetched.status}). The skill authentication-gates is "
            f"for such pages."
        )
    if fetched.status != 200:
        raise RagError(f"{clean_line(fetched.url)} answered with status {fetched.status}.")
