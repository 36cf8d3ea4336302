"""Code skills: the class, its descriptor, its tools and their permissions."""

import asyncio
import dataclasses
import functools
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest

from skillshelf.errors import InvalidSkillError, PolicyError, ToolArgumentError
from skillshelf.skills import BaseSkill, SkillDescriptor, Tool, tool


def new_skill(class_name: str, **attributes: Any) -> type[BaseSkill]:
    """Return a subclass of BaseSkill with these attributes, right or wrong."""
    return type(class_name, (BaseSkill,), attributes)


class RagSkill(BaseSkill):
    name = "agentic-rag"
    description = "Answers questions from the graph."
    instructions = """
        Call `ask`.

            indented
        Für Azure: azure_search_config.md
    """
    references = ("company/agentic_rag/references/azure_search_config.md", "scripts/runner.py")

    def __init__(self, graph: dict[str, list[str]]) -> None:
        self.graph = graph

    @tool
    async def ask(self, question: str, limit: int = 5) -> list[str]:
        """Passages that answer a question."""
        return self.graph[question][:limit]

    @tool(name="count-passages")
    def count(self) -> int:
        """How many there are."""
        return len(self.graph)

    def close(self) -> None:
        """Not a tool."""


class ShellSkill(BaseSkill):
    name = "shell"
    description = "Runs commands."
    category = "raw"

    @tool
    def run(self, command: str) -> str:
        """Runs a command."""
        return f"ran {command}"

    @tool
    def read(self, path: str) -> str:
        """Reads a file."""
        return f"read {path}"


def test_the_descriptor_comes_from_the_class_alone() -> None:
    """No instance is needed; references stay as the author wrote them, and the size is in UTF-8 bytes."""
    assert RagSkill.descriptor("app") == SkillDescriptor(
        name="agentic-rag",
        description="Answers questions from the graph.",
        tools=("ask", "count-passages"),
        references=("company/agentic_rag/references/azure_search_config.md", "scripts/runner.py"),
        source="app",
        location=f"{__name__}:RagSkill",
        size=len("Call `ask`.\n\n    indented\nFür Azure: azure_search_config.md".encode()),
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\n    One.\n        Two.\n    ", "One.\n    Two."),
        ("One.\n    Two.\n      Three.", "One.\nTwo.\n  Three."),
        ("    One.\n      - Two.\n", "One.\n  - Two."),
        ("\n    all:\n    \tmake\n", "all:\n\tmake"),
        ("", ""),
    ],
)
def test_instructions_lose_the_indentation_of_the_source(written: str, read: str) -> None:
    """Instructions are dedented and stripped, tabs and deeper indentation stay."""
    assert new_skill("AnySkill", instructions=written).instructions == read


def test_tools_of_an_instance_call_its_methods() -> None:
    """A tool converts and passes the arguments; an async one returns a coroutine."""
    ask, count = RagSkill({"why": ["a", "b", "c"]}).tools()
    assert (ask.is_async, count.is_async) == (True, False)
    assert asyncio.run(ask.call({"question": "why", "limit": 2})) == ["a", "b"]
    assert count.call({}) == 1


def test_a_tool_shows_what_a_model_needs() -> None:
    """Name, description, JSON Schema and permission: a tool of a standard skill is safe."""
    _, count = RagSkill({}).tools()
    assert dataclasses.asdict(dataclasses.replace(count, method=None, shape=None)) == {  # type: ignore[arg-type]
        "name": "count-passages",
        "description": "How many there are.",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        "permission": "safe",
        "is_async": False,
        "method": None,
        "shape": None,
    }
    assert isinstance(hash(count), int)


def test_wrong_arguments_of_an_async_tool_are_refused_at_the_call() -> None:
    """The error comes from call() itself, not from a coroutine that was never awaited."""
    with pytest.raises(ToolArgumentError, match="'limit' must be an integer"):
        RagSkill({}).tools()[0].call({"question": "why", "limit": "two"})


def test_tools_are_inherited_and_can_be_overridden() -> None:
    """Tools of base classes come first; an override without the mark is not a tool."""

    class Wider(RagSkill):
        name = "wider"

        @tool
        def extra(self) -> None: ...

        def count(self) -> int:
            return 0

    assert Wider.descriptor().tools == ("ask", "extra")


def test_a_decorated_method_keeps_its_hints() -> None:
    """A decorator that wraps properly may stand on either side of the mark."""

    def logged(method: Any) -> Any:
        @functools.wraps(method)
        def call(self: Any, **arguments: Any) -> Any:
            return f"logged {method(self, **arguments)}"

        return call

    class LoggedSkill(BaseSkill):
        name = "logged"
        description = "Logs."

        @logged
        @tool
        def inner(self, number: int) -> int:
            return number

        @tool
        @logged
        def outer(self, number: int) -> int:
            return number

    assert [each.call({"number": 1}) for each in LoggedSkill().tools()] == ["logged 1", "logged 1"]


