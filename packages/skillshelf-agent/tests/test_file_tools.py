"""The agent's file tools, as the model calls them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import BinaryContent

from agent_kit import agent, of, requests, say
from repository import REPO
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.filetools import PROTECTED_NAMES, FileAccess, FileTools
from skillshelf_agent.testing import call

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


def use(root: Path, *calls: Any) -> list[ToolReturned]:
    """Make these calls one after the other, and return their results."""
    core = agent(root, *calls, "done")
    return of(say(core, "go"), ToolReturned)


def result(root: Path, tool: str, **arguments: Any) -> str:
    (returned,) = use(root, call(tool, **arguments))
    assert returned.ok, returned.text
    return returned.text


def refusal(root: Path, tool: str, **arguments: Any) -> str:
    (returned,) = use(root, call(tool, **arguments))
    assert not returned.ok, returned.text
    return returned.text


def test_a_text_is_read_with_line_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree")
    assert result(tmp_path, "read_file", path="a.txt") == "[a.txt | 3 lines]\n     1\tone\n     2\ttwo\n     3\tthree\n"
    assert result(tmp_path, "read_file", path=f"{tmp_path}/a.txt", offset=2).splitlines()[1:] == ["     3\tthree"]


def test_a_page_says_where_to_continue(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {number}\n" for number in range(5000)))
    first = result(tmp_path, "read_file", path="a.txt").splitlines()
    assert first[0] == "[a.txt | 5000 lines | 48890 bytes]"
    assert first[-1] == "... (3000 more lines. Use offset=2000 to continue reading.)"
    second = result(tmp_path, "read_file", path="a.txt", offset=2000, limit=1).splitlines()
    assert second[1] == "  2001\tline 2000"
    assert "offset=2001" in second[2]


def test_pages_of_long_lines_join_to_the_whole_file(tmp_path: Path) -> None:
    lines = [f"{number} " + "ä" * (number % 700) for number in range(600)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    read: list[str] = []
    while len(read) < len(lines):
        page = result(tmp_path, "read_file", path="a.txt", offset=len(read))
        assert len(page) < 51_000
        read += [line.partition("\t")[2] for line in page.splitlines() if line[:6].strip().isdigit()]
    assert read == lines


def test_a_line_that_is_longer_than_a_page_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 200_000 + "\nnext\n")
    page = result(tmp_path, "read_file", path="a.txt")
    assert len(page) < 51_000
    assert "Use offset=1" in page
    assert "next" in result(tmp_path, "read_file", path="a.txt", offset=1)


def test_an_empty_file_and_an_offset_behind_the_end_are_reported(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "a.txt").write_text("one\n")
    assert "(empty file)" in result(tmp_path, "read_file", path="empty.txt")
    assert "1 lines" in refusal(tmp_path, "read_file", path="a.txt", offset=1)


def test_a_large_text_costs_little_to_read(tmp_path: Path) -> None:
    """Measured in a process of its own. A reader that holds the whole file took 846 MiB and 6 seconds."""
    line = "0123456789" * 5 + "\n"
    (tmp_path / "big.txt").write_text(line * (58_000_000 // len(line)))
    code = """
import resource, sys
from skillshelf_agent.filetools import FileAccess
from skillshelf_agent.filetools._reading import read_page
before = resource.getrusage(resource.RUSAGE_SELF)
page = read_page(FileAccess(sys.argv[1]), "big.txt", offset=1_000_000)
after = resource.getrusage(resource.RUSAGE_SELF)
scale = 1 if sys.platform == "darwin" else 1024
print(after.ru_utime - before.ru_utime, (after.ru_maxrss - before.ru_maxrss) * scale)
print(page)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    seconds, size = done.stdout.split("\n")[0].split()
    assert float(seconds) < 2
    assert float(size) < 200e6
    assert "[big.txt | 1137254 lines | 57999954 bytes]\n1000001\t0123456789" in done.stdout


