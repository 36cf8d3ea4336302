"""Markdown commands: where they are found, when they may be used, and what they become."""

import os
from pathlib import Path

import pytest

from skillshelf.shelf.workspace_skills import MarkdownCommand, WorkspaceSkills
from skillshelf.slash import Commands, complete, expand_command, markdown_commands
from skillshelf.sources.workspace import find_workspace
from skillshelf.text.tokens import estimate
from skillshelf.trust import Trust

FIX = """\
---
description: Fix an issue
argument-hint: [number] [priority]
allowed-tools: Bash(git add:*)
model: haiku
---

Fix issue #$1 with priority $2.
"""


def put(path: Path, text: str = "Do it.\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def commands_of(skills: WorkspaceSkills) -> dict[str, MarkdownCommand]:
    return {command.name: command for command in skills.commands}


def find_names(root: Path) -> list[str]:
    return sorted(commands_of(WorkspaceSkills(root)))


def test_the_fields_of_a_command_are_read_as_those_of_a_skill(tmp_path: Path) -> None:
    put(tmp_path / ".claude/commands/fix-issue.md", FIX)
    put(tmp_path / ".agents/commands/note.md", "Note what was decided.\n\nIn a file.\n")
    commands = commands_of(WorkspaceSkills(tmp_path))
    fix = commands["fix-issue"]
    assert (fix.description, fix.argument_hint, fix.model) == ("Fix an issue", "[number] [priority]", "haiku")
    assert fix.text == "Fix issue #$1 with priority $2.\n"
    assert commands["note"].description == "Note what was decided."


def test_a_folder_is_a_part_of_the_name(tmp_path: Path) -> None:
    put(tmp_path / ".claude/commands/git/commit.md")
    put(tmp_path / ".claude/commands/a/b/c.md")
    assert find_names(tmp_path) == ["a:b:c", "git:commit"]


def test_files_that_are_no_commands_are_left_out(tmp_path: Path) -> None:
    """Empty ones, other formats, skills, and whatever a link leads to."""
    put(tmp_path / ".claude/commands/empty.md", "---\ndescription: Nothing below.\n---\n")
    put(tmp_path / ".claude/commands/notes.txt")
    put(tmp_path / ".claude/commands/pdf/SKILL.md", "---\nname: pdf\ndescription: A skill.\n---\nDo.\n")
    os.symlink(put(tmp_path / "secret.md"), tmp_path / ".claude/commands/link.md")
    assert find_names(tmp_path) == []


def test_the_nearest_command_of_a_name_counts(tmp_path: Path) -> None:
    """Then .agents before .claude, and the project before the user's own."""
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    put(Path.home() / ".claude/commands/a.md", "home")
    put(Path.home() / ".claude/commands/own.md", "home")
    put(root / ".claude/commands/a.md", "claude")
    put(root / ".claude/commands/b.md", "claude")
    put(root / ".agents/commands/b.md", "agents")
    put(root / ".claude/commands/c.md", "root")
    put(root / "inner/.claude/commands/c.md", "inner")
    commands = commands_of(WorkspaceSkills(find_workspace(root / "inner")))
    assert {name: command.text for name, command in commands.items()} == {
        "a": "claude",
        "b": "agents",
        "c": "inner",
        "own": "home",
    }


def test_the_same_commands_are_the_same_tuple(tmp_path: Path) -> None:
    path = put(tmp_path / ".claude/commands/a.md")
    skills = WorkspaceSkills(tmp_path)
    before = skills.commands
    skills.reload()
    assert skills.commands is before
    path.write_text("Do something else.")
    skills.reload()
    assert [command.text for command in skills.commands] == ["Do something else."]


# -- trust ------------------------------------------------------------------------------------------------------------


def test_a_command_is_used_as_it_was_approved(tmp_path: Path) -> None:
    path = put(tmp_path / ".claude/commands/fix.md", "Fix it.")
    skills = WorkspaceSkills(tmp_path, trust=Trust.open())
    assert not skills.commands
    assert [(item.kind, item.name, item.status) for item in skills.pending] == [
        ("command", ".claude/commands/fix.md", "new")
    ]
    skills.approve(skills.pending)
    skills.reload()
    path.write_text("Delete it.")
    skills.reload()
    assert [fix.text for fix in skills.commands] == ["Fix it."]
    assert [item.status for item in skills.pending] == ["changed"]
    assert [command.text for command in WorkspaceSkills(tmp_path, trust=Trust.open()).commands] == ["Fix it."]


def test_the_users_own_commands_need_no_approval(tmp_path: Path) -> None:
    put(Path.home() / ".agents/commands/standup.md", "Write my standup.")
    skills = WorkspaceSkills(tmp_path, trust=Trust.open())
    assert [own.name for own in skills.commands] == ["standup"]
    assert skills.pending == ()


def test_a_command_that_the_agent_wrote_in_sight_is_approved(tmp_path: Path) -> None:
    skills = WorkspaceSkills(tmp_path, trust=Trust.open())
    path = put(tmp_path / ".claude/commands/fix.md", "Fix it.")
    with skills.shelf.turn() as turn:
        unseen = skills.record_write(turn, str(path), "Fix it.", is_seen=False)
        assert "waiting for the user's review" in unseen.note
        assert not skills.record_write(turn, str(path), "Fix it.", is_seen=True).note
    assert list(commands_of(skills)) == ["fix"]


# -- as slash commands ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("Fix #$1, $2.", "3 'very high'", "Fix #3, very high."),
        ("Fix $ARGUMENTS now.", "3 and 4", "Fix 3 and 4 now."),
        ("Fix $ARGUMENTS now.", "", "Fix  now."),
        ("Write notes.\n", "for v2", "Write notes.\n\nfor v2"),
        ("Say $1.", "$2 b", "Say $2.\n\n$2 b"),
    ],
)
def test_arguments_go_where_the_command_wants_them(text: str, arguments: str, message: str) -> None:
    """As in a skill: arguments without a place follow the text, and a placeholder in an argument stays as it is."""
    assert expand_command(MarkdownCommand("x", text, "", "", (), ""), arguments) == message


def register(skills: WorkspaceSkills, *taken: str) -> Commands[None]:
    def send(face: None, command: MarkdownCommand, arguments: str) -> None:
        """Send nothing."""

    commands: Commands[None] = Commands()
    commands.register("", markdown_commands(lambda: skills.commands, send, estimate, taken))
    return commands


def test_the_menu_shows_description_arguments_and_cost(tmp_path: Path) -> None:
    put(tmp_path / ".claude/commands/fix-issue.md", FIX)
    skills = WorkspaceSkills(tmp_path)
    commands = register(skills)
    [suggestion] = complete(commands, "/fix")
    assert (suggestion.label, suggestion.meta) == ("/fix-issue [number] [priority]", "Fix an issue")
    assert suggestion.cost


def test_a_name_that_is_taken_or_cannot_be_typed_is_left_out(tmp_path: Path) -> None:
    for name in ("help", "ok", "two words", "skills/pdf", "_hidden"):
        put(tmp_path / f".claude/commands/{name}.md")
    skills = WorkspaceSkills(tmp_path)
    commands = register(skills, "help")
    assert list(commands.table().entries) == ["ok"]
