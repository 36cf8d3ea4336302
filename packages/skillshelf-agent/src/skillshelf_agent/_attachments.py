"""What goes to the model with a message of the user: files that it mentions, images, and commands that the user ran."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from skillshelf.errors import FileAccessError
from skillshelf.files import is_at_or_inside
from skillshelf.text import clean, count_noun, text_for_model, truncate_middle
from skillshelf.text.tokens import Counter, estimate
from skillshelf_agent.filetools import (
    MAX_MEDIA_BYTES,
    FileAccess,
    Media,
    list_directory,
    read_page,
    show_path,
    sniff_media_type,
)
from skillshelf_agent.sessions import mark_attachment

if TYPE_CHECKING:
    from skillshelf_agent._models import ChosenModel

MAX_FILES = 20
"""Files that one message may attach."""
MAX_IMAGES = 5
"""Images among them. Each stays in the conversation and in the session's file, with up to 5 MB."""
_IMAGE_TOKENS = 1_600
"""What a large image takes with most providers, which scale larger ones down to this."""
_DOCUMENT_BYTES_PER_TOKEN = 25
"""A page of a PDF has about 50 KB, and takes about 2,000 tokens as text and as an image."""
_MAX_OUTPUT = 16_000
"""Characters of a command's output: half of them from its beginning, half from its end."""
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|([^\s"@][^\s"]*))')
_TRAILING = ".,;:!?)]}'"
"""Marks that end a sentence rather than a path."""
_DROPPED = re.compile(r"""(?<!\S)(?:'(/[^'\n]+)'|"(/[^"\n]+)"|(/(?:[^\s\\'"]|\\.)+))(?!\S)""")
_MAX_DROP_MESSAGE = 2_000
"""Characters of a message in which the path of an image counts as dropped. In a pasted log, it is part of the text."""
_ESCAPED = re.compile(r"\\(.)")
_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|gif|webp)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that the model gets with a message of the user."""

    name: str
    """The path, or the command after an exclamation mark."""
    summary: str
    """What it is, for a line on the screen: `120 lines`."""
    text: str
    """What the model reads. For an image, its name."""
    image: BinaryContent | None = None

    def count_tokens(self, counter: Counter = estimate) -> int:
        """Count the tokens of the text, and estimate those of an image."""
        image_tokens = estimate_file_tokens(self.image) if self.image is not None else 0
        return counter(self.text) + image_tokens

    def make_content(self) -> Iterator[UserContent]:
        yield mark_attachment(self.name, self.text)
        if self.image is not None:
            yield self.image


@dataclass(slots=True)
class FoundAttachments:
    """The files that a message mentions."""

    attachments: list[Attachment] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why mentioned files were not attached."""


class AttachmentFinder:
    """Reads the files that messages mention: in the workspace, and with the file tools' rules."""

    def __init__(self, access: FileAccess, model: ChosenModel) -> None:
        self._access = access
        self._model = model

    def find(self, message: str, *, dropped: bool, pasted: Mapping[str, bytes]) -> FoundAttachments:
        """Read the files that a message mentions as `@path` or `@"path with spaces"`.

        With `dropped`, the absolute path of an image in a short message counts, too, wherever the image is: terminals
        insert it when the user drops a file on them. `pasted` are images without a file, each by its name.
        """
        found = FoundAttachments()
        for path in dict.fromkeys(_find_mentions(message)):
            self._attach(path, found)
        if dropped and len(message) <= _MAX_DROP_MESSAGE:
            for path in dict.fromkeys(_find_dropped_images(message)):
                self._attach_dropped(path, found)
        for name, data in pasted.items():
            self._attach_pasted(name, data, found)
        return found

    def _attach(self, typed: str, found: FoundAttachments) -> None:
        path = self._choose_spelling(typed)
        if path is None:
            if "/" in typed or "." in typed:
                found.problems.append(f"@{show_path(typed)} is not a file here, so only its name was sent.")
            return
        self._add(path, self._access, found)

    def _attach_dropped(self, path: str, found: FoundAttachments) -> None:
        real = os.path.realpath(path)
        if not os.path.isfile(real):
            return
        access = self._access
        if not is_at_or_inside(real, access.root):
            access = FileAccess(os.path.dirname(real))
        self._add(real, access, found, shown=path)

    def _attach_pasted(self, name: str, data: bytes, found: FoundAttachments) -> None:
        media_type = sniff_media_type(data)
        if not media_type.startswith("image/"):
            found.problems.append(f"{name} was not attached: it is no image that a model takes.")
        elif len(data) > MAX_MEDIA_BYTES:
            found.problems.append(f"{name} was not attached: it has more than {MAX_MEDIA_BYTES:,} bytes.")
        else:
            self._keep(_make_image(name, f"The user attached {name} from the clipboard:", data, media_type), found)

    def _keep(self, attachment: Attachment, found: FoundAttachments) -> None:
        """Add an attachment to those found, if it can go with them."""
        problem = self._find_problem(attachment, found.attachments)
        if problem:
            found.problems.append(f"{attachment.name} was not attached: {problem}.")
        else:
            found.attachments.append(attachment)

    def _add(self, path: str, access: FileAccess, found: FoundAttachments, shown: str = "") -> None:
        shown = show_path(shown or path)
        if len(found.attachments) >= MAX_FILES:
            found.problems.append(f"{shown} was not attached: a message takes {MAX_FILES} files.")
            return
        try:
            attachment = _read(access, path, shown)
        except FileAccessError as error:
            found.problems.append(f"Not attached: {error}")
            return
        self._keep(attachment, found)

    def _find_problem(self, attachment: Attachment, others: Sequence[Attachment]) -> str:
        """Return why a file cannot go with the others, or an empty string."""
        if attachment.image is not None:
            images = [other for other in others if other.image is not None]
            if len(images) >= MAX_IMAGES:
                return f"a message takes {count_noun(MAX_IMAGES, 'image')}"
            return self._find_image_problem(attachment.image.media_type)

        room = self._model.window // 2
        tokens = sum(other.count_tokens() for other in (*others, attachment))
        if self._model.window and tokens > room:
            return f"with it, the attached files would have {tokens:,} tokens, and half of the window is {room:,}"
        return ""

    def _find_image_problem(self, media_type: str) -> str:
        """Return why the model cannot get a file of this type, or an empty string if nothing speaks against it."""
        profile = self._model.model.profile
        takes_it = profile.get("supports_image_input", True)
        kind = "images"
        if not media_type.startswith("image/"):
            takes_it = profile.get("supports_document_input", True)
            kind = "PDF files"
        if takes_it:
            return ""
        return f"{self._model.name} does not take {kind}. /model chooses another model"

    def _choose_spelling(self, typed: str) -> str | None:
        """Return the path that was meant: as typed, or without the marks that end a sentence. None if there is none."""
        for path in (typed, typed.rstrip(_TRAILING)):
            if path and self._exists(path):
                return path
        return None

    def _exists(self, path: str) -> bool:
        try:
            parts = self._access.resolve(path)
        except FileAccessError:
            return False
        try:
            return os.path.lexists(self._access.real_path(parts))
        except ValueError:
            return False


