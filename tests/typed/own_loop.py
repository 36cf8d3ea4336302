"""Loops of a program's own over OpenAI's client: definitions and results go to the client as they are."""

from collections.abc import Mapping
from typing import Any, assert_type

from openai import OpenAI
from openai.types.responses import ResponseInputParam

from skillshelf import Shelf, Tool
from skillshelf.adapters.openai import dispatch, dispatch_async, openai_tools


def ask_user(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    return input(f"Run {tool.name} with {arguments}? ") == "y"


async def ask_user_later(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    return ask_user(tool, arguments)


def chat(client: OpenAI, shelf: Shelf, message: str) -> str:
    with shelf.turn():
        messages: list[Any] = [
            {"role": "system", "content": shelf.listing().text},
            {"role": "user", "content": message},
        ]
        while True:
            completion = client.chat.completions.create(
                model="gpt-5", messages=messages, tools=openai_tools(shelf, "chat")
            )
            reply = completion.choices[0].message
            if not reply.tool_calls:
                return reply.content or ""
            messages.append(reply.to_dict())
            for call in reply.tool_calls:
                if call.type == "function":
                    text = dispatch(shelf, call.function.name, call.function.arguments, approve=ask_user)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


def respond(client: OpenAI, shelf: Shelf, message: str) -> str:
    with shelf.turn():
        items: ResponseInputParam = [{"role": "user", "content": message}]
        while True:
            response = client.responses.create(
                model="gpt-5", instructions=shelf.listing().text, input=items, tools=openai_tools(shelf, "responses")
            )
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return response.output_text
            for call in calls:
                text = dispatch(shelf, call.name, call.arguments)
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})


async def call_without_blocking(shelf: Shelf) -> None:
    assert_type(await dispatch_async(shelf, "list_skills", {}, approve=ask_user_later), str)
