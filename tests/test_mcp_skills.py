"""The Skills extension (SEP-2640): entries with digests that hold, and folders."""

import base64
import hashlib
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

from mcp import Client, MCPError, types
from mcp.types import INVALID_PARAMS
from mcp_kit import FILES, PDF, load, shelf_of, talk, text
from pydantic import ConfigDict

from skillshelf import BaseSkill, MemorySource, Shelf
from skillshelf.mcp import SkillsServer
from skillshelf.mcp._skill_files import MAX_WHOLE_FILE, read_skill_markdown
from skillshelf.mcp._skills_extension import MAX_BYTES
from skillshelf.sources import DirectorySource, ObjectSource


async def custom(client: Client, method: str, **params: Any) -> dict[str, Any]:
    request = types.Request[dict[str, Any], str](method=method, params=params)
    result = await client.session.send_request(request, _Any)
    return result.model_dump(mode="json")


class _Any(types.Result):
    model_config = ConfigDict(extra="allow")


def read_bytes(part: types.TextResourceContents | types.BlobResourceContents) -> bytes:
    if isinstance(part, types.TextResourceContents):
        return part.text.encode()
    return base64.b64decode(part.blob)


def test_skills_list_and_get_give_digests_that_hold() -> None:
    """What is read afterwards has the size and digest that the entry told."""

    async def use(client: Client) -> None:
        listed = await custom(client, "skills/list")
        assert [one["frontmatter"]["name"] for one in listed["skills"]] == ["notes", "pdf"]
        assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
        got = await custom(client, "skills/get", uri="skill://pdf/SKILL.md")
        [_, entry] = listed["skills"]
        assert got["skill"] == entry
        assert entry["frontmatter"] == {
            "name": "pdf",
            "description": "Fill in PDF forms.",
            "metadata": {"version": "1.5"},
        }
        assert [file["uri"] for file in entry["resources"]] == [
            "skill://pdf/SKILL.md",
            "skill://pdf/assets/logo.png",
            "skill://pdf/references/forms.md",
        ]
        for file in entry["resources"]:
            [part] = (await client.read_resource(file["uri"])).contents
            data = read_bytes(part)
            assert (file["digest"], file["size"]) == (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))

    talk(shelf_of()[0], use)


def test_a_skill_that_lists_its_own_file_has_it_once() -> None:
    """In the manifest, as it is served, and wherever else files are named."""
    listing = "---\nname: pdf\ndescription: Use when: a form\nreferences: [SKILL.md, a.md]\n---\n\nGo.\n"
    shelf, _ = shelf_of(pdf={"SKILL.md": listing, "a.md": "A"})
    every = ["skill://pdf/SKILL.md", "skill://pdf/a.md"]

    async def use(client: Client) -> None:
        entry = (await custom(client, "skills/get", uri="skill://pdf/SKILL.md"))["skill"]
        assert [file["uri"] for file in entry["resources"]] == every
        [part] = (await client.read_resource("skill://pdf/SKILL.md")).contents
        assert isinstance(part, types.TextResourceContents)
        assert entry["resources"][0]["digest"] == f"sha256:{hashlib.sha256(part.text.encode()).hexdigest()}"
        listed = [one.uri for one in (await client.list_resources()).resources]
        assert [uri for uri in listed if "/pdf/" in uri] == every
        template = types.ResourceTemplateReference(uri="skill://{name}/{+path}")
        done = await client.complete(template, {"name": "path", "value": ""}, {"name": "pdf"})
        assert sorted(done.completion.values) == ["SKILL.md", "a.md"]

    talk(shelf, use)


@pytest.mark.parametrize("name", ["Foo Bar", "Artisan", "a_b", "x" * 65])
def test_a_skill_whose_name_the_format_refuses_is_not_published(name: str) -> None:
    """Its author is told what to write. It is a resource, a prompt and loaded by the tools all the same."""
    shelf, _ = shelf_of(other=PDF.replace("name: pdf", f"name: {name}"))
    uri = f"skill://{name.replace(' ', '%20')}/SKILL.md"

    async def use(client: Client) -> None:
        listed = await custom(client, "skills/list")
        assert [one["frontmatter"]["name"] for one in listed["skills"]] == ["notes", "pdf"]
        with pytest.raises(MCPError, match="write `name: ") as caught:
            await custom(client, "skills/get", uri=uri)
        assert caught.value.code == INVALID_PARAMS
        assert uri in [one.uri for one in (await client.list_resources()).resources]
        assert (await client.read_resource(uri)).contents
        assert name in [one.name for one in (await client.list_prompts()).prompts]
        assert "# PDF" in text(await load(client, skill_name=name))

    talk(shelf, use)


