"""Reading SKILL.md files with the faults of real ones: each case is a folder under tests/skills/reading."""

import copy
import dataclasses
import json
import pickle
from pathlib import Path

import pytest

from repository import REPO, SKILLS
from skillshelf import DirectorySource, MemorySource, Shelf
from skillshelf.lint import check_name
from skillshelf.skillmd import Unreadable, decode, read, render_skill

READING = SKILLS / "reading"
REFUSED = SKILLS / "reading-refused"

# case: description, codes of the diagnostics with their lines
CASES: dict[str, tuple[str, list[tuple[str, int]]]] = {
    "capital-keys": ("In capitals.", [("field-invalid", 2), ("field-invalid", 3)]),
    "closed-with-dots": ("Dots.", [("frontmatter-unclosed", 1)]),
    "colon-in-flow-list": ("Fine.", []),
    "fenced-frontmatter": ("Fenced alone.", [("frontmatter-not-first", 1)]),
    "heading-first": (
        "Below a heading.",
        [("description-missing", 1), ("frontmatter-missing", 1), ("name-missing", 1)],
    ),
    "json-emoji": ("🚀 Ship it", []),
    "nbsp-after-colon": ("Behind a hard space.", [("yaml-repaired", 3)]),
    "stray-space": ("Behind a space.", [("yaml-invalid", 3)]),
    "two-quotations": ('"Foo" and "Bar"', [("yaml-repaired", 3)]),
    "unclosed-before-prose": ("Never closed.", [("frontmatter-unclosed", 1)]),
    "anchors": ("Shared words.", []),
    "at-sign-in-list": ("Fine.", [("yaml-repaired", 8)]),
    "bad-escape": (r"Match \d+ digits", [("yaml-repaired", 3)]),
    "blank-lines-first": ("Late.", [("frontmatter-not-first", 1)]),
    "bom": ("A mark first.", [("bom", 1)]),
    "broken-flow-list": ("Fine.", [("yaml-repaired", 4)]),
    "chinese": ("将扫描件转换为文本，用于归档。", []),
    "code-fence": ("Fenced.", [("frontmatter-not-first", 1)]),
    "colon-in-description": ("Use when: the user asks", [("yaml-repaired", 3)]),
    "comment-as-description": ("Deploys the site", [("comment-as-value", 3)]),
    "comment-cuts-description": ("Deploys issue", [("comment-cuts-value", 3)]),
    "comment-first": ("Late.", [("frontmatter-not-first", 1)]),
    "crlf": ("Windows lines.", []),
    "dash-value": ("Fine.", [("yaml-repaired", 4)]),
    "dashes-in-block-scalar": ("above\n---\nbelow", []),
    "dashes-in-description": ("one --- two", []),
    "duplicate-key": ("second", [("yaml-duplicate-key", 4)]),
    "emoji": ("Families 👨‍👩‍👧 and ❤️ welcome.", []),
    "folded": ("first line second line\nnext paragraph", []),
    "folded-and-empty": ("First paragraph. Its second line.", [("description-missing", 3)]),
    "folded-on-one-line": ("Use when the line goes on.", [("yaml-repaired", 3)]),
    "folded-strip": ("first line second line", []),
    "heading-only": ("Just a heading", [("description-missing", 1)]),
    "inner-quotes": ('Say "hello" to all', [("yaml-repaired", 3)]),
    "license-is-mapping": ("Fine.", [("field-invalid", 4)]),
    "merge-key": ("Fine.", [("yaml-merge-key", 6)]),
    "metadata-is-text": ("Fine.", [("field-invalid", 4)]),
    "name-is-list": ("Fine.", [("name-refused", 2)]),
    "name-yes": ("True to YAML, a name to us.", []),
    "no-description": ("The first words of the file.", [("description-missing", 1)]),
    "no-frontmatter": (
        "Push the button.",
        [("description-missing", 1), ("frontmatter-missing", 1), ("name-missing", 1)],
    ),
    "no-instructions": ("Nothing below.", []),
    "no-name": ("Only this.", [("name-missing", 1)]),
    "no-space-after-colon": ("Glued.", [("yaml-repaired", 2), ("yaml-repaired", 3)]),
    "not-a-mapping": ("Text here.", [("description-missing", 1), ("name-missing", 1), ("yaml-invalid", 2)]),
    "path-in-name": ("Fine.", [("name-refused", 2)]),
    "plain": ("Plain words.", []),
    "quotes": ('It\'s quoted: "well"', []),
    "rule-in-body": ("A rule below.", []),
    "rules-around-prose": ("More.", [("description-missing", 1), ("name-missing", 1), ("yaml-invalid", 3)]),
    "scalars-stay-text": ("Numbers and dates.", []),
    "spaces-after-dashes": ("Fine.", [("delimiter-spaces", 1)]),
    "star-alias": ("*.py files and more", [("yaml-repaired", 3)]),
    "tabs": ("Fine.", [("yaml-invalid", 5)]),
    "tag": ("true", [("field-invalid", 3), ("yaml-tag", 3)]),
    "two-faulty-fields": ("Use when: asked", [("yaml-repaired", 3), ("yaml-repaired", 4)]),
    "unclosed": ("Never closed.", [("frontmatter-unclosed", 1)]),
    "undelimited": ("No lines at all.", [("frontmatter-undelimited", 1)]),
    "unindented-continuation": ("starts here and goes on here", [("yaml-repaired", 3)]),
    "unknown-keys": ("Fine.", []),
    "unopened": ("No first line.", [("frontmatter-unopened", 1)]),
    "uppercase-name": ("Fine.", []),
}
NAMES = {"name-yes": "yes", "uppercase-name": "My Skill_v2"}
INSTRUCTIONS = {
    "heading-first": "# Title\n\n---\nname: heading-first\ndescription: Below a heading.\n---\n\nDo it.\n",
    "unclosed-before-prose": "This is prose: do it.\n",
    "chinese": "步骤一。\n",
    "crlf": "Do it.\r\n",
    "folded-and-empty": "# Title\n\nFirst paragraph.\nIts second line.\n\nOther.\n",
    "heading-only": "# Just a heading\n",
    "no-description": "# Heading\n\n![badge](x.svg)\n\nThe first words\nof the file.\n\nMore.\n",
    "no-frontmatter": "# Deploy\n\nPush the button.\n",
    "no-instructions": "",
    "not-a-mapping": "---\n- one\n- two\n---\nText here.\n",
    "plain": "# Plain\n\nDo it.\n",
    "rule-in-body": "One.\n\n---\n\nTwo.\n",
    "rules-around-prose": "---\n\nJust prose between two rules.\n\n---\n\nMore.\n",
    "tag": "Do it by hand.\n",
    "unclosed": "# Body\n\nDo it.\n",
    "undelimited": "# Body\n\nDo it.\n",
}
# case: code and line of the one diagnostic
REFUSALS = {
    "blank": ("empty", 1),
    "cr-only": ("cr-only", 1),
    "empty": ("empty", 1),
    "hidden-in-description": ("hidden-characters", 3),
    "latin-1": ("not-utf8", 3),
    "name-only": ("no-text", 1),
    "nul": ("nul-byte", 2),
    "symlink-text": ("symlink-text", 1),
    "utf-16": ("not-utf8", 1),
}


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    return Shelf([DirectorySource(READING, cache=False), DirectorySource(REFUSED, cache=False)])


