"""A process that matches lines against a regular expression, and can be killed.

Python's `re` can take exponential time, and no thread can interrupt it. So `_line_search.py` runs this file as a
program of its own: `python -I -S _matcher.py`. It gets text on its standard input, opens no file, and imports nothing
but the standard library. The kernel ends it if a file takes more processor time than it may.

All answers are lines of JSON. The first line of input is an object: `pattern`, `seconds` of processor time per file,
`max_line` (the longest piece of a line to search), `max_shown` (the longest piece to report) and `max_matches` (how
many lines to report). The answer is an empty string, or the fault of the pattern. Each further line of input is a list
of sizes, followed by that many bytes of each file. The answer for each file is the matching lines as `[number, text]`,
and how many lines were too long to be searched whole.
"""

import json
import re
import signal
import sys
from typing import Any, BinaryIO


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    # Nothing catches this signal, so it ends the process, in the middle of a match too.
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGVTALRM])

    options = json.loads(requests.readline())
    signal.setitimer(signal.ITIMER_VIRTUAL, options["seconds"])
    try:
        pattern = re.compile(options["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        _answer(answers, str(error) or type(error).__name__)
        return
    _answer(answers, "")

    while header := requests.readline():
        # All of them are read before the first answer, or both sides could wait for the other to read.
        files = [requests.read(size) for size in json.loads(header)]
        for data in files:
            signal.setitimer(signal.ITIMER_VIRTUAL, options["seconds"])
            text = data.decode(errors="replace")
            _answer(answers, _match_lines(pattern, text, options))


def _match_lines(pattern: re.Pattern[str], text: str, options: dict[str, Any]) -> tuple[list[tuple[int, str]], int]:
    """Return the numbers and texts of the lines that match, and how many lines were searched in part only.

    There may be one line more than `max_matches`: it shows that there are more.
    """
    max_line = options["max_line"]
    matches: list[tuple[int, str]] = []
    cut_lines = 0
    number = 0
    start = 0

    # Line by line instead of splitting: a list of ten million empty lines would take half a gigabyte.
    while start < len(text) and len(matches) <= options["max_matches"]:
        number += 1
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        if end - start > max_line:
            cut_lines += 1
        line = text[start : min(end, start + max_line)].removesuffix("\r")
        start = end + 1

        match = pattern.search(line)
        if match:
            matches.append((number, show_part(line, match.start(), options["max_shown"])))

    return matches, cut_lines


def show_part(line: str, position: int, length: int) -> str:
    """Return the piece of a line that is shown: its beginning, or the part around a match further on."""
    start = position - length // 2
    if start <= 0:
        return line[:length]
    return "…" + line[start : start + length]


def _answer(answers: BinaryIO, value: Any) -> None:
    answers.write(json.dumps(value).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
