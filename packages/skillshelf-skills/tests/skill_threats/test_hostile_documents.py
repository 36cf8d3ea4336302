"""Documents and pages that others wrote to keep a reader busy: each is read in a moment, or left out."""

from pathlib import Path

import pytest

from calling import call
from handbook import ALL
from sites import Site, send
from skillshelf_skills.agentic_rag import DocumentFolder, Sources, WebPages
from skillshelf_skills.agentic_rag.skill import AgenticRagSkill

pytest.importorskip("trafilatura", reason="the extra rag is not installed")

LONG = 1_000_000
LINES = {
    "marks": f"# {'#' * LONG}x",
    "marks and blanks": f"# {'# ' * (LONG // 2)}x",
    "blanks": f"# {' ' * LONG}x",
    "tabs": f"#{chr(9) * LONG}x",
    "fences": f"{'`' * LONG}x\n{'`' * LONG}",
    "long headings": "\n".join(f"{'#' * level} {'walrus ' * 20_000}\n\ntext" for level in range(1, 7)),
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_made_to_take_for_ever_is_read(line: str, tmp_path: Path) -> None:
    """With a pattern that goes back and forth, a megabyte takes hours, and nothing else runs meanwhile."""
    (tmp_path / "a.md").write_text(f"{line}\n\nWalruses are below the line.\n")
    (tmp_path / "b.md").write_text("# Penguins\n\nPenguins swim to the walruses.\n")
    skill = AgenticRagSkill(Sources([DocumentFolder(str(tmp_path))])).with_policy(ALL)
    found = call(skill, "search_documents", query="penguins swim")
    assert found["passages"][0]["locator"] == "b.md:3"
    assert max(len(passage["title"]) for passage in found["passages"]) <= 160


def test_a_page_made_to_take_for_ever_is_searched() -> None:
    """One that a server sends is no other."""
    with Site.running() as site:
        site.pages["/a"] = send(f"{LINES['marks']}\n\nWalruses sleep.".encode(), Content_Type="text/plain")
        pages = WebPages([site.url("/a")], rules=site.rules)
        found = call(AgenticRagSkill(Sources(web=pages)).with_policy(ALL), "gather", question="walruses sleep")
    assert found["evidence"][0]["text"] == "Walruses sleep."
