"""Login pages: which of the pages that a site sends is one, and which form signs a user in."""

import html
import re
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from skillshelf.text import clean_line, truncate

_MAX_HTML = 500_000
_MAX_TITLE = 200
_WORDS = re.compile(r"log[\s_-]?in|log[\s_-]?on|sign[\s_-]?in|auth|sso|session|anmeld|connexion|iniciar", re.IGNORECASE)
_USER_NAMES = re.compile(r"user|login|mail|account|name", re.IGNORECASE)
_TAG = re.compile(
    r"<(?:(?P<comment>!--)|(?P<tag>script|style|textarea|title|/?form|input)\b(?P<rest>[^<>]{0,4000})>?)", re.IGNORECASE
)
_ENDS = {
    "!--": re.compile("-->"),
    "script": re.compile("</script", re.IGNORECASE),
    "style": re.compile("</style", re.IGNORECASE),
    "textarea": re.compile("</textarea", re.IGNORECASE),
}
"""What contains no tags, and how it ends."""
_ATTRIBUTE = re.compile(
    r"""(?P<name>[A-Za-z][A-Za-z-]*)(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'>]+)))?"""
)
_USER_TYPES = frozenset({"text", "email", "tel", ""})


@dataclass(frozen=True, slots=True)
class LoginForm:
    """The form of a login page."""

    page: str
    """The address of the page."""
    title: str
    action: str
    """Where the form is sent."""
    user_field: str
    password_field: str
    """Empty on pages that ask for the user name alone, and for the password on the next one."""
    hidden_fields: dict[str, str] = field(default_factory=dict, repr=False)
    """What the form sends besides, such as a token against forged requests."""


def find_login_form(page: str, url: str, *, is_refused: bool) -> LoginForm | None:
    """Return the login form of a page, or None if the page is not a login page.

    Many open pages have a small login form at their top, and a page to change a password has two password fields.
    Therefore a form counts if the site refused the request or led it here, or if the page calls itself a login page.
    """
    found = _read_page(page[:_MAX_HTML], url)
    says_login = bool(_WORDS.search(urlsplit(url).path) or _WORDS.search(found.title))
    if not is_refused and not says_login:
        return None

    for form in found.forms:
        if len(form.passwords) == 1 and form.method == "post":
            return form.make(url, found.title)
    for form in found.forms:
        if not form.passwords and form.user and says_login and form.method == "post":
            return form.make(url, found.title)
    return None


@dataclass(slots=True)
class _Form:
    action: str
    method: str
    user: str = ""
    passwords: list[str] = field(default_factory=list)
    hidden: dict[str, str] = field(default_factory=dict)

    def add_input(self, attributes: dict[str, str]) -> None:
        name = attributes.get("name", "")
        kind = attributes.get("type", "").lower()
        if not name:
            return
        if kind == "password":
            self.passwords.append(name)
        elif kind == "hidden":
            self.hidden[name] = attributes.get("value", "")
        elif kind in _USER_TYPES and not self.user and (kind == "email" or _USER_NAMES.search(name)):
            self.user = name

    def make(self, url: str, title: str) -> LoginForm:
        password = self.passwords[0] if self.passwords else ""
        return LoginForm(
            url, truncate(clean_line(title).strip(), _MAX_TITLE), self.action, self.user, password, self.hidden
        )


@dataclass(slots=True)
class _LoginPage:
    title: str = ""
    forms: list[_Form] = field(default_factory=list)


def _read_page(text: str, url: str) -> _LoginPage:
    """Collect the title and the forms of a page.

    Not with `html.parser`: 20 kB of unfinished tags keep that of Python 3.11 busy for ten seconds.
    """
    page = _LoginPage()
    form: _Form | None = None
    position = 0
    while match := _TAG.search(text, position):
        position = match.end()
        tag = (match["comment"] or match["tag"]).lower()
        if tag in _ENDS:
            end_tag = _ENDS[tag].search(text, position)
            if end_tag is None:
                break  # a browser takes everything that follows for a part of it
            position = end_tag.end()
        elif tag == "title" and not page.title:
            end = text.find("<", position)
            page.title = html.unescape(text[position:end]) if end >= 0 else ""
        elif tag == "form":
            attributes = _read_attributes(match["rest"])
            action = _resolve(url, attributes.get("action", ""))
            form = _Form(action, attributes.get("method", "get").lower())
            page.forms.append(form)
        elif tag == "/form":
            form = None
        elif tag == "input" and form is not None:
            form.add_input(_read_attributes(match["rest"]))
    return page


def _read_attributes(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text):
        value = match["double"] or match["single"] or match["bare"] or ""
        attributes.setdefault(match["name"].lower(), html.unescape(value))
    return attributes


def _resolve(url: str, action: str) -> str:
    try:
        return urljoin(url, action.strip())
    except ValueError:
        return ""
