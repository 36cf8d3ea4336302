"""The layout shows the architecture: imports point down or sideways, never up, and never in a circle."""

import ast
import functools
import importlib
import os
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

from repository import PACKAGES, REPO, modules, parse
from skillshelf.errors import MissingExtraError
from skillshelf.files import system

PACKAGE_LAYERS = [{"skillshelf"}, {"skillshelf_agent", "skillshelf_skills"}, {"skillshelf_evals"}]
LIBRARY_LAYERS = [
    {"_import_path", "_version", "lazy", "errors", "text"},
    {"files"},
    {"skills"},
    {"skillmd", "skill_authoring", "listing", "search"},
    {"sources", "settings"},
    {"trust", "sandbox"},
    {"explain", "registry"},
    {"shelf"},
    {"lint", "slash", "adapters"},
    {"mcp"},
    {"testing"},
    {"cli", "__main__"},
]
DOORS_OF_THEIR_OWN = (
    "skillshelf.adapters.",
    "skillshelf.files.system",
    "skillshelf.sandbox.worker",
    "skillshelf.sources.attachable",
    "skillshelf.shelf.pages",
    "skillshelf.shelf.routing",
    "skillshelf.shelf.watch",
    "skillshelf.skill_authoring.skill",
    "skillshelf.skillmd.bounded_yaml",
    "skillshelf.skills.results",
    "skillshelf.sources.entry_points",
    "skillshelf.sources.workspace",
    "skillshelf.text.",
    "skillshelf_skills.",
)
"""Public modules inside a folder: each is imported by few and only when used, or is read as a whole."""
RANK = {name: rank for rank, names in enumerate(LIBRARY_LAYERS) for name in names}
PACKAGE_RANK = {name: rank for rank, names in enumerate(PACKAGE_LAYERS) for name in names}


@functools.cache
def imports(path: Path, *, for_type_checkers: bool = False) -> tuple[str, ...]:
    """Return our modules that a module imports when it runs, at once or later.

    Imports that only a type checker reads count if `for_type_checkers` is set.
    """
    return tuple(_find_imports(path, for_type_checkers=for_type_checkers))


def _find_imports(path: Path, *, for_type_checkers: bool) -> Iterator[str]:
    tree = parse(path)
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not for_type_checkers
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in guarded or not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = [f"{base}.{name}" if f"{base}.{name}" in modules() else base for name in names]
        yield from (name for name in names if name.partition(".")[0] in PACKAGES)


def is_package(name: str) -> bool:
    return modules()[name].name == "__init__.py"


def is_private(name: str) -> bool:
    return name.rpartition(".")[2].startswith("_")


def room(name: str) -> str:
    """Return the module or folder of a package that a module is in; `skillshelf` for the package itself."""
    return f"{name}.{name}".split(".")[1]


def test_packages_import_only_those_below_them() -> None:
    """The library knows nothing of the others, and the agent and the skills nothing of each other."""
    assert PACKAGE_RANK.keys() == PACKAGES.keys()
    upward = [
        f"{name} -> {target}"
        for name, path in modules().items()
        for target in imports(path, for_type_checkers=True)
        if name.partition(".")[0] != target.partition(".")[0]
        and PACKAGE_RANK[target.partition(".")[0]] >= PACKAGE_RANK[name.partition(".")[0]]
    ]
    assert upward == []


def test_every_module_has_a_layer() -> None:
    """A new module must say where it belongs."""
    assert {room(name) for name in modules() if name.startswith("skillshelf.")} == set(RANK)


def test_the_picture_shows_every_package_and_room() -> None:
    """how-it-fits.md has them in one picture."""
    page = (REPO / "docs/concepts/how-it-fits.md").read_text()
    picture = page.partition("## Four packages")[2].partition("```text")[2].partition("```")[0]
    shown = set(re.findall(r"[\w-]+", picture))
    assert {name.replace("_", "-") for name in PACKAGES} <= shown
    rooms = {room(name) for name in modules() if name.startswith("skillshelf.") and not room(name).startswith("_")}
    assert rooms <= shown


