"""A tour in six stops: what a shelf does with the skills in a folder.

    make run                  or: python examples/tour.py

It needs no key and no network. In stop 4 the "model" is the list of calls in SESSION below; the answers are real.
"""

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel

from skillshelf import DirectorySource, PackageSource, Shelf, SkillDiscoverySkill, SkillError
from skillshelf.lint import check_path
from skillshelf.text.rendering import truncate_cells

HERE = Path(__file__).parent
# Colours in a terminal, plain text in a pipe.
CONSOLE = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 100)

SESSION: list[tuple[str, dict[str, str]]] = [
    ("list_skills", {}),
    ("search_skills", {"query": "fill in the tax form"}),
    ("load_skill_instructions", {"skill_name": "pdf-forms"}),
    ("load_skill_instructions", {"skill_name": "pdf-forms", "reference": "field-types.md"}),
    ("load_skill_instructions", {"skill_name": "pdf-forms", "reference": "../../../../etc/passwd"}),
    ("load_skill_instructions", {"skill_name": "pdf-forms", "reference": "field-types.md"}),
    ("load_skill_instructions", {"skill_name": "agentic-rag", "reference": "azure_search_config.md"}),
]


def main() -> None:
    sys.path.insert(0, str(HERE))  # for the package code_skills
    with tempfile.TemporaryDirectory() as folder:
        # A copy, because one stop edits files.
        workspace = Path(folder, "workspace")
        shutil.copytree(HERE / "workspace", workspace)
        # Shelf.open(workspace) would add the skills in your home folder; the tour should be the same for everyone.
        project = DirectorySource(workspace, "project")
        bundled = PackageSource("skillshelf.skill_authoring", name="bundled")
        shelf = Shelf([project, PackageSource("code_skills", name="code"), bundled])
        show_the_shelf(shelf)
        show_the_listing(shelf)
        show_a_search(shelf, "will this migration lock the users table")
        show_a_session(shelf)
        show_the_checks(workspace)
        show_a_reload(shelf, workspace)
        show_what_is_next()


def show_the_shelf(shelf: Shelf) -> None:
    heading("1. The skills on the shelf")
    for name, skill in shelf.catalog.items():
        count = len(skill.references)
        references = f"{count} reference{'s' * (count > 1)}" if count else ""
        description = escape(truncate_cells(skill.description, 58))
        say(f"[bold]{name:18}[/][cyan]{skill.source:9}[/]{references:14}{description}")
    say()
    for skill in shelf.catalog.shadowed:
        say(f"[yellow]shadowed[/]  {skill.qualified}: the project has a skill of the same name, which takes precedence")
    for note in shelf.catalog.diagnostics:
        if note.code == "yaml-repaired":
            say(f"[yellow]repaired[/]  {below(note.path)}: an unquoted colon in its description, line {note.line}")


def show_the_listing(shelf: Shelf) -> None:
    heading("2. What the model sees in every call: the Available Skills section of the system prompt")
    before, entries, after = parts(shelf.listing("catalog").text)
    CONSOLE.print(
        Panel(escape(f"{before}{entries[1]}\n{entries[2]}\n… {len(entries) - 2} more …\n{after}"), style="dim")
    )
    for words, listing, what in (
        ("catalog", shelf.listing("catalog"), "instructions are loaded on demand"),
        ("auto, 800 tokens", shelf.listing(budget=800), "those that fit the budget"),
        ("auto, the default", shelf.listing(), "those that fit into 4,000 tokens"),
    ):
        held = f"{len(listing.full)} of {len(entries)} in full"
        say(f"[cyan]{words:18}[/]{listing.tokens:6,} tokens   {held:15} {what}")


def show_a_search(shelf: Shelf, query: str) -> None:
    heading("3. Which skill fits?")
    say(f"[cyan]>>> shelf.search({query!r})[/]")
    for match in shelf.search(query, limit=3):
        say(f"[bold]{match.descriptor.name:18}[/]{match.score:.1f}   [dim]{', '.join(match.why)}[/]")


