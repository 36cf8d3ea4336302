"""Approval rules in a chat, on a real terminal and with the keys that a person presses."""

from pathlib import Path

import pytest

from chats import OnTerminal, chat, script, tool
from skillshelf_agent.rules import rules_file


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))


def test_a_key_makes_the_rule_that_the_question_shows(tmp_path: Path) -> None:
    """The next call like it is not asked about, in this chat or in a pipe later."""
    model = script(tmp_path, tool("run_command", command="echo one"), tool("run_command", command="echo one"), "Done.")
    terminal = OnTerminal("--model", model, cwd=tmp_path)
    terminal.expect("›")
    terminal.send("go\r")
    terminal.expect('p  from now on, in this workspace: run_command "echo one"')
    terminal.expect("[p]ermanently")
    terminal.send("p")
    terminal.expect("Done.")
    terminal.expect("›")
    terminal.send("/approve rules\r")
    terminal.expect('allow run_command "echo one"')
    terminal.expect("this workspace")
    terminal.expect("›")
    terminal.send("\x04")
    assert terminal.end() == 0

    assert chat("-p", "go", "--model", model, "--json", cwd=tmp_path).stdout.count('"ok": true') == 2


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (tool("run_command", command="echo one"), '/approve allow run_command "echo one"'),
        (tool("write_file", path="notes/a.md", content="A"), '/approve allow write_file "notes/**"'),
    ],
)
def test_a_call_that_nobody_can_be_asked_about_names_its_rule(tmp_path: Path, call: object, rule: str) -> None:
    """Typing it as it stands allows the next one."""
    (tmp_path / "notes").mkdir()
    model = script(tmp_path, call, "Done.")
    refused = chat("-p", "go", "--model", model, cwd=tmp_path).stderr
    assert f"`{rule}`" in " ".join(refused.split())
    assert chat("-p", rule, "--model", model, cwd=tmp_path).returncode == 0
    assert '"ok": true' in chat("-p", "go", "--model", model, "--json", cwd=tmp_path).stdout


def test_rules_are_typed_listed_and_removed(tmp_path: Path) -> None:
    """A rule that could do harm is refused or comes with a warning."""
    model = script(tmp_path, "Hello.")

    def say(text: str) -> str:
        done = chat("-p", text, "--model", model, cwd=tmp_path)
        return done.stdout + done.stderr

    assert 'allow run_command "pytest *"' in say('/approve allow run_command "pytest *"')
    assert "everywhere" in say("/approve deny write_file dist/** --everywhere")
    assert "it misses the program behind another one" in say("/approve deny run_command git push *")
    assert "It allows whatever python can do" in say("/approve allow run_command python *")
    assert "can only be the last word" in say("/approve allow run_command git * status")
    assert "not one program" in say("/approve allow run_command ls; rm -rf x")
    assert "only reads" in say("/approve deny read_file a.txt")
    listed = say("/approve rules")
    assert [f"{number}  " in listed for number in (1, 4, 5)] == [True, True, False]
    assert 'Removed: allow run_command "pytest *"' in say("/approve forget 1")
    assert "Give the number" in say("/approve forget 9")
    file = rules_file()
    assert file is not None
    assert "pytest *" not in Path(file).read_text()


@pytest.mark.parametrize(
    ("typed", "note"),
    [
        ("run_comand", "There is no tool 'run_comand' here now. Did you mean 'run_command'?"),
        ("github__comment", "There is no tool 'github__comment' here now."),  # a server may bring it later
        ("run_skill_script", ""),
    ],
)
def test_a_rule_for_a_tool_that_is_not_there_comes_with_a_note(tmp_path: Path, typed: str, note: str) -> None:
    """A misspelled denial would deny nothing."""
    done = chat("-p", f"/approve deny {typed}", "--model", script(tmp_path, "Hello."), cwd=tmp_path)
    made, _, noted = done.stdout.partition("\n")
    assert (made, noted.strip()) == (f"From now on, in this workspace: deny {typed}", note)


def test_a_rule_of_an_earlier_version_is_confirmed_by_its_number(tmp_path: Path) -> None:
    """The chat says at once that it is not in force, and the list how to change that."""
    file = rules_file()
    assert file is not None
    Path(file).parent.mkdir(parents=True)
    Path(file).write_text('[[rule]]\ndecision = "allow"\ntool = "run_command"\ncommand = "echo *"\n')
    Path(file).chmod(0o600)
    model = script(tmp_path, tool("run_command", command="echo one"), "Done.")

    def say(text: str, *options: str) -> str:
        done = chat("-p", text, "--model", model, *options, cwd=tmp_path)
        return done.stdout + done.stderr

    assert "Not in force until you confirm: 1 approval rule." in say("go")
    assert "/approve confirm 1" in say("/approve rules")
    assert "It allows whatever echo can do" in say("/approve confirm 1")
    assert "in force already" in say("/approve confirm 1")
    assert '"ok": true' in say("go", "--json")
    assert '"ok": true' not in say("go", "--json", "--no-sandbox")
    assert "commands are not sandboxed here" in say("/approve rules", "--no-sandbox")


def test_a_refusal_with_a_reason_reaches_the_model(tmp_path: Path) -> None:
    """An empty line, or Escape, returns to the question."""
    model = script(tmp_path, tool("run_command", command="npm install"), "With pnpm, then.")
    terminal = OnTerminal("--model", model, cwd=tmp_path)
    terminal.expect("›")
    terminal.send("go\r")
    terminal.expect("[r]efuse and say why")
    terminal.send("r")
    terminal.expect("What should the model know?")
    terminal.send("\r")
    terminal.expect("[r]efuse and say why")
    terminal.send("r")
    terminal.expect("What should the model know?")
    terminal.send("use pnpm instead\r")
    terminal.expect("The user denied this call to 'run_command': use pnpm instead")
    terminal.expect("With pnpm, then.")
    terminal.expect("›")
    terminal.send("\x04")
    assert terminal.end() == 0


def test_a_question_about_instructions_offers_no_lasting_answer(tmp_path: Path) -> None:
    """It says why, and the keys for such answers do nothing."""
    terminal = OnTerminal(
        "--model", script(tmp_path, tool("write_file", path="AGENTS.md", content="x"), "Done."), cwd=tmp_path
    )
    terminal.expect("›")
    terminal.send("go\r")
    output = terminal.expect("Allow write_file? [y]es [n]o")
    assert "each change of it is asked about" in output
    assert "until you leave" not in output
    terminal.send("apn")
    terminal.expect("Done.")
    terminal.expect("›")
    terminal.send("\x04")
    assert terminal.end() == 0
    assert not (tmp_path / "AGENTS.md").exists()
