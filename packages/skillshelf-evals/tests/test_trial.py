"""One trial of a case: what counts, what is an error, and that nothing leaves the workspace."""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillshelf_agent import ChosenModel
from skillshelf_agent.testing import ScriptedModel, call
from skillshelf_evals import Case, Check, Edit, Message, Trace, check, run_trial
from skillshelf_evals._trace import trace_from_json
from skillshelf_evals.engine._packing import Packer, Unpacker

Write = Callable[..., Path]


def tried(*script: Any, turns: tuple[Any, ...] = (Message("hi"),), **case: Any) -> Trace:
    return asyncio.run(run_trial(Case("a", turns, **case), ChosenModel.from_model(ScriptedModel(*script))))


def test_an_edit_that_cannot_be_made_is_an_error_of_the_trial() -> None:
    """The answers before it are kept."""
    trace = tried("Hello.", turns=(Message("hi"), Edit("nowhere.txt", None), Message("and now?")))
    assert "nowhere.txt" in trace.error
    assert trace.answers == ("Hello.",)
    assert trace.usage.input > 0


@pytest.mark.parametrize("how", ["files", "turns"])
def test_a_link_in_a_skill_leads_no_write_out_of_the_workspace(write: Write, tmp_path: Path, how: str) -> None:
    """Neither for a file of the case nor for a later edit."""
    outside = tmp_path / "outside"
    outside.mkdir()
    skill = write("skills/pdf").parent
    (skill / "link").symlink_to(outside)
    path = ".skillshelf/skills/pdf/link/file"
    edit = (Edit(path, "x"),) if how == "turns" else ()
    trace = tried(
        "Hello.", turns=(Message("hi"), *edit), skills=(str(skill),), files={path: b"x"} if how == "files" else {}
    )
    assert trace.error
    assert list(outside.iterdir()) == []


def test_a_model_that_runs_into_a_limit_has_missed() -> None:
    trace = tried(*[call("list_skills")] * 250)
    assert trace.error == ""
    assert trace.answers == ("",)


def test_a_model_that_calls_an_unknown_tool_has_missed() -> None:
    trace = tried(*[call("no_such_tool")] * 20)
    assert trace.error == ""


def test_a_skills_evals_are_not_in_the_workspace(write: Write) -> None:
    """Only the folder of that name at its top is left out: a model that sees the questions proves nothing."""
    skill = write("pdf", evals__cases_md="Questions.", references__evals__how_md="How to evaluate.").parent
    trace = tried("Done.", skills=(str(skill),))
    assert set(trace.files) == {f".skillshelf/skills/pdf/{path}" for path in ("SKILL.md", "references/evals/how.md")}


@pytest.mark.parametrize("checks", [(check.skill_loaded("pdf"),), (~check.skill_loaded("pdf"),), ()])
def test_a_skill_whose_loading_is_checked_is_not_listed_in_full(write: Write, checks: tuple[Check, ...]) -> None:
    """A model has no reason to load instructions that it has, and would miss the check."""
    skill = write("pdf", body="Fill in every field.").parent
    trace = tried("Done.", skills=(str(skill),), checks=checks)
    assert ("Fill in every field." in trace.systems[0]) == (not checks)


def test_a_pipe_in_a_skill_is_neither_copied_nor_packed(write: Write, tmp_path: Path) -> None:
    skill = write("pdf").parent
    os.mkfifo(skill / "pipe")
    case, packer = Case("a", (Message("hi"),), skills=(str(skill),)), Packer()
    there = Unpacker(str(tmp_path / "there")).unpack(packer.pack(case), packer.blobs.__getitem__)
    for one in (case, there):
        trace = asyncio.run(run_trial(one, ChosenModel.from_model(ScriptedModel("Done."))))
        assert (trace.error, list(trace.files)) == ("", [".skillshelf/skills/pdf/SKILL.md"])


def test_a_change_in_a_file_of_any_size_is_noticed(tmp_path: Path) -> None:
    """Its text is kept up to a limit."""
    command = "head -c 3000000 /dev/zero | tr '\\0' x > big.txt"
    trace = tried(call("run_command", command=command), "Done.", files={"big.txt": b"x" * 3_000_001})
    assert (trace.files["big.txt"].text, trace.files["big.txt"].changed) == (None, True)


def test_the_name_of_the_workspace_does_not_change_the_tokens() -> None:
    assert len({tried("Hello.").usage for _ in range(10)}) == 1


def test_the_workspace_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the model took away its own permissions."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tried(call("run_command", command="mkdir -p a/b && touch a/b/c && chmod 000 a/b a"), "Done.")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("skillshelf-eval-")] == []


def test_a_model_that_never_answers_is_an_error_after_a_while() -> None:
    """The answers before it are kept."""

    def hangs(request: object) -> str:
        time.sleep(5)
        return "Too late."

    case = Case("a", (Message("hi"), Message("and now?")))
    trace = asyncio.run(run_trial(case, ChosenModel.from_model(ScriptedModel("Hello.", hangs)), 4.0))
    assert trace.error == "The trial took longer than 4 seconds; --timeout gives it more"
    assert trace.answers == ("Hello.",)


def test_checks_get_the_bytes_of_new_and_changed_files() -> None:
    """They survive the way from a worker as JSON, and are dropped once the checks are made."""
    writes = call("run_command", command="printf '\\000new' > in.bin; printf 'a\\377' > made.bin")
    trace = tried(writes, "Done.", files={"in.bin": b"\0old", "same.txt": b"same"})
    changed = {path: state.data for path, state in trace.changed_files.items()}
    assert changed == {"in.bin": b"\0new", "made.bin": b"a\xff"}
    assert (trace.files["same.txt"].data, trace.files["same.txt"].size) == (None, 4)
    assert trace_from_json(json.loads(json.dumps(trace.as_json()))) == trace
    assert not any(state.data for state in trace.without_data().files.values())
