"""TRUST: agents that work in a repository of the user's own, several at once, and some of them killed."""

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from skillshelf import DirectorySource
from skillshelf.trust import Pending, Trust, TrustedSource, find_pending_folder, trusted_text

SKILL = "---\nname: good\ndescription: d\n---\n"
PLACES = {"good": "good/SKILL.md", "AGENTS.md": "AGENTS.md", "sub/AGENTS.md": "sub/AGENTS.md"}


class Seen(NamedTuple):
    """What a session finds in use, and what it is told to review as an agent's."""

    in_use: dict[str, str | None]
    by_agent: set[str]


class Repository:
    """A repository that the user declared their own, with files that change."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.home = str(folder / "state")
        for path in (".git", "good", "sub"):
            (self.root / path).mkdir(parents=True)
        for place in PLACES:
            self.write(place, "first")
        Trust.open(self.home).declare_own(str(self.root))
        self.look()

    def write(self, place: str, text: str) -> None:
        (self.root / PLACES[place]).write_text(SKILL + text if place == "good" else text)

    def source(self) -> TrustedSource:
        source = TrustedSource(DirectorySource(self.root, "project", cache=False), Trust.open(self.home))
        source.refresh()
        return source

    def look(self) -> Seen:
        """Look as a new session does."""
        in_use, pending = self._read(self.source())
        return Seen(in_use, {content.key for content in pending if content.by_agent})

    def approve(self) -> None:
        """Approve everything that is pending, as in a review."""
        source = self.source()
        source.approve(self._read(source)[1])
        self.look()

    def _read(self, source: TrustedSource) -> tuple[dict[str, str | None], list[Pending]]:
        copy = source.find_copy("good")
        assert copy
        text = copy.read("SKILL.md", 0, 1000).data.decode()
        in_use: dict[str, str | None] = {"good": text.removeprefix(SKILL)}
        all_pending = list(source.pending)
        for place in ("AGENTS.md", "sub/AGENTS.md"):
            in_use[place], pending = trusted_text(self.root / place, source.trust, self.root)
            if pending:
                all_pending.append(pending)
        return in_use, all_pending


class Agent:
    """An agent in a process of its own. Each method returns when the process has done it."""

    def __init__(self, repository: Repository) -> None:
        self._orders, orders = os.pipe()
        answers, self._answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._obey(repository)
            finally:
                os._exit(1)
        os.close(self._orders)
        os.close(self._answers)
        self._to = os.fdopen(orders, "w")
        self._from = os.fdopen(answers)

    def begin(self) -> None:
        self._order("begin")

    def write(self, place: str, text: str) -> None:
        self._order("write", place, text)

    def end(self) -> None:
        self._order("end")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._to.close()
        self._from.close()

    def _order(self, *words: str) -> None:
        print(json.dumps(words), file=self._to, flush=True)
        assert self._from.readline() == "done\n"

    def _obey(self, repository: Repository) -> None:
        work = ExitStack()
        with os.fdopen(self._orders) as orders:
            for line in orders:
                action, *arguments = json.loads(line)
                if action == "begin":
                    repository.look()  # as every turn of a session begins
                    work.enter_context(repository.source().agent_at_work())
                elif action == "write":
                    repository.write(*arguments)
                else:
                    work.close()
                os.write(self._answers, b"done\n")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@contextmanager
def agents(repository: Repository, count: int) -> Iterator[list[Agent]]:
    """Start processes, and kill those that are left at the end."""
    started = [Agent(repository) for _ in range(count)]
    try:
        yield started
    finally:
        for agent in started:
            if not agent._to.closed:
                agent.kill()


class Model:
    """What the guide promises, in a few lines: it knows nothing of files or processes."""

    def __init__(self) -> None:
        self.disk = dict.fromkeys(PLACES, "first")
        self.in_use = dict(self.disk)
        self.approved: dict[str, list[str]] = {place: [] for place in PLACES}
        self.to_review: set[str] = set()
        self.before: dict[str, str] | None = None
        """What was there when the first agent began; None once their changes are known."""
        self.at_work: set[int] = set()

    def begin(self, agent: int) -> None:
        self.look()
        if self.before is None:
            self.before = dict(self.disk)
        self.at_work.add(agent)

    def end(self, agent: int) -> None:
        self.at_work.discard(agent)
        self._find_changes()

    def look(self) -> Seen:
        self._find_changes()
        for place, text in self.disk.items():
            is_the_users = self.before is None and place not in self.to_review
            if is_the_users or text in self.approved[place]:
                self.in_use[place] = text
        by_agent = {place for place in self.to_review if self.disk[place] != self.in_use[place]}
        return Seen(dict(self.in_use), by_agent)

    def approve(self) -> None:
        self.look()
        for place, text in self.disk.items():
            if text != self.in_use[place]:
                self.approved[place].append(text)
                self.in_use[place] = text
                self.to_review.discard(place)

    def _find_changes(self) -> None:
        if self.before is None or self.at_work:
            return
        for place, text in self.disk.items():
            if text not in (self.before[place], self.in_use[place], *self.approved[place]):
                self.to_review.add(place)
        self.before = None


NUMBER = st.integers(0, 1)
WORDS = ["user", "user takes back", "begin", "agent", "end", "kill", "look", "approve"]
ACTIONS = st.lists(st.tuples(st.sampled_from(WORDS), NUMBER, st.sampled_from(sorted(PLACES))), max_size=20)


@pytest.mark.sampled
@given(ACTIONS)
@settings(max_examples=examples(80))
def test_what_users_and_agents_do_comes_into_use_as_the_guide_says(actions: list[tuple[str, int, str]]) -> None:
    """No change of an agent does unless the user approves it, and each edit by the user if no agent interferes."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder))
        model = Model()
        with agents(repository, 2) as started:
            for count, (action, number, place) in enumerate(actions):
                agent = started[number]
                is_at_work = number in model.at_work
                text = ""
                if action == "user":
                    text = f"user {count}"
                elif action == "user takes back":
                    text = [model.in_use[place], *model.approved[place]][number % (len(model.approved[place]) + 1)]
                elif action == "agent" and is_at_work:
                    text = f"agent {count}"
                    agent.write(place, text)
                elif action == "begin" and not is_at_work:
                    model.begin(number)
                    agent.begin()
                elif action == "end" and is_at_work:
                    agent.end()
                    model.end(number)
                elif action == "kill" and is_at_work:
                    agent.kill()
                    model.at_work.discard(number)
                    started[number] = Agent(repository)
                elif action == "approve":
                    repository.approve()
                    model.approve()
                if text:
                    repository.write(place, text)
                    model.disk[place] = text
                if action == "look":
                    assert repository.look() == model.look()
            assert repository.look() == model.look()


