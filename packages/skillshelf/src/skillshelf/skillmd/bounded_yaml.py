"""The package's only YAML reader: PyYAML's events composed into a tree of bounded size.

Nothing is constructed: tags are noted and otherwise ignored, and a merge key is an ordinary key. An alias counts as
many nodes and characters as the value it stands for, so a bomb runs into the limit while it is small.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_BLOCK = 256 * 1024
"""Characters of a frontmatter."""
MAX_DEPTH = 64
MAX_NODES = 10_000
# PyYAML's parser in Python takes five seconds for a megabyte, its parser in C a tenth of that.
_MAX_SLOW_PARSE = 16 * 1024
_NOT_A_CHARACTER = "it has an escape that is not a Unicode character"


class YamlFault(Exception):
    """The text is not YAML, or is beyond the budget."""

    def __init__(self, problem: str, line: int) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem)


class Budget:
    """Limits for the values of one text. If a text is read in parts, the parts share one budget."""

    def __init__(self, nodes: int = MAX_NODES, characters: int = MAX_BLOCK, *, expand: bool = True) -> None:
        """Without `expand` an alias counts as one node: for a caller that never follows the aliases."""
        self.max_nodes = nodes
        self.max_characters = characters
        self.expand = expand
        self.nodes = 0
        self.characters = 0
        self.slow_characters = 4 * _MAX_SLOW_PARSE
        """Characters that may still be given to the parser in Python."""


class YamlTag(NamedTuple):
    """A tag that is written in the text."""

    name: str
    line: int


@dataclass(slots=True)
class YamlDocument:
    """The first YAML document of a text."""

    root: "Node | None" = None
    """PyYAML's node with its marks; None if the text has no values. An alias is the node that it stands for."""
    tags: list[YamlTag] = field(default_factory=list)
    has_flow: bool = False
    """True if a list or mapping is written in brackets."""
    has_anchors: bool = False
    next_document: int = 0
    """The line on which a second document begins; 0 if there is none."""


def compose(text: str, budget: Budget | None = None, *, as_safe_load: bool = False) -> YamlDocument:
    """Return the tree of a YAML text. Raises YamlFault, for example if the text exceeds the budget.

    Each node has the tag that is written in the text, or None. With `as_safe_load` it has the tag that YAML 1.1
    resolves for it, and a text that PyYAML's `safe_load` refuses is refused.
    """
    import yaml  # 15 ms that a shelf of plain files never pays

    budget = budget or Budget()
    slow: Any = yaml.SafeLoader if as_safe_load else yaml.BaseLoader
    fast: Any = getattr(yaml, "C" + slow.__name__, slow)

    first_fault: YamlFault | None = None
    for speed in _choose_parsers(text, budget, as_safe_load):
        loader = slow if speed == "slow" else fast
        if loader is slow:
            budget.slow_characters -= len(text)
        try:
            return _compose_with(loader, text, budget, as_safe_load)
        except YamlFault as fault:
            first_fault = first_fault or fault
    raise first_fault or YamlFault("it cannot be read", 1)


def _choose_parsers(text: str, budget: Budget, as_safe_load: bool) -> tuple[Literal["fast", "slow"], ...]:
    """Return the parsers to try, in this order: the fast one is in C, the slow one in Python.

    They differ in corner cases: tabs in folded text, and the texts that they refuse.
    """
    if as_safe_load:
        if len(text) <= budget.slow_characters:
            return ("slow",)
        return ("fast",)
    if len(text) > min(_MAX_SLOW_PARSE, budget.slow_characters):
        return ("fast",)
    if "\t" in text:
        return ("slow", "fast")
    return ("fast", "slow")


def _compose_with(loader: Any, text: str, budget: Budget, resolve: bool) -> YamlDocument:
    import yaml

    try:
        return _Composer(loader(text), budget, resolve).compose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        fault = YamlFault(str(error.problem or error.context), line)
    except yaml.YAMLError as error:
        fault = YamlFault(str(error).splitlines()[0], 1)
    except RecursionError:
        fault = YamlFault(f"nested deeper than {MAX_DEPTH} levels", 1)
    except (ValueError, OverflowError):
        # Half a surrogate pair to the parser in C, an escape beyond the last character to the parser in Python.
        fault = YamlFault(_NOT_A_CHARACTER, 1)
    raise fault


class _Anchored(NamedTuple):
    """The node of an anchor, and its size: an alias to it counts as much."""

    node: "Node"
    nodes: int
    characters: int


