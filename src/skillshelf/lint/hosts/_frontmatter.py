"""Conditions of the frontmatter: spellings that YAML loaders, or the one loader that reads line by line, trip over."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from yaml.nodes import MappingNode, Node, ScalarNode

from skillshelf.skillmd import FORMAT_KEYS, MAX_BLOCK, Budget, Document, YamlFault, compose

Field = tuple[ScalarNode, Node]
# Those that pydantic-ai-harness warns of; to the other hosts they are fields like any that the format does not know.
BEHAVIOR = frozenset(
    "agent argument-hint arguments context dependencies disallowed-tools effort hooks model paths shell tools "
    "when_to_use".split()
)
_INVOCABLE = ("user-invocable", "disable-model-invocation")
_TAGS = ("str", "int", "float", "bool", "null", "timestamp", "seq", "map")
_NUMBERS = ("int", "float", "timestamp")
# YAML 1.1 ends a line at these, where the loaders that split lines by themselves, or do not, see another text.
_SEPARATORS = re.compile("[\x85\u2028\u2029]")
# An emoji as JSON writes it, in two halves that YAML does not put together.
_SURROGATES = re.compile("[\ud800-\udfff]")
# Spellings outside YAML that matter to openai-agents, which reads the frontmatter line by line.
_LINES = {
    "block-on-one-line": re.compile(r"^description:[ \t]*[|>][-+0-9]*[ \t]+[^\s#]", re.M),
    "description-unindented": re.compile(r"^description:[ \t]*[^\s|>][^\n]*\n(?![\w-]+[ \t]*:|#)\S", re.M),
}


def find_in_frontmatter(block: str) -> Iterator[str]:
    """Yield the conditions that hold for the text between the `---` lines."""
    block = block.replace("\r\n", "\n")
    document = _compose(block)
    fields = _fields_of(document)
    if document is None or fields is None:
        yield from _check_broken(block)
        return
    yield from _check_marks(document)
    yield from _check_keys([key for key, _ in fields])
    yield from _check_dashes(block, fields)
    lines = block.split("\n")
    for key, value in fields:
        if key.value in ("name", "description"):
            yield from _check_value(key.value, value)
            yield from _check_layout(key, value, lines)
        elif key.value == "metadata":
            yield from _check_metadata(value)
        else:
            yield from _check_other(key.value, value)


def _compose(block: str) -> Document | None:
    """Return the tree as YAML 1.1 has it; None if the block is not YAML, or beyond the bounds."""
    try:
        return compose(block, Budget(MAX_BLOCK, expand=False), as_safe_load=True)
    except YamlFault:
        return None


def _fields_of(document: Document | None) -> list[Field] | None:
    """Return the fields; None if there is no mapping."""
    if document is None:
        return None
    root = document.root
    if root is None:
        return []
    if not isinstance(root, MappingNode):
        return None
    return [(key, value) for key, value in root.value if isinstance(key, ScalarNode)]


def _check_broken(block: str) -> Iterator[str]:
    separated = _SEPARATORS.search(block) and _fields_of(_compose(_SEPARATORS.sub(" ", block))) is not None
    yield "line-separators" if separated else "yaml-repaired"
    yield from (code for code, pattern in _LINES.items() if pattern.search(block))
    if not re.search(r"^[\"']?description[\"']?[ \t]*:", block, re.M | re.I):
        yield "description-missing"


def _check_marks(document: Document) -> Iterator[str]:
    if document.has_flow:
        yield "yaml-flow"
    if document.has_anchors:
        yield "yaml-anchor"
    for tag, _ in document.tags:
        prefix, _, name = tag.rpartition(":")
        standard = prefix == "tag:yaml.org,2002" and name in _TAGS
        yield "yaml-anchor" if standard else "yaml-tag"


def _check_keys(keys: Sequence[ScalarNode]) -> Iterator[str]:
    names = Counter(key.value for key in keys)
    if any(_kind(key) not in ("str", "merge") for key in keys):
        yield "field-key"
    yield from (f"{name}-missing" for name in ("name", "description") if name not in names)
    for name, times in names.items():
        if name in FORMAT_KEYS:
            unknown = []
        elif name.lower() in FORMAT_KEYS:
            unknown = ["field-capitals"]
        else:
            unknown = ["fields-behavior" if name in BEHAVIOR else "fields-unknown"]
        yield from unknown
        if times > 1:
            yield "duplicate-key" if unknown else "duplicate-field"


def _check_dashes(block: str, fields: Sequence[Field]) -> Iterator[str]:
    """Some hosts end the frontmatter at the first `---`, wherever it is."""
    if "---" not in block:
        return
    whole, left = _texts(fields), _texts(_fields_of(_compose(block.partition("---")[0])) or ())
    if left.get("name") != whole.get("name") or not left.get("description"):
        yield "dashes-break"
    else:
        yield "dashes-after" if left["description"] == whole["description"] else "dashes-in-description"


def _texts(fields: Sequence[Field]) -> Mapping[str, str]:
    return {key.value: value.value for key, value in fields if isinstance(value, ScalarNode)}


def _check_value(name: str, value: Node) -> Iterator[str]:
    kind = _kind(value)
    if kind == "collection":
        yield "value-list"
    elif not value.value.strip():
        yield f"{name}-nothing" if kind == "null" else f"{name}-empty"
    elif kind in _NUMBERS:
        yield "value-number"
    elif kind in ("bool", "null"):
        yield "value-yes-no" if kind == "bool" else "value-null"
    if name == "description" and _SURROGATES.search(str(value.value)):
        yield "description-surrogates"


def _check_layout(key: ScalarNode, value: Node, lines: Sequence[str]) -> Iterator[str]:
    """Check how the text is written, which matters to openai-agents: it does not parse YAML."""
    if not isinstance(value, ScalarNode) or not value.value.strip():
        return
    start, end = value.start_mark, value.end_mark
    commented = value.style not in ("|", ">") and "#" in lines[end.line][end.column :]
    if key.value == "name":
        yield from ["name-comment"] if commented else []
        return
    if key.style:
        yield "description-key-quoted"
    if lines[start.line].startswith(("&", "!!"), start.column):
        yield "description-anchor"
    if value.style in ("|", ">"):
        yield "description-block"
    elif start.line > key.end_mark.line:
        yield "description-below"
    elif end.line > start.line:
        yield "description-quoted-lines" if value.style else "description-wrapped"
    if commented:
        yield "description-comment" if value.style else "comment-cuts-value"
    written = "\n".join(lines[start.line : end.line + 1])
    if (value.style == '"' and "\\" in written) or (value.style == "'" and "''" in written):
        yield "description-escaped"


def _check_metadata(value: Node) -> Iterator[str]:
    if not isinstance(value, MappingNode):
        yield "metadata-nothing" if _kind(value) == "null" else "metadata-not-mapping"
        return
    if max(Counter(key.value for key, _ in value.value if isinstance(key, ScalarNode)).values(), default=0) > 1:
        yield "duplicate-metadata"
    for key, held in value.value:
        if _kind(key) not in ("str", "merge"):
            yield "metadata-key"
        kinds = {"collection": "nested", "null": "null", "timestamp": "date", "str": ""}
        if kind := kinds.get(_kind(held), "number"):
            yield f"metadata-{kind}"


def _check_other(name: str, value: Node) -> Iterator[str]:
    kind = _kind(value)
    if name == "allowed-tools":
        yield "allowed-tools-list" if kind == "collection" else "allowed-tools-text"
    if name in FORMAT_KEYS and kind == "null":
        yield "field-nothing"
    elif name in ("license", "compatibility") and kind != "str":
        yield f"{name}-list" if kind == "collection" else "field-number"
    elif name in _INVOCABLE and str(value.value).lower() not in ("true", "false"):
        yield "invocable-other"


def _kind(value: Node) -> str:
    """`str`, `int`, `bool` and so on for a scalar, as YAML 1.1 sees it."""
    if not isinstance(value, ScalarNode):
        return "collection"
    tag = str(value.tag)
    return tag.rpartition(":")[2] if tag.startswith("tag:yaml.org,2002:") else "str"
