"""`skillshelf check --hosts`: what other agents make of a skill, from a table that was measured."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import portability
from skillshelf.lint.hosts import CONDITIONS, WORDS, Verdict, conditions, judge, table

Run = Callable[..., tuple[int, str, str]]
# Conditions that cannot come alone.
TOGETHER = {"frontmatter-last": ["frontmatter-last", "instructions-missing"]}


@pytest.mark.parametrize("code", CONDITIONS)
def test_a_condition_is_seen_in_the_file_it_was_measured_with(code: str) -> None:
    """In that one, and nothing else is."""
    variant = portability.VARIANTS[code]
    data = variant.text if isinstance(variant.text, bytes) else variant.text.encode()
    folder = variant.folder or variant.name
    found = conditions(data, folder, file=variant.file, nested=variant.nested, linked=variant.linked)
    assert found == TOGETHER.get(code, [code])


def test_a_plain_skill_loads_everywhere() -> None:
    """It has none of the conditions."""
    assert conditions(str(portability.VARIANTS["plain"].text).encode(), "plain") == []
    assert {(one.makes, one.because) for one in judge([])} == {("loads", ())}


def test_the_table_is_whole() -> None:
    """Every host that has a probe, every condition, and no word that is not known."""
    assert list(table()) == sorted(portability.HOSTS)
    assert set(portability.VARIANTS) == {*CONDITIONS, "plain"}
    for measured in table().values():
        assert list(measured["makes"]) == sorted(CONDITIONS)
        assert set(measured["makes"].values()) <= set(WORDS)


def test_what_no_host_minds_needs_no_fix() -> None:
    """And what one minds has one."""
    minded = {code for measured in table().values() for code, makes in measured["makes"].items() if makes != "loads"}
    assert {code for code, condition in CONDITIONS.items() if condition.fix} == minded


def test_the_hosts_that_are_installed_do_as_the_table_says() -> None:
    """Their own loaders run over every file again."""
    measured = portability.measure_with(sys.executable)
    if not measured:
        pytest.skip("no host is installed here; `python -m benchmarks.portability --install` measures them all")
    assert {host: row["makes"] for host, row in measured.items()} == {host: table()[host]["makes"] for host in measured}


def test_the_worst_of_several_conditions_counts() -> None:
    """A verdict names those that are to blame for it, and no others."""
    adk = {one.host: one for one in judge(["bom", "crlf", "dashes-in-frontmatter", "name-mismatch"])}["google-adk"]
    assert adk == Verdict("google-adk", adk.version, "drops", ("bom", "name-mismatch"))


def test_a_skill_is_judged_host_by_host(write: Callable[..., Path], run: Run) -> None:
    """With the reason, and what to change; the exit code says that some host does not load it as written."""
    write(".claude/skills/pdf", "Use when: asked about PDF files.")
    code, said, _ = run("check", "--hosts")
    lines = said.splitlines()
    assert code == 1
    assert lines[0] == ".claude/skills/pdf/SKILL.md"
    assert [line.split()[0] for line in lines[2:9]] == list(table())
    assert [line.split()[2] for line in lines[2:9] if line.startswith(("google", "openai"))] == ["drops", "loads"]
    assert "fix: a value is not valid YAML, such as `Use when: asked`: put the value in quotes" in lines[9]


def test_skills_that_load_everywhere_are_counted(write: Callable[..., Path], run: Run) -> None:
    """Of many, those that do are not listed."""
    write(".claude/skills/pdf")
    write(".claude/skills/csv")
    assert run("check", "--hosts") == (0, "2 skills checked: 2 loaded as written by every host\n", "")


def test_place_and_name_of_the_file_count(tmp_path: Path, write: Callable[..., Path], run: Run) -> None:
    """A folder too deep, a link, a file in small letters, bytes that are no text."""
    write(".claude/skills/group/deep")
    low = write(".claude/skills/low")
    low.rename(low.with_name("skill.md"))
    write(".claude/skills/latin").write_bytes(b"---\nname: latin\ndescription: Gr\xfc\xdft.\n---\n\nHi.\n")
    write("elsewhere/linked")
    (tmp_path / ".claude/skills/linked").symlink_to(tmp_path / "elsewhere/linked")
    _, said, _ = run("check", "--hosts", "--json", ".claude")
    found = {
        one["path"].split("/")[-2]: [each["code"] for each in one["conditions"]] for one in json.loads(said)["skills"]
    }
    assert found["deep"] == ["folder-nested"]
    assert found["low"] == ["file-lowercase"]
    assert found["latin"] == ["not-utf8"]
    assert run("check", "--hosts", ".claude/skills/linked")[1].count("the skill's folder is a symlink") == 3


def test_wrong_use_is_told(write: Callable[..., Path], run: Run) -> None:
    """Annotations have no place for hosts, and a look at nothing does not pass."""
    assert run("check", "--hosts")[0::2] == (2, "skillshelf check: there is no skill in .\n")
    write(".claude/skills/pdf")
    code, _, complaint = run("check", "--hosts", "--format", "sarif")
    assert (code, "exclude each other" in complaint) == (2, True)
