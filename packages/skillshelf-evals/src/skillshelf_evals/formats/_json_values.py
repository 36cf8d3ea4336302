"""The JSON of other tools as models: the fields that mean something here, and those that do not.

The same thing has many names out there, which the models bring together. A field that they do not know is kept, so that
the reader can report it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator
from pydantic_core import PydanticCustomError

LIST_KEYS = ("evals", "cases", "queries", "test_cases", "tests", "items", "scenarios", "evaluations")
"""The names under which files list their cases."""
TRIGGER_LISTS = {"should_trigger": True, "should_not_trigger": False}
SENTENCE_LISTS = ("assertions", "expectations", "expected_behavior", "expected_behaviors")
_OTHER_NAMES = {
    "prompt": ("query", "question", "input", "request"),
    "skill": ("skill_name",),
    "required_artifacts": ("expected_artifacts", "expected_files"),
    "text": ("assertion", "expectation", "description", "criterion", "name"),
}
_TRIGGER_WORDS = {
    "trigger": True,
    "should_trigger": True,
    "no_trigger": False,
    "not_trigger": False,
    "do_not_trigger": False,
    "should_not_trigger": False,
}
_NOTHING = ("", "none", "null")


def _read_names(value: Any) -> Any:
    """Return names as a list: null and "none" stand for no name, and a single text for a list of one."""
    if value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING):
        return []
    return [value] if isinstance(value, str) else value


def _read_paths(value: Any) -> Any:
    paths = [] if value is None else value
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise PydanticCustomError("paths", "It must be a list of paths from the skill's folder")
    return paths


def _read_sentence(value: Any) -> Any:
    sentence = {"text": value} if isinstance(value, str) else value
    if isinstance(sentence, Mapping):
        sentence = use_known_names(sentence, Sentence)
        if isinstance(sentence.get("text"), str) and sentence["text"].strip():
            return sentence
    raise PydanticCustomError("sentence", "Each item must be a sentence")


def _read_trigger_word(value: Any) -> bool | None:
    """Return whether a skill should be loaded, if that is what a value says."""
    if isinstance(value, str):
        return _TRIGGER_WORDS.get(value.strip().lower().replace("-", "_").replace(" ", "_"))
    return value if isinstance(value, bool) else None


def _read_text(value: Any) -> Any:
    return "" if value is None else value


class ForeignModel(BaseModel):
    """A mapping that another tool defines. Fields that are not known are kept."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _use_known_names(cls, given: Any) -> Any:
        return use_known_names(given, cls) if isinstance(given, Mapping) else given

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the fields that have no meaning here. A field without a value says nothing."""
        extra = self.model_extra or {}
        return tuple(key for key, value in extra.items() if value not in (None, "", [], {}))


class Sentence(ForeignModel):
    """A statement about a trial that a judge can confirm or deny."""

    text: str


Names = Annotated[list[str], BeforeValidator(_read_names)]
Paths = Annotated[list[str], BeforeValidator(_read_paths)]
Text = Annotated[str, BeforeValidator(_read_text)]
Sentences = Annotated[
    list[Annotated[Sentence, BeforeValidator(_read_sentence)]], BeforeValidator(lambda value: _as_list(value))
]


class EntryValues(ForeignModel):
    """A case of another tool."""

    prompt: Text = ""
    id: Any = None
    name: Any = None
    skill: Text = ""
    skills: Names = Field(default_factory=list)
    tags: Names = Field(default_factory=list)
    category: Names = Field(default_factory=list)
    files: Paths = Field(default_factory=list)
    should_trigger: StrictBool | None = None
    expected_skill: Names = Field(default_factory=list)
    """No skill at all means that none should be used, if the field is given."""
    expected_script: Names = Field(default_factory=list)
    expected_references: Names = Field(default_factory=list)
    required_artifacts: Names = Field(default_factory=list)
    expected_output: Text = ""
    ground_truth: Text = ""
    assertions: Sentences = Field(default_factory=list)
    expectations: Sentences = Field(default_factory=list)
    expected_behavior: Sentences = Field(default_factory=list)
    expected_behaviors: Sentences = Field(default_factory=list)
    must_not: Sentences = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _read_expected(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        values = dict(given)
        expected = values.get("expected")
        should_trigger = _read_trigger_word(expected)
        if should_trigger is not None and "should_trigger" not in values:
            values["should_trigger"] = should_trigger
            del values["expected"]
        elif isinstance(expected, str) and not values.get("expected_output"):
            values["expected_output"] = values.pop("expected")
        return values

    @property
    def names_expected_skill(self) -> bool:
        """True if the case says which skill should be used, or that none should."""
        return "expected_skill" in self.model_fields_set

    @property
    def sentences(self) -> list[Sentence]:
        """All statements that should be true."""
        return [sentence for key in SENTENCE_LISTS for sentence in getattr(self, key)]


class FileValues(ForeignModel):
    """What a file says about all of its cases."""

    skill: Text = ""
    skills: Names = Field(default_factory=list)


def use_known_names(given: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of a mapping under the names that a model has for them.

    If a field is there under several names, the first that has a value counts, and the others keep theirs.
    """
    values = dict(given)
    for name, others in _OTHER_NAMES.items():
        if name not in model.model_fields or _has_value(values.get(name)):
            continue
        for other in others:
            if other not in model.model_fields and _has_value(values.get(other)):
                values[name] = values.pop(other)
                break

    return values


def _has_value(value: Any) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)


def find_prompt(entry: Any) -> str:
    """Return the prompt of an entry that is not validated yet; an empty text if it has none."""
    if not isinstance(entry, Mapping):
        return ""
    prompt = use_known_names(entry, EntryValues).get("prompt")
    return prompt if isinstance(prompt, str) and prompt.strip() else ""


def list_entries(document: Any) -> list[Any] | None:
    """Return the cases of a document as they are written, in their order; None if it is not a case file."""
    if isinstance(document, list):
        return [entry for item in document for entry in _expand(item)]
    if not isinstance(document, Mapping):
        return None
    if find_prompt(document) or _has_trigger_lists(document):
        return list(_expand(document))

    entries: list[Any] = []
    has_list = False
    for value in list_parts(document).values():
        has_list = True
        for item in value if isinstance(value, list) else [value]:
            entries += _expand(item)

    return entries if has_list else None


def list_parts(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a document that hold its cases."""
    parts = {}
    for key, value in document.items():
        if (key in LIST_KEYS and isinstance(value, list)) or _has_trigger_lists(value):
            parts[key] = value
    return parts


def _has_trigger_lists(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(value.get(key), list) for key in TRIGGER_LISTS)


def _expand(item: Any) -> Iterator[Any]:
    """Yield the cases of an item: itself, or one for each query of its lists."""
    if not _has_trigger_lists(item):
        yield item
        return
    shared = {key: value for key, value in item.items() if key not in TRIGGER_LISTS}
    # A name for all of them tells none of them apart, but `-k` can find it.
    labels = [shared.pop(key) for key in ("name", "id") if isinstance(shared.get(key), str)]
    if labels:
        shared["tags"] = [*_as_list(shared.get("tags")), *labels]
    for key, query in _list_queries(item):
        values = query if isinstance(query, Mapping) else {"query": query}
        yield {**shared, "should_trigger": TRIGGER_LISTS[key], **values}


def _list_queries(item: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in item.items():
        if key in TRIGGER_LISTS:
            for query in _as_list(value):
                yield key, query


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
