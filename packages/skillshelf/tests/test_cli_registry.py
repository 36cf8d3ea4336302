"""Test `skillshelf add`, `verify`, `sync`, `tree` and `remove` as a user runs them."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from git_server import commit_files, make_repository
from prepared import start_on_terminal
from skillshelf.trust import Trust
from terminals import read_terminal, wait_for_reader

Run = Callable[..., tuple[int, str, str]]
SKILL = "---\nname: {}\ndescription: Does {}.\n---\n\nDo it.\n"


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a repository with two skills."""
    folder = tmp_path_factory.mktemp("srv") / "skills"
    files = {f"skills/{name}/SKILL.md": SKILL.format(name, name) for name in ("pdf", "sql")}
    make_repository(folder, {**files, "skills/pdf/scripts/fill.py": "print()\n"})
    return f"file://{folder}"


def approved() -> set[str]:
    return {tree.name for tree in Trust.open().approvals.trees.values()}


def test_without_a_terminal_and_without_yes_nothing_is_installed(run: Run, url: str, tmp_path: Path) -> None:
    """Exit code 2: the user is told how to look and how to install."""
    for arguments in ((), ("--skill", "pdf"), ("--json",)):
        code, _, complaint = run("add", url, *arguments)
        assert code == 2
        assert "--json" in arguments or "skillshelf:" in complaint
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_shows_prices_and_check_results(run: Run, url: str, tmp_path: Path) -> None:
    code, output, _ = run("add", url, "--dry-run")
    assert code == 0
    rows = [line.split() for line in output.splitlines()]
    assert rows[0][:3] == ["2", "skills", "in"]
    assert rows[1:] == [
        ["skill", "tokens", "check", "folder"],
        ["pdf", "2", "nothing", "to", "report", "skills/pdf"],
        ["sql", "2", "nothing", "to", "report", "skills/sql"],
    ]
    facts = json.loads(run("add", url, "--dry-run", "--json")[1])
    assert [skill["name"] for skill in facts["skills"]] == ["pdf", "sql"]
    assert facts["installed"] == []
    assert "│ Do it." in run("add", url, "--dry-run", "--skill", "pdf")[1]
    assert list(tmp_path.iterdir()) == []


def test_yes_prints_the_review_approves_and_installs(run: Run, url: str, tmp_path: Path) -> None:
    """What was reviewed is what is installed is what the model reads."""
    code, output, complaint = run("add", url, "--skill", "pdf", "--yes")
    assert (code, complaint) == (0, "")
    assert "│ Do it." in output
    assert "scripts/fill.py" in output
    assert output.endswith("installed pdf in .agents/skills/pdf\n")
    assert (tmp_path / ".agents/skills/pdf/scripts/fill.py").read_text() == "print()\n"
    assert approved() == {"pdf"}
    assert run("trust", "--list")[0] == 0
    assert run("verify")[:2] == (0, "1 as pinned\n")
    lock = (tmp_path / "skills.lock").read_text()
    assert str(tmp_path) not in lock
    assert run("add", url, "--skill", "pdf", "--yes")[0] == 0, "once more changes nothing"
    assert (tmp_path / "skills.lock").read_text() == lock


def test_a_source_after_the_names_is_answered_with_what_to_write(run: Run, url: str) -> None:
    code, _, complaint = run("add", "--skill", "pdf", url)
    assert code == 2
    assert complaint.endswith("required: SOURCE. Write it first: skillshelf add SOURCE --skill NAME.\n")


def test_check_results_name_the_file(run: Run, url: str) -> None:
    skill = SKILL.format("long", "long") + "Do it again.\n" * 600
    commit_files(Path(url.removeprefix("file://")), {"skills/long/SKILL.md": skill})
    output = run("add", url, "--skill", "long", "--dry-run")[1]
    assert "\nskills/long/SKILL.md:6: instructions-too-long (warning) " in output


def test_all_skills_can_be_meant(run: Run, url: str) -> None:
    facts = json.loads(run("add", url, "--skill", "*", "--yes", "--json")[1])
    assert facts["installed"] == ["pdf", "sql"]
    assert approved() == {"pdf", "sql"}


