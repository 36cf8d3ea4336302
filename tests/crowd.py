"""More skills than a small budget can describe, and messages that fit one of them."""

BUDGET = 1_500
SIZE = 200


def write_skill(at: int) -> str:
    return f"---\nname: skill-{at:03}\ndescription: Handles the parcel{at} and the letter{at}.\n---\nDo it.\n"


def write_skills(size: int = SIZE) -> dict[str, str]:
    return {f"skill-{at:03}": write_skill(at) for at in range(size)}


def ask_about(at: int) -> str:
    return f"Where are parcel{at} and letter{at}?"


def entry_of(at: int) -> str:
    """Return the beginning of a skill's entry with its description."""
    return f'<skill name="skill-{at:03}">Handles the parcel{at} '
