"""The chat's slash commands."""

import asyncio
import base64
import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from functools import cache

from rich.text import Text

from skillshelf.errors import (
    CheckpointError,
    ModelUnavailableError,
    SessionError,
    SettingsError,
    SkillError,
    SkillNotFoundError,
)
from skillshelf.explain import describe_waiting, explain_unavailable
from skillshelf.files import make_private_folders, replace_file, state_home
from skillshelf.settings import CHOICES, load_settings, save_choice
from skillshelf.shelf.workspace_skills import MarkdownCommand, describe_delta
from skillshelf.slash import (
    MAX_SUGGESTIONS,
    SKILL_PREFIX,
    Command,
    CommandCall,
    Commands,
    NameIndex,
    Suggestion,
    UnknownCommand,
    expand_command,
    markdown_commands,
    skill_commands,
)
from skillshelf.sources.entry_points import load_extension
from skillshelf.text import clean, clean_line, count_noun
from skillshelf.trust import name_command
from skillshelf_agent import DEFAULTS, MODES, WRITING, explain_error, list_offered_models, resolve
from skillshelf_agent.events import Event, Notice, ToolCalled, ToolReturned
from skillshelf_agent.sessions import SessionInfo, export_json, export_markdown, last_answer
from skillshelf_agent.terminal._face import ChatFace
from skillshelf_agent.terminal._jobs import register_job_commands
from skillshelf_agent.terminal._rules import make_rule_commands
from skillshelf_agent.terminal._screen import view_resumed
from skillshelf_agent.terminal._views import (
    show_changes,
    show_why_not,
    view_context,
    view_cost,
    view_doubtful,
    view_help,
    view_paths,
    view_policy,
    view_servers,
    view_skill,
    view_skills,
    view_undone,
)

_INIT_REQUEST = """\
Write an AGENTS.md for this folder: what a coding agent must know to work here, and could not guess.

Look first: the README, the build and test configuration, the layout of the sources, and the existing AGENTS.md or \
CLAUDE.md, if there is one. Keep of it what is right, and correct what is not. Say in at most 60 lines: what the \
project is, the commands to build, test (also a single test) and lint, where things are, and rules that the code \
follows but does not state. Leave out what any developer knows, and anything you have not seen in the files."""

LEAVING_WORDS = frozenset({"exit", "quit"})
"""Lines that leave a terminal, as they leave a shell. With a space before or anything after, they are messages."""
_DEFAULT_EFFORT = "default"
"""What `/effort` takes for the effort that the provider chooses."""
_WHOLE_SESSION = "session"
"""What `/diff` takes to show all turns."""
_MAX_COUNTED = 1_000
"""Skills whose tokens the menu shows. Counting reads each file once, which takes a tenth of a second for so many."""


