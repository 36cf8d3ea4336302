"""What version 0f37ce5 stored still opens: settings, choices, rules, approvals, sessions, checkpoints and eval runs."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

import prepared
from chats import OnTerminal, chat, script
from skillshelf import DirectorySource
from skillshelf.files import identify
from skillshelf.settings import load_settings
from skillshelf.trust import OwnChanges, Trust, TrustedSource, trusted_text
from skillshelf_agent.rules import RuleBook

STORED = Path(__file__).parent / "stored"
WORKSPACE = "/srv/shop"
SESSION = "20261118-212036-quxw"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's workspace, and put the stored data where this user has it."""
    workspace = tmp_path / "shop"
    shutil.copytree(STORED / "shop", workspace)
    for kind in ("config", "state"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", str(tmp_path / kind))
        shutil.copytree(STORED / kind, tmp_path / kind / "skillshelf")
        make_private(tmp_path / kind)

    move_workspace(tmp_path, str(workspace))
    return workspace


def make_private(folder: Path) -> None:
    """Set the modes that skillshelf gave these files. Git keeps only one bit of them."""
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)


def move_workspace(home: Path, workspace: str) -> None:
    """Replace the path of the workspace, in files and in the names derived from it."""
    for path in (home / "config").rglob("*.toml"):
        path.write_text(path.read_text().replace(WORKSPACE, workspace))
    for path in (home / "state").rglob("*.json*"):
        path.write_text(path.read_text().replace(WORKSPACE, workspace))

    digest = hashlib.sha256(workspace.encode()).hexdigest()[:8]
    for kind in ("sessions", "checkpoints"):
        (home / f"state/skillshelf/{kind}/shop-60fd7ff5").rename(home / f"state/skillshelf/{kind}/shop-{digest}")

    record = home / "state/skillshelf/trust/approvals.json"
    document = json.loads(record.read_text())
    _sign(document)
    record.write_text(json.dumps(document))


def _sign(document: dict[str, Any]) -> None:
    text = json.dumps(document["approvals"], sort_keys=True, separators=(",", ":"))
    document["sha256"] = hashlib.sha256(text.encode()).hexdigest()


def test_settings_and_choices_are_in_force(shop: Path) -> None:
    settings = load_settings({})
    assert (settings.model, settings.base_url) == ("llama3.2", "http://localhost:11434/v1")
    assert (settings.policy, settings.budget, settings.window) == ("auto-edit", 3000, 8192)
    choices = json.loads(prepared.run(["set", "--json"], cwd=shop).stdout)
    assert "full" in json.dumps(choices)


def test_approvals_hold_for_the_approved_content(shop: Path) -> None:
    listed = prepared.run(["trust", "--list"], cwd=shop).stdout
    assert "2 approved, 0 pending" in listed
    (shop / "AGENTS.md").write_text("Answer in French.\n")
    assert "1 approved, 1 pending" in prepared.run(["trust", "--list"], cwd=shop).stdout


@pytest.fixture
def mine(shop: Path, tmp_path: Path) -> Path:
    """Return the repository that the user declared their own, at another path, with AGENTS.md held for review."""
    repository = tmp_path / "mine"
    (repository / ".git").mkdir(parents=True)
    (repository / "AGENTS.md").write_text("Written by an agent.\n")
    trust = tmp_path / "state/skillshelf/trust"
    record = trust / "approvals.json"
    document = json.loads(record.read_text())
    own = document["approvals"]["own"]
    own[str(repository)] = own.pop("/srv/mine")
    own[str(repository)]["folder"] = identify(str(repository))
    own[str(repository)]["version_control"] = identify(str(repository / ".git"))
    own[str(repository)]["held"] = ["AGENTS.md"]
    for key, tree in own[str(repository)]["in_use"].items():
        shutil.copytree(trust / "trees" / tree / "files", repository / key)
    _sign(document)
    record.write_text(json.dumps(document))
    return repository


def test_an_own_repository_is_still_the_users(mine: Path) -> None:
    """What was in use is, without a notice, and so is an edit; what waited for review still does."""
    listed = prepared.run(["trust", "--list"], cwd=mine).stdout
    assert "has been your own since 2026-11-18" in listed
    assert "1 your own, 1 pending" in listed
    trust = Trust.open()
    source = TrustedSource(DirectorySource(mine, "project"), trust)
    source.refresh()
    assert source.served.keys() == {".agents/skills/hello"}
    assert trust.take_own_changes(str(mine)) == OwnChanges()

    with (mine / ".agents/skills/hello/SKILL.md").open("a") as file:
        file.write("Edited.\n")
    source.refresh()
    assert trust.take_own_changes(str(mine)) == OwnChanges(changed=(".agents/skills/hello",))
    assert source.pending == ()
    text, pending = trusted_text(mine / "AGENTS.md", trust)
    assert (text, bool(pending and pending.by_agent)) == (None, True)


def test_approval_rules_are_read(shop: Path) -> None:
    book = RuleBook(str(shop))
    targets = [str(rule) for rule in book.list()]
    assert 'allow run_command "git status"' in targets
    assert 'deny run_command "git push *"' in targets
    assert len(targets) == 9
    assert book.problem == ""


def test_a_session_continues_with_its_history(shop: Path, tmp_path: Path) -> None:
    model = script(tmp_path, "As I said: notes.md.")
    ended = chat("--model", model, "--policy", "ask", "--resume", SESSION, "-p", "Where are they?", cwd=shop)
    assert "As I said: notes.md." in ended.stdout, ended.stderr
    saved = next((tmp_path / "state").rglob(f"{SESSION}.jsonl")).read_text()
    assert "Write the fields of the form to notes.md." in saved
    assert "Where are they?" in saved


def test_a_turn_of_a_stored_session_is_undone(shop: Path, tmp_path: Path) -> None:
    """The last turn changed nothing, so the one before it is taken back."""
    (shop / "notes.md").write_text("Fields: name, kind.\n")
    terminal = OnTerminal("--model", script(tmp_path), "--policy", "ask", "--resume", SESSION, cwd=shop)
    terminal.see_idle()
    terminal.send("/undo\r")
    terminal.expect('Took back "Write the fields of the form')
    terminal.see_idle()
    terminal.send("/exit\r")
    assert terminal.end() == 0
    assert not (shop / "notes.md").exists()


def test_eval_runs_are_listed_and_compared(shop: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(STORED / "runs", runs)
    listed = prepared.run(["eval", "view", str(runs)], cwd=shop)
    assert "20261118-212115-eaa380" in listed.stdout, listed.stderr
    compared = prepared.run(["eval", "compare", str(runs / "live"), str(runs / "live")], cwd=shop)
    assert "pass rate" in compared.stdout, compared.stderr
    assert "2 same" in compared.stdout


def test_an_eval_run_is_found_by_its_name(shop: Path) -> None:
    compared = prepared.run(["eval", "compare", "20261118-212058-b36cb4", "20261118-212058-b36cb4"], cwd=shop)
    assert "same" in compared.stdout, compared.stderr