def test_a_picture_is_shown_and_other_binary_files_are_described(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "a.bin").write_bytes(b"\x7fELF\0\0" + bytes(100))
    core = agent(tmp_path, call("read_file", path="a.png"), "ok")
    say(core, "look")
    contents = [getattr(part, "content", "") for message in requests(core)[1].messages for part in message.parts]
    assert [type(piece) for content in contents if isinstance(content, list) for piece in content] == [
        str,
        BinaryContent,
    ]
    described = result(tmp_path, "read_file", path="a.bin")
    assert described == "[a.bin | application/octet-stream | 106 bytes]\nBinary file.\n"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("no.txt", "does not exist"),
        ("folder", "It is a folder"),
        (".", "list_directory"),
        ("pipe", "It is a FIFO"),
        ("../out.txt", "outside the workspace"),
        ("a\0b", "outside the workspace"),
        ("inside", "Use the path it leads to: 'folder/a.txt'"),
        ("linked/a.txt", "Use the path it leads to: 'folder/a.txt'"),
        ("outside", "It leads outside the workspace"),
        ("x" * 300, "too long"),
    ],
)
def test_a_path_that_cannot_be_read_says_why(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a.txt").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "inside").symlink_to("folder/a.txt")
    (tmp_path / "linked").symlink_to(tmp_path / "folder")
    (tmp_path / "outside").symlink_to("/etc/hostname")
    assert reason in refusal(tmp_path, "read_file", path=path)


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    text = result(tmp_path, "write_file", path="new/deep/a.txt", content="one\ntwo")
    assert text == "Wrote 7 chars (2 lines) to new/deep/a.txt."
    assert (tmp_path / "new/deep/a.txt").read_text() == "one\ntwo"
    assert os.listdir(tmp_path / "new/deep") == ["a.txt"]


def test_edits_replace_text_that_occurs_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\r\ntwo\nthree\n")
    pairs = [{"old_text": "one", "new_text": "1"}, {"old_text": "1\r\ntwo", "new_text": "2"}]
    assert result(tmp_path, "edit_file", path="a.txt", replacements=pairs) == "Edited a.txt."
    assert (tmp_path / "a.txt").read_bytes() == b"2\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"old_text": "none", "new_text": "x"}, "not found"),
        ({"old_text": "o", "new_text": "x"}, "found 2 times"),
        ({"old_text": "", "new_text": "x"}, "is empty"),
        ({"old_text": "one\ntwo", "new_text": "x"}, "CRLF"),
        ({"old_text": "one"}, "Give either"),
        ({}, "Give either"),
        (
            {"replacements": [{"old_text": "one", "new_text": "1"}, {"old_text": "none", "new_text": ""}]},
            "replacement 2",
        ),
    ],
)
def test_an_edit_that_does_not_fit_changes_nothing_and_says_why(
    tmp_path: Path, arguments: dict[str, Any], reason: str
) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    assert reason in refusal(tmp_path, "edit_file", path="a.txt", **arguments)
    assert (tmp_path / "a.txt").read_bytes() == b"one\r\ntwo\r\n"


def test_a_file_that_is_not_text_is_not_edited(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe\0a")
    assert "not a text file" in refusal(tmp_path, "edit_file", path="a.bin", old_text="a", new_text="b")


@pytest.mark.parametrize(
    "path",
    [
        ".git/config", ".git/hooks/pre-commit", "sub/.git/config", ".GIT/config", ".g\u200cit/hooks/post-checkout",
        ".hg/hgrc", ".env", ".env.local", "deploy/secrets.yaml", "secrets/a.txt", "server.pem", "x.key",
        "id_rsa", "keys/id_ed25519.pub", "credentials", ".aws/credentials", ".npmrc", ".pypirc", ".netrc",
        ".ssh/authorized_keys", ".SSH/config", ".kube/config", ".docker/config.json", ".git-credentials",
    ],
)  # fmt: skip
def test_protected_names_are_not_written(tmp_path: Path, path: str) -> None:
    assert "is protected" in refusal(tmp_path, "write_file", path=path, content="x")
    assert list(tmp_path.iterdir()) == []


def test_the_documentation_lists_every_protected_name() -> None:
    page = REPO / "docs/concepts/safety.md"
    text = page.read_text()
    assert [name for name in PROTECTED_NAMES if f"`{name}`" not in text] == []


def test_a_protected_file_can_be_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1\n")
    assert "KEY=1" in result(tmp_path, "read_file", path=".env")


def test_a_folder_is_listed_with_sizes_and_links(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.txt").write_text("abc")
    (tmp_path / "sub/folder").mkdir()
    (tmp_path / "sub/link").symlink_to("../a.txt")
    (tmp_path / "sub/.hidden").touch()
    (tmp_path / "sub/two\nlines").touch()
    assert result(tmp_path, "list_directory", path="sub").splitlines() == [
        "sub/a.txt  (3 bytes)",
        "sub/folder/",
        "sub/link  (link to ../a.txt)",
        "sub/two<U+000A>lines  (0 bytes)",
        "[1 hidden entries omitted; name a hidden path explicitly to include it]",
    ]
    assert result(tmp_path, "list_directory", path="sub/folder") == "(empty directory)"
    assert "not a folder" in refusal(tmp_path, "list_directory", path="sub/a.txt")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "a.py": "import os\n",
        "src/b.py": "def find():\n    return 1\n",
        "src/deep/c.py": "find()\n",
        "src/deep/notes.md": "# find it\n",
        ".github/ci.yml": "run: find\n",
        ".git/config": "find = 1\n",
        "build/out.py": "find()\n",
        ".gitignore": "build/\n*.log\n",
        "src/run.log": "find\n",
        "src/deep/.gitignore": "!keep.log\n",
        "src/deep/keep.log": "find\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "src/data.bin").write_bytes(b"find\0")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*.py", ".", ["a.py"]),
        ("**/*.py", ".", ["a.py", "build/out.py", "src/b.py", "src/deep/c.py"]),
        ("src/*", ".", ["src/b.py", "src/data.bin", "src/deep/", "src/run.log"]),
        ("**/deep/", ".", ["src/deep/"]),
        ("*.py", "src", ["src/b.py"]),
        (".github/*", ".", [".github/ci.yml"]),
        ("**/[bc].py", ".", ["src/b.py", "src/deep/c.py"]),
        ("*.rs", ".", ["No matches found."]),
    ],
)
def test_files_are_found_by_glob(project: Path, pattern: str, path: str, found: list[str]) -> None:
    lines = result(project, "find_files", pattern=pattern, path=path).splitlines()
    assert [line for line in lines if not line.startswith("[")] == found


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "", "a/../b"])
def test_a_glob_that_leaves_the_folder_is_refused(tmp_path: Path, pattern: str) -> None:
    assert "not a glob" in refusal(tmp_path, "find_files", pattern=pattern)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "find"}, ["src/b.py:1:def find():", "src/deep/c.py:1:find()", "src/deep/keep.log:1:find",
                               "src/deep/notes.md:1:# find it"]),
        ({"pattern": r"^find\(\)$"}, ["src/deep/c.py:1:find()"]),
        ({"pattern": "find", "include_glob": "*.md"}, ["src/deep/notes.md:1:# find it"]),
        ({"pattern": "find", "include_glob": "**/*.py"}, ["src/b.py:1:def find():", "src/deep/c.py:1:find()"]),
        ({"pattern": "import", "include_glob": "**/*.py"}, ["a.py:1:import os"]),
        ({"pattern": "find", "path": "src/deep", "include_glob": "src/*.py"}, ["src/deep/c.py:1:find()"]),
        ({"pattern": "find", "path": "src/b.py"}, ["src/b.py:1:def find():"]),
        ({"pattern": "find", "path": "build"}, ["build/out.py:1:find()"]),
        ({"pattern": "find", "include_glob": ".github/*"}, [".github/ci.yml:1:run: find"]),
        ({"pattern": "find", "path": ".git"}, [".git/config:1:find = 1"]),
        ({"pattern": "nothing like it"}, ["No matches found."]),
    ],
)  # fmt: skip
def test_lines_are_searched(project: Path, arguments: dict[str, Any], found: list[str]) -> None:
    lines = result(project, "search_files", **arguments).splitlines()
    assert [line for line in lines if not line.startswith("[")] == found


