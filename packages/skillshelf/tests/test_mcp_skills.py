"""Test the Skills extension (SEP-2640): entries with digests that hold, and folders."""

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
from pydantic import ConfigDict

from mcp_kit import FILES, PDF, load, make_shelf, talk, text
from skillshelf import BaseSkill, MemorySource, Shelf
from skillshelf.mcp import SkillsServer
from skillshelf.mcp._limits import MAX_WHOLE_FILE
from skillshelf.mcp._skill_files import read_skill_markdown
from skillshelf.sources import MAX_SKILL_BYTES, DirectorySource, ObjectSource


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


def test_digests_of_skills_list_and_get_match_the_files() -> None:
    """Files read afterwards have the size and digest of the entry."""

    async def use(client: Client) -> None:
        listed = await custom(client, "skills/list")
        assert [entry["frontmatter"]["name"] for entry in listed["skills"]] == ["notes", "pdf"]
        assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
        answer = await custom(client, "skills/get", uri="skill://pdf/SKILL.md")
        [_, entry] = listed["skills"]
        assert answer["skill"] == entry
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

    talk(make_shelf()[0], use)


def test_a_skill_that_lists_its_own_file_has_it_only_once() -> None:
    """This holds for the manifest and for every list of files."""
    listing = "---\nname: pdf\ndescription: Use when: a form\nreferences: [SKILL.md, a.md]\n---\n\nGo.\n"
    shelf, _ = make_shelf(pdf={"SKILL.md": listing, "a.md": "A"})
    every = ["skill://pdf/SKILL.md", "skill://pdf/a.md"]

    async def use(client: Client) -> None:
        entry = (await custom(client, "skills/get", uri="skill://pdf/SKILL.md"))["skill"]
        assert [file["uri"] for file in entry["resources"]] == every
        [part] = (await client.read_resource("skill://pdf/SKILL.md")).contents
        assert isinstance(part, types.TextResourceContents)
        assert entry["resources"][0]["digest"] == f"sha256:{hashlib.sha256(part.text.encode()).hexdigest()}"
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        assert [uri for uri in listed if "/pdf/" in uri] == every
        template = types.ResourceTemplateReference(uri="skill://{name}/{+path}")
        completed = await client.complete(template, {"name": "path", "value": ""}, {"name": "pdf"})
        assert sorted(completed.completion.values) == ["SKILL.md", "a.md"]

    talk(shelf, use)


