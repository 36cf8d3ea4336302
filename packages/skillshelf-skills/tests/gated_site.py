"""A site with every kind of gate, and an OAuth issuer, for tests and evals."""

import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from sites import Page, Site, send
from skillshelf_skills.authentication_gates import Credential, CredentialRequest, OAuthClient, Vault
from skillshelf_skills.authentication_gates.skill import AuthenticationGatesSkill

USER = "ada"
PASSWORD = "correct horse/battery+staple"
TOKEN = "tok-7f3a9c51d2e8"
SESSION = "session-5e1d77aa90"
CLIENT_ID = "skillshelf-test"
ALL = dict.fromkeys(("check_access", "request_access", "finish_access", "fetch_with_access"), "safe")
LOGIN_PAGE = b"""<html><head><title>Sign in</title></head><body><form method=post action="/login">
<input type=hidden name=csrf value="csrf-token-1"><input name=username><input type=password name=pass></form></body>
</html>"""


class FixedVault:
    """A vault with one credential for all sites. It records what it was asked for."""

    def __init__(self, credential: Credential | None) -> None:
        self.credential = credential
        self.requests: list[CredentialRequest] = []

    def ask(self, request: CredentialRequest) -> Credential | None:
        self.requests.append(request)
        return self.credential

    def explain(self, request: CredentialRequest) -> str:
        return f"Put a credential for {request.site} into the vault."


