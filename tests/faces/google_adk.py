"""Google ADK, with a scripted BaseLlm."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import Field

from skillshelf.adapters.google_adk import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance import Call, Reply, Result


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
        if isinstance(step, str):
            part = types.Part(text=step)
        else:
            part = types.Part.from_function_call(name=step.tool, args=step.arguments)
        # Without a count, ADK writes a warning for each call.
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=usage)


@dataclass
class _Conversation:
    runner: InMemoryRunner
    model: ScriptedLlm

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        self.model.script = [*calls, answer]
        self.model.requests = []
        results: dict[str | None, Result] = {}
        final_answer = ""
        message: types.Part | None = types.Part(text=text)
        while message:
            content = types.Content(role="user", parts=[message])
            message = None
            async for event in self.runner.run_async(user_id="user", session_id="conformance", new_message=content):
                # After the user's answer a call has a second response, which replaces the one that asked to wait.
                for response in event.get_function_responses():
                    results[response.id] = _read_result(response)
                message = message or _answer_question(event, calls)
                if event.is_final_response() and event.content:
                    final_answer = _text_of(event.content)

        requests = self.model.requests
        return Reply(
            system_prompts=tuple(str(request.config.system_instruction or "") for request in requests),
            tools=tuple(requests[0].tools_dict),
            results=tuple(results.values()),
            answer=final_answer,
            last_messages=tuple(_text_of(request.contents[-1]) for request in requests),
        )

    async def close(self) -> None:
        await self.runner.close()


def _text_of(content: types.Content) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text)


def _answer_question(event: Event, calls: Sequence[Call]) -> types.Part | None:
    """Return the answer to ADK's request for confirmation, if the event is one."""
    for question in event.get_function_calls():
        if question.name == "adk_request_confirmation":
            original = (question.args or {})["originalFunctionCall"]
            is_approved = Call(original["name"], original["args"], approve=True) in calls
            answer = types.FunctionResponse(id=question.id, name=question.name, response={"confirmed": is_approved})
            return types.Part(function_response=answer)
    return None


def _read_result(response: types.FunctionResponse) -> Result:
    content = response.response or {}
    text = content.get("error") or content.get("result", content)
    return Result(str(text), "error" in content)


class GoogleADK:
    name = "google-adk"

    async def open(self, shelf: Shelf) -> _Conversation:
        model = ScriptedLlm()
        runner = InMemoryRunner(LlmAgent(name="agent", model=model, tools=[Skills(shelf)]), app_name="conformance")
        await runner.session_service.create_session(app_name="conformance", user_id="user", session_id="conformance")
        return _Conversation(runner, model)
