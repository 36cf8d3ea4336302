"""What the index has of a skill or another text: the words of each field, and a digest of the text."""

import hashlib
import re
from typing import Literal, NamedTuple, get_args

from skillshelf.search._limits import MAX_INSTRUCTIONS, MAX_REFERENCES
from skillshelf.search._words import join_words
from skillshelf.skills import SkillDescriptor

Field = Literal["name", "description", "headings", "instructions", "references"]
FIELDS: tuple[Field, ...] = get_args(Field)

_HEADING = re.compile(r"#{1,6}[ \t]")
_EXCLUSION = re.compile(
    r"\b(?:do not|don['’]t|does not|doesn['’]t|should not|not|never|avoid|skip)\s+(?:be\s+)?"
    r"(?:used?|using|trigger(?:ed)?|invoked?|activated?|apply|applie[sd]|for|intended|needed|when|if|cover|handle"
    r"|appropriate|suitable)\b[^.;\n。；]*"
    r"|(?:不要|請勿|勿用於|不适用|不適用|不用于)[^。；\n]*",
    re.I,
)
"""`Do not use for spreadsheets.`: what a skill says it is not about. A quarter of public skills have such a clause."""
_WORD_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])|[-_]")


class Document(NamedTuple):
    """A text in the form in which it is indexed. Words are joined by spaces."""

    name: str
    description: str
    headings: str
    instructions: str
    references: str
    exclusions: str
    """The words of what the description says the skill is not for. No field has them."""
    meaning: str
    """The text that is compared by meaning."""
    digest: bytes
    """A hash of the whole text."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The words of each field, in the order of FIELDS."""
        return self.name, self.description, self.headings, self.instructions, self.references

    @property
    def words(self) -> set[str]:
        """The words of all fields."""
        return set(" ".join(self.fields).split())


def make_document(skill: SkillDescriptor, instructions: str) -> Document:
    headings: list[str] = []
    others: list[str] = []
    for line in instructions[:MAX_INSTRUCTIONS].split("\n"):
        is_heading = line.startswith("#") and _HEADING.match(line)
        (headings if is_heading else others).append(line)

    purpose = cut_exclusions(skill.summary)
    name = join_words(skill.name)
    return Document(
        name=name,
        description=join_words(purpose),
        headings=join_words("\n".join(headings)),
        instructions=join_words("\n".join(others)),
        references=join_words("\n".join(skill.main_references[:MAX_REFERENCES])),
        exclusions=_find_exclusions(skill.summary, name),
        meaning=f"{_WORD_BORDER.sub(' ', skill.name)}. {purpose}",
        digest=hash_text(skill, instructions),
    )


def make_text_document(title: str, text: str) -> Document:
    """Return a text that isn't a skill as a document. The words of its title count like those of a skill's name."""
    return Document(join_words(title), "", "", join_words(text), "", "", f"{title}. {text}", b"")


def cut_exclusions(description: str) -> str:
    """Return a description without what it says the skill is not for."""
    return _EXCLUSION.sub(" ", description)


def hash_text(skill: SkillDescriptor, instructions: str) -> bytes:
    """Return a hash of everything that the index has of a skill."""
    parts = (
        skill.name,
        skill.summary,
        *skill.main_references[:MAX_REFERENCES],
        instructions[:MAX_INSTRUCTIONS],
    )
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


def _find_exclusions(description: str, name: str) -> str:
    """Return the words of what a description says the skill is not for, except those of its name.

    A skill `reverse-engineer` that is not for `reverse engineering of software` must be found by its name.
    """
    clauses = join_words("\n".join(_EXCLUSION.findall(description)))
    return " ".join(word for word in clauses.split() if word not in name.split())
