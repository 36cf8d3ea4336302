"""Bound the cost of reading one hostile text: a process with a CPU limit reads it, so a hang fails the test."""

import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

CPU_SECONDS = 2
"""For each text; the aim is well below."""

READERS = {
    "an error of a provider": "from skillshelf_agent import hide_keys as read",
    "text for the model": "from skillshelf.text import text_for_model as read",
    "the check of a SKILL.md": (
        "from skillshelf.lint import check_text\n"
        "def read(text): check_text('---\\nname: y\\ndescription: d\\n---\\n' + text, 'y')"
    ),
    "what stands out in a review": (
        "from skillshelf.trust._review import Snapshot, list_findings\n"
        "def read(text): list(list_findings(Snapshot('y'), 'SKILL.md', {'SKILL.md': text.encode()}))"
    ),
    "a message of the person": (
        "from skillshelf.slash import read_message\n"
        "def read(text): read_message('Apply Skill \"x\"\\n\\n<skill_instructions>\\n' + text)"
    ),
    "arguments": "from skillshelf.slash._skills import split_words as read",
    "a page of a site that has a credential, and sets cookies": (
        "from skillshelf_skills.authentication_gates._redaction import Redactor\n"
        "redactor = Redactor()\n"
        "redactor.add('a' * 4_000, 'a' * 3_999 + 'b')\n"
        "read = redactor.redact_text"
    ),
}
TOKENS = ["a-", "a-a1", "key-", "bearer ", "token ", '"a', "a://", "!`"]
TOKENS += ["\n</skill_instructions>\n\nx\n<skill_references>\n\n</skill_references>\n\n<skill_arguments>\n"]
TOKENS += ["%61", "%25", r"\u0061", "&#97;", "a%61" * 999 + "c", "a&#97;" * 1_999 + "c", "&#0", "\\"]
TOKENS += ["\u200b", "\u200b\n", "\u200f ", "😀\u200d", "\u2800"]


def run(command: list[str], seconds: int, **environment: str) -> str:
    """Return the output of a process that is killed after this many seconds of CPU time."""
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, seconds))
    completed = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=limit, env={**os.environ, **environment}
    )
    assert completed.returncode == 0, completed.stderr[-2_000:]
    return completed.stdout


@pytest.mark.parametrize("reader", READERS)
def test_no_token_repeated_to_a_quarter_of_a_megabyte_takes_long(reader: str) -> None:
    """Y14: one process reads all of them in turn."""
    code = f"{READERS[reader]}\nfor token in {TOKENS!a}:\n    read(token * (250_000 // len(token.encode())))\n"
    run([sys.executable, "-c", code], CPU_SECONDS * len(TOKENS))


@pytest.mark.parametrize("key", ["sk-abcdef123456", "a1" * 20, "AIza" + "x" * 20])
def test_long_errors_reveal_no_api_key(key: str) -> None:
    """Neither the whole key nor half of it remains if the error is truncated."""
    from skillshelf_agent import hide_keys

    for length in (0, 4_000, 4_090, 4_096, 10_000):
        cleaned = hide_keys("x " * (length // 2) + key + " and more")
        assert key[:12] not in cleaned
        assert len(cleaned) <= 5_000


def make_repetitive_text(word: str) -> str:
    """Return text in which every second line is repeated: the longest common run is always a single line."""
    return "".join(f"{word} {number}\nrepeated {number % 50}\n" for number in range(5_000))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("\u200b" * 340_000, ""),
        ("\u200b" * 7_000_000, ""),
        ("a://b " * 3_000_000, ""),
        (make_repetitive_text("old"), make_repetitive_text("new")),
    ],
    ids=["hidden", "hidden-20-megabytes", "addresses", "changed-lines"],
)
def test_the_review_of_a_hostile_file_is_quick(first: str, second: str, tmp_path: Path) -> None:
    """Y14, W02: `trust --show` of a new skill, or of one that changed since it was approved."""
    skill = tmp_path / "place/.agents/skills/bad"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: bad\ndescription: d\n---\n\nDo it.\n")
    (skill / "data.txt").write_text(first)
    command = [sys.executable, "-m", "skillshelf", "trust", "-C", str(tmp_path / "place")]
    state = str(tmp_path / "state")
    if second:
        run([*command, "--yes", "bad"], 10, XDG_STATE_HOME=state)
        (skill / "data.txt").write_text(second)
    review = run([*command, "--show", "bad"], 10, XDG_STATE_HOME=state)
    assert "data.txt" in review
