"""The synthetic collection that everything is measured on: N skills of 4 KB with two references of 4 KB each."""

import random
import time
from pathlib import Path

# What changed within the last two seconds is read again at the next look, because times cannot tell a further change.
SETTLE_SECONDS = 2.5

_VOCABULARY = (
    "deploy rollback invoice ledger kubernetes terraform pdf form extract table neo4j cypher query vector search "
    "azure browser selector playwright oauth token refresh rotate secret audit log trace metric alert incident "
    "runbook review python typing lint format release changelog semver docker image layer cache redis postgres "
    "index migrate schema csv excel chart plot regression forecast translate summarize email calendar meeting notes "
    "slack channel webhook retry backoff queue worker celery kafka stream parquet arrow spark airflow dag lineage "
    "catalog glossary policy privacy"
)
WORDS = _VOCABULARY.split()


def skill_name(number: int) -> str:
    return f"{WORDS[number % len(WORDS)]}-{WORDS[(number * 7 + 3) % len(WORDS)]}-{number:05d}"


def skill_text(name: str, words: random.Random) -> str:
    about = " ".join(words.choices(WORDS, k=24))
    return (
        f"---\nname: {name}\ndescription: Use when the task needs {about}\nlicense: MIT\n"
        f'metadata:\n  author: bench\n  version: "1.0"\n---\n\n'
        f"# {name}\n\nSee references/guide.md and references/config.md.\n{_lines(words)}"
    )


def _lines(words: random.Random, size: int = 4000) -> str:
    text = ""
    while len(text) < size:
        text += " ".join(words.choices(WORDS, k=12)) + ".\n"
    return text


def write(count: int, folder: Path) -> None:
    """The same bytes for the same count, every time."""
    words = random.Random(7)
    for number in range(count):
        name = skill_name(number)
        references = folder / name / "references"
        references.mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(skill_text(name, words))
        for reference in ("guide", "config"):
            (references / f"{reference}.md").write_text(f"# {reference}\n\n{_lines(words)}")


class Collections:
    """Collections of several sizes below one folder, each written when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, count: int) -> str:
        folder = self._folder / str(count)
        if not folder.exists():
            write(count, folder)
            time.sleep(SETTLE_SECONDS)
        return str(folder)
