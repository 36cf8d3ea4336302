"""Code skills are evaluated as folders are: by name in any case, as they are in Python."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillshelf import BaseSkill, tool
from skillshelf.errors import EvalError
from skillshelf_agent import ChosenModel
from skillshelf_agent.testing import ScriptedModel, call
from skillshelf_evals import Case, Message, find_cases, make_plan, run_trial
from skillshelf_evals.engine._packing import Packer, Unpacker

Run = Callable[..., tuple[int, str, str]]

MODULE = '''
from skillshelf import BaseSkill, tool

class RagSkill(BaseSkill):
    name = "rag"
    description = "Finds documents."
    instructions = "# Rag\\n\\nSearch first."
    references = ("references/config.md",)

    def __init__(self, index="documents"):
        self.index, self.asked = index, 0

    @tool
    def look_up(self, query: str) -> str:
        """Look a query up."""
        self.asked += 1
        return f"{self.asked} of {self.index}: {query}"

class RawSkill(BaseSkill):
    name, description, instructions, category = "raw", "Runs.", "Run.", "raw"

    @tool
    def run_it(self) -> str:
        """Run it."""
        return "ran"

def contracts():
    return RagSkill("contracts")

def bound():
    return RawSkill().with_policy({"run_it": "safe"})

def unwritten():
    made = {}
    exec("from skillshelf import BaseSkill\\nclass D(BaseSkill): name, description = 'd', 'D.'", made)
    return made["D"]()

def leaves():
    raise SystemExit(3)

def broken():
    raise RuntimeError("no index")

number = 5
'''
CASES = """
code_skills: [acme_rag.skill:RagSkill]
cases:
  - name: looks it up
    prompt: what does the contract say?
    script:
      - {tool: load_skill_instructions, arguments: {skill_name: rag, reference: config.md}}
      - {tool: look_up, arguments: {query: notice}}
      - It says so.
    checks:
      - reference_loaded: {skill: rag, reference: config.md}
      - tool_called: look_up
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An importable package with a code skill."""
    home = tmp_path / "lib" / "acme_rag"
    (home / "references").mkdir(parents=True)
    (home / "__init__.py").write_text("")
    (home / "skill.py").write_text(MODULE)
    (home / "references" / "config.md").write_text("# Config\n\nUse the index.\n")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    yield home
    forget()


def test_a_code_skill_is_named_by_its_class(run: Run, package: Path, tmp_path: Path) -> None:
    """Its tools run, its references load, and the report knows what no case loaded."""
    (tmp_path / "suite.yaml").write_text(CASES)
    code, out, said = run("eval", "suite.yaml", "--report", "out")
    assert (code, said) == (0, "")
    assert "rag" in out
    kept = json.loads((tmp_path / "out" / "run.json").read_text())
    assert kept["skills"] == {"rag": str(package / "skill.py")}


def test_the_evals_of_a_code_skill_are_found_beside_it(run: Run, package: Path) -> None:
    (package / "evals").mkdir()
    (package / "evals" / "cases.yaml").write_text(CASES)
    code, out, _ = run("eval", str(package.parent.parent))
    assert code == 0
    assert "1 of 1 scripted case passed" in out


def test_a_baseline_of_none_takes_a_code_skill_from_the_shelf(run: Run, package: Path, tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    [found], _ = find_cases([tmp_path / "suite.yaml"])
    live = replace(found, script=None)
    arms = {trial.arm: trial.case.code_skills for trial in make_plan([live], 1, "none").trials}
    assert arms == {"with": ("acme_rag.skill:RagSkill",), "without": ()}


def test_an_old_version_of_a_code_skill_is_refused(package: Path, tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(CASES)
    [found], _ = find_cases([tmp_path / "suite.yaml"])
    with pytest.raises(EvalError, match="--baseline none"):
        make_plan([replace(found, script=None)], 1, "v1", str(tmp_path / "stage"))


def answers(*code_skills: Any) -> list[str]:
    case = Case("a", (Message("x"),), code_skills=code_skills)
    model = ScriptedModel(call("look_up", query="a"), call("look_up", query="b"), "Done.")
    trace = asyncio.run(run_trial(case, ChosenModel.from_model(model)))
    assert trace.error == ""
    parts = [part for message in model.requests[-1].messages for part in message.parts]
    return [str(part.content) for part in parts if part.part_kind == "tool-return"]


def test_each_trial_gets_a_new_code_skill(package: Path) -> None:
    """State that one trial leaves in it is gone in the next."""
    assert answers("acme_rag.skill:RagSkill") == ["1 of documents: a", "2 of documents: b"]
    assert answers("acme_rag.skill:RagSkill") == ["1 of documents: a", "2 of documents: b"]
    assert answers("acme_rag.skill:contracts")[0] == "1 of contracts: a"


class Fake(BaseSkill):
    name, description, instructions = "fake", "Fakes.", "Fake."

    @tool
    def look_up(self, query: str) -> str:
        """Look it up."""
        return f"fake {query}"


def test_a_case_in_python_may_hand_over_a_class_or_a_skill() -> None:
    assert answers(Fake) == answers(Fake()) == ["fake a", "fake b"]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("skills/rag", "'skills/rag' does not name a code skill"),
        ("no_such_package:Skill", "No module named 'no_such_package'. Install the package that has it"),
        ("acme_rag.skill:Nothing", "the module acme_rag.skill has no 'Nothing'"),
        ("acme_rag.skill:number", "which is not a code skill"),
        ("acme_rag.skill:broken", "cannot be made: RuntimeError: no index"),
        ("acme_rag.skill:leaves", "cannot be made: SystemExit: 3"),
        ("acme_rag.skill:unwritten", "returns a D whose class is not in a file"),
        ("acme_rag.skill:RawSkill", "each of its tools needs a permission"),
    ],
)
def test_a_value_that_is_not_a_code_skill_is_refused_with_its_line(
    package: Path, tmp_path: Path, named: str, said: str
) -> None:
    (tmp_path / "suite.yaml").write_text(CASES.replace("acme_rag.skill:RagSkill", named))
    cases, [fault] = find_cases([tmp_path / "suite.yaml"])
    assert (cases, fault.line) == ((), 2)
    assert said in f"{fault.message}. {fault.fix}"


def test_a_raw_skill_comes_with_its_policy(package: Path) -> None:
    model = ScriptedModel(call("run_it"), "Done.")
    trace = asyncio.run(
        run_trial(Case("a", (Message("x"),), code_skills=("acme_rag.skill:bound",)), ChosenModel.from_model(model))
    )
    assert "ran" in model.requests[-1].text
    assert trace.error == ""


def forget() -> None:
    """As in another process."""
    for name in [name for name in sys.modules if name.startswith("acme_rag")]:
        del sys.modules[name]


MAKER = """
from acme_rag.skill import RagSkill

