"""Run the commands as a user does, with their output in a pipe."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import skillshelf
from skillshelf import PackageSource, Shelf
from skillshelf.cli._main import COMMANDS
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.text.tokens import estimate

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shelf(write: Callable[..., Path], tmp_path: Path) -> Path:
    """Create a workspace with an ordinary skill, a repaired one, one for the user only, and a shadowed one."""
    write(
        "skills/pdf", "Fill in PDF forms.", "Load `forms.md`.\n", references__forms_md="# Forms\r\n\r\nAll of them.\r\n"
    )
    write("skills/deploy", "Ship it: carefully")
    secret = write("skills/secret", "For people.")
    secret.write_text(secret.read_text().replace("description", "disable-model-invocation: true\ndescription"))
    write("old/skills/pdf", "The old one.")
    return tmp_path


def without_bundled_skills(output: str) -> list[str]:
    """Return the lines that are not about bundled skills, whose names set the columns."""
    return [re.sub(" {2,}", "  ", line) for line in output.splitlines() if "bundled" not in line]


# -- usage ------------------------------------------------------------------------------------------------------------


def test_help_explains_the_program(run: Run) -> None:
    """It names every command in its group, shows how to start, and explains the exit codes."""
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    groups = re.findall(r"^(look|get|write|use|help):\n((?:  \w+ +.*\n)+)", out, re.M)
    assert {title: [line.split()[0] for line in lines.splitlines()] for title, lines in groups} == {
        "look": ["list", "show", "search", "why", "cost"],
        "get": ["add", "verify", "sync", "outdated", "update", "tree", "remove"],
        "write": ["new", "check", "eval"],
        "use": ["chat", "serve", "trust", "set"],
        "help": ["demo", "doctor", "completion"],
    }
    assert "examples:\n  skillshelf new pdf-forms " in out
    assert out.endswith("Exit codes: 0 success, 1 problems found, 2 wrong use.\n")


@pytest.mark.parametrize(
    "command", ["list", "show", "search", "check", "cost", "why", "new", "trust", "chat", "add", "sync", "update"]
)
def test_help_explains_each_command(run: Run, command: str) -> None:
    """Each has a sentence, its options, and examples that begin with its name."""
    code, out, _ = run(command, "--help")
    assert code == 0
    assert out.startswith(f"usage: skillshelf {command} ")
    assert f"examples:\n  skillshelf {command} " in out


def test_version_prints_the_version_of_the_package(run: Run) -> None:
    assert run("--version") == (0, f"skillshelf {skillshelf.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("list", "--nonsense"),
        ("show",),
        ("check", "--format", "pdf"),
        ("check", "--ignore", "no-such-code"),
        ("new", "a", "--in", "b", "--code", "c"),
        ("list", "-C", "nowhere"),
        ("show", "--prompt", "--budget", "many"),
    ],
)
def test_wrong_usage_exits_with_two(run: Run, arguments: tuple[str, ...]) -> None:
    """Nothing is on stdout, and stderr names the mistake."""
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("lst",), "Did you mean list?"),
        (("-C", ".", "serch", "pdf"), "Did you mean search?"),
        (("list", "--jsn"), "Did you mean --json?"),
        (("check", "--frmat=json"), "Did you mean --format?"),
        (("eval", "--with", "weather"), "unrecognized arguments: --with."),
        (("qqqq",), "`skillshelf --help` lists the commands."),
    ],
)
def test_a_misspelled_command_or_option_is_answered_with_the_closest_one(
    run: Run, arguments: tuple[str, ...], suggestion: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.rstrip().endswith(suggestion)


def test_an_unknown_code_is_refused_with_a_suggestion(run: Run) -> None:
    """Otherwise a misspelled code would silently ignore nothing."""
    assert "did you mean reference-unnamed" in run("check", "--ignore", "reference-unamed")[2]


def test_the_workspace_is_given_before_or_after_the_command(run: Run, shelf: Path, tmp_path: Path) -> None:
    """Users write it both ways."""
    before = run("-C", "skills", "list")
    assert before == run("list", "--workspace", "skills")
    assert "The old one." not in before[1]


# -- list -------------------------------------------------------------------------------------------------------------


def test_list_shows_a_line_per_skill(run: Run, shelf: Path) -> None:
    """Each has name, source, tokens, references and description, with marks for special cases."""
    code, out, err = run("list")
    assert (code, err) == (0, "")
    assert without_bundled_skills(out) == snapshot(
        [
            "name  marks  source  tokens  refs  description",
            "deploy  repaired  project  2  Ship it: carefully",
            "pdf  project  5  1  Fill in PDF forms.",
            "pdf  shadowed  project  2  The old one.",
            "secret  manual  project  2  For people.",
            "",
        ]
    )
    assert out.splitlines()[-1] == (
        "5 skills: 4 project, 1 bundled. 1 file has problems: run `skillshelf check`. "
        "4 to review: run `skillshelf trust`."
    )


def test_list_and_check_agree_on_how_serious_a_fault_is(run: Run, shelf: Path) -> None:
    """What the format forbids is an error in both, though the skill is on the shelf."""
    listed, checked = (json.loads(run(command, "--json")[1])["diagnostics"] for command in ("list", "check"))
    severities = {(note["path"], note["line"], note["code"]): note["severity"] for note in checked}
    both = [note for note in listed if (note["path"], note["line"], note["code"]) in severities]
    assert [note["code"] for note in both if note["severity"] == "error"] == ["yaml-repaired"]
    for note in both:
        assert note["severity"] == severities[note["path"], note["line"], note["code"]]


def test_columns_are_aligned_below_wide_characters(run: Run, write: Callable[..., Path]) -> None:
    """Chinese, Japanese and Korean characters take two cells of a screen each."""
    write("skills/日本語", "Wide.")
    write("skills/plain", "Narrow.")
    wide, narrow = (line for line in run("list")[1].splitlines() if line.endswith(("Wide.", "Narrow.")))
    if "日本語" not in wide:
        wide, narrow = narrow, wide
    assert wide.index("project") + len("日本語") == narrow.index("project")


def test_list_mentions_check_only_if_there_are_faults(run: Run, write: Callable[..., Path]) -> None:
    write("pdf")
    assert "skillshelf check" not in run("list")[1]


def test_list_as_json_has_every_skill_and_diagnostic(run: Run, shelf: Path) -> None:
    code, out, _ = run("list", "--json")
    read = json.loads(out)
    skills = {(skill["name"], skill["reach"]): skill for skill in read["skills"]}
    assert code == 0
    assert skills["pdf", "pdf@project:old/skills/pdf"]["marks"] == ["shadowed"]
    assert skills["deploy", "deploy"]["marks"] == ["repaired"]
    assert skills["secret", "secret"]["marks"] == ["manual"]
    assert skills["pdf", "pdf"]["references"] == ["references/forms.md"]
    assert skills["pdf", "pdf"]["tokens"] == estimate("Load `forms.md`.\n")
    assert {note["code"] for note in read["diagnostics"]} == {"shadowed", "yaml-repaired"}


# -- show -------------------------------------------------------------------------------------------------------------


def test_show_prints_facts_instructions_and_references(run: Run, shelf: Path) -> None:
    """The instructions appear as written."""
    assert run("show", "pdf") == snapshot(
        (
            0,
            """\
