"""`skillshelf eval`: its actions, their options, and the actions that need little more than a call."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillshelf.cli import Output, Parser, add_shared_options, complain, count_or_zero, positive_number, shown_path
from skillshelf.errors import EvalError
from skillshelf.files import replace_file
from skillshelf.text import count_noun
from skillshelf.text.tables import Table

if TYPE_CHECKING:
    from skillshelf_evals import Run
    from skillshelf_evals.report import Gates

EXAMPLES = """
  skillshelf eval                                          run every case below this folder
  skillshelf eval skills/pdf --repeat 5 --baseline none    is the skill better than none at all?
  skillshelf eval skills/pdf --baseline main               is it better than on that branch?
  skillshelf eval --record evals/recorded                  store the model's answers
  skillshelf eval --replay evals/recorded --github         replay them in CI, without an API key
  skillshelf eval --repeat 5 --fail-under 80%              fail unless the pass rate is surely above that
  skillshelf eval --repeat 5 --gate worse-than RUN         fail if it is worse than that run beyond chance
  skillshelf eval evals/triggers.json --skill pdf          run a set that is stored elsewhere
  skillshelf eval --resume RUN                             continue a run that was interrupted
  skillshelf eval list                                     list the cases
  skillshelf eval compare A B                              compare two runs case by case
  skillshelf eval view reports                             list the runs in a folder
  skillshelf eval judge-check RUN --labels labels.json         how often the judge agrees with you
  skillshelf eval --engine postgresql://host/db --parallel 0   leave the work to workers
  skillshelf eval worker --engine postgresql://host/db         on as many machines as you like

`skillshelf eval PATH…` is short for `skillshelf eval run PATH…`, and `skillshelf eval run --help` lists the options.

Cases run their own Python and commands, so they need your approval: review them with `skillshelf trust`, or pass
--trust-workspace for one run. `list` runs nothing. A worker executes whatever its database contains: give it a database
that only you can write to.

