"""Code skills: classes whose typed methods are tools.

    class RagSkill(BaseSkill):
        name = "agentic-rag"
        description = "Answers questions from the graph. Use when ..."
        instructions = "Call `ask`. For Azure settings load the reference 'azure_search_config.md'."
        references = ("references/azure_search_config.md",)

        def __init__(self, graph: Graph) -> None: ...

        @tool
        async def ask(self, question: str, limit: int = 5) -> list[str]:
            "Passages that answer a question."

A code skill lives in a subpackage of its own: `skill.py` beside `references/`.
"""

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MethodType
from typing import Any, ClassVar, Protocol, Self, get_args, runtime_checkable

from skillshelf.errors import InvalidSkillError, PolicyError
from skillshelf.skills._descriptor import MAX_DESCRIPTION, Category, Disclosure, SkillDescriptor
from skillshelf.skills._tools import ClassFault, Permission, Tool, ToolMethod, read_tool_methods, tool, tool_methods
from skillshelf.text import truncate

__all__ = ["BaseSkill", "Permission", "Tool", "tool"]

_NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_SHOWN_VALUE = 80
# Methods of BaseSkill that other packages for skills have as attributes, and what an author needs to know about them.
_OWN_METHODS = {
    "descriptor": "the descriptor is made from the attributes of the class",
    "tools": "the tools are the methods marked with @tool",
    "with_policy": "it returns a copy of the skill with a permission for each tool",
}
# The attributes that describe a skill besides its name, each with a value as an author may write it.
_EXAMPLES = {
    "description": '"What it does. Use when …"',
    "instructions": '"""…"""',
    "references": '("references/a.md",)',
    "category": '"standard"',
    "disclosure": '"auto"',
    "policy": '{"run": "ask"}',
}


class AskUser(Protocol):
    """Asks the user for a line that no model sees. Returns an empty one if they do not give it."""

    async def __call__(self, question: str, *, hidden: bool) -> str: ...


@runtime_checkable
class AsksUser(Protocol):
    """A skill that may ask the user. A host with a terminal sets `ask_user`; without one it stays None."""

    ask_user: AskUser | None


class BaseSkill:
    """The base class of code skills. A subclass may have any constructor.

    An instance that a program constructs may have instructions and references of its own, for what it was set up with.
    """

    name: ClassVar[str] = ""
    description: ClassVar[str] = ""
    instructions: ClassVar[str] = ""
    category: ClassVar[Category] = "standard"
    references: ClassVar[tuple[str, ...]] = ()
    """Paths below the skill's folder, or from the top package on (`my_skills/agentic_rag/references/a.md`)."""
    disclosure: ClassVar[Disclosure] = "auto"
    policy: ClassVar[Mapping[str, Permission] | None] = None
    """The permission of each tool, for everyone who does not choose one with `with_policy`."""

    # On the class, so that a subclass need not call super().__init__().
    _policy: Mapping[str, Permission] | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        instructions = vars(cls).get("instructions")
        if isinstance(instructions, str):
            cls.instructions = _dedent(instructions)

    @classmethod
    def descriptor(cls, source: str = "") -> SkillDescriptor:
        """Return the descriptor of the class. Raises InvalidSkillError, which says what to write where."""
        for fault in find_class_faults(cls):
            raise InvalidSkillError(fault.message)
        return SkillDescriptor(
            name=cls.name,
            description=cls.description,
            category=cls.category,
            tools=tuple(each.name for each in tool_methods(cls)),
            references=cls.references,
            source=source,
            location=f"{cls.__module__}:{cls.__qualname__}",
            size=len(cls.instructions.encode("utf-8", "surrogatepass")),
            disclosure=cls.disclosure,
        )

    def with_policy(self, policy: Mapping[str, Permission]) -> Self:
        """Return a copy of this skill with a permission for each tool, in place of the policy of its class.

        Tools that the policy does not name are blocked if the skill is raw, and safe if it is not.
        """
        names = [each.name for each in tool_methods(type(self))]
        problem = _find_policy_problem(_label(self), policy, names)
        if problem:
            raise PolicyError(problem)

        bound = copy.copy(self)
        # Not by assignment: a skill may be a frozen dataclass.
        vars(bound)["_policy"] = dict(policy)
        return bound

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools, each with its permission. Raises PolicyError for a raw skill without a policy."""
        methods = tool_methods(type(self))
        policy = self.policy if self._policy is None else self._policy
        if self.category == "raw" and policy is None:
            example = ", ".join(f"{each.name!r}: 'ask'" for each in methods)
            raise PolicyError(
                f"{_label(self)} is raw: it runs commands or changes state, so each of its tools needs a permission. "
                f"Attach skill.with_policy({{{example}}}), with 'safe', 'ask' or 'blocked' for each."
            )

        default: Permission = "blocked" if self.category == "raw" else "safe"
        permissions = policy or {}
        return tuple(self._bind(method, permissions.get(method.name, default)) for method in methods)

    def _bind(self, method: ToolMethod, permission: Permission) -> Tool:
        return Tool(
            name=method.name,
            description=method.docstring.summary,
            # A framework may edit the schema it is given; parts of it are shared between tools.
            parameters=copy.deepcopy(method.shape.schema),
            permission=permission,
            is_async=method.is_async,
            method=getattr(self, method.attribute),
            shape=method.shape,
        )


def describe_class(cls: type[BaseSkill], source: str) -> SkillDescriptor:
    """Return the descriptor of an author's class. Raises InvalidSkillError for its first fault."""
    for fault in find_class_faults(cls):
        raise InvalidSkillError(fault.message)
    return cls.descriptor(source)


