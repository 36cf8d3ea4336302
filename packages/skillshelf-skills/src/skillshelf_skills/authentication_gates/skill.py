"""Sites that want a credential. The user or a vault supplies it; the model never sees it."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, TypeVar

from skillshelf.errors import SkillError, ToolFailedError
from skillshelf.skills import AskUser, BaseSkill, tool
from skillshelf_skills.authentication_gates._redaction import Redactor
from skillshelf_skills.authentication_gates._sites import Site

if TYPE_CHECKING:
    from skillshelf_skills.authentication_gates._broker import Broker, HandOff
    from skillshelf_skills.authentication_gates._gates import ProbeResult
    from skillshelf_skills.authentication_gates._sites import OAuthClient
    from skillshelf_skills.authentication_gates._vaults import Vault
    from skillshelf_skills.net import NetworkRules

Result = TypeVar("Result")

_MAX_TEXT = 50_000
_MAX_READ = 1_000_000
"""Characters of a page in which secrets are looked for. What comes after them is left out."""
_MAX_WAIT = 120


class GateCard(TypedDict):
    """What a site wants. Realm, scope, title and issuers are the site's own words."""

    site: str
    """Where the credential would go."""
    schemes: list[str]
    """What it takes: basic, bearer, header, form, cookie."""
    unsupported: list[str]
    """What it takes besides, and this skill cannot send."""
    realm: str
    scope: str
    error: str
    login_page: str
    issuers: list[str]
    """The OAuth issuers that the site names."""
    is_allowed: bool
    """True if the user allowed a credential for the site."""


class Access(TypedDict):
    """How a site stands to a request without a credential."""

    state: Literal["open", "needs-credential", "forbidden", "rate-limited", "missing", "failed"]
    url: str
    """The address after redirects."""
    status: int
    retry_after_seconds: int | None
    gate: GateCard | None


class HandOffCard(TypedDict):
    """A hand-off to the user. There is no secret in it."""

    handoff: str
    state: Literal["ready", "waiting"]
    site: str
    realm: str
    scope: str
    user_action: str
    """What the user must do; pass it on word for word. Empty if the hand-off is ready."""
    expires_in_seconds: int | None


class FetchedPage(TypedDict):
    """An answer that a site gave to a credential. Secrets in it are replaced by `[*]`."""

    url: str
    status: int
    media_type: str
    text: str
    is_whole: bool


