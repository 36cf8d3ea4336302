"""Test check_skill and check_path: the diagnostics for authors."""

import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from repository import SKILLS
from skillshelf.lint import check_name, check_path, check_skill, check_text, check_tree, suggest_name
from skillshelf.lint._fields import RESERVED_NAMES
from skillshelf.lint._limits import MAX_FILES
from skillshelf.skills import Diagnostic

CASES = SKILLS / "checking"
Note = tuple[str, str, str, int]
FIELD = ("info", "field-extension", "SKILL.md", 4)
EXPECTED: dict[str, list[Note]] = {
    "broken-python": [("error", "python-invalid", "scripts/count.py", 1)],
    "comment-cuts-description": [("warning", "comment-cuts-value", "SKILL.md", 3)],
    "complete": [],
    "dead-link-in-instructions": [("warning", "markdown-invalid", "SKILL.md", 8)],
    "dead-link-in-reference": [("warning", "markdown-invalid", "references/a.md", 3)],
    "duplicate-key": [("error", "yaml-duplicate-key", "SKILL.md", 5)],
    "field-extension": [FIELD],
    "field-known": [("info", "field-known", "SKILL.md", 4)],
    "hidden-in-instructions": [
        ("warning", "hidden-in-instructions", "SKILL.md", 8),
        ("warning", "hidden-in-instructions", "SKILL.md", 10),
    ],
    "mcp-withheld": [("warning", "mcp-withheld", "SKILL.md", 5)],
    "nested-skill": [("info", "nested-skill", "inner/SKILL.md", 0)],
    "no-instructions": [("warning", "instructions-missing", "SKILL.md", 6)],
    "open-fence": [("warning", "markdown-invalid", "references/a.md", 3)],
    "reference-missing": [FIELD, ("error", "reference-missing", "SKILL.md", 5)],
    "reference-outside": [("error", "reference-refused", "SKILL.md", 0), FIELD],
    "reference-unlisted": [FIELD, ("error", "reference-unlisted", "references/b.md", 0)],
    "reference-unnamed": [("warning", "reference-unnamed", "references/a.md", 0)],
    "unexpected-fields": [("warning", "unexpected-fields", "SKILL.md", 4)],
}


def notes(folder: Path) -> list[Note]:
    diagnostics = check_skill(folder)
    return [(note.severity, note.code, os.path.relpath(note.path, folder), note.line) for note in diagnostics]


def codes(path: Path) -> list[str]:
    return [note.code for note in check_path(path)]


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_each_case_has_exactly_its_faults(case: str) -> None:
    """Each folder under tests/skills/checking shows one fault, and nothing else is reported."""
    assert notes(CASES / case) == EXPECTED[case]


@pytest.mark.parametrize("case", ["field-extension", "field-known", "unexpected-fields"])
def test_strict_makes_every_field_outside_the_format_an_error(case: str) -> None:
    """The format's own validator does the same; nothing else changes."""
    strict = check_skill(CASES / case, strict=True)
    assert [(note.severity, note.code) for note in strict] == [("error", case)]
    assert check_path(CASES / case / "SKILL.md", strict=True) == strict
    assert [note.code for note in check_skill(CASES / "complete", strict=True)] == []


VALUES: dict[str, tuple[str, list[tuple[str, int]]]] = {
    "compatibility is blank": ("compatibility:", [("compatibility-empty", 4)]),
    "compatibility is an empty text": ('compatibility: ""', [("compatibility-empty", 4)]),
    "compatibility is text": ("compatibility: Python 3.11", []),
    "a metadata value is a number": ('metadata:\n  team: "a"\n  version: 1.0', [("metadata-not-text", 6)]),
    "a metadata value is a list": ("metadata:\n  tags:\n    - a", [("metadata-not-text", 5)]),
    "metadata values are text": ('metadata:\n  version: "1.0"\n  date: 2026-01-31', []),
    "allowed-tools is a list": ("allowed-tools:\n  - Read\n  - Grep", [("allowed-tools-form", 4)]),
    "allowed-tools has commas": ("allowed-tools: Read, Grep", [("allowed-tools-form", 4)]),
    "a tool has a comma": ("allowed-tools: Bash(sed -n 1,5p:*) Read", []),
}