class Torn(MemorySource):
    """Of one of its skills it raises what no source should."""

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        if key == "torn":
            raise ZeroDivisionError
        return super().reference(key, descriptor, path, offset, limit)


def test_a_skill_that_cannot_be_read_is_left_out_of_the_list() -> None:
    """Whatever its source raises, the others are in it."""
    shelf = Shelf([Torn({"pdf": FILES, "torn": PDF.replace("name: pdf", "name: torn")})])

    async def use(client: Client) -> list[str]:
        return [one["uri"] for one in (await custom(client, "skills/list"))["skills"]]

    assert talk(shelf, use) == ["skill://pdf/SKILL.md"]


def test_skills_get_refuses_what_is_no_skill() -> None:
    """With the code that the extension asks for."""

    async def use(client: Client) -> None:
        for uri in ("skill://none/SKILL.md", "skill://pdf", "skill://deploy/SKILL.md", "https://a.b/SKILL.md"):
            with pytest.raises(MCPError) as caught:
                await custom(client, "skills/get", uri=uri)
            assert caught.value.code == INVALID_PARAMS

    talk(shelf_of()[0], use)


def test_a_skill_with_repairs_is_served_as_the_shelf_reads_it() -> None:
    """A host that reads strictly finds the frontmatter that the entry told."""
    broken = "---\nname: pdf\ndescription: Use when: a form\n---\n\nGo.\n"

    async def use(client: Client) -> tuple[Any, str]:
        got = await custom(client, "skills/get", uri="skill://pdf/SKILL.md")
        [part] = (await client.read_resource("skill://pdf/SKILL.md")).contents
        assert isinstance(part, types.TextResourceContents)
        return got["skill"]["frontmatter"], part.text

    frontmatter, served = talk(shelf_of(pdf=broken)[0], use)
    assert frontmatter == {"name": "pdf", "description": "Use when: a form"}
    assert served == "---\nname: pdf\ndescription: 'Use when: a form'\n---\n\nGo.\n"


def test_a_repaired_skill_keeps_its_other_fields() -> None:
    """Whatever the shelf could read, as text and flags; a field that hides something is left out."""
    written = (
        "---\nname: pdf\ndescription: Use when: a form\nlicense: MIT\nallowed-tools: Read\ncompatibility: needs git\n"
        "metadata:\n  version: '2'\nuser-invocable: false\nversion: 1.5\ntags: [a, b]\nsly: a\u200bb\n---\n\nGo.\n"
    )
    expected = {
        "name": "pdf",
        "description": "Use when: a form",
        "license": "MIT",
        "allowed-tools": "Read",
        "compatibility": "needs git",
        "metadata": {"version": "2"},
        "user-invocable": False,
        "version": "1.5",
        "tags": ["a", "b"],
    }

    async def use(client: Client) -> tuple[Any, str]:
        got = await custom(client, "skills/get", uri="skill://pdf/SKILL.md")
        [part] = (await client.read_resource("skill://pdf/SKILL.md")).contents
        assert isinstance(part, types.TextResourceContents)
        return got["skill"]["frontmatter"], part.text

    frontmatter, served = talk(shelf_of(pdf=written)[0], use)
    assert frontmatter == expected
    assert yaml.safe_load(served.split("---")[1]) == expected


def test_numbers_stay_numbers_where_only_the_instructions_hide_something() -> None:
    """The frontmatter is then what any reader of YAML finds."""
    written = PDF.replace("See", "See\u200b").replace("'1.5'", "1.5")

    async def use(client: Client) -> Any:
        return (await custom(client, "skills/get", uri="skill://pdf/SKILL.md"))["skill"]["frontmatter"]

    assert talk(shelf_of(pdf=written)[0], use)["metadata"] == {"version": 1.5}


class Desk(BaseSkill):
    name = "desk"
    description = "Keeps the desk."
    instructions = "Tidy up."


def test_a_code_skill_has_the_fields_of_its_card() -> None:
    """As one that has a file has those of the file."""
    shelf = Shelf([ObjectSource([Desk()])])
    told = read_skill_markdown(shelf, shelf.catalog.find("desk")).frontmatter
    assert told == {"name": "desk", "description": "Keeps the desk."}


