"""What can go wrong in a browser, in words that a model can act on."""

from skillshelf.bundled._guided_errors import GuidedError


class BrowserError(GuidedError):
    """The browser cannot do what was asked."""


class BrowserUnavailableError(BrowserError):
    """Chromium or its driver is missing, or does not start."""


class BrowserClosedError(BrowserError):
    """The browser ended: it crashed, or was closed meanwhile."""


class NoPageError(BrowserError):
    """There is no page: none was opened, or it was closed, or there is none to go back to."""


class PageUnreachableError(BrowserError):
    """A page could not be loaded."""


class PageTimeoutError(BrowserError):
    """A server did not begin to answer in time."""


class PageHangsError(BrowserError):
    """A page does not respond any more, and was closed."""


class PageCrashedError(BrowserError):
    """A page crashed, or used up its memory, and was closed."""


class NotAPageError(BrowserError):
    """The address leads to a file, which the browser does not keep."""


class PageChangedError(BrowserError):
    """The part of the page that was asked for does not exist any more."""

    reference = "selectors.md"


class UnknownElementError(BrowserError):
    """No element has ever had this number."""

    reference = "selectors.md"


class StaleElementError(BrowserError):
    """The element with this number is gone, or cannot be told from others."""

    reference = "selectors.md"


class WrongElementError(BrowserError):
    """The element with this number has another name than the caller says."""

    reference = "selectors.md"


class ElementNotUsableError(BrowserError):
    """The element is covered, disabled or invisible, or is not for this."""

    reference = "forms.md"


class ValueRefusedError(BrowserError):
    """A field does not take this value."""

    reference = "forms.md"
