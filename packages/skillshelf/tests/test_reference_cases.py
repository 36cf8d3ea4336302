"""The 40 cases of the format's own reference library, in strict mode, and the ones it gets wrong."""

import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pytest

from skillshelf import DirectorySource, SkillDescriptor
from skillshelf.lint import check_skill, check_text
from skillshelf.listing import to_xml
from skillshelf.skillmd import read

FRONT = "---\nname: my-skill\ndescription: A test skill\n---\n"
ALL_FIELDS = (
    "---\nname: my-skill\ndescription: A test skill\nlicense: MIT\nallowed-tools: Bash(git:*)\n"
    "compatibility: Needs git\nmetadata:\n  author: Test\n---\n# My Skill\n"
)


def find_errors(folder: Path) -> list[str]:
    return [note.message for note in check_skill(folder, strict=True) if note.severity == "error"]


def write_skill_folder(parent: Path, files: Mapping[str, str | bytes], name: str = "my-skill") -> Path:
    folder = parent / name
    folder.mkdir()
    for file, text in files.items():
        (folder / file).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def find_skills(parent: Path) -> list[SkillDescriptor]:
    refreshed = DirectorySource(parent, cache=False).refresh().values()
    return [result.descriptor for result in refreshed if result and result.descriptor]


# -- parsing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("# My Skill\n\nNo frontmatter.\n", "must start with YAML frontmatter", id="no frontmatter"),
        pytest.param("---\nname: my-skill\ndescription: A\n", "not properly closed", id="never closed"),
        pytest.param("---\nname: [invalid\ndescription: A\n---\nBody\n", "Invalid YAML", id="invalid YAML"),
        pytest.param("---\n- just\n- a\n- list\n---\nBody\n", "must be a YAML mapping", id="a list"),
        pytest.param("---\ndescription: A test skill\n---\nBody\n", "Missing required field", id="no name"),
        pytest.param("---\nname: my-skill\n---\nBody\n", "Missing required field", id="no description"),
    ],
)
def test_unparsable_texts_are_errors(text: str, expected: str) -> None:
    """The messages are those of the reference library."""
    messages = [note.message for note in check_text(text, "my-skill") if note.severity == "error"]
    assert [message for message in messages if expected in message]


@pytest.mark.parametrize(("field", "text"), [("name", "description: A"), ("description", "name: my-skill")])
def test_the_missing_field_is_named(field: str, text: str) -> None:
    """The error says which of the two required fields is missing."""
    messages = [note.message for note in check_text(f"---\n{text}\n---\nBody\n", "my-skill")]
    assert [message for message in messages if "Missing required field" in message and field in message]


def test_a_line_of_prose_is_not_a_mapping() -> None:
    assert [note for note in check_text("---\njust text\n---\nBody\n", "my-skill") if "must be a YAML" in note.message]


def test_valid_frontmatter_and_body_are_read() -> None:
    """Name, description and the text below come back as written."""
    text = read(FRONT + "# My Skill\n\nInstructions here.\n")
    assert (text.name, text.description, text.instructions) == (
        "my-skill",
        "A test skill",
        "# My Skill\n\nInstructions here.\n",
    )


def test_a_valid_folder_is_read(tmp_path: Path) -> None:
    """The result has its name, description and license."""
    write_skill_folder(
        tmp_path, {"SKILL.md": "---\nname: my-skill\ndescription: A test skill\nlicense: MIT\n---\n# My\n"}
    )
    (skill,) = find_skills(tmp_path)
    assert (skill.name, skill.description, skill.license) == ("my-skill", "A test skill", "MIT")


def test_metadata_stays_text() -> None:
    """A version that looks like a number does not become one."""
    text = read("---\nname: a\ndescription: b\nmetadata:\n  author: Test Author\n  version: 1.0\n---\nBody\n")
    assert text.optional.metadata == {"author": "Test Author", "version": "1.0"}


