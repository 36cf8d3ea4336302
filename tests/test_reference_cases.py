"""The 40 cases of the format's own reference library, in strict mode, and those it gets wrong."""

import unicodedata
from collections.abc import Mapping
from pathlib import Path

import pytest

from skillshelf import DirectorySource, SkillDescriptor
from skillshelf.descriptor import thaw
from skillshelf.lint import check_skill, check_text
from skillshelf.listing import to_xml
from skillshelf.skillmd import read

FRONT = "---\nname: my-skill\ndescription: A test skill\n---\n"
ALL_FIELDS = (
    "---\nname: my-skill\ndescription: A test skill\nlicense: MIT\nallowed-tools: Bash(git:*)\n"
    "compatibility: Needs git\nmetadata:\n  author: Test\n---\n# My Skill\n"
)


def errors(folder: Path) -> list[str]:
    return [note.message for note in check_skill(folder, strict=True) if note.severity == "error"]


def skill_folder(parent: Path, files: Mapping[str, str | bytes], name: str = "my-skill") -> Path:
    folder = parent / name
    folder.mkdir()
    for file, text in files.items():
        (folder / file).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def found_in(parent: Path) -> list[SkillDescriptor]:
    refreshed = DirectorySource(parent, cache=False).refresh().values()
    return [found.descriptor for found in refreshed if found and found.descriptor]


# -- parsing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("# My Skill\n\nNo frontmatter.\n", "must start with YAML frontmatter", id="no frontmatter"),
        pytest.param("---\nname: my-skill\ndescription: A\n", "not properly closed", id="never closed"),
        pytest.param("---\nname: [invalid\ndescription: A\n---\nBody\n", "Invalid YAML", id="invalid YAML"),
        pytest.param("---\n- just\n- a\n- list\n---\nBody\n", "must be a YAML mapping", id="a list"),
        pytest.param("---\ndescription: A test skill\n---\nBody\n", "Missing required field", id="no name"),
        pytest.param("---\nname: my-skill\n---\nBody\n", "Missing required field", id="no description"),
    ],
)
def test_texts_that_do_not_parse(text: str, said: str) -> None:
    """What the reference library refuses to parse is an error, in its words."""
    found = [note.message for note in check_text(text, "my-skill") if note.severity == "error"]
    assert [message for message in found if said in message]


@pytest.mark.parametrize(("field", "text"), [("name", "description: A"), ("description", "name: my-skill")])
def test_the_missing_field_is_named(field: str, text: str) -> None:
    """The error says which of the two required fields is missing."""
    found = [note.message for note in check_text(f"---\n{text}\n---\nBody\n", "my-skill")]
    assert [message for message in found if "Missing required field" in message and field in message]


def test_a_scalar_is_no_mapping() -> None:
    """A frontmatter of one line of prose is no mapping either."""
    assert [note for note in check_text("---\njust text\n---\nBody\n", "my-skill") if "must be a YAML" in note.message]


def test_valid_frontmatter_and_body() -> None:
    """Name, description and the text below come back as written."""
    text = read(FRONT + "# My Skill\n\nInstructions here.\n")
    assert (text.name, text.description, text.instructions) == (
        "my-skill",
        "A test skill",
        "# My Skill\n\nInstructions here.\n",
    )


def test_a_valid_folder(tmp_path: Path) -> None:
    """A folder is read to its name, description and license."""
    skill_folder(tmp_path, {"SKILL.md": "---\nname: my-skill\ndescription: A test skill\nlicense: MIT\n---\n# My\n"})
    (skill,) = found_in(tmp_path)
    assert (skill.name, skill.description, skill.license) == ("my-skill", "A test skill", "MIT")


def test_metadata_stays_text() -> None:
    """A version that looks like a number is not one."""
    text = read("---\nname: a\ndescription: b\nmetadata:\n  author: Test Author\n  version: 1.0\n---\nBody\n")
    assert thaw(text.optional.metadata) == {"author": "Test Author", "version": "1.0"}


def test_a_folder_without_skill_md(tmp_path: Path) -> None:
    """The error for an empty folder says what is not there."""
    (message,) = errors(skill_folder(tmp_path, {}))
    assert "SKILL.md not found" in message


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        pytest.param({"SKILL.md": FRONT + "upper", "skill.md": FRONT + "lower"}, "SKILL.md", id="both"),
        pytest.param({"skill.md": FRONT + "lower"}, "skill.md", id="only skill.md"),
        pytest.param({}, None, id="neither"),
    ],
)
def test_which_file_is_taken(tmp_path: Path, files: dict[str, str], taken: str | None) -> None:
    """SKILL.md comes before skill.md; a folder with neither is no skill."""
    folder = skill_folder(tmp_path, files)
    assert [skill.location for skill in found_in(tmp_path)] == ([f"{folder}/{taken}"] if taken else [])


def test_properties_from_skill_md_in_small_letters(tmp_path: Path) -> None:
    """A skill.md is read as a SKILL.md is."""
    skill_folder(tmp_path, {"skill.md": FRONT + "Body\n"})
    assert [(skill.name, skill.description) for skill in found_in(tmp_path)] == [("my-skill", "A test skill")]


def test_allowed_tools_as_written() -> None:
    """The field is kept as its author wrote it, under the key with the hyphen, and split at spaces for use."""
    text = read("---\nname: a\ndescription: b\nallowed-tools: Bash(jq:*) Bash(git:*)\n---\nBody\n")
    assert text.values["allowed-tools"] == "Bash(jq:*) Bash(git:*)"
    assert text.optional.allowed_tools == ("Bash(jq:*)", "Bash(git:*)")


