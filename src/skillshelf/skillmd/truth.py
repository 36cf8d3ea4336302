"""What PyYAML reads: its parser's events made into texts, lists and mappings, and nothing more.

Nothing is constructed or expanded: scalars stay as written, tags are ignored, a merge key is an ordinary key. An alias
gives the value it names, but counts as many nodes as that value has, so a bomb runs into the limit while it is small.
"""

from collections.abc import Callable
from typing import Any

from skillshelf.skillmd.values import Notes, YamlFault

MAX_DEPTH = 64
MAX_NODES = 10_000
# The parser in Python takes a second for a quarter of a megabyte.
_MAX_EXACT = 16 * 1024


def parse_yaml(block: str, notes: Notes, first_line: int) -> dict[str, Any]:
    """The block's mapping as PyYAML's BaseLoader gives it. Raises YamlFault. `first_line` is for the notes."""
    import yaml  # 15 ms that a shelf of plain files never pays

    # The two parsers of PyYAML differ in corners: on tabs in folded text, and in what they refuse.
    loaders = [getattr(yaml, "CBaseLoader", yaml.BaseLoader)]
    if len(block) <= _MAX_EXACT:
        loaders.insert(0 if "\t" in block else 1, yaml.BaseLoader)
    fault = YamlFault("", 1)
    for loader in loaders:
        try:
            return _parse(yaml, loader, block, notes, first_line)
        except YamlFault as error:
            fault = error if loader is loaders[0] else fault
    raise fault


def _parse(yaml: Any, loader: Any, block: str, notes: Notes, first_line: int) -> dict[str, Any]:
    said = len(notes.items)
    try:
        return _Reader(loader(block).get_event, yaml.events, notes, first_line).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        fault = YamlFault(str(error.problem or error.context), mark.line + 1 if mark else 1)
    except yaml.YAMLError as error:
        fault = YamlFault(str(error).splitlines()[0], 1)
    except RecursionError:
        fault = YamlFault(f"nested deeper than {MAX_DEPTH} levels", 1)
    except (ValueError, OverflowError):
        # Half a surrogate pair to the parser in C, an escape beyond the last one to the parser in Python.
        fault = YamlFault("it has what is no Unicode character", 1)
    except YamlFault as error:
        fault = error
    del notes.items[said:]
    raise fault


class _Reader:
    def __init__(self, next_event: Callable[[], Any], kinds: Any, notes: Notes, first_line: int) -> None:
        self.next, self.kinds = next_event, kinds
        self.notes, self.first_line = notes, first_line
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.nodes = 0

    def document(self) -> dict[str, Any]:
        self.next()  # stream start
        event = self.next()
        if type(event) is self.kinds.StreamEndEvent:
            return {}
        event = self.next()
        if type(event) is not self.kinds.MappingStartEvent:
            raise YamlFault(
                "frontmatter must be a YAML mapping: lines such as `name: my-skill`", event.start_mark.line + 1
            )
        values: dict[str, Any] = self.value(event, 1)
        self.next()  # document end
        event = self.next()
        if type(event) is not self.kinds.StreamEndEvent:
            line = event.start_mark.line + 1
            message = "only the first YAML document of the frontmatter is read"
            self.note("yaml-second-document", message, line, "keep all fields in one block")
        return values

    def note(self, code: str, message: str, line: int, fix: str = "") -> None:
        self.notes.add("warning", code, message, self.first_line + line - 1, fix)

    def value(self, event: Any, depth: int) -> Any:
        line = event.start_mark.line + 1
        if type(event) is self.kinds.AliasEvent:
            return self.alias(event.anchor, line)
        self.count(1, line)
        if depth > MAX_DEPTH:
            raise YamlFault(f"nested deeper than {MAX_DEPTH} levels", line)
        if event.anchor in self.anchors:
            raise YamlFault(f"anchor {event.anchor!r} is defined twice", line)
        if event.tag is not None and event.tag != "!":
            self.note(
                "yaml-tag", f"the tag {event.tag!r} is ignored; the value is read as text", line, "remove the tag"
            )
        before = self.nodes
        if type(event) is self.kinds.ScalarEvent:
            result: Any = _joined(event.value)
        elif type(event) is self.kinds.SequenceStartEvent:
            result = self.sequence(depth)
        else:
            result = self.mapping(depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = (result, self.nodes - before + 1)
        return result

    def alias(self, name: str, line: int) -> Any:
        if name not in self.anchors:
            raise YamlFault(f"alias {name!r} names nothing", line)
        value, size = self.anchors[name]
        self.count(size, line)
        return value

    def count(self, nodes: int, line: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise YamlFault(f"more than {MAX_NODES} values", line)

    def sequence(self, depth: int) -> list[Any]:
        items = []
        while type(event := self.next()) is not self.kinds.SequenceEndEvent:
            items.append(self.value(event, depth + 1))
        return items

    def mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while type(event := self.next()) is not self.kinds.MappingEndEvent:
            line = event.start_mark.line + 1
            key = self.value(event, depth + 1)
            if not isinstance(key, str):
                raise YamlFault("a key must be text", line)
            if key in values:
                self.note(
                    "yaml-duplicate-key", f"{key!r} is given twice; the last value counts", line, "remove one of them"
                )
            if key == "<<":
                self.note("yaml-merge-key", "a merge key (<<) is not merged", line, "write the fields out")
            values[key] = self.value(self.next(), depth + 1)
        return values


def _joined(text: str) -> str:
    """JSON writes an emoji as the two halves of a surrogate pair."""
    if any("\ud800" <= char <= "\udfff" for char in text):
        return text.encode("utf-16", "surrogatepass").decode("utf-16")  # raises for half a pair
    return text