def test_verify_names_what_differs_file_by_file(run: Run, url: str, tmp_path: Path) -> None:
    assert run("verify")[0] == 2, "a check of nothing does not pass"
    run("add", url, "--skill", "*", "--yes")
    folder = tmp_path / ".agents/skills"
    (folder / "pdf/SKILL.md").write_text(SKILL.format("pdf", "something else"))
    (folder / "pdf/new.md").write_text("")
    shutil.rmtree(folder / "sql")
    code, output, _ = run("verify")
    assert code == 1
    assert output.splitlines() == [
        "pdf: edited",
        "  changed: SKILL.md",
        "  new: new.md",
        "sql: missing",
        "0 as pinned, 1 edited, 1 missing",
    ]
    skills = json.loads(run("verify", "--json")[1])["skills"]
    assert [(skill["name"], skill["state"]) for skill in skills] == [("pdf", "edited"), ("sql", "missing")]


def test_sync_makes_the_folders_match_the_lock(run: Run, url: str, tmp_path: Path) -> None:
    """A colleague with the lock alone gets the same skills, and reviews them."""
    run("add", url, "--skill", "*", "--yes")
    before = (tmp_path / "skills.lock").read_bytes()
    shutil.rmtree(tmp_path / ".agents")
    shutil.rmtree(Path(os.environ["HOME"]))
    assert run("sync", "--frozen")[0] == 1
    assert not (tmp_path / ".agents").exists()
    code, output, complaint = run("sync")
    assert code == 0
    assert [line.split()[:2] for line in output.splitlines()] == [["installed", "pdf"], ["installed", "sql"]]
    assert complaint == "2 skills to review: run `skillshelf trust`.\n"
    assert approved() == set()
    assert run("sync", "--frozen") == (0, "Everything is as skills.lock pins it.\n", "")
    assert (tmp_path / "skills.lock").read_bytes() == before


def test_sync_keeps_edits_until_told_otherwise(run: Run, url: str, tmp_path: Path) -> None:
    run("add", url, "--skill", "pdf", "--yes")
    file = tmp_path / ".agents/skills/pdf/SKILL.md"
    original = file.read_text()
    file.write_text("edited")
    assert run("sync")[0] == 1
    assert run("remove", "pdf")[0] == 1
    assert run("add", url, "--skill", "pdf", "--yes")[0] == 1
    assert file.read_text() == "edited"
    assert run("sync", "--yes")[0] == 0
    assert file.read_text() == original


def test_the_tree_shows_what_came_from_where(run: Run, url: str, tmp_path: Path) -> None:
    commit = commit_files(Path(url.removeprefix("file://")), {"README.md": "More.\n"})
    run("add", url, "--skill", "pdf", "--yes", "--ref", "main")
    lines = run("tree")[1].splitlines()
    assert lines[0].split() == ["name", "pinned", "state", "approved", "from"]
    name, pinned, state, when, source = lines[1].split()
    assert (name, pinned, state, source) == ("pdf", commit[:12], "same", f"{url}/skills/pdf@main")
    assert when.startswith("20")
    [skill] = json.loads(run("tree", "--json")[1])["skills"]
    assert (skill["pinned"], skill["approved"]) == (commit, skill["locked"])


def test_removed_skills_are_gone_from_disk_and_lock(run: Run, url: str, tmp_path: Path) -> None:
    run("add", url, "--skill", "*", "--yes")
    assert run("remove", "sql") == (0, "removed sql\n", "")
    assert os.listdir(tmp_path / ".agents/skills") == ["pdf"]
    assert "sql" not in (tmp_path / "skills.lock").read_text()


def test_user_skills_are_installed_in_the_home_folder(run: Run, url: str, tmp_path: Path) -> None:
    """They need no approval, as the user installed them, and nothing appears in the workspace."""
    assert run("add", url, "--skill", "pdf", "--yes", "--user")[0] == 0
    home = Path(os.environ["HOME"])
    assert (home / ".agents/skills/pdf/SKILL.md").exists()
    assert run("verify", "--user")[0] == 0
    assert list(tmp_path.iterdir()) == []
    assert "pdf" in run("list")[1]


def test_errors_are_sentences(run: Run, url: str, tmp_path: Path) -> None:
    code, _, complaint = run("add", url, "--skill", "none", "--yes")
    assert (code, complaint) == (1, "There is no skill 'none' there, but pdf, sql.\n")
    (tmp_path / "skills.lock").write_text("<<<<<<< HEAD\n")
    for command in (("verify",), ("sync",), ("tree",), ("remove", "x"), ("add", url, "--skill", "pdf", "--yes")):
        code, _, complaint = run(*command)
        assert code == 1
        assert "conflict markers" in complaint
    assert json.loads(run("verify", "--json")[1])["error"]["code"] == "skills-lock"