@pytest.mark.parametrize("case", VALUES)
def test_strict_reports_values_that_the_format_has_in_another_form(case: str) -> None:
    """Each is one error with its line. Without --strict none of these codes appears, and the skill loads as before."""
    lines, expected = VALUES[case]
    text = f"---\nname: x\ndescription: Does it.\n{lines}\n---\n\nDo it.\n"
    strict = check_text(text, "x", strict=True)
    assert [(note.code, note.line) for note in strict] == expected
    assert all(note.severity == "error" and note.fix for note in strict)
    assert {note.code for note in check_text(text, "x")} <= {"mcp-withheld"}


MISSING_TEXT = {
    "an unclosed frontmatter": ("---\nname: x\n", ("frontmatter-unclosed", 1)),
    "an unopened frontmatter": ("name: x\n---\n", ("frontmatter-unopened", 1)),
    "fields without delimiters": ("\nname: x\n", ("frontmatter-undelimited", 2)),
    "a list": ("---\n- name\n- x\n---\n", ("yaml-invalid", 2)),
    "prose": ("---\n\nfill this in\n---\n", ("yaml-invalid", 3)),
    "a tab": ("---\n\tname: x\n---\n", ("yaml-invalid", 2)),
    "a bracket that is not closed": ("---\nlicense: MIT\nname: [x\n---\n", ("yaml-repaired", 3)),
    "nothing wrong with it": ("---\nname: x\nlicense: MIT\n---\n", ("no-text", 1)),
    "an empty description": ("---\nname: x\ndescription:\n---\n", ("no-text", 3)),
}


@pytest.mark.parametrize("case", MISSING_TEXT)
def test_missing_text_is_reported_with_its_cause(tmp_path: Path, case: str) -> None:
    """A faulty frontmatter is the cause of a missing description, so its code and line are reported."""
    text, expected = MISSING_TEXT[case]
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "SKILL.md").write_text(text)
    (note,) = check_path(tmp_path)
    assert (note.code, note.line) == expected
    assert note.message.endswith("there is no description and no text to take one from")
    assert note.fix.endswith("write `description:` and instructions")


def test_a_misspelt_field_is_recognized(tmp_path: Path) -> None:
    """The fix names the intended field."""
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "SKILL.md").write_text("---\nname: x\ndescription: It.\nlicence: MIT\n---\n\nDo it.\n")
    (note,) = check_skill(tmp_path / "x")
    assert (note.severity, note.code) == ("warning", "unexpected-fields")
    assert "`license`" in note.fix


def check_fields(fields: str, folder: str = "x") -> dict[str, Diagnostic]:
    return {note.code: note for note in check_text(f"---\n{fields}---\n\nDo it.\n", folder)}


@pytest.mark.parametrize(
    ("field", "meant"),
    [
        ("licence", "license"),
        ("allowedTools", "allowed-tools"),
        ("reference", "references"),
        ("user-invokable", "user-invocable"),
        ("capabilities", ""),
        ("tool", ""),
        ("compatible_with", ""),
        ("last-updated", ""),
        ("names", ""),
    ],
)
def test_a_field_is_suggested_if_it_is_read_and_spelled_alike(field: str, meant: str) -> None:
    """A field that the skill has already is not meant, either."""
    note = check_fields(f"name: x\ndescription: It.\n{field}: y\n")["unexpected-fields"]
    assert note.fix.endswith("ove them under `metadata:`")
    assert note.fix.startswith(f"did you mean `{meant}`?" if meant else "move")


def test_a_folder_is_not_to_be_renamed_after_an_invalid_name() -> None:
    assert "rename the folder" in check_fields("name: y\ndescription: It.\n")["name-mismatch"].fix
    note = check_fields("name: My Skill\ndescription: It.\n")["name-mismatch"]
    assert note.fix == "give both a valid name, such as 'my-skill'"


def test_nested_metadata_that_a_host_reads_may_stay() -> None:
    """OpenClaw reads a mapping there. What nobody reads is to be written as text, and is reported first."""
    nested = "name: x\ndescription: It.\nmetadata:\n  openclaw:\n    emoji: x\n"
    note = check_fields(nested)["mcp-withheld"]
    assert (note.severity, note.fix) == ("info", "leave it if OpenClaw is to read it")
    note = check_fields(f"{nested}  tags: [a]\n")["mcp-withheld"]
    assert (note.severity, note.fix) == ("warning", "write it as one text")


