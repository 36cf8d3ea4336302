"""Test slash commands: which inputs are commands, which command they run, and the message that a skill becomes."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillshelf import MemorySource, Shelf, SkillDescriptor
from skillshelf.errors import SettingsError
from skillshelf.slash import (
    SKILL_PREFIX,
    AppliedSkill,
    Command,
    CommandCall,
    Commands,
    Register,
    SlashMessage,
    UnknownCommand,
    apply_message,
    complete,
    parse_command,
    parse_invocation,
    read_message,
    skill_commands,
)
from skillshelf.slash._skills import fill_placeholders, split_words

Calls = list[tuple[str, str]]


def do_nothing(host: Calls, arguments: str) -> None:
    """Run a command that does nothing."""


def command(name: str, usage: str = "", summary: str = "") -> Command[Calls]:
    return Command(name, summary, do_nothing, usage)


def invoke(host: Calls, name: str, arguments: str) -> None:
    host.append((name, arguments))


def skill(name: str, more: str = "") -> str:
    return f"---\nname: {name}\ndescription: About {name}.\n{more}---\nDo it.\n"


def make_shelf(*names: str) -> tuple[MemorySource, Shelf]:
    source = MemorySource({name: skill(name) for name in names})
    return source, Shelf([source])


def make_commands(shelf: Shelf) -> Commands[Calls]:
    commands: Commands[Calls] = Commands()
    commands.register("", [command("help"), command("skills"), command("model", "NAME")])
    commands.register("skills ", [command("reload"), command("show", "NAME")])
    commands.register("skills:", skill_commands(lambda: shelf.catalog, invoke))
    return commands


@pytest.fixture
def commands() -> Commands[Calls]:
    return make_commands(make_shelf("pdf", "deploy-site", "My Skill", "reload")[1])


@pytest.mark.parametrize(
    ("text", "slash"),
    [
        ("/help", SlashMessage("help", "")),
        ("/skills:pdf fill a.pdf", SlashMessage("skills:pdf", "fill a.pdf")),
        ("/skills:pdf one\n  two\n", SlashMessage("skills:pdf", "one\n  two\n")),
        ("/skills:pdf\n    indented", SlashMessage("skills:pdf", "    indented")),
        ("/skills:../x", SlashMessage("skills:../x", "")),
        ("/skills:", SlashMessage("skills:", "")),
        ("/归档 a", SlashMessage("归档", "a")),
        ("/usr/bin is missing", None),
        ("/a/b/g", None),
        ("/ foo", None),
        ("/", None),
        ("//comment", None),
        ("/*", None),
        (" /help", None),
        ("help", None),
        ("", None),
    ],
)
def test_commands_are_distinguished_from_messages(text: str, slash: SlashMessage | None) -> None:
    """A command is a slash and a word. A path, a lone slash and text after a space are messages."""
    assert parse_command(text) == slash


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("/help", "help", ""),
        ("/skills", "skills", ""),
        ("/skills reload", "reload", ""),
        ("/skills  show   pdf x", "show", "pdf x"),
        ("/model some thing", "model", "some thing"),
        ("/skills:pdf a\n b ", "pdf", "a\n b "),
        ("/skills:My Skill with this", "My Skill", "with this"),
        ("/skills:reload", "reload", ""),
    ],
)
def test_the_longest_matching_name_wins(commands: Commands[Calls], text: str, name: str, arguments: str) -> None:
    """Names may have spaces; the text after the name stays as typed."""
    call = commands.find(text)
    assert isinstance(call, CommandCall)
    assert (call.command.name, call.arguments) == (name, arguments)


def test_a_skill_may_have_the_name_of_a_subcommand(commands: Commands[Calls]) -> None:
    """`/skills:reload` runs the skill and `/skills reload` the command."""
    calls: Calls = []
    for text in ("/skills:reload now", "/skills reload"):
        call = commands.find(text)
        assert isinstance(call, CommandCall)
        call.command.run(calls, call.arguments)
    assert calls == [("reload", "now")]


def test_a_whole_name_comes_before_longer_ones() -> None:
    """Even if what has to be typed for it is longer."""
    commands: Commands[Calls] = Commands()
    commands.register("", [command("models")])
    commands.register("skills:", skill_commands(lambda: make_shelf("model")[1].catalog, invoke))
    assert [suggestion.text for suggestion in complete(commands, "/model")] == ["/skills:model", "/models"]


def test_a_skill_runs_by_its_name_alone_if_no_command_has_it() -> None:
    """`/help` stays the command, and `/skills:help` is the skill. The arguments are those of the long form."""
    source = MemorySource({name: skill(name) for name in ("pdf", "help", "My Skill")})
    below = MemorySource({"pdf": skill("pdf")}, "user")
    commands = make_commands(Shelf([source, below]))
    calls: Calls = []
    for text in ("/pdf a\n b ", "/My Skill x", "/pdf@user", "/help me", "/skills:help me"):
        call = commands.find(text)
        assert isinstance(call, CommandCall)
        call.command.run(calls, call.arguments)
    assert calls == [("pdf", "a\n b "), ("My Skill", "x"), ("pdf@user", ""), ("help", "me")]


@pytest.mark.parametrize(
    ("text", "typed", "nearest"),
    [
        ("/skils", "skils", ("/skills", "/skills:My Skill")),
        ("/pfd x", "pfd", ("/skills:pdf",)),
        ("/HELP", "HELP", ("/help",)),
        ("/skills:pfd x", "skills:pfd", ("/skills:pdf",)),
        ("/skills:../x", "skills:../x", ()),
        ("/skills: pdf", "skills:", ("/skills:My Skill", "/skills:deploy-site", "/skills:pdf")),
        ("/skills:", "skills:", ("/skills:My Skill", "/skills:deploy-site", "/skills:pdf")),
        ("/skills relaod now", "skills relaod", ("/skills reload",)),
        ("/zzzzzz", "zzzzzz", ()),
    ],
)
def test_an_unknown_command_suggests_close_names(
    commands: Commands[Calls], text: str, typed: str, nearest: tuple[str, ...]
) -> None:
    """Suggestions match the bare name within the given prefix."""
    assert commands.find(text) == UnknownCommand(typed, nearest)


def test_the_message_about_an_unknown_command_helps(commands: Commands[Calls]) -> None:
    """It repeats the input, suggests commands, and says how to send it anyway."""
    way_out = "(To send this as a message, begin with a space.)"
    assert [str(commands.find(text)) for text in ("/skils", "/skills:../x", "/skills:")] == [
        f"Unknown command /skils. Did you mean /skills, /skills:My Skill? {way_out}",
        f"Unknown command /skills:../x. Type / and press Tab to see them all. {way_out}",
        f"A name is missing after /skills:. Did you mean /skills:My Skill, /skills:deploy-site, /skills:pdf? {way_out}",
    ]


def test_a_long_or_hostile_name_is_shown_short_and_clean(commands: Commands[Calls]) -> None:
    """Ten thousand letters and an escape sequence do not reach the terminal."""
    for text in ("/skills:" + "a" * 10_000, "/x\x1b[2J\u202e" + "y" * 100):
        message = str(commands.find(text))
        assert len(message) < 200
        assert message.isprintable()


@given(st.text(alphabet=st.sampled_from("/skils:pdf@ \n\t\"'\\.é\x00\x1b"), max_size=40) | st.text())
def test_finding_a_command_never_fails(text: str) -> None:
    """Any input is a command, an unknown command or a message."""
    result = _COMMANDS.find(f"/{text}")
    assert (result is None) == (parse_command(f"/{text}") is None)
    assert str(result)


_COMMANDS = make_commands(make_shelf("pdf", "deploy-site", "My Skill")[1])


def test_skills_are_current_right_after_a_reload() -> None:
    """Added, removed, shadowed and user-hidden skills are all up to date."""
    source = MemorySource({"pdf": skill("pdf")})
    below = MemorySource({"pdf": skill("pdf"), "own": skill("own", "user-invocable: false\n")}, "user")
    both = Shelf([source, below])
    commands = make_commands(both)
    assert skills_in(commands) == ["pdf", "pdf@user"]
    source.put("csv", skill("csv"))
    source.remove("pdf")
    both.reload()
    assert skills_in(commands) == ["csv", "pdf"]


def skills_in(commands: Commands[Calls]) -> list[str]:
    return [entry.command.name for entry in commands.table().entries.values() if entry.prefix == "skills:"]


def test_an_unchanged_skill_keeps_its_command() -> None:
    """A reload makes new commands only for changed skills."""
    source, shelf = make_shelf("pdf", "csv")
    listed = skill_commands(lambda: shelf.catalog, invoke)
    csv, pdf = listed()
    source.put("csv", skill("csv", "license: MIT\n"))
    shelf.reload()
    now = listed()
    assert (now[0] is csv, now[1] is pdf) == (False, True)


def test_a_skill_shows_its_arguments_and_cost() -> None:
    """It uses the author's hint, or else the declared names. The cost is the shelf's count of the instructions."""
    hint = skill("hint", 'argument-hint: "[file]"\n') + "some words " * 400
    shelf = Shelf([MemorySource({"hint": hint, "named": skill("named", "arguments: from to\n")})])
    listed = skill_commands(lambda: shelf.catalog, invoke, shelf.count_instructions)()
    usages = [(command.usage, command.cost) for command in listed]
    counts = [shelf.counter(shelf.instructions(name)) for name in ("hint", "named")]
    assert usages == [("[file]", counts[0]), ("[from] [to]", counts[1])]
    assert counts[0] > 400

    uncounted = skill_commands(lambda: shelf.catalog, invoke)()
    assert [command.cost for command in uncounted] == [None, None]


def test_a_taken_name_is_refused_and_both_owners_are_named(commands: Commands[Calls]) -> None:
    """None of the registration's commands are added. A dynamic list counts with its current names."""
    before = list(commands.table().entries)
    with pytest.raises(SettingsError, match="/help is a command of 'skillshelf'; 'mine' cannot add it"):
        commands.register("", [command("other"), command("help")], owner="mine")
    with pytest.raises(SettingsError, match="/skills:pdf is a command of 'skillshelf'"):
        commands.register("skills:", [command("pdf")], owner="mine")
    with pytest.raises(SettingsError, match="/a is a command of 'mine'"):
        commands.register("", [command("a"), command("a")], owner="mine")
    assert list(commands.table().entries) == before