def test_imports_never_point_up() -> None:
    """A lower layer knows nothing of a higher one."""
    upward = [
        f"{name} -> {target}"
        for name, path in modules().items()
        if name.startswith("skillshelf.")
        for target in imports(path)
        if RANK.get(room(target), 0) > RANK[room(name)]
    ]
    assert upward == []


def test_imports_never_go_in_a_circle() -> None:
    """Each module can be read after those it imports."""
    graph = {name: set(imports(path)) - {name} for name, path in modules().items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


def test_the_agent_has_no_circles_for_type_checkers_either() -> None:
    """Its objects get what they need, instead of holding each other."""
    agent = {name: path for name, path in modules().items() if name.startswith("skillshelf_agent")}
    graph = {name: {*imports(path, for_type_checkers=True)} & agent.keys() - {name} for name, path in agent.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(graph)


def test_modules_inside_a_folder_are_private() -> None:
    """Readers see from its name whether they may import a module; a folder's `__init__` exports the rest."""
    looks_public = [
        name
        for name in modules()
        if name.count(".") > 1
        and not is_package(name)
        and not is_private(name)
        and not name.startswith(DOORS_OF_THEIR_OWN)
    ]
    assert looks_public == []


def test_code_outside_a_folder_imports_from_its_door() -> None:
    """A private module is imported only by modules below the folder it is in."""
    past_the_door = [
        f"{name} -> {target}"
        for name, path in modules().items()
        for target in imports(path, for_type_checkers=True)
        if is_private(target) and "." in target and not f"{name}.".startswith(target.rpartition(".")[0] + ".")
    ]
    assert past_the_door == []


def test_doors_hold_no_logic() -> None:
    """An `__init__` imports, lists what it exports, and does nothing else."""
    plain = (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.If, ast.Try)
    logic = [
        f"{name}: {ast.unparse(node)[:60]}"
        for name, path in modules().items()
        if is_package(name)
        for node in parse(path).body
        if not isinstance(node, plain)
    ]
    assert logic == []


def test_lazy_doors_export_what_type_checkers_read() -> None:
    """The imports for type checkers, `__all__` and what `__getattr__` finds are the same names."""
    for name, path in modules().items():
        if "export_lazily(" not in path.read_text() or not is_package(name):
            continue
        door = importlib.import_module(name)
        imported = {
            alias.asname or alias.name
            for node in parse(path).body
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for statement in node.body
            if isinstance(statement, ast.ImportFrom)
            for alias in statement.names
        }
        assert imported <= set(door.__all__), name
        assert [export for export in door.__all__ if not offers(door, export)] == [], name


def offers(door: ModuleType, export: str) -> bool:
    """True if a door has this name, or says which extra brings it."""
    try:
        return hasattr(door, export)
    except MissingExtraError:
        return True


def test_only_some_layers_touch_files() -> None:
    """Everything else works on values, and can be tested on them."""
    standard_streams = {"skillshelf.text.streams"}
    pure = {"errors", "lazy", "text", "skills", "skillmd", "listing", "search"}
    opening = [
        name
        for name, path in modules().items()
        if name.startswith("skillshelf.") and room(name) in pure and name not in standard_streams
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("open", "os.open", "os.scandir", "os.listdir", "os.stat")
    ]
    assert opening == []


def test_files_are_touched_through_the_system_module() -> None:
    """A call past `files.system` would be one that the fault tests cannot fail."""
    through_system = (
        "skillshelf.files.",
        "skillshelf.sources.",
        "skillshelf.trust.",
        "skillshelf.registry.",
        "skillshelf_agent.sessions.",
        "skillshelf_agent.filetools.",
        "skillshelf_agent.checkpoints.",
        "skillshelf.cli._new",
    )
    pipes = "skillshelf_agent.filetools._line_search"  # it reads and writes the pipes of its matcher, not files
    calls = {f"os.{name}" for name in vars(system) if hasattr(os, name)} | {"fcntl.flock"}
    past = [
        f"{name}: {ast.unparse(node)}"
        for name, path in modules().items()
        if f"{name}.".startswith(through_system) and name != pipes
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in calls
    ]
    assert past == []
