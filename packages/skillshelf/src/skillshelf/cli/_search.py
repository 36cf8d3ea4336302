"""`skillshelf search`: the skills that fit a task."""

import argparse
import shlex
from collections.abc import Sequence

from skillshelf.cli._matches import match_as_json, note_words_alone, print_score
from skillshelf.cli._output import Output, complain
from skillshelf.cli._parsers import Parser, positive_number
from skillshelf.cli._workspace import open_shelf, prepare_search
from skillshelf.explain import explain_request
from skillshelf.search import WEAK_SCORE, Match, is_similarity_installed, show_score, spell_words
from skillshelf.shelf import Shelf
from skillshelf.text import clean_line, list_names, truncate

EXAMPLES = """
  skillshelf search fill in a pdf form
  skillshelf search --explain sign a contract   which words matched, where, and how much each added
  skillshelf search --limit 1 --json deploy
"""
_MAX_COPIES = 5
_MAX_ECHOED = 200
"""Characters of the query that a message repeats."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="the task in a few words")
    parser.add_argument(
        "--limit", metavar="N", type=positive_number, default=5, help="show at most N skills (default: 5)"
    )
    parser.add_argument(
        "--explain", action="store_true", help="show which words matched in which field, and how much each added"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    query = " ".join(args.query)
    shelf = open_shelf(args)
    prepare_search(shelf)
    ranked = shelf.search(query, args.limit + 1)  # one more than wanted: the runner-up of the last match
    matches = ranked[: args.limit]

    if args.json:
        _print_json(query, matches, out)
    else:
        _print_matches(query, matches, ranked, out, explain=args.explain)
        is_explained = _report_unavailable(shelf, query, ranked)
        if not is_explained and (not matches or matches[0].is_weak):
            _report_weakness(query, matches)
    if not args.json and (args.explain or out.is_terminal):
        note_words_alone(out)
    return 0 if matches and not matches[0].is_weak else 1


def _print_json(query: str, matches: Sequence[Match], out: Output) -> None:
    answer = {
        "query": query,
        "matches": [match_as_json(match, query) for match in matches],
        "weak_below": WEAK_SCORE,
        "with_similarity": is_similarity_installed(),
    }
    out.print_json(answer)


def _print_matches(
    query: str, matches: Sequence[Match], ranked: Sequence[Match], out: Output, *, explain: bool
) -> None:
    shown = [match for match in matches if not match.is_weak] or matches
    for rank in range(1, len(shown) + 1):
        if rank > 1 and (explain or out.is_terminal):
            out.print()
        _print_match(rank, ranked, query, out, explain=explain)
    weak = [f"{clean_line(match.name)} {show_score(match.score)}" for match in matches[len(shown) :]]
    if weak:
        out.print_styled(f"weak: {', '.join(weak)}", "dim", indent=3)


def _print_match(rank: int, ranked: Sequence[Match], query: str, out: Output, *, explain: bool) -> None:
    match = ranked[rank - 1]
    skill = match.descriptor
    out.print_styled(f"{rank}. {clean_line(match.name)}  ({skill.source})", "bold")
    description = clean_line(skill.description)
    if out.is_terminal:
        from skillshelf.text.rendering import truncate_cells

        description = truncate_cells(description, 2 * (out.console.width - 8))
    out.print_styled(description, indent=3)
    if explain:
        out.print_styled(_compare_with_next(match, ranked[rank:]), "cyan", indent=3)
        print_score(match, query, out)
    else:
        score = f"{show_score(match.score)}{' (weak)' if match.is_weak else ''}"
        out.print_styled(f"{score}  {clean_line(', '.join(match.why))}", "dim", indent=3)
    if match.copies:
        copies = list_names(match.copies, _MAX_COPIES)
        out.print_styled(f"copies, not listed: {clean_line(copies)}", "dim", indent=3)


def _compare_with_next(match: Match, following: Sequence[Match]) -> str:
    text = f"score {show_score(match.score)}"
    if following:
        text += f", ahead of {clean_line(following[0].name)} with {show_score(following[0].score)}"
    elif match.next_score:
        text += f", ahead of the next with {match.next_score:.2f}"
    return text


def _report_unavailable(shelf: Shelf, query: str, ranked: Sequence[Match]) -> bool:
    """Say why the skill that the query names can't come up. Return False if it can, or if the query names none."""
    name = "-".join(query.split())
    if any(match.descriptor.name == name for match in ranked):
        return False
    explanation = explain_request(shelf, name, query)
    reason = explanation.reasons[0] if explanation.reasons else None
    if reason is None or reason.code == "missing" or explanation.is_usable:
        return False
    complain(f"The skill {name!r} doesn't come up: {reason}.")
    return True


def _report_weakness(query: str, matches: Sequence[Match]) -> None:
    """Say that no skill was found, or that even the best one is a weak match."""
    echoed = truncate(query, _MAX_ECHOED)
    if not spell_words(query):
        complain(f"There is no word to search for in {echoed!r}: say what the task is about.")
        return
    if not matches:
        complain(f"No skill fits {echoed!r}: none has any of its words. `skillshelf list` shows all skills.")
        return
    best = matches[0]
    complain(
        f"Perhaps no skill fits {echoed!r}: all matches are weak (below {WEAK_SCORE:.2f}).\n"
        f"If {clean_line(best.name)} should fit, use such words in its description: "
        f"`skillshelf why {shlex.quote(best.name)} --for {shlex.quote(echoed)}` says more. "
        f"`skillshelf list` shows all skills."
    )
