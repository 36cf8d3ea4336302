"""Operations of skillshelf on files, and what must hold if any single file operation fails."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stderr, redirect_stdout, suppress
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faults.harness import Armed, Scenario
from skillshelf import Catalog, DirectorySource, Shelf, SkillError
from skillshelf.cli import main
from skillshelf.errors import CheckpointError, RegistryError, SessionError, SettingsError, TrustError
from skillshelf.files import ABSENT, hash_content, remove_stale_scratch, replace_below
from skillshelf.registry import (
    Installation,
    NewSkill,
    Origin,
    Pin,
    SkillContent,
    Update,
    change_installation,
    compare,
    describe_new,
    install,
    install_updates,
    project_installation,
    read_lock,
    undo_update,
)
from skillshelf.search import _index
from skillshelf.settings import load_choices, save_choice
from skillshelf.skillmd.templates import fill_project
from skillshelf.trust import Snapshot, SnapshotEntry, Trust, TrustedSource

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelRequest

    from skillshelf_agent.checkpoints import Checkpoints
    from skillshelf_agent.sessions import Session, Sessions

GUIDE = "Guide, line by line.\n" * 200


def write_skill(folder: Path, references: Mapping[str, str] | None = None) -> None:
    folder.mkdir(parents=True)
    text = f"---\nname: {folder.name}\ndescription: Does {folder.name}.\n---\n\nDo {folder.name}.\n"
    for path, content in {"SKILL.md": text, **(references or {})}.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(content)


def lay_out_workspace(root: Path) -> None:
    """Create skills at several depths, with references, a link between them, and an ignore file."""
    write_skill(root / "plain")
    write_skill(root / ".claude/skills/pdf", {"references/forms.md": GUIDE, "scripts/fill.py": "print()\n"})
    write_skill(root / "a/b/deep", {"references/one.md": "One.\n", "references/two.md": "Two.\n"})
    write_skill(root / "old/ignored")
    (root / ".skillshelfignore").write_text("old/\n")
    (root / "linked").symlink_to("plain")


class Scan:
    """Scanning a workspace: no skill disappears without a diagnostic, and the next scan finds everything."""

    def __init__(self, empty_folders: int = 0) -> None:
        """`empty_folders`: beside the skills. A workspace with many folders is kept in the scan cache."""
        self._empty_folders = empty_folders

    @cached_property
    def _work(self) -> Path:
        """The workspace, laid out once: a scan changes nothing in it."""
        self._folder = tempfile.TemporaryDirectory(prefix="skillshelf-faults-")
        work = Path(self._folder.name) / "work"
        lay_out_workspace(work)
        for number in range(self._empty_folders):
            (work / f"many/{number}").mkdir(parents=True)
        return work

    def prepare(self, place: Path) -> None:
        assert self._work.is_dir()

    def act(self, place: Path, armed: Armed) -> object:
        with armed:
            return Shelf([DirectorySource(self._work, "project")])

    def verify(self, place: Path, result: Any) -> None:
        shelf: Shelf = result
        whole = self._scan_afresh()
        for name, descriptor in whole.items():
            current = shelf.catalog.get(name)
            if current != descriptor:
                notes = [note for note in shelf.catalog.diagnostics if note.severity != "info"]
                assert notes, f"{name} is {current}, and no diagnostic says why"
        assert set(shelf.catalog) <= {*whole, "ignored"}, "skills that are not there"

        shelf.reload()
        assert dict(shelf.catalog) == dict(whole), "a reload did not bring everything back"
        notes = [note for note in shelf.catalog.diagnostics if note.code != "index-unwritable"]
        assert notes == list(whole.diagnostics)

    def verify_disk(self, place: Path) -> None:
        cached = Shelf([DirectorySource(self._work, "project")])
        assert dict(cached.catalog) == dict(self._scan_afresh())

    def _scan_afresh(self) -> Catalog:
        return Shelf([DirectorySource(self._work, "project", cache=False)]).catalog


class Load:
    """Loading instructions and references: the whole text or a typed error, and the next turn has it."""

    def prepare(self, place: Path) -> None:
        lay_out_workspace(place / "work")

    def act(self, place: Path, armed: Armed) -> object:
        shelf = Shelf([DirectorySource(place / "work", "project", cache=False)])
        texts = []
        with armed, shelf.turn() as turn:
            for name, reference in self._loads():
                try:
                    texts.append(turn.load(name, reference).text)
                except SkillError:
                    texts.append("")
        return shelf, texts

    def verify(self, place: Path, result: Any) -> None:
        shelf, texts = result
        right = ["Do pdf.\n", GUIDE, "One.\n"]
        for text, expected in zip(texts, right, strict=True):
            assert text in ("", expected)
        with shelf.turn() as turn:
            assert [turn.load(name, reference).text for name, reference in self._loads()] == right

    def verify_disk(self, place: Path) -> None:
        """Nothing is written."""

    def _loads(self) -> list[tuple[str, str]]:
        return [("pdf", ""), ("pdf", "forms.md"), ("deep", "one.md")]


class Search:
    """A search that stores its index, and one after an edit: both find what is there, whatever becomes of the index."""

    COUNT = 4

    def prepare(self, place: Path) -> None:
        _index._MIN_STORED = self.COUNT  # each skill is some statements, and each of those a run
        for number in range(self.COUNT):
            write_skill(place / f"work/skill-{number}")
        _change_skill(place, "a hammer")

    def act(self, place: Path, armed: Armed) -> object:
        shelf = self._open(place)
        with armed:
            first = _search(shelf, "hammer")
        _change_skill(place, "a chisel")
        shelf.reload()
        with armed:
            second = _search(shelf, "chisel")
        return shelf, [first, second, _search(shelf, "hammer")]

    def verify(self, place: Path, result: Any) -> None:
        shelf, found = result
        assert found == [["skill-0"], ["skill-0"], []]
        assert _search(shelf, "chisel") == ["skill-0"]

    def verify_disk(self, place: Path) -> None:
        word, other = ("chisel", "hammer") if "chisel" in (place / SKILL_FILE).read_text() else ("hammer", "chisel")
        for _ in range(2):
            shelf = self._open(place)
            assert [_search(shelf, word), _search(shelf, other)] == [["skill-0"], []]

    def _open(self, place: Path) -> Shelf:
        return Shelf([DirectorySource(place / "work", "project")])


SKILL_FILE = "work/skill-0/SKILL.md"


def _change_skill(place: Path, tool: str) -> None:
    (place / SKILL_FILE).write_text(f"---\nname: skill-0\ndescription: Does things.\n---\n\nUse {tool}.\n")


def _search(shelf: Shelf, word: str) -> list[str]:
    return [match.name for match in shelf.search(word) if not match.is_weak]


class WriteSession:
    """Appending to a session: acknowledged messages are there, and messages that failed are saved with the next."""

    def prepare(self, place: Path) -> None:
        (place / "acknowledged").touch()
        _message("")  # imports the message types, which takes seconds, before the children are forked

    def act(self, place: Path, armed: Armed) -> object:
        session = self._sessions(place).create("m")
        with armed:
            for number in range(3):
                try:
                    session.append([_message(f"{number} " + "x" * 100)])
                except SessionError:
                    continue
                _acknowledge(place, str(number + 1))
        return session

    def verify(self, place: Path, result: Any) -> None:
        session: Session = result
        session.append([_message("after")])
        session.close()
        texts = self._read_back(place)
        assert [text.split()[0] for text in texts] == ["0", "1", "2", "after"]

    def verify_disk(self, place: Path) -> None:
        texts = self._read_back(place)
        acknowledged = _acknowledged(place)
        assert [text.split()[0] for text in texts][:acknowledged] == ["0", "1", "2"][:acknowledged]
        if texts:
            with self._sessions(place).open() as session:
                session.append([_message("on")])
            assert self._read_back(place) == [*texts, "on"]

    def _sessions(self, place: Path) -> Sessions:
        from skillshelf_agent.sessions import Sessions

        return Sessions(str(place / "work"), str(place / "state"))

    def _read_back(self, place: Path) -> list[str]:
        sessions = self._sessions(place)
        if not sessions.list():
            return []
        assert [info.problem for info in sessions.list()] == [""]
        with sessions.open() as session:
            messages: list[ModelMessage] = list(session.messages)
        return [str(part.content) for message in messages for part in message.parts]  # type: ignore[union-attr]


class WriteTrust:
    """Approving and revoking: the old state or the new, acknowledged changes last, and nothing unapproved is served."""

    def prepare(self, place: Path) -> None:
        lay_out_workspace(place / "work")
        (place / "acknowledged").touch()
        source = _trusted(place)
        (plain,) = [pending for pending in source.pending if pending.name == "plain"]
        source.approve([plain])

    def act(self, place: Path, armed: Armed) -> object:
        source = _trusted(place)
        with armed:
            try:
                source.approve(source.pending)
                _acknowledge(place, "approved")
                source.revoke("plain")
                _acknowledge(place, "revoked")
            except TrustError:
                pass
        return source

    def verify(self, place: Path, result: Any) -> None:
        """The state on disk counts for other processes, so it is the one to check."""

    def verify_disk(self, place: Path) -> None:
        source = _trusted(place)
        assert source.trust.problems == ()
        acknowledged = (place / "acknowledged").read_text().split()
        everything = {"plain", "pdf", "deep"}
        possible = {
            "": [{"plain"}, everything],
            "approved": [everything, everything - {"plain"}],
            "revoked": [everything - {"plain"}],
        }
        assert _names(source) in possible[acknowledged[-1] if acknowledged else ""]

        source.approve(source.pending)
        assert _names(_trusted(place)) == everything
        trees = os.listdir(f"{source.trust.path}/trees")
        assert sorted(trees) == sorted(Trust.open().approvals.trees), f"leftovers of a killed process: {trees}"


class UseOwnRepository:
    """An edit by the user and then one by an agent in the user's own repository: the agent's is never served."""

    def __init__(self, *, beside_another: bool = False) -> None:
        """`beside_another`: another agent works there from before until after."""
        self._beside_another = beside_another

    def prepare(self, place: Path) -> None:
        write_skill(place / "work/mine")
        (place / "work/.git").mkdir()
        trust = Trust.open()
        trust.declare_own(str(place / "work"))
        assert _names(_trusted(place)) == {"mine"}
        _edit(place, "Edited by the user.")

    def act(self, place: Path, armed: Armed) -> object:
        other = _trusted(place).agent_at_work() if self._beside_another else nullcontext()
        with other, armed:
            source = _trusted(place)
            try:
                with source.agent_at_work():
                    _edit(place, AGENTS_LINE)
            except TrustError:
                return source  # the agent may not work
            source.refresh()
        return source

    def verify(self, place: Path, result: Any) -> None:
        source: TrustedSource = result
        source.refresh()
        _check_texts(source)

    def verify_disk(self, place: Path) -> None:
        for _ in range(2):
            source = _trusted(place)
            assert source.trust.problems == ()
            assert source.own is not None
            assert _names(source) == {"mine"}
            _check_texts(source)


AGENTS_LINE = "Written by the agent."


def _edit(place: Path, line: str) -> None:
    with open(place / "work/mine/SKILL.md", "a") as file:
        file.write(f"{line}\n")


def _check_texts(source: TrustedSource) -> None:
    for skill in Shelf([source]).catalog.values():
        assert AGENTS_LINE not in source.instructions("mine", skill)


class Creation:
    """A run of `skillshelf new`: everything is created or nothing, and the name is free if nothing is."""

    ARGUMENTS: tuple[str, ...]
    PARENT: str
    """The folder, below the workspace, that the new one appears in."""
    NAME: str

    def prepare(self, place: Path) -> None:
        (place / "work").mkdir()

    def act(self, place: Path, armed: Armed) -> object:
        with armed:
            return self._run(place)

    def verify(self, place: Path, result: Any) -> None:
        code, complaints = result
        assert code in (0, 1)
        assert (code == 0) == self._folder(place).exists()
        is_unapproved = "waits for your review" in complaints  # it is complete, but the approval could not be written
        assert bool(complaints) == (code != 0 or is_unapproved)
        parent = self._folder(place).parent
        remaining = {path.name for path in parent.iterdir()} if parent.exists() else set()
        assert remaining <= {self.NAME, ".skillshelf-new"}

    def verify_disk(self, place: Path) -> None:
        if not self._folder(place).exists():
            assert self._run(place) == (0, "")
        folder = self._folder(place)
        texts = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
        self.check_files(place, texts)
        _check_cleanup(place / "work")

    def check_files(self, place: Path, texts: Mapping[str, str]) -> None:
        """Check the files that were created, by their path below the new folder."""
        raise NotImplementedError

    def _folder(self, place: Path) -> Path:
        return place / "work" / self.PARENT / self.NAME

    def _run(self, place: Path) -> tuple[int, str]:
        complaints = StringIO()
        with redirect_stdout(StringIO()), redirect_stderr(complaints):
            code = main(["new", *self.ARGUMENTS, "-C", str(place / "work")])
        return code, complaints.getvalue()


class CreateSkill(Creation):
    """`skillshelf new`: a complete skill or none."""

    ARGUMENTS = ("pdf-forms",)
    PARENT = ".agents/skills"
    NAME = "pdf-forms"

    def check_files(self, place: Path, texts: Mapping[str, str]) -> None:
        assert texts.keys() == {"SKILL.md"}
        assert all(text.endswith("\n") for text in texts.values())
        assert list(Shelf([DirectorySource(place / "work", "project", cache=False)]).catalog) == ["pdf-forms"]


class CreateProject(Creation):
    """`skillshelf new --package`: a complete project or none."""

    ARGUMENTS = ("--package", "my_skills", "rag")
    PARENT = ""
    NAME = "my_skills"

    def check_files(self, place: Path, texts: Mapping[str, str]) -> None:
        assert texts == fill_project("my_skills", ["rag"])


class EditFile:
    """Replacing and creating files in a workspace: the old content or the new, and no folder made for nothing."""

    OLD = b"old\n" * 50
    NEW = b"new and longer\n" * 100

    def prepare(self, place: Path) -> None:
        (place / "work/src").mkdir(parents=True)
        (place / "work/src/main.py").write_bytes(self.OLD)

    def act(self, place: Path, armed: Armed) -> object:
        root = str(place / "work")
        written = []
        with armed:
            for parts, expected in ((("src", "main.py"), hash_content(self.OLD)), (("docs", "a", "new.md"), ABSENT)):
                try:
                    replace_below(root, parts, self.NEW, expected=expected, limit=10_000)
                except OSError:
                    continue
                written.append("/".join(parts))
        return written

    def verify(self, place: Path, result: Any) -> None:
        work = place / "work"
        assert (work / "src/main.py").read_bytes() == (self.NEW if "src/main.py" in result else self.OLD)
        assert (work / "docs/a/new.md").exists() == ("docs/a/new.md" in result)

    def verify_disk(self, place: Path) -> None:
        work = place / "work"
        assert (work / "src/main.py").read_bytes() in (self.OLD, self.NEW)
        if (work / "docs/a/new.md").exists():
            assert (work / "docs/a/new.md").read_bytes() == self.NEW
        _check_cleanup(work)


class WriteChoices:
    """Storing choices for skills: each that was reported as stored is there, and the file is never broken."""

    def prepare(self, place: Path) -> None:
        save_choice("kept", "manual")

    def act(self, place: Path, armed: Armed) -> object:
        stored = []
        with armed:
            for name, choice in (("pdf", "full"), ("odd name@user", "off")):
                try:
                    save_choice(name, choice)  # type: ignore[arg-type]
                except SettingsError:
                    continue
                stored.append(name)
        return stored

    def verify(self, place: Path, result: Any) -> None:
        assert {"kept", *result} <= set(load_choices())

    def verify_disk(self, place: Path) -> None:
        choices = load_choices()
        assert choices.items() <= {"kept": "manual", "pdf": "full", "odd name@user": "off"}.items()
        assert choices["kept"] == "manual"
        save_choice("kept", None)
        assert "kept" not in load_choices()


class TakeCheckpoint:
    """A turn that writes a file and runs a command: it can be taken back, or it is said what cannot.

    Whatever happens, no file ends up with anything but its content before or after the turn.
    """

    BEFORE: Mapping[str, bytes | None] = {
        "src/tool.py": b"before\n" * 50,
        "src/command.py": b"before the command\n" * 50,
        "deleted.md": b"deleted\n",
        "made/new.md": None,
        "untouched.md": b"untouched\n",
    }
    AFTER: Mapping[str, bytes | None] = {
        "src/tool.py": b"after\n" * 50,
        "src/command.py": b"after the command\n" * 50,
        "deleted.md": None,
        "made/new.md": b"new\n",
        "untouched.md": b"untouched\n",
    }

    def prepare(self, place: Path) -> None:
        for path, data in self.BEFORE.items():
            self._put(place, path, data)
        self._open(place)  # imports everything before the children are forked

    def act(self, place: Path, armed: Armed) -> object:
        checkpoints = self._open(place)
        with armed:
            notes = self._take_turn(place, checkpoints)
        return checkpoints, notes

    def verify(self, place: Path, result: Any) -> None:
        checkpoints, notes = result
        assert self._read(place) == self.AFTER
        self._undo(checkpoints)
        contents = self._read(place)
        assert contents == self.BEFORE or notes, f"{contents} was not brought back, and nothing said so"

    def verify_disk(self, place: Path) -> None:
        self._undo(self._open(place))
        for path, data in self._read(place).items():
            assert data in (self.BEFORE[path], self.AFTER[path]), path
        names = {file.name for file in (place / "work").rglob("*") if file.is_file()}
        assert names <= {Path(path).name for path in self.BEFORE}

    def _take_turn(self, place: Path, checkpoints: Checkpoints) -> list[str]:
        """Take a turn. The tool and the command themselves have no faults here."""
        checkpoints.begin_turn("go")
        checkpoints.before_write(("src", "tool.py"), self.AFTER["src/tool.py"] or b"")
        self._put(place, "src/tool.py", self.AFTER["src/tool.py"])
        checkpoints.after_write(("src", "tool.py"))
        checkpoints.before_command()
        for path, data in self.AFTER.items():
            if path != "src/tool.py" and data != self.BEFORE[path]:
                self._put(place, path, data)
        checkpoints.after_command()
        return checkpoints.end_turn()

    def _open(self, place: Path) -> Checkpoints:
        from skillshelf_agent.checkpoints import Checkpoints
        from skillshelf_agent.filetools import FileAccess

        checkpoints = Checkpoints(FileAccess(os.path.realpath(place / "work")), str(place / "state/work"))
        checkpoints.open_session("session")
        return checkpoints

    def _undo(self, checkpoints: Checkpoints) -> None:
        with suppress(CheckpointError):
            checkpoints.undo(commands=True)

    def _put(self, place: Path, path: str, data: bytes | None) -> None:
        file = place / "work" / path
        if data is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def _read(self, place: Path) -> dict[str, bytes | None]:
        files = {path: place / "work" / path for path in self.BEFORE}
        return {path: file.read_bytes() if file.exists() else None for path, file in files.items()}


class Undo(TakeCheckpoint):
    """Taking a turn back: what was cut short can be repeated, and the user's edit since is never lost."""

    def prepare(self, place: Path) -> None:
        super().prepare(place)
        self._take_turn(place, self._open(place))
        (place / "work/src/command.py").write_bytes(EDITED_SINCE)

    def act(self, place: Path, armed: Armed) -> object:
        checkpoints = self._open(place)
        with armed:
            self._undo(checkpoints)
        return checkpoints

    def verify(self, place: Path, result: Any) -> None:
        """The disk says it all."""

    def verify_disk(self, place: Path) -> None:
        for _ in range(2):
            contents = self._read(place)
            assert contents.pop("src/command.py") == EDITED_SINCE
            for path, data in contents.items():
                assert data in (self.BEFORE[path], self.AFTER[path]), path
            checkpoints = self._open(place)
            self._undo(checkpoints)
            with suppress(CheckpointError):
                checkpoints.redo()  # the turn was recorded as taken back, although a file of it could not be
            self._undo(checkpoints)
        contents = self._read(place)
        contents.pop("src/command.py")
        assert contents == {path: data for path, data in self.BEFORE.items() if path != "src/command.py"}


