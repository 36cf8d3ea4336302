"""Tools: methods of a code skill that a model may call, each with its schema and its permission."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeGuard, TypeVar, overload

from skillshelf.errors import (
    GuidedError,
    InvalidSkillError,
    PolicyError,
    SkillError,
    ToolArgumentError,
    ToolFailedError,
)

if TYPE_CHECKING:
    from skillshelf.skills.schema import Docstring, Shape

Permission = Literal["safe", "ask", "blocked"]
Method = TypeVar("Method", bound=Callable[..., Any])
Errors: TypeAlias = tuple[type[Exception], ...]

_MARK = "__skillshelf_tool__"
# A name for a function that every provider's API accepts.
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@overload
def tool(method: Method, /) -> Method: ...
@overload
def tool(*, name: str) -> Callable[[Method], Method]: ...
def tool(method: Method | None = None, /, *, name: str = "") -> Method | Callable[[Method], Method]:
    """Mark a method as a tool of its skill. The model calls it by `name`, or by the method's own name."""

    def mark(method: Method) -> Method:
        if not isinstance(method, FunctionType):
            raise InvalidSkillError(f"@tool goes on a plain method, not on {method!r}. Put it directly above `def`.")
        setattr(method, _MARK, name or method.__name__)
        return method

    return mark if method is None else mark(method)


def is_tool(method: object) -> TypeGuard[FunctionType]:
    """Return True if a method is marked with @tool."""
    return isinstance(method, FunctionType) and _MARK in vars(method)


@dataclass(frozen=True, slots=True)
class Tool:
    """A method of a skill, as a model sees it and may call it."""

    name: str
    description: str
    parameters: dict[str, Any] = field(hash=False)
    """JSON Schema."""
    permission: Permission
    is_async: bool
    method: Callable[..., Any] = field(repr=False, compare=False)
    shape: "Shape" = field(repr=False, compare=False)

    @property
    def is_blocked(self) -> bool:
        """True if no call of the tool is allowed, so that it is not offered to a model."""
        return self.permission == "blocked"

    def call(self, arguments: Mapping[str, Any], *, approved: bool = False) -> Any:
        """Call the method with arguments as a model wrote them. Returns its result, a coroutine if `is_async`.

        `approved` says that the user agreed to this very call. Raises PolicyError, ToolArgumentError.
        """
        if self.is_blocked:
            raise PolicyError(
                f"Tool {self.name!r} is blocked by the policy of its skill. Do without it; only the host can allow it, "
                f"with skill.with_policy({{{self.name!r}: 'ask'}})."
            )
        if self.permission == "ask" and not approved:
            raise PolicyError(
                f"Tool {self.name!r} runs only after the user has approved the call. Ask them; after a yes the host "
                f"calls it with approved=True."
            )

        from skillshelf.skills.schema import Mismatch

        try:
            converted = self.shape.convert(arguments, "")
        except Mismatch as mismatch:
            raise ToolArgumentError(self.name, str(mismatch)) from None
        if self.is_async:
            return self._call_async(converted)
        with self._naming_skill():
            return self.method(**converted)

    async def _call_async(self, arguments: Mapping[str, Any]) -> Any:
        with self._naming_skill():
            return await self.method(**arguments)

    @contextmanager
    def _naming_skill(self) -> Iterator[None]:
        """Tell an error that leads to a reference whose it is: several skills have one of that name."""
        try:
            yield
        except GuidedError as error:
            skill = getattr(self.method, "__self__", None)
            error.skill = getattr(skill, "name", "")
            raise


def describe_denial(tool: str, reason: str = "") -> str:
    """Say that the user denied a call, to the model: one sentence wherever the question was asked."""
    if reason:
        return f"The user denied this call to {tool!r}: {reason}"
    return f"The user denied this call to {tool!r}. Don't retry; ask how to proceed."


def describe_unasked(tool: str, reason: str) -> str:
    """Say that a call needs approval and nobody can be asked, to the model: one sentence outside of the agent."""
    return (
        f"Tool {tool!r} runs only after the user has approved the call, and {reason}. Do without it; only the host can "
        f"allow it, with skill.with_policy({{{tool!r}: 'safe'}})."
    )


