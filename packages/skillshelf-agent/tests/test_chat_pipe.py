"""Run `skillshelf chat` without a terminal."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest

from agent_kit import agent, prompts
from chats import chat, script, tool
from openai_api import OpenAIApi
from prepared import SKILLSHELF
from skillshelf.trust import Trust
from skillshelf_agent import AgentCore, Settings, resolve
from skillshelf_agent.events import Event, Finished
from skillshelf_agent.terminal import Pipe

Write = Callable[..., Path]


def test_only_the_answer_is_on_standard_output(tmp_path: Path, write: Write) -> None:
    """A pipe carries the answer alone; everything else goes to standard error."""
    write("pdf")
    model = script(tmp_path, tool("load_skill_instructions", skill_name="pdf"), "The **answer**.")
    result = chat("-p", "hi", "--model", model, "--trust-workspace", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "The **answer**.\n")
    assert "[skill pdf loaded by the model]" in result.stderr


def test_a_message_can_be_piped_in(tmp_path: Path) -> None:
    """Its lines stay as they are."""
    result = chat("--model", script(tmp_path, "ok"), "--json", cwd=tmp_path, stdin="one\ntwo\n")
    assert result.returncode == 0
    assert "one\\ntwo" in next(Path.home().rglob("*.jsonl")).read_text()


def test_piped_input_follows_the_message(tmp_path: Path) -> None:
    """An example is `git diff | skillshelf chat -p "review this"`."""
    result = chat("-p", "review this", "--model", script(tmp_path, "ok"), cwd=tmp_path, stdin="+ a line\n")
    assert result.returncode == 0
    saved = next(Path.home().rglob("*.jsonl")).read_text()
    assert "review this\\n\\n+ a line" in saved


def test_a_pipe_starts_without_the_libraries_of_a_screen(tmp_path: Path) -> None:
    """Nor with the search, which a model may never ask for."""
    words = ["-m", "skillshelf", "chat", "--model", script(tmp_path, "ok"), "-p", "go"]
    command = [sys.executable, "-X", "importtime", *words]
    result = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert result.stdout == "ok\n"
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in result.stderr.splitlines()}
    assert "pydantic_ai" in imported
    assert imported.isdisjoint({"prompt_toolkit", "markdown_it", "rapidfuzz", "sqlite3"})


def test_a_reader_that_goes_away_ends_the_turn_quietly(tmp_path: Path) -> None:
    """As with `| head`: the exit code says so, and what had arrived is in the session's file."""
    reader, writer = os.pipe()
    os.close(reader)
    with OpenAIApi(["An answer of some words."]).serve() as url:
        result = subprocess.run(
            [*SKILLSHELF, "chat", "--model", "tiny", "--base-url", url, "-p", "go"],
            cwd=tmp_path,
            env={**os.environ, "OPENAI_API_KEY": "key"},
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")
    assert "An" in next(Path.home().rglob("*.jsonl")).read_text()


def test_the_turn_is_over_when_a_closed_pipe_is_reported(tmp_path: Path) -> None:
    """It does not run on, at the user's cost, while the rest of the program ends."""
    core = agent(tmp_path, "An answer of some words.", "Another one.")
    reader, writer = os.pipe()
    os.close(reader)

    async def run() -> list[Event]:
        with pytest.raises(BrokenPipeError):
            await Pipe(core, Settings(), as_json=False).run("go")
        return [event async for event in core.process_message("go on")]

    events: list[Event] = []
    # Closing the pipe fails once more, with what is left in its buffer.
    with suppress(BrokenPipeError), open(writer, "w", encoding="utf-8") as output, redirect_stdout(output):
        events = asyncio.run(run())
    assert events[-1] == Finished("Another one.")
    assert prompts(core) == ["go", "go on"]


def test_events_are_json_lines(tmp_path: Path, write: Write) -> None:
    """Each event is one line with its kind."""
    write("pdf")
    result = chat("-p", "/pdf now", "--model", script(tmp_path, "ok \x9b"), "--trust-workspace", "--json", cwd=tmp_path)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events] == ["skill_invoked", "skill_loaded", "text", "usage", "finished"]
    assert events[0] == {"event": "skill_invoked", "skill": "pdf", "text": "now"}
    assert result.stdout.isascii()


