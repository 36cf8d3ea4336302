"""`/why-not`: why the model did not use a skill."""

import asyncio

from rich.text import Text

from skillshelf.agent import Unused, explain_unused
from skillshelf.errors import SkillError
from skillshelf.rendering import cut_words
from skillshelf.repl._face import ChatFace
from skillshelf.standing import describe_level
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
    standing = unused.standing
    lines = [Text(clean_line(standing.headline), "bold"), Text(clean_line(unused.verdict))]
    for obstacle in standing.obstacles:
        lines.append(Text(f"{obstacle.code}: {clean_line(obstacle.message)}", "yellow"))
        if obstacle.fix:
            lines.append(Text(f"  fix: {clean_line(obstacle.fix)}", "cyan"))
    for rival in standing.rivals:
        leads = cut_words(clean_line(rival.describe_leads()), 160)
        lines.append(Text(f"  {clean_line(rival.match.name)} {rival.match.score:.2f}: {leads}", "dim"))
    rank = standing.describe_rank()
    if rank:
        lines.append(Text(clean_line(rank), "dim"))
    if standing.level is not None:
        lines.append(Text(f"The listing shows {describe_level(standing.level)} to the model.", "dim"))
    if standing.is_usable and not unused.is_loaded:
        lines.append(Text(f"/skills:{clean_line(standing.name)} applies it now.", "dim"))
    return lines
