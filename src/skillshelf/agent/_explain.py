"""What to tell the person when a model cannot answer, without ever repeating a key."""

import os
import re
from collections.abc import Mapping
from typing import Any

from skillshelf.errors import SkillError
from skillshelf.text import clean_line

_SHOWN = 300


def explain(error: BaseException) -> tuple[str, str]:
    """An error amid a run: its class for a program, a sentence for the person. No key is ever in it."""
    if isinstance(error, BaseExceptionGroup):  # several models or tasks failed: the first tells the story
        return explain(error.exceptions[0])
    if isinstance(error, SkillError):
        return type(error).__name__, safe(str(error))
    status = getattr(error, "status_code", None)
    http = f" (HTTP {status})" if isinstance(status, int) else ""
    kinds = [base.__name__ for base in type(error).__mro__]
    if "exceed_context_size_error" in str(getattr(error, "body", "")):  # llama.cpp's word for it
        kinds.insert(0, "ModelContextWindowExceededError")
    for cls, sentence in _SENTENCES.items():
        if cls in kinds:
            said = _said(error)
            text = sentence.format(http=http, model=_model_name(error), host=_host(error), wait=_wait(error))
            return kinds[0], safe(text[0].upper() + f"{text[1:]} {said}".rstrip())
    return kinds[0], safe(f"{kinds[0]}: {error}" if str(error) else kinds[0])


# By the name of the class, so that nothing need be imported to look; the first that fits is taken.
_SENTENCES = {
    "ModelAuthenticationError": "The provider refused the key{http}: check that it is right and may use {model}.",
    "ModelNotFoundError": "The provider does not know {model}{http}: check the name and the address.",
    "ModelContextWindowExceededError": "The conversation is too long for {model}{http}: /new begins another.",
    "ModelQuotaExceededError": "The account has no credit or quota left{http}.",
    "ModelRateLimitError": "The provider's rate limit was reached{http}: {wait}.",
    "ModelUnavailableError": "{model} is not available at the moment{http}: {wait}.",
    "ModelServerError": "The provider failed{http}: {wait}.",
    "ModelRequestTimeout": "{model} did not answer in time.",
    "ModelTimeoutError": "{host} did not answer in time.",
    "ModelConnectionError": "Could not reach {host}, or the connection broke: check the network and the address.",
    "ModelRequestRejectedError": "The provider refused the request{http}.",
    "ModelHTTPError": "The provider answered with an error{http}.",
    "ModelAPIError": "The request to {model} failed.",
    "ContentFilterError": "The provider's content filter stopped the answer.",
    "UsageLimitExceeded": "The limit for one turn was reached.",
    "IncompleteToolCall": "The answer was cut off in the middle of a tool call: its length limit was reached.",
    "UnexpectedModelBehavior": "The model answered in a way that cannot be used.",
    "RunCancelled": "The turn was stopped.",
    "TimeoutError": "It took too long.",
    "ConnectionError": "Could not reach the provider.",
}


def shown(name: str) -> str:
    """A name that somebody typed, which may be a key in the wrong place."""
    return safe(repr(name[:80]))


def _said(error: BaseException) -> str:
    """The provider's own words, where it sent some."""
    body: Any = getattr(error, "body", None)
    for _ in range(3):  # {"error": {"message": …}}, or its inner part
        if isinstance(body, Mapping):
            body = body.get("message") or body.get("error") or body.get("detail")
    if isinstance(body, str) and body.strip():
        return f"It says: {body.strip()[:_SHOWN]}"
    own = getattr(error, "message", "") if not hasattr(error, "model_name") else ""
    return str(own).partition(". Consider raising")[0][:_SHOWN] + ("." if own else "")


def _model_name(error: BaseException) -> str:
    name = getattr(error, "model_name", "")
    return f"the model {name!r:.80}" if name else "the model"


def _host(error: BaseException) -> str:
    """Where the request went: the library beneath keeps it in the exception that it raised first."""
    cause: BaseException | None = error
    while cause is not None:
        request = cause.__dict__.get("request") or cause.__dict__.get("_request")
        if request is not None:
            return str(request.url.host) + (f":{request.url.port}" if request.url.port else "")
        cause = cause.__cause__
    return "the provider"


def _wait(error: BaseException) -> str:
    seconds = getattr(error, "retry_after", None)
    return f"try again in {seconds:.0f} seconds" if isinstance(seconds, int | float) and seconds else "try again later"


# An error of a provider can quote a whole request; what it says is at its beginning.
_LONGEST = 4_096
_KEYS = re.compile(
    r"(?i:\b(?:sk|pk|rk|xai|gsk|hf|ghp|gho|github_pat|pplx|nvapi|csk|r8|key)[-_][\w*.-]{6,})|\bAIza[\w-]{10,}"
    r"|(?i:\bbearer\s+)[^\s\"',}]+|(?<=://)[^/\s@]+(?=@)"
    r"|(?i:\b(?:api[-_ ]?key|authorization|token|password|secret)\b[\"']?\s*[:=]\s*[\"']?(?:bearer\s+)?)[^\s\"',}]{4,}"
)
_LONG_WORD = re.compile(r"(?<![\w-])[\w-]{32,}+")


def safe(text: str) -> str:
    """Return the text fit for a terminal and a log: short, on one line, without what is or looks like a key."""
    text = _shorten(text)
    for variable, value in os.environ.items():
        if len(value) >= 8 and variable.endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")):
            text = text.replace(value, "[key]")
    text = _KEYS.sub("[key]", text)
    return clean_line(_LONG_WORD.sub(_hide_key, text))


def _shorten(text: str) -> str:
    """Cut a long text at a space, so that no half of a key is left that nothing would recognise."""
    if len(text) <= _LONGEST:
        return text
    words = text[:_LONGEST].rsplit(maxsplit=1)
    return f"{words[0]} …" if len(words) > 1 else "…"


def _hide_key(word: re.Match[str]) -> str:
    """A long word of letters and digits may be a key."""
    has_digit = any(char.isdigit() for char in word[0])
    has_letter = any(char.isascii() and char.isalpha() for char in word[0])
    return "[key]" if has_digit and has_letter else word[0]