def test_commands_work_in_a_pipe(tmp_path: Path, write: Write) -> None:
    """The model is not called."""
    write("pdf", "Fill in forms.")
    model = script(tmp_path)
    listed = chat("--model", model, "--trust-workspace", cwd=tmp_path, stdin="/skills\n")
    assert (listed.returncode, "Fill in forms." in listed.stdout) == (0, True)
    result = chat("-p", "/context", "--model", model, "--json", cwd=tmp_path)
    assert "tokens" in json.loads(result.stdout.splitlines()[-1])["text"]
    unknown = chat("-p", "/skils", "--model", model, cwd=tmp_path)
    assert unknown.returncode == 1
    assert "/skills" in unknown.stderr


def test_a_fresh_clone_is_withheld_with_a_hint(tmp_path: Path, write: Write) -> None:
    """The prompt has no byte of the project, and invoking its skill fails with instructions.

    A name that two skills share is given once.
    """
    write("pdf", "PROJECT-BYTES", "PROJECT-BYTES\n")
    write("elsewhere/pdf", "PROJECT-BYTES", "PROJECT-BYTES\n")
    (tmp_path / "AGENTS.md").write_text("PROJECT-BYTES")
    result = chat("-p", "hi", "--model", script(tmp_path, tool("list_skills"), "ok"), "--json", cwd=tmp_path)
    assert result.returncode == 0
    assert "PROJECT-BYTES" not in result.stdout
    notices = [event["text"] for event in map(json.loads, result.stdout.splitlines()) if event["event"] == "notice"]
    assert notices == [
        "pdf, AGENTS.md are waiting for your review, and can't be used until then.",
        "Review them with `skillshelf trust`, or pass --trust-workspace.",
    ]
    as_text = chat("-p", "hi", "--model", script(tmp_path, "ok"), cwd=tmp_path)
    assert (as_text.stdout, as_text.stderr.splitlines()) == ("ok\n", notices)
    invoked = chat("-p", "/pdf", "--model", script(tmp_path, "never"), cwd=tmp_path)
    assert invoked.returncode == 1
    assert "`/skills trust` shows it and asks" in invoked.stderr


def test_a_few_of_many_pending_skills_are_named(tmp_path: Path, write: Write) -> None:
    """The others are counted: the line fits a terminal."""
    for name in ("docx", "pdf", "pptx", "sql", "xlsx"):
        write(name)
    answered = chat("-p", "hi", "--model", script(tmp_path, "ok"), cwd=tmp_path)
    assert answered.stderr.splitlines()[0].startswith("docx, pdf, pptx and 2 more are waiting for your review")


def test_frozen_fails_if_a_skill_differs_from_its_approval(tmp_path: Path, write: Write) -> None:
    """The exit code reports the drift."""
    write("pdf")
    options = ("-p", "hi", "--model", script(tmp_path, "ok"), "--frozen")
    assert chat(*options, cwd=tmp_path).returncode == 1
    approved = subprocess.run(
        [*SKILLSHELF, "trust", "--yes", "pdf"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert approved.returncode == 0
    assert chat(*options, cwd=tmp_path).returncode == 0
    write("pdf", "Changed.")
    changed = chat(*options, cwd=tmp_path)
    assert changed.returncode == 1
    assert "pdf" in changed.stderr


def test_a_session_continues_in_the_next_run(tmp_path: Path) -> None:
    """`--resume` takes the last session."""
    chat("-p", "remember 42", "--model", script(tmp_path, "noted"), cwd=tmp_path)
    chat("-p", "what was it?", "--model", script(tmp_path, "42"), "--resume", cwd=tmp_path)
    (session,) = Path.home().rglob("*.jsonl")
    saved = session.read_text()
    assert saved.index("remember 42") < saved.index("noted") < saved.index("what was it?")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--model", "nope:x"], "no provider"),
        (["--model", "script:missing.json"], "There is no file 'missing.json'"),
        (["--model", "openai:gpt-5"], "OPENAI_API_KEY"),
        (["--policy", "maybe"], "read-only"),
        (["--resume", "nope"], "session"),
        ([], "No model was chosen"),
    ],
)
def test_wrong_usage_gives_one_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], expected: str
) -> None:
    """It says what happened, why, and what to do, without a traceback."""
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    if options and "--model" not in options:
        options = [*options, "--model", script(tmp_path, "ok")]
    result = chat("-p", "hi", *options, cwd=tmp_path)
    assert result.returncode in (1, 2)
    assert result.stdout == ""
    assert expected in result.stderr
    assert "Traceback" not in result.stderr


