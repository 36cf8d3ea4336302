"""Test `skillshelf check --hosts`: how other agents read a skill, from a measured table."""

import json
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import portability
from benchmarks.host_loaders import HOSTS, Variant
from benchmarks.npm_hosts.programs import PROGRAMS
from repository import SKILLS
from skillshelf.lint.hosts import CONDITIONS, OUTCOMES, HostVerdict, find_conditions, judge_conditions, load_records
from skillshelf.lint.hosts._detect import BEHAVIOR_FIELDS

Run = Callable[..., tuple[int, str, str]]
SKILLS = SKILLS
# Conditions that cannot occur alone, with the one that accompanies them.
TOGETHER = {
    "block-on-one-line": "yaml-repaired",
    "description-anchor": "yaml-anchor",
    "description-quote-ends": "yaml-repaired",
    "description-surrogates": "description-escaped",
    "description-unindented": "yaml-repaired",
    "description-very-long": "description-too-long",
    "duplicate-key": "fields-unknown",
    "empty": "frontmatter-missing",
    "field-key": "fields-unknown",
    "frontmatter-last": "instructions-missing",
    "invocable-other": "fields-unknown",
    "model-invocation-off": "fields-unknown",
    "paths-given": "fields-behavior",
}


@pytest.mark.parametrize("code", CONDITIONS)
def test_each_condition_is_found_in_the_file_that_measured_it(code: str) -> None:
    """No other condition is found there."""
    variant = portability.VARIANTS[code]
    folder = variant.folder or variant.name
    conditions = find_conditions(variant.data, folder, file=variant.file, nested=variant.nested, linked=variant.linked)
    assert conditions == sorted({code, TOGETHER.get(code, code)})


def test_a_plain_skill_loads_everywhere() -> None:
    """It has none of the conditions."""
    assert find_conditions(portability.VARIANTS["plain"].data, "plain") == []
    assert {(verdict.makes, verdict.because) for verdict in judge_conditions([])} == {("loads", ())}


def test_the_table_is_complete() -> None:
    """It has every host with a probe, every condition, and no unknown word. Programs come before libraries."""
    assert list(load_records()) == [*sorted(PROGRAMS), *sorted(HOSTS)]
    assert set(portability.VARIANTS) == {*CONDITIONS, "plain"}
    for record in load_records().values():
        assert list(record.makes) == sorted(CONDITIONS)
        assert set(record.makes.values()) <= set(OUTCOMES)


def test_the_table_says_which_versions_were_measured_and_how() -> None:
    for host, program in PROGRAMS.items():
        record = load_records()[host]
        assert (record.version, record.package, record.how) == (program.version, program.package, program.how)
        assert record.folders[program.skills]


def test_the_longest_description_of_claude_code_is_a_condition() -> None:
    """The limit in the code is the measured one."""
    longest = load_records()["claude-code"].space.longest or 0
    for length, is_too_long in ((longest, False), (longest + 1, True)):
        text = f"---\nname: x\ndescription: {'d' * length}\n---\n\nDo it.\n"
        assert ("description-very-long" in find_conditions(text.encode(), "x")) is is_too_long


def test_exactly_the_harmful_conditions_have_a_fix() -> None:
    minded = {code for record in load_records().values() for code, makes in record.makes.items() if makes != "loads"}
    assert {code for code, condition in CONDITIONS.items() if condition.fix} == minded


FIELDS = {
    "fields-behavior": sorted(BEHAVIOR_FIELDS - {"paths"}),
    "fields-unknown": ["author", "disclosure", "references", "user-invocable", "version"],
}


@pytest.fixture(scope="module")
def makes() -> Callable[[str, Mapping[str, Variant]], dict[str, dict[str, str]]]:
    """Return the results of each installed host for the skills of a kind.

    All hosts run at once, because they start slowly.
    """
    kinds = {"variant": portability.VARIANTS, "odd": portability.corpus(SKILLS)}
    kinds |= {kind: {field: portability.with_field(field) for field in fields} for kind, fields in FIELDS.items()}
    everything = {f"{kind} {name}": variant for kind, some in kinds.items() for name, variant in some.items()}
    rows = portability.measure_with(sys.executable, everything)
    if not rows:
        pytest.skip("no host is installed here; `python -m benchmarks.portability --install` measures them all")

    def of(kind: str, some: Mapping[str, Variant]) -> dict[str, dict[str, str]]:
        return {host: {name: row["makes"][f"{kind} {name}"] for name in some} for host, row in rows.items()}

    return of


Makes = Callable[[str, Mapping[str, Variant]], dict[str, dict[str, str]]]


