"""Check that a tag may be released: `python .github/check_release.py v0.2.0 https://github.com/OWNER/skillshelf`.

The tag names the version of all packages, which require each other in this version; the changelog has an entry for it;
and each package has the address of the repository.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def find_obstacles(tag: str, repository: str, root: Path = ROOT) -> list[str]:
    """Return the reasons not to release this tag of this repository."""
    obstacles: list[str] = []
    version = tag.removeprefix("v")
    for path in sorted(root.glob("packages/*/pyproject.toml")):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        if project["version"] != version:
            obstacles.append(f"{project['name']} has the version {project['version']}. The tag is {tag}.")
        for requirement in _list_requirements(project):
            if "==" in requirement and not requirement.endswith(f"=={version}"):
                obstacles.append(f"{project['name']} requires {requirement}. The tag is {tag}.")
        address = project.get("urls", {}).get("Repository", "")
        if address != repository:
            obstacles.append(f"{project['name']} has the Repository {address!r} in its urls. Set it to {repository!r}.")

    module = (root / "packages/skillshelf/src/skillshelf/_version.py").read_text(encoding="utf-8")
    if f'__version__ = "{version}"' not in module:
        obstacles.append(f"skillshelf/_version.py has another version. The tag is {tag}.")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[?{re.escape(version)}\b", changelog, re.MULTILINE):
        obstacles.append(f"CHANGELOG.md has no heading for {version}.")
    return obstacles


def _list_requirements(project: dict[str, object]) -> Iterator[str]:
    """Yield what a package requires of the others."""
    groups = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]  # type: ignore[attr-defined]
    yield from (requirement for group in groups for requirement in group if requirement.startswith("skillshelf"))


if __name__ == "__main__":
    sys.exit("\n".join(find_obstacles(*sys.argv[1:3])))
