"""Artefacts: the files of trials are kept beside the report under names and endings that do no harm."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from in_process import run as run_in_process
from skillshelf_agent.testing import call
from skillshelf_evals import Artefact, Case, FileState, Message, Outcome, Trace
from skillshelf_evals._artefacts import ArtefactFolder, Artefacts, LeftOut
from skillshelf_evals.report import read_run

Run = Callable[..., tuple[int, str, str]]

_SAFE_PATH = re.compile(r"artefacts/[a-z0-9-]+/\d{3}-[A-Za-z0-9._-]+")
_PNG = b"\x89PNG\r\n\x1a\n\0\0"


def trace_of(files: dict[str, bytes]) -> Trace:
    return Trace(files={name: FileState(None, True, len(data), data) for name, data in files.items()})


def keep(folder: Path, files: dict[str, bytes], trial: str = "pdf/fill#with#1") -> Artefacts:
    return ArtefactFolder(str(folder)).keep(trial, trace_of(files))


def by_name(artefacts: Artefacts) -> dict[str, Artefact]:
    return {artefact.name: artefact for artefact in artefacts.files}


def trial_that_writes(command: str, name: str = "writes") -> Case:
    return Case(name, (Message("Write."),), script=(call("run_command", command=command), "Done."))


def make(tmp_path: Path, command: str) -> Outcome:
    [outcome] = run_in_process([trial_that_writes(command)], tmp_path)
    return outcome


def write_case(tmp_path: Path, path: str, content: str) -> None:
    """Write a case file with a case that writes one file."""
    step = {"tool": "write_file", "arguments": {"path": path, "content": content}}
    case = {"name": "writes", "prompt": "go", "script": [step, "done"], "checks": [{"file_exists": path}]}
    (tmp_path / "cases.yaml").write_text(json.dumps({"cases": [case]}))


def test_files_that_a_trial_wrote_can_be_opened_beside_the_report(tmp_path: Path, run: Run) -> None:
    write_case(tmp_path, "out/a.csv", "x,y")
    code, out, err = run("eval", "cases.yaml", "--report", "report")
    assert code == 0, out + err
    [artefact] = read_run(tmp_path / "report").outcomes[0].artefacts.files
    assert (artefact.name, artefact.size, artefact.kind) == ("out/a.csv", 3, "text")
    assert (tmp_path / "report" / artefact.path).read_bytes() == b"x,y"


def test_files_of_the_case_that_did_not_change_are_not_kept(tmp_path: Path) -> None:
    case = Case("reads", (Message("Read."),), files={"in.txt": b"x"}, script=("Done.",))
    [outcome] = run_in_process([case], tmp_path)
    assert outcome.artefacts == Artefacts()
    assert not (tmp_path / "artefacts").exists()


@pytest.mark.parametrize(
    ("name", "data", "ending", "kind"),
    [
        ("notes.txt", b"Hello", ".txt", "text"),
        ("run.py", b"print(1)", ".py.txt", "text"),
        ("start.desktop", b"[Desktop Entry]", ".desktop.txt", "text"),
        ("page.html", b"<script>alert(1)</script>", ".html.txt", "html"),
        ("notes.md", b"<!DOCTYPE html><script>alert(1)</script>", ".md.txt", "html"),
        ("logo.svg", b"<svg onload='alert(1)'/>", ".svg.txt", "html"),
        ("plot.png", _PNG, ".png", "image"),
        ("plot.html", _PNG, ".html.png", "image"),
        ("page.png", b"<html></html>", ".png.txt", "html"),
        ("page.pdf", b"\0<html><script>alert(1)</script>", ".pdf.bin", "other"),
        ("sheet.xlsx", b"PK\x03\x04\0", ".xlsx", "other"),
        ("macro.xlsm", b"PK\x03\x04\0", ".xlsm.bin", "other"),
        ("setup.exe", b"MZ\0", ".exe.bin", "other"),
        ("no_ending", b"\xff\xfe", "no_ending.bin", "other"),
    ],
)
def test_the_content_decides_the_ending(tmp_path: Path, name: str, data: bytes, ending: str, kind: str) -> None:
    """A browser or a file manager must not run what the report shows as a text or an image."""
    [artefact] = keep(tmp_path, {name: data}).files
    assert artefact.path.endswith(ending)
    assert (artefact.kind, bool(artefact.view)) == (kind, kind == "html")


class _Page(HTMLParser):
    """Collects the tags of a page, its policy, and the attributes of its frame."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.frame: dict[str, str | None] = {}
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "iframe":
            self.frame = dict(attrs)
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80), st.text(max_size=30))
@settings(max_examples=30, deadline=None)
def test_an_html_file_is_an_attribute_of_a_frame_without_permissions(text: str, name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        data = f"<html>\"'></iframe><script>{text}".encode()
        [artefact] = keep(Path(place), {f"{name}.html": data}).files
        page = (Path(place) / artefact.view).read_text()
    seen = _Page()
    seen.feed(page)
    assert (seen.tags.count("script"), seen.tags.count("iframe"), seen.frame["sandbox"]) == (0, 1, "")
    assert seen.policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:; ")


@given(st.dictionaries(st.text(min_size=1, max_size=120), st.binary(max_size=20), max_size=8), st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_name_that_an_agent_chooses_leads_out_of_the_folder(files: dict[str, bytes], trial: str) -> None:
    """Every copy has a name of its own, also on a file system that ignores case, and holds what the trial wrote."""
    hostile = {"../../up": b"1", "/etc/passwd": b"2", "A.txt": b"3", "a.TXT": b"4", "\x1b[31m": b"5", "x" * 4000: b"6"}
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report"
        report.mkdir()
        kept = keep(report, {**files, **hostile}, trial)
        assert [path.name for path in Path(place).iterdir()] == ["report"]
        assert kept.left_out == ()
        paths = [artefact.path for artefact in kept.files]
        assert len({path.lower() for path in paths}) == len(files.keys() | hostile.keys())
        for artefact in kept.files:
            assert _SAFE_PATH.fullmatch(artefact.path)
            assert (report / artefact.path).read_bytes() == {**files, **hostile}[artefact.name]


def test_files_beyond_a_limit_are_left_out_with_the_reason(tmp_path: Path) -> None:
    """The outcome says how many, how large they are together, and why."""
    outcome = make(tmp_path, "mkdir d; for i in $(seq 120); do echo $i > d/$i; done; truncate -s 9M big; mkfifo pipe")
    assert len(outcome.artefacts.files) == 100
    assert outcome.artefacts.left_out == (
        LeftOut("larger than 8 MiB", 1),
        LeftOut("beyond 100 files of a trial", 20),
    )


def test_caches_and_hidden_folders_come_last(tmp_path: Path) -> None:
    kept = keep(tmp_path, {"__pycache__/a.pyc": b"\0", ".git/HEAD": b"x", "z/deep.txt": b"x", "z.txt": b"x"})
    assert [artefact.name for artefact in kept.files] == ["z.txt", "z/deep.txt", ".git/HEAD", "__pycache__/a.pyc"]


def test_a_run_keeps_no_more_than_its_limit(tmp_path: Path) -> None:
    folder = ArtefactFolder(str(tmp_path), max_size=25)
    kept = [folder.keep(f"trial {number}", trace_of({"a": b"x" * 10})) for number in range(3)]
    assert [len(artefacts.files) for artefacts in kept] == [1, 1, 0]
    assert kept[2].left_out == (LeftOut("beyond 64 MiB of a run", 1),)


def test_a_second_run_in_the_folder_removes_the_artefacts_of_the_first_and_nothing_else(tmp_path: Path) -> None:
    """The folder may be one that the user has had for long."""
    first = make(tmp_path, "echo old > a.txt").artefacts.files[0]
    mine = [tmp_path / "artefacts" / "mine" / "001-mine.txt", (tmp_path / first.path).with_name("mine.txt")]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    [outcome] = run_in_process([trial_that_writes("echo new > b.txt", "another")], tmp_path)
    assert not (tmp_path / first.path).exists()
    assert [path.read_text() for path in mine] == ["mine", "mine"]
    assert (tmp_path / outcome.artefacts.files[0].path).read_text() == "new\n"


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """A cloned repository may bring one."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    report = tmp_path / "report"
    report.mkdir()
    (report / "artefacts").symlink_to(elsewhere)
    kept = keep(report, {"a.txt": b"x"})
    assert (kept.files, list(elsewhere.iterdir())) == ((), [])
    assert kept.left_out == (LeftOut("could not be written: artefacts is a link", 1),)


def test_a_folder_that_cannot_be_written_does_not_fail_the_trial(tmp_path: Path) -> None:
    (tmp_path / "artefacts").write_text("a file of the user")
    outcome = make(tmp_path, "echo x > a.txt")
    assert outcome.status == "passed"
    [left_out] = outcome.artefacts.left_out
    assert left_out.files == 1
    assert "could not be written" in left_out.reason


_HOSTILE_PAGE = """<html><head><meta http-equiv="refresh" content="0; url=URL/refresh">
<link rel="stylesheet" href="URL/style"><style>body { background: url(URL/background) } @import "URL/import";</style>
</head><body>Shown <script>fetch("URL/script"); new Image().src = "URL/made"; top.location = "URL/top"</script>
<script src="URL/source"></script><img src="URL/image" onerror="fetch('URL/handler')"><iframe src="URL/frame"></iframe>
<object data="URL/object"></object><video src="URL/video" autoplay></video>
<form action="URL/form"><button autofocus>Send</button></form></body></html>"""


class _Requests(ThreadingHTTPServer):
    """A server on this machine that remembers the paths it was asked for."""

    def __init__(self) -> None:
        paths: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                paths.append(self.path)
                self.send_response(404)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.paths = paths


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs a browser")
def test_a_browser_runs_and_loads_nothing_of_an_html_artefact(tmp_path: Path) -> None:
    with _Requests() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = _HOSTILE_PAGE.replace("URL", f"http://127.0.0.1:{server.server_port}")
        [artefact] = keep(tmp_path, {"page.html": page.encode()}).files
        (tmp_path / "raw.html").write_text(page)
        browse(tmp_path, tmp_path / artefact.view)
        browse(tmp_path, tmp_path / artefact.path)
        asked_by_artefact = list(server.paths)
        browse(tmp_path, tmp_path / "raw.html")
        server.shutdown()
    assert asked_by_artefact == []
    assert {"/script", "/image"} <= set(server.paths), "the page as it is asks for them"


def browse(tmp_path: Path, page: Path) -> None:
    """Open a page in a browser, and wait until it is loaded."""
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    subprocess.run(
        [*browser, "--virtual-time-budget=2000", "--dump-dom", page.as_uri()],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        check=True,
        timeout=120,
    )


def test_run_json_names_the_artefacts_for_programs(tmp_path: Path, run: Run) -> None:
    write_case(tmp_path, "a.html", "<p>")
    run("eval", "cases.yaml", "--report", "report")
    [outcome] = json.loads((tmp_path / "report" / "run.json").read_text())["outcomes"]
    [artefact] = outcome["artefacts"]["files"]
    assert set(artefact) == {"name", "path", "size", "kind", "view", "by_check"}
    assert (tmp_path / "report" / artefact["view"]).exists()
