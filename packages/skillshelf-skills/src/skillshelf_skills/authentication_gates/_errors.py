"""What can go wrong at a site that wants a credential, in words that a model can act on."""

from skillshelf.errors import GuidedError, SkillError


class SecretInAddressError(SkillError):
    """An address has a user name or a password in it."""

    def __init__(self) -> None:
        # The address is not repeated: it holds the secret.
        super().__init__(
            "The address has a user name or a password in it. Secrets do not belong into a conversation: leave out "
            "everything up to the @, and call request_access, which gets the credential from the user's vault."
        )


class SignInFailedError(GuidedError):
    """A sign-in ended without a credential."""

    def __init__(self, site: str, code: str, reason: str) -> None:
        """`code` is the error of OAuth, such as `access_denied`."""
        self.code = code
        super().__init__(f"The sign-in for {site} failed ({code}): {reason}.", reference="oauth_flows.md")
