"""What an element can be used for."""

from skillshelf.bundled.browser._elements import FoundElement
from skillshelf.bundled.browser._errors import ElementNotUsableError, ValueRefusedError
from skillshelf.text import clip, quote_for_model

_TEXT_ROLES = frozenset({"textbox", "searchbox", "spinbutton", "combobox", "slider"})


def refuse_value(found: FoundElement, value: str) -> ValueRefusedError:
    """Return the error that says what the field is for."""
    kind = found.state["type"] or "text"
    return ValueRefusedError(
        f"Element {found.element} does not take {quote_for_model(clip(value, 100))}: it is a field for {kind}."
    )


def check_usable(found: FoundElement) -> None:
    """Raise ElementNotUsableError if the element cannot be used by anyone now."""
    if found.state["isDisabled"]:
        raise ElementNotUsableError(f"Element {found.element} is disabled. Something else must be done first.")
    if not found.state["hasArea"] and not found.state["hasLabel"]:
        raise ElementNotUsableError(f"Element {found.element} is not visible now.")


def check_takes_text(found: FoundElement) -> None:
    """Raise ElementNotUsableError if the element is not a field for text."""
    element = found.element
    role = found.state["role"]
    if role == "file":
        raise ElementNotUsableError(f"Element {element} wants a file of this machine. Files cannot be given to a page.")
    if found.state["tag"] == "SELECT":
        raise ElementNotUsableError(f"Element {element} is a list. Use choose_option.")
    if role not in _TEXT_ROLES:
        raise ElementNotUsableError(f"Element {element} is not a field for text. Use click_element.")
    if found.state["isReadOnly"]:
        raise ElementNotUsableError(f"Element {element} is read-only.")
