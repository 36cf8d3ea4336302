"""Measure completion at the prompt: CPU seconds a key, beside prompt_toolkit's own FuzzyCompleter.

Both complete the same texts in turn, key by key: names, words of descriptions, and the same with typos. The first key
after a reload, which prepares what the others use, has a row of its own.
"""

import random
import statistics
import time
from collections.abc import Callable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, FuzzyCompleter, WordCompleter
from prompt_toolkit.document import Document

from benchmarks.clock import best
from benchmarks.collection import skill_name, skill_text
from benchmarks.report import Row
from skillshelf import Catalog, MemorySource, Shelf
from skillshelf.slash import Command, Commands, skill_commands
from skillshelf_agent.terminal._prompt import SlashCompleter, rank_with_typos

_MOST = 0.005


def typed(names: Sequence[str]) -> list[list[str]]:
    """The texts that completion is asked about while somebody types: names, words, and both with typos."""
    some = [names[at] for at in range(0, len(names), max(1, len(names) // 12))]
    swapped = [name[:2] + name[3] + name[2] + name[4:] for name in some]
    dropped = [name[:3] + name[4:] for name in some]
    words = "kubernetes forecast invoice playwright summarize changelog".split()
    wrong = "kuberentes forcast invioce playwrigth sumarize chnagelog xyzzyq".split()
    return [
        [f"/skills:{text[:end]}" for text in texts for end in range(len(text) + 1)]
        for texts in (some, swapped + dropped, words, wrong)
    ]


def completer_of(catalog: Callable[[], Catalog]) -> SlashCompleter:
    commands: Commands[None] = Commands(rank_with_typos)
    commands.register("", [Command("help", "Show help.", _nothing), Command("skills", "List skills.", _nothing)])
    commands.register("skills ", [Command("reload", "Read all skills again.", _nothing)])
    commands.register("skills:", skill_commands(catalog, lambda host, name, arguments: None))
    return SlashCompleter(commands)


def peer_of(catalog: Catalog) -> Completer:
    descriptions = {name: skill.description for name, skill in catalog.items()}
    # Whole names: by default it completes what follows the last hyphen only.
    return FuzzyCompleter(WordCompleter(list(descriptions), meta_dict=descriptions), pattern=r"^[^\s]+")


def press(completer: Completer, text: str) -> float:
    """CPU seconds until the menu has all it shows: nothing here waits for anything."""
    document, event = Document(text), CompleteEvent(text_inserted=True)
    start = time.thread_time()
    list(completer.get_completions(document, event))
    return time.thread_time() - start


def first_keys(texts: dict[str, str], rounds: int) -> list[float]:
    """The first key each time that a reload has changed one skill."""
    source = MemorySource(texts)
    shelf = Shelf([source])
    completer = completer_of(lambda: shelf.catalog)
    took = []
    for number in range(rounds):
        for text in ("/skills:kub", "/skills:invioce", "/skills:xyzzyq"):
            changed = skill_name(number)
            source.put(changed, texts[changed].replace("description: ", f"description: {number} {text} "))
            shelf.reload()
            took.append(press(completer, text))
    return took


def measure(skills: int, rounds: int) -> list[Row]:
    """The slowest key of a hundred while somebody types, and the first key after a reload."""
    words = random.Random(7)
    names = [skill_name(number) for number in range(skills)]
    texts = {name: skill_text(name, words) for name in names}
    catalog = Shelf([MemorySource(texts)]).catalog
    ours, peer = completer_of(lambda: catalog), peer_of(catalog)
    keys = [key for group in typed(names) for key in group]
    mine, theirs = zip(*(_both(ours, peer, key, rounds) for key in keys), strict=True)
    return [
        Row(
            "completion: a key, 99th percentile", _slow(mine), against="FuzzyCompleter", other=_slow(theirs), most=_MOST
        ),
        Row("completion: the first key after a reload", statistics.median(first_keys(texts, 4 * rounds)), most=_MOST),
    ]


def _slow(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98]


def _both(ours: Completer, peer: Completer, key: str, rounds: int) -> list[float]:
    """Taking turns, the best of several rounds each: neighbours on the machine are no part of a key."""
    return best(rounds, lambda: press(ours, key), lambda: press(peer, key.removeprefix("/skills:")))


def _nothing(host: None, arguments: str) -> None:
    return None
