"""Files, images and commands that go to the model with a message."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import BinaryContent, ModelRequest, TextContent, UserPromptPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles import ModelProfile

from agent_kit import agent, of, requests
from skillshelf_agent import AgentCore, Attachment, attach_command
from skillshelf_agent.events import Event, Notice
from skillshelf_agent.sessions import Sessions, export_markdown, loaded_skills
from skillshelf_agent.testing import fail

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)
Write = Callable[..., Path]


def send(core: AgentCore, message: str) -> list[Event]:
    """Send a message with the files that it mentions."""

    async def run() -> list[Event]:
        found = core.find_attachments(message)
        return [event async for event in core.process_message(message, found.attachments)]

    return asyncio.run(run())


def last_prompt(core: AgentCore) -> list[str | BinaryContent]:
    """Return the parts of the last message that the model got from the user."""
    message = requests(core)[-1].messages[-1]
    assert isinstance(message, ModelRequest)
    (part,) = [part for part in message.parts if isinstance(part, UserPromptPart)]
    if isinstance(part.content, str):
        return [part.content]
    items: list[str | BinaryContent] = []
    for item in part.content:
        assert isinstance(item, str | TextContent | BinaryContent)
        items.append(item.content if isinstance(item, TextContent) else item)
    return items


def test_a_file_comes_with_its_lines_numbered(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\n")
    core = agent(tmp_path, "Fine.")
    send(core, "explain @a.py.")
    words, attached = last_prompt(core)
    assert words == "explain @a.py."
    assert attached == "The user attached a file, as it is now:\n[a.py | 2 lines]\n     1\tone\n     2\ttwo\n"


def test_a_folder_is_listed_and_a_binary_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("tangerine\n")
    (tmp_path / "data.bin").write_bytes(b"\0\1\2" * 100)
    core = agent(tmp_path, "Fine.")
    send(core, "see @src and @data.bin")
    _, folder, binary = last_prompt(core)
    assert "src/a.py  (10 bytes)" in str(folder)
    assert "tangerine" not in str(folder)
    assert "300 bytes" in str(binary)


@pytest.mark.parametrize("mention", ["@../outside.txt", "@link.txt", "@folder/outside.txt", "@/etc/passwd"])
def test_nothing_outside_the_workspace_is_attached(tmp_path: Path, mention: str) -> None:
    (tmp_path / "outside.txt").write_text("secret\n")
    work = tmp_path / "work"
    work.mkdir()
    (work / "link.txt").symlink_to("../outside.txt")
    (work / "folder").symlink_to("..")
    core = agent(work, "Fine.")
    found = core.find_attachments(f"read {mention}")
    assert found.attachments == []
    assert len(found.problems) == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    found = agent(tmp_path).find_attachments("read @pipe.txt")
    assert found.attachments == []
    assert "pipe.txt" in found.problems[0]


def test_words_with_an_at_sign_are_no_files(tmp_path: Path) -> None:
    found = agent(tmp_path).find_attachments("ask @maria or me@example.org about @ and @property")
    assert found.attachments == []
    assert found.problems == []


def test_files_that_would_fill_the_window_are_not_attached(tmp_path: Path) -> None:
    (tmp_path / "small.txt").write_text("word " * 100)
    (tmp_path / "large.txt").write_text("word\n" * 9_000)
    core = agent(tmp_path)
    core.model = replace(core.model, window=8_000)
    found = core.find_attachments("@large.txt @small.txt")
    assert [attachment.name for attachment in found.attachments] == ["small.txt"]
    assert "half of the window is 4,000" in found.problems[0]


def test_a_message_takes_twenty_files_and_five_images(tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"{number}.txt").write_text("x\n")
        (tmp_path / f"{number}.png").write_bytes(PNG)
    core = agent(tmp_path)
    texts = core.find_attachments(" ".join(f"@{number}.txt" for number in range(25)))
    assert (len(texts.attachments), len(texts.problems)) == (20, 5)
    images = core.find_attachments(" ".join(f"@{number}.png" for number in range(7)))
    assert (len(images.attachments), len(images.problems)) == (5, 2)


def test_a_pasted_image_goes_along_under_its_name(tmp_path: Path) -> None:
    """Also in a long message, and with the same limits as one in a file."""
    core = agent(tmp_path, "A dot.")
    found = core.find_attachments("what is [image #1]? " + "x" * 3_000, pasted={"[image #1]": PNG})
    assert [(each.name, each.image and each.image.data) for each in found.attachments] == [("[image #1]", PNG)]
    six = {f"[image #{number}]": PNG for number in range(6)}
    assert "a message takes 5 images" in core.find_attachments("go", pasted=six).problems[0]
    large = core.find_attachments("go", pasted={"[image #1]": PNG + bytes(5_000_000), "[image #2]": b"BM"})
    assert [problem.partition(": ")[2] for problem in large.problems] == [
        "it has more than 5,000,000 bytes.",
        "it is no image that a model takes.",
    ]


def test_an_image_that_the_model_does_not_take_is_left_out_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    core = AgentCore(TestModel(profile=ModelProfile(supports_image_input=False)), tmp_path)
    found = core.find_attachments("look at @shot.png")
    assert found.attachments == []
    assert "does not take images. /model chooses another model" in found.problems[0]


def test_an_image_that_the_provider_refuses_does_not_spoil_the_next_message(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    core = agent(tmp_path, fail(ModelHTTPError(400, "m", "no images here")), "Fine.", sessions=Sessions(str(tmp_path)))
    events = send(core, "look at @shot.png")
    assert any("left out" in notice.text for notice in of(events, Notice))
    send(core, "then without")
    texts = str(requests(core)[-1].messages)
    assert "BinaryContent" not in texts
    assert "look at @shot.png" in texts


def test_an_image_survives_in_the_session(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(PNG)
    core = agent(tmp_path, "A square.", sessions=Sessions(str(tmp_path)))
    send(core, "look at @shot.png")
    identifier = core.conversation.id
    core.conversation.close()

    again = agent(tmp_path, "Still a square.", sessions=Sessions(str(tmp_path)))
    again.resume(identifier)
    assert again.conversation.session is not None
    assert "[attached shot.png]" in export_markdown(again.conversation.session)
    send(again, "and now?")
    first = requests(again)[-1].messages[0]
    (part,) = first.parts
    assert [item.data for item in part.content if isinstance(item, BinaryContent)] == [PNG]


def test_a_skill_that_is_invoked_with_a_file_still_counts_as_loaded(tmp_path: Path, write: Write) -> None:
    write("pdf", "Fill in forms.", "Fill in every field.\n")
    (tmp_path / "form.txt").write_text("name: ____\n")
    core = agent(tmp_path, "Fine.", sessions=Sessions(str(tmp_path)))
    send(core, "/skills:pdf @form.txt")
    words, attached = last_prompt(core)
    assert "Fill in every field." in str(words)
    assert "name: ____" in str(attached)
    assert [loaded.name for loaded in loaded_skills(core.conversation.messages)] == ["pdf"]
    assert core.sessions is not None
    assert core.sessions.list()[0].title == "/skills:pdf @form.txt"


def test_a_command_waits_for_the_next_message_and_goes_once(tmp_path: Path) -> None:
    core = agent(tmp_path, "Fine.", "And?")
    core.conversation.attach(attach_command("ls", "a.txt\nb.txt\n", "exit code 0"))
    send(core, "look")
    assert last_prompt(core)[0] == "look"
    assert str(last_prompt(core)[1]).endswith("$ ls\n| a.txt\n| b.txt")
    send(core, "again")
    assert last_prompt(core) == ["again"]


def test_a_new_session_forgets_a_command_that_waits(tmp_path: Path) -> None:
    core = agent(tmp_path, "Fine.")
    core.conversation.attach(attach_command("ls", "a.txt\n", "exit code 0"))
    core.new_session()
    send(core, "hello")
    assert last_prompt(core) == ["hello"]


def test_a_long_output_keeps_its_beginning_and_its_end() -> None:
    attachment = attach_command("make", "begin\n" + "x\n" * 50_000 + "error: here\n", "exit code 2")
    assert isinstance(attachment, Attachment)
    assert len(attachment.text) < 40_000
    assert "| begin" in attachment.text
    assert attachment.text.endswith("| error: here")
    assert "characters are left out" in attachment.text


def test_the_path_of_an_image_in_a_long_paste_is_text(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    image = tmp_path / "private.png"
    image.write_bytes(PNG)
    core = agent(work)
    assert len(core.find_attachments(f"look at {image}", dropped=True).attachments) == 1
    assert core.find_attachments(f"look at {image}").attachments == []
    log = "\n".join(["saved a picture"] * 200)
    assert core.find_attachments(f"{log}\nsaved {image}\n", dropped=True).attachments == []
