"""Keeping exchanges of secrets out of logs."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LOGGERS = ("httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpx2")
_is_silent: ContextVar[bool] = ContextVar("is_silent", default=False)


class _Silence(logging.Filter):
    """Drops what an HTTP library logs about an exchange of secrets: at the level DEBUG it logs cookies."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _is_silent.get()


_silence = _Silence()


@contextmanager
def silence_logs() -> Iterator[None]:
    """Log nothing about the HTTP requests of this block. Those of other tasks are logged as always."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_silence)  # a second time does nothing
    before = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(before)
