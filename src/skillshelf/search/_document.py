"""What the index knows of a skill: the words of its fields and its word pairs."""

import hashlib
import re
import zlib
from array import array
from collections.abc import Iterable, Sequence
from operator import xor
from typing import Literal, NamedTuple, get_args

from skillshelf.descriptor import MAX_DESCRIPTION, SkillDescriptor
from skillshelf.search._words import join_words

Field = Literal["name", "description", "headings", "instructions", "references"]
FIELDS: tuple[Field, ...] = get_args(Field)
MAX_INSTRUCTIONS = 6_000
"""Characters of the instructions that are searched: about a thousand words."""
_MAX_REFERENCES = 100
_MAX_REPEATS = 3
"""How often a word of a description counts. One that is there ten times is there to be found, not to inform."""
_HEADING = re.compile(r"^#{1,6}[ \t].*$", re.M)
_EXCLUSION = re.compile(
    r"\b(?:do not|don['’]t|does not|doesn['’]t|should not|not|never|avoid|skip)\s+(?:be\s+)?"
    r"(?:used?|using|trigger(?:ed)?|invoked?|activated?|apply|applie[sd]|for|intended|needed|when|if|cover|handle"
    r"|appropriate|suitable)\b[^.;\n。；]*"
    r"|(?:不要|請勿|勿用於|不适用|不適用|不用于)[^。；\n]*",
    re.I,
)
"""`Do not use for spreadsheets.`: what a skill says it is not about. A quarter of public skills have such a clause."""
_COPY_LIKENESS = 0.9
"""The share of word pairs that two skills must have in common to be copies."""
_RELATED_LIKENESS = 0.4
"""The same for a skill and a copy that was changed: one with a quarter of the lines taken out has about 0.6."""
_MIN_COPY_PAIRS = 8
_COPY_SAMPLE = 16
_MAX_CACHED_HASHES = 100_000


class Document(NamedTuple):
    """A skill or another text, made ready for the index."""

    words: str
    """The words of the fields, a line for each in the order of FIELDS, with a space around each word."""
    exclusions: str
    """The words of what the description says the skill is not for, with a space around each. No field has them."""
    pairs: "Pairs"
    digest: bytes
    """A hash of the text that was indexed."""


class Pairs(NamedTuple):
    """The pairs of neighbouring words in a skill, each as 16 bits of a hash.

    In a skill of 600 pairs, one of a hundred other pairs is taken for one of them, which does no harm: pairs only
    reorder skills that were found by their words.
    """

    in_name: Sequence[int]
    elsewhere: Sequence[int]
    """Sorted. Without the name's, copies of a skill are equal, whatever they are called."""


def make_document(skill: SkillDescriptor, instructions: str) -> Document:
    instructions = instructions[:MAX_INSTRUCTIONS]
    texts = (
        skill.name,
        cut_exclusions(skill.description),
        "\n".join(_HEADING.findall(instructions)),
        _HEADING.sub("", instructions),
        "\n".join(skill.references[:_MAX_REFERENCES]),
    )
    lines = [join_words(text) for text in texts]
    exclusions = _find_exclusions(skill.description, name=lines[0])
    return _assemble(lines, exclusions, hash_text(skill, instructions))


