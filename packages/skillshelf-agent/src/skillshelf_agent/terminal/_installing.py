"""`/skills add`: skills of others, reviewed and installed without leaving the chat."""

import asyncio
from collections.abc import Sequence

from rich.text import Text

from skillshelf.errors import SkillError
from skillshelf.registry import (
    Installation,
    NewSkill,
    OfferedSkill,
    Origin,
    Pin,
    choose_offered,
    describe_new,
    describe_review,
    find_offered,
    install,
    open_source,
    parse_source,
    project_installation,
    read_content,
    read_lock,
    refuse_taken,
    show_origin,
)
from skillshelf.text import clean_line
from skillshelf.text.rendering import ReviewPage
from skillshelf.trust import Trust, review_lines
from skillshelf_agent.terminal._face import ChatFace


async def add_skills(face: ChatFace, typed: str) -> None:
    """Fetch a source, show each skill that was named, and install those that the user approves."""
    source, *names = typed.split() or [""]
    if not source:
        raise SkillError("Give a source, such as owner/repo, and the names of the skills that you want.")
    installation = project_installation(face.core.skills.root)
    origin = parse_source(source, "", installation.place, anywhere=False)
    with face.waiting(f"fetching {show_origin(origin)}"):
        offered, new = await asyncio.to_thread(_fetch, installation, origin, names)
    if not new:
        face.print(*(Text(f"{clean_line(skill.name)}  {clean_line(skill.description)}") for skill in offered))
        face.print(f"Several skills are there. /skills add {clean_line(source)} NAME … installs some.")
        return

    trust = Trust.open()
    pages = [describe_review(installation, face.core.skills.root, skill, trust) for skill in new]
    approved = []
    for page in pages:
        face.print(ReviewPage(review_lines(page)))
        if await face.confirm(f"Install {clean_line(page.name)} and trust it as it is?"):
            approved.append(page)
    if not approved:
        face.print("Nothing was installed.")
        return
    wanted = {page.name for page in approved}
    install(installation, [skill for skill in new if skill.name in wanted])
    face.core.skills.approve(approved)
    delta = face.core.reload_skills()
    face.print(Text(f"installed {', '.join(sorted(wanted))}", "green"), face.core.skills.describe_reload(delta))


def _fetch(
    installation: Installation, origin: Origin, names: Sequence[str]
) -> tuple[Sequence[OfferedSkill], Sequence[NewSkill]]:
    """Return all skills of a source, and those that were named. One skill alone needs no name."""
    lock = read_lock(installation.lock_path)
    with open_source(origin, Pin(), installation.place, anywhere=False) as package:
        offered = find_offered(package, origin)
        if not names and len(offered) == 1:
            names = [offered[0].path or offered[0].name]
        new = [
            describe_new(origin, skill.path, package.pin, read_content(package, skill.name, skill.path))
            for skill in choose_offered(offered, names)
        ]
    for skill in new:
        refuse_taken(installation, lock, skill)
    return offered, new
