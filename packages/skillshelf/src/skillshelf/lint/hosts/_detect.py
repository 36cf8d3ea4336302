"""Detect the conditions of a skill: everything about its file and its place that hosts treat differently."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from yaml.nodes import MappingNode, Node, ScalarNode

from skillshelf.lint._format import check_format
from skillshelf.lint.hosts._conditions import CONDITIONS
from skillshelf.skillmd import (
    FORMAT_KEYS,
    SkillText,
    Unreadable,
    decode,
    find_frontmatter,
    read,
)
from skillshelf.skillmd.bounded_yaml import MAX_BLOCK, Budget, YamlDocument, YamlFault, compose
from skillshelf.text import find_hidden

# Codes of the reader and the format check that are conditions for hosts as well.
_SHARED_CODES = frozenset(
    "bom compatibility-too-long delimiter-spaces description-too-long instructions-missing name-characters "
    "name-mismatch name-not-ascii name-too-long name-uppercase".split()
)
# Claude Code shows this many characters of a description, beyond the 1,024 that the format allows.
_VERY_LONG_DESCRIPTION = 1536
# If the frontmatter is misplaced, no host reads its fields. For hosts a missing `---` is a missing frontmatter.
_MISPLACED_FRONTMATTER = {
    "frontmatter-missing": "frontmatter-missing",
    "frontmatter-not-first": "frontmatter-not-first",
    "frontmatter-unclosed": "frontmatter-unclosed",
    "frontmatter-undelimited": "frontmatter-missing",
    "frontmatter-unopened": "frontmatter-missing",
}


def find_conditions(
    data: bytes, folder: str, *, file: str = "SKILL.md", nested: bool = False, linked: bool = False
) -> list[str]:
    """Return the conditions that hold for a SKILL.md with these bytes, in a folder of that name."""
    codes = set(_check_bytes(data, folder))
    if file != "SKILL.md":
        codes.add("file-lowercase")
    if nested:
        codes.add("folder-nested")
    if linked:
        codes.add("folder-linked")
    return sorted(codes & CONDITIONS.keys())


def _check_bytes(data: bytes, folder: str) -> Iterator[str]:
    try:
        text = decode(data)
    except Unreadable as error:
        yield error.diagnostic.code
        if error.diagnostic.code not in ("cr-only", "nul-byte"):
            return
        text = data.decode().replace("\r", "\n").replace("\0", " ")  # some hosts read on

    layout = find_frontmatter(text.removeprefix("\ufeff"))
    block = layout.block
    if len(block) > MAX_BLOCK:
        # The frontmatter is longer than skillshelf reads. A host that trips over its beginning trips over all of it.
        block = block[:MAX_BLOCK].rpartition("\n")[0]
    skill = None
    try:
        skill = read(text, folder)
    except Unreadable as error:  # skillshelf refuses it; hosts may not
        yield error.diagnostic.code

    if skill is None:
        # A hidden character in the name makes `read` refuse the skill; it reports any other character.
        name = re.search(r"^name:(.+)$", block, re.M)
        if name and any(find_hidden(name[1])):
            yield "name-characters"

    codes = [note.code for note in layout.diagnostics]
    misplaced = [_MISPLACED_FRONTMATTER[code] for code in codes if code in _MISPLACED_FRONTMATTER]
    yield from misplaced
    if not misplaced:
        yield from _check_frontmatter(block)
    if skill is not None:
        yield from _check_skill(skill, folder)


def _check_skill(skill: SkillText, folder: str) -> Iterator[str]:
    for note in check_format(skill, folder):
        if note.code in _SHARED_CODES:
            yield note.code
    if "\r\n" in skill.text[: skill.body_start]:
        yield "crlf"
    if skill.text.endswith("\n---"):
        yield "frontmatter-last"
    if len(skill.description) > _VERY_LONG_DESCRIPTION:
        yield "description-very-long"
    if "<" in skill.description or "&" in skill.description:
        yield "description-markup"
    # A host that does not parse YAML mistakes these quotes for the ones around a value.
    quoted = re.search(r"""^description:[ \t]*(["'])[^\n]*\1[ \t]*$""", skill.text, re.M)
    if quoted and skill.description[0] == skill.description[-1] == quoted[1]:
        yield "description-quote-ends"

    name = str(skill.values.get("name", ""))
    if name.startswith("-") or name.endswith("-"):
        yield "name-hyphen-end"
    if "--" in name:
        yield "name-hyphens"


# -- the frontmatter ---------------------------------------------------------------------------------------------------

_Field = tuple[ScalarNode, Node]

# Fields that pydantic-ai-harness warns about. Other hosts treat them like any field that the format does not know, with
# one exception: Claude Code keeps a skill with `paths` from the model, which is a condition of its own.
BEHAVIOR_FIELDS = frozenset(
    "agent argument-hint arguments context dependencies disallowed-tools effort hooks model paths shell tools "
    "when_to_use".split()
)
_INVOCABLE = ("user-invocable", "disable-model-invocation")
_STANDARD_TAGS = ("str", "int", "float", "bool", "null", "timestamp", "seq", "map")
# YAML 1.1 ends a line at these. Loaders that split lines themselves, or do not split them, see another text.
_LINE_SEPARATORS = re.compile("[\x85\u2028\u2029]")
# The halves of an emoji as JSON escapes it, which YAML does not put together.
_SURROGATES = re.compile("[\ud800-\udfff]")
# Spellings that are not YAML but matter to openai-agents, which reads the frontmatter line by line.
_NOT_YAML = {
    "block-on-one-line": re.compile(r"^description:[ \t]*[|>][-+0-9]*[ \t]+[^\s#]", re.M),
    "description-unindented": re.compile(r"^description:[ \t]*[^\s|>][^\n]*\n(?![\w-]+[ \t]*:|#)\S", re.M),
}
_METADATA_CONDITIONS = {
    "collection": "metadata-nested",
    "null": "metadata-null",
    "timestamp": "metadata-date",
    "int": "metadata-number",
    "float": "metadata-number",
    "bool": "metadata-number",
}


def _check_frontmatter(block: str) -> Iterator[str]:
    """Check the text between the `---` lines."""
    block = block.replace("\r\n", "\n")
    document = _compose(block)
    fields = _list_fields(document)
    if document is None or fields is None:
        yield from _check_invalid_yaml(block)
        return

    yield from _check_syntax(document)
    yield from _check_keys([key for key, _ in fields])
    yield from _check_dashes(block, fields)
    lines = block.split("\n")
    for key, value in fields:
        if key.value == "name":
            yield from _check_required_value("name", value)
            yield from _check_name_layout(value, lines)
        elif key.value == "description":
            yield from _check_required_value("description", value)
            yield from _check_description_layout(key, value, lines)
        elif key.value == "metadata":
            yield from _check_metadata(value)
        else:
            yield from _check_optional_value(key.value, value)


def _compose(block: str) -> YamlDocument | None:
    """Return the tree by the rules of YAML 1.1, or None if the block is not YAML or exceeds the bounds."""
    try:
        return compose(block, Budget(MAX_BLOCK, expand=False), as_safe_load=True)
    except YamlFault:
        return None


def _list_fields(document: YamlDocument | None) -> list[_Field] | None:
    """Return the fields, or None if the document is not a mapping."""
    if document is None:
        return None
    if document.root is None:
        return []
    if not isinstance(document.root, MappingNode):
        return None
    return [(key, value) for key, value in document.root.value if isinstance(key, ScalarNode)]


def _value_kind(value: Node) -> str:
    """Return `collection`, or the type of a scalar in YAML 1.1, such as `str`, `int` or `bool`."""
    if not isinstance(value, ScalarNode):
        return "collection"
    tag = str(value.tag)
    if not tag.startswith("tag:yaml.org,2002:"):
        return "str"
    return tag.rpartition(":")[2]


def _check_invalid_yaml(block: str) -> Iterator[str]:
    if _is_broken_by_separators(block):
        yield "line-separators"
    else:
        yield "yaml-repaired"
    for code, pattern in _NOT_YAML.items():
        if pattern.search(block):
            yield code
    if not re.search(r"^[\"']?description[\"']?[ \t]*:", block, re.M | re.I):
        yield "description-missing"


def _is_broken_by_separators(block: str) -> bool:
    if not _LINE_SEPARATORS.search(block):
        return False
    without_separators = _LINE_SEPARATORS.sub(" ", block)
    return _list_fields(_compose(without_separators)) is not None


def _check_syntax(document: YamlDocument) -> Iterator[str]:
    if document.has_flow:
        yield "yaml-flow"
    if document.has_anchors:
        yield "yaml-anchor"
    for tag in document.tags:
        prefix, _, name = tag.name.rpartition(":")
        if prefix == "tag:yaml.org,2002" and name in _STANDARD_TAGS:
            yield "yaml-anchor"
        else:
            yield "yaml-tag"


def _check_keys(keys: Sequence[ScalarNode]) -> Iterator[str]:
    if any(_value_kind(key) not in ("str", "merge") for key in keys):
        yield "field-key"

    counts = Counter(key.value for key in keys)
    for name in ("name", "description"):
        if name not in counts:
            yield f"{name}-missing"
    for name, count in counts.items():
        if name in FORMAT_KEYS:
            if count > 1:
                yield "duplicate-field"
            continue
        if name.lower() in FORMAT_KEYS:
            yield "field-capitals"
        elif name in BEHAVIOR_FIELDS:
            yield "fields-behavior"
            if name == "paths":
                yield "paths-given"
        else:
            yield "fields-unknown"
        if count > 1:
            yield "duplicate-key"


def _check_dashes(block: str, fields: Sequence[_Field]) -> Iterator[str]:
    """Check what is left for hosts that end the frontmatter at the first `---`, wherever it is."""
    if "---" not in block:
        return
    shortened_block = block.partition("---")[0]
    shortened = _scalar_values(_list_fields(_compose(shortened_block)) or [])
    full = _scalar_values(fields)
    if shortened.get("name") != full.get("name") or not shortened.get("description"):
        yield "dashes-break"
    elif shortened["description"] == full["description"]:
        yield "dashes-after"
    else:
        yield "dashes-in-description"


def _scalar_values(fields: Sequence[_Field]) -> dict[str, str]:
    return {key.value: value.value for key, value in fields if isinstance(value, ScalarNode)}


def _check_required_value(name: str, value: Node) -> Iterator[str]:
    """Check the value of the name or the description."""
    kind = _value_kind(value)
    if kind == "collection":
        yield "value-list"
    elif not value.value.strip():
        if kind == "null":
            yield f"{name}-nothing"
        else:
            yield f"{name}-empty"
    elif kind in ("int", "float", "timestamp"):
        yield "value-number"
    elif kind == "bool":
        yield "value-yes-no"
    elif kind == "null":
        yield "value-null"
    if name == "description" and _SURROGATES.search(str(value.value)):
        yield "description-surrogates"


def _check_name_layout(value: Node, lines: Sequence[str]) -> Iterator[str]:
    if isinstance(value, ScalarNode) and value.value.strip() and _has_comment(value, lines):
        yield "name-comment"


def _check_description_layout(key: ScalarNode, value: Node, lines: Sequence[str]) -> Iterator[str]:
    """Check how the description is written, which matters to openai-agents: it does not parse YAML."""
    if not isinstance(value, ScalarNode) or not value.value.strip():
        return
    start = value.start_mark
    end = value.end_mark
    is_quoted = value.style in ("'", '"')

    if key.style:
        yield "description-key-quoted"
    if lines[start.line].startswith(("&", "!!"), start.column):
        yield "description-anchor"

    if value.style in ("|", ">"):
        yield "description-block"
    elif start.line > key.end_mark.line:
        yield "description-below"
    elif end.line > start.line:
        if is_quoted:
            yield "description-quoted-lines"
        else:
            yield "description-wrapped"

    if _has_comment(value, lines):
        if is_quoted:
            yield "description-comment"
        else:
            yield "comment-cuts-value"

    written = "\n".join(lines[start.line : end.line + 1])
    if (value.style == '"' and "\\" in written) or (value.style == "'" and "''" in written):
        yield "description-escaped"


def _has_comment(value: ScalarNode, lines: Sequence[str]) -> bool:
    """Return True if a comment follows the value in its last line. In a block, `#` is text."""
    if value.style in ("|", ">"):
        return False
    end = value.end_mark
    return "#" in lines[end.line][end.column :]


def _check_metadata(metadata: Node) -> Iterator[str]:
    if not isinstance(metadata, MappingNode):
        if _value_kind(metadata) == "null":
            yield "metadata-nothing"
        else:
            yield "metadata-not-mapping"
        return

    keys = [key.value for key, _ in metadata.value if isinstance(key, ScalarNode)]
    if len(set(keys)) < len(keys):
        yield "duplicate-metadata"
    for key, value in metadata.value:
        if _value_kind(key) not in ("str", "merge"):
            yield "metadata-key"
        kind = _value_kind(value)
        if kind != "str":
            yield _METADATA_CONDITIONS.get(kind, "metadata-number")


def _check_optional_value(name: str, value: Node) -> Iterator[str]:
    kind = _value_kind(value)
    if name == "allowed-tools":
        if kind == "collection":
            yield "allowed-tools-list"
        else:
            yield "allowed-tools-text"

    if name in FORMAT_KEYS and kind == "null":
        yield "field-nothing"
    elif name in ("license", "compatibility") and kind == "collection":
        yield f"{name}-list"
    elif name in ("license", "compatibility") and kind != "str":
        yield "field-number"
    elif name in _INVOCABLE and str(value.value).lower() not in ("true", "false"):
        yield "invocable-other"
    elif name == "disable-model-invocation" and str(value.value).lower() == "true":
        yield "model-invocation-off"
