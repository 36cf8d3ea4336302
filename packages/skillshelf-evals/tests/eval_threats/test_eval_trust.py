"""W01 for evals: cases of a clone run nothing until the user has approved their content."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("dbos", reason="the extra `evals` is not installed")

import prepared

Run = Callable[..., tuple[int, str, str]]

_TOUCH = "from pathlib import Path\nPath({canary!r}).touch()\n"
_CASES = """
from skillshelf_evals import Case, Message, check
PROMPT = "com" + "puted"
CASES = [
    Case("greets", (Message("Hello"),), (check.response_contains("Hello"),), script=("Hello",)),
    Case(PROMPT, (Message(PROMPT),), (~check.tool_called("run_command"),), script=("Hello",), tags=("slow",)),
]
"""
_COMMAND = """
cases:
  - name: runs a command
    prompt: go
    script: [{{tool: run_command, arguments: {{command: "echo ran > made; cat made"}}}}, done]
    checks: [{{tool_called: run_command}}]
"""
_TRIGGERS = '[{"query": "Fill in the form.", "should_trigger": true}]'


class Clone:
    """A foreign workspace with a canary in everything that could be run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.canaries = folder.parent / "canaries"
        self.canaries.mkdir()
        self.skill = folder / ".agents" / "skills" / "pdf"
        self.write(".agents/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Fills forms.\n---\n\nFill them.\n")
        self.write(".agents/skills/pdf/evals/cases.py", self.touch("cases") + _CASES)
        self.write(".agents/skills/pdf/evals/command.yaml", _COMMAND.format())
        self.write(".agents/skills/pdf/evals/triggers.json", _TRIGGERS)
        self.write("evals/graders.py", self.touch("graders") + _REGISTERED)
        self.write("evals/suite.yaml", _SUITE)
        self.write("evals_code.py", self.touch("code skill") + _CODE_SKILL)
        self.write("evals/code.yaml", _WITH_CODE_SKILL)

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def touch(self, name: str) -> str:
        return _TOUCH.format(canary=str(self.canaries / name))

    @property
    def executed_canaries(self) -> set[str]:
        """Return the canaries that were executed."""
        return set(os.listdir(self.canaries))


_REGISTERED = """
from skillshelf_evals import Case, Message, Verdict, check
@check.register
def polite(trace):
    return "please" in trace.answer
held = check.custom(lambda trace: True)
CASES = [Case("asks", (Message("Ask."),), (held,), skills=("../.agents/skills",), script=("please",))]
"""
_SUITE = """
skills: [../.agents/skills]
cases:
  - {name: is polite, prompt: Ask., script: [please], checks: [polite]}
"""
_CODE_SKILL = """
from skillshelf import BaseSkill

class Kit(BaseSkill):
    name, description, instructions = "kit", "Has tools.", "Use them."
"""
_WITH_CODE_SKILL = """
code_skills: [evals_code:Kit]
cases:
  - {name: has a kit, prompt: go, script: [done], checks: [{listing_contains: kit}]}
"""
_EVERYTHING = {"cases", "graders", "code skill"}


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    folder = tmp_path / "clone"
    folder.mkdir()
    return Clone(folder)


