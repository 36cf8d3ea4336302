"""Settings: where they come from, which wins, and the messages about wrong ones."""

import os
from pathlib import Path

import pytest

from skillshelf.errors import SettingsError
from skillshelf.settings import NAMES, Settings, load_settings
from skillshelf.text.tokens import DEFAULT_BUDGET
from threats.conftest import ordinary_user  # noqa: F401 a fixture


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings of whoever runs it."""
    for name in NAMES:
        monkeypatch.delenv(f"SKILLSHELF_{name.upper()}", raising=False)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/skillshelf").mkdir(parents=True)
    return tmp_path / "config/skillshelf/config.toml"


def refused(flags: dict[str, object] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(flags or {})
    return str(caught.value)


def test_without_anything_the_defaults_hold(config: Path) -> None:
    """There is no file, no variable and no flag."""
    assert load_settings({}) == Settings("", "", "ask", DEFAULT_BUDGET, 0)


def test_the_file_gives_every_setting(config: Path) -> None:
    """Every setting can be written in the file."""
    config.write_text(
        '# mine\nmodel = "llama3.2"\nbase_url = "http://localhost:11434/v1/"\npolicy = "read-only"\n'
        'budget = 500\nwindow = 8192\ndisclosure = "full"\n'
        'packages = ["my_skills", "our.skills"]\nbell = false\ntitle = false\n'
    )
    expected = Settings(
        model="llama3.2",
        base_url="http://localhost:11434/v1",
        policy="read-only",
        budget=500,
        window=8192,
        disclosure="full",
        packages=("my_skills", "our.skills"),
        bell=False,
        title=False,
    )
    assert load_settings({}) == expected


def test_flags_come_before_the_environment_before_the_file(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag that was not given is None."""
    config.write_text('model = "file:m"\nbudget = 1\nwindow = 1\n')
    monkeypatch.setenv("SKILLSHELF_BUDGET", "2")
    monkeypatch.setenv("SKILLSHELF_WINDOW", "2")
    monkeypatch.setenv("SKILLSHELF_POLICY", "")
    settings = load_settings({"window": 3, "model": None, "resume": "another option"})
    assert (settings.model, settings.budget, settings.window, settings.policy) == ("file:m", 2, 3, "ask")


def test_an_empty_flag_overrides_the_file(config: Path) -> None:
    """`--base-url ''` asks the provider itself again."""
    config.write_text('base_url = "http://localhost:1/v1"\n')
    assert load_settings({"base_url": ""}).base_url == ""


def test_nothing_in_the_workspace_is_read(tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloned repository cannot choose the model, the address or the policy."""
    workspace = tmp_path / "workspace"
    for place in (workspace, workspace / ".skillshelf", workspace / "skillshelf"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "config.toml").write_text('policy = "yolo"\n')
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("XDG_CONFIG_HOME", ".")
    assert load_settings({}).policy == "ask"


def test_packages_in_a_variable_are_separated_by_commas(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment variable has no lists."""
    monkeypatch.setenv("SKILLSHELF_PACKAGES", "my_skills, our.skills,")
    assert load_settings({}).packages == ("my_skills", "our.skills")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('model = "a:b"\nmodle = "x"\n', 2, "'modle' is not a setting. Did you mean 'model'?"),
        ('base-url = "http://x"\n', 1, "Did you mean 'base_url'?"),
        ("\nzzz = 1\n", 2, "Settings: model, base_url, policy"),
        ("[agent]\nmodel = 'x'\n", 1, "'agent' is not a setting"),
        ('policy = "never"\n', 1, "is 'never'; it must be one of ask, read-only, auto-edit, yolo."),
        ("# one\n\npolicy = 3\n", 3, "must be text, not 3"),
        ('bell = "loud"\n', 1, "is 'loud'; it must be true or false"),
        ("title = 1\n", 1, "is 1; it must be true or false"),
        ('budget = "many"\n', 1, "whole number of tokens, 1 or more"),
        ("budget = true\n", 1, "is True; it must be a whole number"),
        ("budget = 0\n", 1, "is 0; it must be a whole number"),
        ("window = -1\n", 1, "0 or more"),
        ('base_url = "localhost:11434"\n', 1, "It looks like this: http://localhost:11434/v1"),
        ('base_url = "http://[::1"\n', 1, "is not an http(s) address"),
        ('disclosure = "all"\n', 1, "it must be one of auto, catalog, full"),
        ("packages = 3\n", 1, 'it must be a list of packages, such as ["my_skills"]'),
        ('packages = ["./skills"]\n', 1, "names './skills', which cannot be imported"),
        ("model = \n", 1, "not TOML"),
        ('x = 1\nmodel = "a"\nmodel = "b"\n', 3, "not TOML"),
    ],
)
def test_a_wrong_setting_is_reported_with_its_line(config: Path, text: str, line: int, words: str) -> None:
    """The message has the file, the line, the value and what is right."""
    config.write_text(text)
    message = refused()
    assert message.startswith(f"{config}, line {line}")
    assert words in message


def test_a_wrong_variable_and_a_wrong_flag_are_named(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has them as the user typed them."""
    assert refused({"base_url": "nowhere"}).startswith("The option --base-url is not an http(s) address")
    monkeypatch.setenv("SKILLSHELF_DISCLOSURE", "maybe")
    assert refused().startswith("The environment variable SKILLSHELF_DISCLOSURE is 'maybe'; it must be one of auto, ")


def test_a_password_in_an_address_is_not_repeated(config: Path) -> None:
    """Error messages end up in bug reports."""
    assert "hunter2" not in refused({"base_url": "ftp://me:hunter2@host"})


def test_something_other_than_a_file_is_refused_at_once(config: Path) -> None:
    """A folder or a named pipe in its place causes neither a hang nor a traceback."""
    config.mkdir()
    assert "is not a plain file" in refused()
    config.rmdir()
    os.mkfifo(config)
    assert "is not a plain file" in refused()


def test_a_file_that_cannot_be_read_as_text_is_reported(config: Path) -> None:
    """Wrong bytes, a huge file and a loop of links each have a message."""
    config.write_bytes(b'model = "a"\n# \xff\n')
    assert "line 2: not UTF-8" in refused()
    config.write_text("# x\n" * 100_000)
    assert "larger than 256 KiB" in refused()
    config.unlink()
    config.symlink_to(config)
    assert "cannot be read: Too many levels of symbolic links" in refused()


@pytest.mark.usefixtures("ordinary_user")
def test_a_file_without_permission_is_reported(config: Path) -> None:
    """It is not taken for a missing one."""
    config.write_text('model = "a"\n')
    config.chmod(0)
    assert "cannot be read: Permission denied" in refused()


def test_the_file_may_be_a_link_and_begin_with_a_mark(config: Path, tmp_path: Path) -> None:
    """Dotfiles are often linked, and some editors write a byte-order mark."""
    (tmp_path / "dotfile").write_bytes(b'\xef\xbb\xbfmodel = "a:b"\n')
    config.symlink_to(tmp_path / "dotfile")
    assert load_settings({}).model == "a:b"
