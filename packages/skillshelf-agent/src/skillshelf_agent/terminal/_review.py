"""The review: the user decides about skills that are new or changed."""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from skillshelf.errors import SkillError
from skillshelf.explain import describe_pending, describe_waiting
from skillshelf.text import clean, clean_line, list_names
from skillshelf.text.rendering import ReviewPage, fits_screen
from skillshelf.trust import (
    MINE_QUESTION,
    Pending,
    Review,
    ReviewQuestion,
    describe_kinds,
    review_lines,
    shorten_review,
    summary,
)
from skillshelf_agent import AgentCore
from skillshelf_agent.terminal._keyboard import Keyboard

_MAX_NAMES = 10
_COUNT_SECONDS = 1.0


class Reviewer:
    """Asks about pending skills, and announces each version of a skill only once."""

    def __init__(self, core: AgentCore, console: Console, keyboard: Keyboard) -> None:
        self._core = core
        self._console = console
        self._keyboard = keyboard
        self._announced: set[tuple[str, str]] = set()
        self._approved: list[str] = []
        """The names of what was approved in the review in progress."""
        self._long_page: ReviewPage | None = None
        """A page that is too long for the screen, to be read before the next question."""
        self._pending_count = 0
        self._counted_at = 0.0

    @property
    def pending_count(self) -> int:
        """How many skills wait for review. The status line asks at every key, so this counts once a second."""
        if time.monotonic() - self._counted_at > _COUNT_SECONDS:
            self._count(self._core.skills.pending)
        return self._pending_count

    async def ask_at_start(self) -> None:
        """List the skills that the user has not approved, and offer a review."""
        while unannounced := self._take_unannounced():
            self.warn(f"{describe_waiting(describe_kinds(unannounced), len(unannounced))}:")
            for skill in unannounced[:_MAX_NAMES]:
                self.warn(f"  {clean_line(summary(skill))}")
            if len(unannounced) > _MAX_NAMES:
                self.warn(f"  … and {len(unannounced) - _MAX_NAMES:,} more")

            question = "[r]eview them now, or [l]ater with /skills trust"
            if await self._keyboard.ask(question, {"r": "review", "l": "later"}, "later") == "later":
                return
            await self.review()

    def announce_changes(self) -> None:
        """Print a line about skills that changed since the last one.

        It does not ask: a question would take keys that were meant for a message.
        """
        self.announce_notices()
        unannounced = self._take_unannounced()
        for sentence in describe_pending(unannounced):
            self.warn(f"{sentence} /skills trust shows it and asks.")

    async def review(self) -> None:
        """Show each pending skill with everything in it, and ask. The default answer is no."""
        pending = self._core.skills.pending
        if not pending:
            self._console.print("You have approved every skill in this workspace.")

        self._approved = []
        review = Review(pending, self)
        while review.question:
            review.answer(await self._ask(review.question))
        if self._approved:
            names = list_names([clean_line(name) for name in self._approved], _MAX_NAMES)
            self._console.print(Text(f"approved {names}", "green"))

        # A version that appeared meanwhile was not shown, and will be announced.
        self._announced.update(_version_of(skill) for skill in pending)
        self._core.reload_skills()
        self._count(self._core.skills.pending)

    async def _ask(self, question: ReviewQuestion) -> str:
        if self._long_page:
            await self._keyboard.show_in_pager(self._console, self._long_page)
            self._long_page = None
        answer = await self._keyboard.ask(question.text, question.answers, "no", stopped="later")
        self._console.print(Text(answer, "dim"))
        return answer

    @property
    def offers_mine(self) -> bool:
        return self._core.skills.can_declare_own

    def show_page(self, skill: Pending, *, whole: bool) -> None:
        lines = review_lines(skill, whole=whole)
        page = ReviewPage(lines)
        if fits_screen(self._console, page):
            self._console.print(page)
            return
        self._console.print(ReviewPage(shorten_review(lines)))
        if not skill.blocked:
            self._long_page = page

    def approve(self, skill: Pending) -> None:
        self._core.skills.approve([skill])
        self._approved.append(skill.name)

    def declare_mine(self) -> None:
        if self._core.jobs.running:  # what they change would not wait for a review, as it does in one's own repository
            raise SkillError("A command runs in the background, and could change skills. /jobs kill N ends it.")
        self._core.skills.declare_own()
        self._core.renew_listing()
        self._console.print(Text("This repository is your own from now on. /skills not-mine takes that back.", "green"))

    async def declare_mine_if_sure(self) -> None:
        """Say what follows, ask, and record it."""
        if await self._ask(MINE_QUESTION) == "yes":
            self.declare_mine()

    def announce_notices(self) -> None:
        """Print the notices about skills that the user has not seen yet."""
        for notice in self._core.skills.take_notices():
            self.warn(notice)

    def skip_announcements(self) -> None:
        """Count the pending skills as announced."""
        self._take_unannounced()

    def warn(self, message: str) -> None:
        self._console.print(Text(clean(message), "yellow"))

    def _take_unannounced(self) -> list[Pending]:
        """Return the pending skills whose version was not announced yet, and count them as announced."""
        pending = self._core.skills.pending
        self._count(pending)
        unannounced = [skill for skill in pending if _version_of(skill) not in self._announced]
        self._announced.update(_version_of(skill) for skill in unannounced)
        return unannounced

    def _count(self, pending: Sequence[Pending]) -> None:
        self._pending_count = len(pending)
        self._counted_at = time.monotonic()


def _version_of(skill: Pending) -> tuple[str, str]:
    return skill.key, skill.tree
