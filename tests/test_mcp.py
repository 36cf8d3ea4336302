"""The MCP server through the SDK's in-memory client: what a client sees of a shelf."""

import asyncio
import base64
import json
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

from mcp import Client, MCPError, types
from mcp.types import INVALID_PARAMS
from mcp_kit import FILES, MANUAL, PDF, invoke, load, shelf_of, talk, text

from skillshelf import BaseSkill, MemorySource, Shelf, tool
from skillshelf.errors import InvalidSkillError
from skillshelf.mcp import SkillsServer, make_server
from skillshelf.mcp._pagination import paginate_files
from skillshelf.mcp._prompts import join_arguments
from skillshelf.mcp._skill_files import MAX_WHOLE_FILE
from skillshelf.pages import PAGE_BYTES
from skillshelf.slash import read_message
from skillshelf.slash._messages import split_words
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import run as conform
from skillshelf.testing.conformance.faces.mcp import make


class Desk(BaseSkill):
    """A code skill with one tool of each kind."""

    name = "desk"
    description = "Keeps the desk."
    instructions = "Call look."
    category = "raw"

    def __init__(self) -> None:
        self.done: list[str] = []

    @tool
    def look(self, where: str = "here") -> dict[str, str]:
        """Look somewhere."""
        return {"where": where}

    @tool
    async def tidy(self, what: str) -> str:
        """Tidy something up."""
        self.done.append(what)
        return f"tidied {what}"

    @tool
    def burn(self) -> str:
        """Burn it."""
        raise AssertionError("never")

    @tool
    def trip(self) -> str:
        """Fails."""
        raise RuntimeError("over the carpet")

    @tool
    def leave(self) -> str:
        """Ends its program, as argparse does."""
        raise SystemExit(2)

    @tool
    async def go(self) -> str:
        """Ends its program, in the event loop."""
        raise SystemExit("gone")

    @tool
    def interrupt(self) -> str:
        """As if somebody had pressed Ctrl-C."""
        raise KeyboardInterrupt


def test_the_conformance_scenario_passes() -> None:
    """The same ten steps as every other face."""
    report = asyncio.run(conform(make()))
    assert report.passed, report


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_sees_the_three_tools_and_loads_with_them(mode: str) -> None:
    """In both eras of the protocol."""

    async def use(client: Client) -> None:
        assert [one.name for one in (await client.list_tools()).tools] == [
            "list_skills",
            "search_skills",
            "load_skill_instructions",
        ]
        found = json.loads(text(await client.call_tool("search_skills", {"query": "fill a form"})))
        assert found["skills"][0]["name"] == "pdf"
        assert text(await load(client, skill_name="pdf", reference="forms.md")) == "Fields.\n"

    talk(shelf_of()[0], use, mode=mode)


def test_capabilities_name_what_changes_and_the_skills_extension() -> None:
    """Resources and prompts may change, tools do not. Extensions exist from the revision of 2026-07-28 on."""

    async def use(client: Client) -> types.ServerCapabilities:
        return client.server_capabilities

    told = talk(shelf_of()[0], use)
    assert told.extensions == {"io.modelcontextprotocol/skills": {"directoryRead": True}}
    told = talk(shelf_of()[0], use, mode="legacy")
    assert told.resources.list_changed
    assert told.prompts.list_changed
    assert not told.tools.list_changed


def test_a_refusal_is_a_tool_error_that_says_what_is_right() -> None:
    """The model can go on from it."""

    async def use(client: Client) -> list[types.CallToolResult]:
        return [
            await load(client, skill_name="pfd"),
            await load(client, skill_name="pdf", reference="../../etc/passwd"),
            await load(client, skill_name="pdf", colour="red"),
        ]

    unknown, outside, extra = talk(shelf_of()[0], use)
    assert unknown.is_error
    assert "Did you mean 'pdf'?" in text(unknown)
    assert outside.is_error
    assert "references/forms.md" in text(outside)
    assert extra.is_error
    assert "colour" in text(extra)


def test_the_list_of_skills_follows_the_shelf() -> None:
    shelf, source = shelf_of()

    async def use(client: Client) -> list[list[str]]:
        told = []
        for _ in range(3):
            told.append([one["name"] for one in json.loads(text(await client.call_tool("list_skills", {})))["skills"]])
            if len(told) == 2:
                source.remove("notes")
                shelf.reload()
        return told

    assert talk(shelf, use) == [["notes", "pdf"], ["notes", "pdf"], ["pdf"]]


def test_resources_are_the_files_of_the_skills() -> None:
    """The listing first; what the author kept from the model is not among them."""

    async def use(client: Client) -> list[tuple[str, str | None]]:
        return [(one.uri, one.mime_type) for one in (await client.list_resources()).resources]

    assert talk(shelf_of()[0], use) == [
        ("skill://listing", "text/markdown"),
        ("skill://notes/SKILL.md", "text/markdown"),
        ("skill://pdf/SKILL.md", "text/markdown"),
        ("skill://pdf/assets/logo.png", "image/png"),
        ("skill://pdf/references/forms.md", "text/markdown"),
    ]


