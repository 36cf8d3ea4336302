"""What can be typed after `/model`."""

from collections.abc import Sequence
from functools import cache

from skillshelf.agent import DEFAULTS
from skillshelf.slash import Candidate


def model_names(current: str, typed: str) -> Sequence[Candidate]:
    """The model in use, the embedded one, one of each provider; and with a provider typed, all that are known of it."""
    provider, colon, _ = typed.partition(":")
    if colon:
        return [Candidate(name) for name in _known() if name.startswith(f"{provider}:")]
    defaults = list(dict.fromkeys(DEFAULTS.values()))
    found = {current: "in use", "local": "a very small one on this machine"}
    found = {**dict.fromkeys(defaults, "its provider's all-round one"), **found}
    providers = dict.fromkeys(f"{name.partition(':')[0]}:" for name in _known())
    order = [current, "local", *defaults, *providers]
    return [Candidate(name, meta=found.get(name, "")) for name in dict.fromkeys(order) if name != "scripted"]


@cache
def _known() -> tuple[str, ...]:
    from pydantic_ai.models import known_model_names

    return tuple(sorted(name for name in known_model_names() if ":" in name))
