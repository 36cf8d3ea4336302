"""`skillshelf check --hosts`: what other agents make of a skill, from a table that was measured."""

import json
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import portability
from benchmarks.host_loaders import HOSTS, Variant
from skillshelf.lint.hosts import CONDITIONS, OUTCOMES, Verdict, find_conditions, judge, load_measurements
from skillshelf.lint.hosts._detect import BEHAVIOR_FIELDS

Run = Callable[..., tuple[int, str, str]]
SKILLS = Path(__file__).parent / "skills"
# Conditions that cannot come alone, with what they come with.
TOGETHER = {
    "block-on-one-line": "yaml-repaired",
    "description-anchor": "yaml-anchor",
    "description-quote-ends": "yaml-repaired",
    "description-surrogates": "description-escaped",
    "description-unindented": "yaml-repaired",
    "duplicate-key": "fields-unknown",
    "empty": "frontmatter-missing",
    "field-key": "fields-unknown",
    "frontmatter-last": "instructions-missing",
    "invocable-other": "fields-unknown",
}


@pytest.mark.parametrize("code", CONDITIONS)
def test_a_condition_is_seen_in_the_file_it_was_measured_with(code: str) -> None:
    """In that one, and nothing else is."""
    variant = portability.VARIANTS[code]
    folder = variant.folder or variant.name
    found = find_conditions(variant.data, folder, file=variant.file, nested=variant.nested, linked=variant.linked)
    assert found == sorted({code, TOGETHER.get(code, code)})


def test_a_plain_skill_loads_everywhere() -> None:
    """It has none of the conditions."""
    assert find_conditions(portability.VARIANTS["plain"].data, "plain") == []
    assert {(one.makes, one.because) for one in judge([])} == {("loads", ())}


def test_the_table_is_whole() -> None:
    """Every host that has a probe, every condition, and no word that is not known."""
    assert list(load_measurements()) == sorted(HOSTS)
    assert set(portability.VARIANTS) == {*CONDITIONS, "plain"}
    for measured in load_measurements().values():
        assert list(measured["makes"]) == sorted(CONDITIONS)
        assert set(measured["makes"].values()) <= set(OUTCOMES)


def test_what_no_host_minds_needs_no_fix() -> None:
    """And what one minds has one."""
    minded = {
        code
        for measured in load_measurements().values()
        for code, makes in measured["makes"].items()
        if makes != "loads"
    }
    assert {code for code, condition in CONDITIONS.items() if condition.fix} == minded


FIELDS = {
    "fields-behavior": sorted(BEHAVIOR_FIELDS),
    "fields-unknown": ["author", "disable-model-invocation", "disclosure", "references", "user-invocable", "version"],
}


def with_field(field: str) -> Variant:
    plain = portability.VARIANTS["plain"].data
    return Variant(plain.replace(b"---\n\n", f"{field}: true\n---\n\n".encode()))


@pytest.fixture(scope="module")
def makes() -> Callable[[str, Mapping[str, Variant]], dict[str, dict[str, str]]]:
    """What each host that is installed here makes of the skills of a kind. All run at once: a host is slow to start."""
    kinds = {"variant": portability.VARIANTS, "odd": portability.corpus(SKILLS)}
    kinds |= {kind: {field: with_field(field) for field in fields} for kind, fields in FIELDS.items()}
    everything = {f"{kind} {name}": one for kind, some in kinds.items() for name, one in some.items()}
    rows = portability.measure_with(sys.executable, everything)
    if not rows:
        pytest.skip("no host is installed here; `python -m benchmarks.portability --install` measures them all")

    def of(kind: str, some: Mapping[str, Variant]) -> dict[str, dict[str, str]]:
        return {host: {name: row["makes"][f"{kind} {name}"] for name in some} for host, row in rows.items()}

    return of


Makes = Callable[[str, Mapping[str, Variant]], dict[str, dict[str, str]]]


def test_the_hosts_that_are_installed_do_as_the_table_says(makes: Makes) -> None:
    """Their own loaders run over every file again."""
    measured = makes("variant", portability.VARIANTS)
    assert measured == {host: {"plain": "loads", **load_measurements()[host]["makes"]} for host in measured}


def test_the_hosts_that_are_installed_do_as_we_say_of_odd_skills(makes: Makes) -> None:
    """Of those that our own reader is tested with: what is odd about them comes in all combinations."""
    skills = portability.corpus(SKILLS)
    assert len(skills) > 80
    rows = {host: {"makes": made} for host, made in makes("odd", skills).items()}
    assert list(portability.disagreements(skills, rows)) == []


@pytest.mark.parametrize("kind", FIELDS)
def test_the_fields_of_a_kind_are_alike(makes: Makes, kind: str) -> None:
    """Each of them alone does what all of them together were measured to do."""
    alone = {field: with_field(field) for field in FIELDS[kind]}
    assert {code for one in alone.values() for code in find_conditions(one.data, "plain")} == {kind}
    for host, made in makes(kind, alone).items():
        assert set(made.values()) == {load_measurements()[host]["makes"][kind]}, (host, made)


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
        ("description: Reviews.\nname:\tx", "google-adk", "drops"),  # a tab, which our reader mends
    ],
)
def test_what_real_skills_have_is_seen(fields: str, host: str, makes: str) -> None:
    """Each was told wrongly once."""
    name = "" if "name:" in fields else "name: x\n"
    found = find_conditions(f"---\n{name}{fields}\n---\n\nDo it.\n".encode(), "x")
    assert {one.host: one.makes for one in judge(found)}[host] == makes


