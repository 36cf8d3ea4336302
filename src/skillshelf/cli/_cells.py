"""What a table is made of."""

from typing import NamedTuple


class Cell(NamedTuple):
    """A text with a style of its own; elsewhere the column's holds."""

    text: str
    style: str = ""
    mark: str = ""
    """Coloured words before the text."""

    @property
    def whole(self) -> str:
        return f"{self.mark} {self.text}" if self.mark else self.text


class Column(NamedTuple):
    title: str
    style: str = ""
    right: bool = False