def attach_command(command: str, output: str, outcome: str) -> Attachment:
    """Return a command that the user ran, with the beginning and the end of its output, for the next message.

    `outcome` says how it ended: `exit code 1`.
    """
    shown = truncate_middle(text_for_model(clean(output)), _MAX_OUTPUT).rstrip("\n")
    quoted = "\n".join(f"| {line}" for line in shown.split("\n")) if shown else "(no output)"
    text = (
        f"The user ran this command in their own shell, outside your tools and your sandbox ({outcome}):\n"
        f"$ {clean(command)}\n{quoted}"
    )
    return Attachment(f"!{command}", outcome, text)


def list_content(attachments: Sequence[Attachment]) -> list[UserContent]:
    """Return attachments as parts of a message."""
    return [part for attachment in attachments for part in attachment.make_content()]


def leave_out_images(messages: Sequence[ModelMessage], images: Sequence[BinaryContent]) -> list[ModelMessage]:
    """Return the messages without these images. The text that names each of them stays."""
    left: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            message = replace(message, parts=[_leave_out_of_part(part, images) for part in message.parts])
        left.append(message)
    return left


def _leave_out_of_part(part: ModelRequestPart, images: Sequence[BinaryContent]) -> ModelRequestPart:
    if not isinstance(part, UserPromptPart) or isinstance(part.content, str):
        return part
    content = ["(left out)" if item in images else item for item in part.content]
    return replace(part, content=content)


# -- their tokens: no provider says them beforehand, so all are estimates ---------------------------------------------


def estimate_file_tokens(file: BinaryContent) -> int:
    """Return about how many tokens a file takes that is not text."""
    if file.is_image:
        return _IMAGE_TOKENS
    return max(_IMAGE_TOKENS, len(file.data) // _DOCUMENT_BYTES_PER_TOKEN)


def estimate_files(messages: Sequence[ModelMessage]) -> int:
    """Return about how many tokens the images and documents of a conversation take."""
    return sum(estimate_file_tokens(file) for file in _list_files(messages))


def _list_files(messages: Sequence[ModelMessage]) -> Iterator[BinaryContent]:
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                yield from (file for file in part.files if isinstance(file, BinaryContent))
            elif isinstance(part, UserPromptPart) and not isinstance(part.content, str):
                yield from (item for item in part.content if isinstance(item, BinaryContent))


# -- reading ----------------------------------------------------------------------------------------------------------


def _find_mentions(message: str) -> Iterator[str]:
    for match in _MENTION.finditer(message):
        yield match[1] or match[2]


def _find_dropped_images(message: str) -> Iterator[str]:
    for match in _DROPPED.finditer(message):
        path = match[1] or match[2] or _ESCAPED.sub(r"\1", match[3])
        if _IMAGE_NAME.search(path):
            yield path


def _read(access: FileAccess, path: str, shown: str) -> Attachment:
    """Read a file or list a folder. Raises FileAccessError."""
    parts = access.resolve(path)
    if not parts or os.path.isdir(access.real_path(parts)):
        listed = list_directory(access, path)
        count = count_noun(len(listed.splitlines()), "line")
        return Attachment(shown, count, f"The user attached the folder {shown}, which has:\n{listed}")

    page = read_page(access, path)
    if isinstance(page, Media):
        return _make_image(shown, f"The user attached the file {shown}:", page.data, page.media_type)
    lines = count_noun(max(0, page.count("\n") - 1), "line")
    return Attachment(shown, lines, f"The user attached a file, as it is now:\n{text_for_model(page)}")


def _make_image(name: str, text: str, data: bytes, media_type: str) -> Attachment:
    summary = f"{media_type}, {max(1, len(data) >> 10):,} KiB"
    return Attachment(name, summary, text, BinaryContent(data, media_type=media_type))
