"""Markdown on a terminal, in a look of our own.

It is made of the terminal's own colours, without yellow and blue, which many terminals show too light or too dark, and
without backgrounds: so it is readable on dark and on light ones. Bold, italic and underlined text tells elements apart
on terminals without colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import token as code  # type: ignore[import-untyped]
from rich import box
from rich import markdown as rich_markdown
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import MarkdownContext, MarkdownElement
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from skillshelf.text._untrusted import clean

_STYLES = Theme(
    {
        "markdown.h1": "bold underline magenta",
        "markdown.h2": "bold magenta",
        "markdown.h3": "bold italic",
        "markdown.h4": "italic",
        "markdown.h5": "italic dim",
        "markdown.h6": "italic dim",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.block_quote.bar": "dim",
        "markdown.item.mark": "cyan",
        "markdown.hr": "dim",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
_CODE_STYLES = ANSISyntaxTheme(
    {
        code.Comment: Style(dim=True, italic=True),
        code.Comment.Preproc: Style(color="magenta"),
        code.Keyword: Style(color="magenta"),
        code.Operator.Word: Style(color="magenta"),
        code.Name.Builtin: Style(color="cyan"),
        code.Name.Builtin.Pseudo: Style(),
        code.Name.Class: Style(bold=True),
        code.Name.Decorator: Style(color="cyan"),
        code.Name.Function: Style(bold=True),
        code.Name.Tag: Style(color="cyan"),
        code.Name.Attribute: Style(color="cyan"),
        code.String: Style(color="green"),
        code.Number: Style(color="magenta"),
        code.Generic.Deleted: Style(color="red"),
        code.Generic.Inserted: Style(color="green"),
        code.Generic.Heading: Style(bold=True),
        code.Generic.Subheading: Style(color="cyan"),
        code.Generic.Prompt: Style(dim=True),
    }
)
_CODE_MARGIN = 2
_BULLET = "• "
_QUOTE_BAR = "▎ "
_MIN_CELLS = 10
"""The narrowest text that an indented part is squeezed into."""
_MIN_COLUMN_CELLS = 12
"""A column that has more text than this and gets less room makes its table unreadable."""


def make_parser() -> MarkdownIt:
    """Return a parser for which comments, images and link definitions are ordinary text."""
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable(["reference", "image"])


def markdown(text: str) -> RenderableType:
    """Render Markdown so that the user sees all that a model would: no comment, target or definition is left out."""
    parsed = make_parser().parse(clean(text.replace("\r\n", "\n")))
    _clean(parsed)
    for token in parsed:
        if token.children:
            token.children = list(_spell_out_links(token.children))
    return _Markdown(text, parsed)


def _clean(tokens: Sequence[Token]) -> None:
    """Clean the parsed text, since Markdown can spell a hidden character as an entity (`&#8238;`).

    This happens before lines are broken by their width.
    """
    for token in tokens:
        token.content = clean(token.content)
        _clean(token.children or ())


def _spell_out_links(tokens: Sequence[Token]) -> Iterator[Token]:
    """Turn each link into its text and, unless that is the same, its address."""
    address = ""
    label = ""
    for token in tokens:
        if token.type == "link_open":
            address = clean(str(token.attrs.get("href", "")))
            label = ""
            yield Token("label_open", "link", 1)
        elif token.type == "link_close":
            yield Token("label_close", "link", -1)
            if label != address:
                yield Token("text", "", 0, content=" (")
                yield Token("address", "link_url", 0, content=address)
                yield Token("text", "", 0, content=")")
        else:
            label += token.content
            yield token


def _quote_code(token: Token) -> Token:
    """Return the token with backticks around the code in its text."""
    if token.type == "code_inline":
        fence = "``" if "`" in token.content else "`"
        return token.copy(content=f"{fence}{token.content}{fence}")
    if token.children:
        return token.copy(children=[_quote_code(child) for child in token.children])
    return token


# -- blocks -----------------------------------------------------------------------------------------------------------


class _Paragraph(rich_markdown.Paragraph):
    """A paragraph without blanks at the ends of its lines."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "default"
        yield self.text


class _Heading(rich_markdown.Heading):
    """A heading at the left."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _CodeBlock(rich_markdown.CodeBlock):
    """Code behind a margin, on the background of the terminal."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        margin = _CODE_MARGIN if options.max_width > _CODE_MARGIN + _MIN_CELLS else 0
        syntax = Syntax(self.text.plain.rstrip(), self.lexer_name, theme=_CODE_STYLES, word_wrap=True)
        yield Padding(syntax, (0, 0, 0, margin))