def test_all_codes_count_the_same_characters() -> None:
    """The line break that ends a block is not the author's, and is counted apart."""
    notes = check_fields("name: x\ndescription: |\n  " + "d" * 1100 + "\n")
    assert "(1100)" in notes["description-too-long"].message
    assert "1,100 characters plus 1 of white space" in notes["mcp-withheld"].message
    notes = check_fields("name: x\ndescription: It.\ncompatibility: |\n  " + "c" * 600 + "\n")
    assert "(600)" in notes["compatibility-too-long"].message
    assert "600 characters plus 1 of white space" in notes["mcp-withheld"].message


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ("name: claude-helper\ndescription: It.\n", "'claude'"),
        ("name: my-anthropic\ndescription: It.\n", "'anthropic'"),
        ("name: x\ndescription: Use it in <system> prompts.\n", "'<system>'"),
        ("name: x\ndescription: If a < b and b > c, or at a <3.\n", ""),
    ],
)
def test_what_the_skills_api_refuses_is_reported_for_it(fields: str, word: str) -> None:
    """The open format allows it, so it is no fault for anybody else."""
    note = check_fields(fields).get("skills-api-refused")
    if not word:
        assert note is None
        return
    assert note is not None
    assert note.severity == "info"
    assert word in note.message


def test_every_diagnostic_says_where_and_what_to_do() -> None:
    """Each has a path, a message, and, unless it is purely informative, a fix."""
    for note in check_path(CASES):
        assert note.path.startswith(str(CASES))
        assert note.message
        assert note.fix


def test_the_path_of_a_skill_md_stands_for_its_folder() -> None:
    assert check_tree(CASES / "reference-unnamed" / "SKILL.md") == check_tree(CASES / "reference-unnamed")


def test_all_skills_below_a_folder_are_checked() -> None:
    """Each is checked as it would be alone."""
    checked = check_tree(CASES)
    assert checked.skills == len(EXPECTED)
    assert sorted(note.code for note in checked.diagnostics) == sorted(
        code for expected in EXPECTED.values() for _, code, _, _ in expected
    )


def test_colliding_names_below_a_folder_are_reported(tmp_path: Path, write: Callable[..., Path]) -> None:
    """This covers two skills of one name, and two names that look alike."""
    write("a/pdf"), write("b/pdf", "Does something else."), write("b/p-d"), write("a/p_d")
    faults = [(note.code, os.path.relpath(note.path, tmp_path)) for note in check_path(tmp_path)]
    assert ("shadowed", "b/pdf/SKILL.md") in faults
    assert ("name-twin", "a/p_d/SKILL.md") in faults


def test_a_folder_without_skills_fails(tmp_path: Path) -> None:
    """A check that examines nothing must not pass."""
    assert [(note.severity, note.code) for note in check_path(tmp_path)] == [("error", "no-skill")]
    (tmp_path / "link").symlink_to("/nowhere")
    assert codes(tmp_path) == ["no-skill", "link-broken"]


def test_too_many_skills_for_a_listing_are_reported(tmp_path: Path, write: Callable[..., Path]) -> None:
    """Their descriptions take more room than a listing has."""
    for number in range(40):
        write(f"skill-{number}", "Explains at length what it is for, and when to use it. " * 15)
    (note,) = check_path(tmp_path)
    assert (note.severity, note.code, note.path) == ("warning", "crowded", str(tmp_path))
    assert "40 skills" in note.message


@pytest.mark.parametrize("body", ["Do it.\n" * 501, "All of these words count as tokens somewhere. " * 700])
def test_instructions_that_are_too_long_are_reported(write: Callable[..., Path], body: str) -> None:
    """More than 500 lines or 5,000 tokens belong in references."""
    (note,) = check_skill(write("long", body=body).parent)
    assert (note.severity, note.code) == ("warning", "instructions-too-long")
    assert "references/" in note.fix
    assert f"{len(body.splitlines()):,} lines;" in note.message


def test_many_faults_of_one_kind_are_counted(write: Callable[..., Path]) -> None:
    """Twenty are listed, with the number of the rest."""
    files = {f"references__{number}_md": "# It\n" for number in range(50)}
    diagnostics = check_skill(write("many", **files).parent)
    assert [note.code for note in diagnostics].count("reference-unnamed") == 20
    assert [note.message for note in diagnostics if note.code == "more-faults"] == [
        "30 more of reference-unnamed in this skill are not listed"
    ]


