"""Test completion: lists of candidates, and real keys at a prompt."""

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit")
pytest.importorskip("rapidfuzz")

from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.utils import get_cwidth
from rich.cells import cell_len

from skillshelf import MemorySource, Shelf
from skillshelf.errors import SettingsError
from skillshelf.slash import Command, Commands, NameIndex, Suggestion, complete, skill_commands
from skillshelf.slash import rank as rank_as_spelled
from skillshelf.text.rendering import truncate_cells
from skillshelf.text.tokens import estimate
from skillshelf_agent.terminal._commands import find_offered_model, list_models
from skillshelf_agent.terminal._keys import make_bindings
from skillshelf_agent.terminal._prompt import (
    SlashCompleter,
    describe_suggestion,
    list_workspace_files,
    rank_with_typos,
)
from skillshelf_agent.terminal._views import format_tokens


def do_nothing(host: None, arguments: str) -> None:
    """Run a command that does nothing."""


SKILLS = {
    "pdf": {
        "SKILL.md": "---\nname: pdf\ndescription: Fill in forms.\n---\n" + "x" * 4800,
        "references/forms.md": "",
        "references/my notes.md": "",
        "scripts/fill.py": "",
    },
    "pdf-merge": {"SKILL.md": "---\nname: pdf-merge\ndescription: Join several files.\n---\nDo.\n"},
    "kubernetes-deploy": {"SKILL.md": "---\nname: kubernetes-deploy\ndescription: Roll out a release.\n---\nDo.\n"},
    "my skill": {"SKILL.md": "---\nname: my skill\ndescription: Has a space.\n---\nDo.\n"},
    "归档": {"SKILL.md": "---\nname: 归档\ndescription: 将扫描件转换为文本。\n---\nDo.\n"},
}


@pytest.fixture
def source() -> MemorySource:
    return MemorySource(SKILLS)


@pytest.fixture
def shelf(source: MemorySource) -> Shelf:
    return Shelf([source])


@pytest.fixture
def commands(shelf: Shelf) -> Commands[None]:
    return make_commands(shelf)


def make_commands(shelf: Shelf) -> Commands[None]:
    commands: Commands[None] = Commands(rank_with_typos)
    models = [Suggestion("claude-sonnet", meta="fast"), Suggestion("gpt")]
    commands.register(
        "", [Command("help", "Show help.", do_nothing), Command("skills", "List the skills.", do_nothing)]
    )
    commands.register("", [Command("model", "Choose.", do_nothing, "NAME", lambda arguments: models)])
    commands.register("skills ", [Command("reload", "Read them again.", do_nothing)])
    commands.register("skills ", [Command("show", "Show one.", do_nothing, "NAME")])

    def invoke(host: None, name: str, arguments: str) -> None:
        """Do nothing."""

    commands.register("skills:", skill_commands(lambda: shelf.catalog, invoke, shelf.count_instructions))
    return commands


def texts(commands: Commands[None], typed: str) -> list[str]:
    return [candidate.text for candidate in complete(commands, typed)]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/hel", ["/help"]),
        ("/skills ", ["/skills reload", "/skills show"]),
        ("/skills relaod", ["/skills reload"]),
        ("/skills:pdf", ["/skills:pdf", "/skills:pdf-merge"]),
        ("/skills:merge", ["/skills:pdf-merge"]),
        ("/skills:eploy", ["/skills:kubernetes-deploy"]),
        ("/skills:kubrenetes", ["/skills:kubernetes-deploy"]),
        ("/skills:deplyo", ["/skills:kubernetes-deploy"]),
        ("/skills:join", ["/skills:pdf-merge"]),
        ("/skills:files several", ["/skills:pdf-merge"]),
        ("/skills:severla", ["/skills:pdf-merge"]),
        ("/skills:扫描", ["/skills:归档"]),
        ("/skills:my", ["/skills:my skill"]),
        ("/skills:my s", ["/skills:my skill"]),
        ("/pdf", ["/skills:pdf", "/skills:pdf-merge"]),
        ("/skills:zzzz", []),
        ("/usr/bin", []),
        ("hello", []),
        ("", []),
        (" /hel", []),
        ("/help me", []),
    ],
)
def test_names_complete(commands: Commands[None], typed: str, expected: list[str]) -> None:
    """Names match as spelled first, then with typos, then by words of the description."""
    assert texts(commands, typed) == expected


