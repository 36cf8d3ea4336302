"""Use the MCP server through the SDK's in-memory client."""

import asyncio
import base64
import json
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

from mcp import Client, MCPError, types
from mcp.types import INVALID_PARAMS

from faces.mcp import MCP
from mcp_kit import FILES, MANUAL, PDF, invoke, load, make_shelf, talk, text
from skillshelf import BaseSkill, MemorySource, Shelf, tool
from skillshelf.errors import InvalidSkillError
from skillshelf.mcp import SkillsServer, make_server
from skillshelf.mcp._limits import MAX_WHOLE_FILE
from skillshelf.mcp._prompts import join_arguments
from skillshelf.mcp._skill_files import paginate_files
from skillshelf.shelf.pages import PAGE_BYTES
from skillshelf.slash import read_message
from skillshelf.slash._skills import split_words
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import run as conform


class Desk(BaseSkill):
    """A code skill with tools of every policy, and tools that fail."""

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
        """Fail."""
        raise RuntimeError("over the carpet")

    @tool
    def leave(self) -> str:
        """End the program, as argparse does."""
        raise SystemExit(2)

    @tool
    async def go(self) -> str:
        """End the program from within the event loop."""
        raise SystemExit("gone")

    @tool
    def interrupt(self) -> str:
        """Act as if the user had pressed Ctrl-C."""
        raise KeyboardInterrupt


def test_the_conformance_scenario_passes() -> None:
    report = asyncio.run(conform(MCP()))
    assert report.passed, report


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_sees_the_three_tools_and_loads_with_them(mode: str) -> None:
    """Check both the handshake revisions of the protocol and the one without a handshake."""

    async def use(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "list_skills",
            "search_skills",
            "load_skill_instructions",
        ]
        results = json.loads(text(await client.call_tool("search_skills", {"query": "fill a form"})))
        assert results["skills"][0]["name"] == "pdf"
        assert text(await load(client, skill_name="pdf", reference="forms.md")) == "Fields.\n"

    talk(make_shelf()[0], use, mode=mode)


def test_capabilities_declare_the_changing_lists_and_the_skills_extension() -> None:
    """Resources and prompts may change, tools do not. Extensions exist from the revision of 2026-07-28 on."""

    async def use(client: Client) -> types.ServerCapabilities:
        return client.server_capabilities

    capabilities = talk(make_shelf()[0], use)
    assert capabilities.extensions == {"io.modelcontextprotocol/skills": {"directoryRead": True}}
    capabilities = talk(make_shelf()[0], use, mode="legacy")
    assert capabilities.resources.list_changed
    assert capabilities.prompts.list_changed
    assert not capabilities.tools.list_changed


def test_a_refusal_is_a_tool_error_that_suggests_a_correction() -> None:
    """A model can continue after any of these errors."""

    async def use(client: Client) -> list[types.CallToolResult]:
        return [
            await load(client, skill_name="pfd"),
            await load(client, skill_name="pdf", reference="../../etc/passwd"),
            await load(client, skill_name="pdf", colour="red"),
        ]

    unknown, outside, extra = talk(make_shelf()[0], use)
    assert unknown.is_error
    assert "Did you mean 'pdf'?" in text(unknown)
    assert outside.is_error
    assert "references/forms.md" in text(outside)
    assert extra.is_error
    assert "colour" in text(extra)


def test_the_list_of_skills_follows_the_shelf() -> None:
    shelf, source = make_shelf()

    async def use(client: Client) -> list[list[str]]:
        listings = []
        for _ in range(3):
            listings.append(
                [skill["name"] for skill in json.loads(text(await client.call_tool("list_skills", {})))["skills"]]
            )
            if len(listings) == 2:
                source.remove("notes")
                shelf.reload()
        return listings

    assert talk(shelf, use) == [["notes", "pdf"], ["notes", "pdf"], ["pdf"]]


def test_resources_are_the_files_of_the_skills() -> None:
    """The listing comes first. Files that the author hides from the model are left out."""

    async def use(client: Client) -> list[tuple[str, str | None]]:
        return [(resource.uri, resource.mime_type) for resource in (await client.list_resources()).resources]

    assert talk(make_shelf()[0], use) == [
        ("skill://listing", "text/markdown"),
        ("skill://notes/SKILL.md", "text/markdown"),
        ("skill://pdf/SKILL.md", "text/markdown"),
        ("skill://pdf/assets/logo.png", "image/png"),
        ("skill://pdf/references/forms.md", "text/markdown"),
    ]


