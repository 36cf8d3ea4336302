"""Where credentials come from: the user's vault, never the conversation."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from skillshelf.errors import SkillError
from skillshelf_skills.authentication_gates._redaction import MIN_SECRET
from skillshelf_skills.authentication_gates._sites import Site

_PREFIX = "SKILLSHELF_ACCESS_"
_FIELDS = ("user", "password", "token", "header", "cookie")


@dataclass(frozen=True, slots=True)
class Credential:
    """A user name with a password, a token, or a cookie. Nothing secret is in its repr."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    header: str = ""
    """The header that takes the token, such as `X-API-Key`. Without one it goes into `Authorization: Bearer`."""
    cookie: str = field(default="", repr=False)
    """The value of a `Cookie` header, from a browser in which the user has signed in."""

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.password, self.token, self.cookie)))

    def choose_scheme(self, schemes: Sequence[str]) -> str:
        """Return how this is sent to a site that takes these schemes; empty if the site takes it in no way."""
        if self.token and self.header:
            return "header"
        if self.token and {"bearer", "header"} & set(schemes):
            return "bearer" if "bearer" in schemes else "header"
        if self.cookie and "cookie" in schemes:
            return "cookie"
        if not self.password:
            return ""
        return next((scheme for scheme in ("basic", "form") if scheme in schemes), "")

    def check(self, site: str) -> None:
        """Raise SkillError if this cannot be sent, or cannot be kept out of what the model reads."""
        for secret in self.secrets:
            if len(secret) < MIN_SECRET:
                raise SkillError(
                    f"The credential for {site} has fewer than {MIN_SECRET} characters, and could not be told from "
                    f"ordinary text in an answer. Ask the user to choose a longer one."
                )
            if not secret.isprintable() or not (self.password or secret.isascii()):
                raise SkillError(
                    f"The credential for {site} has characters that cannot be sent. Ask the user to look at it in "
                    f"their vault; a line break at its end is the usual reason."
                )
        if self.header and not re.fullmatch(r"[A-Za-z0-9-]+", self.header):
            raise SkillError(f"The vault names a header for {site} that is none. Ask the user to fix it.")


@dataclass(frozen=True, slots=True)
class CredentialRequest:
    """What a site wants, for the vault. Everything but the site is the site's own words: show it, do not trust it."""

    site: Site
    schemes: tuple[str, ...]
    """What it takes: `basic`, `bearer`, `form`, `cookie`, `header`."""
    realm: str
    scope: str
    needs_user: bool = True
    """False if a password goes without a user name: the login page has no field for one."""


class Vault(Protocol):
    """Something that has credentials: a password manager, a window of your program, the environment."""

    def ask(self, request: CredentialRequest) -> Credential | None:
        """Return the credential for a site, or None if there is none. May take its time: it has a thread of its own."""
        ...

    def explain(self, request: CredentialRequest) -> str:
        """Say what the user must do so that `ask` has an answer, as a sentence for the user."""
        ...


class EnvironmentVault:
    """Credentials from environment variables, named after the site: `SKILLSHELF_ACCESS_API_EXAMPLE_TOKEN`."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def ask(self, request: CredentialRequest) -> Credential | None:
        prefix = name_variable(request.site, "")
        values = {name: self._environment.get(f"{prefix}{name.upper()}", "") for name in _FIELDS}
        credential = Credential(**values)
        if not credential.secrets or self._find_missing_user(request, credential):
            return None
        return credential

    def _find_missing_user(self, request: CredentialRequest, credential: Credential) -> str:
        """Return the variable of the user name if only that is missing. An empty one is a user without a name."""
        variable = name_variable(request.site, "USER")
        takes_password = credential.choose_scheme(request.schemes) in ("basic", "form")
        return variable if takes_password and request.needs_user and variable not in self._environment else ""

    def explain(self, request: CredentialRequest) -> str:
        password = name_variable(request.site, "PASSWORD")
        missing = self._find_missing_user(request, Credential(password=self._environment.get(password, "")))
        if missing:
            return f"Set the environment variable {missing}, which {password} needs, then start the program again."
        wanted: list[str] = []
        if {"bearer", "header"} & set(request.schemes):
            wanted.append(name_variable(request.site, "TOKEN"))
        if {"basic", "form"} & set(request.schemes):
            wanted.append(f"{name_variable(request.site, 'USER')} and {password}")
        if "cookie" in request.schemes:
            wanted.append(name_variable(request.site, "COOKIE"))
        return f"Set the environment variable {', or '.join(wanted)}, then start the program again."


def name_variable(site: Site, suffix: str) -> str:
    """Return the name of an environment variable for a site; no two sites share one.

    Ports count if they are not the usual ones. A hyphen is two underscores, and a hash tells apart what is left.
    """
    address = str(site).partition("://")[2]
    scheme = "" if site.scheme == "https" else "HTTP_"
    name = re.sub("[^A-Z0-9]", "_", address.replace("-", "__").upper())
    if re.search(r"^http\.|[^a-z0-9.-]", site.host):
        name += f"_{hashlib.sha256(str(site).encode()).hexdigest()[:8].upper()}"
    return f"{_PREFIX}{scheme}{name}_{suffix}"


class CommandVault:
    """Credentials from a program of the user's, such as a password manager.

    `{host}`, `{site}` and `{scope}` in its arguments are filled in; no shell is involved. It prints a token or a
    password alone, or a JSON object with `user`, `password`, `token`, `header` or `cookie`.
    """

    def __init__(self, arguments: Sequence[str], *, user: str = "", seconds: float = 60.0) -> None:
        """With `user`, a bare line of output is that user's password; otherwise it is a token."""
        self._arguments = tuple(arguments)
        self._user = user
        self._seconds = seconds

    def ask(self, request: CredentialRequest) -> Credential | None:
        import subprocess

        values = {"{host}": request.site.host, "{site}": str(request.site), "{scope}": request.scope}
        arguments = [_fill(argument, values) for argument in self._arguments]
        try:
            done = subprocess.run(
                arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=self._seconds, check=False
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            # Neither its arguments nor its output are repeated: both may hold what they should not.
            reason = "did not answer in time" if isinstance(error, subprocess.TimeoutExpired) else "cannot be run"
            raise SkillError(
                f"The user's vault, the program {arguments[0]!r}, {reason}. Ask the user to look at it."
            ) from None
        output = done.stdout.strip()
        if done.returncode or not output:
            return None
        return self._read(output)

    def explain(self, request: CredentialRequest) -> str:
        return f"Put a credential for {request.site} where {self._arguments[0]} finds it."

    def _read(self, output: str) -> Credential | None:
        import json

        try:
            values = json.loads(output)
        except ValueError:
            values = output
        if isinstance(values, dict):
            credential = Credential(**{name: str(values[name]) for name in _FIELDS if values.get(name)})
            return credential if credential.secrets else None
        line = output.splitlines()[0].strip()
        return Credential(user=self._user, password=line) if self._user else Credential(token=line)


def _fill(argument: str, values: Mapping[str, str]) -> str:
    """Fill in placeholders, each once: a value is never read as another placeholder."""
    return re.sub(r"\{(?:host|site|scope)\}", lambda match: values[match[0]], argument)
