"""The one reader of YAML: PyYAML's events composed into a tree of bounded size.

Nothing is constructed: tags are noted and otherwise ignored, and a merge key is an ordinary key. An alias counts as
many nodes and characters as the value it stands for, so a bomb runs into the limit while it is small.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillshelf.skillmd._values import MAX_BLOCK, Notes, YamlFault

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_DEPTH = 64
MAX_NODES = 10_000
# PyYAML's parser in Python takes five seconds for a megabyte, its parser in C a tenth of that.
_MAX_EXACT = 16 * 1024
_NOT_A_CHARACTER = "it has an escape that is not a Unicode character"


class Budget:
    """How much the values of one block may still add up to. The parts of a block that is read in parts share one."""

    def __init__(self, nodes: int = MAX_NODES, characters: int = MAX_BLOCK, *, expand: bool = True) -> None:
        """Without `expand` an alias counts as one node: for a caller that never follows the aliases."""
        self.max_nodes = nodes
        self.max_characters = characters
        self.expand = expand
        self.nodes = 0
        self.characters = 0
        self.exact = 4 * _MAX_EXACT
        """Characters that may still be given to the parser in Python."""


@dataclass(slots=True)
class Document:
    """The first YAML document of a text."""

    root: "Node | None" = None
    """PyYAML's node with its marks; None if there is none. Each alias is the node that it stands for."""
    tags: list[tuple[str, int]] = field(default_factory=list)
    """Each tag that is written out, and its line."""
    has_flow: bool = False
    """Whether a list or mapping is written in brackets."""
    has_anchors: bool = False
    next_document: int = 0
    """The line on which a second document begins; 0 if there is none."""


def compose(block: str, budget: Budget | None = None, *, as_safe_load: bool = False) -> Document:
    """Return the tree of a YAML text. Raises YamlFault, also for a text beyond the budget.

    The tag of a node is the one that is written, or None. With `as_safe_load` it is the one that YAML 1.1 has for the
    node, and what PyYAML's `safe_load` refuses is refused.
    """
    import yaml  # 15 ms that a shelf of plain files never pays

    budget = budget or Budget()
    slow: Any = yaml.SafeLoader if as_safe_load else yaml.BaseLoader
    fast: Any = getattr(yaml, "C" + slow.__name__, slow)

    # The two parsers of PyYAML differ in corners: on tabs in folded text, and in what they refuse.
    if as_safe_load:
        loaders = [slow if len(block) <= budget.exact else fast]
    elif len(block) > min(_MAX_EXACT, budget.exact):
        loaders = [fast]
    elif "\t" in block:
        loaders = [slow, fast]
    else:
        loaders = [fast, slow]

    first_fault: YamlFault | None = None
    for loader in loaders:
        if loader is slow:
            budget.exact -= len(block)
        try:
            return _compose_with(loader, block, budget, as_safe_load)
        except YamlFault as fault:
            first_fault = first_fault or fault
    raise first_fault or YamlFault("it cannot be read", 1)


def parse_yaml(block: str, notes: Notes, first_line: int, budget: Budget | None = None) -> dict[str, Any]:
    """Return the block's mapping as PyYAML's BaseLoader gives it: all scalars are texts. Raises YamlFault.

    `first_line` is the line of the block in its file, for the notes.
    """
    document = compose(block, budget)
    found = Notes()
    for tag, line in document.tags:
        message = f"the tag {tag!r} is ignored; the value is read as text"
        found.add("warning", "yaml-tag", message, first_line + line - 1, "remove the tag")
    values = _FrontmatterBuilder(_text_of, found, first_line).mapping_of(document)
    if document.next_document:
        message = "only the first YAML document of the frontmatter is read"
        line = first_line + document.next_document - 1
        found.add("warning", "yaml-second-document", message, line, "keep all fields in one block")
    notes.items += found.items
    return values


def parse_typed(block: str) -> dict[str, Any]:
    """Return the block's mapping as JSON has it, with plain scalars typed as in YAML 1.2. Raises YamlFault."""
    return _FrontmatterBuilder(typed_scalar, Notes(), 1).mapping_of(compose(block))


