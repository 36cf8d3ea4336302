"""For the test suites of projects that ship skills, or agents that use them.

    def test_skills_are_complete():
        check_package("my_skills")

    model = ScriptedModel(call("load_skill_instructions", skill_name="pdf"), "Done.")

Everything here is public and stays.
"""

from typing import TYPE_CHECKING, Any

from skillshelf.testing.package import check_package

if TYPE_CHECKING:
    from skillshelf.agent.scripted import ScriptedModel, call, fail

__all__ = ["ScriptedModel", "call", "check_package", "fail"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # a check of skills must not need an agent's libraries
        from skillshelf.agent import scripted

        return getattr(scripted, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
