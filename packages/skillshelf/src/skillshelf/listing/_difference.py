"""The difference between two listings, in words for a model that knows the first one."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillshelf.listing._markup import Entry, escape_name, render

if TYPE_CHECKING:
    from skillshelf.listing._section import Listing


@dataclass(slots=True)
class _ListingDifference:
    """The skills that a new listing shows differently."""

    added: list[Entry] = field(default_factory=list)
    changed: list[Entry] = field(default_factory=list)
    described: list[Entry] = field(default_factory=list)
    """Skills that have not changed, of which the model has seen the name at most."""
    removed: list[str] = field(default_factory=list)
    has_other_skills: bool = False
    """True if one of the listings has a skill that the other neither names nor leaves out."""


def describe_change(known: "Listing", new: "Listing") -> str:
    """Return a note for a conversation that knows a listing: the difference, or all of `new` if that is shorter.

    It is empty if the new listing only shows less of skills that are still there, or longer descriptions.
    """
    if not new.text:
        return "No skills are available any more." if known.text else ""

    difference = _compare(known, new)
    note = " ".join(_write_sentences(difference))
    # A model that was shown every skill in full does not know yet how to load one.
    if note and new.introduction != known.introduction:
        note += f"\n{new.introduction}"
    entries = [*difference.added, *difference.changed, *difference.described]
    if entries:
        note += f"\n{render(entries)}"
    return note if len(note) < len(new.text) else new.text


def merge_listings(known: "Listing", new: "Listing") -> "Listing":
    """Return the new listing with everything that is known of its skills already."""
    before = {entry.name: entry for entry in known.entries}
    entries = []
    for entry in new.entries:
        seen = before.get(entry.name)
        if seen is not None and _shows_as_much(seen, entry):
            entries.append(seen)
        else:
            entries.append(entry)
    left_out = [before[name] for name in _list_left_out(new) if name in before]
    return replace(new, entries=(*entries, *left_out))


def _compare(known: "Listing", new: "Listing") -> _ListingDifference:
    before = {entry.name: entry for entry in known.entries}
    after = {entry.name: entry for entry in new.entries}
    all_before = {*before, *_list_left_out(known)}
    all_after = {*after, *_list_left_out(new)}

    difference = _ListingDifference(has_other_skills=all_before != all_after)
    difference.removed = [name for name in before if name not in all_after]
    for name, entry in after.items():
        # The model has seen nothing but the name, if that, of a skill that was left out.
        seen = before.get(name, Entry(name, ""))
        if name not in all_before:
            difference.added.append(entry)
        elif _shows_as_much(seen, entry):
            continue
        elif not _shows_as_much(entry, seen):
            difference.changed.append(entry)
        # A few more words of many descriptions are not worth a note.
        elif seen.is_bare:
            difference.described.append(entry)
    return difference


def _write_sentences(difference: _ListingDifference) -> list[str]:
    sentences = []
    if difference.added:
        sentences.append(f"Added: {_join_names(entry.name for entry in difference.added)}.")
    if difference.changed:
        sentences.append(f"Changed: {_join_names(entry.name for entry in difference.changed)}.")
    if difference.removed:
        sentences.append(f"Removed: {_join_names(difference.removed)}.")
    if not sentences and difference.has_other_skills:
        sentences.append("Those not named above: `search_skills(query)` finds them.")
    if sentences:
        sentences.insert(0, "The available skills changed.")

    if difference.described:
        sentences.append(f"These may fit the message: {_join_names(entry.name for entry in difference.described)}.")
    return sentences


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(map(escape_name, names))


def _list_left_out(listing: "Listing") -> list[str]:
    """Return the names of the skills that a listing leaves out."""
    return [cut.name for cut in listing.shortened if cut.what == "omitted"]


def _shows_as_much(entry: Entry, other: Entry) -> bool:
    """Return True if an entry shows everything that another entry of the same skill shows."""
    if other.is_bare:
        return True
    has_description = entry.description.startswith(other.description.removesuffix("…"))
    has_references = set(other.references) <= set(entry.references)
    has_same_count = _count_references(other) == _count_references(entry)
    return has_description and has_references and has_same_count and other.instructions == entry.instructions


def _count_references(entry: Entry) -> int:
    return len(entry.references) + entry.more