def test_a_slash_alone_shows_everything_in_order(commands: Commands[None]) -> None:
    """The host's commands come before the skills."""
    assert texts(commands, "/") == [
        "/help",
        "/skills",
        "/model",
        "/skills reload",
        "/skills show",
        "/skills:kubernetes-deploy",
        "/skills:my skill",
        "/skills:pdf",
        "/skills:pdf-merge",
        "/skills:归档",
    ]


def test_a_candidate_has_everything_a_menu_shows(commands: Commands[None]) -> None:
    """It knows its place in the line, a short label within a prefix, the description and the cost."""
    _, _, instructions = SKILLS["pdf"]["SKILL.md"].rpartition("---\n")
    assert complete(commands, "/skills:fill") == [
        Suggestion("/skills:pdf", -12, "pdf", "Fill in forms.", estimate(instructions))
    ]
    assert complete(commands, "/skills sho") == [Suggestion("/skills show", -11, "show NAME", "Show one.")]


def test_names_are_ranked_by_quality_of_match() -> None:
    """Exact names precede beginnings, beginnings of words, other matches and descriptions;

    short names precede long ones.
    """
    names = ["reform", "my-form", "formula", "form", "forms", "other"]
    about = ["", "", "", "", "", "A form."]
    ranked = rank_with_typos("form", NameIndex(names, names, about))
    assert [names[at] for at in ranked] == ["form", "forms", "formula", "my-form", "reform", "other"]


def test_typos_come_between_names_and_descriptions() -> None:
    """Short words may have one wrong letter, longer ones two. The beginning of a name is enough."""
    names = NameIndex(["invoice-run", "x", "inv"], ["invoice-run", "x", "inv"], ["", "Makes an invioce.", ""])
    assert rank_with_typos("invioce", names) == [0, 1]
    assert rank_with_typos("invcoi", names) == [0]
    assert rank_with_typos("inx", names) == [2, 0]
    assert rank_with_typos("ix", names) == []


def test_without_rapidfuzz_only_correct_spellings_match(shelf: Shelf) -> None:
    """The core's own ranking is used if the extra is missing."""
    commands = make_commands(shelf)
    commands.rank = rank_as_spelled
    assert [texts(commands, typed) for typed in ("/skills:kubrenetes", "/skills:join")] == [[], ["/skills:pdf-merge"]]


def test_at_most_fifty_candidates_are_offered() -> None:
    """No user reads more in a menu."""
    shelf = Shelf([MemorySource({f"s{n}": f"---\nname: s{n}\ndescription: D.\n---\n" for n in range(300)})])
    assert [len(complete(make_commands(shelf), typed)) for typed in ("/", "/skills:", "/skills:s")] == [50, 50, 50]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/skills:pdf ", ["references/forms.md", '"references/my notes.md"', "scripts/fill.py"]),
        ("/skills:pdf scr", ["scripts/fill.py"]),
        ("/skills:pdf use fill", ["scripts/fill.py"]),
        ("/skills:pdf froms", ["references/forms.md"]),
        ('/skills:pdf "references/my n', ['"references/my notes.md"']),
        ("/skills:pdf\nfill", ["scripts/fill.py"]),
        ("/skills:pdf-merge x", []),
        ("/model son", ["claude-sonnet"]),
        ("/model fast", ["claude-sonnet"]),
    ],
)
def test_arguments_complete(commands: Commands[None], typed: str, expected: list[str]) -> None:
    """Completion offers a skill's references by path and bare name, and a command's own candidates, ranked by the last
    word.
    """
    assert texts(commands, typed) == expected


