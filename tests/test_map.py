"""Test `skillshelf check --hosts`: which skills of a repository other agents see, and what to change."""

import json
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from skillshelf.lint.hosts import load_records

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]
PROGRAMS = [host for host, record in load_records().items() if record.kind == "program"]
LIBRARIES = [host for host, record in load_records().items() if record.kind == "library"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def read_map(run: Run, *options: str) -> dict[str, Any]:
    _, output, errors = run("check", "--hosts", "--json", *options)
    assert errors == ""
    result: dict[str, Any] = json.loads(output)
    return result


def states(result: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return how each host sees the only skill of this name."""
    [skill] = [skill for skill in result["skills"] if skill["name"] == name]
    return {sighting["host"]: sighting["status"] for sighting in skill["hosts"]}


def seen_by(result: Mapping[str, Any], name: str) -> set[str]:
    """Return the programs that see a skill as written."""
    return {host for host, state in states(result, name).items() if state == "seen"} & set(PROGRAMS)


def readers_of(folder: str, position: str = "here") -> set[str]:
    return {host for host in PROGRAMS if position in load_records()[host].folders.get(folder, ())}


FOLDERS = sorted({folder for host in PROGRAMS for folder in load_records()[host].folders if not folder.startswith("~")})


@pytest.mark.parametrize("folder", [*FOLDERS, ".skillshelf/skills", "skills", "docs"])
def test_a_program_sees_the_skills_of_the_folders_it_reads(
    repository: Path, write: Write, run: Run, folder: str
) -> None:
    write(f"{folder}/pdf")
    assert seen_by(read_map(run), "pdf") == readers_of(folder)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_starting_folder_decides_which_folders_are_read(
    repository: Path, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """A program that starts in a subfolder reads other folders than one that starts at the root."""
    at = {"root": ".", "between": "a", "here": "a/b", "below": "a/b/c", "beside": "d"}
    for position, above in at.items():
        write(f"{above}/{folder}/{position}")
    monkeypatch.chdir(repository / "a/b")
    result = read_map(run)
    for position in at:
        assert seen_by(result, position) == readers_of(folder, position)


@pytest.mark.parametrize("folder", [".agents/skills", ".claude/skills"])
def test_outside_a_repository_the_folders_of_parents_count_too(
    tmp_path: Path, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    write(f"a/{folder}/above")
    (tmp_path / "a/b").mkdir()
    monkeypatch.chdir(tmp_path / "a/b")
    assert seen_by(read_map(run), "above") == readers_of(folder, "outside")


def test_commands_name_the_folder_that_they_are_for(
    repository: Path, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(".agents/skills/pdf")
    (repository / "src").mkdir()
    assert "What to change\n" in run("check", "--hosts", "--host", "claude-code")[1]
    monkeypatch.chdir(repository / "src")
    assert "What to change, with commands for ..\n" in run("check", "--hosts", "--host", "claude-code")[1]


def test_a_library_sees_a_skill_wherever_it_is(repository: Path, write: Write, run: Run) -> None:
    """Its caller names the folder."""
    write("docs/examples/pdf")
    assert {states(read_map(run), "pdf")[host] for host in LIBRARIES} == {"seen"}


def test_a_linked_folder_of_skills_counts_where_the_link_is(repository: Path, write: Write, run: Run) -> None:
    write(".agents/skills/pdf")
    (repository / ".claude").mkdir()
    (repository / ".claude/skills").symlink_to("../.agents/skills")
    result = read_map(run)
    assert seen_by(result, "pdf") == set(PROGRAMS)
    assert [Path(place).relative_to(repository).as_posix() for place in result["skills"][0]["places"]] == [
        ".agents/skills/pdf",
        ".claude/skills/pdf",
    ]


def test_a_linked_skill_is_one_skill_with_two_places(repository: Path, write: Write, run: Run) -> None:
    write(".agents/skills/pdf")
    (repository / ".claude/skills").mkdir(parents=True)
    (repository / ".claude/skills/pdf").symlink_to("../../.agents/skills/pdf")
    assert seen_by(read_map(run), "pdf") == set(PROGRAMS)


@pytest.mark.parametrize(
    "places",
    [
        [".skillshelf/skills/pdf"],
        [".agents/skills/pdf", ".agents/skills/csv"],
        [".claude/skills/pdf", ".agents/skills/csv", ".gemini/skills/xml"],
        ["skills/pdf", "skills/csv", "docs/how to/it's here"],
        [".pi/skills/group/pdf", ".claude/skills/csv"],
        [".agents/skills/pdf", ".agents/skills/csv", ".gemini/skills/xml", ".gemini/skills/html"],
    ],
)
def test_every_program_sees_every_skill_after_the_advised_commands(
    repository: Path, write: Write, run: Run, places: list[str]
) -> None:
    """The commands are run as they are printed, until there are none left."""
    for place in places:
        write(place)
    subprocess.run(["git", "-C", str(repository), "add", "."], check=True)
    options = [word for host in PROGRAMS for word in ("--host", host)]
    for _ in range(3):
        for advice in read_map(run, *options)["advice"]:
            if advice["command"]:
                subprocess.run(["sh", "-c", advice["command"]], cwd=repository, check=True)
    result = read_map(run, *options)
    left = [advice["change"] for advice in result["advice"]]
    assert all(change.startswith("the skill is more than one folder below") or "name" in change for change in left)
    for skill in result["skills"]:
        assert not any(sighting["status"] == "unread" for sighting in skill["hosts"])


def test_a_whole_folder_is_linked_with_one_command(repository: Path, write: Write, run: Run) -> None:
    for name in ("csv", "pdf", "xml"):
        write(f".agents/skills/{name}")
    [advice] = read_map(run)["advice"]
    assert advice["change"] == "make .claude/skills a link to .agents/skills"
    assert advice["command"] == "mkdir -p .claude && ln -s ../.agents/skills .claude/skills"
    assert advice["hosts"] == ["claude-code"]
    assert advice["skills"] == ["csv", "pdf", "xml"]


def test_a_folder_that_is_there_already_gets_a_link_for_each_skill(repository: Path, write: Write, run: Run) -> None:
    write(".agents/skills/csv")
    write(".agents/skills/pdf")
    write(".claude/skills/xml")
    [advice] = read_map(run, "--host", "claude-code")["advice"]
    assert advice["change"] == "link 2 skills of .agents/skills in .claude/skills"
    assert advice["command"] == "ln -s ../../.agents/skills/csv ../../.agents/skills/pdf .claude/skills/"


def test_two_skills_of_one_name_are_not_linked_over_each_other(repository: Path, write: Write, run: Run) -> None:
    write(".agents/skills/pdf", "Reads.")
    write(".claude/skills/pdf", "Writes.")
    result = read_map(run, "--host", "claude-code")
    [advice] = result["advice"]
    assert advice["change"].startswith(".claude/skills has another skill in a folder of the same name")
    assert advice["command"] == ""


def test_a_skill_in_a_package_is_reached_by_starting_there(repository: Path, write: Write, run: Run) -> None:
    write("packages/app/.agents/skills/pdf")
    [advice] = read_map(run, "--host", "codex")["advice"]
    assert advice["change"] == "start the agent in packages/app, or move the skills up"


def test_a_name_with_spaces_and_quotes_is_quoted_in_a_command(repository: Path, write: Write, run: Run) -> None:
    write(".agents/skills/it's $(touch gone)")
    commands = [advice["command"] for advice in read_map(run, "--host", "claude-code")["advice"] if advice["command"]]
    [words] = [shlex.split(command) for command in commands]
    assert words[-2:] == ["../../.agents/skills/it's $(touch gone)", ".claude/skills/"]


def test_the_text_of_a_skill_counts_as_well_as_its_place(repository: Path, write: Write, run: Run) -> None:
    """A file can be cut, altered or refused by a host that reads its folder."""
    write(".agents/skills/long", "Long. " * 300)
    write(".agents/skills/broken", "Use when: asked.")
    result = read_map(run)
    assert states(result, "long")["codex"] == "cut"
    assert states(result, "broken")["pi"] == "refused"
    changes = {advice["change"]: advice for advice in result["advice"]}
    assert "pi" in changes["a value is not valid YAML, such as `Use when: asked`: put the value in quotes"]["hosts"]
    assert "codex" in changes["the description has more than 1,024 characters: shorten it to 1,024"]["hosts"]


def test_the_table_fits_eighty_columns(repository: Path, write: Write, run: Run) -> None:
    write(".agents/skills/report-maker")
    write(".skillshelf/skills/pdf")
    code, output, _ = run("check", "--hosts")
    assert code == 1
    tables = [line for line in output.splitlines() if line.startswith(("skill ", "report", "pdf "))]
    assert max(map(len, tables)) <= 80
    assert tables[0].split() == ["skill", *PROGRAMS, "libraries"]
    assert tables[1].split() == ["report-maker", "-", "seen", "seen", "seen", "seen", "7", "of", "7"]
    assert all(f"{host} {record.version}" in output for host, record in load_records().items())


def test_many_skills_that_look_the_same_share_a_line(repository: Path, write: Write, run: Run) -> None:
    for number in range(200):
        write(f".agents/skills/skill-{number}")
    write(".agents/skills/broken", "Use when: asked.")
    lines = run("check", "--hosts")[1].splitlines()
    assert len(lines) < 30
    assert any(line.startswith("200 skills ") for line in lines)
    assert any(line.startswith("broken ") for line in lines)


def test_many_folders_that_look_the_same_share_a_table(repository: Path, write: Write, run: Run) -> None:
    for number in range(100):
        write(f"packages/{number}/.agents/skills/skill-{number}")
    output = run("check", "--hosts")[1]
    assert "packages/0/.agents/skills/ and 99 more folders\n" in output
    assert "start the agent in the folder with the skill, such as packages/0," in output
    assert len(output.splitlines()) < 15


def test_a_list_that_outgrows_a_program_is_noted(repository: Path, write: Write, run: Run) -> None:
    for number in range(60):
        write(f".claude/skills/skill-{number}", f"Number {number}. " + "Does it. " * 50)
    assert "note: claude-code shortens its list" in run("check", "--hosts", "--host", "claude-code")[1]


def test_skills_that_every_host_sees_end_with_success(repository: Path, write: Write, run: Run) -> None:
    write(".claude/skills/pdf")
    code, output, _ = run("check", "--hosts", "--host", "claude-code")
    assert code == 0
    assert "What to change" not in output
    assert output.endswith("1 skill: 1 seen as written by every host\n")


def test_a_repository_without_skills_is_wrong_use(repository: Path, run: Run) -> None:
    code, _, errors = run("check", "--hosts")
    assert code == 2
    assert "there is no skill" in errors


def test_an_unknown_host_gets_the_closest_names(repository: Path, run: Run) -> None:
    code, _, errors = run("check", "--hosts", "--host", "claude")
    assert code == 2
    assert "did you mean claude-code" in errors
    assert (
        "unknown host 'wordstar'; choose from claude-code, codex," in run("check", "--hosts", "--host", "wordstar")[2]
    )


def test_hidden_characters_of_names_do_not_reach_the_terminal(repository: Path, write: Write, run: Run) -> None:
    """A line break in a name does not break a line, and a command with one is left to --json."""
    write(".agents/skills/a\x1b[31mb\nc")
    output = run("check", "--hosts")[1]
    assert "\x1b" not in output
    assert not any(line.startswith("c") for line in output.splitlines() if "claude-code" not in line)
    assert "(--json has the command)" in output