def test_resources_come_in_pages() -> None:
    """Each page has a cursor that leads to the next one."""
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
        pages.append([resource.uri for resource in page.resources])
        cursor = page.next_cursor
        if cursor is None:
            return pages


def test_a_page_has_a_fixed_number_of_resources() -> None:
    """Two skills with many references fill as many pages as many skills with few references."""
    references = [f"references/{at:02}.md" for at in range(14)]
    files = {"SKILL.md": PDF, **dict.fromkeys(references, "x")}
    skills = {name: {**files, "SKILL.md": PDF.replace("pdf", name)} for name in ("one", "two")}
    pages = talk(SkillsServer(Shelf([MemorySource(skills)]), page_size=10), all_pages)
    assert [len(page) for page in pages] == [11, 10, 10]
    every = [f"skill://{name}/{path}" for name in skills for path in ("SKILL.md", *references)]
    assert [uri for page in pages for uri in page] == ["skill://listing", *every]


def test_listing_continues_after_the_item_at_the_cursor_is_removed() -> None:
    """A file or a skill may disappear between two pages."""
    files = dict.fromkeys(("assets/a.md", "assets/c.md", "other.md"), "x")
    skills = {name: {"SKILL.md": PDF.replace("pdf", name), **files} for name in ("one", "two")}
    catalog = Shelf([MemorySource(skills)]).catalog

    def after(cursor: str) -> list[str]:
        page, _ = paginate_files(catalog, types.PaginatedRequestParams(cursor=cursor), 100)
        return [f"{skill.name}/{path}" for skill, path in page]

    two = ["two/SKILL.md", "two/assets/a.md", "two/assets/c.md"]
    assert after("one/SKILL.md") == ["one/assets/a.md", "one/assets/c.md", *two]
    assert after("one/assets/b.md") == ["one/assets/c.md", *two]
    assert after("ozone/assets/a.md") == two
    assert after("two/assets/c.md") == []


def test_text_files_are_read_as_text_and_binary_files_as_blobs() -> None:
    """Both come with their media type."""

    async def use(client: Client) -> list[Any]:
        uris = ("skill://pdf/SKILL.md", "skill://pdf/references/forms.md", "skill://pdf/assets/logo.png")
        return [(await client.read_resource(uri)).contents[0] for uri in uris]

    skill, reference, blob = talk(make_shelf()[0], use)
    assert (skill.text, skill.mime_type) == (PDF, "text/markdown")
    assert reference.text == "Fields.\n"
    assert (blob.blob, blob.mime_type) == ("iVBORwD/", "image/png")


def test_a_long_reference_comes_in_pages() -> None:
    """Each page says where the next one begins. Pages never split a character."""
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

    assert talk(make_shelf(pdf={"SKILL.md": PDF, "long.md": "x" + long})[0], use) == "x" + long