def test_every_case_has_a_folder_and_every_folder_a_case() -> None:
    assert {path.name for path in READING.iterdir()} == set(CASES)
    assert {path.name for path in REFUSED.iterdir()} == set(REFUSALS)


@pytest.mark.parametrize("case", CASES)
def test_a_file_with_usable_text_becomes_a_skill(shelf: Shelf, case: str) -> None:
    """It has the description and instructions that its author meant, and each repair is reported with its line."""
    description, codes = CASES[case]
    skill = shelf.catalog[NAMES.get(case, case)]
    notes = [note for note in shelf.catalog.diagnostics if note.path == skill.location]
    assert skill.description == description
    assert sorted((note.code, note.line) for note in notes) == codes
    assert all(note.fix for note in notes if note.severity != "info")
    assert shelf.instructions(skill.name) == INSTRUCTIONS.get(case, "Do it.\n")


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refused_file_has_one_error_that_says_what_to_change(shelf: Shelf, case: str) -> None:
    notes = [note for note in shelf.catalog.diagnostics if Path(note.path).parent.name == case]
    assert [(note.severity, note.code, note.line) for note in notes] == [("error", *REFUSALS[case])]
    assert notes[0].fix
    assert case not in shelf.catalog


def test_a_fault_in_one_field_leaves_the_others(shelf: Shelf) -> None:
    """A repaired field is text. Its neighbours, also nested ones, are read as YAML."""
    assert shelf.catalog["two-faulty-fields"].license == "MIT"
    assert shelf.catalog["two-faulty-fields"].fields == {"keywords": "[@Injected, x]"}
    assert shelf.catalog["at-sign-in-list"].metadata == {
        "labels": ["x"],
        "triggers": {"files": ["a.ts"], "keywords": "[@Input, signal]"},
    }
    assert shelf.catalog["dash-value"].allowed_tools == ("Read",)
    assert shelf.catalog["broken-flow-list"].argument_hint == "[file] [line]"


