"""Find sentences of a template that an author has not replaced."""

from collections.abc import Iterator

from skillshelf.descriptor import Diagnostic
from skillshelf.templates import find_template_sentences


def check_template_text(data: bytes, path: str = "") -> Iterator[Diagnostic]:
    """Report each sentence of a template of `skillshelf new` that a file still has. A model would act on it."""
    for sentence in find_template_sentences(data):
        message = f"this sentence of the template is still there: {sentence.text!r}"
        fix = "write your own text in its place, or remove it"
        yield Diagnostic("error", "template-text", message, path, sentence.line, fix)