def test_another_change_in_the_repository_does_not_end_a_review(repository: Repository) -> None:
    """A session notes which approved versions it finds on disk, and has nothing to note of a changed one."""
    (repository.root / "other").mkdir()
    other = repository.root / "other/SKILL.md"
    for text in ("old", "new"):
        other.write_text(f"---\nname: other\ndescription: d\n---\n{text}")
        source = repository.source()
        source.approve(source.unapproved)
    repository.look()
    with repository.source().agent_at_work():
        repository.write("good", "EVIL")
    other.write_text("---\nname: other\ndescription: d\n---\nold")
    for _ in range(3):
        assert repository.look() == Seen(dict.fromkeys(PLACES, "first"), {"good"})


def test_while_another_agent_works_nothing_comes_into_use(repository: Repository) -> None:
    """One of two ends first, and leaves the other's changes alone."""
    with agents(repository, 2) as (first, second):
        first.begin()
        second.begin()
        second.write("good", "AGENT")
        first.end()
        assert repository.look().in_use["good"] == "first"
        second.end()
        assert repository.look() == Seen(dict.fromkeys(PLACES, "first"), {"good"})


def test_an_agent_that_is_killed_beside_another_leaves_its_changes_to_review(repository: Repository) -> None:
    """K01: the other one began when they were there already."""
    with agents(repository, 2) as (first, second):
        first.begin()
        first.write("AGENTS.md", "AGENT")
        second.begin()
        first.kill()
        assert repository.look().in_use["AGENTS.md"] == "first"
        second.end()
        assert repository.look() == Seen(dict.fromkeys(PLACES, "first"), {"AGENTS.md"})


def test_an_edit_before_an_agent_that_was_killed_is_the_users(repository: Repository) -> None:
    """K01: the lock file has what was there when the agent began."""
    with agents(repository, 1) as (agent,):
        repository.write("good", "user")
        agent.begin()
        agent.write("AGENTS.md", "AGENT")
        agent.kill()
        assert repository.look() == Seen({**dict.fromkeys(PLACES, "first"), "good": "user"}, {"AGENTS.md"})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"good": "'], ids=["empty", "torn", "other", "cut"])
def test_a_damaged_lock_file_leaves_everything_to_review(content: bytes, repository: Repository) -> None:
    """Nobody knows what was there before, so only what is in use stays."""
    with agents(repository, 1) as (agent,):
        agent.begin()
        agent.write("good", "AGENT")
        agent.kill()
    [lock] = Path(repository.home, "trust/agents").iterdir()
    lock.write_bytes(content)
    assert repository.look() == Seen(dict.fromkeys(PLACES, "first"), {"good"})


def test_cases_of_a_skill_that_a_killed_agent_changed_are_not_run(repository: Repository) -> None:
    """K01: even if nothing else has looked at the repository since."""
    (repository.root / "good/evals").mkdir()
    (repository.root / "good/evals/cases.py").write_text("CASES = []\n")
    repository.look()

    def find_pending() -> object:
        return find_pending_folder(str(repository.root / "good"), str(repository.root), Trust.open(repository.home))

    with agents(repository, 1) as (agent,):
        agent.begin()
        assert find_pending() is None
        agent.write("good", "AGENT")
        agent.kill()
    assert find_pending()


def test_instructions_of_another_repository_inside_do_not_become_the_users(repository: Repository) -> None:
    """A command removes the marker of the clone, and changes no file of instructions."""
    clone = repository.root / "sub/clone"
    (clone / ".git").mkdir(parents=True)
    (clone / "AGENTS.md").write_text("EVIL")
    with repository.source().agent_at_work():
        (clone / ".git").rmdir()
    text, pending = trusted_text(clone / "AGENTS.md", Trust.open(repository.home), repository.root)
    assert (text, bool(pending and pending.by_agent)) == (None, True)
