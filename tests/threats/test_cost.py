"""What one hostile text may cost a reader: a process with a limit on its CPU time reads it, so a hang is a failure."""

import resource
import subprocess
import sys

import pytest

CPU_SECONDS = 2
"""For each text; the aim is well below."""

READERS = {
    "an error of a provider": "from skillshelf.agent.explain import safe as read",
    "text for the model": "from skillshelf.characters import text_for_model as read",
    "the check of a SKILL.md": (
        "from skillshelf.lint.format import check_text\n"
        "def read(text): check_text('---\\nname: y\\ndescription: d\\n---\\n' + text, 'y')"
    ),
    "what stands out in a review": (
        "from skillshelf.trust.findings import findings\n"
        "from skillshelf.trust.snapshot import Entry, Snapshot\n"
        "def read(text): list(findings(Snapshot('y', (Entry('SKILL.md'),)), 'SKILL.md', {'SKILL.md': text.encode()}))"
    ),
    "arguments": "from skillshelf.slash.words import split_words as read",
}
TOKENS = ["a-", "a-a1", "key-", "bearer ", "token ", '"a', "a://", "!`"]
TOKENS += ["\u200b", "\u200b\n", "\u200f ", "😀\u200d", "\u2800"]


@pytest.mark.parametrize("reader", READERS)
def test_no_token_repeated_to_a_quarter_of_a_megabyte_takes_long(reader: str) -> None:
    """Y14: all of them one after the other, in one process."""
    code = f"{READERS[reader]}\nfor token in {TOKENS!a}:\n    read(token * (250_000 // len(token.encode())))\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=_limit)
    assert done.returncode == 0, done.stderr


def _limit() -> None:
    limit = CPU_SECONDS * len(TOKENS)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))


@pytest.mark.parametrize("key", ["sk-abcdef123456", "a1" * 20, "AIza" + "x" * 20])
def test_no_key_is_left_in_an_error_however_long_it_is(key: str) -> None:
    """Neither whole nor, where the error is cut, by half."""
    from skillshelf.agent.explain import safe

    for length in (0, 4_000, 4_090, 4_096, 10_000):
        shown = safe("x " * (length // 2) + key + " and more")
        assert key[:12] not in shown
        assert len(shown) <= 5_000
