"""The completeness check for a package of code skills, as an assertion."""

from types import ModuleType

from skillshelf.lint import check_code_skills
from skillshelf.skills import Diagnostic


def check_package(package: str | ModuleType) -> None:
    """Check the skills of a package and their references. Raises an AssertionError that lists every problem."""
    problems = [note for note in check_code_skills(package).diagnostics if note.severity != "info"]
    if problems:
        raise AssertionError("\n".join(map(_as_line, problems)))


def _as_line(problem: Diagnostic) -> str:
    where = f"{problem.path}:{problem.line}" if problem.line else problem.path
    hint = f" ({problem.fix})" if problem.fix else ""
    return " ".join(f"{where}: {problem.code} {problem.message}{hint}".splitlines())
