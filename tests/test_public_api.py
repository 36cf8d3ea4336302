"""The public names are promises, and importing them is cheap."""

import subprocess
import sys

import skillshelf


def test_the_public_names() -> None:
    """Adding or removing one is a decision, not an accident."""
    assert skillshelf.__all__ == [
        "Activation", "AmbiguousReferenceError", "Audio", "BaseSkill", "Catalog", "Delta", "Diagnostic",
        "DirectorySource", "Image", "InvalidSkillError", "Loaded", "MemorySource", "MissingExtraError",
        "PackageSource", "PolicyError", "ReferenceNotAllowedError", "ReferenceNotFoundError",
        "ReferenceUnreadableError", "Shelf", "SkillDescriptor", "SkillDiscoverySkill", "SkillError",
        "SkillNotFoundError", "SkillUnreadableError", "SourceError", "Tool", "ToolArgumentError", "ToolFailedError",
        "ToolResultError", "Turn", "tool",
    ]  # fmt: skip
    assert all(hasattr(skillshelf, name) for name in skillshelf.__all__)


def test_importing_brings_in_nothing_heavy() -> None:
    """The import brings in no framework, YAML parser, terminal or network library."""
    code = "import sys; old = set(sys.modules); import skillshelf; print(*set(sys.modules) - old)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {name.split(".")[0] for name in output.split()}
    heavy = {
        "yaml",
        "rich",
        "markdown_it",
        "watchfiles",
        "rs_bpe",
        "asyncio",
        "json",
        "urllib",
        "email",
        "ssl",
        "sqlite3",
    }
    assert heavy.isdisjoint(loaded)
    assert {name for name in loaded if name not in sys.stdlib_module_names} == {"skillshelf"}
    assert len([name for name in output.split() if name.startswith("skillshelf")]) <= 45


def test_the_errors_are_one_tree() -> None:
    """Catching SkillError catches them all."""
    errors = [getattr(skillshelf, name) for name in skillshelf.__all__ if name.endswith("Error")]
    assert all(issubclass(error, skillshelf.SkillError) for error in errors)