class _Composer:
    """Composes nodes from events, as PyYAML's own composer does, and counts them against a budget."""

    def __init__(self, loader: Any, budget: Budget, resolve: bool) -> None:
        import yaml

        self._next_event: Callable[[], Any] = loader.get_event
        self._resolve = loader.resolve if resolve else None
        self._yaml: Any = yaml
        self._budget = budget
        self._nodes = budget.nodes
        self._characters = budget.characters
        self._anchors: dict[str, _Anchored] = {}
        self._document = YamlDocument()

    def compose(self) -> YamlDocument:
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
            self._document.tags.append(YamlTag(event.tag, line))

        nodes_before = self._nodes
        characters_before = self._characters
        if type(event) is self._yaml.events.ScalarEvent:
            node = self._compose_scalar(event, line)
        else:
            self._count(1, 0, line)
            self._document.has_flow = self._document.has_flow or bool(event.flow_style)
            if type(event) is self._yaml.events.SequenceStartEvent:
                node = self._compose_sequence(event, depth)
            else:
                node = self._compose_mapping(event, depth)

        if event.anchor is not None:
            self._document.has_anchors = True
            self._anchors[event.anchor] = _Anchored(
                node, self._nodes - nodes_before, self._characters - characters_before
            )
        return node

    def _compose_scalar(self, event: Any, line: int) -> Any:
        self._count(1, len(event.value), line)
        node = self._yaml.ScalarNode
        tag = self._resolve_tag(event, node, event.value)
        return node(tag, event.value, event.start_mark, event.end_mark, style=event.style)

    def _compose_sequence(self, start: Any, depth: int) -> Any:
        node = self._yaml.SequenceNode
        items: list[Node] = []
        event = self._next_event()
        while type(event) is not self._yaml.events.SequenceEndEvent:
            items.append(self._compose_node(event, depth + 1))
            event = self._next_event()
        return node(self._resolve_tag(start, node), items, start.start_mark, event.end_mark)

    def _compose_mapping(self, start: Any, depth: int) -> Any:
        node = self._yaml.MappingNode
        pairs: list[tuple[Node, Node]] = []
        event = self._next_event()
        while type(event) is not self._yaml.events.MappingEndEvent:
            key = self._compose_node(event, depth + 1)
            value = self._compose_node(self._next_event(), depth + 1)
            pairs.append((key, value))
            event = self._next_event()
        return node(self._resolve_tag(start, node), pairs, start.start_mark, event.end_mark)

    def _resolve_tag(self, event: Any, node: Any, value: str | None = None) -> Any:
        if self._resolve is None or event.tag not in (None, "!"):
            return event.tag
        return self._resolve(node, value, event.implicit)

    def _find_alias(self, name: Any, line: int) -> "Node":
        if name not in self._anchors:
            raise YamlFault(f"alias {name!r} is not defined", line)
        anchored = self._anchors[name]
        if self._budget.expand:
            self._count(anchored.nodes, anchored.characters, line)
        else:
            self._count(1, 0, line)
        return anchored.node

    def _count(self, nodes: int, characters: int, line: int) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > self._budget.max_nodes:
            raise YamlFault(f"more than {self._budget.max_nodes} values", line)
        if self._characters > self._budget.max_characters:
            raise YamlFault(f"more than {self._budget.max_characters} characters with its aliases", line)


# -- from nodes to values ---------------------------------------------------------------------------------------------

_CONSTANTS = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
# Numbers as JSON has them. `010` is eight to YAML 1.1 and ten to YAML 1.2, so it stays text, and so does `1_000`.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,299})(?P<fraction>\.[0-9]{1,300})?(?P<exponent>[eE][-+]?[0-9]{1,4})?")


def text_scalar(node: "ScalarNode") -> str:
    """Return a scalar's text. JSON writes an emoji as the two halves of a surrogate pair: they are joined."""
    text: str = node.value
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise YamlFault(_NOT_A_CHARACTER, node.start_mark.line + 1) from None


def typed_scalar(node: "ScalarNode") -> Any:
    """Return the null, flag or number that a plain scalar is to YAML 1.2 and to JSON alike; anything else is text."""
    text = text_scalar(node)
    if node.style or node.tag:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    number = _NUMBER.fullmatch(text)
    if not number:
        return text
    if not number["fraction"] and not number["exponent"]:
        return int(text)
    value = float(text)
    return value if math.isfinite(value) else text


class ValueBuilder:
    """Turns the nodes of a document into plain values. A value behind several aliases is built once, and shared.

    A subclass may make its own kinds of mappings and lists, and check every key.
    """

    def __init__(self, read_scalar: "Callable[[ScalarNode], Any]") -> None:
        self._read_scalar = read_scalar
        self._built: dict[int, Any] = {}

    def build(self, node: Any) -> Any:
        """Return the value of a node. Raises YamlFault."""
        if node.id == "scalar":
            return self._read_scalar(node)
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
            key = text_scalar(key_node)
            self.check_key(values, key, line)
            values[key] = self.build(value_node)
        return values

    def make_mapping(self, node: "MappingNode") -> dict[str, Any]:
        """Return the empty mapping that the values of a node go into."""
        return {}

    def check_key(self, values: dict[str, Any], key: str, line: int) -> None:
        """Check a key before its value is put into the mapping."""
