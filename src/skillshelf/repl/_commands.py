"""The commands a person types: what there is, and what each does."""

from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from skillshelf.agent import MODES, explain, rank, resolve, say
from skillshelf.agent.sessions import export_json, export_markdown
from skillshelf.errors import SessionError, SkillError
from skillshelf.repl._host import Host
from skillshelf.repl._models import model_names
from skillshelf.repl._views import (
    context_view,
    help_view,
    policy_view,
    resumed_view,
    sessions_view,
    skill_view,
    skills_view,
)
from skillshelf.slash import SKILL_PREFIX, Call, Candidate, Command, Commands, UnknownCommand, skill_commands
from skillshelf.text import clean, clean_line


def make_commands(host: Host) -> Commands[Host]:
    """The built-in ones, one for each skill of the moment, and those of installed packages."""
    commands: Commands[Host] = Commands(rank)

    def names(_: str) -> Sequence[Candidate]:
        return [Candidate(name, meta=skill.description) for name, skill in host.core.shelf.catalog.items()]

    def sessions(_: str) -> Sequence[Candidate]:
        found = host.core.sessions.list() if host.core.sessions else []
        return [Candidate(one.id, meta=one.title) for one in found]

    def modes(_: str) -> Sequence[Candidate]:
        return [Candidate(mode) for mode in MODES]

    def models(typed: str) -> Sequence[Candidate]:
        return model_names(host.core.model.name, typed)

    commands.register(
        "",
        [
            Command("help", "what can be typed here", lambda host, _: host.print(help_view(commands))),
            Command("new", "begin a new session, with the skills reloaded", _new),
            Command("skills", "what is on the shelf", lambda host, _: host.print(skills_view(host.core))),
            Command("context", "what fills the model's window", lambda host, _: host.print(context_view(host.core))),
            Command("model", "the model in use, or another one", _model, "[PROVIDER:MODEL]", models),
            Command("sessions", "earlier sessions in this workspace", _sessions),
            Command("resume", "go on with an earlier session", _resume, "[ID]", sessions),
            Command("export", "write this session to a file (.md or .json)", _export, "[FILE]"),
            Command("compact", "put a summary in place of what was said", _compact, "[WHAT MATTERS]"),
            Command("approve", "what may be done without asking", _approve, f"[{'|'.join(MODES)}]", modes),
            Command("exit", "leave", lambda host, _: host.leave()),
        ],
    )
    commands.register(
        "skills ",
        [
            Command("reload", "read the skills again from disk", _reload),
            Command("show", "a skill as the model would get it", _show, "NAME", names),
            Command("trust", "decide about skills that are new or changed here", lambda host, _: host.review()),
        ],
    )
    commands.register(SKILL_PREFIX, skill_commands(lambda: host.core.shelf.catalog, _invoke))
    for problem in commands.register_entry_points():
        host.print(Text(clean(problem), "yellow"))
    return commands


async def run_command(host: Host, commands: Commands[Host], text: str) -> bool:
    """Do what a line says, if it is a command; False for a message. Raises SkillError for what went wrong."""
    found = commands.find(text)
    match found:
        case None:
            return False
        case UnknownCommand():
            raise SkillError(str(found))
        case Call(command, arguments):
            try:
                waiting = command.run(host, arguments)
                if waiting is not None:
                    await waiting
            except SkillError:
                raise
            except Exception as error:  # whatever code of others does, the chat goes on
                typed = clean_line(text.strip().removesuffix(arguments).rstrip())
                raise SkillError(f"{typed} failed: {explain(error)[1]}") from error
    return True


def fresh_problems(commands: Commands[Host], told: set[tuple[str, str]]) -> list[str]:
    """What went wrong in code that lists or completes commands, and was not told yet; `told` grows by it."""
    fresh = [problem for problem in commands.problems.items() if problem not in told]
    told.update(fresh)
    return [f"The commands of {owner!r}: {said}" for owner, said in fresh]


async def _invoke(host: Host, name: str, arguments: str) -> None:
    await host.send(host.core.invoke_skill(name, arguments))


def _new(host: Host, _: str) -> None:
    delta = host.core.new_session()
    host.print(Text(f"A new session. {say(delta) if delta else ''}".strip(), "dim"))


def _reload(host: Host, _: str) -> None:
    host.print(say(host.core.reload_skills()))


def _show(host: Host, name: str) -> None:
    host.print(*skill_view(host.core, name.strip()))


def _model(host: Host, name: str) -> None:
    if name.strip():
        host.core.model = resolve(replace(host.settings, model=name.strip()))
    chosen, session = host.core.model, host.core.conversation.session
    if session:
        session.use(chosen.name)
    host.print(f"{chosen.name}, {chosen.window:,} tokens, {'with' if chosen.tools else 'without'} tools", chosen.note)


def _sessions(host: Host, _: str) -> None:
    host.print(sessions_view(host.core.sessions.list() if host.core.sessions else []))


def _resume(host: Host, session: str) -> None:
    notes = host.core.resume(session.strip())
    host.print(*notes, *resumed_view(host.core))


def _export(host: Host, file: str) -> None:
    session = host.core.conversation.session
    if session is None:
        raise SessionError("Nothing to export: this conversation is not kept in a session.")
    file = file.strip() or f"{session.id}.md"
    text = export_json(session) if file.endswith(".json") else export_markdown(session)
    try:
        with open(file, "x", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise SessionError(f"The session cannot be written to {file!r}: {error.strerror}. Name another file.") from None
    host.print(f"Written to {file}.")


async def _compact(host: Host, focus: str) -> None:
    try:
        with host.waiting("the model is asked for a summary"):
            done = await host.core.compact(focus)
    except SkillError:
        raise
    except Exception as error:  # the provider's; the history is as it was
        raise SkillError(f"The conversation was not shortened: {explain(error)[1]}") from None
    names = dict.fromkeys(one.name for one in done.kept_skills)
    kept = f" Still loaded: {', '.join(names)}." if names else ""
    host.print(f"Shortened from {done.before:,} to {done.after:,} tokens.{kept}", done.problem)


def _approve(host: Host, mode: str) -> None:
    if mode.strip():
        host.core.policy.set(mode.strip())
    host.print(*policy_view(host.core))
