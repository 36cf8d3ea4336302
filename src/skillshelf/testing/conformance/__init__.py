"""One scenario for every way in: the proof that a face of skillshelf does what the others do.

    report = asyncio.run(run(FACES["langchain"]()))
    assert report.passed, report

A face of your own implements `Face`; docs/guides/conformance.md shows how.
"""

from skillshelf.testing.conformance._face import (
    Call,
    Face,
    FaceConversation,
    Promise,
    Reply,
    Report,
    Result,
    StepOutcome,
)
from skillshelf.testing.conformance._scenario import STEP_SECONDS, run
from skillshelf.testing.conformance._stage import Stage, server_command
from skillshelf.testing.conformance._steps import STEPS
from skillshelf.testing.conformance.faces import FACES

__all__ = [
    "FACES",
    "STEPS",
    "STEP_SECONDS",
    "Call",
    "Face",
    "FaceConversation",
    "Promise",
    "Reply",
    "Report",
    "Result",
    "Stage",
    "StepOutcome",
    "run",
    "server_command",
]
