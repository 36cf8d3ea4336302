"""A program's own agent loop: `openai_tools` returns the definitions, `dispatch` runs the calls."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("openai", reason="needs the extra `chat`")

from openai import OpenAI

from openai_api import OpenAIApi
from skillshelf import BaseSkill, MemorySource, PolicyError, Shelf, Tool, tool
from skillshelf.adapters.openai import dispatch, dispatch_async, openai_tools
from skillshelf.shelf import current_turn
from skillshelf.sources import ObjectSource

GREETING = "---\nname: greeting\ndescription: Greet people by name.\n---\n\nSay hello.\n"


class Orders(BaseSkill):
    name = "orders"
    description = "Look up orders, and cancel them."
    instructions = "Call `find_order`."

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.turns: list[object] = []

    @tool
    def find_order(self, number: str, full: bool = False) -> dict[str, Any]:
        """Find an order."""
        self.turns.append(current_turn.get())
        return {"number": number, "state": "sent"}

    @tool
    async def track(self, number: str) -> str:
        """Say where an order is."""
        await asyncio.sleep(0)
        return f"{number} is in Oslo"

    @tool
    def cancel(self, number: str) -> str:
        """Cancel an order."""
        self.cancelled.append(number)
        return f"cancelled {number}"

    @tool
    def crash(self) -> str:
        """Fail."""
        raise RuntimeError("the database is away")


@pytest.fixture
def orders() -> Orders:
    return Orders().with_policy({"cancel": "ask", "crash": "safe"})


@pytest.fixture
def shelf(orders: Orders) -> Shelf:
    return Shelf([ObjectSource([orders]), MemorySource({"greeting": GREETING})])


def yes(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    return True


SCRIPT: list[str | tuple[str, str]] = [
    ("load_skill_instructions", '{"skill_name": "greeting"}'),
    ("find_order", '{"number": "A-17"}'),
    ("find_order", '{"number": '),
    "It was sent.",
]


def test_a_chat_completions_loop_loads_a_skill_and_calls_its_tools(shelf: Shelf) -> None:
    """The loop talks over HTTP with OpenAI's own client."""
    api = OpenAIApi(SCRIPT)
    messages: list[Any] = [{"role": "user", "content": "Where is A-17?"}]
    with api.serve() as url, shelf.turn() as turn:
        client = OpenAI(base_url=url, api_key="none")
        while True:
            completion = client.chat.completions.create(
                model="tiny", messages=messages, tools=openai_tools(shelf, "chat")
            )
            reply = completion.choices[0].message
            messages.append(reply.to_dict())
            if not reply.tool_calls:
                break
            for call in reply.tool_calls:
                assert call.type == "function"
                text = dispatch(shelf, call.function.name, call.function.arguments)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

    results = [message["content"] for message in api.requests[-1]["messages"] if message["role"] == "tool"]
    assert (reply.content, results[:2]) == ("It was sent.", ["Say hello.\n", '{"number": "A-17", "state": "sent"}'])
    assert results[2].startswith("Tool 'find_order' cannot take these arguments: they are not JSON: ")
    assert [one.skill for one in turn.activations] == ["greeting"]
    definitions = [each["function"] for each in api.requests[0]["tools"] if each["type"] == "function"]
    assert [each["name"] for each in definitions][2:4] == ["load_skill_instructions", "find_order"]
    assert definitions[3] == {
        "name": "find_order",
        "description": "Find an order.",
        "parameters": {
            "type": "object",
            "properties": {"number": {"type": "string"}, "full": {"type": "boolean", "default": False}},
            "required": ["number"],
            "additionalProperties": False,
        },
        "strict": False,
    }


def test_a_responses_loop_loads_a_skill_and_calls_its_tools(shelf: Shelf) -> None:
    """The loop talks over HTTP with OpenAI's own client."""
    api = OpenAIApi(SCRIPT)
    items: list[Any] = [{"role": "user", "content": "Where is A-17?"}]
    with api.serve() as url, shelf.turn():
        client = OpenAI(base_url=url, api_key="none")
        while True:
            response = client.responses.create(model="tiny", input=items, tools=openai_tools(shelf, "responses"))
            items += [item.to_dict() for item in response.output]
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            for call in calls:
                text = dispatch(shelf, call.name, call.arguments)
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})

    results = [item["output"] for item in api.requests[-1]["input"] if item.get("type") == "function_call_output"]
    assert response.output_text == "It was sent."
    assert results[:2] == ["Say hello.\n", '{"number": "A-17", "state": "sent"}']
    definition = api.requests[0]["tools"][3]
    # Without `strict: false` this API would make every argument required.
    assert (definition["type"], definition["name"], definition["strict"]) == ("function", "find_order", False)


def test_another_form_is_refused(shelf: Shelf) -> None:
    """The message names the two valid forms."""
    with pytest.raises(ValueError, match=r"Unknown form 'assistants'. Choose 'chat' or 'responses'"):
        openai_tools(shelf, "assistants")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("find_orders", "{}", "There is no tool 'find_orders'. The tools: list_skills, search_skills,"),
        ("find_order", "[]", "Tool 'find_order' cannot take these arguments: they must be a JSON object."),
        ("find_order", "{}", "the tool needs the argument 'number'"),
        ("find_order", "", "the tool needs the argument 'number'"),
        ("find_order", {"number": 17}, "'number' must be a string, not 17"),
        ("find_order", "[" * 100_000, "they are nested too deeply"),
        ("find_order", '{"number": ' + "1" * 10_000 + "}", "they are not JSON"),
        ("load_skill_instructions", {"skill_name": "greting"}, "Did you mean 'greeting'?"),
        ("load_skill_instructions", {"skill_name": "greeting", "reference": "../.env"}, "does not offer the reference"),
        ("crash", {}, "Tool 'crash' failed: RuntimeError: the database is away"),
    ],
)
def test_a_models_mistake_comes_back_as_text(shelf: Shelf, name: str, arguments: Any, expected: str) -> None:
    """Whatever the model wrote, nothing is raised, and the text says what would be right."""
    assert expected in dispatch(shelf, name, arguments)
    assert expected in asyncio.run(dispatch_async(shelf, name, arguments))