class _BlockQuote(rich_markdown.BlockQuote):
    """A quote behind a bar."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[MarkdownElement] = []

    def on_child_close(self, context: MarkdownContext, child: MarkdownElement) -> bool:
        self._parts.append(child)
        return False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bar = Segment(_QUOTE_BAR, console.get_style("markdown.block_quote.bar"))
        style = console.get_style(self.style_name)
        for line in _render_parts(self._parts, console, options, len(_QUOTE_BAR), is_item=False):
            yield bar
            yield from Segment.apply_style(line, style)
            yield Segment.line()


class _ListItem(rich_markdown.ListItem):
    """An item, which its list lays out."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[MarkdownElement] = []

    def on_child_close(self, context: MarkdownContext, child: MarkdownElement) -> bool:
        self.parts.append(child)
        return False


class _List(MarkdownElement):
    """A list. Its numbers and dots stand at the left, so that an item looks the same whatever comes after it."""

    def __init__(self, token: Token) -> None:
        self._is_numbered = token.type == "ordered_list_open"
        self._first_number = int(token.attrs.get("start", 1))
        self._delimiter = token.markup
        self._items: list[_ListItem] = []

    @classmethod
    def create(cls, markdown: rich_markdown.Markdown, token: Token) -> _List:
        return cls(token)

    def on_child_close(self, context: MarkdownContext, child: MarkdownElement) -> bool:
        assert isinstance(child, _ListItem)
        self._items.append(child)
        return False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        style = console.get_style("markdown.item.mark")
        for number, item in enumerate(self._items, self._first_number):
            mark = f"{number}{self._delimiter} " if self._is_numbered else _BULLET
            margin = Segment(" " * len(mark))
            lines = _render_parts(item.parts, console, options, len(mark), is_item=True) or [[]]
            for position, line in enumerate(lines):
                yield margin if position else Segment(mark, style)
                yield from line
                yield Segment.line()
            is_last = item is self._items[-1]
            if _has_paragraphs(item.parts) and not is_last:  # the next item stands apart from such a long one
                yield Segment.line()


class _MarkdownTable(rich_markdown.TableElement):
    """A table, or one paragraph for each row if the screen is too narrow for its columns."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        titles: list[Text] = []
        if self.header is not None and self.header.row is not None:
            titles = [cell.content.copy() for cell in self.header.row.cells]
        for title in titles:
            title.stylize("markdown.table.header")
        rows: list[list[Text]] = []
        if self.body is not None:
            rows = [[cell.content for cell in row.cells] for row in self.body.rows]

        if rows and not _fits(titles, rows, options.max_width):
            yield Group(*_write_records(titles, rows))
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style="markdown.table.border")
        for title in titles:
            table.add_column(title, overflow="fold")
        for row in rows:
            table.add_row(*row)
        yield table


def _fits(titles: Sequence[Text], rows: Sequence[Sequence[Text]], width: int) -> bool:
    """Return True if every column can have enough room."""
    needed = 0
    for column in zip(titles, *rows, strict=False):
        widest = max(cell_len(cell.plain) for cell in column)
        needed += min(widest, _MIN_COLUMN_CELLS) + 2
    return needed - 2 <= width


def _write_records(titles: Sequence[Text], rows: Sequence[Sequence[Text]]) -> Iterator[Text]:
    for position, row in enumerate(rows):
        if position:
            yield Text()
        for title, cell in zip(titles, row, strict=False):
            yield Text.assemble(title, ": ", cell)


def _has_paragraphs(parts: Sequence[MarkdownElement]) -> bool:
    """Return True if blank lines separate the parts of a list item."""
    return sum(not isinstance(part, _List) for part in parts) > 1


def _render_parts(
    parts: Sequence[MarkdownElement], console: Console, options: ConsoleOptions, margin: int, *, is_item: bool
) -> list[list[Segment]]:
    """Return the lines of a list item or a quote: a blank line between its parts, but not before a list in an item."""
    narrower = options.update(width=max(_MIN_CELLS, options.max_width - margin))
    lines: list[list[Segment]] = []
    for part in parts:
        if lines and not (is_item and isinstance(part, _List)):
            lines.append([])
        lines += console.render_lines(part, narrower, pad=False)
        while lines and not "".join(segment.text for segment in lines[-1]).strip():
            lines.pop()
    return lines


class _Markdown(rich_markdown.Markdown):
    """Markdown with the elements and styles of this module."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **rich_markdown.Markdown.elements,
        "paragraph_open": _Paragraph,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "blockquote_open": _BlockQuote,
        "bullet_list_open": _List,
        "ordered_list_open": _List,
        "list_item_open": _ListItem,
        "table_open": _MarkdownTable,
    }

    def __init__(self, text: str, tokens: list[Token]) -> None:
        super().__init__("")
        self.inlines = {"em", "strong", "code", "s", "link", "link_url"}
        self.markup = text
        self._tokens = tokens

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        has_colors = console.color_system is not None and not console.no_color
        # Without colours, nothing else would tell code from words.
        self.parsed = self._tokens if has_colors else [_quote_code(token) for token in self._tokens]
        with console.use_theme(_STYLES):
            segments = [part for part in super().__rich_console__(console, options) if isinstance(part, Segment)]
        # rich begins with a blank line if the first element has parts, such as a list.
        yield from dropwhile(lambda segment: segment.text == "\n", segments)