@pytest.mark.parametrize(
    ("prefix", "name"), [("", "a/b"), ("", ""), ("", " x"), ("", "x "), ("x:", "\x1b"), ("-", "x")]
)
def test_a_name_that_cannot_be_typed_is_refused(prefix: str, name: str) -> None:
    """Such a command would be listed, but never found."""
    commands: Commands[Calls] = Commands()
    with pytest.raises(SettingsError, match="cannot be typed"):
        commands.register(prefix, [command(name)])


def test_the_first_owner_keeps_a_name_that_appears_twice_later() -> None:
    """A dynamic list that gains another's name does not take it over."""
    growing: list[Command[Calls]] = []
    commands: Commands[Calls] = Commands()
    commands.register("", [command("deploy", summary="first")])
    commands.register("", lambda: growing, owner="late")
    growing += command("deploy", summary="second"), command("new")
    entries = [(entry.spelling, entry.owner) for entry in commands.table().entries.values()]
    assert entries == [("deploy", "skillshelf"), ("new", "late")]


def test_a_failing_list_is_reported_and_the_rest_works(commands: Commands[Calls]) -> None:
    """A fault in an extension does not break the prompt."""

    def broken() -> Sequence[Command[Calls]]:
        raise RuntimeError("no database")

    commands.register("db ", broken, owner="db")
    assert isinstance(commands.find("/help"), CommandCall)
    assert commands.problems == {"db": "RuntimeError: no database"}


