"""`skillshelf doctor` explains the setup, and never shows a secret."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from repository import REPO
from skillshelf.cli._doctor import ADAPTER_EXTRAS, EXTRAS, SKILL_EXTRAS
from skillshelf.sandbox import find_sandbox
from skillshelf_agent import DEFAULTS

Run = Callable[..., tuple[int, str, str]]
PROJECT = REPO / "packages/skillshelf/pyproject.toml"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in DEFAULTS:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def settings() -> Path:
    path = Path(os.environ["HOME"], ".config", "skillshelf", "config.toml")
    path.parent.mkdir(parents=True)
    return path


def remarks(run: Run, area: str) -> list[tuple[str, str]]:
    """Return status and message of the remarks in an area."""
    read = json.loads(run("doctor", "--json")[1])
    return [(remark["status"], remark["message"]) for remark in read["remarks"] if remark["area"] == area]


def test_a_fresh_installation_has_no_problem(run: Run) -> None:
    code, out, err = run("doctor")
    assert (code, err) == (0, "")
    assert out.rstrip().endswith("Nothing is broken.")


def test_it_knows_every_extra_of_the_package() -> None:
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert sorted((*EXTRAS, *SKILL_EXTRAS, *ADAPTER_EXTRAS)) == sorted(extras.keys() - {"all"})


def test_a_missing_extra_comes_with_the_command_that_installs_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    requires = metadata.requires

    def find_without_mcp(package: str) -> list[str] | None:
        if package == "mcp":
            raise metadata.PackageNotFoundError(package)
        return requires(package)

    monkeypatch.setattr(metadata, "requires", find_without_mcp)
    out = run("doctor")[1]
    assert "note    the extra mcp is not installed: skillshelf serve\n          pip install 'skillshelf[mcp]'" in out


def test_each_setting_is_shown_with_its_origin(run: Run, settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.write_text("budget = 900\n")
    monkeypatch.setenv("SKILLSHELF_POLICY", "read-only")
    messages = [message for _, message in remarks(run, "settings")]
    assert f"file: {settings}" in messages
    assert "budget = 900, from the settings file" in messages
    assert "policy = read-only, from SKILLSHELF_POLICY" in messages
    assert not any(message.startswith("window") for message in messages)


def test_keys_and_passwords_are_never_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("SKILLSHELF_MODEL", "llama")
    monkeypatch.setenv("SKILLSHELF_BASE_URL", "http://me:sk-secret@localhost:11434/v1?key=sk-secret")
    for form in ((), ("--json",)):
        out = run("doctor", *form)[1]
        assert "sk-secret" not in out
        assert "llama at http://localhost:11434/v1" in out


@pytest.mark.parametrize(
    ("model", "key", "status", "message"),
    [
        ("", "", "note", "none is chosen; only chat and eval need one"),
        ("", "ANTHROPIC_API_KEY", "ok", f"{DEFAULTS['ANTHROPIC_API_KEY']}, because ANTHROPIC_API_KEY is set"),
        ("openai:gpt-6", "", "problem", "openai:gpt-6 needs a key, and there is none"),
        ("openai:gpt-6", "OPENAI_API_KEY", "ok", "openai:gpt-6; OPENAI_API_KEY is set"),
    ],
)
def test_the_model_and_the_presence_of_its_key(
    run: Run, monkeypatch: pytest.MonkeyPatch, model: str, key: str, status: str, message: str
) -> None:
    monkeypatch.setenv("SKILLSHELF_MODEL", model)
    if key:
        monkeypatch.setenv(key, "something")
    assert remarks(run, "model") == [(status, message)]
    assert run("doctor")[0] == (1 if status == "problem" else 0)


def announce(site: Path, distribution: str, entry_points: str = "") -> None:
    """Put a distribution with these entry points into a folder."""
    info = site / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text(entry_points)


def test_it_works_without_the_agent(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says nothing about models then."""
    announce(tmp_path / "site", "skillshelf_agent")  # which shadows the real one
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert remarks(run, "model") == []
    assert run("doctor")[0] == 0
    assert "Model:" not in run()[1]


