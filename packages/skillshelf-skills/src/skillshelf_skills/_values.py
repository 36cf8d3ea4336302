"""Values that a database or a graph returned, as a model may read them."""

from typing import Any, TypeVar, cast

from skillshelf.text import text_for_model

T = TypeVar("T")


def clean_values(value: T) -> T:
    """Return a value with hidden characters written out, also inside of lists and dictionaries."""
    return cast(T, _clean(value))


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return text_for_model(value)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {text_for_model(str(key)): _clean(item) for key, item in value.items()}
    return value