Exit codes: 0 no gate failed, 1 a gate failed or a scripted or replayed case missed, 2 wrong use, 3 some trials could
not be completed, or the run had to stop and can be resumed. Misses of live cases fail a run only through --fail-under
and --gate.
"""
_WORSE_THAN = "worse-than"
_NO_NEW_FAILURES = "no-new-failures"
_ANSWERS_FILE = "judge-check.sqlite"
"""In the folder of a run: the answers of other judges."""
ACTIONS = {
    "run": "run cases (the default)",
    "list": "list the cases without running anything",
    "compare": "compare two runs case by case",
    "view": "list the runs in a folder, each compared with the one before",
    "judge-check": "measure the judge of a run against your own labels",
    "worker": "run trials for other machines until interrupted",
}


def add_arguments(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    parsers: dict[str, Parser] = {}
    for name, summary in ACTIONS.items():
        parsers[name] = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")

    _add_run_arguments(parsers["run"])
    _add_list_arguments(parsers["list"])
    _add_compare_arguments(parsers["compare"])
    _add_view_arguments(parsers["view"])
    _add_judge_check_arguments(parsers["judge-check"])
    _add_worker_arguments(parsers["worker"])
    for action in parsers.values():
        add_shared_options(action)
    parser.set_default_action("run", parsers)


def _add_run_arguments(parser: Parser) -> None:
    _add_case_arguments(parser)
    _add_trial_options(parser)
    parser.add_argument(
        "--baseline",
        metavar="WHAT",
        default="",
        help="compare with `none` (no skill), with the skill in a folder, or with a git revision",
    )
    parser.add_argument("--github", action="store_true", help="print annotations for a GitHub workflow")
    parser.add_argument(
        "--fail-under",
        metavar="RATE",
        type=_rate,
        help="exit 1 unless the lower end of the pass rate's interval reaches this, such as 90%%",
    )
    parser.add_argument(
        "--gate",
        metavar="GATE",
        type=_run_gate,
        action="append",
        default=[],
        help="`worse-than RUN`: exit 1 if worse than that run beyond chance; `no-new-failures`: exit 1 if a case "
        "misses, or with worse-than, if one misses that passed there; repeatable",
    )
    parser.join_next_word("--gate", _WORSE_THAN)
    parser.add_argument(
        "--keep-going", action="store_true", help="run the other cases if some cannot be read; exits 3 or 1, not 0"
    )


def _add_list_arguments(parser: Parser) -> None:
    _add_case_arguments(parser)


def _add_compare_arguments(parser: Parser) -> None:
    runs = "a run: its name, its folder or its run.json"
    parser.add_argument("before", metavar="A", help=runs)
    parser.add_argument("after", metavar="B", help=runs)
    parser.add_argument(
        "--gate",
        choices=(_NO_NEW_FAILURES,),
        help="also exit 1 if a case that always passed in A misses in B, even if by chance",
    )


def _add_view_arguments(parser: Parser) -> None:
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", default="", help="a folder with runs (default: the runs without --report)"
    )


def _add_judge_check_arguments(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run with `judge` checks: its name, its folder or its run.json")
    parser.add_argument("--labels", metavar="FILE", default="", help="your labels of some of its sentences")
    parser.add_argument("--template", metavar="FILE", default="", help="write a file of labels to fill in")
    parser.add_argument(
        "--judge", metavar="PROVIDER:MODEL", help="ask this model about the same trials, instead of the run's judge"
    )
    parser.add_argument("--base-url", metavar="URL", help="the address of an OpenAI-compatible server")


def _add_worker_arguments(parser: Parser) -> None:
    _add_engine(parser)
    _add_allow_unconfined(parser)


def _add_case_arguments(parser: Parser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="*", help="case files, skills, or folders of skills")
    parser.add_argument(
        "--skill",
        metavar="NAME|PATH",
        default="",
        help="the skill that files outside of a skill's evals/ are about",
    )
    parser.add_argument(
        "-k", dest="filter", metavar="TEXT", default="", help="only cases with this text in their name, query or tags"
    )


def _add_trial_options(parser: Parser) -> None:
    """Add the options of every action that makes trials."""
    parser.add_argument("-m", "--model", metavar="PROVIDER:MODEL", help="the model for cases without a script")
    parser.add_argument(
        "--judge",
        metavar="PROVIDER:MODEL",
        help="the model for `judge` checks (default: the configured model, even if --model names another)",
    )
    parser.add_argument("--base-url", metavar="URL", help="the address of an OpenAI-compatible server")
    parser.add_argument(
        "--repeat", metavar="N", type=positive_number, default=1, help="run each live case this many times (default: 1)"
    )
    answers = parser.add_mutually_exclusive_group()
    for option, use in (
        ("--record", "store the model's answers in this folder"),
        ("--replay", "use stored answers instead of the model"),
    ):
        parser.note_argument(answers.add_argument(option, metavar="DIR", default="", help=use))
    parser.add_argument(
        "--parallel",
        metavar="N",
        type=count_or_zero,
        help="trials to run at once (default: 4); 0 leaves all of them to workers",
    )
    parser.add_argument(
        "--rate", metavar="N", type=positive_number, default=0, help="start at most this many trials a minute"
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=positive_number, default=900, help="time limit of one trial (default: 900)"
    )
    parser.add_argument(
        "--max-cost", metavar="USD", type=_dollars, default=0.0, help="stop when the run has cost this much"
    )
    parser.add_argument(
        "--max-tokens", metavar="N", type=positive_number, default=0, help="stop when the run has used this many tokens"
    )
    parser.add_argument(
        "--price", metavar="IN/OUT", type=_price, default=None, help="dollars for a million tokens of an unknown model"
    )
    _add_engine(parser)
    parser.add_argument("--resume", metavar="RUN", default="", help="continue a run, given by its name or folder")
    parser.add_argument("--report", metavar="DIR", default="", help="the folder for the run and its report")
    parser.add_argument("--trust-workspace", action="store_true", help="run this folder's cases without review")
    _add_allow_unconfined(parser)


def _add_engine(parser: Parser) -> None:
    parser.add_argument(
        "--engine", metavar="URL", type=_postgresql_url, default="", help="a PostgreSQL server shared with workers"
    )


def _add_allow_unconfined(parser: Parser) -> None:
    parser.add_argument("--allow-unconfined", action="store_true", help="run commands even if no sandbox is available")


def _rate(text: str) -> float:
    """Parse a rate: `90%` or `0.9`."""
    try:
        rate = float(text.removesuffix("%"))
    except ValueError:
        rate = -1.0
    if text.endswith("%"):
        rate /= 100
    if not 0 <= rate <= 1:
        raise argparse.ArgumentTypeError(f"give a rate such as 90% or 0.9, not {text!r}")
    return rate


def _run_gate(text: str) -> str:
    if text == _NO_NEW_FAILURES or text.startswith(f"{_WORSE_THAN} "):
        return text
    if text == _WORSE_THAN:
        raise argparse.ArgumentTypeError("worse-than needs a run: its name, its folder or its run.json")
    raise argparse.ArgumentTypeError(f"give `{_WORSE_THAN} RUN` or `{_NO_NEW_FAILURES}`, not {text!r}")


def _dollars(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount in dollars, such as 2.50")
    return amount


def _price(text: str) -> list[float]:
    try:
        prices = [float(part.removeprefix("$")) for part in text.split("/")]
    except ValueError:
        prices = []
    if len(prices) != 2 or not all(0 <= price < float("inf") for price in prices):
        raise argparse.ArgumentTypeError("give the prices of input and output, in dollars for a million tokens: 0.25/2")
    return prices


def _postgresql_url(text: str) -> str:
    # argparse also converts the default, which is empty.
    if text and not text.startswith(("postgresql://", "postgres://")):
        raise argparse.ArgumentTypeError("give the address of a PostgreSQL server, such as postgresql://host/db")
    return text


def run(args: argparse.Namespace, out: Output) -> int:
    if args.action == "list":
        from skillshelf_evals.cli._cases import list_cases

        return list_cases(args, out)
    if args.action == "compare":
        return _compare_runs(args, out)
    if args.action == "view":
        return _view_runs(args, out)
    if args.action == "judge-check":
        return _check_judge(args, out)
    if args.action == "worker":
        return _run_worker(args)

    from skillshelf_evals.cli._resume import restore_request
    from skillshelf_evals.cli._run import run_cases

    if args.resume:
        restore_request(args)
    return run_cases(args, _make_gates(args), out)


def _compare_runs(args: argparse.Namespace, out: Output) -> int:
    from skillshelf_evals.report import compare

    comparison = compare(_read_run(args.before), _read_run(args.after))
    code = comparison.exit_code(no_new_failures=args.gate == _NO_NEW_FAILURES)
    if args.json:
        out.print_json({**comparison.as_json(), "exit_code": code})
    else:
        _print_tables(comparison.tables, out)
    return code


def _view_runs(args: argparse.Namespace, out: Output) -> int:
    from skillshelf_evals.report import find_runs_folder, read_history

    history = read_history(os.path.abspath(args.folder or find_runs_folder()))
    if not history.records and not history.unreadable:
        raise EvalError(f"There is no run in {history.folder}", "Give the folder that --report named, or one above it")
    if args.json:
        out.print_json(history.as_json())
    else:
        _print_tables(history.tables, out)
    return 0


def _check_judge(args: argparse.Namespace, out: Output) -> int:
    from skillshelf_agent import load_settings, resolve
    from skillshelf_evals.engine import Options
    from skillshelf_evals.report import check_judge

    if bool(args.labels) == bool(args.template):
        raise EvalError(
            "judge-check takes a file of labels, or writes one to fill in",
            "skillshelf eval judge-check RUN --template FILE, and then --labels FILE",
        )
    run = _read_run(args.run)
    if args.template:
        return _write_template(run, args.template)

    judge = ""
    options = None
    if args.judge:
        settings = load_settings(vars(args) | {"model": args.judge})
        judge = resolve(settings).name
        options = Options(settings)
        complain(f"skillshelf: asking {judge} about the same sentences.")

    folder = _find_run(args.run)
    if not os.path.isdir(folder):
        folder = os.path.dirname(os.path.abspath(folder))
    report = check_judge(run, args.labels, judge, options, os.path.join(folder, _ANSWERS_FILE))
    if args.json:
        out.print_json(report.as_json())
        return 0
    _print_tables(report.tables, out)
    for line in report.lines:
        out.print_styled(line)
    return 0


def _write_template(run: "Run", path: str) -> int:
    """Write a file to fill in, and a text to read beside it.

    A file that exists may hold an hour of work, so it is never overwritten.
    """
    from skillshelf_evals.report import make_label_template

    template = make_label_template(run)
    texts = {path: template.labels, f"{path}.txt": template.text}
    for name in texts:
        if os.path.exists(name):
            raise EvalError(f"--template: {name} exists", "Choose another name, or remove it")
    try:
        for name, text in texts.items():
            replace_file(name, text.encode("utf-8", "backslashreplace"), 0o666)
    except OSError as error:
        raise EvalError(f"--template: {path} cannot be written: {error.strerror}") from None
    complain(
        f"skillshelf: {count_noun(template.sentences, 'sentence')} in random order. Read {shown_path(path)}.txt from "
        f"the top, and set `holds` in {shown_path(path)} to true or false. The rest may stay null."
    )
    return 0


def _print_tables(tables: Sequence[Table], out: Output) -> None:
    from skillshelf_evals.report import render_plain, render_rich

    if out.is_terminal:
        out.print_rich(render_rich(tables))
    else:
        out.write(render_plain(tables))


def _make_gates(args: argparse.Namespace) -> "Gates":
    """Return the gates of a run. Raises EvalError if the run to compare with cannot be read."""
    from skillshelf_evals.report import Gates

    named = [gate.removeprefix(f"{_WORSE_THAN} ") for gate in args.gate if gate.startswith(_WORSE_THAN)]
    if len(named) > 1:
        raise EvalError("--gate worse-than is given twice", "Compare with one run")
    return Gates(
        fail_under=args.fail_under,
        worse_than=_read_run(named[0]) if named else None,
        no_new_failures=_NO_NEW_FAILURES in args.gate,
    )


def _read_run(name_or_path: str) -> "Run":
    from skillshelf_evals.report import RunUnreadableError, read_run

    try:
        return read_run(_find_run(name_or_path))
    except RunUnreadableError as error:
        raise EvalError(str(error).rstrip(".")) from error


def _find_run(name_or_path: str) -> str:
    """Return the path of a run's folder, or of its run.json if that is given. Raises EvalError."""
    from skillshelf_evals.report import find_run_folder

    return name_or_path if os.path.exists(name_or_path) else find_run_folder(name_or_path)


def _run_worker(args: argparse.Namespace) -> int:
    from skillshelf_evals.cli._consent import refuse_unconfined_worker
    from skillshelf_evals.engine import run_worker

    if not args.engine:
        raise EvalError("a worker needs --engine", "skillshelf eval worker --engine postgresql://host/db")
    refuse_unconfined_worker(args)
    asyncio.run(run_worker(args.engine, lambda text: complain(f"skillshelf: {text}")))
    return 0