@pytest.fixture
def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that installs a package with these functions as entry points."""

    def install(**points: str) -> None:
        folder = tmp_path / "shelf_plugin-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf-plugin\nVersion: 1\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (folder / "entry_points.txt").write_text("[skillshelf.slash_commands]\n" + "\n".join(lines))
        monkeypatch.syspath_prepend(str(tmp_path))

    return install


def good(register: Register) -> None:
    register("db ", [command("migrate")])


def colliding(register: Register) -> None:
    register("mine ", [command("fine")])
    register("", [command("help")])


def raising(register: Register) -> None:
    raise OSError("no network")


def test_installed_packages_add_commands(commands: Commands[Calls], install_package: Callable[..., None]) -> None:
    """A package that raises, collides or cannot be imported adds nothing, is reported, and does not stop the others."""
    module = __name__
    install_package(a=f"{module}:raising", b=f"{module}:colliding", c="no_such_module:x", d=f"{module}:good")
    assert commands.register_entry_points() == [
        f"The commands of 'a' ({module}:raising) are left out: OSError: no network",
        f"The commands of 'b' ({module}:colliding) are left out: "
        "/help is a command of 'skillshelf'; 'b' cannot add it.",
        "The commands of 'c' (no_such_module:x) are left out: ModuleNotFoundError: No module named 'no_such_module'",
    ]
    assert isinstance(commands.find("/db migrate"), CommandCall)
    assert isinstance(commands.find("/mine fine"), UnknownCommand)


def test_slash_needs_no_extra() -> None:
    """One-shot and piped use, and MCP, have neither rapidfuzz nor prompt_toolkit."""
    script = "import sys, skillshelf.slash; print([m for m in ('rapidfuzz', 'prompt_toolkit') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_a_message_has_instructions_references_and_arguments() -> None:
    """Each part has its own block, and the references say how to load them."""
    descriptor = SkillDescriptor("pdf", "About.", references=("references/forms.md", "scripts/fill.py"))
    assert apply_message(descriptor, "Fill it in.\n", "a.pdf") == (
        'Apply Skill "pdf"\n\n'
        "<skill_instructions>\nFill it in.\n\n</skill_instructions>\n\n"
        'References of this skill: load one with load_skill_instructions(skill_name="pdf", reference=…).\n'
        "<skill_references>\n- references/forms.md\n- scripts/fill.py\n</skill_references>\n\n"
        "<skill_arguments>\na.pdf\n</skill_arguments>\n"
    )


def test_a_shadowed_skill_is_named_so_that_its_references_load() -> None:
    """The bare name would lead to the other skill's files."""
    message = apply_message(SkillDescriptor("pdf", "About.", references=("a.md",)), "Do.", "", reach="pdf@user")
    assert message.startswith('Apply Skill "pdf@user"\n')
    assert 'load_skill_instructions(skill_name="pdf@user", reference=…)' in message


