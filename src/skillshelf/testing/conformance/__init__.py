"""One scenario for every way in: the proof that a face of skillshelf does what the others do.

    report = asyncio.run(run(FACES["langchain"]()))
    assert report.passed, report

A face of your own implements `Face`; docs/guides/conformance.md shows how.
"""

from skillshelf.testing.conformance.face import Call, Conversation, Face, Result, Said
from skillshelf.testing.conformance.faces import FACES
from skillshelf.testing.conformance.scenario import STEPS, Outcome, Report, run

__all__ = ["FACES", "STEPS", "Call", "Conversation", "Face", "Outcome", "Report", "Result", "Said", "run"]
