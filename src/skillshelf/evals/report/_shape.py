"""Whether values are what their dataclass says: a file was written by anyone, and a report must not fall over it."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def fault_of(value: Any, hint: Any, where: str) -> str:
    """The first thing that does not fit, in words; empty where all does."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return ""
    if origin in (Union, types.UnionType):
        return "" if any(not fault_of(value, one, where) for one in inner) else _wrong(value, where)
    if origin is Literal:
        return "" if value in inner and isinstance(value, str) else _wrong(value, where)
    kind: Any = origin or (hint if is_dataclass(hint) else None)
    if kind and not isinstance(value, kind):
        return _wrong(value, where)
    if origin is tuple:
        return _first([(one, inner[0], f"{where}[{at}]") for at, one in enumerate(value)])
    if origin in (Mapping, dict):
        keys = [(key, inner[0], where) for key in value]
        return _first(keys + [(one, inner[1], f"{where}.{key}") for key, one in value.items()])
    if is_dataclass(hint):
        own: Any = type(value)
        kinds = _hints(own)
        parts = [(getattr(value, one.name), kinds[one.name], f"{where}.{one.name}") for one in fields(value)]
        return _first(parts)
    return "" if _is(value, hint) else _wrong(value, where)


def _is(value: Any, hint: Any) -> bool:
    """JSON writes 1.0 as it likes; True is no number, and neither is what Python's JSON calls NaN."""
    if hint is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is (hint or types.NoneType)


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _first(parts: list[tuple[Any, Any, str]]) -> str:
    return next((wrong for one, hint, place in parts if (wrong := fault_of(one, hint, place))), "")


def _wrong(value: Any, where: str) -> str:
    return f"{where} is {value!r:.60}"