def test_an_argument_replaces_the_word_it_completes(commands: Commands[None]) -> None:
    """The rest of the line stays."""
    assert complete(commands, "/skills:pdf use fil") == [Suggestion("scripts/fill.py", -3, "scripts/fill.py")]
    assert complete(commands, "/model s") == [Suggestion("claude-sonnet", -1, "claude-sonnet", "fast")]


def test_a_command_may_provide_its_own_candidates(commands: Commands[None]) -> None:
    """They are used unchanged if they have a place; candidates that cannot be typed are dropped."""
    own = [Suggestion("anything", -2), Suggestion("\x1b[2J", -1)]
    commands.register("", [Command("own", "", do_nothing, complete=lambda arguments: own)])
    assert complete(commands, "/own xy") == own[:1]


def test_a_failing_argument_completion_is_reported(commands: Commands[None]) -> None:
    """The user can go on typing."""

    def broken(arguments: str) -> Sequence[Suggestion]:
        raise RuntimeError("no network")

    commands.register("", [Command("own", "", do_nothing, complete=broken)], owner="me")
    assert complete(commands, "/own x") == []
    assert commands.problems == {"me": "RuntimeError: no network"}


@given(st.text(alphabet=st.sampled_from("/skils:pdf@ \n\"'.é\x00\x1b归"), max_size=30) | st.text())
def test_completion_never_fails(typed: str) -> None:
    """For any input, candidates replace only existing text and can be typed."""
    for text in (typed, f"/{typed}", f"/skills:{typed}", f"/skills:pdf {typed}", f"@{typed}"):
        for candidate in complete(_COMMANDS, text, files=lambda prefix: ["a.md", "b c/"]):
            assert -len(text) <= candidate.start <= 0
            assert candidate.text.isprintable()


_COMMANDS = make_commands(Shelf([MemorySource(SKILLS)]))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for name in ("README.md", "src/main.py", "src/my file.py", ".env", ".git/config", ".github/ci.yml", "bad\nname"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.pem").touch()
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "key").symlink_to(tmp_path / "secret" / "key.pem")
    (root / "in").symlink_to(root / "src")
    (root / "dangling").symlink_to(root / "nowhere")
    return root


@pytest.mark.parametrize(
    ("prefix", "paths"),
    [
        ("", ["dangling", "in/", "README.md", "src/"]),
        ("read", ["README.md"]),
        ("src/", ["src/main.py", "src/my file.py"]),
        ("in/ma", ["in/main.py"]),
        ("src/file", ["src/my file.py"]),
        (".", [".env", ".github/"]),
        (".git/", []),
        ("out/", []),
        ("../", []),
        ("../secret/", []),
        ("src/../../secret/", []),
        ("/etc/", []),
        ("~/", []),
        ("src\0/", []),
        ("nowhere/", []),
        ("README.md/", []),
        ("a" * 10_000 + "/", []),
    ],
)
def test_files_of_the_workspace_complete(workspace: Path, prefix: str, paths: list[str]) -> None:
    """They come one level at a time. Hidden files need a dot, and nothing comes from outside."""
    assert list_workspace_files(workspace, prefix) == paths


def test_the_limit_on_files_holds(workspace: Path) -> None:
    assert list_workspace_files(workspace, "", 1) == ["dangling"]


@settings(max_examples=50)
@given(st.text(alphabet=st.sampled_from("./~ab\0\\é\ud800")) | st.text())
def test_listing_files_never_fails_and_never_leaves_the_root(prefix: str) -> None:
    """Every returned path is below the root."""
    root = os.path.dirname(__file__)
    for path in list_workspace_files(root, prefix):
        assert os.path.realpath(os.path.join(root, path)).startswith(f"{os.path.realpath(root)}/")