def test_a_folder_of_thousands_of_files_is_read_in_part(write: Callable[..., Path]) -> None:
    """The report says so, and does not call a reference unnamed that a file beyond the limit may name."""
    skill = write("skill", references__a_md="Alone.").parent
    assert "reference-unnamed" in {note.code for note in check_skill(skill)}
    for number in range(MAX_FILES):
        (skill / f"{number}.png").touch()
    codes = {note.code for note in check_skill(skill)}
    assert "check-stopped" in codes
    assert "reference-unnamed" not in codes


def test_missing_frontmatter_is_reported_once(tmp_path: Path) -> None:
    """The missing name and description are not reported on top."""
    (tmp_path / "SKILL.md").write_text("# It\n\nDoes it.\n")
    assert codes(tmp_path) == ["frontmatter-missing"]


@pytest.mark.parametrize("name", ["help", "con", "com1", "list"])
def test_reserved_names_are_reported(name: str) -> None:
    """A word that commands or systems use is not a good name, so another is suggested."""
    assert [note.code for note in check_name(name)] == ["name-reserved"]
    assert suggest_name(name) not in RESERVED_NAMES


@pytest.mark.parametrize("name", ["prototype", "constructor"])
def test_words_of_a_programming_language_are_fine_names(name: str) -> None:
    """No command and no system uses them."""
    assert check_name(name) == []
    assert suggest_name(name) == name


@pytest.mark.parametrize(
    ("name", "code"), [("рdf", "name-lookalike"), ("pdf", None), ("café", "name-not-ascii"), ("１-a", None)]
)
def test_names_with_lookalike_letters_are_reported(name: str, code: str | None) -> None:
    """A name that only looks plain is reported; NFKC forms of plain letters are plain."""
    assert [note.code for note in check_name(name)] == ([code] if code else [])


@pytest.mark.parametrize(
    ("name", "near"),
    [("My Skill", "my-skill"), ("--", "my-skill"), ("技能", "my-skill"), ("../../etc", "etc"), ("a" * 99, "a" * 64)],
)
def test_every_suggested_name_is_valid(name: str, near: str) -> None:
    assert suggest_name(name) == near
    assert check_name(near) == []


def test_the_message_names_the_python_that_rejects_a_file(write: Callable[..., Path]) -> None:
    """Another Python may accept it."""
    folder = write("broken", body="Run scripts/a.py.\n", scripts__a_py="def f(:\n").parent
    (note,) = check_skill(folder)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert note.code == "python-invalid"
    assert note.message.startswith(f"Python {version} cannot parse it: ")
    assert "the Python it is written for" in note.fix


def test_a_script_for_a_newer_python_is_not_judged(write: Callable[..., Path]) -> None:
    """Its metadata states its requirement, and this Python cannot tell whether it is valid."""
    script = "# /// script\n# requires-python = '>=3.99'\n# ///\nlet x = 1\n"
    assert check_skill(write("newer", body="Run scripts/a.py.\n", scripts__a_py=script).parent) == []
    script = script.replace("3.99", "3.8")
    (note,) = check_skill(write("older", body="Run scripts/a.py.\n", scripts__a_py=script).parent)
    assert (note.code, note.line) == ("python-invalid", 4)


@pytest.mark.parametrize("file", ["scripts/a.py", "references/a.md", "assets/a.json"])
def test_a_symlink_checked_out_as_text_is_reported_as_such(write: Callable[..., Path], file: str) -> None:
    """It is not reported as faulty Python."""
    path = write("linked", body=f"Use {file}.\n").parent / file
    path.parent.mkdir()
    path.write_text(f"../../shared/{file}")
    (note,) = check_skill(path.parents[1])
    assert (note.severity, note.code, note.path) == ("warning", "symlink-text", str(path))


def test_a_short_python_file_is_not_the_text_of_a_symlink(write: Callable[..., Path]) -> None:
    """An import, an expression and a comment are Python."""
    for number, text in enumerate(("import a.py", "a.b / c.py", "# ../a.py", "x = 'a/b.py'\n", "b/c.py\n")):
        folder = write(f"short-{number}", body="Run scripts/a.py.\n", scripts__a_py=text).parent
        assert check_skill(folder) == []


