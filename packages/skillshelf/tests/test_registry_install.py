"""Installing, removing and syncing skills: the folders and the lock agree, and edits are never lost unasked."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from faults.scenarios import make_new_skill
from skillshelf.errors import RegistryError
from skillshelf.files import system
from skillshelf.registry import (
    Installation,
    Pin,
    change_installation,
    compare,
    count_same,
    describe_new,
    find_offered,
    install,
    is_in_sync,
    open_source,
    parse_source,
    project_installation,
    read_content,
    read_lock,
    read_lock_bytes,
    remove,
    sync,
    user_installation,
)

SKILL = "---\nname: {}\ndescription: Does it.\n---\n\n{}\n"


@pytest.fixture
def here(tmp_path: Path) -> Installation:
    (tmp_path / "work").mkdir()
    return project_installation(str(tmp_path / "work"))


def install_from(installation: Installation, source: Path, *names: str) -> None:
    """Install skills from a folder as `skillshelf add` does."""
    origin = parse_source(str(source), "", installation.place, anywhere=True)
    with open_source(origin, Pin(), installation.place, anywhere=True) as package:
        new = [
            describe_new(origin, skill.path, package.pin, read_content(package, skill.name, skill.path))
            for skill in find_offered(package, origin)
            if skill.name in names or not names
        ]
    install(installation, new)


def write_source(place: Installation, **texts: str) -> Path:
    source = Path(place.place) / "vendor"
    for name, text in texts.items():
        (source / name).mkdir(parents=True, exist_ok=True)
        (source / name / "SKILL.md").write_text(SKILL.format(name, text))
    return source


def states(installation: Installation) -> dict[str, str]:
    statuses = compare(installation, read_lock(installation.lock_path))
    return {status.name: status.state for status in statuses}


def test_installed_skills_are_as_the_lock_pins_them(here: Installation) -> None:
    """Modes too; and the folder of the skills is made if there is none."""
    install(here, [make_new_skill("pdf", "One."), make_new_skill("sql", "Two.")])
    assert states(here) == {"pdf": "same", "sql": "same"}
    assert os.access(f"{here.folder}/pdf/scripts/run.py", os.X_OK)
    assert not os.access(f"{here.folder}/pdf/SKILL.md", os.X_OK)
    remove(here, ["pdf"], discard_edits=False)
    assert states(here) == {"sql": "same"}
    assert os.listdir(here.folder) == ["sql"]


def test_differences_are_named_file_by_file(here: Installation) -> None:
    install(here, [make_new_skill("pdf", "One.")])
    folder = Path(here.folder) / "pdf"
    (folder / "SKILL.md").write_text("Two.")
    (folder / "scripts/run.py").chmod(0o644)
    (folder / "new.md").write_text("")
    [status] = compare(here, read_lock(here.lock_path))
    assert [tuple(difference) for difference in status.differences] == [
        ("SKILL.md", "changed"),
        ("new.md", "added"),
        ("scripts/run.py", "mode"),
    ]


def test_a_name_that_is_taken_is_refused(here: Installation) -> None:
    """By a skill of another source, by one that nobody installed, and by edits."""
    (Path(here.folder) / "mine").mkdir(parents=True)
    with pytest.raises(RegistryError, match="which nobody installed"):
        install(here, [make_new_skill("mine", "Not mine.")])
    install(here, [make_new_skill("pdf", "One.")])
    other = make_new_skill("pdf", "One.")
    locked = other.locked.origin._replace(address="other/skills")
    with pytest.raises(RegistryError, match="installed from acme/skills/pdf"):
        install(here, [describe_new(locked, "pdf", Pin(), other.content)])
    (Path(here.folder) / "pdf/SKILL.md").write_text("Edited.")
    with pytest.raises(RegistryError, match="was edited"):
        install(here, [make_new_skill("pdf", "Two.")])
    with pytest.raises(RegistryError, match="edited since"):
        remove(here, ["pdf"], discard_edits=False)
    remove(here, ["pdf"], discard_edits=True)
    with pytest.raises(RegistryError, match="not in"):
        remove(here, ["pdf"], discard_edits=True)
    assert os.listdir(here.folder) == ["mine"]


def test_a_new_version_of_the_same_source_replaces_the_old_one(here: Installation) -> None:
    install(here, [make_new_skill("pdf", "One.")])
    install(here, [make_new_skill("pdf", "Two.")])
    assert (Path(here.folder) / "pdf/SKILL.md").read_text() == "Two."
    assert states(here) == {"pdf": "same"}


def test_a_folder_is_the_same_source_as_one_in_it(here: Installation) -> None:
    source = write_source(here, one="1")
    install_from(here, source.parent)
    write_source(here, one="changed")
    install_from(here, source / "one")
    assert "changed" in (Path(here.folder) / "one/SKILL.md").read_text()


def test_sync_restores_what_is_missing_and_keeps_edits(here: Installation) -> None:
    source = write_source(here, one="1", two="2", three="3")
    install_from(here, source)
    (Path(here.folder) / "one/SKILL.md").unlink()
    (Path(here.folder) / "one").rmdir()
    (Path(here.folder) / "two/SKILL.md").write_text("Edited.")
    report = sync(here)
    assert report.installed == ("one",)
    assert [status.name for status in report.edited] == ["two"]
    assert states(here) == {"one": "same", "three": "same", "two": "edited"}
    assert sync(here, discard_edits=True).installed == ("two",)
    assert sync(here) == ((), (), ())


def test_sync_follows_a_lock_that_came_from_elsewhere(here: Installation) -> None:
    """A folder as it was installed here has no edits, so that another version may replace it, or none."""
    source = write_source(here, one="1", two="2")
    install_from(here, source)
    before = Path(here.lock_path).read_bytes()
    write_source(here, one="changed")
    install_from(here, source, "one")
    remove(here, ["two"], discard_edits=False)
    after = Path(here.lock_path).read_bytes()

    Path(here.lock_path).write_bytes(before)
    with pytest.raises(RegistryError, match="'one' from vendor/one is not what the lock pins"):
        sync(here)
    assert os.listdir(here.folder) == ["one"], "nothing changes if a part cannot be had"
    write_source(here, one="1")
    assert sync(here).installed == ("one", "two")
    write_source(here, one="changed")
    Path(here.lock_path).write_bytes(after)
    assert states(here) == {"one": "edited"}, "looking forgets nothing"
    assert not is_in_sync(here, after)
    assert sync(here) == (("one",), ("two",), ())
    assert states(here) == {"one": "same"}


def test_what_has_not_changed_is_known_by_its_times(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    install(here, [make_new_skill("pdf", "One.")])
    assert not is_in_sync(here, read_lock_bytes(here.lock_path)), "files that are seconds old prove nothing"
    monkeypatch.setattr("skillshelf.files._gate.FRESH_NS", 0)
    assert states(here) == {"pdf": "same"}
    assert is_in_sync(here, read_lock_bytes(here.lock_path))
    subprocess.run([sys.executable, "-c", CHECK, os.path.dirname(here.lock_path)], check=True)
    (Path(here.folder) / "pdf/SKILL.md").write_text("Two.")
    assert not is_in_sync(here, read_lock_bytes(here.lock_path))


def test_a_lock_that_was_compared_is_not_parsed_again(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is hashed nevertheless."""
    install(here, [make_new_skill("pdf", "One.")])
    assert count_same(here) is None, "the times of new files are not remembered yet"
    monkeypatch.setattr("skillshelf.files._gate.FRESH_NS", 0)
    assert states(here) == {"pdf": "same"}
    assert count_same(here) == 1
    lock = Path(here.lock_path)
    text = lock.read_text()
    lock.write_text(text + "# Another one.\n")
    assert count_same(here) is None
    lock.write_text(text)
    file = Path(here.folder) / "pdf/SKILL.md"
    file.write_text(file.read_text().replace("One", "Two"))
    assert count_same(here) is None
    lock.write_text("")
    compare(here, read_lock(here.lock_path))
    lock.unlink()
    assert count_same(here) is None, "a check of nothing must not pass"


