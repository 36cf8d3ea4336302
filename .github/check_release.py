"""Check that a tag may be released: `python .github/check_release.py v0.2.0 https://github.com/OWNER/skillshelf`.

The tag names the version of the package, the changelog has an entry for it, and pyproject.toml has the address of the
repository: without it the package would have no project URLs, and its description no links.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def find_obstacles(tag: str, repository: str, root: Path = ROOT) -> list[str]:
    """Return the reasons not to release this tag of this repository."""
    obstacles: list[str] = []

    version_file = (root / "src" / "skillshelf" / "_version.py").read_text(encoding="utf-8")
    version = re.findall(r'^__version__ = "(.+)"$', version_file, re.MULTILINE)[0]
    if tag != f"v{version}":
        obstacles.append(f"The tag is {tag}, but src/skillshelf/_version.py has the version {version}.")

    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[?{re.escape(version)}\b", changelog, re.MULTILINE):
        obstacles.append(f"CHANGELOG.md has no heading for {version}.")

    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    address = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    if address.rstrip("/") != repository:
        obstacles.append(f"pyproject.toml has the repository {address!r}. Set it to {repository!r}.")
    return obstacles


if __name__ == "__main__":
    sys.exit("\n".join(find_obstacles(*sys.argv[1:3])))