def describe_unknown_tool(name: str, names: Iterable[str]) -> str:
    """Return the answer for a model that called a tool which does not exist."""
    return f"There is no tool {name[:200]!r}. The tools: {', '.join(names)}."


def parse_arguments(tool: str, arguments: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call, which many APIs pass on as the JSON text that the model wrote.

    Raises ToolArgumentError. Empty text means no arguments.
    """
    if not isinstance(arguments, str):
        return arguments

    import json

    try:
        parsed = json.loads(arguments or "{}")
    except RecursionError:
        raise ToolArgumentError(tool, "they are nested too deeply") from None
    except ValueError as error:
        raise ToolArgumentError(tool, f"they are not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise ToolArgumentError(tool, "they must be a JSON object")
    return parsed


@contextmanager
def typed_errors(
    tool: Tool, reraise: Errors = (), wrap_error: Callable[[str], Exception] | None = None
) -> Iterator[None]:
    """Turn any error of a tool into a SkillError, or into the framework's own error for the model.

    `reraise`: errors by which the framework stops or asks in the middle of a tool. They are not for the model.
    """
    try:
        yield
    except reraise:
        raise
    except SkillError as error:
        if wrap_error is None:
            raise
        raise wrap_error(str(error)) from error
    except (Exception, SystemExit) as error:  # argparse in a tool leaves the program, if it may
        failed = ToolFailedError(tool.name, error)
        if wrap_error is None:
            raise failed from error
        raise wrap_error(str(failed)) from error


class ToolMethod(NamedTuple):
    """A tool as a class declares it, without the instance and its policy."""

    name: str
    attribute: str
    docstring: "Docstring"
    shape: "Shape"
    is_async: bool


class ClassFault(NamedTuple):
    """What is wrong with an attribute or a method of a skill class."""

    attribute: str
    message: str


def tool_methods(cls: type) -> tuple[ToolMethod, ...]:
    """Return the tools of a class in the order of definition, base classes first. Raises InvalidSkillError."""
    methods, faults = read_tool_methods(cls)
    if faults:
        raise InvalidSkillError(faults[0].message)
    return methods


def read_tool_methods(cls: type) -> tuple[tuple[ToolMethod, ...], tuple[ClassFault, ...]]:
    """Return the tools of a class, and what is wrong with the methods that cannot be one.

    They are read once: every new agent needs those of find-skills.
    """
    return _read_methods(cls)


@lru_cache(256)
def _read_methods(cls: type) -> tuple[tuple[ToolMethod, ...], tuple[ClassFault, ...]]:
    from skillshelf.skills.schema import parameters_of, parse_docstring  # takes 5 ms, which a shelf of files never pays

    methods: dict[str, ToolMethod] = {}
    faults: list[ClassFault] = []

    for attribute, value in _find_marked(cls):
        label = f"{cls.__qualname__}.{attribute}()"
        if isinstance(value, staticmethod | classmethod):
            message = f"{label} is a {type(value).__name__}. A tool is a plain method with `self`."
            faults.append(ClassFault(attribute, message))
            continue

        name = getattr(value, _MARK)
        if not _TOOL_NAME.fullmatch(name):
            message = f"{label} is named {name!r} as a tool. Use 1 to 64 letters, digits, _ and -."
            faults.append(ClassFault(attribute, message))
        elif name in methods:
            other = methods[name].attribute
            message = f"{cls.__qualname__}: {other}() and {attribute}() are both named {name!r}. Rename one."
            faults.append(ClassFault(attribute, message))

        docstring = parse_docstring(value.__doc__)
        try:
            shape = parameters_of(value, cls, docstring)
        except InvalidSkillError as error:
            faults.append(ClassFault(attribute, str(error)))
        else:
            methods.setdefault(name, ToolMethod(name, attribute, docstring, shape, inspect.iscoroutinefunction(value)))
    return tuple(methods.values()), tuple(faults)


def _find_marked(cls: type) -> Iterator[tuple[str, Any]]:
    # In the order of the first definition, with the value of the last one, which is the one that counts.
    attributes = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()}
    for attribute, value in attributes.items():
        method = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if is_tool(method):
            yield attribute, value
