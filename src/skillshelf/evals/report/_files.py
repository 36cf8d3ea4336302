"""A run in a folder: `run.json` for programs, `report.html` for people, `junit.xml` for CI."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping

from skillshelf.errors import EvalError
from skillshelf.evals._results import Run, run_from_json
from skillshelf.evals.report._junit import junit
from skillshelf.evals.report._shape import fault_of
from skillshelf.evals.report._summary import summarize
from skillshelf.evals.report.html import page
from skillshelf.evals.stats import SkillContent
from skillshelf.files import replace_file
from skillshelf.text import to_json

RUN_FILE, HTML_FILE, JUNIT_FILE = "run.json", "report.html", "junit.xml"
VERSION = 1


class RunUnreadableError(EvalError):
    """A file of results that is missing, broken, or from a newer skillshelf."""

    def __init__(self, path: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"it cannot be read as a run of evals: {reason}", path=path)


def write_run(run: Run, folder: str | os.PathLike[str], texts: Mapping[str, SkillContent] | None = None) -> None:
    """Write all three files. A reader never sees half of one. Raises OSError."""
    os.makedirs(folder, exist_ok=True)
    summary = summarize(run, texts)
    for name, text in (
        (RUN_FILE, to_json(run.as_json(), indent=1) + "\n"),
        (HTML_FILE, page(summary)),
        (JUNIT_FILE, junit(summary)),
    ):
        path = os.path.join(folder, name)
        replace_file(path, text.encode(), 0o666)


def read_run(path: str | os.PathLike[str]) -> Run:
    """From a `run.json`, or the folder that holds one. Raises RunUnreadableError."""
    file = os.fspath(path)
    if os.path.isdir(file):
        file = os.path.join(file, RUN_FILE)
    try:
        with open(file, encoding="utf-8") as text:
            plain = json.load(text)
    except OSError as fault:
        raise RunUnreadableError(file, fault.strerror or "it cannot be opened") from fault
    except (ValueError, RecursionError) as fault:
        raise RunUnreadableError(file, "it is no JSON, or was cut off") from fault
    version = plain.get("skillshelf_evals") if isinstance(plain, dict) else None
    if type(version) is not int:
        raise RunUnreadableError(file, "it is JSON of another kind, without `skillshelf_evals`")
    if version > VERSION:
        raise RunUnreadableError(file, f"it has version {version} and this skillshelf reads {VERSION}; update it")
    try:
        run = run_from_json(plain)
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise RunUnreadableError(file, f"it is incomplete or broken ({type(fault).__name__}: {fault})") from fault
    wrong = fault_of(run, Run, "run") or _mixed_up(run)
    if wrong:
        raise RunUnreadableError(file, wrong)
    return run


def _mixed_up(run: Run) -> str:
    """Trials without a case, or a case or a trial twice, would be counted wrongly without a word."""
    names = {case.id for case in run.cases}
    stray = next((one.case for one in run.outcomes if one.case not in names), None)
    if stray is not None:
        return f"it holds a trial of {stray!r:.60}, which is none of its cases"
    if len(names) < len(run.cases):
        return "it holds a case twice"
    trials = Counter((one.case, str(one.arm), one.repeat) for one in run.outcomes)
    twice = next((one for one, number in trials.items() if number > 1), None)
    return f"it holds trial {twice[2]} of {twice[0]!r:.60}, {twice[1]}, twice" if twice else ""