def answer_on_terminal(cwd: Path, url: str, *answers: str) -> tuple[int, str]:
    """Run `skillshelf add` on a terminal, and answer each question once it is asked."""
    environment = {**os.environ, "TERM": "dumb", "PAGER": "cat"}
    process, terminal = start_on_terminal(["add", url], environment, cwd=cwd)
    received, remaining = "", list(answers)
    while data := read_terminal(terminal):
        received += data.decode()
        if remaining and received.endswith(("none: ", "(no): ")):
            wait_for_reader(process.pid)
            os.write(terminal, remaining.pop(0).encode())
    os.close(terminal)
    return process.wait(60) or 0, received.replace("\r\n", "\n")


def test_on_a_terminal_each_skill_is_shown_and_asked_about(url: str, tmp_path: Path) -> None:
    """The list comes first, then the page of each chosen skill; anything but a clear yes is a no."""
    code, _ = answer_on_terminal(tmp_path, url, "\n")
    assert (code, list(tmp_path.iterdir())) == (0, [])
    code, _ = answer_on_terminal(tmp_path, url, "pdf\n", "what\n")
    assert (code, list(tmp_path.iterdir())) == (1, [])
    code, screen = answer_on_terminal(tmp_path, url, "pdf, sql\n", "n\n", "y\n")
    assert code == 1
    assert os.listdir(tmp_path / ".agents/skills") == ["sql"]
    assert approved() == {"sql"}
    assert "│ Do it." in screen
    code, screen = answer_on_terminal(tmp_path, url, "sql\n")
    assert (code, "Trust sql" in screen) == (0, False), "once more, there is nothing new to review"


def test_one_plugin_of_a_marketplace_can_be_installed(run: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also one in another repository, in the commit that the marketplace names. Nothing but skills is used."""
    elsewhere = tmp_path_factory.mktemp("srv") / "tools"
    make_repository(elsewhere, {"pdf/skills/fill/SKILL.md": SKILL.format("fill", "fill"), "pdf/hooks/hooks.json": "{}"})
    commit = commit_files(elsewhere, {"unrelated.md": ""})
    commit_files(elsewhere, {"pdf/skills/late/SKILL.md": SKILL.format("late", "late")})
    source = {"source": "git-subdir", "url": f"file://{elsewhere}", "path": "pdf", "sha": commit}
    plugins = [
        {"name": "office", "source": "./", "strict": False, "skills": ["./skills/docs"]},
        {"name": "art", "source": "./", "strict": False, "skills": ["./skills/paint"]},
        {"name": "pdf", "source": source},
        {"name": "odd", "source": {"source": "command", "command": "touch run"}},
    ]
    market = tmp_path_factory.mktemp("srv") / "market"
    files = {f"skills/{name}/SKILL.md": SKILL.format(name, name) for name in ("docs", "paint")}
    make_repository(market, {**files, ".claude-plugin/marketplace.json": json.dumps({"plugins": plugins})})
    url = f"file://{market}"

    code, output, complaint = run("add", url, "--dry-run", "--json")
    assert complaint == "Plugins from other repositories, for --plugin: pdf, odd.\n"
    offered = json.loads(output)["skills"]
    assert [(skill["name"], skill["plugin"]) for skill in offered] == [("docs", "office"), ("paint", "art")]
    facts = json.loads(run("add", url, "--plugin", "art", "--yes", "--json")[1])
    assert facts["installed"] == ["paint"]
    code, output, complaint = run("add", url, "--plugin", "pdf", "--yes", "--json")
    assert (code, json.loads(output)["installed"]) == (0, ["fill"])
    assert json.loads(output)["pinned"] == commit
    assert complaint == "Not used of the plugin pdf: its hooks.\n"
    code, _, complaint = run("add", url, "--plugin", "odd", "--yes")
    assert (code, "Only plugins from Git" in complaint) == (2, True)
    code, _, complaint = run("add", url, "--plugin", "ofice", "--yes")
    assert "There is no plugin 'ofice' there, but art, odd, office, pdf." in complaint
    assert run("verify")[0] == 0