def test_a_skill_too_large_for_digests_says_so() -> None:
    """It is served all the same, file by file."""
    shelf, _ = shelf_of(pdf={"SKILL.md": PDF, "big.bin": b"\0" * MAX_BYTES})

    async def use(client: Client) -> Any:
        return (await custom(client, "skills/get", uri="skill://pdf/SKILL.md"))["skill"]["resources"]

    assert talk(shelf, use) == "dynamic"


class Measuring(MemorySource):
    """Counts what is read of each file."""

    def __init__(self, skills: Any) -> None:
        super().__init__(skills)
        self.read: Counter[str] = Counter()

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        page = super().reference(key, descriptor, path, offset, limit)
        self.read[path] += len(page.data)
        return page


def test_of_a_file_too_large_for_digests_only_the_beginning_is_read() -> None:
    """Its size says enough. One that is long, and not too long, is read whole."""
    skills = {
        "pdf": {"SKILL.md": PDF, "big.bin": b"\0" * MAX_BYTES},
        "long": {"SKILL.md": PDF.replace("name: pdf", "name: long"), "long.bin": b"\0" * 1_000_000},
    }
    source = Measuring(skills)

    async def use(client: Client) -> Any:
        return [one["resources"] for one in (await custom(client, "skills/list"))["skills"]]

    long, big = talk(Shelf([source]), use)
    assert long[1]["digest"] == f"sha256:{hashlib.sha256(bytes(1_000_000)).hexdigest()}"
    assert big == "dynamic"
    assert source.read["big.bin"] <= 64 * 1024


def test_a_folder_of_a_skill_can_be_read() -> None:
    """Its files, and the folders in it."""

    async def use(client: Client) -> list[list[str]]:
        found = []
        for uri in ("skill://pdf", "skill://pdf/", "skill://pdf/references", "skill://pdf/references/"):
            told = await custom(client, "resources/directory/read", uri=uri)
            found.append([f"{one['uri']} {one['mimeType']}" for one in told["resources"]])
        with pytest.raises(MCPError):
            await custom(client, "resources/directory/read", uri="skill://pdf/SKILL.md")
        return found

    top = [
        "skill://pdf/SKILL.md text/markdown",
        "skill://pdf/assets inode/directory",
        "skill://pdf/references inode/directory",
    ]
    below = ["skill://pdf/references/forms.md text/markdown"]
    assert talk(shelf_of()[0], use) == [top, top, below, below]


def test_a_long_folder_comes_in_pages() -> None:
    """Each page says how to ask for the next one."""

    async def use(client: Client) -> list[list[str]]:
        pages: list[list[str]] = []
        cursor: str | None = ""
        while cursor is not None:
            told = await custom(client, "resources/directory/read", uri="skill://pdf", cursor=cursor)
            pages.append([one["name"] for one in told["resources"]])
            cursor = told.get("nextCursor")
        return pages

    server = SkillsServer(shelf_of()[0], page_size=2)
    assert talk(server, use) == [["pdf", "assets"], ["references"]]


@pytest.mark.parametrize("uri", ["skill://pdf", "skill://pdf/references"])
def test_an_answer_about_a_folder_says_how_long_it_holds(uri: str) -> None:
    async def use(client: Client) -> Any:
        return await custom(client, "resources/directory/read", uri=uri)

    answer = talk(shelf_of()[0], use)
    assert answer["ttlMs"] == 0
    assert answer["cacheScope"] == "private"


