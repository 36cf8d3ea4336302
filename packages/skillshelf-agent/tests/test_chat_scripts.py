"""Scripts of skills on a pseudo-terminal: the question, the variable that is typed unseen, the result."""

from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool
from script_kit import write_skill


def test_the_user_sees_a_script_and_types_its_variable_unseen(tmp_path: Path) -> None:
    """The value appears neither while it is typed nor in what the script prints."""
    text = "import os\nprint('key', os.environ['PDF_KEY'], 'used')\n"
    write_skill(tmp_path / "work/pdf", {"scripts/sign.py": text}, "metadata:\n  env: PDF_KEY\n")
    run = tool("run_skill_script", skill_name="pdf", script="scripts/sign.py", args=["form.pdf"])
    chat = OnTerminal(
        "--model", script(tmp_path, run, run, "Signed."), "--trust-workspace", cwd=tmp_path / "work", columns=90
    )
    chat.expect("›")
    chat.send("go\r")
    chat.expect("scripts/sign.py of the skill pdf")
    chat.expect("PDF_KEY, without the network.")
    chat.expect("args: ['form.pdf']")
    chat.expect("print('key', os.environ['PDF_KEY'], 'used')")
    chat.expect("this script while it stays as it is")
    chat.expect("Allow run_skill_script?")
    chat.send("a")
    chat.expect("asks for PDF_KEY")
    chat.expect("not shown")
    chat.send("s3cret-value\r")
    chat.expect("given")
    chat.expect("● run_skill_script scripts/sign.py")
    chat.expect("key [PDF_KEY] used")
    chat.expect("Signed.")
    chat.expect("›")
    chat.send("\x04")
    assert chat.end() == 0
    assert "s3cret" not in chat.raw


def test_a_variable_of_the_environment_is_offered(tmp_path: Path) -> None:
    """One key gives it, and Enter does not."""
    write_skill(
        tmp_path / "work/pdf",
        {"scripts/sign.py": "import os\nprint('set' if 'PDF_KEY' in os.environ else 'unset')\n"},
        "metadata:\n  env: PDF_KEY\n",
    )
    run = tool("run_skill_script", skill_name="pdf", script="sign.py")
    chat = OnTerminal(
        "--model",
        script(tmp_path, run, run, "Done."),
        "--trust-workspace",
        cwd=tmp_path / "work",
        env={"PDF_KEY": "from-the-environment"},
    )
    chat.expect("›")
    chat.send("go\r")
    chat.expect("Allow run_skill_script?")
    chat.send("a")
    chat.expect("from your environment?")
    chat.send("\r")
    chat.expect("run_skill_script sign.py")
    chat.expect("unset")
    chat.expect("from your environment?")
    chat.send("y")
    chat.expect("● run_skill_script sign.py  set")
    chat.expect("Done.")
    chat.expect("›")
    chat.send("\x04")
    assert chat.end() == 0


def test_the_output_of_a_script_is_shown_while_it_runs(tmp_path: Path) -> None:
    """The values of its variables are not, not even one that arrives in pieces."""
    text = """\
import os, time
key = os.environ["PDF_KEY"]
print("first line", flush=True)
print("key " + key[:5], end="", flush=True)
while not os.path.exists("typed"):
    time.sleep(0.05)
print(key[5:], flush=True)
print("second line", flush=True)
while not os.path.exists("seen"):
    time.sleep(0.05)
"""
    write_skill(tmp_path / "work/pdf", {"scripts/sign.py": text}, "metadata:\n  env: PDF_KEY\n")
    run = tool("run_skill_script", skill_name="pdf", script="scripts/sign.py")
    model = script(tmp_path, run, "Signed.")
    chat = OnTerminal("--model", model, "--trust-workspace", "--policy", "yolo", cwd=tmp_path / "work")
    chat.see_idle()
    chat.send("go\r")
    chat.see("not shown")
    chat.send("s3cret-value\r")
    chat.see("│ first line")
    (tmp_path / "work/typed").touch()
    shown = chat.see("│ second line")
    assert "│ key [PDF_KEY]" in shown
    assert "Esc stops" in shown
    (tmp_path / "work/seen").touch()
    chat.see("Signed.")
    chat.see_idle()
    chat.send("\x04")
    assert chat.end() == 0
    assert "s3cre" not in chat.raw
