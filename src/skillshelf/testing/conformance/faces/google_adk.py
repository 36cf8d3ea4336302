"""Google ADK, with a BaseLlm that is scripted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from skillshelf.adapters.google_adk import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance._face import Call, Result, Said

from google.adk.agents import LlmAgent  # isort: skip  # after the adapter, which says what to install
from google.adk.events import Event  # isort: skip
from google.adk.models.base_llm import BaseLlm  # isort: skip
from google.adk.models.llm_request import LlmRequest  # isort: skip
from google.adk.models.llm_response import LlmResponse  # isort: skip
from google.adk.runners import InMemoryRunner  # isort: skip
from google.genai import types  # isort: skip
from pydantic import Field  # isort: skip


class ScriptedLlm(BaseLlm):
    """Makes the calls of its script one by one, then gives the answer."""

    model: str = "scripted"
    script: list[Call | str] = Field(default_factory=list)
    requests: list[LlmRequest] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.requests.append(llm_request)
        step = self.script.pop(0)
        part = (
            types.Part(text=step)
            if isinstance(step, str)
            else types.Part.from_function_call(name=step.tool, args=step.arguments)
        )
        # Without a count, ADK writes a warning for each call.
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


@dataclass
class _Conversation:
    runner: InMemoryRunner
    model: ScriptedLlm

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Said:
        self.model.script, self.model.requests = [*calls, answer], []
        results: dict[str | None, Result] = {}
        said = ""
        message: types.Part | None = types.Part(text=text)
        while message:
            content, message = types.Content(role="user", parts=[message]), None
            async for event in self.runner.run_async(user_id="user", session_id="conformance", new_message=content):
                # After the person's word a call has a second response, in place of the one that said it must wait.
                results |= {one.id: _result(one) for one in event.get_function_responses()}
                message = message or _person(event, calls)
                if event.is_final_response() and event.content:
                    said = _text(event.content)
        return Said(
            tuple(str(request.config.system_instruction or "") for request in self.model.requests),
            tuple(self.model.requests[0].tools_dict),
            tuple(results.values()),
            said,
            tuple(_text(request.contents[-1]) for request in self.model.requests),
        )

    async def close(self) -> None:
        await self.runner.close()


def _text(content: types.Content) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text)


def _person(event: Event, calls: Sequence[Call]) -> types.Part | None:
    """The answer to ADK's request for confirmation, where the event is one."""
    for one in event.get_function_calls():
        if one.name == "adk_request_confirmation":
            about = (one.args or {})["originalFunctionCall"]
            yes = Call(about["name"], about["args"], approve=True) in calls
            word = types.FunctionResponse(id=one.id, name=one.name, response={"confirmed": yes})
            return types.Part(function_response=word)
    return None


def _result(response: types.FunctionResponse) -> Result:
    held = response.response or {}
    return Result(str(held.get("error") or held.get("result", held)), "error" in held)


class GoogleADK:
    name = "google-adk"

    async def open(self, shelf: Shelf) -> _Conversation:
        model = ScriptedLlm()
        runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[Skills(shelf)]), app_name="conformance")
        await runner.session_service.create_session(app_name="conformance", user_id="user", session_id="conformance")
        return _Conversation(runner, model)


def make() -> GoogleADK:
    return GoogleADK()