def test_a_search_reports_the_entries_it_left_out(project: Path) -> None:
    (project / "big.txt").write_bytes(b"find\n" * 3_000_000)
    notes = [line for line in result(project, "search_files", pattern="find").splitlines() if line.startswith("[")]
    assert notes == [
        "[1 files skipped (too large or unreadable): big.txt]",
        "[2 entries ignored by .gitignore; name their path to search them]",
        "[4 hidden entries omitted; name a hidden path explicitly to include it]",
    ]


def test_a_search_works_beside_links_and_does_not_follow_them(project: Path) -> None:
    (project / "linked").symlink_to("src")
    (project / "loop").symlink_to(".")
    (project / "out").symlink_to("/etc")
    lines = result(project, "search_files", pattern="fin.\\(\\)").splitlines()
    assert lines[:2] == ["src/b.py:1:def find():", "src/deep/c.py:1:find()"]
    assert "linked" not in "".join(lines)


def test_a_search_is_never_longer_than_a_page(project: Path) -> None:
    (project / "many.txt").write_text(("find " + "x" * 300 + "\n") * 3000)
    text = result(project, "search_files", pattern="find")
    assert len(text) < 51_000
    assert "[... truncated at" in text


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "x" * 2000])
def test_a_pattern_that_cannot_be_used_is_refused(project: Path, pattern: str) -> None:
    assert "cannot be used" in refusal(project, "search_files", pattern=pattern)


def test_a_file_on_which_a_pattern_explodes_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 60 + "!\n")
    (tmp_path / "b.txt").write_text("aa\n")
    text = result(tmp_path, "search_files", pattern="^(a+)+$")
    assert text.splitlines() == ["b.txt:1:aa", "[left out, the pattern takes too long on it: a.txt]"]


def test_the_files_of_skillshelf_itself_are_neither_shown_nor_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own = tmp_path / "state/skillshelf"
    own.mkdir(parents=True)
    (own / "approvals.json").write_text("approved")
    listed, found, searched, read = use(
        tmp_path,
        call("list_directory", path="state"),
        call("find_files", pattern="**/*.json"),
        call("search_files", pattern="approved"),
        call("read_file", path="STATE/skillshelf/approvals.json"),
    )
    assert listed.text == "(empty directory)"
    assert found.text == searched.text == "No matches found."
    assert "not for the file tools" in read.text


def test_the_turn_goes_on_after_any_number_of_refusals(tmp_path: Path) -> None:
    """A model that guesses paths gets an error each time, and can continue."""
    results = use(tmp_path, *[call("read_file", path=f"{number}.txt") for number in range(12)])
    assert [returned.ok for returned in results] == [False] * 12


def test_agents_share_the_schemas_of_tools_and_not_their_workspaces(tmp_path: Path) -> None:
    first, second = (FileTools(FileAccess(str(tmp_path / name), [])) for name in ("a", "b"))
    for name, tool in second.toolset.tools.items():
        assert tool.tool_def == first.toolset.tools[name].tool_def
        assert getattr(tool.function_schema.function, "__self__", None) is second
