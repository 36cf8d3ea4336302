"""`/learn`: the agent writes down as a skill what happened in the session, with a case that tests it."""

import asyncio
import os
import re
from collections.abc import AsyncIterator

from rich.text import Text

from skillshelf.agent import WRITING
from skillshelf.agent.events import Event, ToolCalled, ToolReturned
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.lint import check_name, check_skill, suggest_name
from skillshelf.repl._face import ChatFace
from skillshelf.text import clean_line, count_noun

_SKILLS = ".skillshelf/skills"
_SKILL_FILE = re.compile(rf"(?:\./)?{re.escape(_SKILLS)}/([^/]+)/(?:SKILL\.md|evals/cases\.yaml)")

_REQUEST = """\
Write down as a skill what we just did in this conversation, so that an agent can do it again without it. Keep what \
was learned: the steps that worked, in order, the commands, the mistakes to avoid, my corrections. Leave out what any \
agent knows, and everything that was true only today: dates, names of branches, this one request.

{naming} Write two files with write_file, and nothing else:

1. `{skills}/NAME/SKILL.md`:

---
name: NAME
description: "What it does, and when to use it, in the words of a request like mine. One or two sentences."
---

# Title

The instructions, at most 60 lines.

2. `{skills}/NAME/evals/cases.yaml`, one case that shows whether the skill works, small enough for a temporary folder:

cases:
  - name: a few words
    prompt: a request that does not name the skill
    files:
      path/of/file.txt: "the content of a file that the request needs"
    checks:
      - skill_loaded
      - response_contains: a word that a right answer has
      - file_contains: {{path: path/of/file.txt, text: what the file has afterwards}}

`files` may be left out, and so may checks that do not fit. Quote text with a colon or a quotation mark. Then say in \
one sentence what the skill is for."""

_CORRECTION = """\
The skill that you wrote has faults. Correct the files, and change nothing else:

{problems}"""


async def learn(face: ChatFace, typed: str) -> None:
    """Let the agent draft a skill and a case from the session, with an approval for each file, and check them.

    Raises SkillError if there is nothing to learn from, or if the name cannot be a skill's.
    """
    name = typed.strip()
    if name:
        faults = check_name(name)
        if faults:
            raise SkillError(f"{name!r} cannot be a skill's name: {faults[0].message}. Try: {suggest_name(name)}")
    if not face.core.conversation.messages:
        raise SkillError("Nothing has happened in this session yet. /learn is for afterwards.")

    naming = f"The name of the skill is `{name}`." if name else "Choose a NAME of two or three words: `like-this`."
    writes = _SkillWrites()
    request = _REQUEST.format(naming=naming, skills=_SKILLS)
    await face.send(writes.watch(face.core.process_message(request)))
    if not writes.names:
        face.print(Text("No skill was written.", "yellow"))
        return

    problems = await _find_all_problems(face, writes)
    if problems and not writes.refused:  # a no to one of the files is the user's last word
        face.print(*(Text(clean_line(problem), "yellow") for problem in problems))
        correction = _CORRECTION.format(problems="\n".join(f"- {problem}" for problem in problems))
        await face.send(writes.watch(face.core.process_message(correction)))
        problems = await _find_all_problems(face, writes)
    _report(face, writes, problems)


class _SkillWrites:
    """Remembers the skills whose files were written in a turn."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.refused = False
        """True if the user did not allow one of the files."""
        self._calls: dict[str, str] = {}

    async def watch(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            if isinstance(event, ToolCalled) and event.name in WRITING:
                match = _SKILL_FILE.fullmatch(str(event.arguments.get("path", "")))
                if match:
                    self._calls[event.id] = match[1]
            elif isinstance(event, ToolReturned) and event.id in self._calls:
                name = self._calls[event.id]
                if event.ok and name not in self.names:
                    self.names.append(name)
                self.refused = self.refused or event.refused
            yield event


async def _find_all_problems(face: ChatFace, writes: _SkillWrites) -> list[str]:
    folders = [os.path.join(face.core.skills.folder, _SKILLS, name) for name in writes.names]
    found = [await asyncio.to_thread(find_problems, folder) for folder in folders]
    return [problem for problems in found for problem in problems]


def find_problems(folder: str) -> list[str]:
    """Return what `skillshelf check` and the reader of eval cases find wrong with a skill."""
    problems: list[str] = []
    name = os.path.basename(folder)
    for fault in check_skill(folder):
        fix = f" Fix: {fault.fix}." if fault.fix else ""
        problems.append(f"{name}/{os.path.basename(fault.path)}: {fault.message}.{fix}")
    if not os.path.isfile(os.path.join(folder, "evals", "cases.yaml")):
        return [*problems, f"{name}/evals/cases.yaml was not written."]
    try:
        from skillshelf.evals import list_cases

        cases, faults = list_cases([folder])
    except MissingExtraError:
        return problems
    problems += [f"{name}/evals/cases.yaml, line {fault.line}: {fault.message}." for fault in faults]
    if not cases and not faults:
        problems.append(f"{name}/evals/cases.yaml has no case.")
    return problems


def _report(face: ChatFace, writes: _SkillWrites, problems: list[str]) -> None:
    for name in writes.names:
        face.print(f"Written: {clean_line(name)}, in {_SKILLS}/{clean_line(name)}. /undo takes it back.")
    if problems:
        face.print(Text(f"{count_noun(len(problems), 'fault')} left:", "yellow"))
        face.print(*(Text(f"  {clean_line(problem)}", "yellow") for problem in problems))
        return
    names = " ".join(f"{_SKILLS}/{clean_line(name)}" for name in writes.names)
    face.print(Text(f"`skillshelf check` finds no fault. `skillshelf eval {names}` tries its case.", "dim"))
