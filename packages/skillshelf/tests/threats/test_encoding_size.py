"""ENCODING and SIZE: bytes that are not text, and files and folders of absurd size."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillshelf import MemorySource, ReferenceUnreadableError, Shelf, Turn
from skillshelf.shelf.pages import PAGE_BYTES
from skillshelf.text import text_for_model
from skillshelf.text.tokens import estimate
from threats.workspace import (
    GOOD,
    PLAIN,
    Workspace,
    assert_neighbour,
    assert_standard,
    collect_output,
    load,
    read_in_process,
)

TEXT = "---\nname: bad\ndescription: Große Übersicht.\n---\n\nDo it.\n"

# -- encodings --------------------------------------------------------------------------------------------------------

# Bytes of a SKILL.md: the one diagnostic, and its line.
REFUSED: dict[str, tuple[bytes, str, int]] = {
    "E01-latin-1": (TEXT.encode("latin-1"), "not-utf8", 3),
    "E01-in-the-body": (TEXT.encode() + b"caf\xe9\n", "not-utf8", 7),
    "E01-cut-character": (TEXT.encode() + "é".encode()[:1], "not-utf8", 7),
    "E01-overlong": (TEXT.encode() + b"\xc0\xaf", "not-utf8", 7),
    "E01-encoded-surrogate": (TEXT.encode() + b"\xed\xa0\x80", "not-utf8", 7),
    "E01-beyond-unicode": (TEXT.encode() + b"\xf5\x80\x80\x80", "not-utf8", 7),
    "E02-utf-16": (TEXT.encode("utf-16"), "not-utf8", 1),
    "E02-utf-16-big-endian": (b"\xfe\xff" + TEXT.encode("utf-16-be"), "not-utf8", 1),
    "E02-utf-16-without-mark": ("plain".encode("utf-16-le"), "nul-byte", 1),
    "E02-utf-32": (TEXT.encode("utf-32"), "not-utf8", 1),
    "E04-nul": (TEXT.encode() + b"a\0b\n", "nul-byte", 7),
    "E04-only-nul": (b"\0" * 100, "nul-byte", 1),
    "E04-nul-in-name": (b"---\nname: ba\0d\ndescription: d\n---\n", "nul-byte", 2),
    "E06-cr-only": (TEXT.encode().replace(b"\n", b"\r"), "cr-only", 1),
    "E01-gzip": (b"\x1f\x8b\x08\0" + bytes(range(256)), "not-utf8", 1),
    "Y08-empty": (b"", "empty", 1),
    "Y08-blank": (b" \r\n\t\n", "empty", 1),
}


@pytest.mark.parametrize(("data", "code", "line"), REFUSED.values(), ids=REFUSED.keys())
def test_bytes_that_are_not_text_are_refused(data: bytes, code: str, line: int, workspace: Workspace) -> None:
    """E01, E02, E04, E06: a SKILL.md that is not UTF-8 text with lines gets one diagnostic with its place."""
    workspace.raw("bad", data)
    shelf = workspace.shelf()
    assert list(shelf.catalog) == [GOOD]
    assert_standard(workspace, shelf, [(code, "bad/SKILL.md")])
    assert [note.line for note in shelf.catalog.diagnostics] == [line]


def test_a_byte_order_mark_is_skipped(workspace: Workspace) -> None:
    """E03: a BOM costs a note, not the skill."""
    workspace.raw("bad", b"\xef\xbb\xbf" + TEXT.encode())
    shelf = workspace.shelf()
    assert shelf.turn().load("bad").text == "Do it.\n"
    assert shelf.catalog["bad"].description == "Große Übersicht."
    assert_standard(workspace, shelf, [("bom", "bad/SKILL.md")])


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "E03-and-a-bom"])
def test_windows_line_ends_are_read_as_line_feeds(mark: bytes, workspace: Workspace) -> None:
    """E05: CRLF loads, and the model gets line feeds."""
    workspace.raw("bad", mark + TEXT.encode().replace(b"\n", b"\r\n"))
    shelf = workspace.shelf()
    assert shelf.turn().load("bad").text == "Do it.\n"
    assert shelf.catalog["bad"].description == "Große Übersicht."
    assert_standard(workspace, shelf, [("bom", "bad/SKILL.md")] if mark else [])


def test_a_lone_cr_ends_a_line_of_the_instructions(workspace: Workspace) -> None:
    """E06: among other lines a lone CR is read as the line ending its author meant."""
    workspace.raw("bad", TEXT + "One.\rTwo.\r\n")
    loaded = workspace.shelf().turn().load("bad")
    assert (loaded.text, loaded.hidden) == ("Do it.\nOne.\nTwo.\n", False)


@pytest.mark.parametrize(
    ("ends", "read"),
    [("\r\n", "\n"), ("\r", "\n"), ("\n", "\n"), ("\n\r", "\n\n"), ("\x85", "\x85"), ("\u2028", "\u2028")],
    ids=ascii,
)
def test_a_reference_comes_back_with_line_feeds(ends: str, read: str, workspace: Workspace) -> None:
    """E03, E05, E06: a reference's text has no byte order mark, and line feeds only."""
    text = f"\ufeffone{ends}two{ends}"
    folder = workspace.skill("bad")
    (folder / "references").mkdir()
    (folder / "references/a.md").write_bytes(text.encode())
    loaded = workspace.shelf().turn().load("bad", "a.md")
    assert loaded.text == f"one{read}two{read}"
    assert (loaded.size, loaded.next_offset, loaded.binary) == (len(text.encode()), None, False)