def test_a_raw_skill_without_a_policy_has_no_tools() -> None:
    """The error names the tools and shows the call to make."""
    with pytest.raises(PolicyError) as raised:
        ShellSkill().tools()
    assert "skill.with_policy({'run': 'ask', 'read': 'ask'})" in str(raised.value)


def test_tools_that_the_policy_of_a_raw_skill_does_not_name_are_blocked() -> None:
    """Blocked tools are still listed."""
    shell = ShellSkill().with_policy({"read": "safe"})
    assert type(shell) is ShellSkill
    run, read = shell.tools()
    assert read.call({"path": "a"}) == "read a"
    with pytest.raises(PolicyError, match=r"'run' is blocked.*with_policy\(\{'run': 'ask'\}\)"):
        run.call({"command": "ls"}, approved=True)


def test_an_ask_tool_runs_only_when_approved() -> None:
    """`ask` needs the user's approval for each call."""
    run, _ = ShellSkill().with_policy({"run": "ask"}).tools()
    with pytest.raises(PolicyError, match="after the user has approved"):
        run.call({"command": "ls"})
    assert run.call({"command": "ls"}, approved=True) == "ran ls"


def test_a_policy_binds_a_copy() -> None:
    """The skill it was made from stays without one, and a later policy replaces an earlier one whole."""
    bare = ShellSkill()
    first = bare.with_policy({"run": "safe"})
    assert [each.permission for each in first.with_policy({"read": "ask"}).tools()] == ["blocked", "ask"]
    assert [each.permission for each in first.tools()] == ["safe", "blocked"]
    with pytest.raises(PolicyError):
        bare.tools()


def test_a_class_can_bring_its_policy() -> None:
    """It holds for everyone who chooses no other, also for classes that extend this one."""

    class OurShell(ShellSkill):
        policy = {"read": "safe", "run": "ask"}  # noqa: RUF012

    class TheirShell(OurShell):
        pass

    assert [each.permission for each in TheirShell().tools()] == ["ask", "safe"]
    assert [each.permission for each in TheirShell().with_policy({"read": "ask"}).tools()] == ["blocked", "ask"]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"delete": "ask"}, "has no tool 'delete'. Its tools: run, read."),
        ({"run": "allow"}, "Unknown permission 'allow' for 'run'. Use 'safe', 'ask' or 'blocked'."),
        ("ask", "is 'ask'. Write a permission for each tool"),
    ],
)
def test_a_wrong_policy_of_a_class_is_a_mistake_in_the_skill(policy: Any, message: str) -> None:
    """It is found when the class is described, before anything could run."""

    class WrongShell(ShellSkill):
        pass

    WrongShell.policy = policy
    with pytest.raises(InvalidSkillError) as raised:
        WrongShell.descriptor()
    assert message in str(raised.value)


def test_a_policy_of_a_standard_skill_narrows_what_it_names() -> None:
    """Tools of a standard skill are safe unless the policy says otherwise."""
    narrowed = RagSkill({}).with_policy({"ask": "ask"})
    assert [each.permission for each in narrowed.tools()] == ["ask", "safe"]


def test_a_frozen_dataclass_can_be_a_skill() -> None:
    """A subclass may have any constructor."""

    @dataclasses.dataclass(frozen=True)
    class FrozenShell(ShellSkill):
        root: str

        @tool
        def where(self) -> str:
            return self.root

    *_, where = FrozenShell("/tmp").with_policy({"where": "safe"}).tools()
    assert where.call({}) == "/tmp"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"delete": "ask"}, "Skill 'shell' has no tool 'delete'. Its tools: run, read."),
        ({"run": "allow"}, "Unknown permission 'allow' for 'run'. Use 'safe', 'ask' or 'blocked'."),
    ],
)
def test_a_policy_with_unknown_names_is_refused(policy: Any, message: str) -> None:
    """An unknown tool or permission raises an error that lists the valid ones."""
    with pytest.raises(PolicyError) as raised:
        ShellSkill().with_policy(policy)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("attribute", "value", "right"),
    [
        ("name", "", 'name = "faulty"'),
        ("name", "Agentic RAG", 'name = "agentic-rag"'),
        ("name", "a--b", "single hyphens"),
        ("name", "-a", "single hyphens"),
        ("name", "a\n", "lowercase letters"),
        ("name", "ａ", "lowercase letters"),
        ("name", "a" * 65, "1 to 64"),
        ("name", None, "lowercase letters"),
        ("description", " \n", "what the skill does and when to use it"),
        ("description", "x" * 1025, "at most 1024 characters"),
        ("instructions", b"Call it.", "Write a string"),
        ("references", ["references/a.md"], 'references = ("references/a.md",)'),
        ("references", "references/a.md", 'references = ("references/a.md",)'),
        ("references", (1,), 'references = ("references/a.md",)'),
        ("category", "wild", "one of 'standard', 'raw'"),
        ("disclosure", "never", "one of 'auto', 'always', 'manual'"),
    ],
)
def test_a_faulty_class_says_what_to_write(attribute: str, value: Any, right: str) -> None:
    """The descriptor of a class that breaks a rule is an InvalidSkillError naming class, attribute and remedy."""
    attributes = {"name": "good", "description": "Good.", attribute: value}
    with pytest.raises(InvalidSkillError) as raised:
        new_skill("FaultySkill", **attributes).descriptor()
    assert f"FaultySkill.{attribute} is {value!r}"[:60] in str(raised.value)
    assert right in str(raised.value)
    assert len(str(raised.value)) < 300


