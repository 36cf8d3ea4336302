"""Explain to the user why a model cannot answer, without ever repeating a key."""

import math
import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from skillshelf.errors import SkillError, error_code
from skillshelf.text import clean_line, count_noun, truncate

_MAX_QUOTED = 300
"""Characters of the provider's own words that are shown."""
_MAX_MESSAGE = 4_096
"""An error of a provider can quote a whole request; its reason is at its beginning."""


class Explanation(NamedTuple):
    """An error for a program and for a user."""

    code: str
    """Its kind, as `error_code` names it."""
    message: str
    """A sentence without keys and control characters."""


@cache
def error_sentences() -> dict[type[BaseException], str]:
    """Return a sentence for each class of error that a model raises, the most specific first."""
    from pydantic_ai import exceptions  # takes a second, and most commands explain no error of a model

    return {
        exceptions.ModelAuthenticationError: (
            "The provider refused the key{http}: check that it is right and may use {model}."
        ),
        exceptions.ModelNotFoundError: ("The provider does not know {model}{http}: check the name and the address."),
        exceptions.ModelContextWindowExceededError: (
            "The conversation is too long for {model}{http}: /compact shortens it, /new begins another."
        ),
        exceptions.ModelQuotaExceededError: "The account has no credit or quota left{http}.",
        exceptions.ModelRateLimitError: "The provider's rate limit was reached{http}: {wait}.",
        exceptions.ModelUnavailableError: "{model} is not available at the moment{http}: {wait}.",
        exceptions.ModelServerError: "The provider failed{http}: {wait}.",
        exceptions.ModelRequestTimeout: "{model} did not answer in time.",
        exceptions.ModelTimeoutError: "{host} did not answer in time.",
        exceptions.ModelConnectionError: (
            "Could not reach {host}, or the connection broke: check the network and the address."
        ),
        exceptions.ModelRequestRejectedError: "The provider refused the request{http}.",
        exceptions.ModelHTTPError: "The provider answered with an error{http}.",
        exceptions.ModelAPIError: "The request to {model} failed.",
        exceptions.ContentFilterError: "The provider's content filter stopped the answer.",
        exceptions.UsageLimitExceeded: "The limit for one turn was reached.",
        exceptions.IncompleteToolCall: (
            "The answer was cut off in the middle of a tool call: its length limit was reached."
        ),
        exceptions.UnexpectedModelBehavior: "The model answered in a way that cannot be used.",
        exceptions.RunCancelled: "The turn was stopped.",
        TimeoutError: "It took too long.",
        ConnectionError: "Could not reach the provider.",
    }


def explain_error(error: BaseException) -> Explanation:
    """Explain an error that a run raised."""
    from pydantic_ai.exceptions import ModelContextWindowExceededError

    if isinstance(error, BaseExceptionGroup):  # several models or tasks failed: the first tells the story
        return explain_error(error.exceptions[0])
    kind = type(error)
    if isinstance(error, SkillError):
        return Explanation(error_code(kind), hide_keys(str(error)))

    if is_too_long(error):
        kind = ModelContextWindowExceededError
    if is_unreadable(error):
        sentence = "{host} sent something that cannot be read as an answer: check the address, or try again."
        return Explanation("unreadable-answer", hide_keys(_fill_in(sentence, error)))
    for known, sentence in error_sentences().items():
        if issubclass(kind, known):
            return Explanation(error_code(kind), hide_keys(_fill_in(sentence, error)))
    name = kind.__name__
    return Explanation(error_code(kind), hide_keys(f"{name}: {error}" if str(error) else name))


def is_too_long(error: BaseException) -> bool:
    """Return True if the provider found the conversation too long for the model's window."""
    from pydantic_ai.exceptions import ModelAPIError, ModelContextWindowExceededError

    # llama.cpp's name for it, which pydantic-ai does not know.
    is_llama = isinstance(error, ModelAPIError) and error.provider_error_type == "exceed_context_size_error"
    return is_llama or isinstance(error, ModelContextWindowExceededError)


