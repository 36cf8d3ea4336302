"""Doors that open on demand, and what they say if a library is missing."""

import importlib
from pathlib import Path

import pytest

from skillshelf.errors import MissingExtraError

DOOR = """
from skillshelf.lazy import export_lazily

__all__ = ["Agent", "Broken"]
__getattr__ = export_lazily(__name__, {"_core": ["Agent"], "_broken": ["Broken"]}, extra="chat")
"""


def test_a_door_names_the_extra_that_brings_a_missing_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of our own that is missing is a mistake, which no extra mends."""
    files = {
        "__init__.py": DOOR,
        "_core.py": "import a_library_that_nobody_has",
        "_broken.py": "import skillshelf.a_module_that_is_gone",
    }
    (tmp_path / "lazy_door").mkdir()
    for name, text in files.items():
        (tmp_path / "lazy_door" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    door = importlib.import_module("lazy_door")
    with pytest.raises(MissingExtraError, match=r"^lazy_door\.Agent: .*pip install 'skillshelf\[chat\]'$"):
        door.Agent  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_gone"):
        door.Broken  # noqa: B018