# -- listing ----------------------------------------------------------------------------------------------------------


def test_no_skills_in_xml() -> None:
    """The format's rendering of nothing is an empty element."""
    assert to_xml([]) == "<available_skills>\n</available_skills>"


def test_one_skill_in_xml() -> None:
    """Each fact of a skill stands on a line of its own."""
    xml = to_xml([SkillDescriptor("my-skill", "A test skill", location="/skills/my-skill/SKILL.md")])
    assert "<name>\nmy-skill\n</name>" in xml
    assert "<description>\nA test skill\n</description>" in xml
    assert "<location>\n/skills/my-skill/SKILL.md\n</location>" in xml


def test_two_skills_in_xml() -> None:
    """Each skill has an element."""
    xml = to_xml([SkillDescriptor("a", "first"), SkillDescriptor("b", "second")])
    assert (xml.count("<skill>"), xml.count("</skill>")) == (2, 2)


def test_markup_in_xml() -> None:
    """A description cannot bring tags of its own."""
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
def test_valid_skills(tmp_path: Path, text: str) -> None:
    """The reference library's valid skills have no errors, and no warnings either."""
    assert check_skill(skill_folder(tmp_path, {"SKILL.md": text})) == []


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("技能", "技能"),
        ("мой-навык", "мой-навык"),
        ("навык", "навык"),
        (unicodedata.normalize("NFD", "café"), unicodedata.normalize("NFC", "café")),
    ],
)
def test_names_in_other_scripts(tmp_path: Path, name: str, folder: str) -> None:
    """Letters of any script are letters, with a warning; a name spelled another way is the same name, with a note."""
    found = check_skill(skill_folder(tmp_path, {"SKILL.md": FRONT.replace("my-skill", name) + "Body\n"}, folder))
    assert [note.code for note in found if note.severity == "info"] == ["name-normalised"] * (name != folder)
    assert [note.severity for note in found if note.severity != "info"] == ["warning"]


def test_paths_that_are_no_skill(tmp_path: Path) -> None:
    """Each has one error."""
    (tmp_path / "file").write_text("x")
    missing, file, empty = tmp_path / "missing", tmp_path / "file", skill_folder(tmp_path, {})
    for path, said in (
        (missing, "does not exist"),
        (file, "Not a directory"),
        (empty, "Missing required file: SKILL.md"),
    ):
        (message,) = errors(path)
        assert said in message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("MySkill", ["lowercase"]),
        ("НАВЫК", ["lowercase"]),
        ("a" * 70, ["exceeds", "character limit"]),
        ("-my-skill", ["cannot start or end with a hyphen"]),
        ("my--skill", ["consecutive hyphens"]),
        ("my_skill", ["invalid characters"]),
    ],
)
def test_names_that_break_a_rule(tmp_path: Path, name: str, said: list[str]) -> None:
    """The one error says which rule."""
    (message,) = errors(skill_folder(tmp_path, {"SKILL.md": FRONT.replace("my-skill", name) + "Body\n"}, name))
    assert [words for words in said if words not in message] == []


def test_a_name_that_is_not_the_folders(tmp_path: Path) -> None:
    """A skill is named like its folder."""
    (message,) = errors(skill_folder(tmp_path, {"SKILL.md": FRONT + "Body\n"}, "other"))
    assert "must match skill name" in message


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("unknown: value", ["Unexpected fields", "'unknown'"]),
        ("compatibility: " + "a" * 550, ["exceeds", "500"]),
    ],
)
def test_fields_that_break_a_rule(tmp_path: Path, line: str, said: list[str]) -> None:
    """The one error says which rule."""
    text = FRONT.replace("A test skill", f"A test skill\n{line}") + "Body\n"
    (message,) = errors(skill_folder(tmp_path, {"SKILL.md": text}))
    assert [words for words in said if words not in message] == []


def test_a_description_that_is_too_long(tmp_path: Path) -> None:
    """1,100 characters are too many."""
    (message,) = errors(skill_folder(tmp_path, {"SKILL.md": FRONT.replace("A test skill", "a" * 1100) + "Body\n"}))
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
def test_valid_texts_that_it_refuses(text: str, description: str) -> None:
    """No errors, and the whole description."""
    text += "Body\n"
    assert [note for note in check_text(text, "my-skill") if note.severity != "info"] == []
    assert read(text).description == description


def test_flow_lists_are_yaml() -> None:
    """`tags: [a, b]` reads; only that the field is none of the format's is reported."""
    text = FRONT.replace("A test skill", "A\ntags: [a, b]") + "Body\n"
    (note,) = check_text(text, "my-skill")
    assert (note.severity, note.code, note.line) == ("info", "field-known", 4)
    assert read(text).values["tags"] == ["a", "b"]


@pytest.mark.parametrize("field", ["metadata: foo", "metadata: [a]", "license:\n  name: MIT", "compatibility: [a]"])
def test_values_of_the_wrong_kind(field: str) -> None:
    """What must be a mapping or a text is not taken for one."""
    text = FRONT.replace("A test skill", f"A\n{field}") + "Body\n"
    errors = [(note.code, note.line) for note in check_text(text, "my-skill") if note.severity == "error"]
    assert errors == [("field-invalid", 4)]


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    """One error with the line, and no exception."""
    folder = skill_folder(tmp_path, {"SKILL.md": FRONT.encode() + b"caf\xe9\n"})
    assert [(note.severity, note.code, note.line) for note in check_skill(folder)] == [("error", "not-utf8", 5)]