def test_a_folder_without_skill_md_is_an_error(tmp_path: Path) -> None:
    """The message names the missing file."""
    (message,) = find_errors(write_skill_folder(tmp_path, {}))
    assert "SKILL.md not found" in message


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        pytest.param({"SKILL.md": FRONT + "upper", "skill.md": FRONT + "lower"}, "SKILL.md", id="both"),
        pytest.param({"skill.md": FRONT + "lower"}, "skill.md", id="only skill.md"),
        pytest.param({}, None, id="neither"),
    ],
)
def test_skill_md_in_capitals_is_preferred(tmp_path: Path, files: dict[str, str], chosen: str | None) -> None:
    """SKILL.md precedes skill.md, and a folder with neither is not a skill."""
    folder = write_skill_folder(tmp_path, files)
    assert [skill.location for skill in find_skills(tmp_path)] == ([f"{folder}/{chosen}"] if chosen else [])


def test_skill_md_in_lower_case_is_read(tmp_path: Path) -> None:
    write_skill_folder(tmp_path, {"skill.md": FRONT + "Body\n"})
    assert [(skill.name, skill.description) for skill in find_skills(tmp_path)] == [("my-skill", "A test skill")]


def test_allowed_tools_stay_as_written() -> None:
    """The field keeps its text, under the key with the hyphen, and is split at spaces for use."""
    text = read("---\nname: a\ndescription: b\nallowed-tools: Bash(jq:*) Bash(git:*)\n---\nBody\n")
    assert text.values["allowed-tools"] == "Bash(jq:*) Bash(git:*)"
    assert text.optional.allowed_tools == ("Bash(jq:*)", "Bash(git:*)")


# -- listing ----------------------------------------------------------------------------------------------------------


def test_xml_of_no_skills_is_an_empty_element() -> None:
    assert to_xml([]) == "<available_skills>\n</available_skills>"


def test_xml_of_a_skill_has_a_line_per_fact() -> None:
    xml = to_xml([SkillDescriptor("my-skill", "A test skill", location="/skills/my-skill/SKILL.md")])
    assert "<name>\nmy-skill\n</name>" in xml
    assert "<description>\nA test skill\n</description>" in xml
    assert "<location>\n/skills/my-skill/SKILL.md\n</location>" in xml


def test_xml_has_an_element_per_skill() -> None:
    xml = to_xml([SkillDescriptor("a", "first"), SkillDescriptor("b", "second")])
    assert (xml.count("<skill>"), xml.count("</skill>")) == (2, 2)


def test_markup_is_escaped_in_xml() -> None:
    """A description cannot add tags."""
    xml = to_xml([SkillDescriptor("a", "Use <foo> & <bar>")])
    assert "&lt;foo&gt;" in xml
    assert "&amp;" in xml
    assert "&lt;bar&gt;" in xml
    assert "<foo>" not in xml
    assert "<bar>" not in xml


# -- validation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FRONT + "# My Skill\n", id="valid"),
        pytest.param(ALL_FIELDS, id="all fields"),
        pytest.param(FRONT.replace("A test skill", "A\nallowed-tools: Bash(jq:*)") + "Body\n", id="allowed-tools"),
        pytest.param(FRONT.replace("A test skill", "A\ncompatibility: Needs git") + "Body\n", id="compatibility"),
    ],
)
def test_valid_skills_have_no_errors(tmp_path: Path, text: str) -> None:
    """The reference library's valid skills get no warnings either."""
    assert check_skill(write_skill_folder(tmp_path, {"SKILL.md": text})) == []


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("技能", "技能"),
        ("мой-навык", "мой-навык"),
        ("навык", "навык"),
        (unicodedata.normalize("NFD", "café"), unicodedata.normalize("NFC", "café")),
    ],
)
def test_names_in_other_scripts_are_valid(tmp_path: Path, name: str, folder: str) -> None:
    """Letters of any script are letters, with a warning. An equivalent spelling is the same name, with a note."""
    notes = check_skill(write_skill_folder(tmp_path, {"SKILL.md": FRONT.replace("my-skill", name) + "Body\n"}, folder))
    assert [note.code for note in notes if note.severity == "info"] == ["name-normalised"] * (name != folder)
    assert [note.severity for note in notes if note.severity != "info"] == ["warning"]


