"""How much a page may take: some are made to take all there is."""

from typing import NamedTuple


# Not a dataclass, which takes half of the millisecond that attaching a skill may take.
class BrowserLimits(NamedTuple):
    """Limits on the browser and on each call."""

    seconds: float = 30.0
    """The time for one call."""
    load_seconds: float = 10.0
    """How long to wait for the rest of a page, once its server has begun to answer."""
    action_seconds: float = 5.0
    """How long to wait for an element to hold still, to come into view and to be free of others."""
    characters: int = 12_000
    """Text in one result."""
    page_characters: int = 200_000
    """Text that is read of a page, over all parts."""
    elements: int = 5_000
    """Elements that are numbered on a page."""
    frames: int = 20
    """Frames of a page that are read."""
    image_height: int = 4_000
    """Pixels of a picture of a whole page."""
    memory_megabytes: int = 2_048
    """Memory of all processes of the browser together. If there is more, the largest page is ended."""
    traffic_megabytes: int = 500
    """What all servers together may send, until the browser is closed."""
    dialogs: int = 10
    """Dialogs and windows that a page may open during one call. A page that opens more is closed."""
    idle_seconds: float = 900.0
    """The browser ends if it is not used for so long."""
