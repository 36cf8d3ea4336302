"""Install the wheels in a folder alone and together, each time in a fresh environment, and run a command of each.

python .github/try_wheels.py dist [skillshelf skillshelf[chat] ...]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

COMMANDS = {
    "skillshelf": ["list"],
    "skillshelf[skills]": ["list", "--with", "execution-debugging"],
    "skillshelf[chat]": ["chat", "--help"],
    "skillshelf[evals]": ["eval", "--help"],
    "skillshelf[all]": ["doctor"],
}


def try_requirement(requirement: str, wheels: Path) -> None:
    """Install it, with the pip that comes with this Python and no constraints, and run its command."""
    with tempfile.TemporaryDirectory() as temp:
        subprocess.run([sys.executable, "-m", "venv", temp], check=True)
        pip = [f"{temp}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--find-links", str(wheels), requirement], check=True)
        subprocess.run([f"{temp}/bin/python", "-m", "pip", "--disable-pip-version-check", "check"], check=True)
        subprocess.run([f"{temp}/bin/skillshelf", *COMMANDS[requirement]], cwd=temp, check=True)


if __name__ == "__main__":
    for wanted in sys.argv[2:] or COMMANDS:
        print(f"== pip install {wanted}", flush=True)
        try_requirement(wanted, Path(sys.argv[1]))
