"""The packages as published: one version, with license and types, and a description without dead links."""

import email
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from repository import REPO
from skillshelf import __version__

pytest.importorskip("hatchling", reason="the dependency group `test` is not installed")

NAMES = sorted(path.name for path in (REPO / "packages").iterdir())
ADDRESS = "https://code.example/team/skillshelf"


def build(name: str, folder: Path) -> tuple[list[str], Message, Message]:
    """Build a package, and return the files in the wheel and the metadata of the wheel and of the sdist."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=REPO / "packages" / name, check=True, capture_output=True, timeout=120)
    [wheel] = folder.glob("*.whl")
    [sdist] = folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [path] = [path for path in names if path.endswith(".dist-info/METADATA")]
        in_wheel = archive.read(path).decode()
    with tarfile.open(sdist) as tar:
        [member] = [member for member in tar if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO")]
        file = tar.extractfile(member)
        assert file
        in_sdist = file.read().decode()
    return names, email.message_from_string(in_wheel), email.message_from_string(in_sdist)


@pytest.mark.parametrize("name", NAMES)
def test_each_package_has_its_license_types_and_a_page_for_the_index(name: str, tmp_path: Path) -> None:
    files, *descriptions = build(name, tmp_path)
    assert f"{name.replace('-', '_')}/py.typed" in files
    assert any(path.endswith("licenses/LICENSE") for path in files)
    for metadata in descriptions:
        assert metadata["Version"] == __version__
        text = metadata.get_payload()
        assert isinstance(text, str)
        assert "pip install" in text
        assert [target for target in find_targets(text) if not target.startswith("https://")] == []


def find_targets(text: str) -> list[str]:
    """Return every address that the rendered description leads to: an index has no files for relative ones."""
    tokens = [inner for token in MarkdownIt("commonmark").parse(text) for inner in token.children or ()]
    return [str(target) for token in tokens for target in (token.attrGet("href"), token.attrGet("src")) if target]


def read_extras(name: str) -> dict[str, list[str]]:
    project = tomllib.loads((REPO / "packages" / name / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return extras


def test_every_extra_of_the_skills_is_one_of_the_library() -> None:
    """`skillshelf[rag]` installs `skillshelf-skills[rag]`, in the same version."""
    extras = {
        name: tomllib.loads((REPO / "packages" / name / "pyproject.toml").read_text())["project"][
            "optional-dependencies"
        ]
        for name in ("skillshelf", "skillshelf-skills")
    }
    for extra in extras["skillshelf-skills"].keys() - {"all"}:
        assert extras["skillshelf"][extra] == [f"skillshelf-skills[{extra}]=={__version__}"]


def test_a_release_needs_one_version_and_the_address_of_the_repository(tmp_path: Path) -> None:
    """The workflow that publishes checks this first."""
    release = runpy.run_path(str(REPO / ".github" / "check_release.py"))
    version_file = tmp_path / "packages/skillshelf/src/skillshelf/_version.py"
    version_file.parent.mkdir(parents=True)
    version_file.write_text(f'__version__ = "{__version__}"\n')
    for name in NAMES:
        project = (REPO / "packages" / name / "pyproject.toml").read_text()
        path = tmp_path / "packages" / name / "pyproject.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(project.replace("\n[tool.", f'\n[project.urls]\nRepository = "{ADDRESS}"\n\n[tool.', 1))
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {__version__}\n")

    assert release["find_obstacles"](f"v{__version__}", ADDRESS, tmp_path) == []
    obstacles = release["find_obstacles"]("v99", "https://code.example/other", tmp_path)
    assert f"skillshelf-agent has the version {__version__}. The tag is v99." in obstacles
    assert f"skillshelf-evals requires skillshelf-agent=={__version__}. The tag is v99." in obstacles
    assert "skillshelf/_version.py has another version. The tag is v99." in obstacles
    assert "CHANGELOG.md has no heading for 99." in obstacles
    assert len([obstacle for obstacle in obstacles if "urls" in obstacle]) == len(NAMES)
