"""A skill that fits a query, and the reasons."""

from dataclasses import dataclass

from skillshelf.descriptor import SkillDescriptor
from skillshelf.search._document import Field


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
            reasons.append(f"{self.similarity_share:.0%} similar meaning")
        if self.excluded_words:
            reasons.append(f"says it is not for {', '.join(self.excluded_words)}")
        return tuple(reasons)
