"""Tools: methods of a class that a model may call, their schema, and the permission each call needs."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, overload

from skillshelf.errors import InvalidSkillError, PolicyError, SkillError, ToolArgumentError, ToolFailedError

if TYPE_CHECKING:
    from skillshelf.schema import Docstring, Shape

Permission = Literal["safe", "ask", "blocked"]
Method = TypeVar("Method", bound=Callable[..., Any])
Errors: TypeAlias = tuple[type[Exception], ...]

_MARK = "__skillshelf_tool__"
# What every provider's API accepts as the name of a function.
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@overload
def tool(method: Method, /) -> Method: ...
@overload
def tool(*, name: str) -> Callable[[Method], Method]: ...
def tool(method: Method | None = None, /, *, name: str = "") -> Method | Callable[[Method], Method]:
    """Marks a method as a tool of its skill. `name` is what the model calls it by; without it, the method's own."""

    def mark(method: Method) -> Method:
        if not isinstance(method, FunctionType):
            raise InvalidSkillError(f"@tool goes on a plain method, not on {method!r}. Put it directly above `def`.")
        setattr(method, _MARK, name or method.__name__)
        return method

    return mark if method is None else mark(method)


@dataclass(frozen=True, slots=True)
class Tool:
    """One method of a skill, as a model sees it and may call it."""

    name: str
    description: str
    parameters: dict[str, Any] = field(hash=False)
    """JSON Schema."""
    permission: Permission
    is_async: bool
    method: Callable[..., Any] = field(repr=False, compare=False)
    shape: "Shape" = field(repr=False, compare=False)

    def call(self, arguments: Mapping[str, Any], *, approved: bool = False) -> Any:
        """The method's result (a coroutine where `is_async`) for arguments as a model wrote them.

        `approved` says that the person agreed to this very call. Raises PolicyError, ToolArgumentError.
        """
        if self.permission == "blocked":
            raise PolicyError(
                f"Tool {self.name!r} is blocked by the policy of its skill. Do without it; only the host can allow it, "
                f"with skill.with_policy({{{self.name!r}: 'ask'}})."
            )
        if self.permission == "ask" and not approved:
            raise PolicyError(
                f"Tool {self.name!r} runs only once the person has approved the call. Ask them; after a yes the host "
                f"calls it with approved=True."
            )
        from skillshelf.schema import Mismatch

        try:
            converted = self.shape.convert(arguments, "")
        except Mismatch as mismatch:
            raise ToolArgumentError(self.name, str(mismatch)) from None
        return self.method(**converted)


def describe_unknown_tool(name: str, names: Iterable[str]) -> str:
    """Return what to tell a model that called a tool which does not exist."""
    return f"There is no tool {name[:200]!r}. The tools: {', '.join(names)}."


def parse_arguments(tool: str, arguments: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call, which many APIs hand over as the JSON text that the model wrote.

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
    """A tool as the class declares it: everything but the instance and its policy."""

    name: str
    attribute: str
    docstring: "Docstring"
    shape: "Shape"
    is_async: bool


def tool_methods(cls: type) -> list[ToolMethod]:
    """In the order of definition, base classes first. Raises InvalidSkillError."""
    from skillshelf.schema import parameters_of, parse_docstring  # 5 ms that a shelf of files never pays

    found: dict[str, ToolMethod] = {}
    for attribute, method in _marked(cls):
        name = getattr(method, _MARK)
        if not _TOOL_NAME.fullmatch(name):
            raise InvalidSkillError(
                f"{cls.__qualname__}.{attribute}() is named {name!r} as a tool. Use 1 to 64 letters, digits, _ and -."
            )
        if name in found:
            raise InvalidSkillError(
                f"{cls.__qualname__}: {found[name].attribute}() and {attribute}() are both named {name!r}. Rename one."
            )
        docstring = parse_docstring(method.__doc__)
        shape = parameters_of(method, cls, docstring)
        found[name] = ToolMethod(name, attribute, docstring, shape, inspect.iscoroutinefunction(method))
    return list(found.values())


def _marked(cls: type) -> Iterator[tuple[str, FunctionType]]:
    for attribute in dict.fromkeys(name for base in reversed(cls.__mro__) for name in vars(base)):
        held = inspect.getattr_static(cls, attribute)
        method = held.__func__ if isinstance(held, staticmethod | classmethod) else held
        if not isinstance(method, FunctionType) or _MARK not in vars(method):
            continue
        if method is not held:
            raise InvalidSkillError(
                f"{cls.__qualname__}.{attribute}() is a {type(held).__name__}. A tool is a plain method with `self`."
            )
        yield attribute, method