def test_a_missing_message_is_a_usage_error(tmp_path: Path) -> None:
    """The pipe is empty, and there is no `-p`."""
    result = chat("--model", script(tmp_path, "ok"), cwd=tmp_path)
    assert result.returncode == 2
    assert "-p" in result.stderr


def test_a_broken_settings_file_is_named(tmp_path: Path) -> None:
    """The message says which setting is wrong."""
    settings = Path.home() / ".config/skillshelf/config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('modle = "x"\n')
    result = chat("-p", "hi", "--model", script(tmp_path, "ok"), cwd=tmp_path)
    assert result.returncode == 2
    assert "modle" in result.stderr
    assert "model" in result.stderr


def test_a_connection_lost_to_the_provider_exits_with_one(tmp_path: Path) -> None:
    """The partial answer is on standard output, the reason on standard error."""
    model = script(tmp_path, {"fail": "reset by peer", "after": "Half an"})
    result = chat("-p", "hi", "--model", model, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "Half an\n")
    assert "Traceback" not in result.stderr


def test_a_closed_output_pipe_ends_the_chat(tmp_path: Path) -> None:
    """Other commands end the same way if no process reads their output."""
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
        _, stderr = writer.communicate(timeout=60)
    assert "Traceback" not in stderr


def test_disclosure_is_chosen_by_option_and_a_listing_beyond_the_window_is_reported(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--disclosure full` takes all instructions; if they cannot fit into the window, the first line says so."""
    write("long", "Is long.", body="Many words. " * 10_000)
    monkeypatch.setenv("SKILLSHELF_WINDOW", "15000")
    options = ("-p", "hi", "--model", script(tmp_path, "ok"), "--trust-workspace")
    full = chat(*options, "--disclosure", "full", cwd=tmp_path)
    assert full.stderr.startswith("The skills alone take ")
    assert "the window of scripted holds 15,000. Choose --disclosure auto, or use fewer skills." in full.stderr
    assert chat(*options, cwd=tmp_path).stderr == ""
    wrong = chat(*options, "--disclosure", "all", cwd=tmp_path)
    assert (wrong.returncode, "must be one of auto, catalog, full" in wrong.stderr) == (2, True)


def test_the_models_of_the_provider_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def ask(url: str) -> int:
        settings = Settings(base_url=url, model="tiny")
        core = AgentCore(resolve(settings), tmp_path)
        return await Pipe(core, settings, as_json=False).run("/model")

    with OpenAIApi(listing=json.dumps({"data": [{"id": "tiny"}, {"id": "large"}]})).serve() as url:
        assert asyncio.run(ask(url)) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["openai-chat:large", "openai-chat:tiny, in use"]


def test_a_markdown_command_is_sent_once_it_is_approved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its text with the arguments is the message. It grants no tools, and does not choose the model."""
    path = tmp_path / ".claude/commands/git/fix.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nallowed-tools: Bash\nmodel: haiku\n---\nFix issue #$1.\n")
    core = agent(tmp_path, "Fixed.", trust=Trust.open())
    assert asyncio.run(Pipe(core, Settings(), as_json=False).run("/git:fix 3")) == 1
    assert "/git:fix is waiting for your review" in capsys.readouterr().err
    core.skills.approve(core.skills.pending)
    core.reload_skills()
    assert asyncio.run(Pipe(core, Settings(), as_json=False).run("/git:fix 3")) == 0
    output = capsys.readouterr()
    assert output.out == "Fixed.\n"
    assert "asks for the model haiku, which a command cannot choose" in output.err
    assert prompts(core) == ["Fix issue #3.\n"]