@pytest.mark.parametrize(
    "piece",
    [
        "ab\r\n",
        "\r\n",
        "é\r",
        "a\u200bb ",
        "ℹ\ufe0f ",
        "👨\u200d👩\u200d👧",
        "1\ufe0f\u20e3",
        "می\u200cخواهم ",
        "⠀⠿\n",
        "x",
    ],
    ids=ascii,
)
def test_the_pages_of_a_reference_add_up_to_the_file(piece: str, workspace: Workspace) -> None:
    """E05, S09: no line ending, character or emoji is read differently because a page ends in the middle of it."""
    text = "-" + piece * (PAGE_BYTES * 2 // len(piece.encode()) + 50)
    folder = workspace.skill("bad")
    (folder / "references").mkdir()
    (folder / "references/a.md").write_bytes(text.encode())
    turn = workspace.shelf().turn()
    pages = [turn.load("bad", "a.md")]
    while pages[-1].next_offset is not None:
        pages.append(turn.load("bad", "a.md", offset=pages[-1].next_offset))
    assert len(pages) == 3
    assert "".join(page.text for page in pages) == text_for_model(text)


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
        ("paper.pdf", b"%PDF-1.7\n\xe2\xe3\xcf\xd3", "application/pdf"),
        ("latin.md", "Übung".encode("latin-1"), "application/octet-stream"),
        ("wide.txt", "text".encode("utf-16"), "application/octet-stream"),
        ("zero.md", b"text\0", "application/octet-stream"),
        ("cut.md", "text é".encode()[:-1], "application/octet-stream"),
    ],
)
def test_a_binary_reference_is_named_and_not_shown(
    name: str, data: bytes, media_type: str, workspace: Workspace
) -> None:
    """E07: a file that is not text is answered with its kind and size, and none of its bytes."""
    folder = workspace.skill("bad")
    (folder / "assets").mkdir()
    (folder / "assets" / name).write_bytes(data)
    shelf = workspace.shelf()
    loaded = shelf.turn().load("bad", name)
    assert (loaded.text, loaded.binary, loaded.media_type, loaded.size) == ("", True, media_type, len(data))
    assert str(loaded) == f"assets/{name} is binary ({media_type}, {len(data)} bytes) and cannot be shown as text."
    assert_standard(workspace, shelf, [])


# -- sizes of one file ------------------------------------------------------------------------------------------------


def _sparse(path: Path, size: int, head: bytes = b"") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(size)


@pytest.mark.parametrize(
    ("size", "head"),
    [(64 << 20, TEXT.encode()), (4 << 30, TEXT.encode()), (4 << 30, b""), ((1 << 20) + 1, TEXT.encode())],
    ids=["S01-64-MB", "S02-4-GB", "S02-4-GB-of-nothing", "S09-one-byte-over"],
)
def test_a_skill_file_beyond_the_limit_is_refused_within_bounds(size: int, head: bytes, workspace: Workspace) -> None:
    """S01, S02, S09: an oversized SKILL.md gets one diagnostic, and is not read beyond the limit."""
    _sparse(workspace.root / "bad/SKILL.md", size, head)
    assert read_in_process(workspace.root) == {"codes": ["file-too-large"], "loaded": {GOOD: 7}}
    assert_standard(workspace, workspace.shelf(), [("file-too-large", "bad/SKILL.md")])


