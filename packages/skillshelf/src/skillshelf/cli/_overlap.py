"""`skillshelf check --overlap`: skills whose descriptions compete for the same requests."""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf.cli._errors import CommandError
from skillshelf.cli._matches import note_words_alone
from skillshelf.cli._output import Output
from skillshelf.cli._workspace import all_candidates, open_shelf, prepare_search
from skillshelf.search import Overlap, OverlapReport, find_overlaps, is_similarity_installed, list_phrases
from skillshelf.shelf import Shelf
from skillshelf.skills import Candidate
from skillshelf.sources import DirectorySource
from skillshelf.sources.entry_points import load_extension
from skillshelf.sources.workspace import relative
from skillshelf.text import clean_line, count_noun
from skillshelf.text.tables import Cell, Column

_MAX_PAIRS = 10
"""Pairs that are printed. JSON has all of them."""
_MAX_PHRASES = 5
"""Phrases of a pair that are printed. JSON has all of them."""
_EVALS_FOLDER = "evals"
_ORIGINS = {"quoted": "quoted request", "sentence": "sentence", "eval": "eval case"}


def check_overlap(args: argparse.Namespace, out: Output) -> int:
    """Print the pairs of skills that compete: all of the shelf, or those with the skills at the given paths."""
    shelf = open_shelf(args)
    before: Shelf | None = None
    is_draft = False
    only: list[str] = []
    notes: list[str] = []
    if args.paths:
        extended, added = _add_skills(shelf, args)
        is_draft = extended is not shelf
        if is_draft:
            before = shelf
        elif len(added) == 1:
            before = _open_shelf_without(added[0], args)
        shelf = extended
        only = [shelf.catalog.reach(candidate) for candidate in added]
        notes += _note_faults(shelf, added)
    queries = _read_eval_queries(shelf, notes)
    prepare_search(shelf)
    report = find_overlaps(shelf, only=only, before=before, queries=queries)

    shown = report.overlaps[:_MAX_PAIRS]
    if args.json:
        out.print_json(
            {
                "skill_count": report.skills,
                "phrase_counts": dict(report.phrases),
                "overlaps": [_overlap_as_json(overlap) for overlap in report.overlaps],
                "with_similarity": is_similarity_installed(),
                "notes": notes,
            }
        )
        return 0

    _print_summary(report, only, out)
    for number, overlap in enumerate(shown, 1):
        out.print()
        _print_overlap(number, overlap, out, is_draft=is_draft)
    out.print()
    if len(report.overlaps) > len(shown):
        hidden = count_noun(len(report.overlaps) - len(shown), "more pair")
        out.print_styled(f"{hidden}: --json has all.", "dim")
    out.print_styled(_describe_phrases(report), "dim")
    for note in notes:
        out.print_styled(clean_line(f"Note: {note}"), "yellow")
    note_words_alone(out)
    return 0


# --- the skills and their phrases ---


def _add_skills(shelf: Shelf, args: argparse.Namespace) -> tuple[Shelf, list[Candidate]]:
    """Return a shelf that has the skills at the given paths, and these skills. Raises CommandError."""
    folders = [_find_folder(path) for path in args.paths]
    # Last, so that the skills on the shelf keep their names.
    # Without a cache, its index stays in memory: nobody searches the shelf with these drafts again.
    drafts = [
        DirectorySource(folder, "new", cache=False)
        for folder in folders
        if os.path.isdir(folder) and not _find_below(shelf, folder)
    ]
    if drafts:
        shelf = open_shelf(args, further=drafts)

    added: list[Candidate] = []
    for path, folder in zip(args.paths, folders, strict=True):
        below = _find_below(shelf, folder)
        if not below:
            raise CommandError(
                f"There is no skill at {path!r}.",
                "Give the folder of a skill, or its SKILL.md. `skillshelf check PATH` says what is wrong with it.",
            )
        added += below
    return shelf, added


def _find_folder(path: str) -> str:
    folder = os.path.realpath(path)
    if os.path.isfile(folder):
        return os.path.dirname(folder)
    return folder


def _open_shelf_without(candidate: Candidate, args: argparse.Namespace) -> Shelf:
    """Return the shelf as it would be without a skill."""
    skill = candidate.descriptor
    # With a source that has no cache, the index stays in memory: nobody searches this shelf again.
    uncached = DirectorySource(os.path.dirname(skill.location), "removed", cache=False)
    return open_shelf(args, further=[uncached], without=[skill.name])


def _find_below(shelf: Shelf, folder: str) -> list[Candidate]:
    prefix = folder.rstrip("/") + "/"
    return [each for each in all_candidates(shelf.catalog) if each.descriptor.location.startswith(prefix)]


