"""Login pages: which of the pages that a site sends is one, and which form signs a user in."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from skillshelf.text import clean_line, clip

_MAX_HTML = 500_000
_MAX_TITLE = 200
_WORDS = re.compile(r"log[\s_-]?in|log[\s_-]?on|sign[\s_-]?in|auth|sso|session|anmeld|connexion|iniciar", re.IGNORECASE)
_USER_NAMES = re.compile(r"user|login|mail|account|name", re.IGNORECASE)
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
    reader = _PageReader(url)
    reader.feed(page[:_MAX_HTML])
    reader.close()
    says_login = bool(_WORDS.search(urlsplit(url).path) or _WORDS.search(reader.title))
    if not is_refused and not says_login:
        return None

    for form in reader.forms:
        if len(form.passwords) == 1 and form.method == "post":
            return form.make(url, reader.title)
    for form in reader.forms:
        if not form.passwords and form.user and says_login and form.method == "post":
            return form.make(url, reader.title)
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
            url, clip(clean_line(title).strip(), _MAX_TITLE), self.action, self.user, password, self.hidden
        )


class _PageReader(HTMLParser):
    """Collects the title and the forms of a page."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.forms: list[_Form] = []
        self._base = url
        self._form: _Form | None = None
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "title":
            self._in_title = not self.title
        elif tag == "form":
            method = attributes.get("method", "get").lower()
            self._form = _Form(self._resolve(attributes.get("action", "")), method)
            self.forms.append(self._form)
        elif tag == "input" and self._form is not None:
            self._form.add_input(attributes)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "title":
            self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data

    def _resolve(self, action: str) -> str:
        try:
            return urljoin(self._base, action.strip())
        except ValueError:
            return ""