def test_installed_hosts_match_the_table(makes: Makes) -> None:
    """Their own loaders read every file again."""
    measured = makes("variant", portability.VARIANTS)
    assert measured == {host: {"plain": "loads", **load_records()[host].makes} for host in measured}


def test_installed_hosts_match_our_verdicts_on_odd_skills(makes: Makes) -> None:
    """These are the test cases of our own reader, with oddities in all combinations."""
    skills = portability.corpus(SKILLS)
    assert len(skills) > 80
    rows = {host: {"makes": results} for host, results in makes("odd", skills).items()}
    assert list(portability.disagreements(skills, rows)) == []


@pytest.mark.parametrize("kind", FIELDS)
def test_fields_of_a_kind_have_the_same_effect(makes: Makes, kind: str) -> None:
    """Each field alone has the effect that was measured for all together."""
    alone = {field: portability.with_field(field) for field in FIELDS[kind]}
    assert {code for variant in alone.values() for code in find_conditions(variant.data, "plain")} == {kind}
    for host, results in makes(kind, alone).items():
        assert set(results.values()) == {load_records()[host].makes[kind]}, (host, results)


@pytest.mark.parametrize(
    ("fields", "host", "makes"),
    [
        ("description:\n  Reviews a change.", "openai-agents", "corrupts"),  # uv, gemini-cli
        ('description: "Reviews\n  a change."', "openai-agents", "corrupts"),
        ("description: Reviews.\nallowed-tools: Read Grep", "pydantic-ai-harness", "warns"),
        ("description: Reviews.\ndependencies: none", "pydantic-ai-harness", "warns"),
        ("description: Reviews.\nuser-invocable: false", "pydantic-ai-harness", "loads"),
        ("description: Reviews.\ntags: [a, b]", "skills-ref", "crashes"),
        ("description: Reviews.\nmetadata:\n  tags:\n    - a", "skills-ref", "loads"),
        ("description: Reviews.\nname:\tx", "google-adk", "drops"),  # a tab, which our reader repairs
    ],
)
def test_conditions_of_real_skills_are_found(fields: str, host: str, makes: str) -> None:
    """Each of these was once judged wrongly."""
    name = "" if "name:" in fields else "name: x\n"
    conditions = find_conditions(f"---\n{name}{fields}\n---\n\nDo it.\n".encode(), "x")
    assert {verdict.host: verdict.makes for verdict in judge_conditions(conditions)}[host] == makes


def test_expensive_frontmatter_is_judged_quickly() -> None:
    """Nested aliases and endless brackets are found without being expanded."""
    bomb = "a: &a [x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in pairwise("abcdefghijklmnop"))
    for fields, code in ((bomb, "yaml-anchor"), ("a: " + "[" * 2_000, "yaml-repaired")):
        assert code in find_conditions(f"---\nname: x\ndescription: y\n{fields}\n---\n\nDo it.\n".encode(), "x")


def test_a_hidden_character_in_the_name_is_judged() -> None:
    """We refuse such a skill, but the verdict is about other hosts."""
    assert find_conditions("---\nname: pla\u200bin\ndescription: d\n---\nBody\n".encode(), "plain") == [
        "name-characters"
    ]


def test_overlong_frontmatter_is_judged_by_its_beginning() -> None:
    """Hosts without such a limit find the name and the description there."""
    fields = "".join(f"k{at}: value\n" for at in range(25_000))
    assert find_conditions(f"---\nname: a\ndescription: d\n{fields}---\nBody\n".encode(), "a") == ["fields-unknown"]


def test_the_worst_of_several_conditions_counts() -> None:
    """A verdict names the conditions that cause it, and no others."""
    [adk] = judge_conditions(["bom", "crlf", "dashes-in-description", "name-mismatch"], ["google-adk"])
    assert adk == HostVerdict("google-adk", adk.version, "drops", ("bom", "name-mismatch"))


def test_a_skill_is_judged_host_by_host(write: Callable[..., Path], run: Run) -> None:
    """Each verdict has a reason and a fix. The exit code says that some host does not load the skill as written."""
    write(".claude/skills/pdf", "Use when: asked about PDF files.")
    code, output, _ = run("check", "--hosts", ".")
    lines = output.splitlines()
    assert code == 1
    assert lines[0] == ".claude/skills/pdf/SKILL.md"
    assert [line.split()[0] for line in lines[2:14]] == list(load_records())
    assert [line.split()[2] for line in lines[2:14] if line.startswith(("google", "openai"))] == ["drops", "loads"]
    assert "fix: a value is not valid YAML, such as `Use when: asked`: put the value in quotes" in lines[14]


def test_skills_that_load_everywhere_are_counted(write: Callable[..., Path], run: Run) -> None:
    """They are not listed one by one."""
    write(".claude/skills/pdf")
    write(".claude/skills/csv")
    assert run("check", "--hosts", ".") == (0, "2 skills checked: 2 loaded as written by every host\n", "")


