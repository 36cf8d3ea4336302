"""One scenario for every way in: the proof that your face does what those of skillshelf do.

    report = asyncio.run(run(MyFace()))
    assert report.passed, report

docs/guides/conformance.md shows how to write a `Face`.
"""

from skillshelf.testing.conformance._face import Call, Face, FaceConversation, Promise, Reply, Result
from skillshelf.testing.conformance._scenario import Report, StepOutcome, run
from skillshelf.testing.conformance._stage import Stage, server_command
from skillshelf.testing.conformance._steps import STEPS

__all__ = [
    "STEPS",
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