pdf
Fill in PDF forms.

source         project
location       skills/pdf/SKILL.md
review         it is waiting for your review, and can't be used until then \
(`skillshelf trust` shows it and asks)
instructions   5 tokens, 17 bytes

Load `forms.md`.

References (skillshelf show pdf REFERENCE)
- references/forms.md
""",
            "",
        )
    )


def test_show_finds_a_shadowed_skill_by_its_qualified_name(run: Run, shelf: Path) -> None:
    assert "The old one." in run("show", "pdf@project:old/skills/pdf")[1]


def test_show_prints_a_reference(run: Run, shelf: Path) -> None:
    """Its line endings become those of a terminal."""
    assert run("show", "pdf", "forms.md") == (0, "# Forms\n\nAll of them.\n", "")


def test_show_joins_the_pages_of_a_reference(run: Run, shelf: Path) -> None:
    """The text has no seams, and the line endings that the model gets."""
    text = "x" * (512 * 1024 - 1) + "\r\n" + "é" * (300 * 1024) + " end"
    (shelf / "skills/pdf/references/forms.md").write_bytes(text.encode())
    assert run("show", "pdf", "forms.md")[1] == text.replace("\r\n", "\n") + "\n"
    assert json.loads(run("show", "--json", "pdf", "forms.md")[1])["text"] == text.replace("\r\n", "\n")


def test_show_describes_a_binary_reference(run: Run, shelf: Path) -> None:
    """It prints kind and size, never the bytes."""
    (shelf / "skills/pdf/references/a.png").write_bytes(b"\x89PNG\0\x1b[2J")
    code, out, _ = run("show", "pdf", "a.png")
    assert (code, out) == (
        0,
        "references/a.png is binary (image/png, 9 bytes) and cannot be shown as text.\n",
    )
    assert json.loads(run("show", "--json", "pdf", "a.png")[1])["binary"] is True


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("show", "pfd"), "There is no skill named 'pfd'. Did you mean 'pdf'?"),
        (("show", "pdf", "../../secret"), "Listed references: 'references/forms.md'."),
        (("show", "pdf", "/etc/passwd"), "it is not on the skill's list"),
    ],
)
def test_show_explains_an_unknown_name(run: Run, shelf: Path, arguments: tuple[str, ...], expected: str) -> None:
    """Standard error has the request, the reason and a suggestion."""
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert expected in err


def test_show_as_json_has_the_descriptor_and_the_instructions(run: Run, shelf: Path) -> None:
    read = json.loads(run("show", "--json", "pdf")[1])
    assert (read["name"], read["instructions"], read["references"]) == (
        "pdf",
        "Load `forms.md`.\n",
        ["references/forms.md"],
    )


# -- listing and cost -------------------------------------------------------------------------------------------------


def test_show_prompt_prints_exactly_what_the_model_sees(run: Run, shelf: Path) -> None:
    """Nothing else is in the pipe."""
    expected = WorkspaceSkills(shelf).shelf
    assert run("show", "--prompt") == (0, expected.listing().text, "")
    assert run("show", "--prompt", "--disclosure", "catalog") == (0, expected.listing("catalog").text, "")
    assert run("show", "--prompt", "--budget", "150") == (0, expected.listing(budget=150).text, "")


def test_show_prompt_with_a_name_prints_its_entry_alone(run: Run, shelf: Path) -> None:
    _, out, _ = run("show", "--prompt", "pdf")
    assert out.startswith('<skill name="pdf" ')
    assert out in skillshelf.Shelf.open(shelf).listing().text
    assert out.count("<skill ") == 1
    assert run("show", "--prompt", "secret")[0::2] == (
        1,
        "skillshelf: The listing leaves out 'secret'. `skillshelf why secret` says why.\n",
    )


@pytest.mark.parametrize("arguments", [(), ("pdf", "--budget", "9"), ("pdf", "forms.md", "--prompt")])
def test_show_refuses_what_means_nothing(run: Run, shelf: Path, arguments: tuple[str, ...]) -> None:
    code, out, err = run("show", *arguments)
    assert (code, out) == (2, "")
    assert "--prompt" in err


def test_the_prompt_as_json_has_text_tokens_and_omissions(run: Run, shelf: Path) -> None:
    read = json.loads(run("show", "--prompt", "--json", "--budget", "150")[1])
    assert read["tokens"] <= 150
    assert read["shortened"]


def test_cost_counts_the_tokens_of_each_skill(run: Run, shelf: Path) -> None:
    """It counts the tokens in every call, when loaded, and with all references."""
    out = run("cost")[1]
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    read = json.loads(run("cost", "--json")[1])
    costs = {skill["name"]: skill for skill in read["skills"]}
    assert costs["pdf"]["instruction_tokens"] == estimate("Load `forms.md`.\n")
    assert costs["pdf"]["reference_tokens"] == estimate("# Forms\r\n\r\nAll of them.\r\n")
    assert costs["secret"]["listing_tokens"] == 0
    listed, *loaded = (str(costs["pdf"][f"{part}_tokens"]) for part in ("listing", "instruction", "reference"))
    assert rows["pdf"] == [listed, "·", *loaded]
    assert rows["total"][:2] == [str(read["listing_tokens"]), str(read["tool_tokens"])]
    assert rows["total"][0] == str(WorkspaceSkills(shelf).shelf.listing().tokens)
    assert f"Every call: {read['listing_tokens'] + read['tool_tokens']:,} tokens" in out


def test_cost_warns_of_large_skills(run: Run, write: Callable[..., Path]) -> None:
    """It warns of instructions over 5,000 tokens, and of a listing that exceeds its budget."""
    write("long", body="All of these words count as tokens somewhere. " * 700)
    for number in range(40):
        write(f"skill-{number}", "Explains at length what it is for, and when to use it. " * 15)
    out = run("cost")[1]
    assert "warning: 1 skill with instructions over 5,000 tokens: long; move parts into references/" in out
    assert "tokens and the listing has a budget of 4,000: " in out


def test_cost_and_listing_follow_the_settings(
    run: Run, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are about what this user's agent pays: with their budget, or with all instructions in every call."""
    for number in range(40):
        write(f"skill-{number}", body="Some instructions that take a few tokens each.\n" * 10)
    monkeypatch.setenv("SKILLSHELF_BUDGET", "300")
    read = json.loads(run("cost", "--json")[1])
    assert 200 < read["listing_tokens"] <= 300
    assert read["listing_tokens"] == json.loads(run("show", "--prompt", "--json")[1])["tokens"]
    assert ["the listing has a budget of 300" in warning for warning in read["warnings"]] == [True]

    monkeypatch.setenv("SKILLSHELF_DISCLOSURE", "full")
    read = json.loads(run("cost", "--json")[1])
    assert read["warnings"] == []
    assert all(skill["listing_tokens"] > skill["instruction_tokens"] > 0 for skill in read["skills"])