def test_resources_come_in_pages() -> None:
    """A cursor leads from each to the next."""
    many = {f"s{at:03}": f"---\nname: s{at:03}\ndescription: Number {at}.\n---\n\nGo.\n" for at in range(230)}

    pages = talk(Shelf([MemorySource(many)]), all_pages)
    assert [uri for page in pages for uri in page] == [
        "skill://listing",
        *(f"skill://{name}/SKILL.md" for name in many),
    ]


async def all_pages(client: Client) -> list[list[str]]:
    pages, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        pages.append([one.uri for one in page.resources])
        cursor = page.next_cursor
        if cursor is None:
            return pages


def test_a_page_has_a_fixed_number_of_resources() -> None:
    """Two skills with many references make as many pages as many skills with few."""
    references = [f"references/{at:02}.md" for at in range(14)]
    files = {"SKILL.md": PDF, **dict.fromkeys(references, "x")}
    skills = {name: {**files, "SKILL.md": PDF.replace("pdf", name)} for name in ("one", "two")}
    pages = talk(SkillsServer(Shelf([MemorySource(skills)]), page_size=10), all_pages)
    assert [len(page) for page in pages] == [11, 10, 10]
    every = [f"skill://{name}/{path}" for name in skills for path in ("SKILL.md", *references)]
    assert [uri for page in pages for uri in page] == ["skill://listing", *every]


def test_a_list_goes_on_after_what_is_gone() -> None:
    """The file, or the skill, that a cursor names may be removed before the next page is asked for."""
    files = dict.fromkeys(("a.md", "c.md"), "x")
    skills = {name: {"SKILL.md": PDF.replace("pdf", name), **files} for name in ("one", "two")}
    catalog = Shelf([MemorySource(skills)]).catalog

    def after(cursor: str) -> list[str]:
        page, _ = paginate_files(catalog, types.PaginatedRequestParams(cursor=cursor), 100)
        return [f"{skill.name}/{path}" for skill, path in page]

    two = ["two/SKILL.md", "two/a.md", "two/c.md"]
    assert after("one/SKILL.md") == ["one/a.md", "one/c.md", *two]
    assert after("one/b.md") == ["one/c.md", *two]
    assert after("ozone/a.md") == two
    assert after("two/c.md") == []


def test_a_text_is_read_as_it_is_and_a_binary_file_as_a_blob() -> None:
    """With the media type of each."""

    async def use(client: Client) -> list[Any]:
        uris = ("skill://pdf/SKILL.md", "skill://pdf/references/forms.md", "skill://pdf/assets/logo.png")
        return [(await client.read_resource(uri)).contents[0] for uri in uris]

    skill, reference, blob = talk(shelf_of()[0], use)
    assert (skill.text, skill.mime_type) == (PDF, "text/markdown")
    assert reference.text == "Fields.\n"
    assert (blob.blob, blob.mime_type) == ("iVBORwD/", "image/png")


def test_a_long_reference_comes_in_pages() -> None:
    """Each says where the next begins, and no character is cut in two."""
    long = "ä" * 2_200_000

    async def use(client: Client) -> str:
        uri: str | None = "skill://pdf/long.md"
        parts = []
        while uri:
            [part] = (await client.read_resource(uri)).contents
            assert isinstance(part, types.TextResourceContents)
            parts.append(part.text)
            uri = (part.meta or {}).get("skillshelf/nextUri")
        assert len(parts) == 9
        return "".join(parts)

    assert talk(shelf_of(pdf={"SKILL.md": PDF, "long.md": "x" + long})[0], use) == "x" + long


def test_an_offset_that_no_page_begins_at_is_refused() -> None:
    """In the middle of a character, past the end, and of a SKILL.md, which comes whole: as the load tool does."""
    shelf, _ = shelf_of(
        pdf={"SKILL.md": PDF.replace("metadata", "references: [SKILL.md, a.md]\nmetadata"), "a.md": "äöü"}
    )

    async def use(client: Client) -> None:
        for offset in (1, 3, 5, 7):
            refused = await load(client, skill_name="pdf", reference="a.md", offset=offset)
            with pytest.raises(MCPError) as caught:
                await client.read_resource(f"skill://pdf/a.md?offset={offset}")
            assert (caught.value.code, str(caught.value)) == (INVALID_PARAMS, text(refused))
        with pytest.raises(MCPError, match="no page begins at offset 4"):
            await client.read_resource("skill://pdf/SKILL.md?offset=4")
        [part] = (await client.read_resource("skill://pdf/a.md?offset=2")).contents
        assert isinstance(part, types.TextResourceContents)
        assert part.text == "öü"

    talk(shelf, use)