def show_a_session(shelf: Shelf) -> None:
    heading("4. A model uses the find-skills tools, within one turn")
    tools = {tool.name: tool for tool in SkillDiscoverySkill(shelf).tools()}
    with shelf.turn() as turn:
        for name, arguments in SESSION:
            written = ", ".join(escape(repr(value)) for value in arguments.values())
            say(f"[cyan]{name}[/]({written})")
            before = turn.hits
            try:
                answer = tools[name].call(arguments)
            except SkillError as error:
                say(f"[red]{type(error).__name__}[/]: {escape(str(error))}", indent=4)
                continue
            cached = "   [green]from the turn's cache[/]" if turn.hits > before else ""
            say(f"[dim]{escape(brief(answer))}[/]{cached}", indent=4)
    say()
    loaded = ", ".join(activation.reference or activation.skill for activation in turn.activations)
    say(f"The turn recorded the texts that entered the conversation: {loaded}.")


def show_the_checks(workspace: Path) -> None:
    heading("5. What an author should fix")
    for note in check_path(workspace):
        where = f"{below(note.path)}:{note.line}" if note.line else below(note.path)
        color = "red" if note.severity == "error" else "yellow"
        say(f"[bold]{where}[/]  [{color}]{note.severity}[/]")
        say(f"{note.code}: {escape(note.message)}", indent=4)
        say(f"[dim]fix: {escape(note.fix)}[/]", indent=4)


def show_a_reload(shelf: Shelf, workspace: Path) -> None:
    heading("6. Files change while the agent runs")
    skills = workspace / ".agents" / "skills"
    notes = skills / "release-notes" / "SKILL.md"
    triage = skills / "triage" / "SKILL.md"
    triage.parent.mkdir()
    triage.write_text("---\nname: triage\ndescription: Sort new issues by urgency.\n---\n\nRead each one twice.\n")
    notes.write_text(notes.read_text().replace("a changelog entry", "a changelog entry, a migration guide"))
    shutil.rmtree(skills / "weekly-report")
    say("[cyan]>>> shelf.reload()[/]")
    say(repr(shelf.reload()), indent=4)
    say()
    notes.write_text("---\nname: release-notes\ndescr")
    say("[cyan]>>> shelf.reload()[/]   [dim]# an editor has saved half of a file[/]")
    for note in shelf.reload().diagnostics:
        say(f"[yellow]{note.severity}[/]  {note.code}: {escape(note.message)}", indent=4)


def show_what_is_next() -> None:
    heading("Next")
    say("This tour needed the core alone. Everything else is an extra of the package:")
    say()
    for command, what in (
        ("pip install 'skillshelf[chat]'", "an agent in your terminal: skillshelf chat"),
        ("pip install 'skillshelf[mcp]'", "your skills in any MCP client: skillshelf serve"),
        ("pip install 'skillshelf[evals]'", "proof that a skill helps: skillshelf eval"),
        ("pip install 'skillshelf[all]'", "all of these, and the adapters for agent frameworks"),
        ("skillshelf demo", "a recorded chat: it needs no key, and nothing that is not installed yet"),
        ("make test", "lint, types and all tests (about 1.2 GB)"),
    ):
        say(f"[bold]{escape(f'{command:34}')}[/]{what}")
    say()
    say("README.md shows how to use it in your agent; docs/index.md has the guides, concepts and reference.")


# -- printing ----------------------------------------------------------------------------------------------------------


def heading(text: str) -> None:
    CONSOLE.print()
    CONSOLE.rule(f"[bold]{text}[/]", align="left", style="dim")


def say(text: str = "", indent: int = 0) -> None:
    CONSOLE.print(Padding.indent(text, indent) if indent else text)


def brief(answer: str | Mapping[str, list[dict[str, str]]]) -> str:
    """Return an answer as one line: its length and its beginning."""
    if isinstance(answer, str):
        return f"{len(answer):,} characters: {truncate_cells(' '.join(answer.split()), 50)}"
    return ", ".join(card["name"] for card in answer["skills"])


def parts(section: str) -> tuple[str, list[str], str]:
    """Split a listing in catalog form into the text before the skills, a line for each, and the text after."""
    start = section.index("<skill ")
    end = section.index("</available_skills>")
    return section[:start], section[start:end].splitlines(), section[end:].rstrip("\n")


def below(path: str) -> str:
    """Return a path relative to the temporary workspace."""
    return path.partition("/workspace/")[2]


if __name__ == "__main__":
    main()
