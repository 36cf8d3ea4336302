"""The table of power in docs/reference/eval-statistics.md, by simulation.

`python packages/skillshelf-evals/tests/power.py --write` writes it there. It is seeded, so every run gives the same
table.
"""

import random
import re
import sys
from dataclasses import dataclass

from repository import REPO
from skillshelf_evals.stats import Pair
from skillshelf_evals.stats._exact import sign_flip

PAGE = REPO / "docs" / "reference" / "eval-statistics.md"
RUNS = 400
BEGIN = "<!-- power: made by packages/skillshelf-evals/tests/power.py -->\n"
END = "<!-- end of power -->\n"


@dataclass(frozen=True)
class Design:
    cases: int
    repeats: int

    def __str__(self) -> str:
        return f"{self.cases} × {self.repeats}"


TRUTHS = [(0.8, 0.8), (0.8, 0.9), (0.8, 0.98), (0.8, 0.99), (0.8, 1.0), (0.6, 0.8), (0.6, 1.0), (0.0, 0.2)]
DESIGNS = [Design(6, 5), Design(8, 5), Design(10, 5), Design(10, 10), Design(20, 1), Design(20, 5), Design(40, 1)]


def simulate_pairs(base: float, new: float, design: Design, draw: random.Random) -> list[Pair]:
    """Return the cases of one run, each with the same true rates."""

    def count(rate: float) -> tuple[int, int]:
        return sum(draw.random() < rate for _ in range(design.repeats)), design.repeats

    return [Pair(str(number), count(base), count(new)) for number in range(design.cases)]


def measure_power(base: float, new: float, design: Design, runs: int = RUNS) -> float:
    """Return the share of runs whose verdict is not open."""
    draw = random.Random(f"{base} {new} {design}")
    found = 0
    for _ in range(runs):
        pairs = simulate_pairs(base, new, design, draw)
        p, _ = sign_flip([pair.difference for pair in pairs])
        found += p <= 0.05
    return found / runs


def make_table() -> str:
    heading = "| true pass rate | " + " | ".join(map(str, DESIGNS)) + " |"
    lines = [heading, "|---" + "|--:" * len(DESIGNS) + "|"]
    for base, new in TRUTHS:
        shares = [f"{measure_power(base, new, design):.0%}" for design in DESIGNS]
        lines.append(f"| {base:.0%} → {new:.0%} | " + " | ".join(shares) + " |")
    return "\n".join(lines) + "\n"


def write_table() -> None:
    text = PAGE.read_text("utf-8")
    block = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    PAGE.write_text(block.sub(lambda _: f"{BEGIN}\n{make_table()}\n{END}", text), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_table()
    else:
        print(make_table(), end="")