def test_a_read_sees_an_edit_that_nobody_told_of() -> None:
    """As a tool call does: it looks at the source first, if nobody has within the second."""
    shelf, source = shelf_of()

    async def use(client: Client) -> str:
        source.put("paint", {"SKILL.md": PDF.replace("pdf", "paint"), "new.md": "New."})
        [part] = (await client.read_resource("skill://paint/new.md")).contents
        assert isinstance(part, types.TextResourceContents)
        return part.text

    assert talk(shelf, use) == "New."


@pytest.mark.parametrize("tail", [b"\x80", b"\xbf rest", b"\x80\x80\x80\x80"])
def test_a_long_binary_file_comes_in_pages_too(tail: bytes) -> None:
    """Whatever byte a page of it begins with."""
    data = b"\0" * PAGE_BYTES + tail + b"\0" * MAX_WHOLE_FILE

    async def use(client: Client) -> bytes:
        uri: str | None = "skill://pdf/data.bin"
        pages = []
        while uri:
            [part] = (await client.read_resource(uri)).contents
            assert isinstance(part, types.BlobResourceContents)
            pages.append(base64.b64decode(part.blob))
            uri = (part.meta or {}).get("skillshelf/nextUri")
        assert len(pages) > 8
        return b"".join(pages)

    assert talk(shelf_of(pdf={"SKILL.md": PDF, "data.bin": data})[0], use) == data


def test_the_listing_is_a_resource() -> None:
    """The same bytes until a skill changes, and then the new ones at once."""
    shelf, source = shelf_of()

    async def use(client: Client) -> list[str]:
        texts = []
        for _ in range(3):
            [part] = (await client.read_resource("skill://listing")).contents
            assert isinstance(part, types.TextResourceContents)
            texts.append(part.text)
            if len(texts) == 2:
                source.remove("pdf")
        return texts

    first, second, third = talk(shelf, use)
    assert first == second == first.replace("\r", "")
    assert "Fill in PDF forms." in first
    assert "Fill in PDF forms." not in third


def test_a_prompt_gives_the_apply_skill_message() -> None:
    """For every skill that a person may invoke, with the arguments it names."""

    async def use(client: Client) -> tuple[Any, Any]:
        prompts = (await client.list_prompts()).prompts
        return prompts, await client.get_prompt("notes", {"version": "1.2", "style": "two words"})

    prompts, got = talk(shelf_of()[0], use)
    assert [(one.name, [each.name for each in one.arguments]) for one in prompts] == [
        ("deploy", ["arguments"]),
        ("notes", ["version", "style"]),
        ("pdf", ["arguments"]),
    ]
    applied = read_message(got.messages[0].content.text)
    assert applied is not None
    assert (applied.name, applied.instructions.strip()) == ("notes", "For 1.2 in two words.")


def test_arguments_arrive_as_they_were_given() -> None:
    """Whatever quotes and spaces they have."""
    skill = shelf_of()[0].catalog["notes"]
    for version, style in (('a "b"', "c\\d e"), ("", "it's"), ("\n", '"')):
        assert split_words(join_arguments(skill, {"version": version, "style": style})) == [version, style]


def test_a_prompt_with_an_unknown_argument_names_those_there_are() -> None:
    """As an error of the protocol, with the code for wrong parameters."""

    async def use(client: Client) -> None:
        with pytest.raises(MCPError, match="version, style") as caught:
            await client.get_prompt("notes", {"colour": "red"})
        assert caught.value.code == INVALID_PARAMS

    talk(shelf_of()[0], use)


def test_the_model_loads_what_the_user_invoked_by_the_name_in_the_prompt() -> None:
    """By its plain name, a skill that is not for the model stays out of its reach."""
    shelf, _ = shelf_of(deploy={"SKILL.md": MANUAL, "references/steps.md": "One."})

    async def use(client: Client) -> list[tuple[bool, str]]:
        name = await invoke(client, "deploy")
        answers = [await load(client, skill_name=each, reference="steps.md") for each in ("deploy", name)]
        return [(bool(answer.is_error), text(answer)[:21]) for answer in answers]

    assert talk(shelf, use) == [(True, "There is no skill nam"), (False, "One.")]


def test_completion_knows_names_references_and_arguments() -> None:
    """From the catalog as it is now."""
    shelf, source = shelf_of()
    template = types.ResourceTemplateReference(uri="skill://{name}/{+path}")

    async def use(client: Client) -> list[list[str]]:
        async def ask(ref: Any, variable: str, value: str, **context: str) -> list[str]:
            done = await client.complete(ref, {"name": variable, "value": value}, context or None)
            return done.completion.values

        found = [
            await ask(template, "name", "p"),
            await ask(template, "path", "form", name="pdf"),
            await ask(template, "path", "", name="deploy"),
            await ask(types.PromptReference(name="pdf"), "arguments", "logo"),
        ]
        source.put("paint", PDF.replace("pdf", "paint"))
        await client.list_prompts()
        return [*found, await ask(template, "name", "p")]

    assert talk(shelf, use) == [["pdf"], ["references/forms.md"], [], ["assets/logo.png"], ["pdf", "paint"]]


