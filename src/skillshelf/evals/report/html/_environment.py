"""How pages are made: one jinja2 environment, the style and the script, and their hashes for the content policy."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from skillshelf.evals.report._format import format_percent, format_points
from skillshelf.text import clean

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_TEXT = 2_000
"""Characters of a prompt or a reason outside of transcripts."""


@cache
def make_environment() -> Environment:
    """Return the environment of all pages: everything is escaped, and hidden characters are written out."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("skillshelf.evals.report.html", "."),
        autoescape=True,
        finalize=_write_out_hidden,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "across": _across,
        "place": "{:.2f}".format,
        "percent": format_percent,
        "points": format_points,
        "anchor": _anchor,
        "cut": _cut,
    }
    return environment


def _write_out_hidden(value: Any) -> Any:
    """Return a text with its hidden and control characters written out, so that nothing is shown that is not there."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return clean(value)
    return value


def _across(share: float) -> float:
    """Return the position of a share, with room at both ends, so that marks at 0 and 1 are whole."""
    return 3 + 94 * max(0.0, min(1.0, share))


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT:,} more characters)"


def find_style() -> str:
    return _read_own_file("style.css")


def find_script() -> str:
    return _read_own_file("page.js")


@cache
def _read_own_file(name: str) -> str:
    from markupsafe import Markup

    return Markup(files("skillshelf.evals.report.html").joinpath(name).read_text(encoding="utf-8"))


def embed_json(value: Any) -> str:
    """Return JSON that cannot end the element that holds it, whatever its texts are."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def hash_source(text: str) -> str:
    """Return the hash that allows an inline style or script in the Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