EDITED_SINCE = b"edited by the user since\n"


class InstallSkills:
    """Replacing, adding and removing skills at once: all of it or nothing, and the lock agrees with the folders."""

    OLD: Mapping[str, str] = {"gone": "gone 1", "kept": "kept 1", "pdf": "pdf 1"}
    NEW: Mapping[str, str] = {"kept": "kept 1", "pdf": "pdf 2", "sql": "sql 1"}

    def prepare(self, place: Path) -> None:
        (place / "work").mkdir()
        install(self._installation(place), [make_new_skill(name, text) for name, text in self.OLD.items()])

    def act(self, place: Path, armed: Armed) -> object:
        new = [make_new_skill(name, text) for name, text in self.NEW.items() if name != "kept"]
        with armed:
            try:
                with change_installation(self._installation(place)) as transaction:
                    lock = transaction.lock.with_skills(*(skill.locked for skill in new)).without("gone")
                    transaction.commit(lock, [skill.content for skill in new], ["gone"])
            except RegistryError as error:
                return str(error)
        return ""

    def verify(self, place: Path, result: Any) -> None:
        state = self._read(place)
        assert state in (self.OLD, self.NEW) or "is not complete" in result
        assert (state == self.NEW) or result

    def verify_disk(self, place: Path) -> None:
        installation = self._installation(place)
        with change_installation(installation):
            pass  # which repairs
        assert self._read(place) in (self.OLD, self.NEW)
        lock = read_lock(installation.lock_path)
        assert [status.state for status in compare(installation, lock)] == ["same"] * len(self._read(place))
        assert {path.name for path in (place / "work").iterdir()} == {".agents", "skills.lock"}
        assert {path.name for path in Path(installation.folder).iterdir()} == set(lock.skills)
        assert {path.name for path in Path(installation.state).iterdir()} <= {"lock", "known.json", "undo.json"}

    def _installation(self, place: Path) -> Installation:
        return project_installation(str(place / "work"))

    def _read(self, place: Path) -> dict[str, str]:
        files = (place / "work/.agents/skills").glob("*/SKILL.md")
        return {file.parent.name: file.read_text() for file in sorted(files)}