def find_class_faults(cls: type[BaseSkill]) -> Iterator[ClassFault]:
    """Yield everything that keeps a class from being a skill."""
    for method, reason in _OWN_METHODS.items():
        member = getattr(cls, method)
        is_class_method = isinstance(member, MethodType)
        if not callable(member) or (method == "descriptor" and not is_class_method):
            message = f"{_path_to(cls, method)} hides a method of BaseSkill. Remove or rename it: {reason}."
            yield ClassFault(method, message)

    yield from _find_attribute_faults(cls)
    methods, tool_faults = read_tool_methods(cls)
    yield from tool_faults
    if not tool_faults:  # the policy may name a tool that has a fault
        yield from _find_class_policy_faults(cls, [each.name for each in methods])


def _path_to(cls: type[BaseSkill], attribute: str) -> str:
    return f"{cls.__module__}.{cls.__qualname__}.{attribute}"


def _label(skill: BaseSkill) -> str:
    return f"Skill {skill.name!r}" if skill.name else type(skill).__qualname__


def _find_policy_problem(owner: str, policy: Mapping[str, Permission], names: Sequence[str]) -> str:
    """Return what is wrong with a policy for tools of these names; an empty string if nothing is."""
    for name, permission in policy.items():
        if name not in names:
            return f"{owner} has no tool {name!r}. Its tools: {', '.join(names) or 'none'}."
        if permission not in get_args(Permission):
            return f"Unknown permission {permission!r} for {name!r}. Use 'safe', 'ask' or 'blocked'."
    return ""


def _find_class_policy_faults(cls: type[BaseSkill], names: Sequence[str]) -> Iterator[ClassFault]:
    """Yield what is wrong with the policy that an author wrote into the class."""
    if cls.policy is None or _describe_member(cls.policy):
        return
    if not isinstance(cls.policy, Mapping):
        message = f"{_path_to(cls, 'policy')} is {cls.policy!r}. Write a permission for each tool: {{'run': 'ask'}}."
        yield ClassFault("policy", message)
        return
    problem = _find_policy_problem("The skill", cls.policy, names)
    if problem:
        yield ClassFault("policy", f"{_path_to(cls, 'policy')}: {problem}")


def _dedent(text: str) -> str:
    """Remove the indentation of the source. Text that begins right after the quotes has none on its first line."""
    first, newline, rest = text.partition("\n")
    if not newline:
        return text.strip()

    from textwrap import dedent  # takes 1 ms, which a shelf of files never pays

    if first[:1].isspace() or not first:
        return dedent(text).strip()
    return (first + newline + dedent(rest)).strip()


def _describe_member(value: object) -> str:
    """Return what a member of a class is if it gives its value only to instances; otherwise an empty string."""
    if isinstance(value, property):
        return "property"
    if callable(value):
        return "method"
    if hasattr(value, "__get__"):  # functools.cached_property, the slot of a dataclass
        return type(value).__name__
    return ""


def _find_attribute_faults(cls: type[BaseSkill]) -> Iterator[ClassFault]:
    for attribute, example in {"name": f'"{_suggest_name(cls)}"', **_EXAMPLES}.items():
        value = getattr(cls, attribute)
        kind = _describe_member(value)
        path = _path_to(cls, attribute)
        if kind:
            message = (
                f"{path} is a {kind}. Write `{attribute} = {example}` in the class: skillshelf describes a skill "
                f"without an instance."
            )
            yield ClassFault(attribute, message)
            continue
        right = _find_right_value(cls, attribute)
        if right:
            yield ClassFault(attribute, f"{path} is {truncate(repr(value), _MAX_SHOWN_VALUE)}. {right}")


def _find_right_value(cls: type[BaseSkill], attribute: str) -> str:
    """Return what to write into an attribute that has a wrong value; an empty string if its value is right."""
    value = getattr(cls, attribute)
    match attribute:
        case "name":
            if not isinstance(value, str) or not _NAME.fullmatch(value):
                return f'Write 1 to 64 lowercase letters, digits, single hyphens: name = "{_suggest_name(cls)}".'
        case "description":
            if not isinstance(value, str) or not value.strip():
                return "Write what the skill does and when to use it."
            if len(value) > MAX_DESCRIPTION:
                return f"Write at most {MAX_DESCRIPTION} characters."
        case "instructions":
            if not isinstance(value, str):
                return "Write a string."
        case "references":
            if type(value) is not tuple or not all(isinstance(each, str) for each in value):
                return 'Write a tuple of paths: references = ("references/a.md",).'
        case "category" | "disclosure":
            words = get_args(Category if attribute == "category" else Disclosure)
            if value not in words:
                return f"Write one of {', '.join(map(repr, words))}."
    return ""


def _suggest_name(cls: type[BaseSkill]) -> str:
    """Return a valid name that is close to the one an author wrote, or else to the name of the class."""
    written = cls.name if isinstance(cls.name, str) else ""
    words = written or _WORD_BOUNDARY.sub("-", cls.__name__.removesuffix("Skill"))
    name = "-".join(re.findall("[a-z0-9]+", words.lower()))
    return name[:64].strip("-") or "my-skill"