def _note_faults(shelf: Shelf, added: Sequence[Candidate]) -> list[str]:
    """Return a note for each skill that the model would not see, or whose description says nothing."""
    notes: list[str] = []
    for candidate in added:
        skill = candidate.descriptor
        first = shelf.catalog.find(skill.name)
        if skill.disclosure == "manual":
            notes.append(f"{skill.name} competes with no other skill: its disclosure is manual, so no model sees it")
        elif first != candidate:
            notes.append(
                f"{relative(first.descriptor.location)} has the name {skill.name!r} already, so the listing would not "
                "show this one: rename it"
            )
        elif not list_phrases(skill):
            notes.append(f"the description of {skill.name} says too little to search for: say when to use the skill")
    return notes


def _read_eval_queries(shelf: Shelf, notes: list[str]) -> Mapping[str, Sequence[str]]:
    """Return the queries of eval cases that should lead to a skill, by the name that reaches it."""
    folders: dict[str, str] = {}
    for candidate in all_candidates(shelf.catalog):
        folder = os.path.dirname(candidate.descriptor.location)
        if os.path.isabs(folder) and os.path.isdir(f"{folder}/{_EVALS_FOLDER}"):
            folders[folder] = shelf.catalog.reach(candidate)
    if not folders:
        return {}
    find_queries = load_extension("skillshelf.evals", "find_queries")
    if find_queries is None:
        notes.append("the queries of eval cases were not read: pip install 'skillshelf[evals]'")
        return {}

    return {name: find_queries(folder) for folder, name in folders.items()}


# --- output ---


def _print_summary(report: OverlapReport, only: Sequence[str], out: Output) -> None:
    subject = ", ".join(map(clean_line, only[:3])) or "the skills on the shelf"
    if not report.overlaps:
        out.print_styled(f"No overlap: {subject} can be told apart from the others by every phrase.", "bold")
        return
    pairs = count_noun(len(report.overlaps), "pair")
    verb = "competes" if len(report.overlaps) == 1 else "compete"
    out.print_styled(f"{pairs} of skills {verb} for the same requests, worst first.", "bold")


def _print_overlap(number: int, overlap: Overlap, out: Output, *, is_draft: bool) -> None:
    out.print_styled(f"{number}. {clean_line(_headline(overlap, is_draft=is_draft))}", "bold")
    columns = [
        Column("phrase of"),
        Column("own score", right=True),
        Column("other's", right=True),
        Column("from", style="dim"),
        Column("phrase"),
    ]
    rows: list[list[str | Cell]] = []
    for contested in overlap.phrases[:_MAX_PHRASES]:
        style = "red" if contested.is_taken else "yellow"
        rows.append(
            [
                contested.owner,
                f"{contested.owner_score:.2f}",
                Cell(f"{contested.rival_score:.2f}", style),
                _ORIGINS[contested.phrase.origin],
                contested.phrase.text,
            ]
        )
    if rows:
        out.print_table(columns, rows, indent=3)
    more = len(overlap.phrases) - len(rows)
    if more:
        out.print_styled(f"and {count_noun(more, 'more phrase')}", "dim", indent=3)
    out.print_styled(clean_line(overlap.advice), "cyan", indent=3)


def _headline(overlap: Overlap, *, is_draft: bool) -> str:
    if overlap.are_copies:
        return f"{overlap.first} and {overlap.second} are copies"
    parts: list[str] = []
    for loser, winner in ((overlap.first, overlap.second), (overlap.second, overlap.first)):
        lost = sum(contested.owner == loser for contested in overlap.taken)
        if lost:
            parts.append(f"{winner} takes {count_noun(lost, 'phrase')} from {loser}")
        answered = sum(each.is_new and each.owner == loser for each in overlap.phrases)
        if answered and is_draft:
            parts.append(f"{loser} would take {count_noun(answered, 'phrase')} from {winner}")
        elif answered:
            parts.append(f"without {loser}, {winner} would answer {count_noun(answered, 'phrase')} of it")
    if not parts:
        return f"{overlap.first} and {overlap.second} are hard to tell apart"
    return "; ".join(parts)


def _describe_phrases(report: OverlapReport) -> str:
    tried = [count_noun(count, _ORIGINS[origin]) for origin, count in report.phrases.items() if count]
    return f"Searched for the phrases of {count_noun(report.skills, 'skill')}: {', '.join(tried) or 'none'}."


def _overlap_as_json(overlap: Overlap) -> dict[str, Any]:
    return {
        "names": [overlap.first, overlap.second],
        "are_copies": overlap.are_copies,
        "advice_text": overlap.advice,
        "phrases": [
            {
                "text": contested.phrase.text,
                "origin": contested.phrase.origin,
                "owner": contested.owner,
                "rival": contested.rival,
                "owner_score": contested.owner_score,
                "rival_score": contested.rival_score,
                "taken": contested.is_taken,
                "new": contested.is_new,
                "shared_words": list(contested.shared_words),
            }
            for contested in overlap.phrases
        ],
    }
