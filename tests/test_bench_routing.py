"""The measurements of routing run from a plain clone, on our own small set."""

import re

import pytest

from benchmarks.routing import main as measure_routing
from benchmarks.search.collections import OWN_DATA


def test_routing_describes_more_right_skills_and_the_rule_changes_fewer_sections(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measure_routing([str(OWN_DATA), "--sizes", "60", "--conversations", "6", "--budget", "600"])
    described: dict[str, float] = {}
    changed: dict[str, float] = {}
    for line in capsys.readouterr().out.splitlines():
        row = re.match(r"(.+?)  +([\d.]+) % +([\d.]+) %", line)
        if row:
            described[row[1]] = float(row[2])
            changed[row[1]] = float(row[3])
    assert described["the rule"] > described["no routing"]
    assert changed["no routing"] == 0
    assert changed["the rule, with notes"] <= changed["the rule"] < changed["every turn"]