def test_an_invalid_offset_is_refused() -> None:
    """Offsets inside a character or past the end are invalid.

    A SKILL.md comes whole, so it takes none, just as with the load tool.
    """
    shelf, _ = make_shelf(
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


def test_a_read_sees_an_edit_without_a_watcher() -> None:
    """A read checks the source first unless it was checked within the last second, as a tool call does."""
    shelf, source = make_shelf()

    async def use(client: Client) -> str:
        source.put("paint", {"SKILL.md": PDF.replace("pdf", "paint"), "new.md": "New."})
        [part] = (await client.read_resource("skill://paint/new.md")).contents
        assert isinstance(part, types.TextResourceContents)
        return part.text

    assert talk(shelf, use) == "New."


@pytest.mark.parametrize("tail", [b"\x80", b"\xbf rest", b"\x80\x80\x80\x80"])
def test_a_long_binary_file_comes_in_pages_too(tail: bytes) -> None:
    """A page may begin with any byte."""
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

    assert talk(make_shelf(pdf={"SKILL.md": PDF, "data.bin": data})[0], use) == data


def test_the_listing_has_the_form_and_the_budget_of_the_server() -> None:
    """A host that reads it gets what the user asked for, and is notified when that changes."""
    shelf, source = make_shelf()
    notified: list[str] = []

    async def use(client: Client) -> list[str]:
        async def read() -> str:
            [contents] = (await client.read_resource("skill://listing")).contents
            assert isinstance(contents, types.TextResourceContents)
            return contents.text

        before = await read()
        async with client.listen(resource_subscriptions=["skill://listing"]) as events:
            source.put("pdf", PDF.replace("See forms.md", "See nothing"))
            shelf.reload()
            async for event in events:
                notified.append(type(event).__name__)
                break
        return [before, await read()]

    before, after = talk(make_server(shelf, disclosure="full", budget=1), use)
    assert "See forms.md" in before
    assert after == shelf.listing("full").text
    assert "See nothing" in after
    assert notified == ["ResourceUpdated"]


def test_the_listing_is_a_resource() -> None:
    """The listing keeps its bytes until a skill changes, and is up to date right after."""
    shelf, source = make_shelf()

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


def test_a_prompt_returns_the_apply_skill_message() -> None:
    """Every skill that the user may invoke is a prompt with the arguments it declares."""

    async def use(client: Client) -> tuple[Any, Any]:
        prompts = (await client.list_prompts()).prompts
        return prompts, await client.get_prompt("notes", {"version": "1.2", "style": "two words"})

    prompts, prompt = talk(make_shelf()[0], use)
    assert [(prompt.name, [argument.name for argument in prompt.arguments]) for prompt in prompts] == [
        ("deploy", ["arguments"]),
        ("notes", ["version", "style"]),
        ("pdf", ["arguments"]),
    ]
    applied = read_message(prompt.messages[0].content.text)
    assert applied is not None
    assert (applied.name, applied.instructions.strip()) == ("notes", "For 1.2 in two words.")


def test_prompt_arguments_arrive_unchanged() -> None:
    """Quotes and spaces survive."""
    skill = make_shelf()[0].catalog["notes"]
    for version, style in (('a "b"', "c\\d e"), ("", "it's"), ("\n", '"')):
        assert split_words(join_arguments(skill, {"version": version, "style": style})) == [version, style]


def test_an_unknown_prompt_argument_is_refused_with_the_known_ones() -> None:
    """The error has the protocol's code for invalid parameters."""

    async def use(client: Client) -> None:
        with pytest.raises(MCPError, match="version, style") as caught:
            await client.get_prompt("notes", {"colour": "red"})
        assert caught.value.code == INVALID_PARAMS

    talk(make_shelf()[0], use)


def test_the_model_loads_a_user_only_skill_by_the_name_in_the_prompt() -> None:
    """The plain name of a skill that is not for the model stays out of the model's reach."""
    shelf, _ = make_shelf(deploy={"SKILL.md": MANUAL, "references/steps.md": "One."})

    async def use(client: Client) -> list[tuple[bool, str]]:
        name = await invoke(client, "deploy")
        answers = [await load(client, skill_name=each, reference="steps.md") for each in ("deploy", name)]
        return [(bool(answer.is_error), text(answer)[:21]) for answer in answers]

    assert talk(shelf, use) == [(True, "There is no skill nam"), (False, "One.")]


def test_completion_knows_names_references_and_arguments() -> None:
    """Completion uses the current catalog."""
    shelf, source = make_shelf()
    template = types.ResourceTemplateReference(uri="skill://{name}/{+path}")

    async def use(client: Client) -> list[list[str]]:
        async def ask(ref: Any, variable: str, value: str, **context: str) -> list[str]:
            completed = await client.complete(ref, {"name": variable, "value": value}, context or None)
            return completed.completion.values

        completions = [
            await ask(template, "name", "p"),
            await ask(template, "path", "form", name="pdf"),
            await ask(template, "path", "", name="deploy"),
            await ask(types.PromptReference(name="pdf"), "arguments", "logo"),
        ]
        source.put("paint", PDF.replace("pdf", "paint"))
        await client.list_prompts()
        return [*completions, await ask(template, "name", "p")]

    assert talk(shelf, use) == [["pdf"], ["references/forms.md"], [], ["assets/logo.png"], ["pdf", "paint"]]


def desk(**policy: Any) -> tuple[Shelf, Desk]:
    skill = Desk().with_policy({"look": "safe", "tidy": "ask", "burn": "blocked", "trip": "safe", **policy})
    return Shelf([ObjectSource([skill])]), skill


def test_tools_of_code_skills_obey_their_policy() -> None:
    """A safe tool runs, a blocked one is not offered and does not run, and a failing one reports its error."""

    async def use(client: Client) -> tuple[list[str], list[tuple[str, bool]]]:
        listed = await client.list_tools()
        results = [await client.call_tool(name, {}) for name in ("look", "burn", "trip")]
        return [each.name for each in listed.tools], [(text(result), bool(result.is_error)) for result in results]

    names, (looked, burnt, tripped) = talk(desk()[0], use)
    assert "look" in names
    assert "burn" not in names
    assert looked == ('{"where": "here"}', False)
    assert burnt[1]
    assert "blocked" in burnt[0]
    assert tripped == ("Tool 'trip' failed: RuntimeError: over the carpet", True)


def test_a_tool_that_exits_ends_only_its_call() -> None:
    """The server keeps serving, whether the tool ran in a thread or in the event loop."""
    shelf, _ = desk(leave="safe", go="safe", interrupt="safe")

    async def use(client: Client) -> list[tuple[str, bool]]:
        results = [await client.call_tool(name, {}) for name in ("leave", "go", "interrupt", "look")]
        return [(text(result), bool(result.is_error)) for result in results]

    assert talk(shelf, use) == [
        ("Tool 'leave' failed: SystemExit: 2", True),
        ("Tool 'go' failed: SystemExit: gone", True),
        ("Tool 'interrupt' failed: KeyboardInterrupt", True),
        ('{"where": "here"}', False),
    ]


def test_the_three_tools_are_annotated_as_read_only() -> None:
    """A host need not ask the user about them. Nothing is claimed about the tools of code skills."""

    async def use(client: Client) -> dict[str, types.ToolAnnotations | None]:
        return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    reads = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    own = ["list_skills", "search_skills", "load_skill_instructions"]
    others = ["look", "tidy", "trip"]
    assert talk(desk()[0], use) == dict.fromkeys(own, reads) | dict.fromkeys(others)


class Lister(BaseSkill):
    name = "lister"
    description = "Lists."
    instructions = "Call list_skills."

    @tool
    def list_skills(self) -> str:
        """List something else."""
        return ""


def test_a_code_skill_cannot_reuse_the_name_of_a_builtin_tool() -> None:
    """Every adapter refuses this, because otherwise one of the two tools would be dropped silently."""
    with pytest.raises(InvalidSkillError, match="A code skill has a tool 'list_skills', as every shelf has"):
        make_server(Shelf([ObjectSource([Lister()])]))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("answer", "done"), [("accept", ["table"]), ("decline", [])])
