"""The person decides about skills that are new or changed."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from skillshelf.agent import AgentCore
from skillshelf.errors import TrustError
from skillshelf.repl._keys import Keyboard
from skillshelf.repl._quoted import Page
from skillshelf.text import clean, clean_line
from skillshelf.trust import Pending, review_text, summary

_NAMED = 10
_SECONDS = 1.0
_KEYS = {"y": "yes", "n": "no", "q": "quit"}


class Reviews:
    """Remembers what was told, so that nobody is told twice."""

    def __init__(self, core: AgentCore, console: Console, keyboard: Keyboard) -> None:
        self._core, self._console, self._keyboard = core, console, keyboard
        self._told: set[tuple[str, str]] = set()
        self._pending, self._looked = 0, 0.0

    @property
    def pending(self) -> int:
        """How many skills wait. The line below the prompt asks with every key, so this is counted now and then."""
        if time.monotonic() - self._looked > _SECONDS:
            self._count(self._core.skills.pending)
        return self._pending

    def _count(self, pending: Sequence[Pending]) -> None:
        self._pending, self._looked = len(pending), time.monotonic()

    async def review(self) -> None:
        """One skill after the other, with everything in it; the default is no."""
        pending = self._core.skills.pending
        if not pending:
            self._console.print("Every skill of this workspace is as you agreed to it.")
        for at, one in enumerate(pending):
            self._console.print(Page(clean(review_text(one))))
            answer = await self._decide(at, pending)
            if answer == "quit":
                break
            if answer == "all":
                self._trust([rest for rest in pending[at:] if not rest.blocked])
                break
            if answer == "yes":
                self._trust([one])
        self._told |= set(map(_version, pending))  # what changed meanwhile was not shown
        self._core.reload_skills()
        self._count(self._core.skills.pending)

    async def _decide(self, at: int, pending: Sequence[Pending]) -> str:
        one, left = pending[at], sum(not one.blocked for one in pending[at:])
        count = f"({at + 1}/{len(pending)})"
        if one.blocked:  # the page says why
            self._console.print(Text(f"{count} {clean_line(one.name)} cannot be trusted.", "yellow"))
            return "no"
        several = left > 1
        question = (
            f"{count} Trust {clean_line(one.name)} as it is now? [y]es [n]o{' [a]ll that are left' * several} [q]uit"
        )
        while True:
            answer = await self._ask(question, {**_KEYS, **({"a": "all"} if several else {})})
            if answer != "all":
                return answer
            sure = f"Trust all {left:,} that are left, {left - 1:,} of them unseen? [y]es [n]o"
            if await self._ask(sure, {"y": "yes", "n": "no"}) == "yes":
                return "all"

    async def _ask(self, question: str, answers: dict[str, str]) -> str:
        answer = await self._keyboard.ask(question, answers, "no", stopped="quit")
        self._console.print(Text(answer, "dim"))
        return answer

    def _trust(self, chosen: Sequence[Pending]) -> None:
        for one in chosen:
            try:
                self._core.skills.approve([one])
            except TrustError as error:  # it changed meanwhile, or the record cannot be written: the others can be had
                self._console.print(Text(clean(str(error)), "red"))

    async def ask_at_start(self) -> None:
        """Once about each skill, as it is now."""
        while fresh := self._fresh():
            self._console.print(Text(f"{_skills(len(fresh))} of this workspace that you have not agreed to:", "yellow"))
            for one in fresh[:_NAMED]:
                self._console.print(Text(f"  {clean_line(summary(one))}", "yellow"))
            if len(fresh) > _NAMED:
                self._console.print(Text(f"  … and {len(fresh) - _NAMED:,} more", "yellow"))
            question = "[r]eview them now, or [l]ater with /skills trust"
            if await self._keyboard.ask(question, {"r": "review", "l": "later"}, "later") == "later":
                return
            await self.review()

    def tell_changes(self) -> None:
        """A line about what is new since the last one; no question, which would take the keys meant for a message."""
        fresh = self._fresh()
        for words, names in (
            ("changed on disk", [one.name for one in fresh if not one.granted and one.status == "changed"]),
            ("new on disk", [one.name for one in fresh if not one.granted and one.status == "new"]),
            ("in use until this session ends; to keep it", [one.name for one in fresh if one.granted]),
        ):
            if names:
                more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
                line = f"{', '.join(map(clean_line, names[:_NAMED]))}{more} {words}: /skills trust"
                self._console.print(Text(line, "yellow"))

    def _fresh(self) -> list[Pending]:
        pending = self._core.skills.pending
        self._count(pending)
        fresh = [one for one in pending if _version(one) not in self._told]
        self._told |= set(map(_version, fresh))
        return fresh


def _skills(count: int) -> str:
    return "A skill" if count == 1 else f"{count:,} skills"


def _version(one: Pending) -> tuple[str, str]:
    return one.key, one.tree