def test_special_files_do_not_disturb_a_check(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links, FIFOs, sockets and files of 4 GB neither block a check nor bring in outside content."""
    folder = write("hostile", body="Load secret.md, pipe.md, sock.md, huge.md, large.md and large.py.\n").parent
    references = folder / "references"
    references.mkdir()
    secret = tmp_path / "secret.md"
    secret.write_text("[dead](sesame.md)\n")
    (references / "secret.md").symlink_to(secret)
    os.mkfifo(references / "pipe.md")
    monkeypatch.chdir(references)  # the address of a socket has room for about 100 bytes
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("sock.md")
    for name, size in (("large.md", 4 * 1024**2), ("large.py", 4 * 1024**2), ("huge.md", 4 * 1024**3)):
        with open(references / name, "wb") as file:
            file.truncate(size)
    start = time.process_time()
    diagnostics = check_skill(folder)
    assert time.process_time() - start < 5
    assert sorted((note.code, Path(note.path).name) for note in diagnostics) == [
        ("reference-refused", "pipe.md"),
        ("reference-refused", "secret.md"),
        ("reference-refused", "sock.md"),
        ("reference-too-large", "large.md"),
        ("reference-too-large", "large.py"),
        ("too-many-files", "SKILL.md"),
    ]
    assert not [note for note in diagnostics if "sesame" in str(note)]


def test_a_listed_reference_that_is_a_link_is_missing(tmp_path: Path, write: Callable[..., Path]) -> None:
    """It cannot be loaded, so it is missing, and the link itself is reported, too."""
    path = write("linked", body="Load a.md.\n")
    path.write_text(path.read_text().replace("description:", "references: [references/a.md]\ndescription:"))
    (path.parent / "references").mkdir()
    (path.parent / "references" / "a.md").symlink_to("/etc/hostname")
    assert sorted(codes(path.parent)) == ["field-extension", "reference-missing", "reference-refused"]


def test_a_skill_file_that_is_a_folder_is_one_error(tmp_path: Path) -> None:
    """It raises no exception."""
    (tmp_path / "odd" / "SKILL.md").mkdir(parents=True)
    assert codes(tmp_path / "odd") == ["skill-file-unreadable"]


def test_hostile_yaml_is_one_fault(tmp_path: Path) -> None:
    """A bomb of aliases or brackets is reported within seconds."""
    for number, block in enumerate(
        ("x: " + "[" * 20_000, "a: &a [x]\n" + "b: [*a, *a]\n" * 3, "x: !!python/object:os.x {}")
    ):
        folder = tmp_path / f"bomb-{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(f"---\nname: bomb-{number}\ndescription: It.\n{block}\n---\nDo it.\n")
        start = time.process_time()
        assert "error" in {note.severity for note in check_skill(folder)}
        assert time.process_time() - start < 3


WITHHELD = {
    "a long description": ("description: " + "d" * 1025, "1,025 characters"),
    "one that is long with its line break": (
        "description: |\n  " + "d" * 1024,
        "1,024 characters plus 1 of white space",
    ),
    "a number": ("description: Does it.\nmetadata:\n  version: 1.5", "'version'"),
    "a mapping": ("description: Does it.\nmetadata:\n  author:\n    name: Ada", "'author'"),
    "a list": ("description: Does it.\nmetadata: [a]", "not a mapping"),
    "long compatibility": ("description: Does it.\ncompatibility: " + "c" * 501, "501 characters"),
}


@pytest.mark.parametrize("case", WITHHELD)
def test_a_skill_that_mcp_hosts_leave_out_gets_a_warning(case: str) -> None:
    """It says why `skills/list` leaves the skill out, and how to fix that."""
    fields, reason = WITHHELD[case]
    text = f"---\nname: pdf\n{fields}\n---\n\nGo.\n"
    [note] = [note for note in check_text(text, "pdf") if note.code == "mcp-withheld"]
    assert note.severity == "warning"
    assert reason in note.message
    assert note.fix


@pytest.mark.parametrize(
    "fields", ["description: " + "d" * 1023, "description: Does it.\nmetadata:\n  version: '1.5'\ncompatibility: git"]
)
def test_a_skill_that_mcp_hosts_accept_gets_no_warning(fields: str) -> None:
    text = f"---\nname: pdf\n{fields}\n---\n\nGo.\n"
    assert "mcp-withheld" not in [note.code for note in check_text(text, "pdf")]
