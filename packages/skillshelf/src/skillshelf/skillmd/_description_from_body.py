"""A description for a skill without one: what its instructions say first.

Few skills need it, so its patterns are compiled when one does.
"""

import re

from skillshelf.skillmd._fields import refuse_hidden
from skillshelf.skillmd._layout import DiagnosticCollector
from skillshelf.skills import MAX_DESCRIPTION
from skillshelf.text import show_controls

_HEADING = re.compile(r"#{1,6}[ \t]+(.+)")
# A description in the instructions is still the one that the author meant.
_DESCRIPTION_IN_BODY = re.compile(rf"^description[ \t]*[:=][ \t]*(\S[^\n]{{0,{MAX_DESCRIPTION - 1}}})$", re.M | re.I)
# `**Version:** 1.2`, `- **Author**: Ada`, `Version: 1.2`: a fact about the file, with its label.
_BOLD_LABEL = re.compile(
    r"(?:[-*+][ \t]+)?(?:\*\*|__)(?P<label>[^*_:\n]{1,40})"
    r"(?::[ \t]*(?:\*\*|__)|(?:\*\*|__)[ \t]*:)[ \t]*(?P<text>.*)"
)
_PLAIN_LABEL = re.compile(r"(?:version|author|date|created|updated|last updated|license|status)[ \t]*:", re.I)
_DESCRIBING_LABELS = frozenset({"about", "description", "goal", "overview", "purpose", "summary", "what it does"})
_NOT_PROSE = re.compile(r"(?:```|~~~|<|\||!\[|\[!|---|===|\*\*\*)")


def describe_from_body(body: str, diagnostics: DiagnosticCollector) -> str:
    """Return a description taken from the instructions, or an empty text if they have none."""
    in_body = _DESCRIPTION_IN_BODY.search(body[:4000])
    if in_body:
        text = in_body[1].strip("\"' ")
    else:
        text = _find_first_paragraph(body[:20_000])
    description = show_controls(text)[:MAX_DESCRIPTION].strip()
    refuse_hidden("description", description, diagnostics)
    if not description:
        return ""

    message = "Missing required field in frontmatter: description; the first paragraph is used"
    fix = "write a `description:` that says what the skill does and when to use it"
    diagnostics.warn_field("description", "description-missing", message, fix=fix)
    return description


def _find_first_paragraph(body: str) -> str:
    """Return the first paragraph of prose, or the first heading if there is none."""
    first_heading = ""
    paragraph: list[str] = []
    for line in body.splitlines():
        text = _strip_label(line.strip())
        heading = _HEADING.match(text)
        if heading and not first_heading:
            first_heading = heading[1].rstrip(" \t#")
        if text and not heading and not _NOT_PROSE.match(text):
            paragraph.append(text)
        elif paragraph:
            break
    return " ".join(paragraph) or first_heading


def _strip_label(line: str) -> str:
    """Return the text after a label such as `**Purpose:**`, nothing if the label says `Version` or the like."""
    if _PLAIN_LABEL.match(line):
        return ""
    match = _BOLD_LABEL.match(line)
    if not match:
        return line
    if match["label"].strip().lower() in _DESCRIBING_LABELS:
        return match["text"]
    return ""
