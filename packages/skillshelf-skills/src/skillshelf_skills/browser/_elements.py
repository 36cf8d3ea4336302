"""Pages as text with numbered elements, and elements found again by their number."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Error, Frame, Locator, Page

from skillshelf.text import clean_line, quote_for_model, show_controls, text_for_model, truncate
from skillshelf_skills.browser._chromium import ENGINE
from skillshelf_skills.browser._limits import BrowserLimits
from skillshelf_skills.browser._results import BrowserError

_READ_SECONDS = 3.0
"""The time for one frame. The rest of it is left out then."""
_FRAME_SECONDS = 5.0
"""The time for a frame inside the page. One that does not answer is left out."""
_MIN_FRAME_SIDE = 30
"""Pixels. Smaller frames are there to count visitors."""
_MAX_URL = 200
_READ_SCHEMES = ("http:", "https:", "about:", "blob:", "data:")
"""Of frames. One that was refused has an address of Chromium's own, and nothing to read."""
_MAX_REMEMBERED = 20_000
"""Elements of a page that is loaded again and again."""
_LIKE_FRAME = re.compile(r"-(?=--[^\S\n]*frame)", re.IGNORECASE)
"""What a page may write to make its text look like that of a frame."""


@dataclass(frozen=True, slots=True)
class Element:
    """A numbered element of a page."""

    number: int
    frame: Frame
    document: str
    """Which document it is in. A page that was loaded again is another one."""
    url: str
    fingerprint: Mapping[str, Any]
    """By this it is found again: role, name, test id, row and more."""

    @property
    def name(self) -> str:
        return str(self.fingerprint["name"])

    def __str__(self) -> str:
        return f"{self.number} ({self.fingerprint['role']} {quote_for_model(self.name)})"


