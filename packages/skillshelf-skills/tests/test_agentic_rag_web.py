"""The skill `agentic-rag` with pages of the web, from a real server on this machine."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest

from calling import call
from handbook import ALL, HOLIDAYS
from sites import Site, send
from skillshelf.errors import AddressRefusedError, FetchFailedError, SkillError
from skillshelf.sources.attachable import attach_skill
from skillshelf_skills.agentic_rag import Passage, Sources, WebPages
from skillshelf_skills.agentic_rag.skill import AgenticRagSkill
from skillshelf_skills.net import NetworkRules

pytest.importorskip("trafilatura", reason="the extra rag is not installed")


@pytest.fixture
def site() -> Iterator[Site]:
    with Site.running() as site:
        site.pages["/holidays"] = send(HOLIDAYS.encode(), Content_Type="text/html; charset=utf-8")
        yield site


def open_skill(site: Site, *paths: str, rules: NetworkRules | None = None) -> AgenticRagSkill:
    pages = WebPages([site.url(path) for path in paths], rules=rules or site.rules)
    return AgenticRagSkill(Sources(web=pages)).with_policy(ALL)


def test_a_page_is_reduced_to_its_text(site: Site) -> None:
    """With its title, and a notice that others wrote it."""
    page = call(open_skill(site), "read_page", url=site.url("/holidays"))
    assert page["title"] == "Holidays"
    assert "closed between Christmas and New Year" in page["text"]
    assert "Start" not in page["text"]
    assert page["is_whole"]
    assert "not the user's" in page["notice"]


def test_a_long_page_is_read_in_parts(site: Site) -> None:
    """Each part says where the next begins."""
    lines = "\n".join(f"Line {number} of the log." for number in range(2_000))
    site.pages["/log"] = send(lines.encode(), Content_Type="text/plain")
    skill = open_skill(site)
    text = ""
    offset = 0
    is_whole = False
    while not is_whole:
        page = call(skill, "read_page", url=site.url("/log"), offset=offset)
        text += page["text"]
        offset = page["next_offset"]
        is_whole = page["is_whole"]
    assert text == lines


def test_named_pages_are_searched_and_others_are_not_asked(site: Site) -> None:
    """A page is fetched once for several questions."""
    site.pages["/other"] = send(b"<html><body><p>Nothing.</p></body></html>", Content_Type="text/html")
    skill = open_skill(site, "/holidays")
    found = call(skill, "gather", question="When is the office closed?")
    assert found["evidence"][0]["locator"] == site.url("/holidays")
    call(skill, "gather", question="Who is told of a longer leave?")
    assert [request.split()[1] for request in site.requests] == ["/holidays"]


def test_a_page_that_cannot_be_read_does_not_hide_the_others(site: Site) -> None:
    """It is named beside the result; if all fail, the error says so."""
    skill = open_skill(site, "/holidays", "/gone")
    found = call(skill, "gather", question="When is the office closed?")
    assert found["evidence"]
    assert "/gone could not be read" in found["remarks"][0]
    with pytest.raises(SkillError, match=r"status 404.*error_codes\.md") as caught:
        call(open_skill(site, "/gone", "/lost"), "gather", question="When is the office closed?")
    assert str(caught.value).count("web: ") == 1
    assert str(caught.value).count("Load the reference") == 1


def test_a_source_that_fails_is_named_once(site: Site) -> None:
    """Among the failures, and not among the remarks as well."""
    pages = WebPages([site.url("/gone")], rules=site.rules)

    class Zoo:
        name = "zoo"
        remarks = ()

        async def search(self, question: str, limit: int) -> Sequence[Passage]:
            return [Passage("zoo", "ice", "Walruses", "Walruses sleep on the ice.")]

    skill = AgenticRagSkill(Sources([Zoo()], web=pages)).with_policy(ALL)
    found = call(skill, "gather", question="walruses")
    url = site.url("/gone")
    assert found["failures"] == [f"web: {url} could not be read: {url} answered with status 404."]
    assert found["remarks"] == []


def test_the_network_rules_hold(site: Site) -> None:
    """For a redirect, too: this machine and other schemes are refused."""
    public = attach_skill("agentic-rag")
    for url in (site.url("/holidays"), "file:///etc/passwd", "http://169.254.169.254/latest"):
        with pytest.raises(AddressRefusedError):
            call(public, "read_page", url=url)
    site.pages["/away"] = send(b"", status=302, Location="http://localhost:9/private")
    with pytest.raises(AddressRefusedError):
        call(open_skill(site), "read_page", url=site.url("/away"))


def test_the_user_can_allow_a_host(site: Site) -> None:
    """By name, when the skill is attached."""
    skill = attach_skill(f"agentic-rag=web={site.url('/holidays')},host={site.host}")
    assert call(skill, "gather", question="When is the office closed?")["evidence"]


def send_for_ever(page: BaseHTTPRequestHandler) -> None:
    page.send_response(200)
    page.send_header("Content-Type", "text/plain")
    page.end_headers()
    with suppress(OSError):
        while True:
            page.wfile.write(b"All work and no play makes a long page. " * 1000)


def never_answer(page: BaseHTTPRequestHandler) -> None:
    page.rfile.read(1)  # returns when the client goes away


def test_a_page_that_never_ends_is_cut(site: Site) -> None:
    """One that never begins is an error."""
    site.pages |= {"/endless": send_for_ever, "/silent": never_answer}
    rules = replace(site.rules, max_bytes=10_000)
    page = call(open_skill(site, rules=rules), "read_page", url=site.url("/endless"))
    assert not page["is_whole"]
    assert len(page["text"]) == 10_000
    with pytest.raises(FetchFailedError, match="no complete answer within"):
        call(open_skill(site, rules=replace(site.rules, seconds=0.3)), "read_page", url=site.url("/silent"))


@pytest.mark.parametrize(
    ("body", "status", "kind", "message"),
    [
        (b"%PDF-1.7", 200, "application/pdf", "its type is application/pdf"),
        (b"\0\1\2", 200, "text/plain", "not a page to read"),
        (b"<html><body><script>render()</script></body></html>", 200, "text/html", "may be made by scripts"),
        (b"sign in", 401, "text/html", "wants a sign-in.*authentication-gates"),
        (b"oops", 500, "text/html", "answered with status 500"),
    ],
)
def test_what_is_not_a_page_is_explained(body: bytes, status: int, kind: str, message: str, site: Site) -> None:
    """With the reference that says what to do."""
    site.pages["/strange"] = send(body, status=status, Content_Type=kind)
    with pytest.raises(SkillError, match=message) as caught:
        call(open_skill(site), "read_page", url=site.url("/strange"))
    assert "error_codes.md" in str(caught.value)


def test_a_page_that_breaks_the_parser_ends_its_own_process(site: Site) -> None:
    """And nothing else: tags nested without end are text, or an error that the model can read."""
    site.pages["/nested"] = send(b"<div>" * 200_000 + b"deep", Content_Type="text/html")
    skill = open_skill(site)
    try:
        text = json.dumps(call(skill, "read_page", url=site.url("/nested")))
    except SkillError as error:
        text = str(error)
    assert text
    assert call(skill, "read_page", url=site.url("/holidays"))["text"]
