"""find-skills: the tools a model calls."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf import (
    Activation,
    DirectorySource,
    MemorySource,
    PackageSource,
    ReferenceNotAllowedError,
    ReferenceUnreadableError,
    Shelf,
    SkillDiscoverySkill,
    SkillNotFoundError,
    SkillUnreadableError,
    ToolArgumentError,
    Turn,
)
from skillshelf.shelf import MAX_CACHED_BYTES
from skillshelf.shelf.pages import PAGE_BYTES

Write = Callable[..., Path]


def text(name: str, description: str, extra: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{extra}---\nInstructions of {name}.\n"


@pytest.fixture
def shelf() -> Shelf:
    pdf = {
        "SKILL.md": text("pdf", "Fill in forms."),
        "references/forms.md": "Form guide.",
        "scripts/fill.py": "print()",
    }
    deploy = text("deploy", "Ship the site to production.")
    secret = text("secret", "For the person.", "disable-model-invocation: true\n")
    return Shelf([MemorySource({"pdf": pdf, "deploy": deploy, "secret": secret})])


@pytest.fixture
def find(shelf: Shelf) -> SkillDiscoverySkill:
    return SkillDiscoverySkill(shelf)


def test_the_tools_are_named_and_described_for_a_model(find: SkillDiscoverySkill) -> None:
    """The schema comes from type hints and contains no text of any skill."""
    tools = {tool.name: tool for tool in find.tools()}
    assert list(tools) == ["list_skills", "search_skills", "load_skill_instructions"]
    load = tools["load_skill_instructions"].parameters
    assert load["required"] == ["skill_name"]
    assert list(load["properties"]) == ["skill_name", "reference", "offset"]
    assert "pdf" not in str(load)


def test_listing_and_search_name_the_references(find: SkillDiscoverySkill) -> None:
    """A search also finds a skill by the name of a reference alone."""
    card = {"name": "pdf", "description": "Fill in forms.", "references": ["references/forms.md", "scripts/fill.py"]}
    assert find.list_skills() == {
        "skills": [{"name": "deploy", "description": "Ship the site to production.", "references": []}, card],
        "total": 2,
    }
    found = find.search_skills("fill")["skills"][0]
    assert found == {**card, "score": found["score"], "matched": "fill in description"}
    assert find.search_skills("production")["skills"][0]["name"] == "deploy"


def test_files_that_the_text_does_not_name_are_counted_and_load_all_the_same() -> None:
    """Vercel's skill says `rules/`, and Anthropic's says FORMS.md of a forms.md."""
    rules = {f"rules/{number:03}.md": f"Rule {number}." for number in range(200)}
    body = "Read FORMS.md, and from rules/ what you need.\n"
    files = {"SKILL.md": text("kit", "Fill in forms.") + body, "forms.md": "Fields.", "a/b.md": "B.", **rules}
    find = SkillDiscoverySkill(Shelf([MemorySource({"kit": files})]))
    [listed] = find.list_skills()["skills"]
    assert (listed["references"], listed["more_references"]) == (["forms.md"], 201)
    [found] = find.search_skills("fill in forms")["skills"]
    assert (found["references"], found["more_references"]) == (["forms.md"], 201)

    loaded = find.load_skill_instructions("kit").splitlines()
    assert loaded[-101:-97] == ["- forms.md", "- a/b.md", "- rules/000.md", "- rules/001.md"]
    assert loaded[-1] == "… and 102 more, which load by name, too"
    assert find.load_skill_instructions("kit", "FORMS.md") == "Fields."
    assert find.load_skill_instructions("kit", "rules/199.md") == "Rule 199."


def test_a_found_skill_takes_a_bounded_part_of_the_context() -> None:
    """Five skills with endless descriptions, references and copies come in 10,000 characters."""
    folders = {}
    for number in range(8):
        folder = {f"references/{'long-' * 8}{number}-{file}.md": "x" for file in range(300)}
        description = f"Fill in form {number}. " + " ".join(f"form{number}x{each}" for each in range(500))
        folders[f"fill-{number}"] = {"SKILL.md": text(f"fill-{number}", description), **folder}
    find = SkillDiscoverySkill(Shelf([MemorySource(folders)]))
    answer = find.search_skills("fill in a form")
    assert len(answer["skills"]) == 5
    assert all(found["more_references"] > 280 for found in answer["skills"])
    assert len(json.dumps(answer)) <= 10_000


def test_a_search_names_copies_instead_of_listing_them() -> None:
    """The model reads one of them, and knows that there are others."""
    body = " ".join(f"step{number} needs value{number}" for number in range(60))
    skills = {name: text(name, "Fill in PDF forms.") + body for name in ("pdf", "pdf-copy")}
    [found] = SkillDiscoverySkill(Shelf([MemorySource(skills)])).search_skills("fill in a pdf form")["skills"]
    assert {found["name"], *found["copies"]} == {"pdf", "pdf-copy"}


def test_a_search_says_when_nothing_fits(find: SkillDiscoverySkill) -> None:
    """Weak matches are marked, and the model gets a way on."""
    answer = find.search_skills("ship of an ancient admiral across stormy oceans towards undiscovered islands")
    assert answer["skills"][0]["name"] == "deploy"
    assert all(found["weak"] for found in answer["skills"])
    assert answer["note"] == "These are weak matches: perhaps no skill fits."


def test_a_shadowed_skill_is_found_under_a_name_that_leads_to_it() -> None:
    """Two skills of one name differ; loading the name that was found loads the skill that was found."""
    own = MemorySource({"notes": text("notes", "Take notes in meetings.")}, "own")
    other = MemorySource({"notes": text("notes", "Tune the notes of a piano.")}, "other")
    find = SkillDiscoverySkill(Shelf([own, other]))
    names = [skill["name"] for skill in find.search_skills("tune a piano")["skills"]]
    assert names[0] == "notes@other"
    assert find.shelf.catalog[names[0]].description == "Tune the notes of a piano."


def test_a_long_shelf_is_listed_in_pages() -> None:
    """next_offset says where the next page begins, and the last page has none."""
    find = SkillDiscoverySkill(Shelf([MemorySource({f"s{n:03}": text(f"s{n:03}", "x") for n in range(150)})]))
    first = find.list_skills()
    assert (len(first["skills"]), first["total"], first["next_offset"]) == (100, 150, 100)
    last = find.list_skills(offset=100)
    assert (len(last["skills"]), "next_offset" in last) == (50, False)


def test_a_negative_offset_is_refused(find: SkillDiscoverySkill) -> None:
    """Counting from the end would leave some skills out."""
    [listing] = [tool for tool in find.tools() if tool.name == "list_skills"]
    with pytest.raises(ToolArgumentError, match="begin at 0"):
        listing.call({"offset": -5})


def test_loading_a_skill_gives_its_instructions_and_its_references(find: SkillDiscoverySkill) -> None:
    """The list of references follows the instructions; a reference comes alone, unaltered."""
    loaded = find.load_skill_instructions("pdf")
    assert loaded.startswith("Instructions of pdf.\n")
    assert loaded.endswith("- references/forms.md\n- scripts/fill.py")
    assert find.load_skill_instructions("pdf", "forms.md") == "Form guide."
    assert find.load_skill_instructions("deploy", "") == "Instructions of deploy.\n"


def test_the_model_cannot_load_a_skill_for_the_user_alone(find: SkillDiscoverySkill, shelf: Shelf) -> None:
    """The tools neither name nor load it; the user can."""
    for name in ("secret", "secrt"):
        with pytest.raises(SkillNotFoundError) as refused:
            find.load_skill_instructions(name)
        assert "'secret'" not in str(refused.value).replace("named 'secret'", "")
    with shelf.turn() as turn:
        assert turn.load("secret", by="user").text == "Instructions of secret.\n"


@pytest.mark.parametrize(
    "reference",
    ["../pdf/SKILL.md", "/etc/passwd", "~/x", "references\\forms.md", "C:\\x", "file:///etc/passwd", "a\0b", "%2e%2e/x",
     "./references/forms.md", "references/forms.md/", "forms.md ", "ｆorms.md", "x" * 100_000],
)  # fmt: skip
def test_an_unlisted_reference_is_refused_and_listed_ones_named(find: SkillDiscoverySkill, reference: str) -> None:
    """The error names the listed references and stays short however long the request was."""
    with pytest.raises(ReferenceNotAllowedError) as error:
        find.load_skill_instructions("pdf", reference)
    assert error.value.allowed == ("references/forms.md", "scripts/fill.py")
    assert "'references/forms.md', 'scripts/fill.py'" in str(error.value)
    assert len(str(error.value)) < 600


def test_calls_in_a_turn_share_its_cache(find: SkillDiscoverySkill, shelf: Shelf) -> None:
    """Inside `with shelf.turn()` a second load is a cache hit; outside, each call has a turn of its own."""
    with shelf.turn() as turn:
        find.load_skill_instructions("pdf", "forms.md")
        find.load_skill_instructions("pdf", "references/forms.md")
        find.load_skill_instructions("pdf", "forms.md")
        assert turn.hits == 2
    find.load_skill_instructions("pdf", "forms.md")
    assert turn.hits == 2


def test_long_references_come_in_pages_that_join_to_the_whole(tmp_path: Path, write: Write) -> None:
    """No character is cut in two, and each page says how many bytes are left."""
    whole = "ä€😀x" * 150_000
    write("big", references__long_md=whole)
    turn = Turn(Shelf([DirectorySource(tmp_path)]))
    pages: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = turn.load("big", "long.md", offset=offset)
        pages.append(page.text)
        assert len(page.text.encode()) <= PAGE_BYTES
        assert page.size == len(whole.encode())
        if page.next_offset is not None:
            assert f"{page.size - page.next_offset} of {page.size} bytes are left" in str(page)
        offset = page.next_offset
    assert len(pages) == 3
    assert "".join(pages) == whole
    for wrong in (1, -1, page.size + 1):
        with pytest.raises(ReferenceUnreadableError, match="offset"):
            turn.load("big", "long.md", offset=wrong)


def test_binary_references_get_a_typed_answer(tmp_path: Path, write: Write) -> None:
    """A binary file is answered with its media type and size."""
    write("art")
    (tmp_path / "art/assets").mkdir()
    (tmp_path / "art/assets/logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "art/assets/latin.txt").write_bytes("café".encode("latin-1"))
    turn = Turn(Shelf([DirectorySource(tmp_path)]))
    logo = turn.load("art", "logo.png")
    assert (logo.binary, logo.media_type, logo.size, logo.text) == (True, "image/png", 10, "")
    assert str(logo) == "assets/logo.png is binary (image/png, 10 bytes) and cannot be shown as text."
    assert turn.load("art", "latin.txt").binary


def test_hidden_characters_in_instructions_are_written_out() -> None:
    """The model sees the characters that a reader of the file cannot, and the load is flagged."""
    shelf = Shelf([MemorySource({"a": "---\nname: a\ndescription: b\n---\nDo\u200b it \U000e0041now.\n"})])
    loaded = Turn(shelf).load("a")
    assert (loaded.text, loaded.hidden) == ("Do<U+200B> it <U+E0041>now.\n", True)


def test_all_names_of_a_skill_lead_to_one_load(shelf: Shelf) -> None:
    """`pdf` and `pdf@memory` cause one read and one activation."""
    turn = Turn(shelf)
    assert turn.load("pdf") is turn.load("pdf@memory")
    assert (turn.hits, turn.activations) == (1, [Activation("pdf", "", "model", 21)])


def test_sizes_are_the_bytes_that_were_read() -> None:
    """The size is that of the current file in bytes, whatever the descriptor says."""
    source = MemorySource({"a": text("a", "A.")})
    turn = Turn(Shelf([source]))
    source.put("a", "---\nname: a\ndescription: A.\n---\näöü\u200b\n")
    assert turn.load("a").size == len("äöü\u200b\n".encode())
    assert turn.activations == [Activation("a", "", "model", len("äöü<U+200B>\n".encode()))]


def test_an_offset_into_instructions_is_refused(shelf: Shelf) -> None:
    """Instructions come whole, and the error says so."""
    with pytest.raises(SkillUnreadableError, match="only a reference takes an offset"):
        Turn(shelf).load("pdf", offset=10)


def test_a_written_file_is_read_again_and_nothing_else(tmp_path: Path, write: Write) -> None:
    """Only the skill of the written file is read again; all others stay in the turn's cache."""
    path = write("a", body="One.\n")
    write("ab", body="Other.\n")
    turn = Turn(Shelf([DirectorySource(tmp_path), PackageSource("skillshelf.skill_authoring")]))
    names = list(turn.shelf.catalog)
    before = {name: turn.load(name) for name in names}
    path.write_text(path.read_text().replace("One.", "Two."))
    turn.wrote(path)
    assert turn.load("a").text == "Two.\n"
    assert [name for name in names if turn.load(name) is not before[name]] == ["a"]


