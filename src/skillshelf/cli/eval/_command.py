"""`skillshelf eval`: whether skills are found, loaded and followed, and what they cost."""

import argparse
import os

from skillshelf.cli._output import Output, complain, positive
from skillshelf.errors import EvalError, MissingExtraError, ModelUnavailableError, SettingsError, SourceError

EXAMPLES = """
  skillshelf eval                                     every case below this folder
  skillshelf eval skills/pdf --repeat 5 --baseline none   is it better than no skill at all?
  skillshelf eval skills/pdf --baseline main          and than it was on that branch?
  skillshelf eval --record evals/recorded             keep what the model says
  skillshelf eval --replay evals/recorded --github    and play it back in CI, without a key
  skillshelf eval --resume RUN                        go on with a run that was interrupted
  skillshelf eval list                                the cases that are found
  skillshelf eval compare A B                         two runs, case by case
  skillshelf eval choose skills/pdf --descriptions new.yaml       which description is best, and how sure is that?
  skillshelf eval --engine postgresql://host/db --parallel 0      leave the work to workers,
  skillshelf eval worker --engine postgresql://host/db            on as many machines as you like

Cases run their own Python and commands, so that they need your approval: `skillshelf trust`, or --trust-workspace for
one run. `list` runs nothing. A worker does what the database says: give it a database that only you write to.
Exit codes: 0 passed, 1 missed, 2 wrong use, 3 nothing missed, but some trials could not be made.
"""
_ACTIONS = ("list", "compare", "choose", "worker")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="files of cases, skills or folders of skills; list, compare, choose or worker",
    )
    parser.add_argument("-k", dest="filter", metavar="TEXT", default="", help="only cases with this in name or tags")
    parser.add_argument("-m", "--model", metavar="PROVIDER:MODEL", help="the model for cases without a script")
    parser.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible server")
    parser.add_argument("--repeat", metavar="N", type=positive, default=1, help="try each case so often (1)")
    parser.add_argument("--baseline", metavar="WHAT", default="", help="compare with none, a folder or a git revision")
    parser.add_argument("--descriptions", metavar="FILE", default="", help="for choose: a YAML list of descriptions")
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--record", metavar="DIR", default="", help="keep what the model says")
    answers.add_argument("--replay", metavar="DIR", default="", help="play that back in place of the model")
    parser.add_argument("--parallel", metavar="N", type=_number, help="trials at once (4); 0 leaves all to workers")
    parser.add_argument("--rate", metavar="N", type=_rate, default=0, help="begin at most so many trials a minute")
    parser.add_argument("--timeout", metavar="SECONDS", type=positive, default=900, help="for one trial (900)")
    parser.add_argument("--engine", metavar="URL", default="", help="a PostgreSQL server that workers share")
    parser.add_argument("--resume", metavar="RUN", default="", help="go on with a run: its name, or its folder")
    parser.add_argument("--report", metavar="DIR", default="", help="where the run and its report are kept")
    parser.add_argument("--trust-workspace", action="store_true", help="run this folder's cases without review")
    parser.add_argument("--allow-unconfined", action="store_true", help="run commands even if nothing confines them")
    parser.add_argument("--junit", metavar="FILE", default="", help="write JUnit XML there too")
    parser.add_argument("--github", action="store_true", help="print annotations for a GitHub workflow")
    parser.add_argument("--update-golden", action="store_true", help="store what this run gave as what is right")


def run(args: argparse.Namespace, out: Output) -> int:
    action = args.paths[0] if args.paths and args.paths[0] in _ACTIONS else ""
    if action:
        del args.paths[0]
    try:
        return _do(action, args, out)
    except (EvalError, ModelUnavailableError, SettingsError, SourceError) as error:
        complain(f"skillshelf: {error}")
        return 2


def _do(action: str, args: argparse.Namespace, out: Output) -> int:
    if args.engine and not args.engine.startswith(("postgresql://", "postgres://")):
        raise EvalError("--engine takes the address of a PostgreSQL server", "It looks like this: postgresql://host/db")
    # pydantic-ai greets whoever runs it in a terminal; this terminal is ours.
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
    try:
        import pydantic_ai_harness  # noqa: F401
    except ImportError:
        raise MissingExtraError("skillshelf eval", "evals") from None
    if action == "list":
        from skillshelf.cli.eval._cases import list_cases

        return list_cases(args, out)
    if action == "compare":
        from skillshelf.cli.eval._compare import compare_runs

        return compare_runs(args, out)
    if action == "worker":
        from skillshelf.cli.eval._worker import run_worker

        return run_worker(args, out)
    from skillshelf.cli.eval._going import run_evals
    from skillshelf.cli.eval._request import resume

    if args.descriptions and action != "choose":
        raise EvalError("--descriptions is for choose", "skillshelf eval choose SKILL --descriptions FILE")
    if args.resume:
        resume(args)
    if action == "choose" or args.descriptions:
        from skillshelf.cli.eval._choose import choose

        return choose(args, out)
    return run_evals(args, out)


def _number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _rate(text: str) -> int:
    return positive(text.removesuffix("/min"))


# What argparse calls them where a value is wrong.
_number.__name__ = "number of trials"
_rate.__name__ = "number of trials a minute"
