"""Sources of code skills: packages on disk and in zips, entry points, and the caller's objects."""

import os
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from importable import PACKAGES, importable
from skillshelf.errors import (
    InvalidSkillError,
    PolicyError,
    ReferenceNotAllowedError,
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    SourceError,
)
from skillshelf.shelf import Shelf
from skillshelf.skills import BaseSkill, Diagnostic, SkillDescriptor, tool
from skillshelf.sources import EntryPointSource, Found, ObjectSource, PackageSource, Page
from skillshelf.sources._package import ClassSource

RAG = "company_skills.agentic_rag.skill:AgenticRAGSkill"
CONFIG = "company_skills/agentic_rag/references/azure_search_config.md"


def zipped(folder: Path, target: Path) -> Path:
    """Return the packages of a folder as one archive, as in a wheel."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                archive.write(path, path.relative_to(folder).as_posix())
    return target


@pytest.fixture(params=["folder", "zip"])
def company(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PackageSource]:
    """Import the complete package, from a folder and from a zip."""
    place = PACKAGES / "complete"
    with importable(place if request.param == "folder" else zipped(place, tmp_path / "company-1.0.whl")):
        yield PackageSource("company_skills")


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on sys.path for a package that the test makes."""
    with importable(tmp_path):
        yield tmp_path


def make_package(root: Path, files: dict[str, str], packages: tuple[str, ...] = ()) -> None:
    for name, text in files.items() | {f"{package}/__init__.py": "" for package in packages}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))


def skill_text(name: str, references: tuple[str, ...] = ()) -> str:
    return f"""
        from skillshelf.skills import BaseSkill
        class MadeSkill(BaseSkill):
            name = {name!r}
            description = "Made for a test."
            references = {references!r}
        """


def cards(source: ClassSource) -> dict[str, SkillDescriptor]:
    found = source.refresh()
    assert not [note for each in found.values() if each for note in each.diagnostics]
    return {key: each.descriptor for key, each in found.items() if each and each.descriptor}


def test_every_skill_of_a_package_is_found_without_an_instance(company: PackageSource) -> None:
    """Nested subpackages, two classes in one file and a constructor with arguments: the class is enough."""
    assert {key: card.name for key, card in cards(company).items()} == {
        RAG: "agentic-rag",
        "company_skills.pair.skill:LeftSkill": "left",
        "company_skills.pair.skill:RightSkill": "right",
        "company_skills.shell.skill:ShellSkill": "shell",
        "company_skills.web.browser.skill:BrowserSkill": "browser",
    }


def test_a_descriptor_names_its_source_and_keeps_references_as_written(company: PackageSource) -> None:
    """The source has the package's name unless another one is given."""
    card = cards(company)[RAG]
    assert (card.source, card.location, card.tools, card.references) == (
        "company_skills",
        RAG,
        ("ask",),
        (CONFIG, "references/neo4j/cypher_templates.py", "scripts/sandbox_runner.py"),
    )
    assert PackageSource(company.package, name="ours").name == "ours"


def test_a_second_refresh_has_nothing_new(company: PackageSource) -> None:
    """An imported class does not change."""
    assert company.refresh() != {}
    assert company.refresh() == {}
    assert company.refresh(changed=["company_skills/agentic_rag/skill.py"]) == {}


def test_instructions_come_from_the_class(company: PackageSource) -> None:
    """The text is the dedented attribute, and the descriptor has its size."""
    card = cards(company)[RAG]
    text = company.instructions(RAG, card)
    assert text.startswith("Multi-source retrieval")
    assert len(text.encode()) == card.size


@pytest.mark.parametrize("path", [CONFIG, "references/neo4j/cypher_templates.py", "scripts/sandbox_runner.py"])
def test_references_are_read_from_a_folder_and_from_a_zip(company: PackageSource, path: str) -> None:
    """A listed path, long or short, gives the file's bytes unchanged and in pages."""
    card = cards(company)[RAG]
    below = path.removeprefix("company_skills/agentic_rag/")
    data = (PACKAGES / "complete/company_skills/agentic_rag" / below).read_bytes()
    assert company.reference(RAG, card, path, 0, 10_000) == Page(data, 0, len(data))
    assert company.reference(RAG, card, path, 4, 8) == Page(data[4:12], 4, len(data))
    assert company.reference(RAG, card, path, len(data) + 5, 8) == Page(b"", len(data) + 5, len(data))