CHECK = """
import sys
from skillshelf.registry import *
here = project_installation(sys.argv[1])
assert is_in_sync(here, read_lock_bytes(here.lock_path))
"""


def test_two_processes_take_turns(here: Installation) -> None:
    """The second waits for the first, and both skills are in the lock."""
    entered = threading.Event()
    done = []

    def install_other() -> None:
        entered.set()
        install(here, [make_new_skill("two", "2")])
        done.append("two")

    with change_installation(here) as transaction:
        thread = threading.Thread(target=install_other)
        thread.start()
        entered.wait()
        one = make_new_skill("one", "1")
        transaction.commit(transaction.lock.with_skills(one.locked), [one.content])
        assert done == []
    thread.join()
    assert states(here) == {"one": "same", "two": "same"}


def test_what_cannot_be_renamed_is_named_until_it_can(here: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a folder that the user has protected from writing: the change is completed once it is no longer."""
    install_from(here, write_source(here, pdf="One.", sql="One."))

    def refuse(source: str, _: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), source)

    with monkeypatch.context() as context:
        context.setattr(system, "rename", refuse)
        with pytest.raises(RegistryError, match=r"is not complete: .*skills/pdf\)\. The next"):
            remove(here, ["pdf"], discard_edits=False)
        with pytest.raises(RegistryError, match=r"Nothing can be changed: .*skills/pdf\)\."):
            remove(here, ["sql"], discard_edits=False)
    remove(here, ["sql"], discard_edits=False)
    assert states(here) == {}
    assert os.listdir(here.folder) == []


def test_the_users_skills_have_their_lock_beside_the_settings() -> None:
    here = user_installation()
    install(here, [make_new_skill("pdf", "One.")])
    home = Path(os.environ["HOME"])
    assert (home / ".agents/skills/pdf/SKILL.md").exists()
    assert (home / ".config/skillshelf/skills.lock").exists()
    assert states(here) == {"pdf": "same"}


def test_links_that_a_clone_brings_lead_nowhere(tmp_path: Path) -> None:
    """Neither the folder of the skills nor that of the drafts can be elsewhere."""
    (tmp_path / "work/.agents").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work/.agents/skills").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RegistryError, match="link out of the workspace"):
        project_installation(str(tmp_path / "work"))
    (tmp_path / "work/.agents/skills").unlink()
    (tmp_path / "work/.git").mkdir()
    (tmp_path / "work/.agents/skills").symlink_to("../.git")
    with pytest.raises(RegistryError, match=r"link into \.git"):
        project_installation(str(tmp_path / "work"))
    (tmp_path / "work/.agents/skills").unlink()
    (tmp_path / "work/.agents/skills").mkdir()
    (tmp_path / "work/.agents/skills/.skillshelf-new").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RegistryError, match="is a link"):
        install(project_installation(str(tmp_path / "work")), [make_new_skill("pdf", "One.")])
    assert list((tmp_path / "elsewhere").iterdir()) == []
