"""One scenario for every way in: the proof that a face of skillshelf does what the others do.

    report = asyncio.run(run(FACES["langchain"]()))
    assert report.passed, report

A face of your own implements `Face`; docs/guides/conformance.md shows how.
"""

from skillshelf.testing.conformance.face import Call, Conversation, Face, Promise, Result, Said
from skillshelf.testing.conformance.faces import FACES
from skillshelf.testing.conformance.report import Outcome, Report
from skillshelf.testing.conformance.scenario import run
from skillshelf.testing.conformance.stage import server_command
from skillshelf.testing.conformance.steps import STEPS

__all__ = [
    "FACES",
    "STEPS",
    "Call",
    "Conversation",
    "Face",
    "Outcome",
    "Promise",
    "Report",
    "Result",
    "Said",
    "run",
    "server_command",
]
