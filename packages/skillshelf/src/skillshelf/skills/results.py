"""Results of tools, in the forms that a model can take: text, images, sound, JSON."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, ClassVar, TypeAlias

from skillshelf.errors import ToolResultError
from skillshelf.text import replace_surrogates

MAX_MEDIA = 5 * 1024 * 1024
"""Bytes of images and sound in one result. Providers refuse larger ones, and each later model call sends them again."""


@dataclass(frozen=True, slots=True)
class _Media:
    """Bytes with a media type: the base of Image and Audio."""

    _kind: ClassVar[str]
    data: bytes = field(repr=False)
    media_type: str

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            raise TypeError(f"{type(self).__name__}.data must be bytes, not {type(self.data).__name__}")
        if not re.fullmatch(rf"{self._kind}/[a-z0-9.+-]+", self.media_type):
            raise ValueError(
                f"{type(self).__name__}.media_type must begin with '{self._kind}/', not {self.media_type!r}"
            )

    def __str__(self) -> str:
        """Return the text that a model gets instead if the media cannot be shown."""
        size = f"{len(self.data):,} bytes" if len(self.data) < 1000 else f"{len(self.data) / 1000:,.0f} kB"
        return f"[{self.media_type}, {size}: it cannot be shown here]"


@dataclass(frozen=True, slots=True)
class Image(_Media):
    """An image that a tool returns, by itself or in a list with text: `Image(png_bytes)`."""

    _kind: ClassVar[str] = "image"
    data: bytes = field(repr=False)
    media_type: str = "image/png"


@dataclass(frozen=True, slots=True)
class Audio(_Media):
    """Sound that a tool returns, by itself or in a list with text: `Audio(wav_bytes)`."""

    _kind: ClassVar[str] = "audio"
    data: bytes = field(repr=False)
    media_type: str = "audio/wav"


Part: TypeAlias = str | Image | Audio
_BYTES = bytes | bytearray | memoryview


def has_media(result: Any) -> bool:
    """True if the result is an image or sound, or a list with at least one of them."""
    if isinstance(result, list | tuple):
        return any(isinstance(item, Image | Audio) for item in result)
    return isinstance(result, Image | Audio)


def has_nested_bytes(value: Any) -> bool:
    """True if there are bytes, an image or sound anywhere inside. The value must not hold itself."""
    if isinstance(value, _BYTES | Image | Audio):
        return True
    if isinstance(value, Mapping):
        return any(has_nested_bytes(item) for item in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return any(has_nested_bytes(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return any(has_nested_bytes(getattr(value, each.name)) for each in fields(value))
    return False


def parts_of(result: Any) -> list[Part]:
    """Return a result as texts, images and sounds, in their order. Raises ToolResultError, or as `text_of`."""
    if not has_media(result):
        return [text_of(result)]

    items = list(result) if isinstance(result, list | tuple) else [result]
    parts: list[Part] = []
    size = 0
    for item in items:
        if isinstance(item, Image | Audio):
            size += len(item.data)
            parts.append(item)
        else:
            parts.append(text_of(item))
    if size > MAX_MEDIA:
        raise ToolResultError(
            f"The tool returned {size:,} bytes of images and sound; at most {MAX_MEDIA:,} can be given to a model. "
            "Ask for something smaller."
        )
    return parts


def text_of(result: Any) -> str:
    """Return a result as text. Raises ToolResultError for bytes, TypeError or ValueError if it has no JSON form."""
    import json  # only if needed: `import skillshelf` is to be quick

    if isinstance(result, str):
        return replace_surrogates(result)
    if isinstance(result, Image | Audio):
        return str(result)
    if has_media(result):
        return "\n\n".join(text_of(item) for item in result)
    try:
        text = json.dumps(result, ensure_ascii=False, default=_plain, allow_nan=False)
    except ToolResultError:
        raise
    except ValueError:  # NaN, for example, which becomes null
        plain = json.loads(json.dumps(result, default=_plain), parse_constant=lambda name: None)
        text = json.dumps(plain, ensure_ascii=False)
    return replace_surrogates(text)


def data_of(result: Any) -> Any:
    """Return a result as JSON values. Raises as `text_of`."""
    import json

    if isinstance(result, str):
        return replace_surrogates(result)
    return json.loads(text_of(result))


def data_url(media: Image | Audio) -> str:
    return f"data:{media.media_type};base64,{base64_of(media)}"


def base64_of(media: Image | Audio) -> str:
    from base64 import b64encode

    return b64encode(media.data).decode()


def _plain(value: Any) -> Any:
    """Return the JSON form of a value that `json` does not know."""
    if isinstance(value, _BYTES):
        raise ToolResultError(
            "The tool returned bytes, which a model cannot read. Go on without it; its author can return text, an "
            "Image or Audio."
        )
    if isinstance(value, set | frozenset):
        return list(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Image | Audio):  # deep inside: a model sees only a result itself or an item of its list
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "model_dump"):  # a pydantic model
        return value.model_dump(mode="json")
    return str(value)


@dataclass(frozen=True, slots=True)
class Structure:
    """The shape of a tool's result, if its return annotation says that it is a JSON object."""

    schema: dict[str, Any]
    """JSON Schema."""
    check: Callable[[Any, Any], None]
    """Takes the result and its JSON form. Raises Mismatch if they are not what the schema says."""

    def encode(self, result: Any) -> Any:
        """Return the result as a JSON object that the schema describes. Raises Mismatch, or as `text_of`."""
        plain = data_of(result)
        self.check(result, plain)
        return plain


def structure_of(method: Callable[..., Any]) -> Structure | None:
    """Return the structure that a method's return annotation promises, or None if that is not a JSON object."""
    from skillshelf.skills.schema import return_hint, shape_of_result

    function: Any = getattr(method, "__func__", method)
    hint = return_hint(function, type(getattr(method, "__self__", None)))
    if hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate"):
        return _model_structure(hint)
    shape = shape_of_result(hint)
    if shape is None or shape.schema.get("type") != "object":
        return None
    convert = shape.convert

    def check(result: Any, plain: Any) -> None:
        convert(plain, "result")

    return Structure(shape.schema, check)


def _model_structure(model: Any) -> Structure | None:
    """Return the structure of a pydantic model."""
    from skillshelf.skills.schema import Mismatch

    try:
        schema = model.model_json_schema(by_alias=False, mode="serialization")
    except Exception:  # a field may have no schema, and pydantic raises its own errors for that
        return None
    if schema.get("type") != "object":
        return None

    def check(result: Any, plain: Any) -> None:
        if not isinstance(result, model):
            raise Mismatch(f"it must be a {model.__name__}, not a {type(result).__name__}")

    return Structure(schema, check)
