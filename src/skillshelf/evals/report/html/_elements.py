"""HTML elements. A text is always escaped, and only this module makes markup, so no text can break out of its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from skillshelf.text import clean

MAX_BRIEF_CELL = 28
"""A number with its interval, up to this length, stays on one line."""
_VOID_ELEMENTS = frozenset({"meta", "br"})


class Html(str):
    """Markup, as opposed to text. Only `tag`, `join` and the package's own files make any."""

    __slots__ = ()


def escape_text(text: str) -> Html:
    """Escape a text. Hidden and control characters are written out, so that nothing is shown that is not there."""
    return Html(escape(clean(text)))


def join(parts: Iterable[Html | str]) -> Html:
    """Join markup and texts, which are escaped."""
    return Html("".join(part if isinstance(part, Html) else escape_text(part) for part in parts))


def tag(name: str, /, *children: Html | str, **attributes: str | float | bool | None) -> Html:
    """Return an element. `class_` is `class`, `aria_label` is `aria-label`; None and False leave an attribute out."""
    opening = name
    for key, value in attributes.items():
        if value is not None:
            opening += _render_attribute(key, value)
    if name in _VOID_ELEMENTS:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join(children)}</{name}>")


def _render_attribute(key: str, value: str | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {name}" if value else ""
    if isinstance(value, str):
        return f' {name}="{escape_text(value)}"'
    return f' {name}="{value:g}"'


def table(
    headings: Iterable[Html | str], rows: Iterable[Sequence[Html | str]], caption: str = "", class_: str = ""
) -> Html:
    """Return a table that scrolls if it is too wide. The first cell of a row is its heading."""
    parts = [tag("caption", caption)] if caption else []
    parts.append(tag("thead", tag("tr", *(tag("th", heading, scope="col") for heading in headings))))
    parts.append(tag("tbody", *(_render_row(row) for row in rows)))
    element = tag("table", *parts, class_=class_ or None)
    return tag("div", element, class_="scroll", tabindex="0", role="region", aria_label=caption or "table")


def _render_row(row: Sequence[Html | str]) -> Html:
    cells = [tag("th", row[0], scope="row")]
    for cell in row[1:]:
        is_brief = not isinstance(cell, Html) and len(cell) <= MAX_BRIEF_CELL
        cells.append(tag("td", cell, class_="brief" if is_brief else None))
    return tag("tr", *cells)