@dataclass(frozen=True, slots=True)
class FoundElement:
    """An element as it is now."""

    element: Element
    locator: Locator
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WholeText:
    """The text of a page, as far as it was read."""

    document: str
    title: str
    media_type: str
    text: str
    missing: list[str]
    """What is not in it, in sentences."""
    width: int
    height: int

    def cut(self, offset: int, length: int) -> tuple[str, int]:
        """Return the part from an offset on, and the offset of the next part; 0 if it is the last. Lines stay whole."""
        if offset and offset >= len(self.text):
            raise BrowserError(
                f"The page has {len(self.text):,} characters: there is nothing at {offset:,}. Read it from the start.",
                reference="selectors.md",
            )
        end = offset + length
        if end >= len(self.text):
            return self.text[offset:], 0
        line_end = self.text.rfind("\n", offset + length // 2, end)
        if line_end != -1:
            end = line_end + 1
        return self.text[offset:end], end


@dataclass(slots=True)
class PageReader:
    """Reads pages, and remembers the elements that it numbered. A number never means another element later."""

    limits: BrowserLimits
    _elements: dict[int, Element] = field(default_factory=dict)
    _document: str = ""
    _url: str = ""
    _next_number: int = 1

    async def read(self, page: Page) -> WholeText:
        """Read the page and its frames."""
        main = await self._read_frame(page.main_frame, self.limits.page_characters, self.limits.seconds)
        url = _without_fragment(page.url)
        if main["document"] != self._document and url != self._url:
            self._elements = {}
        self._document = main["document"]
        self._url = url
        self._remember(page.main_frame, main)

        texts = [_show_text(main)]
        missing: list[str] = []
        is_whole = main["isWhole"]
        room = self.limits.page_characters - len(main["text"])
        frames = await _find_shown_frames(page)
        for frame in frames[: self.limits.frames]:
            if room <= 0:
                is_whole = False
                break
            try:
                answer = await self._read_frame(frame, room, _FRAME_SECONDS)
            except Error:  # it went away, or its own scripts keep it busy
                missing.append(f"The frame {_show_address(frame)} could not be read.")
                continue
            if answer["text"]:
                self._remember(frame, answer)
                texts.append(f"--- frame {_show_address(frame)} ---\n{_show_text(answer)}")
                room -= len(answer["text"])
            is_whole = is_whole and answer["isWhole"]

        if not is_whole:
            missing.append("The page is longer than what is read of it: the rest is left out.")
        if len(frames) > self.limits.frames:
            missing.append(f"Only {self.limits.frames} of {len(frames)} frames were read.")
        return WholeText(
            document=main["document"],
            title=clean_line(main["title"]),
            media_type=main["type"],
            text="\n\n".join(filter(None, texts)),
            missing=missing,
            width=int(main["width"]),
            height=int(main["height"]),
        )

    async def count_changes(self, page: Page) -> int:
        """Return a number that grows with each change of the page."""
        return int(await _ask(page.main_frame, "activity", {}, self.limits.seconds))

    async def find(self, number: int, name: str) -> FoundElement:
        """Return the element with this number and name, as it is now.

        Raises BrowserError.
        """
        element = self._elements.get(number)
        if element is None and not 0 < number < self._next_number:
            raise BrowserError(
                f"There is no element {number}. Use the numbers that the last reading shows.", reference="selectors.md"
            )
        if element is None or element.frame.is_detached():
            raise BrowserError(
                f"Element {number} was on another page. Call read_open_page for the present one.",
                reference="selectors.md",
            )
        if not _is_same_name(name, element.name):
            raise BrowserError(
                f"Element {element} has not the name {quote_for_model(truncate(name, 100))}. Give number and name of "
                "one element, as the reading shows them.",
                reference="selectors.md",
            )

        argument = {"number": number, "print": element.fingerprint}
        state = await _ask(element.frame, "inspect", argument, self.limits.seconds)
        is_other_page = state["document"] != element.document and _without_fragment(element.frame.url) != element.url
        if is_other_page:
            raise BrowserError(
                f"Element {element} was on another page. Call read_open_page for the present one.",
                reference="selectors.md",
            )
        if state["twins"]:
            raise BrowserError(
                f"Element {element} has changed, and {state['twins']} elements look like it now. Call read_open_page, "
                f"and use the new numbers.",
                reference="selectors.md",
            )
        if not state["found"]:
            raise BrowserError(
                f"Element {element} is not on the page any more. Call read_open_page again.", reference="selectors.md"
            )
        return FoundElement(element, element.frame.locator(_write_selector("find", argument)), state)

    async def _read_frame(self, frame: Frame, characters: int, seconds: float) -> Any:
        argument = {
            "first": self._next_number,
            "characters": characters,
            "elements": self.limits.elements,
            "seconds": _READ_SECONDS,
        }
        return await _ask(frame, "read", argument, seconds)

    def _remember(self, frame: Frame, answer: Mapping[str, Any]) -> None:
        self._next_number = max(self._next_number, int(answer["next"]))
        url = _without_fragment(frame.url)
        for entry in answer["elements"]:
            number = int(entry["number"])
            self._elements[number] = Element(number, frame, answer["document"], url, entry["print"])
        for number in list(self._elements)[:-_MAX_REMEMBERED]:
            del self._elements[number]


def show_page_text(text: str) -> str:
    """Return what a page wrote as a model may read it: hidden and control characters are written out."""
    return show_controls(text_for_model(text))


def _show_text(answer: Mapping[str, Any]) -> str:
    """Return the text of a page or of a frame, in which nothing passes for the beginning of another frame."""
    return _LIKE_FRAME.sub("- ", show_page_text(answer["text"]))


def _show_address(frame: Frame) -> str:
    # An address that begins with data: may have spaces, and with them whatever it wants to say.
    return truncate(frame.url.replace(" ", "%20"), _MAX_URL)


async def _find_shown_frames(page: Page) -> list[Frame]:
    """Return the frames of a page that are large enough to be read."""
    shown: list[Frame] = []
    for frame in page.frames:
        if frame is page.main_frame or frame.is_detached() or not frame.url.startswith(_READ_SCHEMES):
            continue
        try:
            box = await (await frame.frame_element()).bounding_box()
        except Error:  # it went away meanwhile
            continue
        if box is not None and box["width"] >= _MIN_FRAME_SIDE and box["height"] >= _MIN_FRAME_SIDE:
            shown.append(frame)
    return shown


async def _ask(frame: Frame, command: str, argument: Mapping[str, Any], seconds: float) -> Any:
    """Return what the scripts in `reader` answer."""
    answer = await frame.locator(_write_selector(command, argument)).text_content(timeout=seconds * 1000)
    return json.loads(answer or "null")


def _write_selector(command: str, argument: Mapping[str, Any]) -> str:
    # In hexadecimal, because names of a page may hold what means something in a selector.
    return f"{ENGINE}={command}:{json.dumps(argument).encode().hex()}"


def _is_same_name(given: str, name: str) -> bool:
    """Return True if a name is the one that the reading shows, apart from spaces, quotes, letter case and its end."""
    wanted = _simplify(given)
    shown = _simplify(show_page_text(name))
    if shown.endswith("…"):
        return wanted.startswith(shown[:-1])
    return wanted == shown


def _simplify(name: str) -> str:
    # A reading has a space after some brackets, which the page has not.
    return " ".join(name.replace("\\", "").replace('"', "").replace("[", "[ ").split()).casefold()


def _without_fragment(url: str) -> str:
    return url.partition("#")[0]


# -- what an element can be used for ----------------------------------------------------------------------

_TEXT_ROLES = frozenset({"textbox", "searchbox", "spinbutton", "combobox", "slider"})


def refuse_value(found: FoundElement, value: str) -> BrowserError:
    """Return the error that says what the field is for."""
    kind = found.state["type"] or "text"
    return BrowserError(
        f"Element {found.element} does not take {quote_for_model(truncate(value, 100))}: it is a field for {kind}.",
        reference="forms.md",
    )


def check_usable(found: FoundElement) -> None:
    """Raise BrowserError if the element cannot be used by anyone now."""
    if found.state["isDisabled"]:
        raise BrowserError(
            f"Element {found.element} is disabled. Something else must be done first.", reference="forms.md"
        )
    if not found.state["hasArea"] and not found.state["hasLabel"]:
        raise BrowserError(f"Element {found.element} is not visible now.", reference="forms.md")


def check_takes_text(found: FoundElement) -> None:
    """Raise BrowserError if the element is not a field for text."""
    element = found.element
    role = found.state["role"]
    if role == "file":
        raise BrowserError(
            f"Element {element} wants a file of this machine. Files cannot be given to a page.", reference="forms.md"
        )
    if found.state["tag"] == "SELECT":
        raise BrowserError(f"Element {element} is a list. Use choose_option.", reference="forms.md")
    if role not in _TEXT_ROLES:
        raise BrowserError(f"Element {element} is not a field for text. Use click_element.", reference="forms.md")
    if found.state["isReadOnly"]:
        raise BrowserError(f"Element {element} is read-only.", reference="forms.md")