def is_unreadable(error: BaseException) -> bool:
    """Return True if a provider sent something that is not in the form of an answer, such as half a line of JSON."""
    from pydantic_ai.exceptions import ModelAPIError

    return isinstance(error, ModelAPIError) and isinstance(error.__cause__, ValueError)


def _fill_in(sentence: str, error: BaseException) -> str:
    """Complete a sentence with the facts of an error, and add the provider's own words."""
    from pydantic_ai.exceptions import AgentRunError, ModelAPIError, ModelHTTPError

    http = f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""
    model = "the model"
    wait = "try again later"
    quote = ""
    if isinstance(error, ModelAPIError):
        if error.model_name:
            model = f"the model {error.model_name!r:.80}"
        if error.retry_after:
            wait = f"try again in {count_noun(math.ceil(error.retry_after), 'second')}"
        quote = _quote_provider(error.body)
    elif isinstance(error, AgentRunError) and error.message:
        # pydantic-ai's message says how to raise the limit in code, which is of no use to a user.
        quote = error.message.partition(". Consider raising")[0][:_MAX_QUOTED] + "."

    text = sentence.format(http=http, model=model, wait=wait, host=_find_host(error))
    return f"{text[0].upper()}{text[1:]} {quote}".rstrip()


def _quote_provider(body: object) -> str:
    """Return the provider's own words, if it sent some."""
    message: Any = body
    for _ in range(3):  # {"error": {"message": …}}, or its inner part
        if isinstance(message, Mapping):
            message = message.get("message") or message.get("error") or message.get("detail")
    if not isinstance(message, str) or not message.strip():
        return ""
    if message.lstrip().startswith("<"):
        message = _strip_tags(message)
    return f"It says: {message.strip()[:_MAX_QUOTED]}"


def _strip_tags(page: str) -> str:
    """Return the title of a web page, or else its words. A server in front of the provider may answer with one."""
    page = page[:_MAX_MESSAGE]
    title = re.search(r"<title[^>]*>([^<]*)", page, re.IGNORECASE)
    if title and title[1].strip():
        return title[1]
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def _find_host(error: BaseException) -> str:
    """Return the host that the request went to. The exception that a provider's library raised first has it."""
    cause: BaseException | None = error
    while cause is not None:
        try:
            url = getattr(getattr(cause, "request", None), "url", None)
        except RuntimeError:  # an error of httpx that has no request
            url = None
        if url is not None:
            return f"{url.host}:{url.port}" if url.port else str(url.host)
        cause = cause.__cause__
    return "the provider"


_KEYS = re.compile(
    r"(?i:\b(?:sk|pk|rk|xai|gsk|hf|ghp|gho|github_pat|pplx|nvapi|csk|r8|key)[-_][\w*.-]{6,})|\bAIza[\w-]{10,}"
    r"|(?i:\bbearer\s+)[^\s\"',}]+|(?<=://)[^/\s@]+(?=@)"
    r"|(?i:\b(?:api[-_ ]?key|authorization|token|password|secret)\b[\"']?\s*[:=]\s*[\"']?(?:bearer\s+)?)[^\s\"',}]{4,}"
)
_LONG_WORD = re.compile(r"(?<![\w-])[\w-]{32,}+")
_KEY_VARIABLES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_LEAST_KEY = 8


def hide_keys(text: str) -> str:
    """Return the text fit for a terminal and a log: short, on one line, with anything like a key hidden."""
    for variable, value in os.environ.items():
        if len(value) >= _LEAST_KEY and variable.endswith(_KEY_VARIABLES):
            text = text.replace(value, "[key]")
    text = _KEYS.sub("[key]", text)
    # Not before: half of a key could not be recognised.
    return truncate(clean_line(_LONG_WORD.sub(_hide_long_word, text)), _MAX_MESSAGE)


def quote_name(name: str) -> str:
    """Quote a name that a user typed. It may be a key in the wrong place."""
    return hide_keys(repr(name[:80]))


def _hide_long_word(word: re.Match[str]) -> str:
    """Hide a long word of letters and digits, which may be a key."""
    has_digit = any(char.isdigit() for char in word[0])
    has_letter = any(char.isascii() and char.isalpha() for char in word[0])
    return "[key]" if has_digit and has_letter else word[0]
