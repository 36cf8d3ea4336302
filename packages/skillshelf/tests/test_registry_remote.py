"""Skills from sites and from Python packages, on real servers on this machine."""

import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from skillshelf.errors import RegistryError
from skillshelf.registry import (
    Origin,
    Pin,
    SkillContent,
    choose_offered,
    find_offered,
    open_source,
    parse_source,
    read_content,
    show_origin,
)

SKILL = "---\nname: {}\ndescription: Does it.\n---\n\nDo it.\n"
SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
INDEX = "/.well-known/agent-skills/index.json"
NO_PIN = Pin()


class Site(ThreadingHTTPServer):
    """Serves pages by path. The value of a page may be a redirect, as `-> address`, or cut short."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.pages: dict[str, bytes | str] = {}
        self.missing_bytes = 0
        self.requests: list[str] = []

    def put_index(self, *rows: Mapping[str, Any], path: str = INDEX, **fields: Any) -> None:
        self.pages[path] = json.dumps({"$schema": SCHEMA, "skills": rows, **fields})

    def put(self, name: str, data: bytes | str, kind: str = "skill-md", **fields: Any) -> dict[str, Any]:
        """Add the artifact of a skill, and return its row for the index."""
        data = data.encode() if isinstance(data, str) else data
        self.pages[f"/files/{name}"] = data
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        return {"name": name, "type": kind, "url": f"/files/{name}", "digest": digest, **fields}


class _Request(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        page = self.server.pages.get(self.path)
        if isinstance(page, str) and page.startswith("-> "):
            self.send_response(302)
            self.send_header("Location", page.removeprefix("-> "))
            self.end_headers()
            return
        data = page.encode() if isinstance(page, str) else page or b""
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(data) + self.server.missing_bytes))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def fetch(text: str, place: Path, pin: Pin = NO_PIN) -> tuple[Origin, Pin, dict[str, SkillContent]]:
    origin = parse_source(text, "", str(place), anywhere=False)
    with open_source(origin, pin, str(place), anywhere=False) as package:
        chosen = choose_offered(find_offered(package, origin), [skill.name for skill in find_offered(package, origin)])
        contents = {skill.name: read_content(package, skill.name, skill.path) for skill in chosen}
        return origin, package.pin, contents


def make_tar(files: Mapping[str, str], link: str = "") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            member.mode = 0o755 if path.endswith(".py") else 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
        if link:
            member = tarfile.TarInfo("link")
            member.type = tarfile.SYMTYPE
            member.linkname = link
            archive.addfile(member)
    return data.getvalue()


def make_zip(files: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return data.getvalue()


# -- sites -------------------------------------------------------------------------------------------------------------


def test_a_site_offers_files_and_archives(site: Site, tmp_path: Path) -> None:
    """Fields and types that nobody knows yet are left out, and the lock has no version: the files are pinned."""
    site.put_index(
        site.put("pdf", SKILL.format("pdf"), future=1),
        site.put("sql", make_tar({"SKILL.md": SKILL.format("sql"), "./scripts/run.py": "print()\n"}), "archive"),
        site.put("csv", make_zip({"SKILL.md": SKILL.format("csv"), "references/a.md": "A.\n"}), "archive"),
        site.put("later", "whatever", "wasm"),
    )
    origin, pin, contents = fetch(site.url, tmp_path)
    assert (origin, pin) == (Origin("web", site.url), Pin())
    assert {name: sorted(content.files) for name, content in contents.items()} == {
        "csv": ["SKILL.md", "references/a.md"],
        "pdf": ["SKILL.md"],
        "sql": ["SKILL.md", "scripts/run.py"],
    }
    assert [entry.path for entry in contents["sql"].snapshot.entries if entry.executable] == ["scripts/run.py"]


def test_the_nearest_index_counts_and_the_older_format_is_read(site: Site, tmp_path: Path) -> None:
    rows = [{"name": "pdf", "files": ["SKILL.md", "references/a b.md"]}]
    site.pages["/docs/.well-known/skills/index.json"] = json.dumps({"skills": rows})
    site.pages["/docs/.well-known/skills/pdf/SKILL.md"] = SKILL.format("pdf")
    site.pages["/docs/.well-known/skills/pdf/references/a%20b.md"] = "A.\n"
    _, _, contents = fetch(f"{site.url}/docs", tmp_path)
    assert sorted(contents["pdf"].files) == ["SKILL.md", "references/a b.md"]
    assert site.requests[:3] == [f"/docs{INDEX}", INDEX, "/docs/.well-known/skills/index.json"]
    site.put_index(site.put("root", SKILL.format("root")))
    assert list(fetch(f"{site.url}/docs", tmp_path)[2]) == ["root"]
    assert list(fetch(f"{site.url}{INDEX}", tmp_path)[2]) == ["root"], "the index itself can be named"


def test_a_redirect_is_followed_unless_it_leaves_https(site: Site, tmp_path: Path) -> None:
    site.put_index(site.put("pdf", SKILL.format("pdf")))
    site.pages["/moved" + INDEX] = f"-> {INDEX}"
    assert list(fetch(f"{site.url}/moved", tmp_path)[2]) == ["pdf"]
    site.pages[INDEX] = "-> http://example.com/index.json"
    with pytest.raises(RegistryError, match="not an https address"):
        fetch(site.url, tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": "sha256:" + "0" * 64}, "has the hash sha256:"),
        ({"digest": None, "sha256": "0" * 64}, "has no url or no digest"),
        ({"name": "../x"}, "without a usable name"),
        ({"url": "/nowhere"}, "is not there"),
        ({"url": "file:///etc/passwd"}, "not an https address"),
        ({"url": "http://[::1/x"}, "not an https address"),
    ],
)
def test_a_bad_entry_is_refused_with_the_reason(
    change: dict[str, Any], reason: str, site: Site, tmp_path: Path
) -> None:
    site.put_index({**site.put("pdf", SKILL.format("pdf")), **change})
    with pytest.raises(RegistryError, match=reason):
        fetch(site.url, tmp_path)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("<html>", "no JSON object"),
        ("[" * 100_000, "no JSON object"),
        ('{"skills": 1}', "no list of at most"),
        ('{"$schema": "https://example.com/9", "skills": []}', "cannot read"),
        ('{"skills": [{"name": "pdf"}]}', "no list of files"),
        ('{"skills": [{"name": "pdf", "files": ["../../x"]}]}', "leads out"),
        (json.dumps({"skills": [{"name": f"s{n}", "files": []} for n in range(50_000)]}), "no list of at most"),
        ('{"skills": []}', "no SKILL.md"),
    ],
    ids=range(8),
)
def test_a_bad_index_is_refused_with_the_reason(page: str, reason: str, site: Site, tmp_path: Path) -> None:
    site.pages[INDEX] = page
    with pytest.raises(RegistryError, match=reason):
        fetch(site.url, tmp_path)


@pytest.mark.parametrize(
    ("archive", "reason"),
    [
        (make_tar({"../SKILL.md": "x"}), "leads out"),
        (make_tar({"SKILL.md": SKILL.format("pdf")}, link="/etc/passwd"), "leads to no file"),
        (make_zip({"/SKILL.md": "x"}), "leads out"),
        (b"PK\x03\x04", "cannot be unpacked"),
        (b"", "cannot be unpacked"),
    ],
    ids=range(5),
)
def test_a_bad_archive_is_refused_as_one_on_disk_is(archive: bytes, reason: str, site: Site, tmp_path: Path) -> None:
    site.put_index(site.put("pdf", archive, "archive"))
    with pytest.raises(RegistryError, match=reason):
        fetch(site.url, tmp_path)


def test_a_site_without_skills_or_out_of_reach_is_named(site: Site, tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match="offers no skills"):
        fetch(site.url, tmp_path)
    site.put_index(site.put("pdf", SKILL.format("pdf")))
    site.missing_bytes = 10
    with pytest.raises(RegistryError, match="the connection ended after"):
        fetch(site.url, tmp_path)
    site.pages[INDEX] = b" " * (4 * 1024 * 1024 + 1)
    with pytest.raises(RegistryError, match="has more than"):
        fetch(site.url, tmp_path)
    with pytest.raises(RegistryError, match="cannot be fetched"):
        fetch("http://127.0.0.1:1", tmp_path)
    for text, reason in (
        ("http://example.com", "not an https"),
        ("https://ada:secret@host/x", "password"),
    ):
        with pytest.raises(RegistryError, match=reason) as caught:
            parse_source(text, "", str(tmp_path), anywhere=False)
        assert "secret" not in str(caught.value)


# -- packages ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def index(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A package index with `acme-tools`, whose wheels 1.0 and 2.0 have a skill and more."""
    links = []
    for version in ("1.0", "2.0"):
        info = f"acme_tools-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: acme-tools\nVersion: {version}\n"
        wheel = make_zip(
            {
                "acme_tools/.agents/skills/pdf/SKILL.md": SKILL.format("pdf") + version,
                "acme_tools/.agents/skills/pdf/scripts/run.py": "print()\n",
                "acme_tools/.agents/meta-skill/SKILL.md": SKILL.format("pdf"),
                "acme_tools/SKILL.md": SKILL.format("other"),
                "acme_tools/__init__.py": "",
                f"{info}/METADATA": metadata,
                f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                f"{info}/RECORD": "",
            }
        )
        name = f"acme_tools-{version}-py3-none-any.whl"
        site.pages[f"/{name}"] = wheel
        links.append(f'<a href="/{name}#sha256={hashlib.sha256(wheel).hexdigest()}">{name}</a>')
    site.pages["/simple/acme-tools/"] = f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>"
    source = '<a href="/old-1.0.tar.gz">old-1.0.tar.gz</a>'
    site.pages["/simple/old/"] = f"<!DOCTYPE html><html><body>{source}</body></html>"
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple/")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_RETRIES", "0")
    return site