def desk(**policy: Any) -> tuple[Shelf, Desk]:
    skill = Desk().with_policy({"look": "safe", "tidy": "ask", "burn": "blocked", "trip": "safe", **policy})
    return Shelf([ObjectSource([skill])]), skill


def test_tools_of_code_skills_obey_their_policy() -> None:
    """What is safe runs, what is blocked does not, and what fails says so."""

    async def use(client: Client) -> list[tuple[str, bool]]:
        results = [await client.call_tool(name, {}) for name in ("look", "burn", "trip")]
        return [(text(one), bool(one.is_error)) for one in results]

    looked, burnt, tripped = talk(desk()[0], use)
    assert looked == ('{"where": "here"}', False)
    assert burnt[1]
    assert "blocked" in burnt[0]
    assert tripped == ("Tool 'trip' failed: RuntimeError: over the carpet", True)


def test_a_tool_that_ends_its_program_ends_its_call() -> None:
    """In a thread or in the event loop: the server serves on."""
    shelf, _ = desk(leave="safe", go="safe", interrupt="safe")

    async def use(client: Client) -> list[tuple[str, bool]]:
        results = [await client.call_tool(name, {}) for name in ("leave", "go", "interrupt", "look")]
        return [(text(one), bool(one.is_error)) for one in results]

    assert talk(shelf, use) == [
        ("Tool 'leave' failed: SystemExit: 2", True),
        ("Tool 'go' failed: SystemExit: gone", True),
        ("Tool 'interrupt' failed: KeyboardInterrupt", True),
        ('{"where": "here"}', False),
    ]


def test_a_host_knows_which_tools_change_nothing() -> None:
    """Of the three it need not ask the person; of a code skill's tools nothing is claimed."""

    async def use(client: Client) -> dict[str, types.ToolAnnotations | None]:
        return {one.name: one.annotations for one in (await client.list_tools()).tools}

    reads = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    own = ["list_skills", "search_skills", "load_skill_instructions"]
    others = ["look", "tidy", "burn", "trip", "leave", "go", "interrupt"]
    assert talk(desk()[0], use) == dict.fromkeys(own, reads) | dict.fromkeys(others)


class Lister(BaseSkill):
    name = "lister"
    description = "Lists."
    instructions = "Call list_skills."

    @tool
    def list_skills(self) -> str:
        """List something else."""
        return ""


def test_a_tool_named_as_one_of_the_three_is_refused() -> None:
    """As by every adapter: one of the two would be dropped unsaid."""
    with pytest.raises(InvalidSkillError, match="A code skill has a tool 'list_skills', as every shelf has"):
        make_server(Shelf([ObjectSource([Lister()])]))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("answer", "done"), [("accept", ["table"]), ("decline", [])])
def test_a_tool_that_asks_runs_after_a_yes(mode: str, answer: Any, done: list[str]) -> None:
    """The person sees the arguments, and nothing runs before the answer."""
    shelf, skill = desk()
    asked: list[str] = []

    async def person(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert skill.done == []
        asked.append(params.message)
        return types.ElicitResult(action=answer, content={})

    async def use(client: Client) -> types.CallToolResult:
        return await client.call_tool("tidy", {"what": "table"})

    result = talk(shelf, use, mode=mode, elicitation_callback=person)
    assert skill.done == done
    assert asked == ['Run the tool \'tidy\' with these arguments?\n{"what": "table"}']
    assert bool(result.is_error) is (answer == "decline")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_tool_that_asks_is_refused_where_nobody_can_be_asked(mode: str) -> None:
    """The model is told to do without."""
    shelf, skill = desk()

    async def use(client: Client) -> types.CallToolResult:
        return await client.call_tool("tidy", {"what": "table"})

    result = talk(shelf, use, mode=mode)
    assert result.is_error
    assert "cannot ask" in text(result)
    assert skill.done == []


class Odd(MemorySource):
    """A source of somebody's own that fails in its own way."""

    def instructions(self, key: str, descriptor: Any) -> str:
        raise LookupError("no such row")


def test_a_source_that_fails_at_a_load_is_told_of() -> None:
    """As an answer that the model can act on."""

    async def use(client: Client) -> types.CallToolResult:
        return await load(client, skill_name="pdf")

    result = talk(Shelf([Odd({"pdf": FILES})]), use)
    assert result.is_error
    assert text(result) == "Tool 'load_skill_instructions' failed: LookupError: no such row"
