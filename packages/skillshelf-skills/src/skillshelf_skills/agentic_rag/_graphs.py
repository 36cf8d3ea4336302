"""Questions to a graph by template, and passages from it."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from skillshelf.search import split_words
from skillshelf.text import closest_names, quote_for_model, truncate
from skillshelf_skills.agentic_rag._errors import RagError
from skillshelf_skills.agentic_rag._limits import MAX_GRAPH_ROWS, MAX_LINES, MAX_VALUE
from skillshelf_skills.agentic_rag._results import TemplateCard
from skillshelf_skills.agentic_rag._sources import GraphSource, Passage
from skillshelf_skills.agentic_rag.references.cypher_templates import TEMPLATES
from skillshelf_skills.database import Parameter, Rows

_PARAMETER = re.compile(r"\$([A-Za-z_]\w*)")


class Template(NamedTuple):
    """A query that the user or this package wrote. Values are parameters: `$name`."""

    purpose: str
    cypher: str

    @property
    def parameters(self) -> list[str]:
        return list(dict.fromkeys(_PARAMETER.findall(self.cypher)))


BUILT_IN = {name: Template(entry["purpose"], entry["cypher"].strip()) for name, entry in TEMPLATES.items()}
"""The templates of the reference `cypher_templates.py`, by name."""


def describe_templates(templates: Mapping[str, Template]) -> list[TemplateCard]:
    return [
        TemplateCard(name=name, purpose=template.purpose, parameters=template.parameters)
        for name, template in templates.items()
    ]


async def query_template(
    graph: GraphSource,
    templates: Mapping[str, Template],
    name: str,
    parameters: Mapping[str, Parameter],
    limit: int,
) -> Rows:
    """Run a template. Raises RagError."""
    template = templates.get(name)
    if template is None:
        close = closest_names(name, list(templates))
        hint = f"Did you mean {' or '.join(close)}?" if close else f"There are: {', '.join(templates)}."
        raise RagError(f"No template is called {quote_for_model(name)}. {hint}", reference="cypher_templates.py")
    if {*parameters} != {*template.parameters}:
        wanted = ", ".join(template.parameters) or "none"
        given = ", ".join(parameters) or "none"
        raise RagError(
            f"The template {name!r} has the parameters {wanted}, and got {given}.", reference="cypher_templates.py"
        )
    return await graph.query(template.cypher, parameters, limit, is_template=True)


async def find_graph_passages(graph: GraphSource, question: str, limit: int) -> list[Passage]:
    """Return a passage for each node that a question mentions: its properties, and what it is connected with."""
    asked = {"question": question}
    nodes, edges = await asyncio.gather(
        query_template(graph, BUILT_IN, "mentioned", asked, MAX_GRAPH_ROWS),
        query_template(graph, BUILT_IN, "mentioned_connections", asked, MAX_GRAPH_ROWS),
    )

    facts: dict[str, _Facts] = {}
    words = split_words(question)
    for (node,) in nodes["rows"]:
        name = _name_of(node)
        if _mentions(words, name):
            facts.setdefault(name, _Facts(node, []))
    for start, edge, end in edges["rows"]:
        line = f"{_label(start)} -{_kind_of(edge)}-> {_label(end)}"
        for node in (start, end):
            name = _name_of(node)
            if name in facts and line not in facts[name].lines:
                facts[name].lines.append(line)
    # A long name that is mentioned says more than a short one.
    ordered = sorted(facts, key=lambda name: -len(name))
    return [_make_passage(graph.name, name, facts[name]) for name in ordered[:limit]]


class _Facts(NamedTuple):
    node: Any
    lines: list[str]


def _mentions(words: Sequence[str], name: str) -> bool:
    """Return True if the words of a name stand together in a question: `api` is not in `capital`."""
    wanted = split_words(name)
    count = len(wanted)
    return count > 0 and any(list(words[at : at + count]) == wanted for at in range(len(words) - count + 1))


def _make_passage(source: str, name: str, facts: _Facts) -> Passage:
    lines = facts.lines[:MAX_LINES]
    if len(facts.lines) > MAX_LINES:
        lines.append(f"({len(facts.lines) - MAX_LINES} more relationships)")
    properties = [
        f"{key}: {truncate(str(value), MAX_VALUE)}" for key, value in facts.node["properties"].items() if key != "name"
    ][:MAX_LINES]
    text = "\n".join([_label(facts.node), *properties, *lines])
    return Passage(source, f"{_kind_of(facts.node)} {name}", _label(facts.node), text)


def _name_of(node: Any) -> str:
    return str(node.get("properties", {}).get("name", ""))


def _kind_of(value: Any) -> str:
    return str(value.get("label") or value.get("type") or "")


def _label(node: Any) -> str:
    return f"{_name_of(node)} ({_kind_of(node)})"
