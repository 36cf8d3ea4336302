"""`skillshelf tree`: what came from where, pinned to what, approved or not, edited or not."""

import argparse

from skillshelf.cli._installed import add_user_option, count_states, find_installation, read_pinned, status_as_json
from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.registry import SkillStatus, compare, find_other_origins, read_lock, show_origin
from skillshelf.text.tables import Column
from skillshelf.trust import Trust

EXAMPLES = """
  skillshelf tree                       the installed skills of the workspace
  skillshelf tree --user                your own in ~/.agents/skills
"""
_COLUMNS = (Column("name", style="bold"), Column("pinned"), Column("state", style="cyan"))
_APPROVED = Column("approved")
_FROM = Column("from")  # the last one, because a narrow terminal cuts it


def add_arguments(parser: Parser) -> None:
    add_user_option(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    installation = find_installation(args)
    others = find_other_origins(installation, read_lock(installation.lock_path))
    lock = read_lock(installation.lock_path) if others else read_pinned(installation)
    statuses = compare(installation, lock)
    trust = None if args.user else Trust.open()  # the user's own skills need no approval
    if args.json:
        rows = []
        for status in statuses:
            approved = status.tree if _find_approval(status, trust) else None
            rows.append({**status_as_json(status), "approved": approved})
        facts = [
            {
                "name": other.name,
                "tool": other.tool,
                "from": other.source,
                "pinned": other.version,
                "state": other.state,
            }
            for other in others
        ]
        out.print_json({"skills": rows, "others": facts})
        return 0
    columns = (*_COLUMNS, _FROM) if trust is None else (*_COLUMNS, _APPROVED, _FROM)
    table = []
    for status in statuses:
        row = [status.name, str(status.skill.pin), _describe_state(status)]
        if trust:
            row.append(_find_approval(status, trust)[:10] or "no")
        table.append([*row, show_origin(status.skill.origin)])
    for other in others:
        row = [other.name, other.version, other.state]
        if trust:
            row.append("")
        table.append([*row, f"{other.source} ({other.tool})"])
    out.print_paged_table(columns, table, count_states(statuses))
    return 0


def _describe_state(status: SkillStatus) -> str:
    return "edited, pinned" if status.state == "same" and status.skill.upstream else status.state


def _find_approval(status: SkillStatus, trust: Trust | None) -> str:
    """Return when the user approved the skill as it is on disk, or an empty string."""
    approval = trust.approvals.trees.get(status.tree) if trust else None
    return approval.when if approval else ""
