"""`skillshelf chat` without a terminal."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from chats import SKILLSHELF, chat, script, tool

Write = Callable[..., Path]


def test_the_answer_is_on_standard_output_and_the_rest_beside_it(tmp_path: Path, write: Write) -> None:
    """A pipe carries the answer alone."""
    write("pdf")
    model = script(tmp_path, tool("load_skill_instructions", skill_name="pdf"), "The **answer**.")
    done = chat("-p", "hi", "--model", model, "--trust-workspace", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "The **answer**.\n")
    assert "[skill pdf loaded by the model]" in done.stderr


def test_a_message_can_be_piped_in(tmp_path: Path) -> None:
    """As it is, with its lines."""
    done = chat("--model", script(tmp_path, "ok"), "--json", cwd=tmp_path, stdin="one\ntwo\n")
    assert done.returncode == 0
    assert "one\\ntwo" in next(Path.home().rglob("*.jsonl")).read_text()


def test_what_is_piped_in_follows_the_message(tmp_path: Path) -> None:
    """`git diff | skillshelf chat -p "review this"`."""
    done = chat("-p", "review this", "--model", script(tmp_path, "ok"), cwd=tmp_path, stdin="+ a line\n")
    assert done.returncode == 0
    saved = next(Path.home().rglob("*.jsonl")).read_text()
    assert "review this\\n\\n+ a line" in saved


def test_events_are_json_lines(tmp_path: Path, write: Write) -> None:
    """One for each, with its kind."""
    write("pdf")
    done = chat(
        "-p", "/skills:pdf now", "--model", script(tmp_path, "ok \x9b"), "--trust-workspace", "--json", cwd=tmp_path
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["skill_invoked", "skill_loaded", "text", "usage", "finished"]
    assert events[0] == {"event": "skill_invoked", "skill": "pdf", "arguments": "now"}
    assert done.stdout.isascii()


def test_commands_work_in_a_pipe(tmp_path: Path, write: Write) -> None:
    """Without asking the model."""
    write("pdf", "Fill in forms.")
    model = script(tmp_path)
    listed = chat("--model", model, "--trust-workspace", cwd=tmp_path, stdin="/skills\n")
    assert (listed.returncode, "Fill in forms." in listed.stdout) == (0, True)
    shown = chat("-p", "/context", "--model", model, "--json", cwd=tmp_path)
    assert "tokens" in json.loads(shown.stdout)["text"]
    unknown = chat("-p", "/skils", "--model", model, cwd=tmp_path)
    assert unknown.returncode == 1
    assert "/skills" in unknown.stderr


def test_a_fresh_clone_is_withheld_and_the_way_out_is_said(tmp_path: Path, write: Write) -> None:
    """No byte of the project in the prompt; asking for its skill fails with what to do."""
    write("pdf", "PROJECT-BYTES", "PROJECT-BYTES\n")
    (tmp_path / "AGENTS.md").write_text("PROJECT-BYTES")
    done = chat("-p", "hi", "--model", script(tmp_path, tool("list_skills"), "ok"), "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert "PROJECT-BYTES" not in done.stdout
    assert "skillshelf trust" in done.stderr
    assert "--trust-workspace" in done.stderr
    invoked = chat("-p", "/skills:pdf", "--model", script(tmp_path, "never"), cwd=tmp_path)
    assert invoked.returncode == 1


def test_frozen_fails_on_anything_that_is_not_as_approved(tmp_path: Path, write: Write) -> None:
    """Drift is an exit code."""
    write("pdf")
    words = ("-p", "hi", "--model", script(tmp_path, "ok"), "--frozen")
    assert chat(*words, cwd=tmp_path).returncode == 1
    approved = subprocess.run(
        [*SKILLSHELF, "trust", "--yes", "pdf"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert approved.returncode == 0
    assert chat(*words, cwd=tmp_path).returncode == 0
    write("pdf", "Changed.")
    changed = chat(*words, cwd=tmp_path)
    assert changed.returncode == 1
    assert "pdf" in changed.stderr


def test_a_session_goes_on_in_the_next_run(tmp_path: Path) -> None:
    """`--resume` takes the last one."""
    chat("-p", "remember 42", "--model", script(tmp_path, "noted"), cwd=tmp_path)
    chat("-p", "what was it?", "--model", script(tmp_path, "42"), "--resume", cwd=tmp_path)
    (session,) = Path.home().rglob("*.jsonl")
    saved = session.read_text()
    assert saved.index("remember 42") < saved.index("noted") < saved.index("what was it?")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "nope:x"], "no provider"),
        (["--model", "script:missing.json"], "no script"),
        (["--model", "openai:gpt-5"], "OPENAI_API_KEY"),
        (["--policy", "maybe"], "read-only"),
        (["--resume", "nope"], "session"),
        ([], "No model was chosen"),
    ],
)
def test_wrong_use_is_one_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    """What was asked, why not, what would be right; no traceback."""
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    if words and "--model" not in words:
        words = [*words, "--model", script(tmp_path, "ok")]
    done = chat("-p", "hi", *words, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_no_message_is_said(tmp_path: Path) -> None:
    """An empty pipe is wrong use."""
    done = chat("--model", script(tmp_path, "ok"), cwd=tmp_path)
    assert done.returncode == 2
    assert "-p" in done.stderr


def test_a_broken_settings_file_is_named(tmp_path: Path) -> None:
    """With what is wrong in it."""
    settings = Path.home() / ".config/skillshelf/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('modle = "x"\n')
    done = chat("-p", "hi", "--model", script(tmp_path, "ok"), cwd=tmp_path)
    assert done.returncode == 2
    assert "modle" in done.stderr
    assert "model" in done.stderr


def test_a_provider_that_breaks_off_is_exit_code_one(tmp_path: Path) -> None:
    """What was said is on standard output, why it ended beside it."""
    model = script(tmp_path, {"fail": "reset by peer", "after": "Half an"})
    done = chat("-p", "hi", "--model", model, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "Half an\n")
    assert "Traceback" not in done.stderr


def test_a_reader_who_goes_away_ends_it(tmp_path: Path) -> None:
    """As other commands end in a pipe that nobody reads."""
    model = script(tmp_path, "line\n\n" * 20_000)
    first = [sys.executable, "-c", "import sys; sys.stdin.readline()"]
    with subprocess.Popen(
        [*SKILLSHELF, "chat", "-p", "hi", "--model", model],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as writer:
        subprocess.run(first, stdin=writer.stdout, check=True)
        assert writer.stdout
        writer.stdout.close()
        _, said = writer.communicate(timeout=60)
    assert "Traceback" not in said


def test_a_missing_extra_says_what_to_install(tmp_path: Path) -> None:
    """The core alone can say it."""
    code = (
        "import sys; sys.modules['pydantic_ai_harness'] = None; sys.modules['prompt_toolkit'] = None\n"
        "from skillshelf.cli import main; sys.exit(main(['chat', '-p', 'hi']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'skillshelf[chat]'" in done.stderr
