"""The last good version of a skill: what stays in use while its file is broken or half written."""

from skillshelf.descriptor import Diagnostic
from skillshelf.found import Found
from skillshelf.skillmd import SkillText
from skillshelf.sources._state import Skill

# Instructions are kept out of memory but for these, which let a small shelf answer while an editor saves.
_MOST_CHARACTERS = 2 * 1024 * 1024
_HALF_WRITTEN = "frontmatter-unclosed"


class LastGood:
    """Keeps instructions within a bound, and decides what a new reading changes."""

    def __init__(self) -> None:
        self._held = 0

    def settle(self, before: Skill | None, skill: Skill, text: SkillText | None) -> bool:
        """Make a broken reading stand on the good one before it. True where the skill now says something new."""
        if before:
            self.drop(before)
        # What broke while nobody looked has no last good version: only its card was kept, not its text.
        if before and not before.cached and before.found.name and is_broken(skill.found):
            skill.found, skill.kept = _kept(before.found, skill.found), before.kept
            self._held += len(skill.kept or "")
        elif text and self._held + len(text.text) <= _MOST_CHARACTERS:
            skill.kept = text.instructions
            self._held += len(skill.kept)
        return not before or _differs(before, skill)

    def drop(self, skill: Skill) -> None:
        self._held -= len(skill.kept or "")


def is_broken(found: Found) -> bool:
    return not found.name or any(note.code == _HALF_WRITTEN for note in found.diagnostics)


def is_half_written(text: SkillText) -> bool:
    return any(note.code == _HALF_WRITTEN for note in text.diagnostics)


def _kept(good: Found, broken: Found) -> Found:
    notes = tuple(note for note in broken.diagnostics if note.severity == "error" or note.code == _HALF_WRITTEN)
    kept = Diagnostic(
        "warning",
        "kept-last-good",
        "the file is broken; its last good version stays in use",
        notes[0].path if notes else "",
        fix="mend the file; it is read again by itself",
    )
    return good.as_last_good((*notes, kept))


def _differs(before: Skill, now: Skill) -> bool:
    """Without digests on both sides, new times mean a new text."""
    old, new = before.found, now.found
    same_text = old.digest == new.digest if old.digest and new.digest else before.stamp == now.stamp
    return not same_text or not old.says_the_same(new)
