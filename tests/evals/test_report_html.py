"""The page for people: what it shows, and that nothing in a run can become more than text in it."""

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.run_kit import TEXTS, case, hostile, loads, outcome, run_of, sample
from skillshelf.agent.events import ReferenceDenied, SkillInvoked, ToolCalled
from skillshelf.evals.report import render_page, summarize, write_run
from skillshelf.evals.report.html._trials import Step, make_timeline
from skillshelf.evals.stats import SkillContent


def test_a_timeline_goes_from_offered_to_followed() -> None:
    """Steps are in the order of events; refused loads and failed checks are marked."""
    events = (
        ToolCalled("0", "search_skills", {"query": "forms"}),
        ToolCalled("9", "read_file", {"path": "a"}),
        SkillInvoked("pdf", ""),
        *loads("pdf"),
        ReferenceDenied("pdf", "x.md", "not listed"),
    )
    found = make_timeline(outcome("c", "m", events=events), "pdf")
    assert found.steps == (
        Step(0, "offered", "pdf listed"),
        Step(1, "selected", "search: forms"),
        Step(3, "selected", "/skills:pdf"),
        Step(4, "selected", "pdf"),
        Step(5, "loaded", "pdf"),
        Step(6, "loaded", "pdf / x.md: not listed", False),
        Step(7, "followed", "tool_called run_command: called"),
        Step(8, "followed", "response_contains 'total': it is not there", False),
    )
    assert (found.tools, found.length) == (((2, "read_file"),), 9)
    assert make_timeline(outcome("c", "p"), "gone").steps[0] == Step(0, "offered", "gone not listed", False)


class _Seen(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def _look(html: str) -> _Seen:
    seen = _Seen()
    seen.feed(html)
    return seen


def test_the_page_shows_every_plot_and_needs_nothing_else() -> None:
    """It has no address of another place, and no style or handler in an attribute."""
    html = render_page(summarize(sample(), TEXTS))
    seen = _look(html)
    for title in ("Pass rates", "Gain", "Cost against gain", "Triggers", "Coverage", "Infrastructure errors", "Cases"):
        assert f">{title}</h2>" in html
    assert {"svg", "details", "table", "caption", "nav"} <= set(seen.tags)
    assert seen.tags.count("script") == seen.tags.count("style") == 1
    assert all(value.startswith("#") for name, value in seen.attributes if name in ("href", "src"))
    assert not re.search(r"https?://|@import|url\(", html)
    assert len(set(_ids(seen))) == len(_ids(seen))


def test_trials_are_numbered_as_in_the_run() -> None:
    """From 1, so that readers find them in `run.json`."""
    html = render_page(summarize(run_of({case("a"): ("pp",)})))
    assert [f" trial {number} <" in html for number in range(4)] == [False, True, True, False]
    assert 'aria-label="with, trial 1"' in html


def test_loading_another_skill_for_a_negative_query_is_not_wrong() -> None:
    """Blue's negative queries are often red's queries: only loading blue is wrong, and red is not known to be right."""
    blue, none = case("leave", "blue", should=False), case("idle", "blue", should=False)
    wrong = case("take", "blue", should=False)
    run = run_of(
        {blue: ("ppp",), none: ("pp",), wrong: ("m",), case("ask", "red", should=True): ("p",)},
        {"blue/leave": loads("red"), "blue/take": loads("blue"), "red/ask": loads("red")},
    )
    seen = [
        (kind, label)
        for label, kind in re.findall(
            r'aria-label="(\d of \d[^"]*)"><rect[^>]*class="(\w+)', render_page(summarize(run))
        )
    ]
    assert seen == [
        ("wrong", "0 of 1"),
        ("right", "1 of 1, as it should be"),
        ("wrong", "0 of 1"),
        ("wrong", "1 of 6, as it should not be"),
        ("open", "3 of 6"),
        ("right", "2 of 6, as it should be"),
    ]
    assert ">not blue</th>" in render_page(summarize(run))


def _ids(seen: _Seen) -> list[str]:
    return [value for name, value in seen.attributes if name == "id"]


_PAYLOADS = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></script></title><script>1</script>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "<!--",
    "]]>",
    "&lt;b&gt;",
]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(_PAYLOADS) | st.text(max_size=8), max_size=4).map("".join))
def test_nothing_in_a_run_can_become_markup(text: str) -> None:
    """The page has only the tags and attributes of a harmless one."""
    texts = {text: SkillContent(f"# {text}\n", {text: text})}
    innocent, seen = (
        _look(render_page(summarize(hostile("innocent")))),
        _look(render_page(summarize(hostile(text), texts))),
    )
    known = set(innocent.tags) | {"ul", "li", "q", "p", "pre"}
    assert set(seen.tags) <= known
    assert seen.tags.count("script") == seen.tags.count("style") == 1
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("style", "src", "srcdoc")]
    assert all(value.startswith("#") for name, value in seen.attributes if name == "href")


def test_texts_are_escaped_and_hidden_characters_written_out() -> None:
    html = render_page(summarize(run_of({case("a", prompt='<b>\u202e&"</b>'): ("p",)})))
    assert "<q>&lt;b&gt;&lt;U+202E&gt;&amp;&#34;&lt;/b&gt;</q>" in html


def test_the_page_of_a_long_run_leaves_out_passed_trials() -> None:
    """`run.json` has them."""
    rows = {case(f"c{at}"): ("p",) for at in range(500)} | {case("bad"): ("m",)}
    html = render_page(summarize(run_of(rows)))
    assert html.count('class="trial"') == 400
    assert "101 more cases are in run.json." in html
    assert html.index("pdf/bad") < html.index("pdf/c1<")


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium here to open the page with")
def test_a_browser_runs_nothing_that_an_answer_holds(tmp_path: Path) -> None:
    """The page's own script runs under its policy. A payload that got through would change the title."""
    write_run(hostile("".join(_PAYLOADS)), tmp_path)
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*browser, "--dump-dom", f"file://{tmp_path / 'report.html'}"], capture_output=True, text=True, timeout=60
    )
    assert "<title>owned" not in done.stdout
    assert re.search(r'<p class="buttons"(?! hidden)', done.stdout), done.stderr
