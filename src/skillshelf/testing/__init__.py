"""For the test suites of projects that ship skills, or agents that use them.

    def test_skills_are_complete():
        check_package("my_skills")

    model = ScriptedModel(call("load_skill_instructions", skill_name="pdf"), "Done.")

Everything here is public and stays.
"""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily
from skillshelf.testing._package import check_package

if TYPE_CHECKING:
    from skillshelf.agent import ScriptedModel, call, fail

__all__ = ["ScriptedModel", "call", "check_package", "fail"]

# A check of skills must not need an agent's libraries, which take 0.8 s to import.
__getattr__ = export_lazily("skillshelf", {"agent": ["ScriptedModel", "call", "fail"]})
