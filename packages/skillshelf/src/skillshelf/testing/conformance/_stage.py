"""The stage of the scenario: skills in a folder, a code skill with a tool of each permission, and a record.

All of it is in files, so that a face may serve the same stage from a process of its own.
"""

import json
import os
import sys
from typing import Any

from skillshelf.shelf import Shelf
from skillshelf.skills import Activation, BaseSkill, tool
from skillshelf.sources import DirectorySource, ObjectSource

_SKILL_TEMPLATE = "---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"
_SKILLS_FOLDER = "skills"
_RECORD_FILE = "record.jsonl"


class Bench(BaseSkill):
    """A code skill. Each of its tools records that it ran."""

    name = "bench-tools"
    description = "Tools that change things."
    category = "raw"
    instructions = "Call add_skill, publish or erase."

    def __init__(self, stage: "Stage") -> None:
        self._stage = stage

    @tool
    def add_skill(self, name: str) -> str:
        """Put a skill on the shelf."""
        self._stage.record("ran", "add_skill")
        self._stage.shelf.reload(self._stage.write(name, f"Added as {name}.", "Added body."))
        return f"added {name}"

    @tool
    def publish(self, path: str) -> str:
        """Publish a file."""
        self._stage.record("ran", "publish")
        return f"published {path}"

    @tool
    def erase(self, path: str) -> str:
        """Erase a file."""
        self._stage.record("ran", "erase")
        return f"erased {path}"


class Stage:
    """A folder with the scenario's shelf in it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        os.makedirs(os.path.join(folder, _SKILLS_FOLDER), exist_ok=True)
        bench = Bench(self).with_policy({"add_skill": "safe", "publish": "ask", "erase": "blocked"})
        files = DirectorySource(os.path.join(folder, _SKILLS_FOLDER), "project", cache=False)
        self.shelf = Shelf([ObjectSource([bench]), files])
        self.shelf.observers.add(self._record_activation)

    def write(self, name: str, description: str, body: str) -> str:
        """Write a skill with a reference. Return the path of its SKILL.md."""
        folder = os.path.join(self.folder, _SKILLS_FOLDER, name)
        os.makedirs(os.path.join(folder, "references"), exist_ok=True)
        with open(os.path.join(folder, "references", "guide.md"), "w", encoding="utf-8") as file:
            file.write(f"Guide of {name}.\n")
        path = os.path.join(folder, "SKILL.md")
        with open(path, "w", encoding="utf-8") as file:
            file.write(_SKILL_TEMPLATE.format(name=name, description=description, body=body))
        return path

    def remove(self, name: str) -> None:
        os.unlink(os.path.join(self.folder, _SKILLS_FOLDER, name, "SKILL.md"))

    def record(self, kind: str, value: Any) -> None:
        # A line appended to a file is written whole, from any process and thread.
        with open(os.path.join(self.folder, _RECORD_FILE), "a", encoding="utf-8") as file:
            file.write(json.dumps([kind, value]) + "\n")

    def recorded(self, kind: str) -> list[Any]:
        """Return the values of this kind that any process recorded so far."""
        try:
            with open(os.path.join(self.folder, _RECORD_FILE), encoding="utf-8") as file:
                records = [json.loads(line) for line in file]
        except FileNotFoundError:
            return []
        return [value for recorded_kind, value in records if recorded_kind == kind]

    def _record_activation(self, activation: Activation) -> None:
        self.record("activation", [activation.skill, activation.reference, activation.by])


def server_command(shelf: Shelf) -> list[str]:
    """Return the command that serves the scenario's shelf over MCP, from another process over pipes."""
    [root] = [source.root for source in shelf.sources if isinstance(source, DirectorySource)]
    return [sys.executable, "-m", "skillshelf.testing.conformance", os.path.dirname(root)]