@pytest.mark.parametrize(
    "path",
    ["references/azure_search_config.md", "azure_search_config.md", "../shell/skill.py", "skill.py", "/etc/passwd", ""],
)
def test_files_that_are_not_listed_are_refused(company: PackageSource, path: str) -> None:
    """The source itself enforces the list, letter by letter."""
    with pytest.raises(ReferenceNotAllowedError):
        company.reference(RAG, cards(company)[RAG], path, 0, 100)


BAD_PATHS = [
    "../other/skill.py",
    "references/../../other/skill.py",
    "made_skills/other/skill.py",
    "made_skills/__init__.py",
    "made_skills/rag",
    "/etc/passwd",
    "~/notes.md",
    "references\\a.md",
    "file:///etc/passwd",
    "references//a.md",
    "",
]


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_listed_path_outside_the_skill_s_folder_is_refused(tmp_path: Path, path: str, archived: bool) -> None:
    """An author's list does not open files outside the skill's own folder."""
    make_package(
        tmp_path / "src",
        {"made_skills/other/skill.py": skill_text("other"), "made_skills/rag/skill.py": skill_text("rag", (path,))},
        ("made_skills", "made_skills/other", "made_skills/rag"),
    )
    with importable(zipped(tmp_path / "src", tmp_path / "made.zip") if archived else tmp_path / "src"):
        source = PackageSource("made_skills")
        key = "made_skills.rag.skill:MadeSkill"
        with pytest.raises(ReferenceNotAllowedError):
            source.reference(key, cards(source)[key], path, 0, 100)


@pytest.mark.parametrize("archived", [False, True])
def test_a_listed_reference_that_is_missing_or_a_folder_is_a_typed_error(tmp_path: Path, archived: bool) -> None:
    """A missing file is not found, a folder is refused, and no message contains a path outside the skill."""
    listed = ("references/gone.md", "references/deep", "references/deep/gone.md")
    make_package(
        tmp_path / "src",
        {"made_skills/rag/skill.py": skill_text("rag", listed), "made_skills/rag/references/deep/a.md": "# A"},
        ("made_skills", "made_skills/rag"),
    )
    with importable(zipped(tmp_path / "src", tmp_path / "made.zip") if archived else tmp_path / "src"):
        source = PackageSource("made_skills")
        ((key, card),) = cards(source).items()
        for path, error in zip(
            listed, (ReferenceNotFoundError, ReferenceNotAllowedError, ReferenceNotFoundError), strict=True
        ):
            with pytest.raises(error) as raised:
                source.reference(key, card, path, 0, 100)
            assert str(tmp_path) not in str(raised.value)


def test_links_and_pipes_in_the_folder_are_refused(write: Path) -> None:
    """A real folder is read through the gate: no symlink, no FIFO."""
    listed = ("references/link.md", "references/pipe", "linked/secret.md")
    make_package(write, {"made_skills/rag/skill.py": skill_text("rag", listed), "outside/secret.md": "secret"})
    folder = write / "made_skills/rag"
    (folder / "references").mkdir()
    (folder / "references/link.md").symlink_to(write / "outside/secret.md")
    (folder / "linked").symlink_to(write / "outside")
    os.mkfifo(folder / "references/pipe")
    source = PackageSource("made_skills")
    ((key, card),) = cards(source).items()
    for path in listed:
        with pytest.raises(ReferenceNotAllowedError):
            source.reference(key, card, path, 0, 100)