REFUSED = {
    "long": "description: " + "d" * 1025,
    "folded": "description: |\n  " + "d" * 1024,  # with its line break it is one character too long
    "number": "description: Numbers.\nmetadata:\n  version: 1.5",
    "nested": "description: Nested.\nmetadata:\n  author:\n    name: Ada",
    "nothing": "description: Nothing.\nmetadata:",
    "compatible": "description: Much.\ncompatibility: " + "c" * 501,
    "listed": "description: A list.\ncompatibility: [git]",
    "日本": "description: Letters that hosts refuse.",
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_entry_that_strict_hosts_refuse_is_left_out_of_the_list(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The log names it. It can be read, loaded and asked for by its address all the same."""
    shelf, _ = shelf_of(**{name: f"---\nname: {name}\n{REFUSED[name]}\n---\n\nGo on.\n"})
    uri = f"skill://{quote(name)}/SKILL.md"

    async def use(client: Client) -> None:
        for _ in range(2):
            listed = await custom(client, "skills/list")
            assert [entry["frontmatter"]["name"] for entry in listed["skills"]] == ["notes", "pdf"]
        assert (await custom(client, "skills/get", uri=uri))["skill"]["uri"] == uri
        assert (await client.read_resource(uri)).contents
        assert "Go on." in text(await load(client, skill_name=name))

    talk(shelf, use)
    [logged] = [record.getMessage() for record in caplog.records if "skills/list" in record.getMessage()]
    assert logged.startswith("Skills left out of skills/list: 1.")
    assert name in logged


def test_a_file_that_no_uri_can_name_costs_the_others_nothing() -> None:
    """A source of one's own may have such files; a URI parser would make another address of theirs."""
    odd = PDF.replace("name: pdf", "name: odd")
    shelf, _ = shelf_of(odd={"SKILL.md": odd, "a/../b.md": "B"})

    async def use(client: Client) -> list[str]:
        return [entry["frontmatter"]["name"] for entry in (await custom(client, "skills/list"))["skills"]]

    assert talk(shelf, use) == ["notes", "pdf"]


EXACT = {
    "crlf.md": b"one\r\ntwo\r\n",
    "cr.md": b"one\rtwo",
    "bom.md": b"\xef\xbb\xbf# Title\n",
    "latin-1.txt": "Grüße".encode("latin-1"),
    "utf-16.txt": "Hello".encode("utf-16"),
    "hidden.md": "a\u200bb\u202ec".encode(),
    "separators.md": "a\u2028b\x85c\x0cd".encode(),
    "zeros.bin": b"a\0b",
    "empty.md": b"",
    "whole.md": "ä".encode() * (MAX_WHOLE_FILE // 2),
    "whole.bin": bytes(range(256)) * (MAX_WHOLE_FILE // 256),
}


def test_a_read_gives_the_exact_bytes_of_a_file(tmp_path: Path) -> None:
    """The entry's digest and size are those of the file on disk and of the answer."""
    folder = tmp_path / "pdf"
    folder.mkdir()
    windows = b"\xef\xbb\xbf" + PDF.replace("\n", "\r\n").encode() + "Emoji \u2139\ufe0f, hidden \u200b.\r\n".encode()
    files = {"SKILL.md": windows, **{f"references/{path}": data for path, data in EXACT.items()}}
    (folder / "references").mkdir()
    for path, data in files.items():
        (folder / path).write_bytes(data)
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])

    async def use(client: Client) -> None:
        [entry] = (await custom(client, "skills/list"))["skills"]
        assert len(entry["resources"]) == len(files)
        for file in entry["resources"]:
            path = file["uri"].removeprefix("skill://pdf/")
            [part] = (await client.read_resource(file["uri"])).contents
            data = read_bytes(part)
            assert data == files[path], path
            assert file["size"] == len(data)
            assert file["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
            assert part.meta is None

    talk(shelf, use)


def test_a_file_over_the_cap_has_no_digest() -> None:
    """It comes in pages, and a host would refuse the first for its size."""
    shelf, _ = shelf_of(pdf={"SKILL.md": PDF, "long.bin": bytes(MAX_WHOLE_FILE + 1)})

    async def use(client: Client) -> None:
        entry = (await custom(client, "skills/get", uri="skill://pdf/SKILL.md"))["skill"]
        assert entry["resources"] == "dynamic"
        [page] = (await client.read_resource("skill://pdf/long.bin")).contents
        assert page.meta == {"skillshelf/nextUri": "skill://pdf/long.bin?offset=524288", "skillshelf/size": 4194305}

    talk(shelf, use)


@pytest.mark.parametrize(("mode", "code"), [("auto", -32602), ("legacy", -32002)])
@pytest.mark.parametrize("uri", ["skill://none/SKILL.md", "skill://pdf/none.md", "file:///etc/passwd", "skill://pdf?a"])
def test_a_resource_that_is_not_served_is_named_in_the_error(uri: str, mode: str, code: int) -> None:
    """With the code of the revision that is spoken."""

    async def use(client: Client) -> MCPError:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        return caught.value

    error = talk(shelf_of()[0], use, mode=mode)
    assert error.code == code
    assert error.error.data == {"uri": uri}
