"""The questions of a review. The command line and the terminal ask the same ones, each in its own way."""

from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple, Protocol

from skillshelf.errors import TrustError
from skillshelf.text import clean_line
from skillshelf.trust._pending import Pending


class ReviewQuestion(NamedTuple):
    """A question to the user. Anything but one of its answers means no."""

    text: str
    answers: Mapping[str, str]
    """By key: `yes`, `no`, `all` or `quit`."""


class ReviewFace(Protocol):
    """The place where the user reads a review, and the record that keeps the approvals."""

    def show_page(self, skill: Pending) -> None:
        """Show everything in a pending skill."""

    def approve(self, skill: Pending) -> None:
        """Record an approval. Raises TrustError if the skill changed meanwhile or the record cannot be written."""

    def warn(self, message: str) -> None:
        """Tell the user that a skill cannot be approved."""


class Review:
    """Goes through pending skills one by one: `question` is the next question, until `answer` leaves none."""

    def __init__(self, pending: Sequence[Pending], face: ReviewFace) -> None:
        self._pending = pending
        self._face = face
        self._steps = self._ask_about_all()
        self.question = next(self._steps, None)

    def answer(self, answer: str) -> None:
        """Act on the answer to the question, and go on to the next one."""
        try:
            self.question = self._steps.send(answer)
        except StopIteration:
            self.question = None

    def _ask_about_all(self) -> Generator[ReviewQuestion, str, None]:
        for position, skill in enumerate(self._pending):
            self._face.show_page(skill)
            progress = f"({position + 1}/{len(self._pending)})"
            if skill.blocked:  # the page says why
                self._face.warn(f"{progress} {clean_line(skill.name)} cannot be trusted.")
                continue

            left = [other for other in self._pending[position:] if not other.blocked]
            answer = yield from self._ask_about(progress, left)
            if answer == "quit":
                return
            if answer == "all":
                self._approve(left)
                return
            if answer == "yes":
                self._approve([skill])

    def _ask_about(self, progress: str, left: Sequence[Pending]) -> Generator[ReviewQuestion, str, str]:
        """Ask about the first of the skills that are left. `all` includes pages not shown, so it is confirmed."""
        answers = {"y": "yes", "n": "no", "q": "quit"}
        all_left = ""
        if len(left) > 1:
            answers["a"] = "all"
            all_left = " [a]ll that are left"
        choices = f"[y]es [n]o{all_left} [q]uit"
        question = ReviewQuestion(f"{progress} Trust {clean_line(left[0].name)} as it is now? {choices}", answers)
        confirmation = ReviewQuestion(
            f"Trust all {len(left):,} that are left, {len(left) - 1:,} of them unseen? [y]es [n]o",
            {"y": "yes", "n": "no"},
        )

        while True:
            answer = yield question
            if answer != "all":
                return answer
            if (yield confirmation) == "yes":
                return "all"

    def _approve(self, skills: Sequence[Pending]) -> None:
        for skill in skills:
            try:
                self._face.approve(skill)
            except TrustError as error:  # the other skills can still be approved
                self._face.warn(str(error))