def test_paths_that_are_not_skills_have_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    missing, file, empty = tmp_path / "missing", tmp_path / "file", write_skill_folder(tmp_path, {})
    for path, expected in (
        (missing, "does not exist"),
        (file, "Not a directory"),
        (empty, "Missing required file: SKILL.md"),
    ):
        (message,) = find_errors(path)
        assert expected in message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MySkill", ["lowercase"]),
        ("НАВЫК", ["lowercase"]),
        ("a" * 70, ["exceeds", "character limit"]),
        ("-my-skill", ["cannot start or end with a hyphen"]),
        ("my--skill", ["consecutive hyphens"]),
        ("my_skill", ["invalid characters"]),
    ],
)
def test_a_name_that_breaks_a_rule_has_one_error(tmp_path: Path, name: str, expected: list[str]) -> None:
    """The error says which rule."""
    (message,) = find_errors(
        write_skill_folder(tmp_path, {"SKILL.md": FRONT.replace("my-skill", name) + "Body\n"}, name)
    )
    assert [words for words in expected if words not in message] == []


def test_a_name_that_differs_from_its_folder_is_an_error(tmp_path: Path) -> None:
    (message,) = find_errors(write_skill_folder(tmp_path, {"SKILL.md": FRONT + "Body\n"}, "other"))
    assert "must match skill name" in message


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("unknown: value", ["Unexpected fields", "'unknown'"]),
        ("compatibility: " + "a" * 550, ["exceeds", "500"]),
    ],
)
def test_a_field_that_breaks_a_rule_has_one_error(tmp_path: Path, line: str, expected: list[str]) -> None:
    """The error says which rule."""
    text = FRONT.replace("A test skill", f"A test skill\n{line}") + "Body\n"
    (message,) = find_errors(write_skill_folder(tmp_path, {"SKILL.md": text}))
    assert [words for words in expected if words not in message] == []


def test_a_description_of_1100_characters_is_too_long(tmp_path: Path) -> None:
    (message,) = find_errors(
        write_skill_folder(tmp_path, {"SKILL.md": FRONT.replace("A test skill", "a" * 1100) + "Body\n"})
    )
    assert "exceeds" in message
    assert "1024" in message


# -- where the reference library is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "description"),
    [
        pytest.param(FRONT.replace("A test skill", "a --- b"), "a --- b", id="dashes inside a value"),
        pytest.param("\ufeff" + FRONT, "A test skill", id="byte order mark"),
        pytest.param(FRONT.replace("\n", "\r\n"), "A test skill", id="CRLF"),
        pytest.param(FRONT.replace("---\n", "--- \n"), "A test skill", id="spaces after the delimiter"),
        pytest.param(
            "---\nname: my-skill\ndescription: " + "a" * 1024 + "   \n---\n", "a" * 1024, id="1,024 after stripping"
        ),
    ],
)
def test_valid_texts_that_the_reference_library_refuses(text: str, description: str) -> None:
    """They have no errors here, and the whole description is read."""
    text += "Body\n"
    assert [note for note in check_text(text, "my-skill") if note.severity != "info"] == []
    assert read(text).description == description


def test_flow_lists_are_yaml() -> None:
    """`tags: [a, b]` is read. The only diagnostic says that the field is not part of the format."""
    text = FRONT.replace("A test skill", "A\ntags: [a, b]") + "Body\n"
    (note,) = check_text(text, "my-skill")
    assert (note.severity, note.code, note.line) == ("info", "field-known", 4)
    assert read(text).values["tags"] == ["a", "b"]


@pytest.mark.parametrize("field", ["metadata: foo", "metadata: [a]", "license:\n  name: MIT", "compatibility: [a]"])
def test_values_of_the_wrong_kind_are_errors(field: str) -> None:
    """A value is never converted to the required mapping or text."""
    text = FRONT.replace("A test skill", f"A\n{field}") + "Body\n"
    found_errors = [(note.code, note.line) for note in check_text(text, "my-skill") if note.severity == "error"]
    assert found_errors == [("field-invalid", 4)]


def test_bytes_that_are_not_utf8_are_one_error(tmp_path: Path) -> None:
    """The error has the line, and no exception is raised."""
    folder = write_skill_folder(tmp_path, {"SKILL.md": FRONT.encode() + b"caf\xe9\n"})
    assert [(note.severity, note.code, note.line) for note in check_skill(folder)] == [("error", "not-utf8", 5)]
