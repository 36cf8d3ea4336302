"""`/copy`: the last answer, on the user's clipboard."""

import base64

from rich.text import Text

from skillshelf.agent.sessions import last_answer
from skillshelf.errors import SkillError
from skillshelf.repl._face import ChatFace
from skillshelf.text import count_noun

_MAX_ENCODED = 74_994
"""Terminals ignore longer texts: this is the limit of the strictest ones."""


def copy_answer(face: ChatFace, _: str) -> None:
    """Put the last answer onto the clipboard. Raises SkillError if there is none, or if it is too long."""
    answer = last_answer(face.core.conversation.messages)
    if not answer:
        raise SkillError("There is no answer to copy yet.")
    encoded = base64.b64encode(answer.encode("utf-8", "replace")).decode()
    if len(encoded) > _MAX_ENCODED:
        raise SkillError(
            f"The last answer is too long for a terminal's clipboard ({len(answer):,} characters). "
            "/export writes the session to a file."
        )

    # OSC 52: the terminal itself has the clipboard, so this works over ssh, too. It does not say whether it did it.
    face.write_escape(f"\x1b]52;c;{encoded}\x07")
    size = count_noun(len(answer), "character")
    face.print(
        f"The last answer ({size}) was given to your terminal for the clipboard.",
        Text("If it is not there, your terminal does not allow that: /export writes the session to a file.", "dim"),
    )
