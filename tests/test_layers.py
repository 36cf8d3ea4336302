"""The layout shows the architecture: imports point down or sideways, never up, and never in a circle."""

import ast
import os
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import skillshelf
from skillshelf.files import system

ROOT = Path(skillshelf.__file__).parent
LAYERS = [
    {"_version", "errors", "hiding", "characters", "names", "threads"},
    {"descriptor", "tokens", "schema", "files"},
    {"found", "catalog", "skillmd", "results", "tools", "skill", "listing", "search"},
    {"sources", "index", "watch"},
    {"turn", "discovery", "loop", "shelf"},
    {"lint", "bundled", "slash", "rendering", "trust"},
    {"adapters"},
    {"agent"},
    {"evals", "mcp"},
    {"testing"},
    {"repl"},
    {"cli", "__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


@cache
def modules() -> dict[str, Path]:
    """Every module by its dotted name below skillshelf; a package goes by its own name."""
    paths = [path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports(path: Path) -> Iterator[str]:
    """What a module imports of skillshelf when it runs, at once or later; not what only a type checker reads."""
    tree = ast.parse(path.read_text())
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in guarded or not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [f"{base}.{name}" if f"{base}.{name}"[11:] in modules() else base for name in names]
        yield from (name.removeprefix("skillshelf.") for name in names if name.startswith("skillshelf."))


def test_every_module_has_a_layer() -> None:
    """A new module must say where it belongs."""
    assert {name.split(".")[0] for name in modules()} == set(RANK)


def test_imports_never_point_up() -> None:
    """A lower layer knows nothing of a higher one."""
    upward = [
        f"{name} -> {target}"
        for name, path in modules().items()
        for target in imports(path)
        if RANK[target.split(".")[0]] > RANK[name.split(".")[0]]
    ]
    assert upward == []


def test_imports_never_go_in_a_circle() -> None:
    """Each module can be read after those it imports."""
    graph = {name: set(imports(path)) - {name} for name, path in modules().items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


def test_only_some_layers_touch_files() -> None:
    """Everything else works on values, and can be tested on them."""
    pure = set().union(*LAYERS[:3]) - {"files"}
    opening = [
        name
        for name, path in modules().items()
        if name.split(".")[0] in pure
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("open", "os.open", "os.scandir", "os.listdir", "os.stat")
    ]
    assert opening == []


def test_files_are_touched_through_the_system_module() -> None:
    """A call past `files.system` would be one that the fault tests cannot fail."""
    through_system = ("files.", "sources.", "trust.", "index", "agent.sessions.", "agent.filetools.", "cli.new")
    pipes = "agent.filetools._search"  # it reads and writes the pipes of its matcher, no files
    calls = {f"os.{name}" for name in vars(system) if hasattr(os, name)} | {"fcntl.flock"}
    past = [
        f"{name}: {ast.unparse(node)}"
        for name, path in modules().items()
        if f"{name}.".startswith(through_system) and name != pipes
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in calls
    ]
    assert past == []