_PIECES = (
    *"</skill_instructions> <skill_arguments> </SKILL_ARGUMENTS> &lt; &amp; &amp;lt; $ARGUMENTS $1 !`ls` & <".split(),
    *("\n", "\r", "< / skill_references", "\n</skill_instructions>\n", 'Apply Skill "x"\n'),
)
_TEXTS = st.text() | st.lists(st.sampled_from(_PIECES)).map("".join)


@given(_TEXTS, _TEXTS, st.lists(_TEXTS, max_size=3))
def test_no_text_breaks_out_of_its_block(instructions: str, arguments: str, references: list[str]) -> None:
    """A parsed message holds exactly the original texts."""
    descriptor = SkillDescriptor("pdf", "About.", references=tuple(references))
    message = apply_message(descriptor, instructions, arguments)
    assert message.startswith('Apply Skill "pdf"\n')
    assert read_message(message) == AppliedSkill("pdf", instructions, arguments)


@given(_TEXTS)
def test_only_a_complete_message_is_parsed(text: str) -> None:
    """Other text is not a message, even if it contains the tags."""
    assert read_message(text) is None
    assert read_message(apply_message(SkillDescriptor("a", "b"), "c", "d") + f"{text}.") is None


def test_ordinary_markup_reaches_the_model_unchanged() -> None:
    """Code, tags and entities are escaped only if they are the message's own."""
    body = "<instructions> a && b &nbsp; &lt </skill> !`rm -rf /` ${HOME} $1"
    assert f"\n{body}\n" in apply_message(SkillDescriptor("a", "b"), body, "")