MEMBERS: dict[str, Callable[[Any], Any]] = {
    "property": property,
    "cached_property": cached_property,
    "method": lambda function: function,
}


@pytest.mark.parametrize(
    "attribute", ["name", "description", "instructions", "references", "category", "disclosure", "policy"]
)
@pytest.mark.parametrize("member", MEMBERS)
def test_an_attribute_that_needs_an_instance_is_explained(attribute: str, member: str) -> None:
    """A skill is described without an instance, so the message says to write a class attribute."""
    value = MEMBERS[member](lambda self: "agentic-rag")
    attributes = {"name": "good", "description": "Good.", attribute: value}
    with pytest.raises(InvalidSkillError) as raised:
        new_skill("FaultySkill", **attributes).descriptor()
    assert f"FaultySkill.{attribute} is a {member}. Write `{attribute} = " in str(raised.value)


@pytest.mark.parametrize("length", [1, 64])
def test_names_up_to_the_limit_are_valid(length: int) -> None:
    """1 and 64 characters are both allowed."""
    assert new_skill("EdgeSkill", name="a" * length, description="Good.").descriptor().name == "a" * length


def test_a_class_between_needs_no_attributes() -> None:
    """An intermediate class may leave everything open; only asking for its descriptor fails."""

    class CompanySkill(BaseSkill):
        def __init_subclass__(cls, team: str = "", **keywords: Any) -> None:
            super().__init_subclass__(**keywords)
            cls.team = team  # type: ignore[attr-defined]

    class PayrollSkill(CompanySkill, team="hr"):
        name = "payroll"
        description = "Pays."

    assert PayrollSkill.descriptor().name == "payroll"
    with pytest.raises(InvalidSkillError, match=r"CompanySkill\.name"):
        CompanySkill.descriptor()


def static() -> Any:
    class StaticSkill(BaseSkill):
        name, description = "static", "Static."

        @staticmethod
        @tool
        def run(self: Any) -> None: ...

    return StaticSkill.descriptor()


def class_method() -> Any:
    class ClassSkill(BaseSkill):
        name, description = "class", "Class."

        @tool
        @classmethod
        def run(cls) -> None: ...

    return ClassSkill.descriptor()


def twice() -> Any:
    class TwiceSkill(BaseSkill):
        name, description = "twice", "Twice."

        @tool(name="run")
        def start(self) -> None: ...

        @tool
        def run(self) -> None: ...

    return TwiceSkill.descriptor()


def spaced() -> Any:
    class SpacedSkill(BaseSkill):
        name, description = "spaced", "Spaced."

        @tool(name="run it")
        def run(self) -> None: ...

    return SpacedSkill.descriptor()


def untyped() -> Any:
    class UntypedSkill(BaseSkill):
        name, description = "untyped", "Untyped."

        @tool
        def run(self, command) -> None: ...  # type: ignore[no-untyped-def]

    return UntypedSkill.descriptor()


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (static, r"StaticSkill\.run\(\) is a staticmethod\. A tool is a plain method"),
        (class_method, r"@tool goes on a plain method.*Put it directly above `def`"),
        (twice, r"TwiceSkill: start\(\) and run\(\) are both named 'run'\. Rename one"),
        (spaced, r"SpacedSkill\.run\(\) is named 'run it' as a tool\. Use 1 to 64 letters"),
        (untyped, r"UntypedSkill\.run\(\), parameter 'command': it has no type hint"),
    ],
)
def test_a_faulty_tool_says_what_to_write(define: Any, message: str) -> None:
    """A faulty tool raises InvalidSkillError when the class is defined or described."""
    with pytest.raises(InvalidSkillError, match=message):
        define()


def test_a_tool_is_immutable() -> None:
    """A tool cannot be changed after it was checked."""
    run, _ = ShellSkill().with_policy({}).tools()
    assert isinstance(run, Tool)
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.permission = "safe"  # type: ignore[misc]