@pytest.mark.usefixtures("index")
def test_a_package_offers_the_skills_in_its_wheel(tmp_path: Path) -> None:
    """Only at the exact place; and the same version again comes from the lock."""
    origin, pin, contents = fetch("pypi:acme-tools", tmp_path)
    assert (origin, pin) == (Origin("pypi", "acme-tools"), Pin(version="2.0"))
    assert {name: sorted(content.files) for name, content in contents.items()} == {
        "pdf": ["SKILL.md", "scripts/run.py"]
    }
    assert contents["pdf"].files["SKILL.md"].endswith(b"2.0")
    assert fetch("pypi:acme-tools", tmp_path, Pin(version="1.0"))[2]["pdf"].files["SKILL.md"].endswith(b"1.0")
    origin, pin, _ = fetch("pypi:acme-tools==1.0", tmp_path)
    assert (show_origin(origin), pin) == ("pypi:acme-tools@1.0", Pin(version="1.0"))


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pypi:acme-tools@9.9", "No matching distribution"),
        ("pypi:unknown", "No matching distribution"),
        ("pypi:old", "No matching distribution"),
        ("pypi:--upgrade", "does not name a package"),
        ("pypi:acme-tools@-r x", "cannot be the version"),
        ("pypi:acme tools", "does not name a package"),
    ],
)
def test_what_pip_cannot_get_without_building_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=reason):
        fetch(text, tmp_path)


def test_a_wheel_that_is_not_as_the_index_says_is_refused(index: Site, tmp_path: Path) -> None:
    index.pages["/acme_tools-2.0-py3-none-any.whl"] = make_zip({"x": "y"})
    with pytest.raises(RegistryError, match="cannot be fetched by pip"):
        fetch("pypi:acme-tools", tmp_path)