def make_commands(face: ChatFace) -> Commands[ChatFace]:
    """Return the built-in commands, one for each skill on the shelf, and those of installed packages."""

    def rank(query: str, names: NameIndex, limit: int = MAX_SUGGESTIONS) -> list[int]:
        from skillshelf_agent.terminal._prompt import (
            rank_with_typos,  # brings prompt_toolkit, which a pipe has no use for
        )

        return rank_with_typos(query, names, limit)

    commands: Commands[ChatFace] = Commands(rank)

    def complete_skill(_: str) -> Sequence[Suggestion]:
        return [Suggestion(name, meta=skill.summary) for name, skill in face.core.shelf.catalog.items()]

    def complete_choice(typed: str) -> Sequence[Suggestion]:
        if " " in typed.lstrip():
            return [Suggestion(choice) for choice in (*CHOICES, "auto")]
        off = [Suggestion(candidate.found.name, meta="off") for candidate in face.core.shelf.chosen.off]
        return [*complete_skill(typed), *off]

    def complete_session(typed: str) -> Sequence[Suggestion]:
        sessions = _list_other_sessions(face)
        found = [Suggestion(session.id, meta=session.about) for session in sessions if not session.problem]
        return filter_by_words(found, typed)

    def complete_message(typed: str) -> Sequence[Suggestion]:
        numbered = enumerate(face.core.list_sent(), 1)
        found = [Suggestion(str(number), meta=" ".join(sent.text.split())) for number, sent in numbered]
        return filter_by_words(found[::-1], typed)

    def complete_scope(_: str) -> Sequence[Suggestion]:
        return [Suggestion(_WHOLE_SESSION)]

    def complete_mode(_: str) -> Sequence[Suggestion]:
        return [Suggestion(mode) for mode in MODES]

    def complete_server(_: str) -> Sequence[Suggestion]:
        return [Suggestion(server.name, meta=server.state) for server in face.core.servers.servers]

    offered: list[str] = []

    def complete_model(typed: str) -> Sequence[Suggestion]:
        return list_models(face.core.model.name, typed, offered)

    async def choose_model(face: ChatFace, name: str) -> None:
        _choose_model(face, find_offered_model(name.strip(), offered))
        if name.strip():
            return
        try:
            with face.waiting("the provider is asked for its models"):
                offered[:] = await list_offered_models(face.core.model)
        except ModelUnavailableError as error:
            face.print(Text(str(error), "yellow"))
        else:
            face.offer_models(offered)

    def complete_effort(_: str) -> Sequence[Suggestion]:
        return [Suggestion(effort) for effort in (*face.core.model.efforts, _DEFAULT_EFFORT)]

    commands.register(
        "",
        [
            Command("help", "what you can type here", lambda face, _: face.print(view_help(commands))),
            Command("new", "begin a new session, with the skills reloaded", _start_session),
            Command("clear", "the same as /new", _start_session),
            Command("init", "let the agent write an AGENTS.md for this folder", _write_guidance, "[WHAT MATTERS]"),
            Command("skills", "the skills on the shelf", lambda face, _: face.print(view_skills(face.core))),
            Command("why-not", "why the model did not use a skill", show_why_not, "[NAME [REQUEST]]", complete_skill),
            Command("context", "what fills the model's window", lambda face, _: face.print(view_context(face.core))),
            Command("model", "choose another model", choose_model, "[PROVIDER:MODEL]", complete_model),
            Command("effort", "how much the model reasons", _set_effort, "[EFFORT]", complete_effort),
            Command("cost", "what this session has cost, by model", lambda face, _: face.print(*view_cost(face.core))),
            Command("undo", "take back the files that the last turn changed", _undo, "[FILE]"),
            Command("redo", "bring back the turn that was taken back", _redo),
            Command("rewind", "go back to an earlier message, to edit it", _rewind, "[NUMBER]", complete_message),
            Command("diff", "what the last turn changed, or the whole session", _diff, "[session]", complete_scope),
            Command("fork", "go on in a copy of this session", _fork),
            Command("sessions", "choose an earlier session of this workspace", _offer_sessions),
            Command("resume", "go on with an earlier session", _resume, "[ID]", complete_session),
            Command("rename", "name this session", _rename, "NAME"),
            Command("export", "write this session to a file (.md or .json)", _export, "[FILE]"),
            Command("learn", "write down what just happened as a skill, with an eval case", learn, "[NAME]"),
            Command("copy", "copy the last answer to the clipboard", copy_answer),
            Command("compact", "replace the conversation by a summary", _compact, "[WHAT MATTERS]"),
            Command("approve", "what may be done without asking", _set_policy, f"[{'|'.join(MODES)}]", complete_mode),
            Command("mcp", "the MCP servers and their tools", lambda face, _: face.print(view_servers(face.core))),
            Command("exit", "leave", lambda face, _: face.leave()),
            Command("quit", "the same as /exit", lambda face, _: face.leave()),
        ],
    )
    commands.register(
        "skills ",
        [
            Command("reload", "read the skills again from disk", _reload),
            Command("show", "a skill as the model would get it", _show_skill, "NAME", complete_skill),
            Command("set", "how much the model sees of a skill", _set_choice, "NAME CHOICE", complete_choice),
            Command("add", "install skills of others, after a review", _add_skills, "SOURCE [NAME …]"),
            Command("trust", "decide about skills that are new or changed here", lambda face, _: face.review()),
            Command("mine", "declare this repository your own: its skills apply as they change", _declare_mine),
            Command("not-mine", "review this repository like any other again", _disown),
        ],
    )
    commands.register("approve ", make_rule_commands(face))
    register_job_commands(commands, face)
    commands.register(
        "mcp ", [Command("restart", "start an MCP server again", _restart_server, "NAME", complete_server)]
    )

    def count_tokens(name: str) -> int | None:
        shelf = face.core.shelf
        return shelf.count_instructions(name) if len(shelf.catalog) <= _MAX_COUNTED else None

    commands.register(SKILL_PREFIX, skill_commands(lambda: face.core.shelf.catalog, _invoke_skill, count_tokens))
    for problem in commands.register_entry_points():
        face.print(Text(clean(problem), "yellow"))
    taken = commands.table().entries
    commands.register(
        "", markdown_commands(lambda: face.core.skills.commands, _send_command, face.core.shelf.counter, taken)
    )
    return commands


