"""Fixtures for all tests: a home folder of their own, and short ways to write skills and run commands."""

import gc
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import effort

# CI and `make test` must give the same answer twice; `pytest` alone looks for new examples.
# How long an example takes depends on how busy the machine is, so nothing fails for that.
settings.register_profile("develop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("gate", settings.get_profile("develop"), derandomize=True)
settings.load_profile("gate" if os.environ.get("CI") else "develop")

# A shell that starts the tests in the background ignores these signals, and every child process would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Collecting makes a million objects, and all of them stay: looking for garbage among them takes each worker 6 s of 16
# when the tests are compiled, and 1.3 s of 8 afterwards.
gc.disable()

SKILLS = Path(__file__).parent / "tests" / "skills"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        action="store_true",
        help="run the long tests, and the long versions of sampled ones, instead of the rest",
    )
    parser.addoption(
        "--every-fault", action="store_true", help="strike at every statement of an eval run too, which takes an hour"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--long"):
        os.environ[effort.VARIABLE] = "1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests, or with `--long` everything that has run in full without it."""
    markers = ("long", "sampled") if config.getoption("--long") else ()
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        is_long = item.get_closest_marker("long") is not None
        is_chosen = any(item.get_closest_marker(marker) for marker in markers) if markers else not is_long
        (chosen if is_chosen else left_out).append(item)
    items[:] = chosen
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    gc.enable()


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    """True if a `sampled` test should try everything, and not a sample."""
    return bool(request.config.getoption("--long"))


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test its own home, so that it never sees the user's skills or cache."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a skill below tmp_path and returns the path of its SKILL.md."""

    def write_skill(folder: str, description: str = "Does it.", body: str = "Do it.\n", **files: str) -> Path:
        path = tmp_path / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {path.parent.name}\ndescription: {description}\n---\n\n{body}")
        for name, text in files.items():
            file = path.parent / re.sub("_(md|py|yaml|json)$", r".\1", name.replace("__", "/"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return path

    return write_skill


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs `skillshelf` in tmp_path and returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run_command(*arguments: str) -> tuple[int, str, str]:
        from skillshelf.cli import main

        try:
            code = main(arguments)
        except SystemExit as leave:
            code = int(leave.code or 0)
        return code, *capsys.readouterr()

    return run_command
