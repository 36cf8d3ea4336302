"""Skills that a site offers in `/.well-known/agent-skills/index.json`, in version 0.2.0 or 0.1.0 of that format."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urljoin

from skillshelf.errors import RegistryError
from skillshelf.registry._local import MAX_ARCHIVE, MAX_UNPACKED, open_archive, refuse_version
from skillshelf.registry._lock import Origin, Pin, is_installable, is_safe_path
from skillshelf.registry._package import Package, PackageFile
from skillshelf.skillmd import MAX_FILE

_FOLDERS = (".well-known/agent-skills", ".well-known/skills")
_INDEX = "index.json"
_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_MAX_INDEX = 4 * 1024 * 1024
_MAX_SKILLS = 1_000


class WebSource:
    """A site with an index of skills. It has no versions: the lock pins the files."""

    name = "web"

    def parse(self, text: str, asked: str, place: str) -> Origin | None:
        if not text.startswith(("https://", "http://")):
            return None
        refuse_version(text, asked)
        from skillshelf.registry._http import check_address  # takes 40 ms, which other sources need not pay

        check_address(text)
        return Origin(self.name, text.rstrip("/"))

    @contextmanager
    def open(self, origin: Origin, pin: Pin, place: str) -> Iterator[Package]:
        yield _Site(*_find_index(origin.address))


class _Site:
    """The files of all skills in an index, each below the skill's name."""

    def __init__(self, index: str, table: Mapping[str, Any]) -> None:
        self.pin = Pin()
        self.files: dict[str, PackageFile] = {}
        self._room = MAX_UNPACKED
        rows = table.get("skills")
        schema = table.get("$schema", "")
        if not isinstance(rows, list) or len(rows) > _MAX_SKILLS:
            raise RegistryError(f"{index} has no list of at most {_MAX_SKILLS:,} skills.")
        if schema not in ("", _SCHEMA):
            raise RegistryError(f"{index} is in a format that this version cannot read: {schema!r:.200}.")
        for row in rows:
            name = row.get("name") if isinstance(row, dict) else None
            if not isinstance(name, str) or not is_installable(name):
                raise RegistryError(f"{index} has a skill without a usable name: {name!r:.80}.")
            if schema:
                self._add_artifact(index, name, row)
            else:
                self._add_files(index, name, row)

    def read(self, files: Iterable[PackageFile], limit: int) -> Iterator[bytes]:
        for file in files:
            package, member = file.handle
            if package is None:
                yield member
            else:
                yield from package.read([member], limit)

    def _add_artifact(self, index: str, name: str, row: Mapping[str, Any]) -> None:
        """Add a skill of version 0.2.0: one file or archive, with its hash."""
        kind, url, digest = (row.get(key) for key in ("type", "url", "digest"))
        if kind not in ("skill-md", "archive"):
            return
        if not isinstance(url, str) or not isinstance(digest, str):
            raise RegistryError(f"{index}: the skill {name!r} has no url or no digest, so it cannot be verified.")
        data = self._fetch(_join(index, url), MAX_FILE if kind == "skill-md" else MAX_ARCHIVE)
        found = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if found != digest:
            raise RegistryError(f"{index}: the skill {name!r} has the hash {found}, and not {digest!r:.80} as it says.")
        if kind == "skill-md":
            self._add(name, "SKILL.md", data)
            return
        package = open_archive(data, f"{name}.zip" if data.startswith(b"PK") else f"{name}.tar.gz")
        for path, file in package.files.items():
            self.files[f"{name}/{path}"] = file._replace(path=f"{name}/{path}", handle=(package, file))

    def _add_files(self, index: str, name: str, row: Mapping[str, Any]) -> None:
        """Add a skill of version 0.1.0: files beside the index, without hashes."""
        paths = row.get("files")
        if not isinstance(paths, list):
            raise RegistryError(f"{index}: the skill {name!r} has no list of files.")
        for path in paths:
            if not isinstance(path, str) or not is_safe_path(path):
                raise RegistryError(f"{index}: the skill {name!r} has a file {path!r:.200}, which leads out of it.")
            self._add(name, path, self._fetch(urljoin(index, quote(f"{name}/{path}")), MAX_ARCHIVE))

    def _add(self, name: str, path: str, data: bytes) -> None:
        self.files[f"{name}/{path}"] = PackageFile(f"{name}/{path}", handle=(None, data))

    def _fetch(self, url: str, limit: int) -> bytes:
        from skillshelf.registry._http import fetch

        data = fetch(url, min(limit, self._room))
        self._room -= len(data)
        return data


def _join(index: str, url: str) -> str:
    try:
        return urljoin(index, url)
    except ValueError:
        return url  # which is refused


def _find_index(address: str) -> tuple[str, dict[str, Any]]:
    """Return the address of a site's index, and what is in it: the nearest to the address that is there."""
    from skillshelf.registry._http import NotThere, fetch

    tried = [address] if address.endswith(f"/{_INDEX}") else []
    for folder in () if tried else _FOLDERS:
        tried += [f"{address}/{folder}/{_INDEX}", urljoin(address, f"/{folder}/{_INDEX}")]
    for url in dict.fromkeys(tried):
        try:
            data = fetch(url, _MAX_INDEX)
        except NotThere:
            continue
        try:
            table = json.loads(data)
        except (ValueError, RecursionError):
            table = None
        if not isinstance(table, dict):
            raise RegistryError(f"{url} is not an index of skills: it is no JSON object.")
        return url, table
    raise RegistryError(
        f"{address} offers no skills: there is no /{_FOLDERS[0]}/{_INDEX}. For a Git repository, give git+{address}."
    )