@pytest.mark.parametrize(
    ("declared", "instructions", "arguments", "applied"),
    [
        ({}, "Take $1 of $ARGUMENTS.", "x", ("Take $1 of $ARGUMENTS.", "x")),
        ({"argument_hint": "[file]"}, "Take $1 of $ARGUMENTS.", "x  y", ("Take x of x  y.", "")),
        ({"argument_hint": "[file]"}, "Take it.", "x y", ("Take it.", "x y")),
        ({"argument_hint": "[file]"}, "Take $1.", "x y", ("Take x.", "x y")),
        ({"argument_hint": "[file]"}, "Take $2 and $1.", '"x y" z', ("Take z and x y.", "")),
        ({"argument_hint": "[file]"}, "Take '$1'.", "", ("Take ''.", "")),
        ({"arguments": ("from", "to")}, "$from to $to, $tower", "a b", ("a to b, $tower", "")),
        ({"arguments": ("file", "file-name")}, "$file-name/$file-x", "a b", ("b/a-x", "")),
        ({"arguments": ("a",)}, "$a$a $ARGUMENTSX $0 $1.50 $100 $x", "v", ("vv $ARGUMENTSX $0 $1.50 $100 $x", "")),
        ({"arguments": ("a",)}, "<$ARGUMENTS>", "$ARGUMENTS $1 $a !`x`", ("<$ARGUMENTS $1 $a !`x`>", "")),
    ],
)
def test_placeholders_are_replaced_once(
    declared: dict[str, object], instructions: str, arguments: str, applied: tuple[str, str]
) -> None:
    """Only declared arguments count; arguments without a placeholder follow the text."""
    descriptor = SkillDescriptor("a", "b", **declared)  # type: ignore[arg-type]
    assert read_message(apply_message(descriptor, instructions, arguments)) == AppliedSkill("a", *applied)


def test_placeholders_cannot_inflate_a_message() -> None:
    """Beyond a megabyte of inserted text they stay as they are."""
    text, arguments = "$ARGUMENTS " * 1000, "x" * 10_000
    filled = fill_placeholders(text, arguments, ())
    assert (filled.is_complete, filled.text.count(arguments), filled.text.count("$ARGUMENTS")) == (True, 100, 900)
    assert fill_placeholders(text, arguments * 101, ()) == (text, False)


@given(st.lists(st.text()))
def test_arguments_split_like_in_a_shell(words: list[str]) -> None:
    """Words quoted by `shlex` come back unchanged."""
    assert split_words(shlex.join(words)) == words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("don't use it", ["don't", "use", "it"]),
        ('say "hello there', ["say", '"hello', "there"]),
        (r"C:\new\file.txt a\ b", [r"C:\new\file.txt", "a b"]),
        ('--title="a b" "" x', ["--title=a b", "", "x"]),
        (r'"a \"b\" \n"', [r'a "b" \n']),
    ],
)
def test_arguments_split_leniently(arguments: str, words: list[str]) -> None:
    """Apostrophes, unclosed quotes and Windows paths are not errors."""
    assert split_words(arguments) == words


@given(st.text(), st.text(alphabet=st.sampled_from("ab \"'\\$1\n")), st.lists(st.text(), max_size=3))
def test_filling_in_never_fails(text: str, arguments: str, names: list[str]) -> None:
    """Authors may give arguments any name."""
    for body in (text, "".join(f"${name} " for name in names)):
        assert fill_placeholders(body, arguments, names).text is not None


@pytest.mark.parametrize(
    ("rest", "arguments"),
    [
        ("", ""),
        (" form.pdf today", "form.pdf today"),
        ("\n    if x:\n        y()\n", "    if x:\n        y()\n"),
        ("  two spaces \n", "two spaces \n"),
        ("\r\n  a line\r\n", "  a line\r\n"),
        (" \n\n  after a blank line", "\n  after a blank line"),
    ],
)
def test_the_library_and_the_terminal_parse_invocations_alike(rest: str, arguments: str) -> None:
    """Both find the same skill and the same arguments for any skill name."""
    first = MemorySource({"pdf": skill("pdf")})
    second = MemorySource({"pdf": skill("pdf"), "my skill": skill("my skill")}, "other")
    shelf = Shelf([first, second])
    commands: Commands[Calls] = Commands()
    commands.register(SKILL_PREFIX, skill_commands(lambda: shelf.catalog, invoke))
    for name in ("pdf", "pdf@other", "my skill"):
        typed = f"/skills:{name}{rest}"
        call = commands.find(typed)
        assert isinstance(call, CommandCall)
        assert (call.command.name, call.arguments) == (name, arguments)
        assert parse_invocation(typed, shelf.catalog) == (name, arguments)


@pytest.mark.parametrize("text", ["hello", " /skills:pdf", "/skills", "/skills pdf", "/skills:a/b/c d", "/other:pdf"])
def test_other_messages_invoke_no_skill(text: str) -> None:
    _, shelf = make_shelf("pdf")
    invocation = parse_invocation(text, shelf.catalog)
    assert invocation is None or invocation.skill not in shelf.catalog
