"""`/skills add` in the chat: each skill is shown before any file of it is on disk."""

import os
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, chat, script
from skillshelf.trust import Trust

SKILL = "---\nname: {}\ndescription: Does {}.\n---\n\nDo it.\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a folder of skills that are on no shelf."""
    folder = tmp_path / "work"
    for name in ("pdf", "sql"):
        (folder / f"node_modules/vendor/{name}").mkdir(parents=True)
        (folder / f"node_modules/vendor/{name}/SKILL.md").write_text(SKILL.format(name, name))
    return folder


def test_what_the_user_approves_is_installed_and_in_use(workspace: Path, tmp_path: Path) -> None:
    """Without names, the skills of the source are listed."""
    terminal = OnTerminal("--model", script(tmp_path, "Done."), cwd=workspace)
    terminal.see_idle()
    terminal.send("/skills add ./node_modules/vendor\r")
    terminal.expect("Several skills are there.")
    terminal.see_idle()
    terminal.send("/skills add ./node_modules/vendor sql pdf\r")
    terminal.expect("Install sql and trust it as it is?")
    assert not (workspace / ".agents").exists()
    terminal.send("n")
    terminal.expect("Install pdf and trust it as it is?")
    terminal.send("y")
    terminal.expect("installed pdf")
    terminal.see_idle()
    terminal.send("\x04")
    assert terminal.end() == 0
    assert os.listdir(workspace / ".agents/skills") == ["pdf"]
    assert [tree.name for tree in Trust.open().approvals.trees.values()] == ["pdf"]


def test_without_a_terminal_nothing_is_installed(workspace: Path, tmp_path: Path) -> None:
    """Nobody can be asked."""
    model = script(tmp_path, "Done.")
    answered = chat("--model", model, "-p", "/skills add ./node_modules/vendor pdf", cwd=workspace)
    assert "Nothing was installed." in answered.stdout + answered.stderr
    refused = chat("--model", model, "-p", "/skills add", cwd=workspace)
    assert "Give a source" in refused.stdout + refused.stderr
    assert not (workspace / ".agents").exists()