_CONSTANTS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_CONSTANTS |= {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
# Numbers as JSON has them. `010` is eight to YAML 1.1 and ten to YAML 1.2, so it stays text, and so does `1_000`.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,299})(\.[0-9]{1,300})?([eE][-+]?[0-9]{1,4})?")


def typed_scalar(node: "ScalarNode") -> Any:
    """Return the null, flag or number that a plain scalar is to YAML 1.2 and to JSON alike; anything else is text."""
    text = _text_of(node)
    if node.style or node.tag:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    number = _NUMBER.fullmatch(text)
    if not number:
        return text
    if number[1] is None and number[2] is None:
        return int(text)
    value = float(text)
    return value if math.isfinite(value) else text


def _text_of(node: "ScalarNode") -> str:
    """Return a scalar's text. JSON writes an emoji as the two halves of a surrogate pair: they are joined."""
    text: str = node.value
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise YamlFault(_NOT_A_CHARACTER, node.start_mark.line + 1) from None


def _compose_with(loader: Any, block: str, budget: Budget, resolve: bool) -> Document:
    import yaml

    try:
        reader = loader(block)
        return _Composer(reader, budget, resolve).compose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        fault = YamlFault(str(error.problem or error.context), mark.line + 1 if mark else 1)
    except yaml.YAMLError as error:
        fault = YamlFault(str(error).splitlines()[0], 1)
    except RecursionError:
        fault = YamlFault(f"nested deeper than {MAX_DEPTH} levels", 1)
    except (ValueError, OverflowError):
        # Half a surrogate pair to the parser in C, an escape beyond the last character to the parser in Python.
        fault = YamlFault(_NOT_A_CHARACTER, 1)
    raise fault


class _Composer:
    """Composes nodes from events, as PyYAML's own composer does, and counts them."""

    def __init__(self, loader: Any, budget: Budget, resolve: bool) -> None:
        import yaml

        self._next_event: Callable[[], Any] = loader.get_event
        self._resolve = loader.resolve if resolve else None
        self._yaml = yaml
        self._budget = budget
        self._nodes = budget.nodes
        self._characters = budget.characters
        self._anchors: dict[str, tuple[Node, int, int]] = {}
        """The node of each anchor, with its nodes and characters."""
        self._document = Document()

    def compose(self) -> Document:
        events = self._yaml.events
        document = self._document

        self._next_event()  # the start of the stream
        event = self._next_event()
        if type(event) is events.StreamEndEvent:
            return document

        document.root = self._compose_node(self._next_event(), 1)

        self._next_event()  # the end of the document
        event = self._next_event()
        if type(event) is not events.StreamEndEvent:
            document.next_document = event.start_mark.line + 1

        self._budget.nodes = self._nodes
        self._budget.characters = self._characters
        return document

    def _compose_node(self, event: Any, depth: int) -> Any:
        line = event.start_mark.line + 1
        if type(event) is self._yaml.events.AliasEvent:
            return self._find_alias(event.anchor, line)

        if depth > MAX_DEPTH:
            raise YamlFault(f"nested deeper than {MAX_DEPTH} levels", line)
        if event.anchor in self._anchors:
            raise YamlFault(f"anchor {event.anchor!r} is defined twice", line)
        if event.tag not in (None, "!"):
            self._document.tags.append((event.tag, line))

        nodes = self._nodes
        characters = self._characters
        node = self._compose_kind(event, depth, line)
        if event.anchor is not None:
            self._document.has_anchors = True
            self._anchors[event.anchor] = (node, self._nodes - nodes, self._characters - characters)
        return node

    def _compose_kind(self, event: Any, depth: int, line: int) -> Any:
        yaml = self._yaml
        start = event.start_mark
        if type(event) is yaml.events.ScalarEvent:
            self._count(1, len(event.value), line)
            tag = self._tag_of(event, yaml.ScalarNode, event.value)
            return yaml.ScalarNode(tag, event.value, start, event.end_mark, style=event.style)

        self._count(1, 0, line)
        self._document.has_flow = self._document.has_flow or bool(event.flow_style)
        if type(event) is yaml.events.SequenceStartEvent:
            tag = self._tag_of(event, yaml.SequenceNode, None)
            items: list[Node] = []
            while type(event := self._next_event()) is not yaml.events.SequenceEndEvent:
                items.append(self._compose_node(event, depth + 1))
            return yaml.SequenceNode(tag, items, start, event.end_mark)

        tag = self._tag_of(event, yaml.MappingNode, None)
        pairs: list[tuple[Node, Node]] = []
        while type(event := self._next_event()) is not yaml.events.MappingEndEvent:
            key = self._compose_node(event, depth + 1)
            pairs.append((key, self._compose_node(self._next_event(), depth + 1)))
        return yaml.MappingNode(tag, pairs, start, event.end_mark)

    def _tag_of(self, event: Any, kind: Any, value: str | None) -> Any:
        if self._resolve is None or event.tag not in (None, "!"):
            return event.tag
        return self._resolve(kind, value, event.implicit)

    def _find_alias(self, name: Any, line: int) -> "Node":
        if name not in self._anchors:
            raise YamlFault(f"alias {name!r} names nothing", line)
        node, nodes, characters = self._anchors[name]
        if self._budget.expand:
            self._count(nodes, characters, line)
        else:
            self._count(1, 0, line)
        return node

    def _count(self, nodes: int, characters: int, line: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > self._budget.max_nodes:
            raise YamlFault(f"more than {self._budget.max_nodes} values", line)
        if self._characters > self._budget.max_characters:
            raise YamlFault(f"more than {self._budget.max_characters} characters with its aliases", line)


class ValueBuilder:
    """Turns the nodes of a document into plain values. A value behind several aliases is built once, and shared.

    A subclass may make its own kinds of mappings and lists, and look at every key.
    """

    def __init__(self, scalar: "Callable[[ScalarNode], Any]") -> None:
        self._scalar = scalar
        self._built: dict[int, Any] = {}

    def build(self, node: Any) -> Any:
        """Return the value of a node. Raises YamlFault."""
        if node.id == "scalar":
            return self._scalar(node)
        if id(node) not in self._built:
            build = self.build_list if node.id == "sequence" else self.build_mapping
            self._built[id(node)] = build(node)
        return self._built[id(node)]

    def build_list(self, node: "SequenceNode") -> list[Any]:
        return [self.build(item) for item in node.value]

    def build_mapping(self, node: "MappingNode") -> dict[str, Any]:
        values = self.make_mapping(node)
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.id != "scalar":
                raise YamlFault("a key must be text", line)
            key = _text_of(key_node)
            self.check_key(values, key, line)
            values[key] = self.build(value_node)
        return values

    def make_mapping(self, node: "MappingNode") -> dict[str, Any]:
        return {}

    def check_key(self, values: dict[str, Any], key: str, line: int) -> None:
        """Look at a key before its value is put into the mapping."""


class _FrontmatterBuilder(ValueBuilder):
    """Builds the mapping of a frontmatter, and notes keys that the author should change."""

    def __init__(self, scalar: "Callable[[ScalarNode], Any]", notes: Notes, first_line: int) -> None:
        super().__init__(scalar)
        self._notes = notes
        self._first_line = first_line

    def mapping_of(self, document: Document) -> dict[str, Any]:
        root: Any = document.root
        if root is None:
            return {}
        if root.id != "mapping":
            problem = "frontmatter must be a YAML mapping: lines such as `name: my-skill`"
            raise YamlFault(problem, root.start_mark.line + 1)
        return self.build_mapping(root)

    def check_key(self, values: dict[str, Any], key: str, line: int) -> None:
        if key in values:
            message = f"{key!r} is given twice; the last value counts"
            self._note("yaml-duplicate-key", message, line, "remove one of them")
        if key == "<<":
            self._note("yaml-merge-key", "a merge key (<<) is not merged", line, "write the fields out")

    def _note(self, code: str, message: str, line: int, fix: str) -> None:
        self._notes.add("warning", code, message, self._first_line + line - 1, fix)
