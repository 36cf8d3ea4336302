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
    """By key: `yes`, `no`, `view`, `all`, `mine` or `quit`."""


MINE_CONSEQUENCE = (
    "Its skills, AGENTS.md and CLAUDE.md apply as soon as they change, without a question: your own edits, and also "
    "whatever `git pull` or another checkout brings. Only what the agent changes still waits for you."
)
"""What follows if the user declares a repository their own."""
MINE_QUESTION = ReviewQuestion(
    f"Is this repository your own? If so: {MINE_CONSEQUENCE} [y]es [n]o", {"y": "yes", "n": "no"}
)


class ReviewFace(Protocol):
    """The place where the user reads a review, and the record that keeps the approvals."""

    @property
    def offers_mine(self) -> bool:
        """True if the user may declare the repository their own."""

    def show_page(self, skill: Pending, *, whole: bool) -> None:
        """Show a pending skill: everything in it, or only what changed since the approved version."""

    def approve(self, skill: Pending) -> None:
        """Record an approval. Raises TrustError if the skill changed meanwhile or the record cannot be written."""

    def declare_mine(self) -> None:
        """Record that the repository is the user's own. Raises TrustError."""

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
            self._face.show_page(skill, whole=skill.approved is None)
            progress = f"({position + 1}/{len(self._pending)})"
            if skill.blocked:  # the page says why
                self._face.warn(f"{progress} {clean_line(skill.name)} cannot be trusted.")
                continue

            left = [other for other in self._pending[position:] if not other.blocked]
            answer = yield from self._ask_about(progress, left)
            if answer in ("quit", "mine"):
                return
            if answer == "all":
                self._approve(left)
                return
            if answer == "yes":
                self._approve([skill])

    def _ask_about(self, progress: str, left: Sequence[Pending]) -> Generator[ReviewQuestion, str, str]:
        """Ask about the first of the skills that are left. `all` includes pages not shown, so it is confirmed."""
        answers = {"y": "yes", "n": "no", "v": "view"}
        choices = ["[y]es", "[n]o", "[v]iew all of it"]
        if len(left) > 1:
            answers["a"] = "all"
            choices.append("[a]ll that are left")
        if self._face.offers_mine:
            answers["m"] = "mine"
            choices.append("[m]y own repository")
        answers["q"] = "quit"
        choices.append("[q]uit")
        name = clean_line(left[0].name)
        question = ReviewQuestion(f"{progress} Trust {name} as it is now? {' '.join(choices)}", answers)
        confirmation = ReviewQuestion(
            f"Trust all {len(left):,} that are left, {len(left) - 1:,} of them unseen? [y]es [n]o",
            {"y": "yes", "n": "no"},
        )

        while True:
            answer = yield question
            if answer == "view":
                self._face.show_page(left[0], whole=True)
            elif answer == "mine":
                if (yield MINE_QUESTION) == "yes" and self._declare_mine():
                    return "mine"
            elif answer != "all" or (yield confirmation) == "yes":
                return answer

    def _declare_mine(self) -> bool:
        try:
            self._face.declare_mine()
        except TrustError as error:
            self._face.warn(str(error))
            return False
        return True

    def _approve(self, skills: Sequence[Pending]) -> None:
        for skill in skills:
            try:
                self._face.approve(skill)
            except TrustError as error:  # the other skills can still be approved
                self._face.warn(str(error))