@pytest.mark.parametrize(
    ("typed", "candidates"),
    [
        ("@REA", [Suggestion("@README.md", -4, "README.md")]),
        ("look at @src/ma", [Suggestion("@src/main.py", -7, "src/main.py")]),
        ("/skills:pdf @src/my", [Suggestion('@"src/my file.py"', -7, "src/my file.py")]),
        ('see "this" and @"src/my f', [Suggestion('@"src/my file.py"', -10, "src/my file.py")]),
        ('an open " and @src/ma', [Suggestion("@src/main.py", -7, "src/main.py")]),
        ("me@REA", []),
        ("@REA ", []),
    ],
)
def test_files_complete_after_an_at_sign(
    commands: Commands[None], workspace: Path, typed: str, candidates: list[Suggestion]
) -> None:
    """This works anywhere in a message except in an e-mail address. Paths with spaces get quotes."""
    assert complete(commands, typed, files=partial(list_workspace_files, workspace)) == candidates


def test_the_menu_shows_description_and_cost() -> None:
    """A command of unknown cost shows none; others look like `Fill in forms.  ~1.2k tokens`."""
    assert describe_suggestion(Suggestion("x", meta="Fill in forms.", cost=1234)) == "Fill in forms.  ~1.2k tokens"
    assert describe_suggestion(Suggestion("x", meta="Fill in forms.")) == "Fill in forms."
    assert [format_tokens(count) for count in (0, 999, 1000, 9949, 9950, 38_400)] == [
        "0",
        "999",
        "1.0k",
        "9.9k",
        "10k",
        "38k",
    ]


def test_the_menu_is_clean_and_within_its_width(commands: Commands[None]) -> None:
    """Escape sequences are written out, lines joined, and wide characters counted twice."""
    hostile = "a\x1b[2J\u202e\n" + "宽" * 500
    commands.register("", [Command("x", hostile, do_nothing, hostile, cost=5)])
    event = CompleteEvent()
    (completion,) = SlashCompleter(commands).get_completions(Document("/x"), event)
    for text in (completion.display_text, completion.display_meta_text):
        assert text.isprintable()
        assert get_cwidth(text) <= 66
    assert completion.display_text.startswith("/x a<U+001B>[2J<U+202E> 宽")
    assert completion.display_meta_text.endswith("…  ~5 tokens")


@given(st.text(), st.integers(1, 30))
def test_shortened_text_fits_its_cells(text: str, cells: int) -> None:
    """Text that fits is not changed."""
    short = truncate_cells(text, cells)
    assert cell_len(short) <= cells
    assert short == text or short.endswith("…")


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_the_cost_stays_visible_in_a_narrow_terminal(commands: Commands[None], columns: int) -> None:
    """Long names and descriptions are shortened instead."""
    commands.register(
        "", [Command("x" * 70, "word " * 40, do_nothing, cost=1234), Command("xy", "Short.", do_nothing, cost=5)]
    )

    class Narrow(DummyOutput):
        def get_size(self) -> Size:
            return Size(24, columns)

    with create_app_session(output=Narrow()), set_app(Application[None](output=Narrow())):
        completions = list(SlashCompleter(commands).get_completions(Document("/x"), CompleteEvent()))
    assert {completion.display_meta_text.rpartition("~")[2] for completion in completions} == {
        "1.2k tokens",
        "5 tokens",
    }
    name = max(get_cwidth(completion.display_text) for completion in completions)
    about = max(get_cwidth(completion.display_meta_text) for completion in completions)
    assert name + about + 6 <= columns  # for the blanks around both and the scroll bar


def test_a_second_tab_keeps_the_only_candidate(commands: Commands[None]) -> None:
    """A menu of one entry has no other to offer."""

    async def type_keys() -> str:
        with create_pipe_input() as keys:
            session: PromptSession[str] = PromptSession(
                completer=SlashCompleter(commands), key_bindings=make_bindings(), input=keys, output=DummyOutput()
            )
            pressed = asyncio.Semaphore(0)
            session.app.key_processor.after_key_press += lambda _: pressed.release()
            prompt = asyncio.create_task(session.prompt_async())
            for text in ("/skills:kub", "\t", "\t"):
                keys.send_text(text)
                for _ in text:
                    await pressed.acquire()
                await finish_completion()
            keys.send_text("\r")
            return await prompt

    assert asyncio.run(type_keys()) == "/skills:kubernetes-deploy "