async def run_command(face: ChatFace, commands: Commands[ChatFace], text: str) -> bool:
    """Run the command that a line holds, and return False if the line is a message. Raises SkillError on failure."""
    resolved = commands.find(text)
    match resolved:
        case None:
            return False
        case UnknownCommand(typed=typed):
            unknown = explain_unavailable(face.core.shelf, typed.removeprefix(SKILL_PREFIX), "/skills")
            if unknown.reason:
                raise unknown
            waiting = (name_command(item.key) for item in face.core.skills.pending if item.kind == "command")
            if typed in waiting:
                raise SkillError(f"{describe_waiting(f'/{typed}', 1)}. /skills trust shows it and asks.")
            raise SkillError(str(resolved))
        case CommandCall(command, arguments):
            try:
                running = command.run(face, arguments)
                if running is not None:
                    await running
            except SkillError:
                raise
            except Exception as error:  # the chat survives the code of others
                typed = clean_line(text.strip().removesuffix(arguments).rstrip())
                raise SkillError(f"{typed} failed: {explain_error(error).message}") from error
    return True


def find_new_problems(commands: Commands[ChatFace], reported: set[tuple[str, str]]) -> list[str]:
    """Return new problems in code that lists or completes commands, and add them to `reported`."""
    problems = [problem for problem in commands.problems.items() if problem not in reported]
    reported.update(problems)
    return [f"The commands of {owner!r}: {message}" for owner, message in problems]


def list_models(current: str, typed: str, offered: Sequence[str] = ()) -> Sequence[Suggestion]:
    """Return what can be typed after `/model`. `offered` are the models that the provider in use has listed.

    Without a provider: the model in use, those offered, a default for each provider. With one: all its models.
    """
    provider, colon, _ = typed.partition(":")
    if colon:
        known = [name for name in _list_known_models() if name.startswith(f"{provider}:")]
        return [Suggestion(name) for name in [name for name in offered if typed in name] or known]

    names: dict[str, str] = {current: ""}
    names |= dict.fromkeys(offered, "")
    names |= dict.fromkeys(DEFAULTS.values(), "its provider's all-round model")
    names |= {f"{name.partition(':')[0]}:": "" for name in _list_known_models()}
    names[current] = "in use"
    return [Suggestion(name, meta=meta) for name, meta in names.items() if name != "scripted"]


def find_offered_model(typed: str, offered: Sequence[str]) -> str:
    """Return the model that was meant by a part of its name; what was typed if no listed name has that part.

    A name with its provider is taken as it is. Raises SettingsError if several models could be meant.
    """
    found = [name for name in offered if typed and typed in name]
    is_name = any(typed.startswith(f"{name.partition(':')[0]}:") or name.endswith(f":{typed}") for name in found)
    if is_name or not found:
        return typed
    if len(found) > 1:
        raise SettingsError(f"Several models have {typed!r} in their names: {', '.join(found)}.")
    return found[0]


def filter_by_words(choices: Sequence[Suggestion], typed: str) -> Sequence[Suggestion]:
    """Return the choices that have every typed word, and would replace them all: the one that was meant first."""
    words = typed.casefold().split()
    found = [
        replace(choice, start=-len(typed))
        for choice in choices
        if all(word in f"{choice.text} {choice.meta}".casefold() for word in words)
    ]
    meant = " ".join(words)
    return sorted(found, key=lambda choice: (choice.text != meant, not choice.meta.casefold().startswith(meant)))


@cache
def _list_known_models() -> tuple[str, ...]:
    from pydantic_ai.models import known_model_names

    return tuple(sorted(name for name in known_model_names() if ":" in name))


