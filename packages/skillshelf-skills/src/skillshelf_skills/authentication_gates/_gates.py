"""Recognising what a site wants before it answers: its challenge, its login page, or patience."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, urljoin, urlsplit

from skillshelf.text import clean_line, truncate
from skillshelf_skills.authentication_gates._login_pages import LoginForm, find_login_form
from skillshelf_skills.authentication_gates._sites import Site

if TYPE_CHECKING:
    from skillshelf_skills.net import Fetched

State = Literal["open", "needs-credential", "forbidden", "rate-limited", "missing", "failed"]

_MAX_WORDS = 200
_MAX_CHALLENGE = 8_000
_LIMIT_HEADERS = ("x-ratelimit-remaining", "ratelimit-remaining", "x-rate-limit-remaining")
_SCHEMES = {"basic": "basic", "bearer": "bearer"}
_CHALLENGE_SCHEME = re.compile(r"[\s,]*([A-Za-z][A-Za-z0-9_-]*)(?=\s|,|$)")
_PARAMETER = re.compile(r'[\s,]*([A-Za-z][A-Za-z0-9_*-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_TOKEN68 = re.compile(r"\s+[A-Za-z0-9._~+/-]+=*\s*(?=,|$)")


@dataclass(frozen=True, slots=True)
class Challenge:
    """One scheme of a `WWW-Authenticate` header, with its parameters."""

    scheme: str
    parameters: dict[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        """Return a parameter in one printable line; the words are the site's."""
        return show_site_text(self.parameters.get(name, ""))


@dataclass(frozen=True, slots=True)
class AuthenticationGate:
    """What a site wants."""

    site: Site
    """The site that gets the credential: the one that asked, after redirects."""
    url: str
    schemes: tuple[str, ...]
    """What it takes of what this skill can send: `basic`, `bearer`, `header`, `form`, `cookie`."""
    unsupported: tuple[str, ...] = ()
    """What it also takes, and this skill cannot send: `digest`, `negotiate`, `sso`."""
    realm: str = ""
    scope: str = ""
    error: str = ""
    """The error of a refused token, such as `invalid_token` or `insufficient_scope`."""
    resource_metadata: str = ""
    """Where the site describes its OAuth issuers, if it says so. Always on the site itself."""
    login_form: LoginForm | None = None


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """How a site stands to a request."""

    state: State
    gate: AuthenticationGate | None = None
    retry_after: int | None = None
    """Seconds to wait, if the site says so."""


def classify(fetched: "Fetched") -> ProbeResult:
    """Return how a site stands to a request, from its answer."""
    retry_after = _read_retry_after(fetched)
    challenges = tuple(parse_challenges(fetched.headers.get("www-authenticate", "")))
    is_limited = any(fetched.headers.get(name, "").strip() == "0" for name in _LIMIT_HEADERS)
    if fetched.status == 429 or (fetched.status in (403, 503) and (retry_after is not None or is_limited)):
        return ProbeResult("rate-limited", retry_after=retry_after)
    if fetched.status == 401 or (fetched.status == 403 and challenges):
        return ProbeResult("needs-credential", _read_challenges(fetched, challenges))

    wall = _find_wall(fetched)
    if wall is not None:
        return ProbeResult("needs-credential", wall)
    if fetched.status == 403:
        return ProbeResult("forbidden")
    if fetched.status in (404, 410):
        return ProbeResult("missing")
    return ProbeResult("open" if fetched.status < 400 else "failed")


def parse_challenges(header: str) -> Iterator[Challenge]:
    """Yield the challenges of a `WWW-Authenticate` header, several in one line included. Nonsense ends it."""
    header = header[:_MAX_CHALLENGE]
    position = 0
    while match := _CHALLENGE_SCHEME.match(header, position):
        position = match.end()
        scheme = match[1].lower()
        parameters: dict[str, str] = {}
        token = _TOKEN68.match(header, position)
        if token:
            position = token.end()
        while parameter := _PARAMETER.match(header, position):
            position = parameter.end()
            quoted = parameter[2]
            value = parameter[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            parameters.setdefault(parameter[1].lower(), value)
        yield Challenge(scheme, parameters)


def show_site_text(text: str) -> str:
    """Return a site's words as one line of limited length."""
    return truncate(clean_line(text).strip(), _MAX_WORDS)


def _read_challenges(fetched: "Fetched", challenges: tuple[Challenge, ...]) -> AuthenticationGate:
    site = Site.of(fetched.url)
    if not challenges:
        # Against the standard, and common: an API that wants a key in a header of its own, or a page with a form.
        wall = _find_wall(fetched)
        return wall or AuthenticationGate(site, fetched.url, ("bearer", "header"))

    main = next((each for each in challenges if each.scheme == "bearer"), challenges[0])
    schemes = [each.scheme for each in challenges]
    metadata = main.parameters.get("resource_metadata", "")
    return AuthenticationGate(
        site=site,
        url=fetched.url,
        schemes=tuple(dict.fromkeys(_SCHEMES[scheme] for scheme in schemes if scheme in _SCHEMES)),
        unsupported=tuple(dict.fromkeys(show_site_text(scheme) for scheme in schemes if scheme not in _SCHEMES)),
        realm=main.get("realm") or next((each.get("realm") for each in challenges if each.get("realm")), ""),
        scope=main.get("scope"),
        error=main.get("error"),
        resource_metadata=metadata if metadata and _is_on(site, metadata) else "",
    )


def _is_on(site: Site, url: str) -> bool:
    from skillshelf.errors import SkillError

    try:
        return Site.of(url) == site
    except SkillError:
        return False


def _find_wall(fetched: "Fetched") -> AuthenticationGate | None:
    """Return the login wall that an answer is, if it is one."""
    asked = fetched.redirects[0] if fetched.redirects else fetched.url
    authorize = next((url for url in (*fetched.redirects, fetched.url) if _is_authorization(url)), None)
    if authorize is not None and fetched.status < 500:
        # The site signs its users in at another one, for a client of its own: only a browser can go through with it.
        return AuthenticationGate(Site.of(asked), asked, ("cookie", "bearer"), unsupported=("sso",))
    if fetched.media_type not in ("text/html", "application/xhtml+xml"):
        return None
    form = find_login_form(fetched.text, fetched.url, is_refused=fetched.status in (401, 403) or _was_moved(fetched))
    if form is None:
        return None
    site = Site.of(asked)
    gate = AuthenticationGate(site, asked, ("form", "cookie"), realm=form.title, login_form=form)
    can_sign_in = form.password_field and _is_on(site, form.action)
    if can_sign_in:
        return gate
    return replace(gate, schemes=("cookie", "bearer"), unsupported=("form-elsewhere",))


def _was_moved(fetched: "Fetched") -> bool:
    """Return True if the answer is that of another path than the one asked for."""
    return bool(fetched.redirects) and urlsplit(fetched.redirects[0]).path != urlsplit(fetched.url).path


def _is_authorization(url: str) -> bool:
    query = parse_qs(urlsplit(url).query)
    return "client_id" in query and ("response_type" in query or "SAMLRequest" in query)


def _read_retry_after(fetched: "Fetched") -> int | None:
    text = fetched.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return min(int(text[:9]), 86_400)
    if not text:
        return None
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None
    return max(0, min(round(moment - time.time()), 86_400))


def next_location(fetched: "Fetched") -> str | None:
    """Return where a redirect leads, or None if the answer is not one."""
    location = fetched.headers.get("location", "")
    if fetched.status not in (301, 302, 303, 307, 308) or not location:
        return None
    return urljoin(fetched.url, location)