def skillshelf(clone: Clone, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command in the clone, with the clone's own modules importable.

    An interpreter that starts now searches `path` first.
    """
    if not path:
        return prepared.run(arguments, cwd=clone.folder, env={**os.environ, "PYTHONPATH": str(clone.folder)})
    return subprocess.run(
        [sys.executable, "-m", "skillshelf", *arguments],
        cwd=clone.folder,
        env={**os.environ, "PYTHONPATH": f"{path}:{clone.folder}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_listing_cases_runs_none_of_them(clone: Clone) -> None:
    """Names, prompts and checks are read from the source; computed values are marked as such."""
    completed = skillshelf(clone, "eval", "list", "--json")
    cases = {case["case"]: case for case in json.loads(completed.stdout)["cases"]}
    assert (completed.returncode, clone.executed_canaries) == (0, set()), completed.stdout + completed.stderr
    assert cases["pdf/greets"]["prompts"] == ["Hello"]
    assert cases["pdf/greets"]["check_names"] == ["response_contains"]
    computed = cases["pdf/case 2 (not evaluated)"]
    assert computed["prompts"] == ["(not evaluated)"]
    assert (computed["check_names"], computed["model"], computed["tags"]) == (["not tool_called"], "scripted", ["slow"])
    assert cases["pdf/is polite"]["check_names"] == ["polite"], "a check that a file of Python registers"
    assert {"evals_code:Kit/has a kit", "asks", "pdf/runs a command"} <= cases.keys()
    assert ["Fill in the form."] in [case["prompts"] for case in cases.values()], "a query of a trigger set"


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval"],
        ["eval", "--json"],
        ["eval", ".agents/skills/pdf/evals/cases.py"],
        ["eval", "evals", "--replay", "evals"],
    ],
    ids=" ".join,
)
def test_a_fresh_clone_runs_nothing_and_explains_how_to_approve(clone: Clone, arguments: list[str]) -> None:
    completed = skillshelf(clone, *arguments)
    assert (completed.returncode, clone.executed_canaries) == (2, set()), completed.stdout + completed.stderr
    explanation = completed.stdout if "--json" in arguments else completed.stderr
    assert "nothing was run" in explanation
    assert "skillshelf trust --mine" in explanation
    assert "`skillshelf trust`, or pass --trust-workspace" in explanation


def test_approved_cases_run_until_one_byte_changes(clone: Clone) -> None:
    refused = skillshelf(clone, "eval", "-k", "greets")
    assert ".agents/skills/pdf (new)" in refused.stderr
    approved = skillshelf(clone, "trust", "--yes", "pdf", "evals")
    assert (approved.returncode, clone.executed_canaries) == (0, set()), approved.stderr

    completed = skillshelf(clone, "eval", "-k", "greets")
    assert (completed.returncode, clone.executed_canaries) == (0, _EVERYTHING), completed.stdout + completed.stderr

    for canary in clone.executed_canaries:
        (clone.canaries / canary).unlink()
    cases = clone.skill / "evals" / "cases.py"
    cases.write_text(cases.read_text() + "#")
    changed = skillshelf(clone, "eval", "-k", "greets")
    assert (changed.returncode, clone.executed_canaries) == (2, set())
    assert ".agents/skills/pdf (changed)" in changed.stderr


def test_trust_workspace_runs_cases_once_and_remembers_nothing(clone: Clone) -> None:
    completed = skillshelf(clone, "eval", "--trust-workspace", "-k", "runs a command")
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "1 of 1 scripted case passed" in completed.stdout
    assert skillshelf(clone, "eval", "-k", "runs a command").returncode == 2


def test_a_skill_that_steers_the_agent_needs_approval_too(clone: Clone) -> None:
    """The suite is approved, and the skill that its case puts on the shelf is not."""
    skillshelf(clone, "trust", "--yes", "evals")
    completed = skillshelf(clone, "eval", "evals", "-k", "polite")
    assert completed.returncode == 2
    assert ".agents/skills/pdf (new)" in completed.stderr


def test_a_link_to_cases_is_approved_by_the_content_of_its_target(clone: Clone) -> None:
    skillshelf(clone, "trust", "--yes", "pdf", "evals")
    elsewhere = clone.folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "more.py").write_text(clone.touch("elsewhere") + _CASES)
    (clone.folder / "linked.py").symlink_to(elsewhere / "more.py")
    completed = skillshelf(clone, "eval", "linked.py")
    assert (completed.returncode, clone.executed_canaries) == (2, set())
    assert "elsewhere (new)" in completed.stderr


def test_recordings_of_a_clone_need_approval_before_replay(clone: Clone) -> None:
    """Recorded answers make the agent act, and the user has not seen them."""
    skillshelf(clone, "trust", "--yes", "pdf", "evals")
    clone.write("recorded/models.json", "{}")
    completed = skillshelf(clone, "eval", ".agents", "--replay", "recorded")
    assert completed.returncode == 2
    assert "recorded (new)" in completed.stderr
    assert skillshelf(clone, "trust", "--yes", "recorded").returncode == 0
    assert "you have not approved" not in skillshelf(clone, "eval", ".agents", "--replay", "recorded").stderr


def test_the_review_names_the_python_and_the_commands_of_cases(clone: Clone) -> None:
    review = skillshelf(clone, "trust", "--show", "pdf").stdout
    assert "Python that `skillshelf eval` runs:\n  evals/cases.py\n" in review
    assert 'Commands in eval cases:\n  evals/command.yaml: "echo ran > made; cat made"' in review
    assert "Python that `skillshelf eval` runs:\n  graders.py\n" in skillshelf(clone, "trust", "--show", "evals").stdout
    commands = "- run: |  # a test\n    echo one\n\n    echo two\n- run: echo\n    three\n"
    clone.write(".agents/skills/pdf/evals/block.yaml", commands)
    review = skillshelf(clone, "trust", "--show", "pdf").stdout
    assert "  evals/block.yaml: echo one ⏎ echo two\n  evals/block.yaml: echo three\n" in review
    listed = skillshelf(clone, "trust").stdout
    assert "1 pending skill and 1 pending eval folder in .:" in listed


def test_without_a_sandbox_trials_that_run_commands_are_refused(clone: Clone) -> None:
    """A script without a command still runs, and everything runs if the user allows it."""
    modules = clone.folder.parent / "modules"
    modules.mkdir()
    (modules / "sitecustomize.py").write_text(
        "from skillshelf.sandbox import _sandbox\n"
        "_sandbox._find_sandbox = lambda: _sandbox.Sandbox('none', 'this is a test')\n"
    )
    arguments = ["eval", "--trust-workspace", "-k"]
    refused = skillshelf(clone, *arguments, "runs a command", path=str(modules))
    assert refused.returncode == 2
    assert "there is no sandbox for commands on this machine" in refused.stderr
    assert "--allow-unconfined" in refused.stderr
    assert skillshelf(clone, *arguments, "greets", path=str(modules)).returncode == 0
    allowed = skillshelf(clone, *arguments, "runs a command", "--allow-unconfined", path=str(modules))
    assert allowed.returncode == 0, allowed.stdout + allowed.stderr


def test_a_program_that_passes_a_folder_trusts_it(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillshelf_evals import find_cases, list_cases

    monkeypatch.syspath_prepend(str(clone.folder))
    listed, _ = list_cases([clone.folder])
    assert clone.executed_canaries == set()
    cases, faults = find_cases([clone.folder])
    assert (clone.executed_canaries, faults) == (_EVERYTHING, ())
    assert {case.name for case in cases} == {case.name for case in listed} - {"case 2 (not evaluated)"} | {"computed"}