def test_a_frontmatter_that_is_hard_to_read_takes_no_long_time() -> None:
    """Aliases of aliases, brackets without end: found, and no more."""
    bomb = "a: &a [x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}, *{a}]\n" for a, b in pairwise("abcdefghijklmnop"))
    for fields, code in ((bomb, "yaml-anchor"), ("a: " + "[" * 2_000, "yaml-repaired")):
        assert code in find_conditions(f"---\nname: x\ndescription: y\n{fields}\n---\n\nDo it.\n".encode(), "x")


def test_a_hidden_character_in_the_name_is_a_character_that_hosts_mind() -> None:
    """We refuse such a skill; what is judged is what others do with it."""
    assert find_conditions("---\nname: pla\u200bin\ndescription: d\n---\nBody\n".encode(), "plain") == [
        "name-characters"
    ]


def test_a_frontmatter_that_is_longer_than_we_read_is_judged_by_its_beginning() -> None:
    """Hosts that have no such limit find the name and the description there."""
    fields = "".join(f"k{at}: value\n" for at in range(25_000))
    assert find_conditions(f"---\nname: a\ndescription: d\n{fields}---\nBody\n".encode(), "a") == ["fields-unknown"]


def test_the_worst_of_several_conditions_counts() -> None:
    """A verdict names those that are to blame for it, and no others."""
    adk = {one.host: one for one in judge(["bom", "crlf", "dashes-in-description", "name-mismatch"])}["google-adk"]
    assert adk == Verdict("google-adk", adk.version, "drops", ("bom", "name-mismatch"))


def test_a_skill_is_judged_host_by_host(write: Callable[..., Path], run: Run) -> None:
    """With the reason, and what to change; the exit code says that some host does not load it as written."""
    write(".claude/skills/pdf", "Use when: asked about PDF files.")
    code, said, _ = run("check", "--hosts")
    lines = said.splitlines()
    assert code == 1
    assert lines[0] == ".claude/skills/pdf/SKILL.md"
    assert [line.split()[0] for line in lines[2:9]] == list(load_measurements())
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
    assert found["linked"] == ["folder-linked"]
    assert run("check", "--hosts", ".claude/skills/linked")[1].count("the skill's folder is a symlink") == 3


@pytest.mark.parametrize("above", ["skills/acme", "plain/acme", "skills/a/b/c"])
def test_folders_above_the_checked_one_do_not_nest_a_skill(write: Callable[..., Path], run: Run, above: str) -> None:
    """A folder called `skills` somewhere above says nothing about where a host will look."""
    write(f"{above}/pdf")
    assert run("check", "--hosts", above)[0] == 0
    assert run("check", "--hosts", f"{above}/pdf")[0] == 0
    assert run("check", "--hosts", f"{above}/pdf/SKILL.md")[0] == 0


def test_a_folder_called_skills_inside_the_checked_one_nests_a_skill(write: Callable[..., Path], run: Run) -> None:
    """A host that is pointed at `skills` finds what lies directly in it, and so does one that is given `skills`."""
    write("work/skills/acme/pdf")
    write("work/plugins/acme/skills/csv")
    for checked, nested in (("work", ["pdf"]), ("work/skills", ["pdf"]), ("work/plugins", [])):
        skills = json.loads(run("check", "--hosts", "--json", checked)[1])["skills"]
        codes = {skill["path"].split("/")[-2]: [each["code"] for each in skill["conditions"]] for skill in skills}
        assert [name for name, found in codes.items() if "folder-nested" in found] == nested


def test_hosts_that_are_given_a_skills_own_folder_do_not_mind_where_it_lies() -> None:
    """skills-ref and inspect-ai look for no skills themselves."""
    makes = {verdict.host: verdict.makes for verdict in judge(["folder-nested"])}
    assert {host for host, made in makes.items() if made == "loads"} == {"agent-framework", "inspect-ai", "skills-ref"}


def test_a_linked_folder_is_judged_from_above(tmp_path: Path, write: Callable[..., Path], run: Run) -> None:
    """Where its target lies outside, which no shelf follows, and where it lies inside."""
    write("elsewhere/far")
    (tmp_path / ".claude/skills").mkdir(parents=True)
    (tmp_path / ".claude/skills/far").symlink_to(tmp_path / "elsewhere/far")
    code, said, _ = run("check", "--hosts", ".claude/skills")
    assert (code, said.count("the skill's folder is a symlink"), said.splitlines()[-1]) == (
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
    assert run("check", "--hosts")[1].endswith("5 skills checked: 3 loaded as written by every host\n")


def test_wrong_use_is_told(write: Callable[..., Path], run: Run) -> None:
    """Annotations have no place for hosts, and a look at nothing does not pass."""
    assert run("check", "--hosts")[0::2] == (2, "skillshelf check: there is no skill in .\n")
    write(".claude/skills/pdf")
    code, _, complaint = run("check", "--hosts", "--format", "sarif")
    assert (code, "exclude each other" in complaint) == (2, True)
