"""The agent uses only the parts of a workspace that the user approved."""

from collections.abc import Callable
from pathlib import Path

from agent_kit import User, agent, of, requests, say

from skillshelf.agent import AgentCore
from skillshelf.agent.events import Failed, Finished, SkillsReloaded, ToolReturned
from skillshelf.testing import call
from skillshelf.trust import Trust

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
    assert sorted(one.name for one in core.skills.pending) == ["AGENTS.md", "pdf"]


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
    assert [(one.name, one.status) for one in core.skills.pending] == [("pdf", "changed")]


def test_a_skill_that_the_user_lets_the_agent_write_is_live_at_once(tmp_path: Path) -> None:
    """It still awaits a review to be live in later sessions."""
    core = agent(
        tmp_path,
        call("write_file", path="skills/greet/SKILL.md", content=NEW),
        call("load_skill_instructions", skill_name="greet"),
        "Salve!",
        mode="ask",
        user=User("yes"),
        trust=Trust.open(),
    )
    events = say(core, "make a skill and use it")
    assert of(events, SkillsReloaded) == [SkillsReloaded(("greet",), (), ())]
    assert "Say hello in Latin." in of(events, ToolReturned)[1].text
    assert core.skills.granted == {"greet"}
    assert [one.name for one in core.skills.pending] == ["greet"]
    later = agent(tmp_path, "ok", trust=Trust.open())
    assert "greet" not in later.shelf.catalog


def test_a_skill_that_the_user_did_not_confirm_is_not_live(tmp_path: Path) -> None:
    """Allowing a command does not approve the skill it writes."""
    command = f"mkdir -p skills/greet && cat > skills/greet/SKILL.md <<'E'\n{NEW}\nE"
    core = agent(tmp_path, call("run_command", command=command), "done", "ok", trust=Trust.open())
    say(core, "make a skill", "use it")
    assert "Say hello" not in requests(core)[2].system
    assert [one.name for one in core.skills.pending] == ["greet"]


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
    assert core.policy.mode == "ask"


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
        user=User("yes"),
        trust=Trust.open(),
    )
    events = say(core, "fix the typo")
    assert "not live" in of(events, ToolReturned)[0].text
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
        user=User("yes"),
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
