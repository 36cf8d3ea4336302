"""The agent uses only the parts of a workspace that the user approved."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit import User, agent, of, requests, say
from skillshelf.trust import Trust
from skillshelf_agent import AgentCore, Answer
from skillshelf_agent.events import Failed, Finished, Notice, SkillsReloaded, ToolOutput, ToolReturned
from skillshelf_agent.testing import call

Write = Callable[..., Path]
NEW = "---\nname: greet\ndescription: Say hello.\n---\n\nSay hello in Latin.\n"


def approve_all(core: AgentCore) -> None:
    core.skills.approve(core.skills.pending)
    core.reload_skills()


def test_no_byte_of_a_fresh_clone_reaches_the_model(tmp_path: Path, write: Write) -> None:
    """Nothing reaches it by the listing, the search, a load, an invocation or AGENTS.md."""
    write("pdf", "PROJECT-BYTES", "PROJECT-BYTES\n", references__a_md="PROJECT-BYTES")
    (tmp_path / "AGENTS.md").write_text("PROJECT-BYTES")
    script = [
        call("list_skills"),
        call("search_skills", query="pdf project bytes"),
        call("load_skill_instructions", skill_name="pdf"),
        call("load_skill_instructions", skill_name="pdf", reference="a.md"),
    ]
    core = agent(tmp_path, *script, "ok", trust=Trust.open())
    say(core, "go")
    assert isinstance(say(core, "/skills:pdf")[0], Failed)
    assert "PROJECT-BYTES" not in "".join(request.text for request in requests(core))
    assert sorted(pending.name for pending in core.skills.pending) == ["AGENTS.md", "pdf"]


def test_an_approved_skill_is_served_in_this_session_and_the_next(tmp_path: Path, write: Write) -> None:
    """An approval lasts."""
    write("pdf", "Fill in forms.")
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    core = agent(tmp_path, "ok", trust=Trust.open())
    approve_all(core)
    say(core, "go")
    assert "Fill in forms." in requests(core)[0].system
    assert "Use tabs." in requests(core)[0].system
    again = agent(tmp_path, "ok", trust=Trust.open())
    say(again, "go")
    assert requests(again)[0].system == requests(core)[0].system
    assert again.skills.pending == ()


def test_a_changed_skill_awaits_review_while_the_approved_text_is_served(tmp_path: Path, write: Write) -> None:
    """The sweep at the next turn finds the change."""
    write("pdf", body="APPROVED\n")
    core = agent(tmp_path, call("load_skill_instructions", skill_name="pdf"), "ok", trust=Trust.open())
    approve_all(core)
    write("pdf", body="CHANGED\n")
    events = say(core, "go")
    assert "APPROVED" in of(events, ToolReturned)[0].text
    assert "CHANGED" not in requests(core)[0].text
    assert [(pending.name, pending.status) for pending in core.skills.pending] == [("pdf", "changed")]


def test_a_skill_that_the_agent_writes_in_the_users_sight_is_approved(tmp_path: Path) -> None:
    """It is live at once and in later sessions, without another question."""
    core = agent(
        tmp_path,
        call("write_file", path="skills/greet/SKILL.md", content=NEW),
        call("load_skill_instructions", skill_name="greet"),
        "Salve!",
        mode="ask",
        user=User("reviewed"),
        trust=Trust.open(),
    )
    events = say(core, "make a skill and use it")
    assert of(events, SkillsReloaded) == [SkillsReloaded(("greet",), (), ())]
    assert "Say hello in Latin." in of(events, ToolReturned)[1].text
    assert core.skills.pending == ()
    later = agent(tmp_path, "ok", trust=Trust.open())
    assert "greet" in later.shelf.catalog


@pytest.mark.parametrize(("mode", "answer"), [("ask", "yes"), ("yolo", "reviewed"), ("auto-edit", "yes")])
def test_a_write_that_the_user_has_not_seen_whole_approves_nothing(mode: str, answer: Answer, tmp_path: Path) -> None:
    """W08: without the whole change in sight, the skill waits for review like any other."""
    core = agent(
        tmp_path,
        call("write_file", path="skills/greet/SKILL.md", content=NEW),
        call("load_skill_instructions", skill_name="greet"),
        "ok",
        mode=mode,
        user=User(answer),
        trust=Trust.open(),
    )
    events = say(core, "make a skill and use it")
    assert "is waiting for the user's review" in of(events, ToolReturned)[0].text
    assert "Say hello in Latin." not in of(events, ToolReturned)[1].text
    assert [pending.name for pending in core.skills.pending] == ["greet"]


def test_a_file_of_a_skill_that_auto_edit_lets_through_approves_nothing(tmp_path: Path, write: Write) -> None:
    """The policy asks about SKILL.md alone, so nobody has seen the reference."""
    write("pdf", references__a_md="A.")
    core = agent(
        tmp_path,
        call("write_file", path="pdf/references/a.md", content="EVIL"),
        call("load_skill_instructions", skill_name="pdf", reference="a.md"),
        "ok",
        mode="auto-edit",
        trust=Trust.open(),
    )
    approve_all(core)
    assert of(say(core, "go"), ToolReturned)[1].text.endswith("A.")
    assert [pending.name for pending in core.skills.pending] == ["pdf"]


def test_agents_md_that_the_agent_writes_in_the_users_sight_applies(tmp_path: Path) -> None:
    """W08 holds for the project's instructions as for skills."""
    content = "Use tabs.\n"
    script = [call("write_file", path="AGENTS.md", content=content), "done", "ok"]
    core = agent(tmp_path, *script, mode="ask", user=User("reviewed"), trust=Trust.open())
    say(core, "write it", "go")
    assert "Use tabs." in requests(core)[2].system
    assert agent(tmp_path, trust=Trust.open()).skills.guidance == content


