"""W01 for evals: cases of a clone run nothing before the user approved them, by content."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai_harness", reason="the extra `evals` is not installed")

Run = Callable[..., tuple[int, str, str]]

_TOUCH = "from pathlib import Path\nPath({canary!r}).touch()\n"
_CASES = """
from skillshelf.evals import Case, Message, check
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
    """A workspace that another person wrote, with a canary in everything that could be run."""

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
    def sung(self) -> set[str]:
        """The canaries that were run."""
        return set(os.listdir(self.canaries))


_REGISTERED = """
from skillshelf.evals import Case, Message, Verdict, check
check.register("polite", lambda: lambda trace: Verdict("please" in trace.answer))
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


def skillshelf(clone: Clone, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command in the clone, with the clone's own modules in reach. `path`: a folder of modules before these."""
    return subprocess.run(
        [sys.executable, "-m", "skillshelf", *words],
        cwd=clone.folder,
        env={**os.environ, "PYTHONPATH": f"{path}:{clone.folder}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_listing_cases_runs_none_of_them(clone: Clone) -> None:
    """Names, prompts and checks are read from the source; a computed value is said to be one."""
    done = skillshelf(clone, "eval", "list", "--json")
    cases = {one["id"]: one for one in json.loads(done.stdout)["cases"]}
    assert (done.returncode, clone.sung) == (0, set()), done.stdout + done.stderr
    assert cases["pdf/greets"]["prompts"] == ["Hello"]
    assert cases["pdf/greets"]["checks"] == ["response_contains"]
    computed = cases["pdf/case 2 (not evaluated)"]
    assert computed["prompts"] == ["(not evaluated)"]
    assert (computed["checks"], computed["model"], computed["tags"]) == (["not tool_called"], "scripted", ["slow"])
    assert cases["is polite"]["checks"] == ["polite"], "a check that a file of Python registers"
    assert {"evals_code:Kit/has a kit", "asks", "pdf/runs a command", "pdf/triggers 1"} <= cases.keys()


@pytest.mark.parametrize(
    "words",
    [
        ["eval"],
        ["eval", "--json"],
        ["eval", ".agents/skills/pdf/evals/cases.py"],
        ["eval", "evals", "--replay", "evals"],
        ["eval", "choose", ".agents/skills/pdf", "--descriptions", "descriptions.yaml"],
    ],
    ids=" ".join,
)
def test_a_fresh_clone_runs_nothing_and_the_user_learns_how_to_agree(clone: Clone, words: list[str]) -> None:
    clone.write("descriptions.yaml", "- Fills forms that people send.\n- Fills PDF forms.\n")
    done = skillshelf(clone, *words)
    assert (done.returncode, clone.sung) == (2, set()), done.stdout + done.stderr
    assert "nothing was run" in done.stderr
    assert "`skillshelf trust`, or pass --trust-workspace" in done.stderr


def test_what_the_user_approved_runs_until_one_byte_changes(clone: Clone) -> None:
    refused = skillshelf(clone, "eval", "-k", "greets")
    assert ".agents/skills/pdf (new)" in refused.stderr
    approved = skillshelf(clone, "trust", "--yes", "pdf", "evals")
    assert (approved.returncode, clone.sung) == (0, set()), approved.stderr

    done = skillshelf(clone, "eval", "-k", "greets")
    assert (done.returncode, clone.sung) == (0, _EVERYTHING), done.stdout + done.stderr

    for canary in clone.sung:
        (clone.canaries / canary).unlink()
    cases = clone.skill / "evals" / "cases.py"
    cases.write_text(cases.read_text() + "#")
    changed = skillshelf(clone, "eval", "-k", "greets")
    assert (changed.returncode, clone.sung) == (2, set())
    assert ".agents/skills/pdf (changed)" in changed.stderr


def test_trust_workspace_runs_them_once_and_remembers_nothing(clone: Clone) -> None:
    done = skillshelf(clone, "eval", "--trust-workspace", "-k", "runs a command")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 trials passed" in done.stdout
    assert skillshelf(clone, "eval", "-k", "runs a command").returncode == 2


def test_a_skill_that_steers_the_agent_needs_approval_too(clone: Clone) -> None:
    """The suite is approved, and the skill that its case puts on the shelf is not."""
    skillshelf(clone, "trust", "--yes", "evals")
    done = skillshelf(clone, "eval", "evals", "-k", "polite")
    assert done.returncode == 2
    assert ".agents/skills/pdf (new)" in done.stderr


def test_a_link_to_cases_elsewhere_is_approved_by_the_content_it_leads_to(clone: Clone) -> None:
    skillshelf(clone, "trust", "--yes", "pdf", "evals")
    elsewhere = clone.folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "more.py").write_text(clone.touch("elsewhere") + _CASES)
    (clone.folder / "linked.py").symlink_to(elsewhere / "more.py")
    done = skillshelf(clone, "eval", "linked.py")
    assert (done.returncode, clone.sung) == (2, set())
    assert "elsewhere (new)" in done.stderr


def test_recordings_of_a_clone_are_approved_before_they_answer_for_the_model(clone: Clone) -> None:
    """They make the agent act, and no user asked for what they say."""
    skillshelf(clone, "trust", "--yes", "pdf", "evals")
    clone.write("recorded/models.json", "{}")
    done = skillshelf(clone, "eval", ".agents", "--replay", "recorded")
    assert done.returncode == 2
    assert "recorded (new)" in done.stderr
    assert skillshelf(clone, "trust", "--yes", "recorded").returncode == 0
    assert "you have not approved" not in skillshelf(clone, "eval", ".agents", "--replay", "recorded").stderr


def test_the_review_names_the_python_and_the_commands_of_cases(clone: Clone) -> None:
    shown = skillshelf(clone, "trust", "--show", "pdf").stdout
    assert "Python that `skillshelf eval` runs:\n  evals/cases.py\n" in shown
    assert 'Commands in eval cases:\n  evals/command.yaml: "echo ran > made; cat made"' in shown
    assert "Python that `skillshelf eval` runs:\n  graders.py\n" in skillshelf(clone, "trust", "--show", "evals").stdout
    listed = skillshelf(clone, "trust").stdout
    assert "1 pending skill and 1 pending eval folder in .:" in listed


def test_without_a_sandbox_trials_that_run_commands_are_refused(clone: Clone) -> None:
    """A script without a command runs anyway, and so does all of it once the user says so."""
    modules = clone.folder.parent / "modules"
    modules.mkdir()
    # The launcher that confines commands is started with this Python: one that is gone cannot confine anything.
    (modules / "sitecustomize.py").write_text("import sys\nsys.executable = '/nowhere/python'\n")
    words = ["eval", "--trust-workspace", "-k"]
    refused = skillshelf(clone, *words, "runs a command", path=str(modules))
    assert refused.returncode == 2
    assert "commands cannot be confined on this machine" in refused.stderr
    assert "--allow-unconfined" in refused.stderr
    assert skillshelf(clone, *words, "greets", path=str(modules)).returncode == 0
    allowed = skillshelf(clone, *words, "runs a command", "--allow-unconfined", path=str(modules))
    assert allowed.returncode == 0, allowed.stdout + allowed.stderr


def test_a_program_that_passes_a_folder_trusts_it(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillshelf.evals import find_cases, list_cases

    monkeypatch.syspath_prepend(str(clone.folder))
    listed, _ = list_cases([clone.folder])
    assert clone.sung == set()
    found, faults = find_cases([clone.folder])
    assert (clone.sung, faults) == (_EVERYTHING, ())
    assert {case.name for case in found} == {case.name for case in listed} - {"case 2 (not evaluated)"} | {"computed"}
