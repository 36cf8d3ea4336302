"""How far a run is, while it is going."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from skillshelf.cli._output import Output
from skillshelf.evals import Outcome

_COUNTED = (("passed", "green"), ("missed", "red"), ("error", "yellow"))


@contextmanager
def progress(out: Output, total: int, *, shown: bool) -> Iterator[Callable[[Outcome], None]]:
    """What is to be told of each outcome. A bar on a terminal; nothing for a pipe."""
    if not shown:
        yield lambda outcome: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[counts]}"), console=out.console, transient=True) as bar:
        task = bar.add_task("", total=total, counts="")
        counts: Counter[str] = Counter()

        def told(outcome: Outcome) -> None:
            counts[outcome.status] += 1
            said = "  ".join(f"[{colour}]{counts[kind]} {kind}[/]" for kind, colour in _COUNTED if counts[kind])
            bar.update(task, advance=1, counts=said)

        yield told