def test_a_package_whose_remarks_fail_is_a_problem(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    announce(tmp_path / "site", "shop", "[skillshelf.doctor]\nshop = shop_that_is_gone:examine\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    [(status, message)] = remarks(run, "packages")
    assert status == "problem"
    assert message.startswith("shop_that_is_gone:examine failed: ModuleNotFoundError")
    assert remarks(run, "model")


@pytest.mark.skipif(find_sandbox().level != "bubblewrap", reason=f"bubblewrap is needed: {find_sandbox().reason}")
def test_it_says_how_to_allow_the_user_namespaces_that_the_sandbox_needs(tmp_path: Path) -> None:
    """In a user namespace of their own, these settings can be tried without changing those of the machine."""
    doctor = f"exec setpriv --bounding-set=-all {sys.executable} -m skillshelf doctor"
    for name, forbidding in (
        ("kernel.apparmor_restrict_unprivileged_userns", 1),
        ("kernel.unprivileged_userns_clone", 0),
        ("user.max_user_namespaces", 0),
    ):
        forbid = "echo 0 > /proc/sys/user/max_user_namespaces"
        if name.startswith("kernel."):  # not every kernel has it
            folder = tmp_path / name
            folder.mkdir()
            (folder / name.removeprefix("kernel.")).write_text(f"{forbidding}\n")
            forbid += f" && cp /proc/sys/kernel/overflow?id {folder} && mount --bind {folder} /proc/sys/kernel"
        words = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
        done = subprocess.run(
            [*words, f"{forbid} && {doctor}"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert f"`sudo sysctl {name}=" in done.stdout, done.stderr


def test_broken_settings_are_a_problem_and_the_rest_is_still_examined(run: Run, settings: Path) -> None:
    settings.write_text("budgt = 900\n")
    [_, (status, message)] = remarks(run, "settings")
    assert status == "problem"
    assert "Did you mean 'budget'?" in message
    assert remarks(run, "sandbox")
    assert run("doctor")[0] == 1


def test_a_skill_that_cannot_be_used_is_a_problem(run: Run, write: Callable[..., Path]) -> None:
    write("skills/fine")
    write("skills/broken").write_text("")
    assert ("problem", "1 file has problems") in remarks(run, "skills")


def test_a_damaged_record_of_approvals_is_a_problem(run: Run, write: Callable[..., Path]) -> None:
    write("skills/pdf")
    run("trust", "--yes", "pdf")
    [record] = Path(os.environ["HOME"]).rglob("approvals.json")
    record.write_text("{")
    assert remarks(run, "trust")[0][0] == "problem"


def test_skills_that_wait_for_review_are_a_note(run: Run, write: Callable[..., Path]) -> None:
    write("skills/pdf")
    assert remarks(run, "trust")[-1] == ("note", "1 skill is waiting for your review, and can't be used until then")


def test_a_repository_of_ones_own_is_shown(run: Run, write: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write("skills/pdf")
    run("trust", "--mine")
    status, message = remarks(run, "trust")[-1]
    assert (status, message.partition(" since")[0]) == ("ok", f"{tmp_path} has been your own repository")


def test_choices_for_single_skills_are_shown(run: Run, write: Callable[..., Path]) -> None:
    write("skills/pdf")
    write("skills/sql")
    run("set", "sql", "off")
    run("set", "pdf", "full")
    assert ("ok", "your choices for single skills: pdf full, sql off") in remarks(run, "settings")


def test_choices_that_cannot_be_read_are_a_problem(run: Run, settings: Path) -> None:
    settings.with_name("skills.toml").write_text('pdf = "loud"\n')
    assert "problem" in [status for status, _ in remarks(run, "settings")]


def test_a_state_folder_that_cannot_be_written_is_a_problem(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Path(os.environ["HOME"], "a-file")
    blocked.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    assert "problem" in [status for status, _ in remarks(run, "folders")]
