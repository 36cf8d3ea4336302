"""Test the package as an index shows it: its long description has no dead link or picture."""

import email
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from skillshelf import __version__

pytest.importorskip("hatchling", reason="the dependency group `test` is not installed")

REPO = Path(__file__).parents[1]
BUILD = "from hatchling.build import build_sdist, build_wheel; build_wheel('dist'); build_sdist('dist')"
ADDRESS = "https://code.example/team/skillshelf"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return the files that a build needs, without the rest of the repository."""
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(REPO / name, tmp_path / name)
    package = tmp_path / "src" / "skillshelf"
    package.mkdir(parents=True)
    for name in ("__init__.py", "_version.py"):
        shutil.copy(REPO / "src" / "skillshelf" / name, package / name)
    return tmp_path


def build(folder: Path) -> list[Message]:
    """Return the metadata of the wheel and of the source distribution."""
    subprocess.run([sys.executable, "-c", BUILD], cwd=folder, check=True, capture_output=True, timeout=120)
    [wheel] = (folder / "dist").glob("*.whl")
    [sdist] = (folder / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        in_wheel = archive.read(name).decode()
    with tarfile.open(sdist) as tar:
        [member] = [member for member in tar if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO")]
        file = tar.extractfile(member)
        assert file
        in_sdist = file.read().decode()
    return [email.message_from_string(in_wheel), email.message_from_string(in_sdist)]


def targets(text: str) -> list[str]:
    """Return every address that the rendered description leads to."""
    addresses: list[str] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for inner in token.children or ():
            target = inner.attrGet("href") or inner.attrGet("src")
            if target:
                addresses.append(str(target))
    return addresses


def test_the_description_has_no_links_while_the_repository_has_no_address(copy: Path) -> None:
    """Links keep their text, pictures are left out, and code stays as it is."""
    for metadata in build(copy):
        text = metadata.get_payload()
        assert isinstance(text, str)
        assert metadata["Description-Content-Type"] == "text/markdown"
        assert [target for target in targets(text) if not re.match(r"https?://", target)] == []
        assert "![" not in text
        assert "Use it in your agent" in text
        assert "loads its style guide" not in text  # the caption of a picture
        assert metadata.get_all("Project-URL") is None


def test_with_an_address_links_and_pictures_lead_to_the_files_of_the_version(copy: Path) -> None:
    """They show the released files, not later ones."""
    settings = copy / "pyproject.toml"
    settings.write_text(settings.read_text().replace('repository = ""', f'repository = "{ADDRESS}/"'))
    for metadata in build(copy):
        text = metadata.get_payload()
        assert isinstance(text, str)
        addresses = targets(text)
        assert f"{ADDRESS}/blob/v{__version__}/docs/guides/use-in-your-agent.md" in addresses
        assert f"{ADDRESS}/raw/v{__version__}/docs/images/skill.svg" in addresses
        paths = [target.removeprefix(ADDRESS).split("/", 3)[3] for target in addresses if target.startswith(ADDRESS)]
        assert [path for path in paths if not (REPO / path.partition("#")[0]).exists()] == []
        assert [target for target in addresses if not target.startswith("https://")] == []
        assert metadata.get_all("Project-URL") == [
            f"Repository, {ADDRESS}",
            f"Documentation, {ADDRESS}/blob/v{__version__}/docs/index.md",
            f"Changelog, {ADDRESS}/blob/v{__version__}/CHANGELOG.md",
            f"Issues, {ADDRESS}/issues",
        ]


def test_a_release_needs_its_version_and_the_address_of_the_repository(copy: Path) -> None:
    """The workflow that publishes checks this first."""
    release = runpy.run_path(str(REPO / ".github" / "check_release.py"))
    (copy / "CHANGELOG.md").write_text(f"# Changelog\n\n## {__version__}\n")
    assert release["find_obstacles"]("v99", ADDRESS, copy) == [
        f"The tag is v99, but src/skillshelf/_version.py has the version {__version__}.",
        f"pyproject.toml has the repository ''. Set it to '{ADDRESS}'.",
    ]
    settings = copy / "pyproject.toml"
    settings.write_text(settings.read_text().replace('repository = ""', f'repository = "{ADDRESS}/"'))
    assert release["find_obstacles"](f"v{__version__}", ADDRESS, copy) == []
