"""The evidence that a judge decides by: everything about a trial that matters, within a stated size.

Every line that the user, the assistant, a tool or a file wrote follows a `|`. So none of them can pretend to be a
heading, a tool call that was never made, or a file that was never written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillshelf.text import clean_line, replace_surrogates, show_hidden
from skillshelf_agent.events import Event, Failed, ReferenceLoaded, SkillInvoked, SkillLoaded, ToolCalled, ToolReturned
from skillshelf_evals._limits import (
    MAX_SHOWN_ANSWERS,
    MAX_SHOWN_COMMANDS,
    MAX_SHOWN_FILES,
    MAX_SHOWN_INPUTS,
    MAX_SHOWN_MESSAGES,
    MAX_SHOWN_NAME,
    MAX_SHOWN_STEPS,
    MAX_SHOWN_TEXT,
    MIN_SHOWN_TEXT,
)
from skillshelf_evals._placeholders import hide_folders
from skillshelf_evals._trace import CommandRun, Trace

_STEPS = (SkillInvoked, SkillLoaded, ReferenceLoaded, ToolCalled, ToolReturned, Failed)


class _EvidenceSection:
    """A part of the evidence with a limit of its own."""

    def __init__(self, title: str, room: int, expected: int) -> None:
        self._lines = [f"# {title}"]
        self._room = room
        self._expected = expected
        """How many texts are still to come."""
        self._left_out = 0

    def add(self, heading: str, text: str | None = "") -> None:
        """Add a text of the trial under a heading of ours. None is a file that cannot be shown."""
        share = min(MAX_SHOWN_TEXT, max(MIN_SHOWN_TEXT, self._room // max(1, self._expected)))
        self._expected -= 1
        if self._room <= 0:
            self._left_out += 1
            return

        self._lines.append(heading)
        self._room -= len(heading)
        if text is None:
            self._lines.append("(not text, or too long to show)")
            return
        # The paths of the workspace go first: the same trial must ask the same question in any folder. Characters that
        # a person would not see are written out, so that they cannot carry orders to the judge.
        shown = show_hidden(replace_surrogates(hide_folders(text)))
        hidden = len(shown) - share
        if hidden > 0:
            shown = shown[:share]
        self._room -= len(shown)
        self._lines += [f"| {line}" for line in shown.splitlines()]
        if hidden > 0:
            self._lines.append(f"({hidden:,} more characters are not shown)")

    def render(self) -> str:
        if len(self._lines) == 1:
            self._lines.append("(none)")
        if self._left_out:
            self._lines.append(f"({self._left_out} more are not shown)")
        return "\n".join(self._lines)


def describe_work(trace: Trace) -> str:
    """Return a trial as a judge sees it. A part that is too long says how much of it is not shown."""
    sections = [
        _describe_texts("The user's messages", "Message", trace.messages, MAX_SHOWN_MESSAGES),
        _describe_inputs(trace.inputs),
        _describe_steps(trace.events),
        _describe_changes(trace),
        _describe_texts("The assistant's answers", "Answer", trace.answers, MAX_SHOWN_ANSWERS),
    ]
    if trace.command_runs:
        sections.append(_describe_commands(trace.command_runs))
    return "\n\n".join(sections)


def _describe_texts(title: str, noun: str, texts: Sequence[str], room: int) -> str:
    section = _EvidenceSection(title, room, len(texts))
    for number, text in enumerate(texts, 1):
        section.add(f"## {noun} {number}", text)
    return section.render()


def _describe_inputs(inputs: Mapping[str, str | None]) -> str:
    section = _EvidenceSection("Files before the work", MAX_SHOWN_INPUTS, len(inputs))
    for path, text in inputs.items():
        section.add(f"## {_name(path)}", text)
    return section.render()


def _describe_changes(trace: Trace) -> str:
    changed = trace.changed_files
    section = _EvidenceSection("Files created, changed or removed", MAX_SHOWN_FILES, len(trace.removed) + len(changed))
    for path in trace.removed:
        section.add(f"## {_name(path)} was removed")
    for path, state in changed.items():
        section.add(f"## {_name(path)}, {state.size:,} bytes", state.text)
    return section.render()


def _describe_commands(runs: Sequence[CommandRun]) -> str:
    section = _EvidenceSection("Commands that were run afterwards to test the work", MAX_SHOWN_COMMANDS, len(runs))
    for run in runs:
        output = "\n".join(text for text in (run.stdout, run.stderr) if text)
        # On one line, and yet the same command: a line break in it is written out.
        command = run.command.strip().replace("\n", " ⏎ ")
        ending = run.ending if run.error else f"{run.ending} and printed"
        section.add(f"- {_name(command)} {_name(ending)}", output)
    return section.render()


def _describe_steps(events: Sequence[Event]) -> str:
    steps = [event for event in events if isinstance(event, _STEPS)]
    section = _EvidenceSection("What the assistant did", MAX_SHOWN_STEPS, len(steps))
    for event in steps:
        match event:
            case SkillInvoked(skill=skill):
                section.add(f"- the user invoked the skill {_name(skill)}")
            case SkillLoaded(skill=skill):
                section.add(f"- the skill {_name(skill)} was loaded")
            case ReferenceLoaded(skill=skill, reference=reference):
                section.add(f"- the reference {_name(reference)} of {_name(skill)} was loaded")
            case ToolCalled(name=name, arguments=arguments):
                section.add(f"- called the tool {_name(name)} with", str(arguments))
            case ToolReturned(name=name, text=text):
                section.add(f"- the tool {_name(name)} {_describe_ending(event)}", text)
            case Failed(message=message):
                section.add("- the turn ended with an error", message)
    return section.render()


def _describe_ending(event: ToolReturned) -> str:
    if event.refused:
        return "was refused"
    return "returned" if event.ok else "failed"


def _name(text: str) -> str:
    """Return a name for a heading, which is one line."""
    return clean_line(" ".join(replace_surrogates(hide_folders(text)).splitlines()))[:MAX_SHOWN_NAME]
