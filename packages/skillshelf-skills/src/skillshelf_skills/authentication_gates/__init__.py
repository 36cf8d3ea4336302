"""Sites that want a credential: what they ask for, and a way to supply it that never shows it to the model."""

from skillshelf_skills.authentication_gates._sites import OAuthClient, Site
from skillshelf_skills.authentication_gates._vaults import (
    CommandVault,
    Credential,
    CredentialRequest,
    EnvironmentVault,
    Vault,
)

__all__ = ["CommandVault", "Credential", "CredentialRequest", "EnvironmentVault", "OAuthClient", "Site", "Vault"]