def make_text_document(title: str, text: str) -> Document:
    """Return a text that is not a skill as a document. Words of its title count as those of a skill's name do."""
    lines = [join_words(title), "", "", join_words(text), ""]
    digest = hashlib.blake2b(f"{title}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return _assemble(lines, "", digest)


def _assemble(lines: Sequence[str], exclusions: str, digest: bytes) -> Document:
    """Return the document whose fields have these words, in the order of FIELDS."""
    pairs = Pairs(hash_pairs(lines[0].split()), sorted({*hash_pairs(" ".join(lines[1:]).split())}))
    words = "\n".join(f" {line} " for line in lines)
    return Document(words, exclusions, pairs, digest)


def _find_exclusions(description: str, name: str) -> str:
    """Return the words of what a description says the skill is not for, except those of its name.

    A skill `reverse-engineer` that is not for `reverse engineering of software` must be found by its name.
    """
    clauses = join_words("\n".join(_EXCLUSION.findall(description[:MAX_DESCRIPTION])))
    excluded = [word for word in clauses.split() if word not in name.split()]
    return f" {' '.join(excluded)} " if excluded else ""


def cut_exclusions(description: str) -> str:
    """Return a description, as far as it is searched, without what it says the skill is not for."""
    return _EXCLUSION.sub(" ", description[:MAX_DESCRIPTION])


def hash_text(skill: SkillDescriptor, instructions: str) -> bytes:
    """Return a hash of everything that the index has from a skill."""
    parts = (
        skill.name,
        skill.description[:MAX_DESCRIPTION],
        *skill.references[:_MAX_REFERENCES],
        instructions[:MAX_INSTRUCTIONS],
    )
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


def find_card_end(words: str) -> int:
    """Return where the words of the name and the description end, of a document's words."""
    end_of_name = words.index("\n")
    return words.index("\n", end_of_name + 1)


def shorten(words: str) -> str:
    """Return the words of the name and the description, each a few times at most."""
    counts: dict[str, int] = {}
    kept: list[str] = []
    for word in words[: find_card_end(words)].split():
        counts[word] = counts.get(word, 0) + 1
        if counts[word] <= _MAX_REPEATS:
            kept.append(word)
    return " ".join(kept)


def find_fields(words: str, wanted: Iterable[str]) -> dict[str, Field]:
    """Return the most telling field that has each of the wanted words. Words that no field has are left out."""
    lines = words.split("\n")
    found: dict[str, Field] = {}
    for word in wanted:
        padded = f" {word} "
        for field, line in zip(FIELDS, lines, strict=True):
            if padded in line:
                found[word] = field
                break
    return found


# -- pairs ------------------------------------------------------------------------------------------------------------


class _HashCache(dict[str, int]):
    """Sixteen bits for each word, the same in every process."""

    def __init__(self, shift: int) -> None:
        self._shift = shift

    def __missing__(self, word: str) -> int:
        if len(self) >= _MAX_CACHED_HASHES:
            self.clear()
        key = self[word] = zlib.crc32(word.encode("utf-8", "surrogatepass")) >> self._shift & 0xFFFF
        return key


_first_hashes = _HashCache(0)
_second_hashes = _HashCache(16)


def hash_pairs(words: Sequence[str]) -> list[int]:
    """Return 16 bits for each pair of neighbouring words, the same in every process."""
    return list(map(xor, map(_first_hashes.__getitem__, words), map(_second_hashes.__getitem__, words[1:])))


def pack_pairs(pairs: Pairs) -> bytes:
    """Return pairs in two bytes each, those of the name first. `unpack_pairs` needs their number."""
    return array("H", [*pairs.in_name, *pairs.elsewhere]).tobytes()


def unpack_pairs(packed: bytes, in_name: int) -> Pairs:
    pairs = array("H")
    pairs.frombytes(packed)
    return Pairs(pairs[:in_name], pairs[in_name:])


def are_copies(pairs: Pairs, other: Pairs) -> bool:
    """Return whether two skills say almost the same. Their names do not count."""
    return _share_of_pairs(pairs, other, _COPY_LIKENESS) >= _COPY_LIKENESS


def are_related(pairs: Pairs, other: Pairs) -> bool:
    """Return whether two skills say much the same, as a skill and a changed copy of it do."""
    return _share_of_pairs(pairs, other, _RELATED_LIKENESS) >= _RELATED_LIKENESS


def _share_of_pairs(pairs: Pairs, other: Pairs, wanted: float) -> float:
    """Return the share of all pairs that two skills have in common; 0 if it is certainly less than wanted."""
    fewer, more = sorted((len(pairs.elsewhere), len(other.elsewhere)))
    if fewer < _MIN_COPY_PAIRS or fewer < wanted * more:
        return 0.0
    # The lowest pairs are a sample: texts that differ have none of them in common, and need not be compared whole.
    sample = {*pairs.elsewhere[:_COPY_SAMPLE]} & {*other.elsewhere[:_COPY_SAMPLE]}
    if len(sample) < wanted * min(fewer, _COPY_SAMPLE) / 2:
        return 0.0
    common = len({*pairs.elsewhere} & {*other.elsewhere})
    return common / (fewer + more - common)