def test_cost_counts_nothing_for_unreadable_references(run: Run, shelf: Path) -> None:
    """A missing or binary reference adds nothing to a context window."""
    (shelf / "skills/deploy/references").mkdir()
    (shelf / "skills/deploy/references/a.bin").write_bytes(b"\0" * 1000)
    costs = {skill["name"]: skill for skill in json.loads(run("cost", "--json")[1])["skills"]}
    assert costs["deploy"]["reference_tokens"] == 0


def test_exact_costs_need_an_extra(run: Run, shelf: Path) -> None:
    """Without the extra the answer says what to install."""
    code, out, err = run("cost", "--exact", "--json")
    answer = json.loads(out)
    if code:
        assert "pip install 'skillshelf[tokens]'" in answer["error"]["message"]
    else:
        assert answer["exact"] is True
    assert err == ""


# -- paths ------------------------------------------------------------------------------------------------------------


def test_a_deleted_current_folder_is_reported(run: Run, tmp_path: Path) -> None:
    """The message is one sentence without a traceback."""
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    code, out, err = run("check")
    assert (code, out) == (2, "")
    assert err == "skillshelf: The current folder no longer exists. Change to another folder first.\n"
    os.chdir(tmp_path)


def test_the_skill_about_writing_skills_names_commands_that_exist() -> None:
    """It says what to run, and nothing else tells the model."""
    source = PackageSource("skillshelf.skill_authoring")
    turn = Shelf([source]).turn()
    texts = [turn.load("skill-authoring")]
    texts += [turn.load("skill-authoring", path) for path in texts[0].references]
    named = {command for loaded in texts for command in re.findall(r"`skillshelf (\w+)", loaded.text)}
    assert "check" in named
    assert named <= set(COMMANDS)
