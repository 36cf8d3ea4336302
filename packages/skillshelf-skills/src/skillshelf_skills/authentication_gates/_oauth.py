"""OAuth 2: finding an issuer's endpoints, and getting tokens by device code, authorization code and refresh."""

import base64
import hashlib
import json
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from skillshelf.errors import SkillError
from skillshelf_skills.authentication_gates._errors import SignInFailedError
from skillshelf_skills.authentication_gates._gates import show_site_text
from skillshelf_skills.authentication_gates._redaction import MIN_SECRET
from skillshelf_skills.authentication_gates._sites import OAuthClient, Site
from skillshelf_skills.authentication_gates._wire import Wire
from skillshelf_skills.net import Fetched

_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_DEFAULT_INTERVAL = 5.0
_SLOW_DOWN = 5.0
_MAX_INTERVAL = 60.0
_MAX_LIFETIME = 1800.0
_MAX_NUMBER = 1e9
_USER_CODE = re.compile(r"[A-Za-z0-9-]{1,40}")
_REASONS = {
    "access_denied": "the user, or a rule of the issuer, said no",
    "expired_token": "the code was not entered in time",
    "invalid_client": "the issuer does not know this client id",
    "invalid_grant": "the issuer does not accept the code, or no longer",
    "invalid_scope": "the issuer does not know the scope, or does not give it to this client",
    "unauthorized_client": "this client may not use this flow",
    "unsupported_grant_type": "the issuer does not offer this flow",
}


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses of an issuer."""

    issuer: str
    token: str
    authorization: str
    """Empty if it offers no authorization code flow."""
    device: str
    """Empty if it offers no device flow."""
    names_issuer: bool
    """True if its redirects say which issuer they come from."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an issuer gave. Nothing of it is in the repr."""

    access: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    scope: str = ""
    """What was granted, if the issuer says so: perhaps less than was asked for."""


