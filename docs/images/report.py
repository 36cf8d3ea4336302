"""Make report.png and transcript.png, an eval report in a browser: real trials of a local server that makes mistakes.

    python docs/images/report.py [FOLDER]

It needs chromium. The server draws its mistakes from a seed and the trials run one after the other, so the numbers are
the same each time, apart from seconds. FOLDER keeps the report.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

from stand_in import StandIn  # noqa: E402

SIZE = (1080, 950)
REPEATS = 8
RELEASE_CASES = """
cases:
  - name: first notes
    prompt: Write the release notes for v1.2 from merged.txt into NOTES.md.
    files: {merged.txt: "#41 dark mode\\n#43 tidy the tests\\n#44 drop Python 3.9\\n"}
    policy: auto-edit
    checks:
      - skill_loaded: release-notes
      - file_contains: {path: NOTES.md, text: Breaking}
      - response_contains: NOTES.md
  - name: changelog entry
    prompt: Add a changelog entry for the dark mode.
    checks:
      - skill_loaded: release-notes
      - response_contains: Added
  - name: nothing to announce
    prompt: Which release notes does a change of the tests need?
    checks:
      - response_contains: none
  - name: entry with a number
    prompt: Add a changelog entry for the dark mode of issue 41.
    checks:
      - response_contains: "#41"
      - response_contains: Added
  - name: entry for users
    prompt: Add a changelog entry that users understand for the dark mode.
    checks:
      - response_contains: Added
  - name: what is new
    prompt: What changed since version 1.1 for users?
    checks:
      - response_contains: "3.9"
"""
RELEASE_TRIGGERS = [
    {"query": "Write the release notes for 1.2.", "should_trigger": True},
    {"query": "What changed since version 1.1?", "should_trigger": True},
    {"query": "Draft a changelog entry for #41.", "should_trigger": True},
    {"query": "What is 2 + 2?", "should_trigger": False},
    {"query": "Summarize my week for the team.", "should_trigger": False},
]
WEEKLY_CASES = """
cases:
  - name: a week
    prompt: Write my weekly report.
    checks:
      - skill_loaded: weekly-report
      - response_contains: Done
  - name: a quiet week
    prompt: Write my weekly report. I was ill from Monday to Thursday.
    checks:
      - response_contains: Done
  - name: plans
    prompt: Write my weekly report with plans for the next one.
    checks:
      - response_contains: Next
"""
ANSWERS = {
    "which release notes": ("A change of the tests needs none: users don't notice it.", "One line under Changed."),
    "changelog": ("## Added\n\n- A dark mode. (#41)", "- A dark mode. (#41)"),
    "release notes": ("I wrote NOTES.md: one breaking change, one new feature.", "Here are the notes: dark mode."),
    "what changed": ("Dark mode came, Python 3.9 went.", "Dark mode came."),
    "week": ("## Done\n\n- Dark mode.\n\n## Next\n\n- Docs.", "I worked on the dark mode."),
    "2 + 2": ("4", "4"),
}
SKILLS = {"changelog": "release-notes", "release notes": "release-notes", "what changed": "release-notes"}
SKILLS["weekly report"] = "weekly-report"
NOTES = "# v1.2\n\n- Breaking: Python 3.9 is no longer supported. (#44)\n- There is a dark mode now. (#41)\n"


class Fallible(StandIn):
    """A model that mostly loads the right skill and follows it."""

    def __init__(self) -> None:
        self._draw = random.Random(12)
        super().__init__({})

    def answer(self, messages: list[dict[str, Any]]) -> tuple[dict[str, Any], str]:
        prompt = str(next(message["content"] for message in messages if message["role"] == "user")).lower()
        system = str([message["content"] for message in messages if message["role"] in ("system", "developer")])
        calls = [call["function"] for message in messages for call in message.get("tool_calls") or ()]
        skill = next((skill for words, skill in SKILLS.items() if words in prompt and skill in system), "")
        if not calls and skill and self._draw.random() < 0.9:
            return call_tool("load_skill_instructions", skill_name=skill)

        is_loaded = any(call["name"] == "load_skill_instructions" for call in calls)
        good, poor = next(answers for words, answers in ANSWERS.items() if words in prompt)
        if "merged.txt" in prompt and len(calls) - is_loaded == 0:
            return call_tool("read_file", path="merged.txt")
        if "merged.txt" in prompt and len(calls) - is_loaded == 1:
            notes = NOTES if is_loaded and self._draw.random() < 0.85 else NOTES.replace("Breaking: ", "")
            return call_tool("write_file", path="NOTES.md", content=notes)
        is_good = self._draw.random() < (0.92 if is_loaded else 0.35)
        return {"content": good if is_good else poor}, "stop"


def call_tool(name: str, **arguments: str) -> tuple[dict[str, Any], str]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": f"{name}-1", "type": "function", "function": function}]}, "tool_calls"


def make_report(folder: Path) -> None:
    """Run the evals of two skills of the example workspace, and keep the report in this folder."""
    with tempfile.TemporaryDirectory() as home:
        skills = Path(home, "work", "skills")
        shutil.copytree(EXAMPLES / "workspace" / ".agents" / "skills", skills)
        for skill, cases in (("release-notes", RELEASE_CASES), ("weekly-report", WEEKLY_CASES)):
            evals = skills / skill / "evals"
            evals.mkdir(exist_ok=True)
            (evals / "cases.yaml").write_text(cases, encoding="utf-8")
        triggers = skills / "release-notes" / "evals" / "triggers.json"
        triggers.write_text(json.dumps(RELEASE_TRIGGERS), encoding="utf-8")

        server = Fallible()
        options = ["--repeat", str(REPEATS), "--baseline", "none", "--parallel", "1", "--price", "1/5"]
        options += ["--trust-workspace", "--model", "stand-in", "--base-url", server.url, "--report", str(folder)]
        environment = {**os.environ, "HOME": home}
        words = [sys.executable, "-m", "skillshelf", "eval", str(skills), *options]
        subprocess.run(words, check=True, cwd=skills.parent, env=environment)
        server.close()


def take_picture(address: str, picture: Path) -> None:
    width, height = SIZE
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={profile}"]
        options += [f"--window-size={width},{height}", f"--screenshot={picture}"]
        subprocess.run(["chromium", *options, address], check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary).absolute()
        make_report(folder)
        page = folder / "report.html"
        take_picture(page.as_uri(), HERE / "report.png")
        # Chromium takes its picture at the top of a page, so nothing may be above the transcript.
        alone = Path(temporary, "alone.html")
        alone.write_text(page.read_text("utf-8").replace("<main>", "<main hidden>"), "utf-8")
        take_picture(f"{alone.as_uri()}#trial-1", HERE / "transcript.png")