class GatedSite(Site):
    """A site whose pages want credentials. Every page echoes the headers that it got."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Mapping[str, str]] = []
        """The headers of each request to a gated page."""
        self.issuer = self.url("/issuer")
        self.scopes = "read"
        self.tokens = {TOKEN: "read"}
        """The valid tokens, each with its scope."""
        self.polls: list[str] = []
        """What the token endpoint answers to the next polls of a device flow; then it gives a token."""
        self.grants: list[dict[str, str]] = []
        """The forms that the token endpoint got."""
        self.metadata: dict[str, Any] = {
            "issuer": self.issuer,
            "authorization_endpoint": self.url("/authorize"),
            "token_endpoint": self.url("/token"),
            "device_authorization_endpoint": self.url("/device"),
        }
        self.refresh_token = "refresh-41b7aa02c9"
        self._challenges: dict[str, str] = {}
        self.pages |= {
            "/open": send(b"hello", Content_Type="text/plain"),
            "/basic": self.ask_password,
            "/bearer": self._bearer,
            "/key": self._key,
            "/private": self._private,
            "/login": self.sign_in,
            "/resource-metadata": self._describe_resource,
            "/.well-known/oauth-authorization-server/issuer": self._describe_issuer,
            "/device": self._start_device,
            "/authorize": self._authorize,
            "/token": self._give_token,
        }

    def skill(self, vault: Vault | None = None, *, oauth: bool = False, **options: Any) -> AuthenticationGatesSkill:
        """Return the skill with this site allowed, and no questions to the user."""
        client = OAuthClient(self.issuer, CLIENT_ID) if oauth else None
        sites = {self.url(""): client}
        return AuthenticationGatesSkill(sites, vault=vault, **options).with_policy(ALL)  # type: ignore[arg-type]

    def echo(self, page: BaseHTTPRequestHandler) -> None:
        """Send back the headers of the request."""
        lines = "\n".join(f"{name}: {value}" for name, value in page.headers.items())
        send(f"welcome\n{lines}".encode(), Content_Type="text/plain")(page)

    def _note(self, page: BaseHTTPRequestHandler) -> None:
        self.seen.append(dict(page.headers.items()))

    def ask_password(self, page: BaseHTTPRequestHandler) -> None:
        self._note(page)
        pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if page.headers["Authorization"] == f"Basic {pair}":
            self.echo(page)
        else:
            send(b"who?", status=401, WWW_Authenticate='Digest qop="auth", Basic realm="the \\"vault\\""')(page)

    def _bearer(self, page: BaseHTTPRequestHandler) -> None:
        self._note(page)
        sent = page.headers["Authorization"]
        where = self.url("/resource-metadata")
        if sent is None:
            challenge = f'Bearer realm="api", scope="{self.scopes}", resource_metadata="{where}"'
            send(b"{}", status=401, WWW_Authenticate=challenge)(page)
            return
        scope = self.tokens.get(sent.removeprefix("Bearer "))
        if scope is None:
            send(b"{}", status=401, WWW_Authenticate='Bearer error="invalid_token"')(page)
        elif "write" in page.path and "write" not in scope:
            challenge = 'Bearer error="insufficient_scope", scope="read write"'
            send(b"{}", status=403, WWW_Authenticate=challenge)(page)
        elif "secret" in page.path:
            send(b"not for you", status=403)(page)
        else:
            self.echo(page)

    def _key(self, page: BaseHTTPRequestHandler) -> None:
        self._note(page)
        if page.headers["X-API-Key"] == TOKEN:
            self.echo(page)
        else:
            send(b"no key", status=401)(page)

    def _private(self, page: BaseHTTPRequestHandler) -> None:
        self._note(page)
        if f"sid={SESSION}" in (page.headers["Cookie"] or ""):
            self.echo(page)
        else:
            send(b"", status=302, Location="/login?next=/private")(page)

    def sign_in(self, page: BaseHTTPRequestHandler) -> None:
        if page.command == "GET":
            send(LOGIN_PAGE, Content_Type="text/html", Set_Cookie="anonymous=cookie-for-csrf; Path=/")(page)
            return
        form = read_form(page)
        is_right = form == {"csrf": "csrf-token-1", "username": USER, "pass": PASSWORD}
        if is_right and "anonymous=cookie-for-csrf" in (page.headers["Cookie"] or ""):
            send(b"", status=303, Location="/open", Set_Cookie=f"sid={SESSION}; HttpOnly; Path=/")(page)
        else:
            send(LOGIN_PAGE, Content_Type="text/html")(page)

    def _describe_resource(self, page: BaseHTTPRequestHandler) -> None:
        send_json({"resource": self.url(""), "authorization_servers": [self.issuer]})(page)

    def _describe_issuer(self, page: BaseHTTPRequestHandler) -> None:
        send_json(self.metadata)(page)

    def _start_device(self, page: BaseHTTPRequestHandler) -> None:
        read_form(page)
        answer = {
            "device_code": "device-code-99887766",
            "user_code": "WDJB-MJHT",
            "verification_uri": self.url("/enter"),
            "expires_in": 600,
            "interval": 5,
        }
        send_json(answer)(page)

    def _authorize(self, page: BaseHTTPRequestHandler) -> None:
        """Answer as an issuer does whose user has signed in already."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(page.path).query).items()}
        self._challenges["auth-code-1234567"] = query["code_challenge"]
        answer = urlencode({"code": "auth-code-1234567", "state": query["state"]})
        send(b"", status=302, Location=f"{query['redirect_uri']}?{answer}")(page)

    def _give_token(self, page: BaseHTTPRequestHandler) -> None:
        form = read_form(page)
        self.grants.append(form)
        if form.get("client_id") != CLIENT_ID:
            send_json({"error": "invalid_client"}, status=401)(page)
        elif self.polls:
            send_json({"error": self.polls.pop(0), "error_description": "see " + TOKEN}, status=400)(page)
        elif form["grant_type"] == "authorization_code" and not self._is_proven(form):
            send_json({"error": "invalid_grant"}, status=400)(page)
        else:
            answer = {"access_token": next(iter(self.tokens)), "token_type": "Bearer", "scope": self.scopes}
            send_json(answer | {"refresh_token": self.refresh_token})(page)

    def _is_proven(self, form: Mapping[str, str]) -> bool:
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=") == self._challenges.get(form["code"])


def read_form(page: BaseHTTPRequestHandler) -> dict[str, str]:
    body = page.rfile.read(int(page.headers["Content-Length"])).decode()
    return {name: values[0] for name, values in parse_qs(body).items()}


def send_json(value: object, *, status: int = 200) -> Page:
    return send(json.dumps(value).encode(), status=status, Content_Type="application/json")


async def no_pause(seconds: float) -> None:
    """Wait for nothing."""


def serve_for_evals() -> AuthenticationGatesSkill:
    """Return a skill whose site runs until the process ends. The model knows the site as http://gated.example."""
    site = ExitStack().enter_context(GatedSite.running())
    site.polls = ["expired_token"]
    skill = site.skill(FixedVault(Credential(USER, PASSWORD)), oauth=True, sleep=no_pause)
    for name in ("check_access", "request_access", "fetch_with_access"):
        setattr(skill, name, _at_site(getattr(skill, name), site))
    return skill


def _at_site(method: Callable[..., Awaitable[object]], site: Site) -> Callable[..., Awaitable[object]]:
    async def call(url: str, **arguments: object) -> object:
        return await method(url.replace("http://gated.example", site.url("")), **arguments)

    return call
