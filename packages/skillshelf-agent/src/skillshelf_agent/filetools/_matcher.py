"""The worker that matches the lines of files against a regular expression.

Python's `re` can take exponential time, and no thread can interrupt it. The kernel ends this process if a file takes
more processor time than it may. It imports nothing but the standard library, so that it starts quickly.
"""

import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def answer(request: Mapping[str, Any], data: Sequence[bytes]) -> dict[str, Any]:
    """Return the lines that match, as `[file, number, text]`, and how many were searched in their beginning only.

    The request has the `pattern`, the `seconds` of processor time for each file, the length `max_line` to which lines
    are searched and `max_shown` to which they are returned, and `max_matches`. One match more shows that there are
    more. The answer has the `fault` of a pattern that is no regular expression.
    """
    _limit_seconds(request["seconds"])
    try:
        pattern = re.compile(request["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        return {"fault": str(error) or type(error).__name__}

    matches: list[tuple[int, int, str]] = []
    cut_lines = 0
    for index, content in enumerate(data):
        _limit_seconds(request["seconds"])
        for number, line, is_cut in _split_lines(content.decode(errors="replace"), request["max_line"]):
            cut_lines += is_cut
            match = pattern.search(line)
            if match:
                matches.append((index, number, show_part(line, match.start(), request["max_shown"])))
                if len(matches) > request["max_matches"]:
                    break
        if len(matches) > request["max_matches"]:
            break
    _limit_seconds(0)
    return {"matches": matches, "cut_lines": cut_lines}


def _limit_seconds(seconds: float) -> None:
    """Have a signal, which nothing catches, end this process after some processor time; never for 0 seconds."""
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def _split_lines(text: str, max_line: int) -> Iterator[tuple[int, str, bool]]:
    """Yield the number of each line, its beginning, and whether that isn't all of it."""
    # One by one: a list of ten million empty lines would take half a gigabyte.
    number = 0
    start = 0
    while start < len(text):
        number += 1
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        yield number, text[start : min(end, start + max_line)].removesuffix("\r"), end - start > max_line
        start = end + 1


def show_part(line: str, position: int, length: int) -> str:
    """Return the piece of a line that is shown: its beginning, or the part around a match further on."""
    start = position - length // 2
    if start <= 0:
        return line[:length]
    return "…" + line[start : start + length]
