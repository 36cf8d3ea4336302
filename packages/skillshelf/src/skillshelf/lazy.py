"""Doors that open on demand: a package exports names without importing the modules that define them.

Importing a model's libraries takes seconds, and `skillshelf list` needs none of them. A folder whose modules are heavy
therefore writes its door like this:

    if TYPE_CHECKING:
        from skillshelf_agent._core import AgentCore

    __all__ = ["AgentCore"]
    __getattr__ = export_lazily(__name__, {"_core": ["AgentCore"]}, extra="chat")

Type checkers read the imports, programs go through `__getattr__`, and a test holds the three lists together.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from skillshelf.errors import MissingExtraError


def export_lazily(package: str, exports: Mapping[str, Sequence[str]], *, extra: str = "") -> Callable[[str], Any]:
    """Return a `__getattr__` for `package` that imports a module when one of its names is first asked for.

    `exports` maps each module, relative to the package, to the names it provides.
    If a library is missing and `extra` names the extra that installs it, the caller gets a MissingExtraError.
    """
    module_of = {name: module for module, names in exports.items() for name in names}

    def get_attribute(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")

        try:
            module = import_module(f"{package}.{module_of[name]}")
        except ModuleNotFoundError as error:
            is_our_own = (error.name or "").startswith("skillshelf")
            if is_our_own or not extra:
                raise
            raise MissingExtraError(f"{package}.{name}", extra) from error
        return getattr(module, name)

    return get_attribute