def test_a_sandbox_that_closes_proc_can_load(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system does not reveal mounts, devices alone are compared."""
    write("a", references__guide_md="Text.")
    really_open = os.open

    def closed(path: str, *args: int, **options: int) -> int:
        if path.startswith("/proc/"):
            raise PermissionError(13, "Permission denied", path)
        return really_open(path, *args, **options)

    shelf = Shelf([DirectorySource(tmp_path)])
    monkeypatch.setattr(os, "open", closed)
    assert Turn(shelf).load("a", "guide.md").text == "Text."


def test_an_observer_may_load_in_the_same_turn() -> None:
    """Observers are called after the lock is released."""
    shelf = Shelf([MemorySource({"a": {"SKILL.md": text("a", "About a."), "notes.md": "Notes."}})])
    seen: list[str] = []

    def observe(one: Activation) -> None:
        seen.append(one.reference)
        turn.load("a", "notes.md")

    shelf.observers.add(observe)
    turn = shelf.turn()
    turn.load("a")
    assert seen == ["", "notes.md"]


def test_a_failing_observer_is_logged_and_disturbs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The text is loaded, recorded once, and the next observer is called."""
    shelf = Shelf([MemorySource({"a": text("a", "About a.")})])
    seen: list[Activation] = []
    shelf.observers.add(lambda one: [][1])
    shelf.observers.add(seen.append)
    turn = shelf.turn()
    assert turn.load("a") is turn.load("a")
    assert turn.activations == seen != []
    assert [record.name for record in caplog.records] == ["skillshelf"]


def test_a_skill_that_was_loaded_can_still_be_invoked() -> None:
    """The user's invocation counts even if the model loaded the skill first."""
    turn = Shelf([MemorySource({"a": text("a", "About a.")})]).turn()
    turn.load("a")
    turn.load("a", by="user")
    assert (turn.invoked, len(turn.activations)) == ({"a"}, 1)


def test_a_second_load_in_a_turn_is_visible_to_those_who_count() -> None:
    """It is recorded beside the activations, and observers learn of it if they ask for repeats."""
    shelf = Shelf([MemorySource({"a": {"SKILL.md": text("a", "About a."), "notes.md": "Notes."}})])
    first_loads: list[Activation] = []
    all_loads: list[Activation] = []
    shelf.observers.add(first_loads.append)
    end = shelf.observers.add(all_loads.append, repeats=True)
    turn = shelf.turn()
    turn.load("a", "notes.md")
    turn.load("a", "notes.md", by="user")
    turn.load("a@memory", "notes.md")
    first = Activation("a", "notes.md", "model", 6)
    repeats = [Activation("a", "notes.md", by, 6, repeated=True) for by in ("user", "model")]
    assert (turn.activations, turn.repeats, turn.hits) == ([first], repeats, 2)
    assert first_loads == [first]
    assert all_loads == [first, *repeats]

    end()
    turn.load("a", "notes.md")
    assert len(all_loads) == 3
    assert shelf.turn().repeats == []


def test_a_turn_caches_a_bounded_amount_of_text() -> None:
    """The first pages of a very long file are read again; the last ones are still cached."""
    size = MAX_CACHED_BYTES + 4 * PAGE_BYTES
    turn = Shelf([MemorySource({"a": {"SKILL.md": text("a", "About a."), "long.md": "x" * size}})]).turn()
    for offset in range(0, size, PAGE_BYTES):
        turn.load("a", "long.md", offset=offset)
    assert turn.hits == 0
    turn.load("a", "long.md", offset=size - PAGE_BYTES)
    assert turn.hits == 1
    turn.load("a", "long.md")
    assert turn.hits == 1