def test_a_skill_that_the_user_did_not_confirm_is_not_live(tmp_path: Path) -> None:
    """Allowing a command does not approve the skill it writes."""
    command = f"mkdir -p skills/greet && cat > skills/greet/SKILL.md <<'E'\n{NEW}\nE"
    core = agent(tmp_path, call("run_command", command=command), "done", "ok", trust=Trust.open())
    say(core, "make a skill", "use it")
    assert "Say hello" not in requests(core)[2].system
    assert [pending.name for pending in core.skills.pending] == ["greet"]


def test_a_skill_revoked_by_another_process_is_gone_at_the_next_turn(tmp_path: Path, write: Write) -> None:
    """The trust store is read again when it has changed."""
    write("pdf")
    core = agent(tmp_path, "a", "b", trust=Trust.open())
    approve_all(core)
    say(core, "one")
    other = agent(tmp_path, trust=Trust.open())
    assert other.skills.trusted
    other.skills.trusted[0].revoke("pdf")
    events = say(core, "two")
    assert of(events, SkillsReloaded)[0].removed == ("pdf",)
    assert '"pdf"' not in requests(core)[1].system


def test_files_of_the_repository_cannot_approve_anything(tmp_path: Path, write: Write) -> None:
    """Files under our names in a repository are content like any other."""
    write("pdf")
    for name in (".skillshelf/trust/approvals.json", ".local/state/skillshelf/trust/approvals.json", "config.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"version": 1, "policy": "yolo", "trees": {"x": {}}}')
    core = agent(tmp_path, "ok", mode="ask", trust=Trust.open())
    say(core, "go")
    assert '"pdf"' not in requests(core)[0].system
    assert core.gate.policy.mode == "ask"


def test_a_frozen_session_does_not_reload(tmp_path: Path, write: Write) -> None:
    """Neither the sweep nor the agent's own write changes its skills."""
    write("pdf", "Before.")
    core = agent(
        tmp_path, call("write_file", path="skills/greet/SKILL.md", content=NEW), "a", "b", trust=None, frozen=True
    )
    write("pdf", "After.")
    events = say(core, "one", "two")
    assert of(events, SkillsReloaded) == []
    assert "frozen" in of(events, ToolReturned)[0].text
    assert "Before." in requests(core)[2].system
    assert events[-1] == Finished("b")


def test_an_edit_of_an_unreviewed_skill_does_not_make_it_live(tmp_path: Path, write: Write) -> None:
    """The diff showed a line; the user never saw the rest of the file."""
    write("pdf", body="Fix me.\n" + "filler\n" * 30 + "HOSTILE\n")
    core = agent(
        tmp_path,
        call("edit_file", path="pdf/SKILL.md", old_text="Fix me.", new_text="Fixed."),
        call("load_skill_instructions", skill_name="pdf"),
        "ok",
        mode="ask",
        user=User("reviewed"),
        trust=Trust.open(),
    )
    events = say(core, "fix the typo")
    assert "is waiting for the user's review" in of(events, ToolReturned)[0].text
    assert "HOSTILE" not in "".join(request.text for request in requests(core))


def test_an_edit_of_an_approved_skill_is_live_at_once(tmp_path: Path, write: Write) -> None:
    """The user knew the rest of the file."""
    write("pdf", body="Fix me.\n")
    core = agent(
        tmp_path,
        call("edit_file", path="pdf/SKILL.md", old_text="Fix me.", new_text="Fixed."),
        call("load_skill_instructions", skill_name="pdf"),
        "ok",
        mode="ask",
        user=User("reviewed"),
        trust=Trust.open(),
    )
    approve_all(core)
    assert "Fixed." in of(say(core, "fix the typo"), ToolReturned)[1].text


def test_invoking_a_skill_that_awaits_review_says_so(tmp_path: Path, write: Write) -> None:
    """The message does not claim that there is no such skill."""
    write("pdf")
    (event,) = say(agent(tmp_path, "never", trust=Trust.open()), "/skills:pdf")
    assert isinstance(event, Failed)
    assert "review" in event.message


def test_drift_names_skills_that_are_new_changed_or_gone(tmp_path: Path, write: Write) -> None:
    """They are compared with the approvals for this workspace."""
    gone, _ = write("gone"), write("same")
    write("changed")
    core = agent(tmp_path, trust=Trust.open())
    approve_all(core)
    assert core.skills.drift == ()
    gone.unlink()
    write("changed", "Other.")
    write("new")
    core.reload_skills()
    assert sorted(core.skills.drift) == ["changed", "gone", "new"]


def test_invoking_a_broken_skill_says_why(tmp_path: Path) -> None:
    """The reason is for the user alone: the model gets nothing of an unapproved file."""
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/SKILL.md").write_bytes(b"\xff")
    core = agent(tmp_path, "ok", trust=Trust.open())
    notices = of(say(core, "go"), Notice)
    assert [notice.text for notice in notices if "bad/SKILL.md" in notice.text]
    assert of(say(core, "/skills:bad"), Notice) == []  # once
    (event,) = of(say(core, "/skills:bad"), Failed)
    assert "can't be used" in event.message


# -- a repository of the user's own -----------------------------------------------------------------------------------


def own_agent(root: Path, *script: Any, mode: str = "yolo") -> AgentCore:
    (root / ".git").mkdir(exist_ok=True)
    Trust.open().declare_own(str(root))
    return agent(root, *script, mode=mode, trust=Trust.open())


def test_edits_in_an_own_repository_reach_the_model_at_once(tmp_path: Path, write: Write) -> None:
    """So do those of AGENTS.md, and nothing waits for review."""
    write("pdf", "Before.")
    core = own_agent(tmp_path, "a", "b")
    say(core, "one")
    write("pdf", "After.")
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    say(core, "two")
    assert "After." in requests(core)[1].system
    assert "Use tabs." in requests(core)[1].system
    assert core.skills.pending == ()


def test_a_command_of_the_agent_does_not_make_instructions(tmp_path: Path, write: Write) -> None:
    """They are held in this session and the next, even under the policy yolo."""
    write("pdf", "Before.")
    command = "printf -- '---\\nname: pdf\\ndescription: EVIL\\n---\\nEVIL\\n' > pdf/SKILL.md; echo EVIL > AGENTS.md"
    core = own_agent(tmp_path, call("run_command", command=command), "a", "b")
    say(core, "one", "two")
    later = agent(tmp_path, "ok", trust=Trust.open())
    say(later, "go")
    assert "EVIL" not in requests(core)[-1].system
    assert "EVIL" not in requests(later)[0].system
    assert sorted(pending.name for pending in later.skills.pending) == ["AGENTS.md", "pdf"]
    assert "EVIL" in (tmp_path / "AGENTS.md").read_text()


def test_edits_after_a_stopped_command_are_the_users(tmp_path: Path, write: Write) -> None:
    write("pdf", "Before.")
    core = own_agent(tmp_path, call("run_command", command="echo EVIL > AGENTS.md; echo begun; exec sleep 60"), "b")

    async def stop_the_command() -> None:
        async for event in core.process_message("go"):
            if isinstance(event, ToolOutput):
                core.cancel()

    asyncio.run(stop_the_command())
    write("pdf", "After.")
    say(core, "two")
    assert "After." in requests(core)[-1].system
    assert [pending.name for pending in core.skills.pending] == ["AGENTS.md"]


def test_changes_in_an_own_repository_are_named_at_the_next_start(tmp_path: Path, write: Write) -> None:
    """W03: once, and by name."""
    write("pdf", "Before.")
    say(own_agent(tmp_path, "a"), "one")
    write("pdf", "Pulled.")
    later = agent(tmp_path, "a", "b", trust=Trust.open())
    (notice,) = of(say(later, "one", "two"), Notice)
    assert "changed pdf" in notice.text
    assert of(say(agent(tmp_path, "a", trust=Trust.open()), "one"), Notice) == []


def test_frozen_means_approved_in_an_own_repository_too(tmp_path: Path, write: Write) -> None:
    """A declaration is not an approval of content."""
    write("pdf")
    core = own_agent(tmp_path, "a")
    assert list(core.skills.drift) == ["pdf"]
    assert core.skills.trusted
    core.skills.approve(core.skills.trusted[0].unapproved)
    core.reload_skills()
    assert list(core.skills.drift) == []


def test_claude_md_is_read_beside_agents_md_under_the_same_approval(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    (tmp_path / "CLAUDE.md").write_text("Be brief.")
    core = agent(tmp_path, "one", "two", trust=Trust.open())
    assert [pending.name for pending in core.skills.pending] == ["AGENTS.md", "CLAUDE.md"]
    assert core.skills.guidance == ""

    core.skills.approve([pending for pending in core.skills.pending if pending.name == "CLAUDE.md"])
    say(core, "hello")
    assert "Be brief." in requests(core)[-1].system
    assert "Use tabs." not in requests(core)[-1].system

    core.skills.approve(core.skills.pending)
    say(core, "hello")
    system = requests(core)[-1].system
    assert 0 < system.index("Use tabs.") < system.index("Be brief.")


@pytest.mark.parametrize("how", ["link", "link back", "copy", "import"])
def test_claude_md_that_repeats_agents_md_counts_once(tmp_path: Path, how: str) -> None:
    agents = tmp_path / "AGENTS.md"
    claude = tmp_path / "CLAUDE.md"
    (claude if how == "link back" else agents).write_text("Use tabs.")
    if how == "link":
        claude.symlink_to("AGENTS.md")
    elif how == "link back":
        agents.symlink_to("CLAUDE.md")
    else:
        claude.write_text("Use tabs." if how == "copy" else "@AGENTS.md\n")

    core = agent(tmp_path, trust=Trust.open())
    assert len(core.skills.pending) == 1
    core.skills.approve(core.skills.pending)
    core.reload_skills()
    assert not core.skills.pending
    assert core.skills.guidance == "Use tabs."


def test_a_copy_that_changes_needs_an_approval_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    (tmp_path / "CLAUDE.md").write_text("Use tabs.")
    core = agent(tmp_path, trust=Trust.open())
    core.skills.approve(core.skills.pending)
    (tmp_path / "CLAUDE.md").write_text("EVIL")
    core.reload_skills()
    assert [pending.name for pending in core.skills.pending] == ["CLAUDE.md"]
    assert core.skills.guidance == "Use tabs."


def test_claude_md_that_is_a_link_to_somewhere_else_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("EVIL")
    work = tmp_path / "work"
    work.mkdir()
    (work / "CLAUDE.md").symlink_to("../secret")
    core = agent(work, trust=Trust.open())
    (pending,) = core.skills.pending
    assert pending.blocked
    trusting = agent(work)
    assert "EVIL" not in trusting.skills.guidance + core.skills.guidance