class AuthenticationGatesSkill(BaseSkill):
    name = "authentication-gates"
    description = (
        "Get past 401 and 403 answers and login pages without seeing a secret: find out what a site wants, have the "
        "user or their vault supply it, fetch with it. Use when an address needs a password, a token or a sign-in."
    )
    category = "raw"
    references = ("references/error_codes.md", "references/oauth_flows.md", "references/login_walls.md")
    instructions = """
    Call `check_access` with the address. If its state is `needs-credential`, call `request_access`, and then
    `fetch_with_access` with the id of the hand-off. If the hand-off is `waiting`, give the user its `user_action` word
    for word, and call `finish_access` when they have done it. Never ask for a password, token or code, and do not use
    one that the user pastes: tell them to change it and to put the new one into their vault. `[*]` in an answer stands
    for a secret.

    - A status, a scheme or a refusal that you do not know: load the reference `error_codes.md`.
    - Before a hand-off with a link or a code, or after a failed sign-in: load the reference `oauth_flows.md`.
    - A page is a login page, or `unsupported` is not empty: load the reference `login_walls.md`.
    """

    def __init__(
        self,
        sites: "Iterable[str] | Mapping[str, OAuthClient | None]" = (),
        *,
        vault: "Vault | None" = None,
        rules: "NetworkRules | None" = None,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        """Connect to nothing yet.

        `sites` may get credentials: `api.example` (HTTPS), `http://localhost:8080`; a mapping gives a site its OAuth
        client. Credentials come from `vault`, by default from environment variables. `rules` are the network rules, by
        default with the sites and their issuers allowed. `sleep` waits between two questions to an issuer.
        """
        clients = sites if isinstance(sites, Mapping) else dict.fromkeys(sites)
        self._sites = {Site.parse(name): client for name, client in clients.items()}
        self._vault = vault
        self._rules = rules
        self._sleep = sleep
        self._redactor = Redactor()
        self.ask_user: AskUser | None = None
        # Copies of the skill, as `with_policy` makes them, share their hand-offs.
        self._shared: dict[str, Broker] = {}

    @classmethod
    def from_setting(cls, setting: str) -> Self:
        """Return the skill for `SITE,SITE=CLIENT_ID@ISSUER`. Looking is free; every use of a credential asks."""
        if setting:
            from skillshelf_skills.authentication_gates._sites import parse_sites

            skill = cls({str(site): client for site, client in parse_sites(setting).items()})
        else:
            skill = cls()
        return skill.with_policy(
            {"check_access": "safe", "request_access": "ask", "finish_access": "safe", "fetch_with_access": "ask"}
        )

    @tool
    async def check_access(self, url: str) -> Access:
        """Find out whether an address can be read, and what its site wants first. Sends no credential.

        Args:
            url: The address, without a user name or password in it.
        """
        return await self._shield("check_access", self._check(url))

    @tool
    async def request_access(
        self, url: str, scope: str = "", flow: Literal["auto", "device", "browser"] = "auto"
    ) -> HandOffCard:
        """Have the user's vault supply what a site wants. Returns a hand-off, never the secret.

        Args:
            url: The address that needs a credential.
            scope: What to ask for, if the site named a scope when it refused; otherwise leave it out.
            flow: For OAuth: sign in on another device with a code, or in a browser on this machine.
        """
        return await self._shield("request_access", self._request(url, scope, flow))

    @tool
    async def finish_access(self, handoff: str, seconds: int = 60) -> HandOffCard:
        """Go on with a hand-off that was waiting, after the user has acted.

        Args:
            handoff: The id of the hand-off.
            seconds: How long to wait for the user, up to 120.
        """
        return await self._shield("finish_access", self._finish(handoff, seconds))

    @tool
    async def fetch_with_access(self, url: str, handoff: str, limit: int = 20_000) -> FetchedPage:
        """Read an address with a credential. It goes to the site of the hand-off and nowhere else.

        Args:
            url: The address, on the site of the hand-off.
            handoff: The id of a hand-off that is ready.
            limit: The maximum number of characters, up to 50,000.
        """
        return await self._shield("fetch_with_access", self._fetch(url, handoff, limit))

    async def _check(self, url: str) -> Access:
        fetched, answer = await self._broker.probe(url)
        return Access(
            state=answer.state,
            url=fetched.url,
            status=fetched.status,
            retry_after_seconds=answer.retry_after,
            gate=await self._describe_gate(answer),
        )

    async def _describe_gate(self, answer: "ProbeResult") -> GateCard | None:
        gate = answer.gate
        if gate is None:
            return None
        return GateCard(
            site=str(gate.site),
            schemes=list(gate.schemes),
            unsupported=list(gate.unsupported),
            realm=gate.realm,
            scope=gate.scope,
            error=gate.error,
            login_page=gate.login_form.page if gate.login_form else "",
            issuers=list(await self._broker.find_issuers(gate)),
            is_allowed=self._broker.names(gate.site),
        )

    async def _request(self, url: str, scope: str, flow: Literal["auto", "device", "browser"]) -> HandOffCard:
        return _describe_handoff(await self._broker.request(url, scope.strip(), flow))

    async def _finish(self, handoff: str, seconds: int) -> HandOffCard:
        return _describe_handoff(await self._broker.finish(handoff, max(0, min(seconds, _MAX_WAIT))))

    async def _fetch(self, url: str, handoff: str, limit: int) -> FetchedPage:
        fetched = await self._broker.fetch(url, handoff)
        is_whole = fetched.is_whole and len(fetched.text) <= _MAX_READ
        text = self._redactor.redact_text(fetched.text[:_MAX_READ])
        if not is_whole:
            text = text[: max(0, len(text) - self._redactor.longest)]  # the cut may have gone through a secret
        room = max(1, min(limit, _MAX_TEXT))
        return FetchedPage(
            url=fetched.url,
            status=fetched.status,
            media_type=fetched.media_type,
            text=text[:room],
            is_whole=is_whole and len(text) <= room,
        )

    async def _shield(self, tool_name: str, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of a tool without secrets. Its errors have none either, nor what led to them."""
        failure: SkillError
        try:
            return self._redactor.redact(await work)
        except SkillError as error:
            failure = error
        except Exception as error:
            failure = ToolFailedError(tool_name, error)
            failure.error = None  # type: ignore[assignment]  # it may hold a secret in its own fields
        self._redactor.redact_error(failure)
        raise failure

    @property
    def _broker(self) -> "Broker":
        if not self._shared:
            import anyio  # with the broker, for the first call of a tool

            from skillshelf_skills.authentication_gates._broker import Broker
            from skillshelf_skills.authentication_gates._sites import find_hosts
            from skillshelf_skills.authentication_gates._vaults import EnvironmentVault
            from skillshelf_skills.net import NetworkRules

            vault = self._vault or EnvironmentVault()

            clients = [client for client in self._sites.values() if client is not None]
            rules = self._rules or NetworkRules.allowing(find_hosts(self._sites, clients))
            sleep = self._sleep or anyio.sleep
            self._shared["broker"] = Broker(self._sites, vault, rules, self._redactor, sleep, self.ask_user)
        return self._shared["broker"]


def _describe_handoff(handoff: "HandOff") -> HandOffCard:
    sign_in = handoff.sign_in
    scope = sign_in.tokens.scope if sign_in and sign_in.tokens else ""
    return HandOffCard(
        handoff=handoff.id,
        state="ready" if handoff.is_ready else "waiting",
        site=str(handoff.site),
        realm=handoff.gate.realm,
        scope=scope or handoff.scope,
        user_action=handoff.user_action,
        expires_in_seconds=handoff.seconds_left,
    )
