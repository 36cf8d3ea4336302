"""HTML that cannot be broken out of: text is escaped by being text, and only what this module made is markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from skillshelf.text import clean


class Html(str):
    """Markup, as opposed to text. Only `tag`, `join` and the package's own files make any."""

    __slots__ = ()


_VOID = frozenset({"meta", "br"})
_BRIEF = 28


def text(given: str) -> Html:
    """Hidden and control characters are written out: nobody is to be shown something else than what is there."""
    return Html(escape(clean(given)))


def join(parts: Iterable[Html | str]) -> Html:
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts))


def tag(name: str, /, *children: Html | str, **attributes: str | float | bool | None) -> Html:
    """An element. `class_` is `class`, `aria_label` is `aria-label`; None and False leave an attribute out."""
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{join(children)}</{name}>")


def _attribute(key: str, value: str | float | bool) -> str:
    key = key.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {key}" if value else ""
    return f' {key}="{text(value) if isinstance(value, str) else f"{value:g}"}"'


def table(
    headings: Iterable[Html | str], rows: Iterable[Iterable[Html | str]], caption: str = "", class_: str = ""
) -> Html:
    """The first cell of a row is its heading."""
    head = tag("tr", *(tag("th", one, scope="col") for one in headings))
    body = [tag("tr", *_cells(list(row))) for row in rows]
    top = [tag("caption", caption)] if caption else []
    whole = tag("table", *top, tag("thead", head), tag("tbody", *body), class_=class_ or None)
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption or "table")


def _cells(row: list[Html | str]) -> list[Html]:
    """Numbers with their intervals stay on one line."""
    return [tag("th", row[0], scope="row"), *(tag("td", one, class_=_brief(one)) for one in row[1:])]


def _brief(cell: Html | str) -> str | None:
    return "brief" if not isinstance(cell, Html) and len(cell) <= _BRIEF else None
