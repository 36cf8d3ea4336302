"""The bell and the window's title, for a user who looks elsewhere."""

from prompt_toolkit.output import Output

from skillshelf.settings import Settings

QUESTION = "a question waits"
DONE = "done"

_TITLE = "skillshelf"
# Most terminals keep the old title meanwhile. In the others, ours stays, without the news.
_KEEP_TITLE = "\x1b[22;2t"
_BRING_TITLE_BACK = "\x1b[23;2t"


class Alerts:
    """Calls the user. The title has our own words alone: text of a skill or a model could end its sequence."""

    def __init__(self, output: Output, settings: Settings) -> None:
        self._output = output
        self._settings = settings
        self._is_shown = False

    def call(self, news: str) -> None:
        """Ring, and put the news into the title until `clear` is called."""
        if self._settings.bell:
            self._output.bell()
        if self._settings.title:
            if not self._is_shown:
                self._output.write_raw(_KEEP_TITLE)
            self._is_shown = True
            self._output.set_title(f"{news} · {_TITLE}")
            self._output.flush()

    def clear(self) -> None:
        """Bring the old title back: the user has seen the news."""
        if self._is_shown:
            self._is_shown = False
            self._output.set_title(_TITLE)
            self._output.write_raw(_BRING_TITLE_BACK)
            self._output.flush()
