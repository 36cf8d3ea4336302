"""`python -m benchmarks.routing [FOLDER]`: what routing gains, and what it costs in cached prompts.

Conversations are made of public queries: several about each of a few skills in a row, with short replies between them.
A skill that is described when its query comes is loaded, and is pinned from then on. The prompt is the listing and then
the conversation, so if the listing changes, both are read again at full price.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.search.collections import OWN_DATA, Collection, load
from skillshelf import MemorySource, Shelf
from skillshelf.listing import Feed, Listing, parse
from skillshelf.shelf import Turn
from skillshelf.shelf.routing import Route
from skillshelf.text.tokens import DEFAULT_BUDGET, estimate

PUBLIC_DATA = Path(__file__).parents[2].parent / "shared" / "retrieval"
REPLIES = (
    "yes, please",
    "go on",
    "thanks, that looks good",
    "why?",
    "a bit shorter, please",
    "no, the other one",
    "ok, now do it",
    "can you explain the second point again?",
)
ANSWER_TOKENS = 400
"""Of each answer, beside the skills that it loads."""
SKILLS_PER_CONVERSATION = 4
QUERIES_PER_SKILL = 2


@dataclass(frozen=True)
class Message:
    text: str
    answer: str = ""
    """The name of the right skill; empty for a reply that needs none."""


@dataclass
class Outcome:
    """The sums over all conversations of one way to route."""

    turns: int = 0
    queries: int = 0
    described: int = 0
    changes: int = 0
    lost: int = 0
    added: int = 0

    def __str__(self) -> str:
        later = max(1, self.turns)
        return (
            f"{100 * self.described / self.queries:9.1f} % {100 * self.changes / later:9.1f} % "
            f"{self.lost / later:12,.0f} {self.added / later:10,.0f}"
        )


@dataclass
class Conversation:
    """A conversation in progress."""

    shelf: Shelf
    budget: int
    feed: Feed
    route: Route | None = None
    loaded: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    section: str = ""
    tokens: int = 0


@dataclass(frozen=True)
class View:
    """What the model sees of the skills in a turn."""

    section: str
    described: frozenset[str]
    note_tokens: int = 0


Choose = Callable[[Conversation, str], View]


def show_usual(conversation: Conversation, text: str) -> View:
    return view(conversation.shelf.listing(budget=conversation.budget))


def route_anew(conversation: Conversation, text: str) -> View:
    return follow(conversation, text, keep=False)


def route_by_rule(conversation: Conversation, text: str) -> View:
    return follow(conversation, text, keep=True)


def follow(conversation: Conversation, text: str, keep: bool) -> View:
    conversation.route = conversation.shelf.route(
        text, loaded=conversation.loaded, previous=conversation.route, keep=keep, budget=conversation.budget
    )
    return view(conversation.route.listing)


def add_notes(conversation: Conversation, text: str) -> View:
    """Follow the rule as an agent does that can add notes to messages."""
    feed = conversation.feed
    before = len(feed.notes)
    feed.pin(conversation.loaded)
    feed.route(Turn(conversation.shelf), text)
    section = feed.section(conversation.messages)
    fresh = feed.notes[before:]
    entries = parse(section)
    for note in feed.notes:
        entries += parse(note.text)
    described = frozenset(entry.name for entry in entries if not entry.is_bare)
    return View(section, described, sum(estimate(note.text) for note in fresh))


def view(listing: Listing) -> View:
    return View(listing.text, frozenset(entry.name for entry in listing.entries if not entry.is_bare))


WAYS: dict[str, Choose] = {
    "no routing": show_usual,
    "every turn": route_anew,
    "the rule": route_by_rule,
    "the rule, with notes": add_notes,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.routing", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="the data (../shared/retrieval, or our own small set)")
    parser.add_argument("--sizes", type=int, nargs="*", default=[300, 1_000, 4_000], help="skills on the shelf")
    parser.add_argument("--conversations", type=int, default=25, help="conversations for each size (25)")
    parser.add_argument("--budget", type=int, default=DEFAULT_BUDGET)
    options = parser.parse_args(arguments)
    collection = load(options.folder or (PUBLIC_DATA if PUBLIC_DATA.exists() else OWN_DATA))

    for size in options.sizes:
        randomness = random.Random(size)
        names = choose_names(collection, size, randomness)
        shelf = open_shelf(collection, names)
        conversations = [write_conversation(collection, names, randomness) for _ in range(options.conversations)]
        print(f"\n{len(shelf.catalog):,} skills, {options.budget:,} tokens, {len(conversations)} conversations")
        print(f"{'':24} {'described':>11} {'changed':>11} {'tokens lost':>12} {'added':>10}")
        for title, choose in WAYS.items():
            print(f"{title:24} {measure(shelf, options.budget, conversations, choose)}", flush=True)
    return 0


def choose_names(collection: Collection, size: int, randomness: random.Random) -> dict[str, str]:
    """Return so many skills by identifier, each with a name of its own. Skills with queries come first."""
    wanted = sorted({identifier for query in collection.queries for identifier in query.answers})
    others = sorted(set(collection.skills) - set(wanted))
    randomness.shuffle(wanted)
    randomness.shuffle(others)
    # At most a third has queries: on a real shelf, too, most skills are not what the user is about.
    third = max(SKILLS_PER_CONVERSATION, size // 3)
    chosen = [*wanted[:third], *others, *wanted[third:]][:size]
    names: dict[str, str] = {}
    taken: set[str] = set()
    for identifier in chosen:
        name = collection.skills[identifier]["name"] or identifier
        if name in taken:
            name = f"{name}-{identifier[-6:]}"
        taken.add(name)
        names[identifier] = name
    return names


def open_shelf(collection: Collection, names: dict[str, str]) -> Shelf:
    files: dict[str, str] = {}
    for identifier, name in names.items():
        skill = collection.skills[identifier]
        fields = f"name: {json.dumps(name)}\ndescription: {json.dumps(skill['description'])}"
        files[name] = f"---\n{fields}\n---\n{skill.get('body', '')}"
    return Shelf([MemorySource(files)])


def write_conversation(collection: Collection, names: dict[str, str], randomness: random.Random) -> list[Message]:
    queries: dict[str, list[str]] = {}
    for query in collection.queries:
        for identifier in query.answers:
            if identifier in names:
                queries.setdefault(names[identifier], []).append(query.text)

    messages: list[Message] = []
    for name in randomness.sample(sorted(queries), min(SKILLS_PER_CONVERSATION, len(queries))):
        for text in randomness.sample(queries[name], min(QUERIES_PER_SKILL, len(queries[name]))):
            messages.append(Message(text, name))
            messages.append(Message(randomness.choice(REPLIES)))
    return messages


def measure(shelf: Shelf, budget: int, conversations: Sequence[Sequence[Message]], choose: Choose) -> Outcome:
    outcome = Outcome()
    for messages in conversations:
        feed = Feed(shelf, lambda texts: sum(map(estimate, texts)), budget=budget, clock=lambda: 0.0)
        conversation = Conversation(shelf, budget, feed)
        for message in messages:
            take_turn(conversation, message, choose, outcome)
    return outcome


def take_turn(conversation: Conversation, message: Message, choose: Choose, outcome: Outcome) -> None:
    conversation.messages.append(message.text)
    shown = choose(conversation, message.text)
    outcome.turns += 1
    if conversation.section and shown.section != conversation.section:
        outcome.changes += 1
        outcome.lost += estimate(shown.section) + conversation.tokens
    conversation.section = shown.section
    conversation.tokens += shown.note_tokens + estimate(message.text) + ANSWER_TOKENS
    conversation.messages.append("answer " * ANSWER_TOKENS)
    outcome.added += shown.note_tokens

    if message.answer:
        outcome.queries += 1
        if message.answer in shown.described:
            outcome.described += 1
            if message.answer not in conversation.loaded:
                conversation.loaded.append(message.answer)
                conversation.tokens += estimate(conversation.shelf.instructions(message.answer))


if __name__ == "__main__":
    sys.exit(main())
