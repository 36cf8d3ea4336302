"""Sites that want a credential: what they ask for, and a way to supply it that never shows it to the model."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily

if TYPE_CHECKING:
    from skillshelf.bundled.authentication_gates._clients import OAuthClient
    from skillshelf.bundled.authentication_gates._sites import Site
    from skillshelf.bundled.authentication_gates._vaults import (
        CommandVault,
        Credential,
        CredentialRequest,
        EnvironmentVault,
        Vault,
    )

__all__ = ["CommandVault", "Credential", "CredentialRequest", "EnvironmentVault", "OAuthClient", "Site", "Vault"]

__getattr__ = export_lazily(
    __name__,
    {
        "_clients": ["OAuthClient"],
        "_sites": ["Site"],
        "_vaults": ["CommandVault", "Credential", "CredentialRequest", "EnvironmentVault", "Vault"],
    },
)
