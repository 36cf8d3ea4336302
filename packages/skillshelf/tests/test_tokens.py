"""Token counts: the estimate that needs nothing, and the exact count of the `tokens` extra."""

import importlib.util
import itertools
import sys

import pytest

from skillshelf.errors import MissingExtraError
from skillshelf.text.tokens import count, estimate

needs_rs_bpe = pytest.mark.skipif(importlib.util.find_spec("rs_bpe") is None, reason="rs-bpe is not installed")

ENGLISH = """\
# Release checklist

Use this skill when the user asks for a release, a tag or a changelog entry. Work through the steps in order, and stop
at the first one that fails; say which one it was and what you saw.

1. Run the whole test suite, not only the tests of the files that changed.
2. Read every commit since the last tag and write one line per change that a user would notice.
3. Ask before you push. A tag cannot be taken back once others have fetched it.
"""

CODE = """\
```python
def load(path: Path, *, limit: int = 65_536) -> bytes:
    with path.open("rb") as file:
        data = file.read(limit + 1)
        if len(data) > limit:
            raise ValueError(f"{path.name} is larger than {limit} bytes")
    return data
```
"""

TABLE = """\
| Option      | Default | Meaning                          |
|-------------|---------|----------------------------------|
| `--watch`   | off     | Read a skill again when it changes |
| `--strict`  | off     | Refuse skills with diagnostics   |
| `--limit N` | 200     | Show at most N skills            |
"""

DESCRIPTION = "Extract text and tables from PDF files, fill forms, merge documents. Use when the user mentions PDFs."
CHINESE = "从 PDF 文件中提取文本和表格，填写表单并合并文档。当用户提到 PDF 或表单时使用此技能。"
JAPANESE = "PDFファイルからテキストと表を抽出し、フォームに入力します。PDFについて尋ねられたときに使ってください。"
KOREAN = "PDF 파일에서 텍스트와 표를 추출하고 양식을 작성합니다. 사용자가 문서를 언급할 때 사용하세요."
GERMAN = "Liest Texte und Tabellen aus PDF-Dateien, füllt Formulare aus und fügt Dokumente zusammen."
RUSSIAN = "Извлекает текст и таблицы из файлов PDF, заполняет формы и объединяет документы."
THAI = "ดึงข้อความและตารางจากไฟล์ PDF กรอกแบบฟอร์ม และรวมเอกสารเข้าด้วยกัน"

# Each with its o200k count, and how far off the estimate may be.
TEXTS = {
    "english": (ENGLISH, 108, 0.1),
    "code": (CODE, 73, 0.15),
    "table": (TABLE, 70, 0.15),
    "description": (DESCRIPTION, 21, 0.1),
    "chinese": (CHINESE, 32, 0.15),
    "japanese": (JAPANESE, 33, 0.3),
    "korean": (KOREAN, 28, 0.15),
    "german": (GERMAN, 22, 0.2),
    "russian": (RUSSIAN, 21, 0.2),
    "thai": (THAI, 26, 0.35),
}


@pytest.mark.parametrize(("text", "exact", "off"), TEXTS.values(), ids=TEXTS)
def test_estimate_is_close(text: str, exact: int, off: float) -> None:
    """The estimate stays within the stated relative error of the recorded count."""
    assert estimate(text) == pytest.approx(exact, rel=off)


@needs_rs_bpe
@pytest.mark.parametrize(("text", "exact", "off"), TEXTS.values(), ids=TEXTS)
def test_count_is_exact(text: str, exact: int, off: float) -> None:
    """The exact count is the recorded one."""
    assert count(text) == exact


@needs_rs_bpe
def test_count_is_that_of_openai() -> None:
    """The examples in OpenAI's own guide to counting tokens come out as it says."""
    published = {"tiktoken is great!": 6, "antidisestablishmentarianism": 6, "2 + 2 = 4": 7, "お誕生日おめでとう": 8}
    assert {text: count(text) for text in published} == published


def test_empty_text_has_no_tokens() -> None:
    """Empty text has no tokens; any other text has at least one."""
    assert [estimate(text) for text in ("", "a", "\r", "\0", "\ud800", "é")] == [0, 1, 1, 1, 1, 1]


@needs_rs_bpe
def test_count_takes_any_text() -> None:
    """The exact count takes empty text, and a lone surrogate as the question mark that replaces it."""
    assert [count(""), count("a \ud800 b")] == [0, count("a ? b")]


@pytest.mark.parametrize("text", [*"aA7! -\n\r\t中กሀé😀\udfff", "aB3+/x="])
def test_a_megabyte_of_one_thing_grows_in_step(text: str) -> None:
    """A thousand times as much of the same thing is a thousand times as many tokens, and never more than its bytes."""
    some, many = text * 1_000, text * 1_000_000
    assert 0 < estimate(some) <= len(some.encode("utf-8", "surrogatepass"))
    assert estimate(many) == pytest.approx(1_000 * estimate(some), rel=0.1)


def test_more_text_is_never_fewer_tokens() -> None:
    """Reading on never lowers the estimate by more than one run of punctuation merging."""
    text = ENGLISH + CODE + TABLE + CHINESE
    sizes = [estimate(text[:end]) for end in range(len(text))]
    assert all(after >= before - 4 for before, after in itertools.pairwise(sizes))
    assert sizes[-1] == max(sizes)


def test_count_without_the_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without rs-bpe the exact count says what to install; the estimate does not need it."""
    monkeypatch.setitem(sys.modules, "rs_bpe", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[tokens\]'"):
        count("text")
    assert estimate("text") == 1