class UpdateSkill(InstallSkills):
    """Replacing one skill and recording what it was: the old one or the new one, and an undo never loses it."""

    NEW: Mapping[str, str] = {**InstallSkills.OLD, "pdf": "pdf 2"}

    def act(self, place: Path, armed: Armed) -> object:
        update = Update(make_new_skill("pdf", "pdf 2"), make_new_skill("pdf", "pdf 1").content)
        with armed:
            try:
                install_updates(self._installation(place), [update])
            except RegistryError as error:
                return str(error)
        return ""

    def verify_disk(self, place: Path) -> None:
        super().verify_disk(place)
        if self._read(place) == self.NEW:
            undo_update(self._installation(place))
        assert self._read(place) == self.OLD


def make_new_skill(name: str, text: str) -> NewSkill:
    """Return a skill with this SKILL.md and a script, as if it had been fetched."""
    files = {"SKILL.md": text.encode(), "scripts/run.py": b"print()\n"}
    entries = [SnapshotEntry(path, len(data), hash_content(data), path[-1] == "y") for path, data in files.items()]
    content = SkillContent(Snapshot(name, tuple(entries)), files)
    return describe_new(Origin("git", "acme/skills"), name, Pin(commit="1" * 40), content)


def _message(text: str) -> ModelRequest:
    from pydantic_ai.messages import ModelRequest, UserPromptPart

    return ModelRequest(parts=[UserPromptPart(text)])


