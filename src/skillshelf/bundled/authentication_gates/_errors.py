"""What can go wrong at a site that wants a credential, in words that a model can act on."""

from skillshelf.errors import SkillError
from skillshelf.text import count_noun

_HELP = "Load the reference 'error_codes.md' for what to do about it."


class AccessError(SkillError):
    """A site cannot be used with a credential."""


class SecretInAddressError(AccessError):
    """An address has a user name or a password in it."""

    def __init__(self) -> None:
        # The address is not repeated: it holds the secret.
        super().__init__(
            "The address has a user name or a password in it. Secrets do not belong into a conversation: leave out "
            "everything up to the @, and call request_access, which gets the credential from the user's vault."
        )


class SiteNotNamedError(AccessError):
    """The user has not named a site as one that may get a credential."""

    def __init__(self, site: str, setting: str) -> None:
        self.site = site
        super().__init__(
            f"The user has not allowed credentials for {site}. Ask them whether it may have one; they allow it by "
            f"attaching the skill with it: --with authentication-gates={setting}"
        )


class CredentialMissingError(AccessError):
    """The user's vault has no credential that the site would take."""


class CredentialRefusedError(AccessError):
    """The site did not accept the credential."""

    def __init__(self, site: str, reason: str) -> None:
        self.site = site
        super().__init__(
            f"{site} did not accept the credential: {reason}. It is forgotten, and the hand-off has ended. {_HELP}"
        )


class ScopeMissingError(AccessError):
    """The credential is valid, and does not cover this request."""

    def __init__(self, site: str, scope: str) -> None:
        self.site = site
        self.scope = scope
        wanted = f"the scope {scope!r}" if scope else "another scope"
        super().__init__(
            f"{site} wants {wanted} for this. Ask the user whether you may have it, then call request_access with "
            f"that scope. {_HELP}"
        )


class AccessDeniedError(AccessError):
    """The site knows who asks, and refuses."""

    def __init__(self, site: str) -> None:
        self.site = site
        super().__init__(f"{site} accepted the credential and refused this address (status 403). {_HELP}")


class RateLimitedError(AccessError):
    """The site has had too many requests."""

    def __init__(self, site: str, seconds: int | None) -> None:
        self.site = site
        self.seconds = seconds
        wait = "Wait some minutes" if seconds is None else f"Wait {count_noun(seconds, 'second')}"
        super().__init__(f"{site} has had too many requests from here. {wait} before the next one. {_HELP}")


class SignInFailedError(AccessError):
    """A sign-in ended without a credential."""

    def __init__(self, site: str, code: str, reason: str) -> None:
        """`code` is the error of OAuth, such as `access_denied`."""
        self.site = site
        self.code = code
        super().__init__(
            f"The sign-in for {site} failed ({code}): {reason}. Load the reference 'oauth_flows.md' for what to do."
        )


class HandOffError(AccessError):
    """There is no such hand-off, or it is not for this."""
