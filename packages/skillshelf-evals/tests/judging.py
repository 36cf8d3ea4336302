"""Answers of scripted judges."""

import json


def decide(*verdicts: str, reason: str = "It is so.") -> str:
    """Return a judge's answer with these verdicts, `yes` or `no`, in the order of the sentences."""
    judged = [{"sentence": number, "reason": reason, "verdict": verdict} for number, verdict in enumerate(verdicts, 1)]
    return json.dumps({"verdicts": judged})