@dataclass(slots=True)
class DeviceCode:
    """A device flow that waits for the user."""

    secret: str = field(repr=False)
    user_code: str
    link: str
    """Where the user enters the code."""
    expires_at: float
    """By `time.monotonic`."""
    interval: float


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """An authorization code flow that waits for the user, with what proves that the answer belongs to it."""

    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48), repr=False)

    def make_link(self, endpoints: Endpoints, client: OAuthClient, scope: str, redirect: str) -> str:
        """Return the address at which the user signs in."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": redirect,
            "state": self.state,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        if scope:
            query["scope"] = scope
        joint = "&" if urlsplit(endpoints.authorization).query else "?"
        return f"{endpoints.authorization}{joint}{urlencode(query)}"


class Issuer:
    """One issuer, for one site and client."""

    def __init__(self, wire: Wire, client: OAuthClient, site: Site) -> None:
        self._wire = wire
        self._client = client
        self._site = str(site)

    async def discover(self) -> Endpoints:
        """Return the issuer's endpoints, from the document that it publishes. Raises SignInFailedError."""
        issuer = self._client.issuer.rstrip("/")
        base = str(Site.of(issuer))
        path = urlsplit(issuer).path.rstrip("/")
        for address in (
            f"{base}/.well-known/oauth-authorization-server{path}",
            f"{issuer}/.well-known/openid-configuration",
        ):
            document = _read_json(await self._wire.send(address))
            if document is None:
                continue
            if str(document.get("issuer", "")).rstrip("/") != issuer:
                raise self._fail("issuer_mismatch", "the issuer's document is about another issuer")
            return Endpoints(
                issuer=issuer,
                token=self._read_endpoint(document, "token_endpoint"),
                authorization=self._read_endpoint(document, "authorization_endpoint"),
                device=self._read_endpoint(document, "device_authorization_endpoint"),
                names_issuer=document.get("authorization_response_iss_parameter_supported") is True,
            )
        raise self._fail("no_metadata", f"{issuer} publishes no description of its endpoints")

    def _read_endpoint(self, document: Mapping[str, Any], name: str) -> str:
        address = document.get(name, "")
        if not address:
            return ""
        site = _find_site(address)
        if site is None:
            raise self._fail("bad_metadata", f"the issuer's {name} is not an address")
        if site.scheme != "https" and site != Site.of(self._client.issuer):
            raise self._fail("bad_metadata", f"the issuer's {name} is not encrypted")
        return str(address)

    async def start_device(self, endpoints: Endpoints, scope: str) -> DeviceCode:
        """Ask for a code that the user enters on another device."""
        form = {"client_id": self._client.client_id}
        if scope:
            form["scope"] = scope
        answer = await self._post(endpoints.device, form)
        code = answer.get("device_code")
        user_code = answer.get("user_code")
        link = answer.get("verification_uri") or answer.get("verification_url")
        if not (isinstance(code, str) and code and isinstance(user_code, str) and isinstance(link, str)):
            raise self._fail("bad_answer", "the issuer gave no code to enter")
        # The user gets both word for word, so neither may be a sentence.
        if _USER_CODE.fullmatch(user_code) is None or _find_site(link) is None:
            raise self._fail("bad_answer", "the issuer's code, or where to enter it, is not one")
        lifetime = _read_number(answer.get("expires_in"), 600.0)
        return DeviceCode(
            secret=code,
            user_code=user_code,
            link=show_site_text(link),
            expires_at=time.monotonic() + min(lifetime, _MAX_LIFETIME),
            interval=min(_read_number(answer.get("interval"), _DEFAULT_INTERVAL), _MAX_INTERVAL),
        )

    async def poll_device(self, endpoints: Endpoints, device: DeviceCode) -> Tokens | None:
        """Return the tokens, or None if the user has not decided yet. Raises SignInFailedError."""
        if time.monotonic() >= device.expires_at:
            raise self._fail("expired_token", _REASONS["expired_token"])
        form = {"grant_type": _DEVICE_GRANT, "device_code": device.secret, "client_id": self._client.client_id}
        try:
            return self._read_tokens(await self._post(endpoints.token, form))
        except SignInFailedError as error:
            if error.code == "slow_down":
                device.interval = min(device.interval + _SLOW_DOWN, _MAX_INTERVAL)
            elif error.code != "authorization_pending":
                raise
            return None

    async def exchange_code(self, endpoints: Endpoints, request: CodeRequest, code: str, redirect: str) -> Tokens:
        """Return the tokens for the code that came with the redirect."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "client_id": self._client.client_id,
            "code_verifier": request.verifier,
        }
        return self._read_tokens(await self._post(endpoints.token, form))

    async def refresh(self, endpoints: Endpoints, tokens: Tokens) -> Tokens:
        """Return new tokens for old ones."""
        form = {
            "grant_type": "refresh_token",
            "refresh_token": tokens.refresh,
            "client_id": self._client.client_id,
        }
        fresh = self._read_tokens(await self._post(endpoints.token, form))
        return Tokens(fresh.access, fresh.refresh or tokens.refresh, fresh.scope or tokens.scope)

    async def _post(self, url: str, form: Mapping[str, str]) -> dict[str, Any]:
        fetched = await self._wire.send(url, form=form, headers={"Accept": "application/json"})
        answer = _read_json(fetched, statuses=range(200, 600))
        if answer is None:
            raise self._fail("bad_answer", f"the issuer answered with status {fetched.status} and no JSON")
        code = answer.get("error")
        if code:
            raise self.explain(str(code))
        if fetched.status >= 400:
            raise self._fail("bad_answer", f"the issuer answered with status {fetched.status}")
        return answer

    def explain(self, code: str) -> SignInFailedError:
        """Return the error for a code of OAuth. The issuer's own description is left out: it may repeat secrets."""
        return self._fail(show_site_text(code), _REASONS.get(code, "the issuer refused"))

    def _read_tokens(self, answer: Mapping[str, Any]) -> Tokens:
        access = answer.get("access_token")
        kind = str(answer.get("token_type", "bearer")).lower()
        if not isinstance(access, str) or not access.isascii() or not access.isprintable() or len(access) < MIN_SECRET:
            raise self._fail("bad_answer", "the issuer gave no token that can be sent")
        if kind != "bearer":
            raise self._fail("bad_answer", "the issuer gave a token that is not a bearer token")
        refresh = answer.get("refresh_token")
        scope = answer.get("scope")
        return Tokens(
            access=access,
            refresh=refresh if isinstance(refresh, str) else "",
            scope=show_site_text(scope) if isinstance(scope, str) else "",
        )

    def _fail(self, code: str, reason: str) -> SignInFailedError:
        return SignInFailedError(self._site, code, reason)


async def find_issuers(wire: Wire, metadata_url: str) -> tuple[str, ...]:
    """Return the issuers that a site names in its own description. It may be wrong, or lie."""
    document = _read_json(await wire.send(metadata_url))
    servers = document.get("authorization_servers") if document else None
    if not isinstance(servers, list):
        return ()
    return tuple(show_site_text(server) for server in servers[:10] if isinstance(server, str))


def _read_json(fetched: Fetched, statuses: range = range(200, 300)) -> dict[str, Any] | None:
    if fetched.status not in statuses or not fetched.is_whole:
        return None
    try:
        value = json.loads(fetched.body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _find_site(address: object) -> Site | None:
    """Return the site of an address that an issuer names; None if it is not an address, or more than one."""
    text = str(address)
    if not text.isascii() or not text.isprintable() or " " in text:
        return None
    try:
        return Site.of(text)
    except SkillError:
        return None


def _read_number(value: object, default: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MAX_NUMBER
    return float(value) if is_number else default  # type: ignore[arg-type]
