"""The skill `agentic-rag` with Azure AI Search, at the boundary of the protocol: the real SDK, and a server on this
machine that answers as the service does."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from calling import call
from handbook import ALL
from sites import Site, send
from skillshelf.errors import SettingsError, SkillError
from skillshelf.sources.attachable import attach_skill
from skillshelf_skills.agentic_rag import Sources
from skillshelf_skills.agentic_rag.skill import AgenticRagSkill

pytest.importorskip("azure.search.documents", reason="the extra rag-azure is not installed")
PATH = "/indexes('faq')/docs/search.post.search"
DOCUMENTS = [
    {"@search.score": 2.1, "content": "Refunds take five working days.", "title": "Refunds", "url": "https://faq/1"},
    {"@search.score": 1.4, "content": "Refunds of licences are not possible.", "title": None, "url": "https://faq/2"},
]


class Service:
    """An index `faq`. Set `refusal` to have it refuse."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.refusal: tuple[int, str] | None = None
        site.pages[PATH] = self.answer

    def answer(self, page: BaseHTTPRequestHandler) -> None:
        self.bodies.append(json.loads(page.rfile.read(int(page.headers["Content-Length"]))))
        self.keys.append(page.headers["api-key"])
        if self.refusal:
            status, message = self.refusal
            body = {"error": {"code": "", "message": message}}
            send(json.dumps(body).encode(), status=status, Content_Type="application/json")(page)
            return
        send(json.dumps({"value": DOCUMENTS}).encode(), Content_Type="application/json")(page)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("AZURE_SEARCH_KEY", "hunter2")
    with Site.running() as site:
        yield Service(site)


def attach(service: Service) -> Any:
    return attach_skill(f"agentic-rag=azure={service.site.url('/faq')}")


def test_passages_have_title_and_address(service: Service) -> None:
    """The key goes to the service in its header."""
    found = call(attach(service), "gather", question="How long does a refund take?")
    assert found["citations"] == ["[1] Refunds (https://faq/1)", "[2] https://faq/2 (https://faq/2)"]
    assert service.keys == ["hunter2"]
    assert "hunter2" not in json.dumps(found)


def test_the_question_is_asked_as_the_options_say(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields, vectors made by the service, the semantic ranker and a filter."""
    call(attach(service), "search_documents", query="refunds", limit=3)
    plain = service.bodies[-1]
    assert plain["search"] == "refunds"
    assert plain["select"] == "content,title,url"
    assert "vectorQueries" not in plain

    monkeypatch.setenv("AZURE_SEARCH_VECTOR_FIELD", "embedding")
    monkeypatch.setenv("AZURE_SEARCH_SEMANTIC_CONFIGURATION", "default")
    monkeypatch.setenv("AZURE_SEARCH_FILTER", "language eq 'en'")
    call(attach(service), "search_documents", query="refunds")
    asked = service.bodies[-1]
    (vector,) = asked["vectorQueries"]
    assert (vector["kind"], vector["text"], vector["fields"]) == ("text", "refunds", "embedding")
    assert (asked["queryType"], asked["semanticConfiguration"]) == ("semantic", "default")
    assert asked["filter"] == "language eq 'en'"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Could not find a property named 'content' on type 'search.document'."),
        (403, "Forbidden"),
        (404, "The index 'faq' was not found."),
        (429, "Too many requests"),
        (503, "Busy"),
    ],
)
def test_a_refusal_names_the_reference(status: int, message: str, service: Service) -> None:
    """With the status and the service's own words, and without the key."""
    service.refusal = (status, message)
    with pytest.raises(SkillError, match=rf"status {status}.*azure_search_config\.md") as caught:
        call(attach(service), "search_documents", query="refunds")
    assert "hunter2" not in str(caught.value)


def test_a_service_that_is_not_there_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_SEARCH_KEY", "hunter2")
    skill = attach_skill("agentic-rag=azure=http://127.0.0.1:9/faq")
    with pytest.raises(SkillError, match=r"there is no connection.*azure_search_config\.md"):
        call(skill, "search_documents", query="refunds")


def test_a_missing_key_is_told_when_the_skill_is_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that forgets it is told at the first question."""
    from skillshelf_skills.agentic_rag import AzureIndex

    monkeypatch.delenv("AZURE_SEARCH_KEY", raising=False)
    with pytest.raises(SettingsError, match=r"needs a query key.*AZURE_SEARCH_KEY"):
        attach_skill("agentic-rag=azure=http://127.0.0.1:9/faq")
    skill = AgenticRagSkill(Sources([AzureIndex("http://127.0.0.1:9", "faq")])).with_policy(ALL)
    with pytest.raises(SkillError, match=r"there is no key.*AZURE_SEARCH_KEY.*azure_search_config\.md"):
        call(skill, "search_documents", query="refunds")


def test_a_program_passes_its_own_fields_and_credential(service: Service) -> None:
    """Instead of the environment's."""
    from azure.core.credentials import AzureKeyCredential

    from skillshelf_skills.agentic_rag import AzureIndex, AzureOptions

    options = AzureOptions(text_field="content", title_field="", locator_field="")
    index = AzureIndex(service.site.url(""), "faq", options=options, credential=AzureKeyCredential("other"))
    skill = AgenticRagSkill(Sources([index])).with_policy(ALL)
    found = call(skill, "search_documents", query="refunds")
    assert found["passages"][0]["locator"] == "faq"
    assert service.bodies[-1]["select"] == "content"
    assert service.keys == ["other"]