@pytest.mark.parametrize("over", [-1, 0])
def test_a_skill_file_within_the_limit_loads(over: int, workspace: Workspace) -> None:
    """S09: a SKILL.md of one MiB, and one of a byte less, loads whole."""
    body = "x" * ((1 << 20) - len(TEXT.encode()) + over)
    workspace.raw("bad", TEXT + body)
    shelf = workspace.shelf()
    assert shelf.turn().load("bad").text == f"Do it.\n{body}"
    assert_standard(workspace, shelf, [])


def test_a_reference_of_four_gigabytes_is_answered_within_bounds(workspace: Workspace) -> None:
    """S03: a 4 GB sparse reference is reported as binary with its size, and never read whole."""
    listed = "[references/huge.md, references/texty.md]"
    workspace.raw("bad", f"---\nname: bad\ndescription: d\nreferences: {listed}\n---\nDo it.\n")
    _sparse(workspace.root / "bad/references/huge.md", 4 << 30)
    _sparse(workspace.root / "bad/references/texty.md", 4 << 30, b"text " * (PAGE_BYTES // 4))
    outcome = read_in_process(workspace.root, "huge.md", "texty.md")
    assert outcome["loaded"]["bad/huge.md"] == 0
    assert outcome["loaded"]["bad/texty.md"] == PAGE_BYTES - 1
    loaded = workspace.shelf().turn().load("bad", "huge.md")
    assert (loaded.binary, loaded.size) == (True, 4 << 30)


def test_a_long_reference_comes_in_pages(workspace: Workspace) -> None:
    """S01, S03: long text is never cut silently. Each page says where the next begins; together they are the file."""
    line = "Zeile für Zeile ein langer Text.\n"
    workspace.skill("bad", files={"references/long.md": line * (8 << 20 >> 5)})
    turn = workspace.shelf().turn()
    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = turn.load("bad", "long.md", offset=offset)
        pages.append(page.text)
        assert len(page.text.encode()) <= PAGE_BYTES
        offset = page.next_offset
    assert "".join(pages) == line * (8 << 20 >> 5)


@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"], ids=["1-byte", "2-bytes", "3-bytes", "4-bytes"])
@pytest.mark.parametrize("over", [-4, -3, -2, -1, 0, 1, 2, 3, 4])
def test_a_reference_at_the_limit_of_a_page_is_whole(character: str, over: int, workspace: Workspace) -> None:
    """S09: one byte less than a page, a page, one byte more: no character is cut or lost, and the rest is announced."""
    size = PAGE_BYTES + over
    text = "x" * (size % len(character.encode())) + character * (size // len(character.encode()))
    workspace.skill("bad", files={"references/edge.md": text})
    turn = workspace.shelf().turn()
    first = turn.load("bad", "edge.md")
    assert (first.size, first.binary) == (size, False)
    rest = turn.load("bad", "edge.md", offset=first.next_offset).text if first.next_offset else ""
    assert first.text + rest == text
    assert bool(rest) == (over > 0)
    if rest:
        assert str(first).endswith(f"[{len(rest.encode())} of {size} bytes are left: load again with offset="
                                   f"{first.next_offset}]")  # fmt: skip


@pytest.mark.parametrize("offset", [-1, -(2**70), 2**31, 2**63 - 1, 2**63, 2**70, 1, 2, 8], ids=str)
def test_an_offset_where_no_page_begins_is_a_typed_error(offset: int, workspace: Workspace) -> None:
    """S09: an offset before the start, past the end or inside a character is refused with a reason."""
    workspace.skill("bad", files={"references/a.md": "漢é!!"})
    turn = workspace.shelf().turn()
    with pytest.raises(ReferenceUnreadableError, match=f"offset {offset}"):
        turn.load("bad", "a.md", offset=offset)
    assert turn.load("bad", "a.md", offset=7).text == ""


@pytest.mark.parametrize("length", [1025, 100_000, 250_000])
def test_a_long_description_is_kept_and_shown_shortened(length: int, workspace: Workspace) -> None:
    """S04: a description beyond 1,024 characters loads with a diagnostic, and the section shows the start of it."""
    workspace.skill("bad", description="d" * length)
    shelf = workspace.shelf()
    assert shelf.catalog["bad"].description == "d" * length
    for disclosure in ("auto", "catalog", "full"):
        listing = shelf.listing(disclosure, 100_000)
        assert "d" * 1023 + "…" in listing.text
        assert "d" * 1024 not in listing.text
        assert [(cut_entry.name, cut_entry.what) for cut_entry in listing.shortened] == [("bad", "description")]
    assert_standard(workspace, shelf, [("description-too-long", "bad/SKILL.md")])


def test_a_description_of_a_megabyte_is_refused(workspace: Workspace) -> None:
    """S04: frontmatter larger than any real one is one diagnostic."""
    workspace.raw("bad", PLAIN.format(name="bad", description="d" * 1_000_000, body=""))
    assert_standard(workspace, workspace.shelf(), [("frontmatter-too-large", "bad/SKILL.md")])
    assert read_in_process(workspace.root)["loaded"] == {GOOD: 7}


def test_a_name_of_5000_characters_is_replaced_by_the_folders(workspace: Workspace) -> None:
    """S07: the name is refused, not cut, and not repeated whole in the diagnostic."""
    workspace.raw("bad", PLAIN.format(name="n" * 5_000, description="d", body="Do it.\n"))
    shelf = workspace.shelf()
    assert list(shelf.catalog) == ["bad", GOOD]
    assert_standard(workspace, shelf, [("name-refused", "bad/SKILL.md")])


# -- large numbers ----------------------------------------------------------------------------------------------------


def test_ten_thousand_skills_are_found(tmp_path: Path) -> None:
    """S05: 10,000 skills are scanned, listed and searched within the bounds of a single file."""
    for number in range(10_000):
        folder = tmp_path / f"group-{number % 100}/skill-{number}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(PLAIN.format(name=folder.name, description=f"About {number}.", body="Do it."))
    script = (
        "import sys, time; from skillshelf import DirectorySource, Shelf; start = time.monotonic();"
        "shelf = Shelf([DirectorySource(sys.argv[1], cache=False)]); took = time.monotonic() - start;"
        "listing = shelf.listing(); assert listing.tokens <= 4000;"
        "assert shelf.search('About 9999.')[0].descriptor.name == 'skill-9999';"
        "assert shelf.turn().load('skill-7').text == 'Do it.';"
        "named = listing.text.count(' | ') + 1; omitted = sum(one.what == 'omitted' for one in listing.shortened);"
        "print(len(shelf.catalog), len(shelf.catalog.diagnostics), named + omitted, took < 20)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert completed.stdout == "10000 0 10000 True\n", completed.stderr


def test_twenty_thousand_references_stay_in_bounds(workspace: Workspace) -> None:
    """S06: 511 are loadable; the section and error messages name a few and count the rest."""
    names = [f"references/{number:05}.md" for number in range(20_000)]
    folder = workspace.skill("bad", files={names[0]: "First."})
    for name in names[1:]:
        os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY))
    assert read_in_process(workspace.root, "00510.md")["loaded"]["bad/00510.md"] == 0
    shelf = workspace.shelf()
    turn = shelf.turn()
    assert list(shelf.catalog["bad"].references) == names[:511]
    assert workspace.faults(shelf) == [("too-many-files", "bad/SKILL.md")]
    assert turn.load("bad", "00000.md").text == "First."
    assert len(str(load(turn, "bad", "absent.md"))) < 1000
    section = shelf.listing("catalog")
    assert 'more="461"' in section.text
    assert len(section.text) < 3000
    assert [(cut_entry.name, cut_entry.what) for cut_entry in section.shortened] == [("bad", "references")]
    assert_neighbour(shelf)


def test_ten_thousand_faulty_names_are_counted(workspace: Workspace) -> None:
    """S06, P22: a folder of faulty file names gets a few diagnostics and a count."""
    folder = workspace.skill("bad")
    (folder / "references").mkdir()
    for number in range(10_000):
        os.close(os.open(folder / f"references/{number}\n.md", os.O_CREAT | os.O_WRONLY))
    shelf = workspace.shelf()
    codes = [code for code, _ in workspace.faults(shelf)]
    assert sorted(codes) == ["filename-refused"] * 20 + ["more-faults"]
    assert any("9980 more" in note.message for note in shelf.catalog.diagnostics)
    assert_neighbour(shelf)


def test_a_limit_on_folders_is_reported_at_every_turn(workspace: Workspace) -> None:
    """S05: a walk that stops at its limit reports that each time, whatever the folders' names."""
    for number, key in enumerate(["*", ".index", "-", *map(str, range(20))]):
        workspace.raw(key, PLAIN.format(name=f"skill-{number}", description="d", body=""))
    shelf = workspace.shelf(max_folders=24)  # enough for the root and all but one of 24 skills
    for _ in range(3):
        assert len(shelf.catalog) == 23
        assert workspace.faults(shelf) == [("too-many-folders", ".")]
        shelf.turn()


# -- the budget of the prompt -----------------------------------------------------------------------------------------

MAXIMAL = {f"skill-{n:03}": PLAIN.format(name=f"skill-{n:03}", description=f"{n} " * 200, body="x" * 9000)
           for n in range(100)}  # fmt: skip


@pytest.mark.parametrize("budget", [150, 400, 1000, 4000, 8000, 20_000, 100_000])
def test_a_hundred_maximal_skills_fit_any_budget(budget: int) -> None:
    """S10: the section stays within its budget; the section and the diagnostics say what is left out."""
    shelf = Shelf([MemorySource(MAXIMAL)])
    listing = shelf.listing(budget=budget)
    assert listing.tokens == estimate(listing.text) <= budget
    omitted = [cut_entry.name for cut_entry in listing.shortened if cut_entry.what == "omitted"]
    cut = [cut_entry.name for cut_entry in listing.shortened if cut_entry.what == "description"]
    assert (f"{len(omitted)} more skills are not named here" in listing.text) == bool(omitted)
    assert ("Some descriptions" in listing.text) == bool(cut)
    assert [note.code for note in listing.diagnostics] == (["listing-shortened"] if listing.shortened else [])
    for name in shelf.catalog:
        assert (name in listing.text) == (name not in omitted)
    if omitted:
        assert f"omitted: {len(omitted)}" in listing.diagnostics[0].message


@given(
    st.integers(1, 300),
    st.integers(0, 40),
    st.integers(1, 400).flatmap(lambda length: st.text("ab .-é漢", min_size=length, max_size=length)),
    st.integers(0, 2000),
)
@settings(max_examples=60, deadline=None)
def test_the_section_never_exceeds_its_budget(skills: int, slack: int, description: str, size: int) -> None:
    """S10: this includes rounding, any number of skills, and a budget at the very edge."""
    text = PLAIN.format(name="{}", description=f"x{description}x".replace(" -", "--"), body="b " * size)
    shelf = Shelf([MemorySource({f"s{n}": text.replace("{}", f"s{n}") for n in range(skills)})])
    for disclosure in ("catalog", "full"):
        budget = max(0, shelf.listing(disclosure).tokens - slack)
        listing = shelf.listing(budget=budget)
        assert listing.tokens <= budget or all(cut_entry.what == "omitted" for cut_entry in listing.shortened)


# -- concurrent writes ------------------------------------------------------------------------------------------------


def test_a_file_that_grows_while_it_is_read_is_whole_or_a_typed_error(workspace: Workspace) -> None:
    """S08: while another thread keeps appending to a reference and a SKILL.md, reads are bounded and never partial."""
    folder = workspace.skill("bad", files={"references/log.md": ""})
    shelf = workspace.shelf()
    lines = [f"{number:07}\n" for number in range(200_000)]
    stop = threading.Event()

    def append() -> None:
        with open(folder / "references/log.md", "a") as log, open(folder / "SKILL.md", "a") as skill:
            for line in lines:
                if stop.is_set():
                    return
                for file in (log, skill):
                    file.write(line)
                    file.flush()

    whole = "".join(lines)
    writer = threading.Thread(target=append)
    writer.start()
    try:
        kinds = set()
        for _ in range(300):
            turn = shelf.turn()
            outcome = load(turn, "bad", "log.md")
            if isinstance(outcome, str):
                assert whole.startswith(outcome)
                assert len(outcome) % 8 == 0
            else:
                assert isinstance(outcome, ReferenceUnreadableError)
            kinds.add(type(outcome))
            body = turn.load("bad").text.removeprefix("Do it.\n")
            assert whole.startswith(body)
    finally:
        stop.set()
        writer.join()
    assert str in kinds
    assert Turn(shelf).load("bad", "log.md").text.endswith("\n")
    assert "Good guide." in collect_output(shelf)
