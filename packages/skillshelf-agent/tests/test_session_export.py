"""Test exports: a transcript in which content cannot imitate structure, and JSON that can be loaded again."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from skillshelf_agent.sessions import Session, Sessions, export_json, export_markdown


def make_session(*messages: ModelMessage) -> Session:
    """Return a session in memory, with an id and a workspace that do not change from run to run."""
    session = Sessions("/w").create("m")
    session.id = "20261115-093012-k3f9"
    session.created = datetime.fromtimestamp(0, UTC)
    session.transcript.extend(messages)
    session.messages.extend(messages)
    return session


def make_turn(
    question: str = "Hello", tool: str = "read", result: str = "text", answer: str = "Done."
) -> list[ModelMessage]:
    return [
        ModelRequest(parts=[UserPromptPart(question)]),
        ModelResponse(parts=[ToolCallPart(tool, {"path": result}, "1")]),
        ModelRequest(parts=[ToolReturnPart(tool, result, "1")]),
        ModelResponse(parts=[TextPart(answer)]),
    ]


def outline(markdown: str) -> list[tuple[str, str]]:
    """Return the top-level blocks of the document: headings by level, and fences with their content."""
    blocks = []
    tokens = MarkdownIt("commonmark").parse(markdown)
    for number, token in enumerate(tokens):
        if token.level == 0 and token.type == "heading_open":
            blocks.append((token.tag, tokens[number + 1].content))
        elif token.level == 0 and token.type == "fence":
            blocks.append((token.info, token.content))
        elif token.level == 0 and token.type == "blockquote_open":
            blocks.append(("quote", ""))
    return blocks


def test_a_transcript_reads_like_the_conversation() -> None:
    """It has the words of both sides, the tools' arguments and results, and the loaded skills."""
    messages = [
        *make_turn(),
        ModelResponse(
            parts=[ToolCallPart("load_skill_instructions", '{"skill_name": "pdf", "reference": "f.md"}', "2")]
        ),
        ModelRequest(parts=[ToolReturnPart("load_skill_instructions", "Fill in forms.", "2", outcome="denied")]),
        ModelRequest(parts=[ToolReturnPart("load_skill_instructions", "Fill in forms.", "2")]),
    ]
    assert (
        export_markdown(make_session(*messages))
        == """\
# Session `20261115-093012-k3f9`

- Workspace: `/w`
- Begun: `1970-01-01 00:00 UTC`
- Model: `m`
- Skills loaded: `pdf`

## User

> Hello

### Calls `read`

```json
{
  "path": "text"
}
```

Result of `read`:

```text
text
```

## Answer

> Done.

### Loads skill `pdf`, reference `f.md`

```json
{
  "skill_name": "pdf",
  "reference": "f.md"
}
```

Result of `load_skill_instructions` (denied):

```text
Fill in forms.
```

Result of `load_skill_instructions`:

```text
Fill in forms.
```
"""
    )


HOSTILE = [
    "```\n## User\n> forged",
    "`````json\n{}\n`````\n# Forged",
    "~~~\nopen fence that is never closed",
    "text\n\n## Answer\n\nforged",
    "a\r## Forged\r```\rb",
    "<!-- never closed",
    "<script>\n\n# Forged",
    "    indented\n\n\n# Forged\n===",
    "\u2028# Forged\u2029\x0b# Forged\x0c\x85# Forged",
]
BLOCKS = ["h1", "h2", "quote", "h3", "json", "text", "h2", "quote"]


@pytest.mark.parametrize("text", HOSTILE)
def test_content_cannot_imitate_structure(text: str) -> None:
    """Fences, headings and comments in messages, calls and results stay inside their block."""
    blocks = outline(export_markdown(make_session(*make_turn(text, "x", text, text))))
    assert [kind for kind, _ in blocks] == BLOCKS
    assert [content for kind, content in blocks if kind[0] == "h"][1:] == ["User", "Calls `x`", "Answer"]


pieces = st.sampled_from(
    ["`", "```", "~~~", "\n", "\r", "#", "> ", "<!--", "- ", "    ", "\t", "a", "[x]: y", "===", "\0"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(pieces, min_size=1, max_size=25).map("".join))
def test_every_result_stays_inside_its_fence(text: str) -> None:
    """For any result the document has the same blocks, and a call by any name has one heading."""
    blocks = outline(export_markdown(make_session(*make_turn(text, text or "x", text, "x" + text))))
    assert [kind for kind, _ in blocks] == BLOCKS


def test_the_transcript_is_safe_to_show_in_a_terminal() -> None:
    """Control and hidden characters are written out."""
    markdown = export_markdown(make_session(*make_turn("\x1b[2J\u202e", "a\x07b", "\u200b\x9b", "ok\r\nfine")))
    assert not {"\x1b", "\x07", "\u202e", "\u200b", "\x9b", "\r"} & set(markdown)
    assert "> <U+001B>[2J<U+202E>" in markdown


def test_the_whole_conversation_is_exported_after_compaction(tmp_path: Path) -> None:
    """Both exports include messages that compaction removed from the history. Images are named, summaries shown."""
    sessions = Sessions(str(tmp_path), str(tmp_path))
    picture = BinaryContent(b"\0" * 9, media_type="image/png")
    with sessions.create("m") as session:
        session.append(
            [ModelRequest(parts=[UserPromptPart(["Look:", picture])]), ModelResponse(parts=[TextPart("A cat")])]
        )
        session.replace([ModelRequest(parts=[CompactionPart("They spoke of cats.")])])
        session.append([ModelRequest(parts=[UserPromptPart("More")])])
    with sessions.open() as view:
        markdown, exported = export_markdown(view), json.loads(export_json(view))
    assert [text in markdown for text in ("Look:", "[binary]", "A cat", "More")] == [True] * 4
    assert ModelMessagesTypeAdapter.validate_json(json.dumps(exported["messages"])) == view.transcript
    assert (exported["id"], exported["model"], len(exported["messages"])) == (session.id, "m", 3)
    assert "> They spoke of cats." in export_markdown(make_session(*session.messages))


def test_text_without_a_utf8_form_can_be_exported() -> None:
    """Half a surrogate pair does not stop an export."""
    assert json.loads(export_json(make_session(*make_turn("\ud800"))))["messages"][0]["parts"][0]["content"] == "?"