class Narrow(RagSkill):
    name = "narrow"

def narrow():
    return Narrow()
"""


@pytest.mark.parametrize(
    "changed", ["skill.py", "maker.py", "factory.py", "references/config.md"], ids=["base", "class", "factory", "text"]
)
def test_a_worker_refuses_another_version_of_a_code_skill(package: Path, tmp_path: Path, changed: str) -> None:
    """The version covers its classes, the function that makes it, and its references."""
    (package / "maker.py").write_text(MAKER)
    (package / "factory.py").write_text("from acme_rag import maker\n\ndef narrow():\n    return maker.narrow()\n")
    case, packer = Case("a", (Message("x"),), code_skills=("acme_rag.factory:narrow",)), Packer()
    first = packer.pack(case)
    worker = Unpacker(str(tmp_path / "unpacked"))
    assert worker.unpack(first, packer.blobs.__getitem__).code_skills == case.code_skills
    forget()
    assert Packer().pack(case) == first
    forget()
    (package / changed).write_text((package / changed).read_text() + "\n# changed\n")
    assert Packer().pack(case) != first
    with pytest.raises(EvalError, match=r"code skill acme_rag.factory:narrow has another version on "):
        worker.unpack(first, packer.blobs.__getitem__)


def test_a_worker_that_imported_the_old_code_has_the_old_version(package: Path) -> None:
    """It does not matter that the file has changed since."""
    case = Case("a", (Message("x"),), code_skills=("acme_rag.skill:RagSkill",))
    first = Packer().pack(case)
    (package / "skill.py").write_text(MODULE + "\n# changed\n")
    assert Packer().pack(case) == first


def test_a_case_with_a_skill_object_cannot_be_packed() -> None:
    with pytest.raises(TypeError):
        Packer().pack(Case("a", (Message("x"),), code_skills=(Fake(),)))