def test_a_package_reached_through_a_link_is_read(tmp_path: Path) -> None:
    """The folder that Python imported from is the root, even if a link leads to it."""
    make_package(
        tmp_path / "real",
        {"rag/skill.py": skill_text("rag", ("references/a.md",)), "rag/references/a.md": "# A", "__init__.py": ""},
    )
    (tmp_path / "path").mkdir()
    (tmp_path / "path/made_skills").symlink_to(tmp_path / "real")
    with importable(tmp_path / "path"):
        source = PackageSource("made_skills")
        ((key, card),) = cards(source).items()
        assert source.reference(key, card, "references/a.md", 0, 100).data == b"# A"


def test_a_damaged_archive_is_a_typed_error(tmp_path: Path) -> None:
    """Bytes that cannot be decompressed are reported as unreadable."""
    text = "# A\n" + "".join(f"{number:x}" for number in range(9000))
    make_package(
        tmp_path / "src",
        {"made_skills/rag/skill.py": skill_text("rag", ("a.md",)), "made_skills/rag/a.md": text},
        ("made_skills", "made_skills/rag"),
    )
    archive = zipped(tmp_path / "src", tmp_path / "made.zip")
    with zipfile.ZipFile(archive) as opened:
        start = opened.getinfo("made_skills/rag/a.md").header_offset + 200
    data = bytearray(archive.read_bytes())
    data[start : start + 64] = b"\xff" * 64
    archive.write_bytes(data)
    with importable(archive):
        source = PackageSource("made_skills")
        ((key, card),) = cards(source).items()
        with pytest.raises(ReferenceUnreadableError, match="archive is damaged"):
            source.reference(key, card, "a.md", 0, 100)


def test_one_bad_module_never_hides_the_others() -> None:
    """Exceptions, exits and missing libraries at import, and bad classes, are diagnostics of that key alone."""
    with importable(PACKAGES / "import-failures"):
        found = dict(PackageSource("failing_skills").refresh())
    healthy = found.pop("failing_skills.healthy.skill:HealthySkill")
    assert healthy is not None
    assert healthy.descriptor is not None
    notes = {key: (note.severity, note.code, note.path, note.line) for key, note in single_notes(found).items()}
    assert notes == {
        "failing_skills.empty.skill": ("warning", "no-skill", "failing_skills/empty/skill.py", 0),
        "failing_skills.exits.skill": ("error", "import-failed", "failing_skills/exits/skill.py", 1),
        "failing_skills.nameless.skill:NamelessSkill": (
            "error",
            "invalid-skill",
            "failing_skills/nameless/skill.py",
            4,
        ),
        "failing_skills.needs_library.skill": ("error", "import-failed", "failing_skills/needs_library/skill.py", 1),
        "failing_skills.raises.skill": ("error", "import-failed", "failing_skills/raises/skill.py", 3),
    }
    assert single_notes(found)["failing_skills.needs_library.skill"].message == (
        "it cannot be imported: ModuleNotFoundError: No module named 'library_that_nobody_has'"
    )


def single_notes(found: object) -> dict[str, Diagnostic]:
    assert isinstance(found, dict)
    return {key: each.diagnostics[0] for key, each in found.items() if isinstance(each, Found)}


def test_a_syntax_error_is_reported_with_its_line(write: Path) -> None:
    """The author learns which line does not parse."""
    make_package(write, {"made_skills/rag/skill.py": "x = 1\ndef broken(:\n"})
    note = single_notes(PackageSource("made_skills").refresh())["made_skills.rag.skill"]
    assert (note.code, note.path, note.line) == ("import-failed", "made_skills/rag/skill.py", 2)


def test_an_interrupt_is_not_swallowed(write: Path) -> None:
    """Ctrl-C during the import of skills stops the program."""
    make_package(write, {"made_skills/rag/skill.py": "raise KeyboardInterrupt"})
    with pytest.raises(KeyboardInterrupt):
        PackageSource("made_skills").refresh()