def test_a_part_of_a_name_chooses_the_offered_model() -> None:
    offered = ["openai-chat:gpt-5-mini", "openai-chat:gpt-5", "openai-chat:fake-reasoner", "openai-chat:qwen3:8b"]
    assert find_offered_model("reas", offered) == "openai-chat:fake-reasoner"
    assert find_offered_model("qwen3:8", offered) == "openai-chat:qwen3:8b"
    for taken_as_it_is in ("gpt-5", "openai-chat:gpt", "llama", "anthropic:x", ""):
        assert find_offered_model(taken_as_it_is, offered) == taken_as_it_is
    with pytest.raises(SettingsError, match="Several models"):
        find_offered_model("gpt", offered)


def test_models_complete_after_slash_model() -> None:
    """The current one comes first. A provider's models appear once its name is typed."""
    names = [candidate.text for candidate in list_models("openai:gpt-6.1-sol", "")]
    assert names[:2] == ["openai:gpt-6.1-sol", "anthropic:claude-sonnet-5-5"]
    assert len(names) == len(set(names))
    assert "mistral:" in names
    offered = ["openai:gpt-6.1-sol", "openai:qwen3:8b"]
    names = [candidate.text for candidate in list_models("openai:gpt-6.1-sol", "", offered)]
    assert names[:3] == [*offered, "anthropic:claude-sonnet-5-5"]
    assert [candidate.text for candidate in list_models("openai:gpt-6.1-sol", "qwen3:", offered)] == offered[1:]
    of_one = [candidate.text for candidate in list_models("openai:gpt-6.1-sol", "anthropic:cl")]
    assert of_one
    assert all(name.startswith("anthropic:") for name in of_one)


async def finish_completion() -> None:
    """Let a completion end. It is a task that never waits for anything, so a few rounds of the loop suffice."""
    for _ in range(100):
        await asyncio.sleep(0)


@pytest.fixture
def press(commands: Commands[None], workspace: Path) -> Callable[[str], str]:
    """Press keys at a prompt, faster than any menu fills, and return the line."""

    async def type_keys(keys: str) -> str:
        completer = SlashCompleter(commands, partial(list_workspace_files, workspace))
        with create_pipe_input() as keyboard:
            session: PromptSession[str] = PromptSession(
                completer=completer, key_bindings=make_bindings(), input=keyboard, output=DummyOutput()
            )
            keyboard.send_text(f"{keys}\r")
            return await session.prompt_async()

    return lambda keys: asyncio.run(type_keys(keys))


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("/hel\t", "/help "),
        ("/skills re\t", "/skills reload "),
        ("/skills:kube\tnow", "/skills:kubernetes-deploy now"),
        ("/skills:kubrenetes\t", "/skills:kubernetes-deploy "),
        ("/skills:pdf fill\t", "/skills:pdf scripts/fill.py"),
        ("/pdf fill\t", "/pdf scripts/fill.py"),
        ("/skills:pdf my\t", '/skills:pdf "references/my notes.md"'),
        ("see @sr\tma\t", "see @src/main.py "),
        ("/skills:p\t", "/skills:pdf"),
    ],
)
def test_tab_completes(press: Callable[[str], str], keys: str, line: str) -> None:
    """Tab completes commands, skills with and without typos, references and files, before the next key counts.

    A name is followed by a space.
    """
    assert press(keys) == line


def test_tab_knows_a_skill_right_after_a_reload(
    press: Callable[[str], str], source: MemorySource, shelf: Shelf
) -> None:
    """A skill that was missing at the last key is there for the next."""
    assert press("/skills:new\t") == "/skills:new"
    source.put("newcomer", "---\nname: newcomer\ndescription: New.\n---\nDo.\n")
    shelf.reload()
    assert press("/skills:new\t") == "/skills:newcomer "
