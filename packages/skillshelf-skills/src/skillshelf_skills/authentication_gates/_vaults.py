"""Where credentials come from: the user's vault, never the conversation."""

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
        return credential if credential.secrets else None

    def explain(self, request: CredentialRequest) -> str:
        wanted: list[str] = []
        if {"bearer", "header"} & set(request.schemes):
            wanted.append(name_variable(request.site, "TOKEN"))
        if {"basic", "form"} & set(request.schemes):
            user = name_variable(request.site, "USER")
            password = name_variable(request.site, "PASSWORD")
            wanted.append(f"{user} and {password}")
        if "cookie" in request.schemes:
            wanted.append(name_variable(request.site, "COOKIE"))
        return f"Set the environment variable {', or '.join(wanted)}, then start the program again."


def name_variable(site: Site, suffix: str) -> str:
    """Return the name of an environment variable for a site. Ports count if they are not the usual ones."""
    address = str(site).partition("://")[2]
    scheme = "" if site.scheme == "https" else "HTTP_"
    return f"{_PREFIX}{scheme}{re.sub('[^A-Z0-9]', '_', address.upper())}_{suffix}"


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
