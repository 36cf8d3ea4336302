"""The broker: between a model, which names addresses, and a vault, which has the credentials for them."""

import base64
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import anyio
import anyio.to_thread

from skillshelf.errors import FetchFailedError, GuidedError, SkillError
from skillshelf.skills import AskUser
from skillshelf.text import count_noun
from skillshelf_skills.authentication_gates._errors import SignInFailedError
from skillshelf_skills.authentication_gates._gates import AuthenticationGate, ProbeResult, classify, next_location
from skillshelf_skills.authentication_gates._listener import RedirectListener
from skillshelf_skills.authentication_gates._login_pages import find_login_form
from skillshelf_skills.authentication_gates._oauth import (
    CodeRequest,
    DeviceCode,
    Endpoints,
    Issuer,
    Tokens,
    find_issuers,
)
from skillshelf_skills.authentication_gates._redaction import Redactor
from skillshelf_skills.authentication_gates._sites import OAuthClient, Site
from skillshelf_skills.authentication_gates._vaults import Credential, CredentialRequest, Vault
from skillshelf_skills.authentication_gates._wire import Wire, parse_cookie_header, read_cookies
from skillshelf_skills.net import Fetched, NetworkRules

Flow = Literal["auto", "device", "browser"]
Sleep = Callable[[float], Awaitable[None]]

_MAX_HANDOFFS = 50
_BROWSER_SECONDS = 600.0
_MIN_COOKIE = 6
"""Shorter cookies are choices, such as a language, and never sessions."""
# What a site that answers 403 or 404 to strangers usually takes: it does not say.
_UNSAID_SCHEMES = ("bearer", "header", "basic")


@dataclass(slots=True)
class OAuthSignIn:
    """A sign-in at an issuer, begun or done."""

    issuer: Issuer
    endpoints: Endpoints
    device: DeviceCode | None = None
    request: CodeRequest | None = None
    listener: RedirectListener | None = None
    tokens: Tokens | None = None


@dataclass(slots=True, repr=False)
class HandOff:
    """A request for a credential, and later the credential itself: for one site and one scope."""

    id: str
    gate: AuthenticationGate
    scope: str
    scheme: str = ""
    """How the credential is sent; empty as long as there is none."""
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    sign_in: OAuthSignIn | None = None
    user_action: str = ""
    """What the user must do before it goes on."""

    @property
    def site(self) -> Site:
        return self.gate.site

    @property
    def is_ready(self) -> bool:
        """True if there is a credential to send."""
        return bool(self.headers or self.cookies)

    @property
    def seconds_left(self) -> int | None:
        """How long the user has to act; None if there is no limit, or nothing left to do."""
        if self.is_ready or self.sign_in is None:
            return None
        if self.sign_in.device is not None:
            return max(0, round(self.sign_in.device.expires_at - time.monotonic()))
        return round(self.sign_in.listener.seconds_left) if self.sign_in.listener else None

    def __repr__(self) -> str:
        return f"<HandOff {self.id} for {self.site}>"

    def headers_for(self, url: str) -> dict[str, str]:
        """Return what goes with a request to an address: nothing if it is not on the site."""
        if Site.of(url) != self.site:
            return {}
        headers = dict(self.headers)
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return headers