def _trusted(place: Path) -> TrustedSource:
    source = TrustedSource(DirectorySource(place / "work", "project", cache=False), Trust.open())
    source.refresh()
    return source


def _check_cleanup(work: Path) -> None:
    """Check that the start of a chat leaves nothing of a killed process in the workspace, and no note about it."""
    remove_stale_scratch(str(work))
    assert list(work.rglob(".skillshelf-*")) == []
    assert list(Path(os.environ["XDG_STATE_HOME"]).rglob(".skillshelf-*")) == []


def _names(source: TrustedSource) -> set[str]:
    return {skill.name for skill in source.served.values()}


def _acknowledge(place: Path, what: str) -> None:
    """Note outside of skillshelf that a call returned."""
    with open(place / "acknowledged", "a") as file:
        file.write(f"{what}\n")


def _acknowledged(place: Path) -> int:
    return len((place / "acknowledged").read_text().split())


SCENARIOS: dict[str, Scenario] = {
    "scan": Scan(),
    "scan-cached": Scan(empty_folders=500),
    "load": Load(),
    "search": Search(),
    "session": WriteSession(),
    "trust": WriteTrust(),
    "own": UseOwnRepository(),
    "own, two agents": UseOwnRepository(beside_another=True),
    "new": CreateSkill(),
    "new package": CreateProject(),
    "edit": EditFile(),
    "choices": WriteChoices(),
    "install": InstallSkills(),
    "update": UpdateSkill(),
    "checkpoint": TakeCheckpoint(),
    "undo": Undo(),
}