@pytest.mark.parametrize("name", ["Foo Bar", "Artisan", "a_b", "x" * 65])
def test_a_skill_whose_name_the_format_refuses_is_not_published(name: str) -> None:
    """The log tells the author how to fix it. The skill is still a resource and a prompt, and the tools load it."""
    shelf, _ = make_shelf(other=PDF.replace("name: pdf", f"name: {name}"))
    uri = f"skill://{name.replace(' ', '%20')}/SKILL.md"

    async def use(client: Client) -> None:
        listed = await custom(client, "skills/list")
        assert [entry["frontmatter"]["name"] for entry in listed["skills"]] == ["notes", "pdf"]
        with pytest.raises(MCPError, match="write `name: ") as caught:
            await custom(client, "skills/get", uri=uri)
        assert caught.value.code == INVALID_PARAMS
        assert uri in [resource.uri for resource in (await client.list_resources()).resources]
        assert (await client.read_resource(uri)).contents
        assert name in [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert "# PDF" in text(await load(client, skill_name=name))

    talk(shelf, use)


class Torn(MemorySource):
    """A source that raises an unexpected exception for one of its skills."""

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        if key == "torn":
            raise ZeroDivisionError
        return super().reference(key, descriptor, path, offset, limit)


def test_an_unreadable_skill_is_left_out_of_the_list() -> None:
    """The other skills are listed, whatever the source raises."""
    shelf = Shelf([Torn({"pdf": FILES, "torn": PDF.replace("name: pdf", "name: torn")})])

    async def use(client: Client) -> list[str]:
        return [entry["uri"] for entry in (await custom(client, "skills/list"))["skills"]]

    assert talk(shelf, use) == ["skill://pdf/SKILL.md"]


def test_skills_get_refuses_a_uri_that_is_not_a_skill() -> None:
    """The error has the code that the extension requires."""

    async def use(client: Client) -> None:
        for uri in ("skill://none/SKILL.md", "skill://pdf", "skill://deploy/SKILL.md", "https://a.b/SKILL.md"):
            with pytest.raises(MCPError) as caught:
                await custom(client, "skills/get", uri=uri)
            assert caught.value.code == INVALID_PARAMS

    talk(make_shelf()[0], use)


def test_a_repaired_skill_is_served_as_the_shelf_reads_it() -> None:
    """A strict host finds the same frontmatter in the file as in the entry."""
    broken = "---\nname: pdf\ndescription: Use when: a form\n---\n\nGo.\n"

    async def use(client: Client) -> tuple[Any, str]:
        answer = await custom(client, "skills/get", uri="skill://pdf/SKILL.md")
        [part] = (await client.read_resource("skill://pdf/SKILL.md")).contents
        assert isinstance(part, types.TextResourceContents)
        return answer["skill"]["frontmatter"], part.text

    frontmatter, text_served = talk(make_shelf(pdf=broken)[0], use)
    assert frontmatter == {"name": "pdf", "description": "Use when: a form"}
    assert text_served == "---\nname: pdf\ndescription: 'Use when: a form'\n---\n\nGo.\n"


def test_a_repaired_skill_keeps_its_other_fields() -> None:
    """Everything the shelf could read stays, as text and flags. A field with hidden characters is left out."""
    source_text = (
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
        answer = await custom(client, "skills/get", uri="skill://pdf/SKILL.md")
        [part] = (await client.read_resource("skill://pdf/SKILL.md")).contents
        assert isinstance(part, types.TextResourceContents)
        return answer["skill"]["frontmatter"], part.text

    frontmatter, text_served = talk(make_shelf(pdf=source_text)[0], use)
    assert frontmatter == expected
    assert yaml.safe_load(text_served.split("---")[1]) == expected


def test_numbers_stay_numbers_if_only_the_instructions_have_hidden_characters() -> None:
    """The frontmatter is then the same as any YAML reader finds."""
    source_text = PDF.replace("See", "See\u200b").replace("'1.5'", "1.5")

    async def use(client: Client) -> Any:
        return (await custom(client, "skills/get", uri="skill://pdf/SKILL.md"))["skill"]["frontmatter"]

    assert talk(make_shelf(pdf=source_text)[0], use)["metadata"] == {"version": 1.5}


class Desk(BaseSkill):
    name = "desk"
    description = "Keeps the desk."
    instructions = "Tidy up."


def test_a_code_skill_has_the_fields_of_its_card() -> None:
    shelf = Shelf([ObjectSource([Desk()])])
    frontmatter = read_skill_markdown(shelf, shelf.catalog.find("desk")).frontmatter
    assert frontmatter == {"name": "desk", "description": "Keeps the desk."}


def test_a_skill_too_large_for_digests_says_so() -> None:
    """It is still served, file by file."""
    shelf, _ = make_shelf(pdf={"SKILL.md": PDF, "big.bin": b"\0" * MAX_SKILL_BYTES})

    async def use(client: Client) -> Any:
        return (await custom(client, "skills/get", uri="skill://pdf/SKILL.md"))["skill"]["resources"]

    assert talk(shelf, use) == "dynamic"


class Measuring(MemorySource):
    """A source that counts the bytes read from each file."""

    def __init__(self, skills: Any) -> None:
        super().__init__(skills)
        self.read: Counter[str] = Counter()

    def reference(self, key: str, descriptor: Any, path: str, offset: int, limit: int) -> Any:
        page = super().reference(key, descriptor, path, offset, limit)
        self.read[path] += len(page.data)
        return page


def test_only_the_beginning_of_a_file_too_large_for_digests_is_read() -> None:
    """Its size is enough to decide. A long file below the cap is read whole."""
    skills = {
        "pdf": {"SKILL.md": PDF, "big.bin": b"\0" * MAX_SKILL_BYTES},
        "long": {"SKILL.md": PDF.replace("name: pdf", "name: long"), "long.bin": b"\0" * 1_000_000},
    }
    source = Measuring(skills)

    async def use(client: Client) -> Any:
        return [entry["resources"] for entry in (await custom(client, "skills/list"))["skills"]]

    long, big = talk(Shelf([source]), use)
    assert long[1]["digest"] == f"sha256:{hashlib.sha256(bytes(1_000_000)).hexdigest()}"
    assert big == "dynamic"
    assert source.read["big.bin"] <= 64 * 1024


def test_files_that_the_text_does_not_name_are_in_the_entry_and_not_in_the_list() -> None:
    """`resources/list` has the main files; the Skills extension, folders and reads have all."""
    others = {"rules/a.md": "A", "LICENSE.txt": "MIT"}

    async def use(client: Client) -> None:
        listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
        entry = (await custom(client, "skills/get", uri="skill://pdf/SKILL.md"))["skill"]
        folder = await custom(client, "resources/directory/read", uri="skill://pdf/rules")
        for path, content in others.items():
            assert f"skill://pdf/{path}" not in listed
            assert f"skill://pdf/{path}" in {file["uri"] for file in entry["resources"]}
            [part] = (await client.read_resource(f"skill://pdf/{path}")).contents
            assert read_bytes(part) == content.encode()
        assert [each["uri"] for each in folder["resources"]] == ["skill://pdf/rules/a.md"]
        assert "skill://pdf/references/forms.md" in listed

    talk(make_shelf(pdf={**FILES, **others})[0], use)


def test_a_folder_of_a_skill_can_be_read() -> None:
    """The answer lists its files and subfolders."""

    async def use(client: Client) -> list[list[str]]:
        folders = []
        for uri in ("skill://pdf", "skill://pdf/", "skill://pdf/references", "skill://pdf/references/"):
            answer = await custom(client, "resources/directory/read", uri=uri)
            folders.append([f"{resource['uri']} {resource['mimeType']}" for resource in answer["resources"]])
        with pytest.raises(MCPError):
            await custom(client, "resources/directory/read", uri="skill://pdf/SKILL.md")
        return folders

    top = [
        "skill://pdf/SKILL.md text/markdown",
        "skill://pdf/assets inode/directory",
        "skill://pdf/references inode/directory",
    ]
    below = ["skill://pdf/references/forms.md text/markdown"]
    assert talk(make_shelf()[0], use) == [top, top, below, below]


def test_a_long_folder_comes_in_pages() -> None:
    """Each page has the cursor of the next one."""

    async def use(client: Client) -> list[list[str]]:
        pages: list[list[str]] = []
        cursor: str | None = ""
        while cursor is not None:
            answer = await custom(client, "resources/directory/read", uri="skill://pdf", cursor=cursor)
            pages.append([resource["name"] for resource in answer["resources"]])
            cursor = answer.get("nextCursor")
        return pages

    server = SkillsServer(make_shelf()[0], page_size=2)
    assert talk(server, use) == [["pdf", "assets"], ["references"]]


@pytest.mark.parametrize("uri", ["skill://pdf", "skill://pdf/references"])
def test_a_folder_listing_says_how_long_it_is_valid(uri: str) -> None:
    async def use(client: Client) -> Any:
        return await custom(client, "resources/directory/read", uri=uri)

    answer = talk(make_shelf()[0], use)
    assert answer["ttlMs"] == 0
    assert answer["cacheScope"] == "private"


REFUSED = {
    "long": "description: " + "d" * 1025,
    "folded": "description: |\n  " + "d" * 1024,  # the final line break makes it one character too long
    "number": "description: Numbers.\nmetadata:\n  version: 1.5",
    "nested": "description: Nested.\nmetadata:\n  author:\n    name: Ada",
    "nothing": "description: Nothing.\nmetadata:",
    "compatible": "description: Much.\ncompatibility: " + "c" * 501,
    "listed": "description: A list.\ncompatibility: [git]",
    "日本": "description: Letters that hosts refuse.",
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_entry_that_strict_hosts_refuse_is_left_out_of_the_list(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The log names it. It can still be read, loaded, and requested by its URI."""
    shelf, _ = make_shelf(**{name: f"---\nname: {name}\n{REFUSED[name]}\n---\n\nGo on.\n"})
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


def test_a_file_that_no_uri_can_name_does_not_hide_the_others() -> None:
    """A custom source may have such files; a URI parser would turn their names into other addresses."""
    odd = PDF.replace("name: pdf", "name: odd")
    shelf, _ = make_shelf(odd={"SKILL.md": odd, "a/../b.md": "B"})

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


def test_a_read_returns_the_exact_bytes_of_a_file(tmp_path: Path) -> None:
    """The digest and size of the entry match the file on disk and the answer."""
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
    """It comes in pages, and a host would reject the first page for its size."""
    shelf, _ = make_shelf(pdf={"SKILL.md": PDF, "long.bin": bytes(MAX_WHOLE_FILE + 1)})

    async def use(client: Client) -> None:
        entry = (await custom(client, "skills/get", uri="skill://pdf/SKILL.md"))["skill"]
        assert entry["resources"] == "dynamic"
        [page] = (await client.read_resource("skill://pdf/long.bin")).contents
        assert page.meta == {"skillshelf/nextUri": "skill://pdf/long.bin?offset=524288", "skillshelf/size": 4194305}

    talk(shelf, use)


@pytest.mark.parametrize(("mode", "code"), [("auto", -32602), ("legacy", -32002)])
@pytest.mark.parametrize("uri", ["skill://none/SKILL.md", "skill://pdf/none.md", "file:///etc/passwd", "skill://pdf?a"])
def test_the_error_for_an_unknown_resource_names_it(uri: str, mode: str, code: int) -> None:
    """Each protocol revision has its own error code."""

    async def use(client: Client) -> MCPError:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        return caught.value

    error = talk(make_shelf()[0], use, mode=mode)
    assert error.code == code
    assert error.error.data == {"uri": uri}
