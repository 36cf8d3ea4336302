"""What the scenario plays on: skills in a folder, a code skill with a tool of each permission, and a record.

All of it is in files, so that a face may serve the same stage from a process of its own.
"""

import json
import os
import sys
from typing import Any

from skillshelf.descriptor import Activation
from skillshelf.shelf import Shelf
from skillshelf.skill import BaseSkill, tool
from skillshelf.sources import DirectorySource, ObjectSource

_SKILL = "---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"
_SKILLS, _RECORD = "skills", "record.jsonl"


class Bench(BaseSkill):
    """The code skill. Each of its tools records that it ran."""

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
        os.makedirs(os.path.join(folder, _SKILLS), exist_ok=True)
        bench = Bench(self).with_policy({"add_skill": "safe", "publish": "ask", "erase": "blocked"})
        files = DirectorySource(os.path.join(folder, _SKILLS), "project", cache=False)
        self.shelf = Shelf([ObjectSource([bench]), files])
        self.shelf.on_activation(self._activated)

    def write(self, name: str, description: str, body: str) -> str:
        """A skill with a reference; the path of its SKILL.md."""
        folder = os.path.join(self.folder, _SKILLS, name)
        os.makedirs(os.path.join(folder, "references"), exist_ok=True)
        with open(os.path.join(folder, "references", "guide.md"), "w", encoding="utf-8") as file:
            file.write(f"Guide of {name}.\n")
        path = os.path.join(folder, "SKILL.md")
        with open(path, "w", encoding="utf-8") as file:
            file.write(_SKILL.format(name=name, description=description, body=body))
        return path

    def remove(self, name: str) -> None:
        os.unlink(os.path.join(self.folder, _SKILLS, name, "SKILL.md"))

    def record(self, what: str, value: Any) -> None:
        # One line at the end of the file is written whole, whichever process and thread it comes from.
        with open(os.path.join(self.folder, _RECORD), "a", encoding="utf-8") as file:
            file.write(json.dumps([what, value]) + "\n")

    def recorded(self, what: str) -> list[Any]:
        """What was recorded of this kind so far, by any process."""
        try:
            with open(os.path.join(self.folder, _RECORD), encoding="utf-8") as file:
                return [value for kind, value in map(json.loads, file) if kind == what]
        except FileNotFoundError:
            return []

    def _activated(self, activation: Activation) -> None:
        self.record("activation", [activation.skill, activation.reference, activation.by])


def server_command(shelf: Shelf, *words: str) -> list[str]:
    """What starts an MCP server of a face's shelf in a process of its own. `words`: options of `skillshelf serve`."""
    [root] = [source.root for source in shelf.sources if isinstance(source, DirectorySource)]
    return [sys.executable, "-m", "skillshelf.cli._serve_stage", os.path.dirname(root), *words]
