"""Run `skillshelf check` on files and folders made to be slow. The kernel stops runaway processes."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = 512 * 1024
# A hang guard. Each case takes under 2 seconds more than an ordinary skill; an unbounded one would take far longer.
CPU_SECONDS = 10
MEMORY = 200 * 1024**2

Write = Callable[[Path], None]


def repeat(text: str, size: int = PAGE - 1000) -> str:
    return text * (size // len(text))


def file(path: str, text: str) -> Write:
    return lambda folder: write_text(folder / path, text)


def many(count: int, text: str = "# It\n", ending: str = "md") -> Write:
    def write(folder: Path) -> None:
        for number in range(count):
            write_text(folder / f"references/{number}.{ending}", text)

    return write


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def skill(body: str, fields: str = "") -> str:
    return f"---\nname: skill\ndescription: Does it.\n{fields}---\n\n{body}\n"


CASES: dict[str, Write] = {
    "20,000 references": many(20_000),
    "8,000 listed references that are missing": file(
        "SKILL.md", skill("Do it.", "references:\n" + "".join(f"  - references/{n}.md\n" for n in range(8_000)))
    ),
    "4,000 references that name each other": many(4_000, " ".join(f"{number}.md" for number in range(90))),
    "4,000 references with dead links": many(4_000, "[a](b.md)\n\n```\nx\n"),
    "a Markdown list of 130,000 items": file("references/a.md", "[x](y.md)\n\n" + repeat("- a\n")),
    "130,000 quotations": file("references/a.md", "[x](y.md)\n\n" + repeat("> a\n\n")),
    "87,000 links that open nothing": file("references/a.md", "[x](y.md)\n\n" + repeat("[a](b(")),
    "instructions of 1 MB in lists": file("SKILL.md", skill("[x](y.md)\n\n" + repeat("- a\n", 1_000_000))),
    "a path of 500,000 folders": file("SKILL.md", skill("a/" * 500_000)),
    "60,000 patterns": file("SKILL.md", skill(" ".join(f"x{number}-*/b*c.md" for number in range(60_000)))),
    "a pattern of 300,000 stars": file("SKILL.md", skill("a*b" * 300_000 + ".md")),
    "37,000 functions": file("scripts/a.py", repeat("def f(): pass\n")),
    "260,000 statements": file("scripts/a.py", repeat("a;")),
    "an import of 250,000 names": file("scripts/a.py", "from a import " + repeat("b,")),
}


def write_ordinary(folder: Path) -> Path:
    write_text(folder / "SKILL.md", skill("Load references/a.md and run scripts/a.py."))
    return folder


@pytest.fixture(scope="module")
def needed(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The memory that the check of an ordinary skill needs."""
    return measure_check(write_ordinary(tmp_path_factory.mktemp("ordinary") / "skill"))


@pytest.mark.parametrize("case", CASES)
def test_a_check_is_bounded(tmp_path: Path, needed: int, case: str) -> None:
    """It ends on its own, reports its findings, and needs at most 200 MB more than an ordinary skill."""
    hostile = write_ordinary(tmp_path / "skill")
    CASES[case](hostile)
    assert measure_check(hostile) < needed + MEMORY


def measure_check(folder: Path) -> int:
    command = [sys.executable, "-m", "skillshelf", "check", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=limit_cpu)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1)
    return usage.ru_maxrss * 1024


def limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