def test_folders_without_init_can_hold_skills_but_data_is_not_run(write: Path) -> None:
    """A skill.py in a plain folder is a skill, unless the folder is beside a skill.py and so is that skill's data."""
    make_package(
        write,
        {
            "made_skills/plain/skill.py": skill_text("plain", ("references/a.md",)),
            "made_skills/plain/references/a.md": "# A",
            "made_skills/plain/references/skill.py": "raise SystemExit",
            "made_skills/templates/new/skill.py": "raise SystemExit",
            "made_skills/not-importable/skill.py": "raise SystemExit",
        },
    )
    source = PackageSource("made_skills")
    ((key, card),) = cards(source).items()
    assert card.name == "plain"
    assert source.reference(key, card, "references/a.md", 0, 100).data == b"# A"


def test_a_package_that_is_one_skill(write: Path) -> None:
    """A package may itself hold the skill.py."""
    make_package(write, {"made_skills/__init__.py": "", "made_skills/skill.py": skill_text("single")})
    assert [card.name for card in cards(PackageSource("made_skills")).values()] == ["single"]


def test_inherited_references_are_read_where_they_were_listed(write: Path) -> None:
    """A skill that extends another one's keeps its references, though its own folder has none."""
    make_package(
        write,
        {
            "made_skills/rag/skill.py": skill_text("rag", ("references/a.md",)),
            "made_skills/rag/references/a.md": "# A",
            "made_skills/ours/skill.py": """
                from made_skills.rag.skill import MadeSkill
                class OurSkill(MadeSkill):
                    name = "ours"
                """,
        },
    )
    source = PackageSource("made_skills")
    key = "made_skills.ours.skill:OurSkill"
    assert source.reference(key, cards(source)[key], "references/a.md", 0, 100).data == b"# A"


@pytest.mark.parametrize("package", ["no_such_package", "failing_skills.exits.skill", "json.decoder", "os"])
def test_a_name_that_is_not_a_package_is_refused_at_once(package: str) -> None:
    """A name that cannot be imported, or that is a module, is a SourceError when the source is made."""
    with importable(PACKAGES / "import-failures"), pytest.raises(SourceError, match=package):
        PackageSource(package)


def install(place: Path, *lines: str) -> None:
    """Write what an installer leaves in site-packages to register entry points."""
    folder = place / "fake_dist-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-dist\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("\n".join(["[skillshelf.skills]", *lines]))


def test_entry_points_name_packages_and_classes(write: Path) -> None:
    """Installed distributions bring skills that the program does not name, and broken ones are reported."""
    make_package(
        write,
        {
            "made_skills/rag/skill.py": skill_text("rag"),
            "single_skills/skill.py": skill_text("single"),
            "single_skills/other.py": skill_text("other"),
        },
    )
    install(
        write,
        "all = made_skills",
        "module = single_skills.skill",
        "class = single_skills.other:MadeSkill",
        "gone = vanished_skills",
        "wrong = single_skills.skill:__doc__",
    )
    found = dict(EntryPointSource().refresh())
    assert {
        key: note.code for key, note in single_notes({k: found.pop(k) for k in list(found) if faulty(found[k])}).items()
    } == {
        "vanished_skills": "import-failed",
        "single_skills.skill:__doc__": "invalid-entry-point",
    }
    assert {each.descriptor.qualified for each in found.values() if each and each.descriptor} == {
        "rag@entry-points",
        "single@entry-points",
        "other@entry-points",
    }


def faulty(found: Found | None) -> bool:
    return bool(found and found.diagnostics)


def test_a_group_without_entry_points_has_no_skills() -> None:
    """It is not an error."""
    assert EntryPointSource("skillshelf.no_such_group").refresh() == {}


class AppSkill(BaseSkill):
    name = "app-skill"
    description = "Constructed by the caller."
    instructions = "Call `read`."
    references = ("references/a.md",)

    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    @tool
    def read(self) -> str:
        """Reads."""
        return self.greeting


class RawSkill(BaseSkill):
    name = "raw-skill"
    description = "Changes state."
    category = "raw"

    @tool
    def write(self) -> str:
        """Writes."""
        return "written"

    @tool
    def read(self) -> str:
        """Reads too."""
        return "read"