def test_scalars_stay_as_written(shelf: Shelf) -> None:
    """`1.10` does not become 1.1, nor `yes` true, nor `~` None."""
    skill = shelf.catalog["scalars-stay-text"]
    assert skill.fields == {"version": "1.10", "when": "2024-01-02", "yes": "no", "nothing": "~"}
    assert skill.metadata == {"version": "1.0", "big": "0x1F"}


def test_aliases_and_merge_keys_construct_nothing(shelf: Shelf) -> None:
    """An alias stands for its value; a merge key is a key like any other."""
    assert shelf.catalog["anchors"].metadata == {"summary": "Shared words."}
    assert shelf.catalog["merge-key"].metadata == {"<<": {"a": "1"}}


def test_what_a_program_does_to_one_skill_changes_no_other() -> None:
    """Skills with the same fields share them, so they refuse changes. Copies of them don't."""
    written = "---\nname: {}\ndescription: Same.\nmetadata:\n  by: me\nhooks:\n  stop: x\n---\nDo it.\n"
    first, second = Shelf([MemorySource({name: written.format(name) for name in ("a", "b")})]).catalog.values()

    for values in (first.metadata, first.fields, first.fields["hooks"]):
        assert isinstance(values, dict)
        with pytest.raises(TypeError, match="read-only"):
            values["evil"] = "1"
        with pytest.raises(TypeError, match="read-only"):
            values.clear()
        for copied in (dict(values), copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
            copied["evil"] = "1"
    assert (second.metadata, second.fields) == ({"by": "me"}, {"hooks": {"stop": "x"}})
    assert json.loads(json.dumps(dataclasses.asdict(second)))["fields"] == second.fields


def test_optional_fields_reach_the_descriptor() -> None:
    """Tools may be words or a list, with or without commas. Disclosure and invocation have two spellings each."""
    text = render_skill(
        {
            "name": "all",
            "description": "Everything.",
            "license": "MIT",
            "compatibility": "Python 3.11",
            "allowed-tools": "Bash(git add:*), Read Write",
            "metadata": {"disclosure": "always"},
            "user-invocable": "false",
            "arguments": ["file", "line"],
            "argument-hint": "FILE [LINE]",
            "references": ["references/a.md"],
        },
        "Do it.\n",
    )
    optional = read(text).optional
    assert optional.allowed_tools == ("Bash(git add:*)", "Read", "Write")
    assert (optional.license, optional.compatibility, optional.disclosure) == ("MIT", "Python 3.11", "always")
    assert (optional.user_invocable, optional.arguments, optional.argument_hint) == (
        False,
        ("file", "line"),
        "FILE [LINE]",
    )
    assert optional.listed_references == ("references/a.md",)
    assert read("---\nname: a\ndescription: b\ndisable-model-invocation: true\n---\n").optional.disclosure == "manual"


def test_values_that_yaml_could_misread_survive_writing_and_reading() -> None:
    values = {
        "name": "odd",
        "description": "Use when: # not a comment, 'quoted', - dash",
        "metadata": {"v": "1.10", "n": "no"},
    }
    again = read(render_skill(values, "# Body\n"))
    assert (again.values, again.instructions) == (values, "# Body\n")


CORPUS = REPO.parent / "shared" / "corpus"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs the corpus of public skills")
def test_the_corpus_reads_as_before() -> None:
    """All of 376 public files that hold text become skills, with the names and descriptions recorded earlier."""
    manifest = json.loads((CORPUS / "manifest.json").read_text())["skills"]
    unread = []
    for entry in manifest:
        path = CORPUS / "skills" / entry["repo"].replace("/", "__") / entry["path"] / entry["skill_file"]
        known = entry["reference"]
        data = path.read_bytes()
        if not data:
            unread.append(path)
            continue
        skill = read(decode(data), path.parent.name)
        if known["level"] >= 0:
            assert (skill.name, len(skill.description)) == (known["name"], known["description_chars"]), path
    assert len(unread) == 2


@pytest.mark.parametrize(
    ("written", "disclosure", "invocable", "codes"),
    [
        ("True", "manual", True, []),
        ("YES", "manual", True, []),
        ("on", "manual", True, []),
        ("False", "auto", False, []),
        ("no", "auto", False, []),
        ("Off", "auto", False, []),
        ("", "auto", True, []),
        ("maybe", "auto", True, ["field-invalid", "field-invalid"]),
        ("[true, false]", "auto", True, ["field-invalid", "field-invalid"]),
    ],
)
def test_flags_may_be_written_in_any_spelling(written: str, disclosure: str, invocable: bool, codes: list[str]) -> None:
    """YAML's words for true and false are accepted in any case; any other value is reported and left out."""
    skill = read(
        f"---\nname: a\ndescription: b\ndisable-model-invocation: {written}\nuser-invocable: {written}\n---\nDo it.\n"
    )
    assert (skill.optional.disclosure, skill.optional.user_invocable) == (disclosure, invocable)
    assert [note.code for note in skill.diagnostics] == codes


def test_the_limits_hold_for_plain_files_too() -> None:
    """A plain frontmatter may not be longer, or have more values, than any other."""
    start = "---\nname: a\ndescription: b\n"
    with pytest.raises(Unreadable, match="at most"):
        read(f"{start}license: {'x' * 1_000_000}\n---\nDo it.\n")
    many = "".join(f"k{number}: v\n" for number in range(5000))
    skill = read(f"{start}{many}---\nDo it.\n")
    assert "frontmatter-cut" in {note.code for note in skill.diagnostics}
    assert len(skill.values) <= 256


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        ('["  Read  ", "Write", "  "]', ("Read", "Write")),
        ("\n  - ' Bash(git add:*) '\n  - ''", ("Bash(git add:*)",)),
        ("' Read ,  Write '", ("Read", "Write")),
    ],
)
def test_allowed_tools_are_stripped_and_blank_ones_dropped(written: str, tools: tuple[str, ...]) -> None:
    text = read(f"---\nname: x\ndescription: d\nallowed-tools: {written}\n---\nDo it.\n")
    assert text.optional.allowed_tools == tools


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("# Deploy\n\n**Version:** 1.2.0\n**Author**: Ada\n\nPushes the main branch.\n", "Pushes the main branch."),
        ("# Deploy\n\n- **Last updated:** today\n\nPushes it.\n", "Pushes it."),
        ("Version: 1.2\n\nPushes it.\n", "Pushes it."),
        ("# Deploy\n\n**Purpose:** Pushes it.\n", "Pushes it."),
        ("# Deploy\n\n**Version:** 1.2.0\n", "Deploy"),
        ("**Bold** words begin it: fine.\n", "**Bold** words begin it: fine."),
    ],
)
def test_a_version_author_or_date_does_not_become_the_description(body: str, description: str) -> None:
    assert read(body, "deploy").description == description


def test_a_file_with_only_an_import_is_not_reported_as_a_symlink() -> None:
    with pytest.raises(Unreadable) as caught:
        read("@../shared/AGENTS.md\n", "x")
    assert caught.value.diagnostic.code == "import-only"


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("pdf", "the folder's name, 'pdf', is used"),
        ("a|b", "'a-b', made from the folder's name, is used"),
        ("???", "'skill' is used"),
    ],
)
def test_the_diagnostic_says_where_the_name_comes_from(folder: str, words: str) -> None:
    [note] = [note for note in read("---\ndescription: d\n---\nDo it.\n", folder).diagnostics if "name" in note.code]
    assert words in note.message


def test_a_blank_name_is_a_fault_and_not_a_crash() -> None:
    assert [fault.code for fault in check_name("")] == [fault.code for fault in check_name("  ")] == ["name-missing"]
