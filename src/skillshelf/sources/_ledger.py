"""What is known of a root, and what changed since the last look."""

from skillshelf.descriptor import Diagnostic, Severity
from skillshelf.found import Found
from skillshelf.skillmd import SkillText
from skillshelf.sources._lastgood import LastGood
from skillshelf.sources._state import Skill, State

EVERYWHERE = "/"
"""The key of what is to be said of the whole: no folder can have it."""


class Ledger:
    """Every entry that is made or struck out is a change that the shelf will hear of.

    What is said of a place is entered under "/" and its key, which is no folder's: a place can be a skill as well.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.state = State()
        self.changes: dict[str, Found | None] = {}
        self._last_good = LastGood()

    def path(self, key: str) -> str:
        return f"{self.root}/{key}" if key and key != EVERYWHERE else self.root

    def take(self, key: str, skill: Skill, text: SkillText | None, told: bool) -> None:
        """A skill as it was read just now. `told`: it counts as changed whatever it says."""
        differs = self._last_good.settle(self.state.skills.get(key), skill, text)
        self.state.skills[key] = skill
        if differs or told:
            self.changes[key] = skill.found

    def say(self, key: str, severity: Severity, code: str, message: str, fix: str) -> None:
        """Something about a place that is not a skill's own affair."""
        found = Found(None, (Diagnostic(severity, code, message, self.path(key), fix=fix),))
        known = self.state.notes.get("/" + key)
        if known is None or not known.says_the_same(found):
            self.state.notes["/" + key] = self.changes["/" + key] = found

    def unsay(self, key: str) -> None:
        if self.state.notes.pop("/" + key, None):
            self.changes["/" + key] = None

    def said(self, *codes: str) -> list[str]:
        """The places of which one of these was said."""
        return [key[1:] for key, found in self.state.notes.items() if found.diagnostics[0].code in codes]

    def forget(self, key: str) -> None:
        """A folder that is gone, with all that was known and said at and below it."""
        if key in self.state.folders:
            below = f"{key}/" if key else ""
            for link in [link for link in self.state.links if link.startswith(below)]:
                del self.state.links[link]
            for note in [note[1:] for note in self.state.notes if note.startswith("/" + below)]:
                self.unsay(note)
        self._strike(key)

    def _strike(self, key: str) -> None:
        skill = self.state.skills.pop(key, None)
        if skill:
            self._last_good.drop(skill)
            self.changes[key] = None
        self.unsay(key)
        folder = self.state.folders.pop(key, None)
        for name in folder.children if folder else ():
            self._strike(f"{key}/{name}" if key else name)

    def forget_all(self) -> None:
        self.changes.update(dict.fromkeys((*self.state.skills, *self.state.notes)))
        self.state = State(ignore_stamp=self.state.ignore_stamp)
        self._last_good = LastGood()