def test_a_tool_that_asks_runs_only_after_the_user_agrees(mode: str, answer: Any, done: list[str]) -> None:
    """The user sees the arguments, and nothing runs before the answer."""
    shelf, skill = desk()
    questions: list[str] = []

    async def answer_question(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert skill.done == []
        questions.append(params.message)
        return types.ElicitResult(action=answer, content={})

    async def use(client: Client) -> types.CallToolResult:
        return await client.call_tool("tidy", {"what": "table"})

    result = talk(shelf, use, mode=mode, elicitation_callback=answer_question)
    assert skill.done == done
    assert questions == ['Run the tool \'tidy\' with these arguments?\n{"what": "table"}']
    assert bool(result.is_error) is (answer == "decline")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_tool_that_asks_is_refused_if_the_client_cannot_ask(mode: str) -> None:
    """The model is informed and continues without the tool."""
    shelf, skill = desk()

    async def use(client: Client) -> types.CallToolResult:
        return await client.call_tool("tidy", {"what": "table"})

    result = talk(shelf, use, mode=mode)
    assert result.is_error
    assert "cannot ask" in text(result)
    assert "skill.with_policy({'tidy': 'safe'})" in text(result)
    assert skill.done == []


class FailingSource(MemorySource):
    """A custom source that raises an exception of its own."""

    def instructions(self, key: str, descriptor: Any) -> str:
        raise LookupError("no such row")


def test_a_failing_source_is_reported_to_the_model() -> None:
    """The answer to the load is an error that the model can act on."""

    async def use(client: Client) -> types.CallToolResult:
        return await load(client, skill_name="pdf")

    result = talk(Shelf([FailingSource({"pdf": FILES})]), use)
    assert result.is_error
    assert text(result) == "Tool 'load_skill_instructions' failed: LookupError: no such row"