class OtherSkill(BaseSkill):
    name = "other-skill"
    description = "Has nothing in common."


def test_objects_of_the_caller_are_a_source() -> None:
    """Constructed skills are described like any other, and their tools reach the very objects."""
    source = ObjectSource([AppSkill("hello"), OtherSkill()])
    card = AppSkill.descriptor("app")
    found = source.refresh()[card.location]
    assert found is not None
    assert found.descriptor == card
    assert source.instructions(card.location, card) == "Call `read`."
    assert [each.call({}) for each in source.tools()] == ["hello"]
    assert source.refresh() == {}


def make_table_skill(table: str) -> BaseSkill:
    """Return a skill of a class that shares its module and qualified name with those for other tables."""

    class TableSkill(BaseSkill):
        name = f"table-{table}"
        description = f"Reads the table {table}."
        instructions = f"Call `read_{table}`."

        @tool(name=f"read_{table}")
        def read(self) -> str:
            """Read the table."""
            return table

    return TableSkill()


def test_classes_that_one_function_made_are_different_skills() -> None:
    """They share `module:Class`, but each has its own instructions and tools, also one that comes later."""
    shelf = Shelf([ObjectSource([make_table_skill("orders"), make_table_skill("users")])])
    shelf.attach(make_table_skill("prices"))
    assert list(shelf.catalog) == ["table-orders", "table-prices", "table-users"]
    for table in ("orders", "prices", "users"):
        assert shelf.instructions(f"table-{table}") == f"Call `read_{table}`."
        assert [each.call({}) for each in shelf.tools() if each.name == f"read_{table}"] == [table]


def test_a_module_may_make_its_skills_with_a_function(write: Path) -> None:
    """A class with two names in the module is one skill."""
    code = """
        from skillshelf import BaseSkill

        def make(table):
            class TableSkill(BaseSkill):
                name = f"table-{table}"
                description = f"Reads the table {table}."
            return TableSkill

        Orders = make("orders")
        Users = make("users")
        Customers = Users
    """
    make_package(write, {"made_skills/skill.py": code}, ("made_skills",))
    found = PackageSource("made_skills").refresh().values()
    assert [each.descriptor.name for each in found if each and each.descriptor] == ["table-orders", "table-users"]


def test_a_skill_outside_of_a_package_has_no_folder() -> None:
    """A class in a script has no references; the error says why."""
    source = ObjectSource([AppSkill("hello")])
    card = AppSkill.descriptor("app")
    source.refresh()
    with pytest.raises(ReferenceUnreadableError, match="not in a package of its own"):
        source.reference(card.location, card, "references/a.md", 0, 100)


def test_a_raw_object_needs_its_policy_at_construction() -> None:
    """A raw skill without a policy is refused before anything can call it."""
    with pytest.raises(PolicyError, match=r"with_policy\(\{'write': 'ask', 'read': 'ask'\}\)"):
        ObjectSource([RawSkill()])
    bound = ObjectSource([RawSkill().with_policy({"read": "safe"})])
    assert {each.name: each.permission for each in bound.tools()} == {"write": "blocked", "read": "safe"}


def test_two_tools_of_one_name_are_refused() -> None:
    """A model could not tell them apart: the error names both skills."""
    with pytest.raises(InvalidSkillError, match="'app-skill' and 'raw-skill' both have a tool 'read'"):
        ObjectSource([AppSkill("hello"), RawSkill().with_policy({})])


@pytest.mark.parametrize(
    ("skills", "message"),
    [
        ([OtherSkill(), OtherSkill()], "Two skills are named 'other-skill'"),
        ([OtherSkill], "is not a skill. Pass an instance"),
        ([type("NamelessSkill", (BaseSkill,), {})()], "NamelessSkill.name is ''"),
    ],
)
def test_a_wrong_object_is_refused_at_construction(skills: list[BaseSkill], message: str) -> None:
    """The constructor raises the error, where the caller can correct it."""
    with pytest.raises(InvalidSkillError) as raised:
        ObjectSource(skills)
    assert message in str(raised.value)