def test_a_tool_that_asks_is_refused_without_a_way_to_ask(shelf: Shelf, orders: Orders) -> None:
    """The model is informed that the program does not ask the user."""
    text = dispatch(shelf, "cancel", {"number": "A-17"})
    assert "runs only after the user has approved the call, and this program does not ask" in text
    assert "skill.with_policy({'cancel': 'safe'})" in text
    assert orders.cancelled == []


@pytest.mark.parametrize("answer", [False, None, "no"])
def test_a_tool_that_asks_does_not_run_unless_the_answer_is_true(shelf: Shelf, orders: Orders, answer: Any) -> None:
    """A text such as "no" is true to Python, and not a yes."""
    text = dispatch(shelf, "cancel", {"number": "A-17"}, approve=lambda tool, arguments: answer)
    assert text == "The user denied this call to 'cancel'. Don't retry; ask how to proceed."
    assert orders.cancelled == []


def test_the_user_is_asked_about_the_arguments_that_run(shelf: Shelf, orders: Orders) -> None:
    """The callback gets the parsed arguments, and only for tools whose permission is `ask`."""
    questions: list[tuple[str, Mapping[str, Any]]] = []

    def approve(tool: Tool, arguments: Mapping[str, Any]) -> bool:
        questions.append((tool.name, arguments))
        return True

    dispatch(shelf, "find_order", '{"number": "A-17"}', approve=approve)
    assert dispatch(shelf, "cancel", '{"number": "A-17"}', approve=approve) == "cancelled A-17"
    assert (questions, orders.cancelled) == ([("cancel", {"number": "A-17"})], ["A-17"])


def test_a_blocked_tool_stays_blocked_after_a_yes(shelf: Shelf) -> None:
    """Only the host's policy can allow it."""
    blocked = Shelf([ObjectSource([Orders().with_policy({"cancel": "blocked"})])])
    assert "is blocked by the policy" in dispatch(blocked, "cancel", {"number": "A-17"}, approve=yes)


def test_calls_inside_a_turn_share_it(shelf: Shelf, orders: Orders) -> None:
    """The second load reads no file, and a code skill's tool finds the same turn."""
    with shelf.turn() as turn:
        dispatch(shelf, "load_skill_instructions", {"skill_name": "greeting"})
        dispatch(shelf, "load_skill_instructions", {"skill_name": "greeting"})
        dispatch(shelf, "find_order", {"number": "A-17"})
    assert (turn.hits, orders.turns) == (1, [turn])


def test_a_call_outside_a_turn_has_one_of_its_own(shelf: Shelf, orders: Orders) -> None:
    """That turn ends with the call."""
    dispatch(shelf, "find_order", {"number": "A-17"})
    dispatch(shelf, "find_order", {"number": "A-17"})
    assert current_turn.get() is None
    assert None not in orders.turns
    assert orders.turns[0] is not orders.turns[1]


def test_plain_code_can_call_an_async_tool(shelf: Shelf) -> None:
    """This also works while an event loop is running, as in a notebook."""

    async def inside_a_loop() -> str:
        return dispatch(shelf, "track", {"number": "A-17"})

    assert dispatch(shelf, "track", {"number": "A-17"}) == "A-17 is in Oslo"
    assert asyncio.run(inside_a_loop()) == "A-17 is in Oslo"


def test_async_code_can_ask_the_user_asynchronously(shelf: Shelf, orders: Orders) -> None:
    """Async tools run on the caller's event loop."""

    async def approve(tool: Tool, arguments: Mapping[str, Any]) -> bool:
        await asyncio.sleep(0)
        return bool(arguments["number"] == "A-17")

    async def main() -> list[str]:
        with shelf.turn():
            return [
                await dispatch_async(shelf, "track", '{"number": "A-17"}'),
                await dispatch_async(shelf, "cancel", {"number": "A-17"}, approve=approve),
                await dispatch_async(shelf, "cancel", {"number": "A-18"}, approve=approve),
                await dispatch_async(shelf, "find_order", {"number": "A-17"}),
            ]

    tracked, cancelled, refused, found = asyncio.run(main())
    assert (tracked, cancelled) == ("A-17 is in Oslo", "cancelled A-17")
    assert refused.startswith("The user denied this call")
    assert json.loads(found)["state"] == "sent"
    assert orders.cancelled == ["A-17"]


def test_a_raw_skill_without_a_policy_is_the_programs_mistake() -> None:
    """The error is raised, so the model does not see it."""

    class Shell(BaseSkill):
        name = "shell"
        description = "Run commands."
        category = "raw"

        @tool
        def run(self, command: str) -> str:
            """Run a command."""
            return command

    with pytest.raises(PolicyError, match="needs a permission"):
        dispatch(Shelf([ObjectSource([Shell()])]), "list_skills", {})
