"""Images from the clipboard: which program is asked, and what happens if it has none."""

from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from skillshelf.errors import SkillError
from skillshelf_agent.terminal._clipboard import read_image

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
TYPED = """
case "$*" in
  *list-types*|*TARGETS*) printf 'text/html\\nimage/jpeg\\nimage/png\\n';;
  *image/png*) cat image.png;;
  *) exit 1;;
esac
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only programs there are, on a desktop of both kinds."""
    (tmp_path / "image.png").write_bytes(PNG)
    (tmp_path / "cat").symlink_to("/bin/cat")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    return tmp_path


def install(programs: Path, name: str, script: str) -> None:
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("wl-paste", TYPED),
        ("xclip", TYPED),
        ("pngpaste", "cat image.png"),
        ("osascript", f"echo '«data PNGf{PNG.hex().upper()}»'"),
    ],
)
def test_each_program_gives_the_image(name: str, script: str, programs: Path) -> None:
    """PNG comes first if there are several types."""
    install(programs, name, script)
    assert read_image("/workspace") == PNG


def test_another_program_is_asked_if_one_has_nothing(programs: Path) -> None:
    install(programs, "wl-paste", "echo Nothing is copied >&2; exit 1")
    install(programs, "xclip", TYPED)
    assert read_image("/workspace") == PNG


@pytest.mark.parametrize("script", ["echo UTF8_STRING", "exit 1", "echo image/png; exit 1", "kill $$"])
def test_without_an_image_there_is_a_sentence(script: str, programs: Path) -> None:
    install(programs, "xclip", script)
    with pytest.raises(SkillError, match="There is no image in the clipboard"):
        read_image("/workspace")


def test_a_program_that_hangs_is_given_up(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillshelf_agent.terminal._clipboard._SECONDS", 0.1)
    install(programs, "xclip", "exec /bin/sleep 60")
    with pytest.raises(SkillError, match="There is no image in the clipboard"):
        read_image("/workspace")


def test_without_a_program_or_a_desktop_it_says_what_is_needed(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SkillError, match=r"xclip \(on X11\)"):
        read_image("/workspace")
    install(programs, "xclip", TYPED)
    monkeypatch.delenv("DISPLAY")
    with pytest.raises(SkillError, match="can't be pasted here"):
        read_image("/workspace")


@pytest.mark.parametrize("path", [".", "{}", "{}/bin"])
def test_no_program_of_the_workspace_is_asked(path: str, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a relative entry of PATH, nor by one such as that of an active virtual environment."""
    (programs / "bin").symlink_to(programs)
    install(programs, "xclip", "touch ran")
    monkeypatch.setenv("PATH", path.format(programs))
    with pytest.raises(SkillError, match="can't be pasted here"):
        read_image(str(programs))
    assert not (programs / "ran").exists()
