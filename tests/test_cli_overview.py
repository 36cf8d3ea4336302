"""`skillshelf` alone shows what is here and what to do next."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf_agent import DEFAULTS

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in DEFAULTS:
        monkeypatch.delenv(variable, raising=False)


def commands(out: str) -> list[str]:
    """Return the names of the suggested commands."""
    return [line.split()[1] for line in out.splitlines() if line.startswith("  skillshelf ")]


def test_an_empty_folder_gets_a_short_answer_that_leads_on(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert len(out.splitlines()) < 20
    assert "No skills of yours here yet." in out
    assert commands(out) == ["demo", "new", "doctor"]


def test_skills_are_counted_by_place(run: Run, write: Callable[..., Path]) -> None:
    write(".claude/skills/pdf")
    write(".claude/skills/sql")
    write(".agents/skills/notes")
    out = run()[1]
    assert "2 skills in .claude/skills (project)\n1 skill in .agents/skills (project)\n" in out


def test_skills_that_wait_for_review_come_first(run: Run, write: Callable[..., Path]) -> None:
    write("skills/pdf")
    out = run()[1]
    assert "1 skill is waiting for your review" in out
    assert commands(out)[0] == "trust"


def test_reviewed_skills_and_a_model_lead_to_list_check_and_chat(
    run: Run, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("skills/pdf")
    run("trust", "--yes", "pdf")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-secret")
    out = run()[1]
    assert commands(out) == ["list", "check", "chat"]
    assert f"Model: {DEFAULTS['ANTHROPIC_API_KEY']}" in out
    assert "a-secret" not in out


def test_problems_are_counted_and_check_shows_them(run: Run, write: Callable[..., Path]) -> None:
    write("skills/deploy", "Ship it: carefully")
    out = run()[1]
    assert "1 file has problems\n" in out
    assert "skillshelf check   see the problems, each with a fix" in out


def test_suggestions_are_for_the_folder_that_was_given(run: Run, write: Callable[..., Path], tmp_path: Path) -> None:
    write("my app/skills/pdf")
    (tmp_path / "elsewhere").mkdir()
    out = run("-C", "my app")[1]
    assert "  skillshelf trust -C 'my app' " in out
    assert "  skillshelf check -C 'my app' " in out


def test_one_skill_and_several_files_wait_in_good_english(run: Run, write: Callable[..., Path], tmp_path: Path) -> None:
    write("skills/pdf")
    assert "1 skill is waiting for your review, and can't be used until then\n" in run()[1]
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    assert "1 skill and AGENTS.md are waiting for your review, and can't be used until then\n" in run()[1]


def test_a_hundred_places_fit_on_a_screen(run: Run, write: Callable[..., Path]) -> None:
    for number in range(100):
        write(f"part{number}/skills/pdf")
    out = run()[1]
    assert len(out.splitlines()) < 20
    assert "95 skills in 95 other places" in out


def test_json_has_the_same_facts(run: Run, write: Callable[..., Path], tmp_path: Path) -> None:
    write("skills/pdf")
    code, out, _ = run("--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["workspace"] == str(tmp_path)
    assert facts["groups"][0] == {
        "path": str(tmp_path / "skills"),
        "package": "",
        "source": "project",
        "count": 1,
    }
    assert (facts["pending_count"], facts["model"]) == (1, None)
    assert [step["command"] for step in facts["next"]] == ["skillshelf trust", "skillshelf check", "skillshelf demo"]


def test_broken_settings_are_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLSHELF_BUDGET", "many")
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "SKILLSHELF_BUDGET" in err


def test_no_library_of_the_agent_is_imported(tmp_path: Path) -> None:
    program = (
        "import sys; from skillshelf.cli import main; main([]); "
        "print(sorted({'pydantic_ai', 'prompt_toolkit', 'rich', 'mcp', 'asyncio'} & set(sys.modules)))"
    )
    completed = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert completed.stdout.splitlines()[-1] == "[]"