async def _invoke_skill(face: ChatFace, name: str, arguments: str) -> None:
    await face.send(face.core.invoke_skill(name, arguments, await face.attach(arguments)))


async def _send_command(face: ChatFace, command: MarkdownCommand, arguments: str) -> None:
    events = face.core.process_message(expand_command(command, arguments), await face.attach(arguments))
    note = ""
    if command.model:
        asked = f"/{command.name} asks for the model {command.model}, which a command cannot choose"
        note = f"{asked}: {face.core.model.name} answers."
    await face.send(_begin_with(note, events))


async def _begin_with(note: str, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    if note:
        yield Notice(note)
    async for event in events:
        yield event


def _start_session(face: ChatFace, _: str) -> None:
    delta = face.core.new_session()
    changes = describe_delta(delta) if delta else ""
    face.print(Text(f"A new session. {changes}".strip(), "dim"))


async def _write_guidance(face: ChatFace, focus: str) -> None:
    request = _INIT_REQUEST
    if focus.strip():
        request += f"\n\nWhat matters most: {focus.strip()}"
    await face.send(face.core.process_message(request))


def _reload(face: ChatFace, _: str) -> None:
    delta = face.core.reload_skills()
    face.print(face.core.skills.describe_reload(delta), *face.core.skills.take_notices())
    face.note_pending_shown()


async def _add_skills(face: ChatFace, typed: str) -> None:
    from skillshelf_agent.terminal._installing import add_skills  # what fetches is imported only if it is used

    await add_skills(face, typed)


async def _declare_mine(face: ChatFace, _: str) -> None:
    if face.core.skills.is_own:
        face.print("This repository is your own already. /skills not-mine takes that back.")
        return
    await face.declare_mine()


def _disown(face: ChatFace, _: str) -> None:
    was_own = face.core.skills.disown()
    face.core.renew_listing()
    if was_own:
        face.print("This repository is reviewed like any other again.")
    else:
        face.print("This repository was not declared your own, so nothing changes.")


def _show_skill(face: ChatFace, name: str) -> None:
    face.print(*view_skill(face.core, name.strip()))


def _set_choice(face: ChatFace, typed: str) -> None:
    name, _, word = typed.strip().rpartition(" ")
    name = name.strip()
    choice = next((choice for choice in CHOICES if choice == word), None)
    if not name or (choice is None and word != "auto"):
        raise SettingsError(f"Give the name of a skill, and then {', '.join(CHOICES)} or auto.")

    shelf = face.core.shelf
    try:
        shelf.chosen.check(name, choice, shelf.catalog)
    except SkillNotFoundError:
        raise explain_unavailable(shelf, name, "/skills") from None
    face.core.choose_skills(save_choice(name, choice))
    face.print(f"{name} is set to {choice}." if choice else f"Your choice for {name} is removed.")


def _choose_model(face: ChatFace, name: str) -> None:
    if name:
        face.core.use_model(resolve(replace(face.settings, model=name)))
    model = face.core.model
    face.print(f"{model.name}, {model.window:,} tokens", model.note)


def _set_effort(face: ChatFace, typed: str) -> None:
    model = face.core.model
    efforts = model.efforts
    if not efforts:
        face.print(f"{model.name} has no setting for how much it reasons.")
        return
    wanted = typed.strip()
    if wanted:
        effort = next((effort for effort in efforts if effort == wanted), None)
        if effort is None and wanted != _DEFAULT_EFFORT:
            choices = ", ".join([*efforts, _DEFAULT_EFFORT])
            raise SettingsError(f"Unknown effort {wanted!r}. Choose one of: {choices}.")
        face.core.model = replace(model, effort=effort or "")
    present = face.core.model.effort or _DEFAULT_EFFORT
    face.print(f"Effort: {present}.", Text(f"Choices: {', '.join([*efforts, _DEFAULT_EFFORT])}", "dim"))


async def _undo(face: ChatFace, file: str) -> None:
    file = file.strip()
    commands = not file and await _ask_about_commands(face)
    with face.waiting("files are brought back"):
        undone = await asyncio.to_thread(face.core.undo, file, commands=commands)
    face.print(*view_undone(undone, "Took back"))


async def _ask_about_commands(face: ChatFace) -> bool:
    """Ask whether to take back what changed while a command ran: only the user knows if it is their own edit."""
    changes = await asyncio.to_thread(face.core.list_changes)
    paths = [change.path for change in changes if change.in_command]
    if not paths:
        return False
    face.print(*view_doubtful(paths))
    return await face.confirm("Take these back too?")


async def _redo(face: ChatFace, _: str) -> None:
    with face.waiting("files are brought back"):
        undone = await asyncio.to_thread(face.core.redo)
    face.print(*view_undone(undone, "Brought back"))


async def _rewind(face: ChatFace, number: str) -> None:
    messages = face.core.list_sent()
    if not messages:
        raise SessionError("Nothing was said in this session yet.")
    number = number.strip()
    if not number:
        face.offer_messages(messages)
        return
    if not number.isdecimal() or not 0 < int(number) <= len(messages):
        raise SessionError(f"Give the number of a message, 1 to {len(messages)}. /rewind lists them.")

    message = messages[int(number) - 1]
    files = False
    commands = False
    changes = await asyncio.to_thread(face.core.list_changes, since=message)
    if changes:
        face.print(*view_paths("Files changed since then:", [change.path for change in changes]))
        files = await face.confirm("Take these back, too? Ctrl+C leaves everything as it is.")
    doubtful = [change.path for change in changes if change.in_command]
    if files and doubtful:
        face.print(*view_doubtful(doubtful))
        commands = await face.confirm("Take these back too?")
    with face.waiting("the conversation goes back"):
        undone = await asyncio.to_thread(face.core.rewind, message, files=files, commands=commands)

    left = count_noun(len(messages) - int(number) + 1, "message")
    stay = " The files stay as they are." if changes and not files else ""
    face.print(Text(f"Went back: {left} left the conversation.{stay}", "dim"))
    for turn in undone:
        face.print(*view_undone(turn, "Took back"))
    face.offer_text(message.text)


async def _diff(face: ChatFace, scope: str) -> None:
    scope = scope.strip()
    if scope not in ("", _WHOLE_SESSION):
        raise CheckpointError(f"/diff shows the last turn, and /diff {_WHOLE_SESSION} all of them. It takes no file.")
    changes = await asyncio.to_thread(face.core.list_changes, whole_session=bool(scope))
    show_changes(face, changes)


def _fork(face: ChatFace, _: str) -> None:
    original = face.core.fork()
    face.print(
        f"You are now in {face.core.conversation.id}, a copy of this session. The original stays as it is: "
        f"/resume {original}. /undo there takes back the turns so far, and here those from now on."
    )


def _list_other_sessions(face: ChatFace) -> Sequence[SessionInfo]:
    sessions = face.core.sessions.list() if face.core.sessions else []
    return [session for session in sessions if session.id != face.core.conversation.id]


def _offer_sessions(face: ChatFace, _: str) -> None:
    others = _list_other_sessions(face)
    if not others:
        face.print("There is no other session in this workspace yet.")
        return
    face.offer_sessions(others)


def _resume(face: ChatFace, session: str) -> None:
    session = session.strip()
    if not session:
        _offer_sessions(face, "")
        return
    notes = face.core.resume(session)
    face.print(*notes, *_recall_settings(face), *view_resumed(face.core))


def _recall_settings(face: ChatFace) -> Iterator[str]:
    """Go on with the settings of the session that was resumed. Yield what the user should know about that."""
    assert face.core.sessions is not None
    recalled = face.core.sessions.recall_settings(face.core.conversation.id)
    if not recalled:
        return
    chosen = load_settings({**recalled, **face.options})
    face.settings = replace(face.settings, model=chosen.model, base_url=chosen.base_url, policy=chosen.policy)
    try:
        face.core.model = resolve(face.settings)
    except SkillError as error:
        yield f"{error} {face.core.model.name} answers instead."
    policy = face.core.gate.policy
    if policy.mode != chosen.policy:
        policy.set(chosen.policy)
        yield f"The policy is {chosen.policy}, as in that session."


def _rename(face: ChatFace, name: str) -> None:
    name = " ".join(name.split())
    session = face.core.conversation.session
    if session is None:
        raise SessionError("This conversation is not kept in a session.")
    if not name:
        raise SessionError("Give a name: /rename fix the login")
    session.rename(name)
    face.print(Text(f"This session is now called {clean_line(name)}.", "dim"))


def _export(face: ChatFace, file: str) -> None:
    session = face.core.conversation.session
    if session is None:
        raise SessionError("Nothing to export: this conversation is not kept in a session.")

    file = file.strip()
    if file and not file.endswith((".md", ".json")):  # a browser would run what a tool returned as HTML
        raise SessionError(f"A session is written as Markdown or JSON. Name a file such as {file}.md or {file}.json.")
    text = export_json(session) if file.endswith(".json") else export_markdown(session)
    try:
        if file:
            with open(file, "x", encoding="utf-8") as out:
                out.write(text)
        else:
            file = _find_export_path(session.id)
            replace_file(file, text.encode())
    except OSError as error:
        raise SessionError(f"The session cannot be written to {file!r}: {error.strerror}. Name another file.") from None
    face.print(f"Written to {file}.")


def _find_export_path(session_id: str) -> str:
    """Return where a session goes if the user names no file: not into the workspace. Raises SessionError, OSError."""
    home = state_home()
    if home is None:
        raise SessionError("There is no home folder to write to. Name a file: /export session.md")
    folder = os.path.join(home, "exports")
    make_private_folders(folder)
    return os.path.join(folder, f"{session_id}.md")


async def _compact(face: ChatFace, focus: str) -> None:
    try:
        with face.waiting("the model is asked for a summary"):
            compacted = await face.core.compact(focus)
    except SkillError:
        raise
    except Exception as error:  # the provider's; the history is as it was
        raise SkillError(f"The conversation was not shortened: {explain_error(error).message}") from None

    if not compacted.is_shorter:
        face.print(f"There is nothing to shorten: the conversation has {compacted.before:,} tokens.", compacted.problem)
        return
    message = f"Shortened from {compacted.before:,} to {compacted.after:,} tokens."
    names = dict.fromkeys(skill.name for skill in compacted.kept_skills)
    if names:
        message += f" Still loaded: {', '.join(names)}."
    face.print(message, compacted.problem)


async def _restart_server(face: ChatFace, name: str) -> None:
    with face.waiting(f"waiting for the MCP server {clean_line(name)}"):
        await face.core.servers.restart(name.strip())
        await face.core.servers.wait_until_settled()
    face.print(view_servers(face.core))


def _set_policy(face: ChatFace, mode: str) -> None:
    if mode.strip():
        face.core.gate.policy.set(mode.strip())
    face.print(*view_policy(face.core))


_SKILLS = ".agents/skills"
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
        from skillshelf.lint import check_name, suggest_name

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
    from skillshelf.lint import check_skill

    problems: list[str] = []
    name = os.path.basename(folder)
    for fault in check_skill(folder):
        fix = f" Fix: {fault.fix}." if fault.fix else ""
        problems.append(f"{name}/{os.path.basename(fault.path)}: {fault.message}.{fix}")
    if not os.path.isfile(os.path.join(folder, "evals", "cases.yaml")):
        return [*problems, f"{name}/evals/cases.yaml was not written."]
    list_cases = load_extension("skillshelf.evals", "list_cases")
    if list_cases is None:
        return problems
    cases, faults = list_cases([folder])
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


_MAX_ENCODED = 74_994
"""Terminals ignore longer texts: this is the limit of the strictest ones."""


def copy_answer(face: ChatFace, _: str) -> None:
    """Put the last answer onto the clipboard. Raises SkillError if there is none, or if it is too long."""
    answer = last_answer(face.core.conversation.messages)
    if not answer:
        raise SkillError("There is no answer to copy yet.")
    encoded = base64.b64encode(answer.encode("utf-8", "replace")).decode()
    if len(encoded) > _MAX_ENCODED:
        raise SkillError(
            f"The last answer is too long for a terminal's clipboard ({len(answer):,} characters). "
            "/export writes the session to a file."
        )

    # OSC 52: the terminal itself has the clipboard, so this works over ssh, too. It does not say whether it did it.
    face.write_escape(f"\x1b]52;c;{encoded}\x07")
    size = count_noun(len(answer), "character")
    face.print(
        f"The last answer ({size}) was given to your terminal for the clipboard.",
        Text("If it is not there, your terminal does not allow that: /export writes the session to a file.", "dim"),
    )
