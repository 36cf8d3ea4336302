"""`/why-not`: why the model did not use a skill."""

import asyncio

from rich.text import Text

from skillshelf.agent import Unused, explain_unused
from skillshelf.errors import SkillError
from skillshelf.explain import describe_level
from skillshelf.rendering import truncate_cells
from skillshelf.repl._face import ChatFace
from skillshelf.text import clean_line


async def show_why_not(face: ChatFace, typed: str) -> None:
    """Explain why a skill was not used for the last message, or for the request after its name. Raises SkillError."""
    name, _, request = typed.strip().partition(" ")
    if not name:
        raise SkillError("Which skill? Type /why-not NAME, and a request if you mean another than your last message.")
    with face.waiting("the skill is looked up"):
        unused = await asyncio.to_thread(explain_unused, face.core, name, request)
    for line in _view(unused):
        face.print(line)


def _view(unused: Unused) -> list[Text]:
    explanation = unused.explanation
    lines = [Text(clean_line(explanation.headline), "bold"), Text(clean_line(unused.verdict))]
    for reason in explanation.reasons:
        lines.append(Text(f"{reason.code}: {clean_line(reason.message)}", "yellow"))
        if reason.fix:
            lines.append(Text(f"  fix: {clean_line(reason.fix)}", "cyan"))
    for other in explanation.better:
        advantages = truncate_cells(clean_line(other.describe_advantages()), 160)
        lines.append(Text(f"  {clean_line(other.match.name)} {other.match.score:.2f}: {advantages}", "dim"))
    rank = explanation.describe_rank()
    if rank:
        lines.append(Text(clean_line(rank), "dim"))
    if explanation.level is not None:
        lines.append(Text(f"The listing shows {describe_level(explanation.level)} to the model.", "dim"))
    if explanation.is_usable and not unused.is_loaded:
        lines.append(Text(f"/skills:{clean_line(explanation.name)} applies it now.", "dim"))
    return lines