def test_the_place_and_name_of_the_file_count(tmp_path: Path, write: Callable[..., Path], run: Run) -> None:
    """This covers a folder too deep, a link, a file name in lower case, and bytes that are not text."""
    write(".claude/skills/group/deep")
    low = write(".claude/skills/low")
    low.rename(low.with_name("skill.md"))
    write(".claude/skills/latin").write_bytes(b"---\nname: latin\ndescription: Gr\xfc\xdft.\n---\n\nHi.\n")
    write("elsewhere/linked")
    (tmp_path / ".claude/skills/linked").symlink_to(tmp_path / "elsewhere/linked")
    _, output, _ = run("check", "--hosts", "--json", ".claude")
    codes_by_skill = {
        skill["location"].split("/")[-2]: [condition["code"] for condition in skill["conditions"]]
        for skill in json.loads(output)["skills"]
    }
    assert codes_by_skill["deep"] == ["folder-nested"]
    assert codes_by_skill["low"] == ["file-lowercase"]
    assert codes_by_skill["latin"] == ["not-utf8"]
    assert codes_by_skill["linked"] == ["folder-linked"]
    assert run("check", "--hosts", ".claude/skills/linked")[1].count("the skill's folder is a symlink") == 3


@pytest.mark.parametrize("above", ["skills/acme", "plain/acme", "skills/a/b/c"])
def test_folders_above_the_checked_one_do_not_nest_a_skill(write: Callable[..., Path], run: Run, above: str) -> None:
    """A parent folder called `skills` does not say where a host will look."""
    write(f"{above}/pdf")
    assert run("check", "--hosts", above)[0] == 0
    assert run("check", "--hosts", f"{above}/pdf")[0] == 0
    assert run("check", "--hosts", f"{above}/pdf/SKILL.md")[0] == 0


def test_a_folder_called_skills_inside_the_checked_one_nests_a_skill(write: Callable[..., Path], run: Run) -> None:
    """A host that is pointed at `skills` finds only its direct subfolders, and so does a check of `skills`."""
    write("work/skills/acme/pdf")
    write("work/plugins/acme/skills/csv")
    for checked, nested in (("work", ["pdf"]), ("work/skills", ["pdf"]), ("work/plugins", [])):
        skills = json.loads(run("check", "--hosts", "--json", checked)[1])["skills"]
        codes = {skill["location"].split("/")[-2]: [each["code"] for each in skill["conditions"]] for skill in skills}
        assert [name for name, skill_codes in codes.items() if "folder-nested" in skill_codes] == nested


def test_hosts_that_get_the_skills_own_folder_accept_any_place() -> None:
    """skills-ref and inspect-ai do not search for skills."""
    makes = {verdict.host: verdict.makes for verdict in judge_conditions(["folder-nested"])}
    assert {host for host, result in makes.items() if result == "loads"} == {
        "agent-framework",
        "codex",
        "inspect-ai",
        "opencode",
        "pi",
        "skills-ref",
    }


def test_a_linked_folder_is_judged_from_above(tmp_path: Path, write: Callable[..., Path], run: Run) -> None:
    """This covers a target outside, which no shelf follows, and one inside."""
    write("elsewhere/far")
    (tmp_path / ".claude/skills").mkdir(parents=True)
    (tmp_path / ".claude/skills/far").symlink_to(tmp_path / "elsewhere/far")
    code, output, _ = run("check", "--hosts", ".claude/skills")
    assert (code, output.count("the skill's folder is a symlink"), output.splitlines()[-1]) == (
        1,
        3,
        "1 skill checked: 0 loaded as written by every host",
    )
    write(".claude/skills/near")
    write(".agents/skills/here")
    (tmp_path / ".claude/skills/here").symlink_to("../../.agents/skills/here")
    (tmp_path / ".claude/skills/gone").symlink_to("nowhere")
    assert run("check", "--hosts", ".claude/skills")[1].endswith(
        "3 skills checked: 1 loaded as written by every host\n"
    )
    assert run("check", "--hosts", ".")[1].endswith("5 skills checked: 3 loaded as written by every host\n")


def test_wrong_usage_of_hosts_is_refused(write: Callable[..., Path], run: Run) -> None:
    """Annotations have no place for hosts, and a check that examines nothing must not pass."""
    assert run("check", "--hosts")[0::2] == (2, "skillshelf: there is no skill in .\n")
    write(".claude/skills/pdf")
    code, _, complaint = run("check", "--hosts", "--format", "sarif")
    assert (code, "cannot be used together" in complaint) == (2, True)