class Broker:
    """Gets credentials from the vault, keeps them in memory, and sends each to its own site."""

    def __init__(
        self,
        sites: Mapping[Site, OAuthClient | None],
        vault: Vault,
        rules: NetworkRules,
        redactor: Redactor,
        sleep: Sleep = anyio.sleep,
        ask_user: AskUser | None = None,
    ) -> None:
        """`ask_user` asks for what the vault does not have."""
        self._sites = dict(sites)
        self._vault = vault
        self._wire = Wire(rules)
        self._redactor = redactor
        self._sleep = sleep
        self._ask_user = ask_user
        self._handoffs: dict[str, HandOff] = {}
        self._numbers = itertools.count(1)

    def names(self, site: Site) -> bool:
        """Return True if the user named the site."""
        return site in self._sites

    # -- looking ------------------------------------------------------------------------------------------------------

    async def probe(self, url: str) -> tuple[Fetched, ProbeResult]:
        """Return a site's answer to a stranger, and what it means."""
        Site.of(url)
        fetched = await self._wire.probe(url)
        return fetched, classify(fetched)

    async def find_issuers(self, gate: AuthenticationGate) -> tuple[str, ...]:
        """Return the OAuth issuers that a site names. They are its own words."""
        if not gate.resource_metadata:
            return ()
        try:
            return await find_issuers(self._wire, gate.resource_metadata)
        except FetchFailedError:
            return ()

    # -- asking -------------------------------------------------------------------------------------------------------

    async def request(self, url: str, scope: str, flow: Flow) -> HandOff:
        """Return a hand-off for what a site wants: ready if the vault has it, otherwise waiting for the user."""
        fetched, answer = await self.probe(url)
        gate = answer.gate
        if gate is None and answer.state in ("forbidden", "missing"):
            gate = AuthenticationGate(Site.of(fetched.url), fetched.url, _UNSAID_SCHEMES)
        if gate is None:
            raise GuidedError(
                f"{Site.of(fetched.url)} asks for no credential here (status {fetched.status}, {answer.state})."
            )
        if gate.site not in self._sites:
            raise SkillError(
                f"The user has not allowed credentials for {gate.site}. Ask them whether it may have one; they allow "
                f"it by attaching the skill with it: --with authentication-gates={gate.site.setting}"
            )

        wanted = scope or gate.scope
        for known in self._handoffs.values():
            if (known.site, known.scope) == (gate.site, wanted) and known.is_ready and known.scheme in gate.schemes:
                return known
        handoff = HandOff(f"handoff-{next(self._numbers)}", gate, wanted)
        client = self._sites[gate.site]
        if client is not None and "bearer" in gate.schemes:
            await self._start_sign_in(handoff, client, flow)
        else:
            await self._ask_vault(handoff)
        self._keep(handoff)
        return handoff

    def _keep(self, handoff: HandOff) -> None:
        self._handoffs[handoff.id] = handoff
        while len(self._handoffs) > _MAX_HANDOFFS:
            self._forget(next(iter(self._handoffs.values())))

    def _forget(self, handoff: HandOff) -> None:
        self._handoffs.pop(handoff.id, None)
        handoff.headers.clear()
        handoff.cookies.clear()
        if handoff.sign_in and handoff.sign_in.listener:
            handoff.sign_in.listener.stop()

    def find(self, handoff_id: str) -> HandOff:
        """Return a hand-off by its id."""
        try:
            return self._handoffs[handoff_id]
        except KeyError:
            raise SkillError(
                "There is no such hand-off, or it has ended. Call request_access with the address for a new one."
            ) from None

    async def finish(self, handoff_id: str, seconds: float) -> HandOff:
        """Go on with a hand-off that waits for the user, for so many seconds at most."""
        handoff = self.find(handoff_id)
        if handoff.is_ready:
            return handoff
        if handoff.sign_in is None:
            await self._ask_vault(handoff)
            return handoff
        try:
            tokens = await self._await_tokens(handoff.sign_in, seconds)
        except SignInFailedError:
            self._forget(handoff)
            raise
        if tokens is not None:
            self._use_tokens(handoff, tokens)
        return handoff

    # -- the vault ----------------------------------------------------------------------------------------------------

    async def _ask_vault(self, handoff: HandOff) -> None:
        gate = handoff.gate
        if not gate.schemes:
            raise GuidedError(f"{gate.site} takes {' or '.join(gate.unsupported)} only, which this skill cannot send.")
        needs_user = gate.login_form is None or bool(gate.login_form.user_field)
        request = CredentialRequest(gate.site, gate.schemes, gate.realm, handoff.scope, needs_user)
        credential = await anyio.to_thread.run_sync(self._vault.ask, request)
        if self._ask_user is not None and not (credential and credential.choose_scheme(gate.schemes)):
            credential = await _ask_for_credential(self._ask_user, request) or credential
        if credential is None:
            handoff.user_action = self._vault.explain(request)
            return

        self._redactor.add(*credential.secrets)
        credential.check(str(gate.site))
        scheme = credential.choose_scheme(gate.schemes)
        if scheme in ("bearer", "header"):
            name = credential.header or "Authorization"
            handoff.headers[name] = credential.token if credential.header else f"Bearer {credential.token}"
        elif scheme == "cookie":
            handoff.cookies |= parse_cookie_header(credential.cookie)
            self._hide_cookies(handoff)
        elif scheme == "basic":
            handoff.headers["Authorization"] = self._make_basic(credential, str(gate.site))
        elif scheme == "form":
            try:
                await self._sign_in_with_form(handoff, credential)
            except SkillError:
                handoff.cookies.clear()  # those of a stranger
                raise
        else:
            raise SkillError(
                f"The user's vault has a credential for {gate.site}, but not of a kind that the site takes: "
                f"{', '.join(gate.schemes)}. {self._vault.explain(request)}"
            )
        handoff.scheme = scheme
        handoff.user_action = ""

    def _hide_cookies(self, handoff: HandOff) -> None:
        values = handoff.cookies.values()
        self._redactor.add(*(value for value in values if len(value) >= _MIN_COOKIE))

    def _make_basic(self, credential: Credential, site: str) -> str:
        if ":" in credential.user:
            raise SkillError(f"The user name for {site} has a colon, which basic authentication forbids.")
        pair = f"{credential.user}:{credential.password}"
        encoded = base64.b64encode(pair.encode()).decode()
        self._redactor.add(pair, encoded)
        return f"Basic {encoded}"

    async def _sign_in_with_form(self, handoff: HandOff, credential: Credential) -> None:
        """Fill in the login form, and keep the cookies of the session. The page is fetched anew, for its cookies."""
        site = str(handoff.site)
        known = handoff.gate.login_form
        if known is None:
            raise GuidedError(f"{site} shows no form to sign in with.", reference="login_walls.md")
        page = await self._follow(known.page, handoff)
        form = find_login_form(page.text, page.url, is_refused=True)
        if form is None or not form.password_field or Site.of(form.action) != handoff.site:
            raise GuidedError(
                f"The login page of {site} has changed, and is no longer a form that can be filled in.",
                reference="login_walls.md",
            )
        fields = {**form.hidden_fields, form.password_field: credential.password}
        if form.user_field:
            fields[form.user_field] = credential.user
        await self._follow(form.action, handoff, form=fields)

        answer = classify(await self._follow(handoff.gate.url, handoff))
        if answer.state == "needs-credential" or not handoff.cookies:
            self._forget(handoff)
            raise _refused_credential(site, "it shows its login page again")

    # -- OAuth --------------------------------------------------------------------------------------------------------

    async def _start_sign_in(self, handoff: HandOff, client: OAuthClient, flow: Flow) -> None:
        site = str(handoff.site)
        issuers = await self.find_issuers(handoff.gate)
        if issuers and client.issuer.rstrip("/") not in [issuer.rstrip("/") for issuer in issuers]:
            raise SignInFailedError(
                site, "issuer_mismatch", f"the site wants {', '.join(issuers)}, and the user named {client.issuer}"
            )
        issuer = Issuer(self._wire, client, handoff.site)
        endpoints = await issuer.discover()
        sign_in = OAuthSignIn(issuer, endpoints)
        if endpoints.device and flow != "browser":
            device = await issuer.start_device(endpoints, handoff.scope)
            self._redactor.add(device.secret)
            sign_in.device = device
            handoff.user_action = f"Open {device.link} in a browser, and enter the code {device.user_code} there."
        elif endpoints.authorization and flow != "device":
            request = CodeRequest()
            self._redactor.add(request.state, request.verifier)
            listener = RedirectListener(
                lambda redirect: request.make_link(endpoints, client, handoff.scope, redirect),
                state=request.state,
                issuer=endpoints.issuer if endpoints.names_issuer else "",
                seconds=_BROWSER_SECONDS,
            )
            sign_in.request = request
            sign_in.listener = listener
            handoff.user_action = f"Open {listener.start_page} in a browser on this machine, and sign in."
        else:
            raise SignInFailedError(site, "unsupported_grant_type", f"the issuer does not offer the flow {flow!r}")
        handoff.sign_in = sign_in

    async def _await_tokens(self, sign_in: OAuthSignIn, seconds: float) -> Tokens | None:
        if sign_in.device is not None:
            return await self._poll_device(sign_in, sign_in.device, seconds)
        listener = sign_in.listener
        request = sign_in.request
        if listener is None or request is None:
            return None
        ended = await anyio.to_thread.run_sync(listener.wait, seconds, abandon_on_cancel=True)
        if not ended:
            return None
        if not listener.code:
            raise sign_in.issuer.explain(listener.error or "expired_token")
        self._redactor.add(listener.code)
        return await sign_in.issuer.exchange_code(sign_in.endpoints, request, listener.code, listener.redirect)

    async def _poll_device(self, sign_in: OAuthSignIn, device: DeviceCode, seconds: float) -> Tokens | None:
        """Poll in the rhythm that the issuer asks for: a pause before each question, also the first."""
        waited = 0.0
        while True:
            await self._sleep(device.interval)
            waited += device.interval
            tokens = await sign_in.issuer.poll_device(sign_in.endpoints, device)
            if tokens is not None or waited + device.interval > seconds:
                return tokens

    def _use_tokens(self, handoff: HandOff, tokens: Tokens) -> None:
        self._redactor.add(tokens.access, tokens.refresh)
        if handoff.sign_in is not None:
            handoff.sign_in.tokens = tokens
        handoff.headers["Authorization"] = f"Bearer {tokens.access}"
        handoff.scheme = "bearer"
        handoff.user_action = ""

    async def _refresh(self, handoff: HandOff) -> bool:
        """Return True if there are new tokens."""
        sign_in = handoff.sign_in
        if sign_in is None or sign_in.tokens is None or not sign_in.tokens.refresh:
            return False
        try:
            self._use_tokens(handoff, await sign_in.issuer.refresh(sign_in.endpoints, sign_in.tokens))
        except SignInFailedError:
            return False
        return True

    # -- fetching -----------------------------------------------------------------------------------------------------

    async def fetch(self, url: str, handoff_id: str) -> Fetched:
        """Get an address with the credential of a hand-off. Raises SkillError if the site refuses."""
        handoff = self.find(handoff_id)
        if Site.of(url) != handoff.site:
            raise SkillError(
                f"This hand-off is for {handoff.site}, and its credential goes nowhere else. Call request_access with "
                f"the other address."
            )
        if not handoff.is_ready:
            raise SkillError("The user has not supplied this credential yet. Call finish_access first.")
        fetched = await self._follow(url, handoff)
        if fetched.status == 401 and await self._refresh(handoff):
            fetched = await self._follow(url, handoff)
        self._check_answer(handoff, fetched)
        return fetched

    def _check_answer(self, handoff: HandOff, fetched: Fetched) -> None:
        site = Site.of(fetched.url)
        answer = classify(fetched)
        if answer.state == "rate-limited":
            seconds = answer.retry_after
            wait = "Wait some minutes" if seconds is None else f"Wait {count_noun(seconds, 'second')}"
            raise GuidedError(f"{site} has had too many requests from here. {wait} before the next one.")
        if site != handoff.site:
            return  # another site's answer says nothing about this credential
        if answer.gate is not None and answer.gate.error == "insufficient_scope":
            wanted = f"the scope {answer.gate.scope!r}" if answer.gate.scope else "another scope"
            raise GuidedError(
                f"{site} wants {wanted} for this. Ask the user whether you may have it, then call request_access with "
                f"that scope."
            )
        if answer.state == "needs-credential":
            reason = answer.gate.error if answer.gate and answer.gate.error else f"status {fetched.status}"
            self._forget(handoff)
            raise _refused_credential(str(site), reason)
        if answer.state == "forbidden":
            raise GuidedError(f"{site} accepted the credential and refused this address (status 403).")

    async def _follow(self, url: str, handoff: HandOff, form: Mapping[str, str] | None = None) -> Fetched:
        """Get an address through its redirects. Only requests to the hand-off's own site carry the credential."""
        first = url
        passed: list[str] = []
        deadline = time.monotonic() + self._wire.rules.seconds
        while len(passed) <= self._wire.rules.max_redirects and time.monotonic() < deadline:
            fetched = await self._wire.send(url, headers=handoff.headers_for(url), form=form)
            if Site.of(url) == handoff.site:
                read_cookies(fetched, handoff.cookies)
                self._hide_cookies(handoff)
            location = next_location(fetched)
            if location is None:
                return Fetched(
                    fetched.url, fetched.status, fetched.headers, fetched.body, fetched.is_whole, tuple(passed)
                )
            self._check_redirect(handoff, location)
            if fetched.status not in (307, 308):
                form = None
            elif form is not None and Site.of(location) != handoff.site:
                raise FetchFailedError(first, "it sends what was filled in on to another site, which is not followed")
            passed.append(url)
            url = location
        raise FetchFailedError(first, "it redirects too often, or takes too long")

    def _check_redirect(self, handoff: HandOff, location: str) -> None:
        """Refuse a redirect that would carry a secret elsewhere in its address."""
        if Site.of(location) != handoff.site and self._redactor.finds_secret(location):
            raise FetchFailedError(str(handoff.site), "it redirects to another site with the credential in the address")


async def _ask_for_credential(ask: AskUser, request: CredentialRequest) -> Credential | None:
    """Have the user type a credential, or return None if they do not. Only the site is named: the rest is its word."""
    if {"bearer", "header"} & set(request.schemes):
        token = await ask(f"Token for {request.site}", hidden=True)
        if token:
            return Credential(token=token)
    if {"basic", "form"} & set(request.schemes):
        user = await ask(f"User name for {request.site}", hidden=False) if request.needs_user else ""
        if user or not request.needs_user:
            password = await ask(f"Password for {request.site}", hidden=True)
            return Credential(user=user, password=password) if password else None
    return None


def _refused_credential(site: str, reason: str) -> SkillError:
    return GuidedError(f"{site} did not accept the credential: {reason}. It is forgotten, and the hand-off has ended.")
