"""The page for people: what it shows, and that nothing in a run can become more than text in it."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_kit import TEXTS, case, hostile, loads, outcome, run_of, sample, scripted_case, system
from skillshelf.listing import Entry
from skillshelf.listing._markup import render
from skillshelf_agent.events import (
    Event,
    Finished,
    Notice,
    ReferenceDenied,
    SkillInvoked,
    SkillLoaded,
    Text,
    Thinking,
    ToolCalled,
    ToolReturned,
)
from skillshelf_evals import FileState, Run, Trace
from skillshelf_evals._artefacts import Artefact, Artefacts, LeftOut
from skillshelf_evals._coverage import SkillContent
from skillshelf_evals._trace import CommandRun
from skillshelf_evals.report import render_page, summarize, write_run
from skillshelf_evals.report._summary import Summary
from skillshelf_evals.report._tables import COUNTED, link_gain, link_rate, link_trials
from skillshelf_evals.report._trials import Step, TranscriptBook, list_steps, trace_way


def test_the_way_of_a_skill_goes_from_offered_to_followed() -> None:
    refused = (SkillInvoked("pdf", ""), ReferenceDenied("pdf", "x.md", "not listed"))
    assert trace_way(outcome("c", "p", events=loads("pdf")), "pdf") == ["offered", "selected", "loaded", "followed"]
    assert trace_way(outcome("c", "m", events=loads("pdf")), "pdf") == ["offered", "selected", "loaded"]
    assert trace_way(outcome("c", "m", events=refused), "pdf") == ["offered", "selected"]
    assert trace_way(outcome("c", "p", events=loads("csv")), "pdf") == ["offered"]
    assert trace_way(outcome("c", "p"), "gone") == []


def test_instructions_that_the_listing_shows_in_full_need_not_be_selected() -> None:
    listed = render([Entry("pdf", "Does pdf.", instructions="Do it.")])
    passed = outcome("c", "p")
    passed = replace(passed, trace=replace(passed.trace, systems=(listed,)))
    assert trace_way(passed, "pdf") == ["offered", "loaded in the listing", "followed"]


def _trace(*events: Event, messages: tuple[str, ...] = (), systems: tuple[str, ...] = ()) -> Trace:
    return Trace(events, messages=messages, systems=systems)


def test_a_transcript_has_each_message_with_the_calls_and_answers_that_follow_it() -> None:
    steps = list_steps(
        _trace(
            Thinking("Let me "),
            Thinking("see."),
            ToolCalled("1", "read_file", {"path": "a.txt", "lines": 3}),
            SkillLoaded("pdf", "model", 1_200),
            ToolReturned("1", "read_file", "gone", ok=False),
            Text("It is "),
            Text("gone."),
            Finished("It is gone."),
            Finished("And now?"),
            messages=("Read a.txt.", "Again."),
        )
    )
    assert steps == [
        Step("user", "User", "Read a.txt."),
        Step("thinking", "Reasoning", "Let me see."),
        Step("tool", "read_file", "path: a.txt\nlines: 3", result="gone", ok=False),
        Step("skill", "pdf loaded by the model, 1,200 bytes"),
        Step("assistant", "Model", "It is gone."),
        Step("user", "User", "Again."),
        Step("assistant", "Model", "And now?"),
    ]


def test_a_transcript_tells_which_skills_each_system_prompt_lists() -> None:
    first, second = system("pdf", "csv"), system("pdf")
    steps = list_steps(_trace(systems=(first, first, second)))
    assert [step.title for step in steps] == [
        "System prompt",
        "Listed: pdf, csv",
        "System prompt from call 3 on",
        "Listed: pdf",
    ]


def test_a_transcript_ends_with_the_files_that_the_trial_left() -> None:
    files = {
        "a.txt": FileState("new", changed=True, size=3),
        "b.bin": FileState(None, changed=True, size=9),
        "c.txt": FileState("as it was", changed=False),
    }
    steps = list_steps(Trace(files=files, removed=("d.txt",)))
    assert steps == [
        Step("file", "a.txt written, 3 bytes", "new"),
        Step("file", "b.bin written, 9 bytes", "(not text, or too long to keep)"),
        Step("file", "d.txt removed"),
    ]


def test_a_transcript_ends_with_the_commands_of_checks() -> None:
    runs = (
        CommandRun("make\nmake test", 60.0, 2, "one\n", "two", cut=1_000),
        CommandRun("sleep 99", 5.0, timed_out=True),
        CommandRun("yes", 5.0, too_long=True),
        CommandRun("true", 5.0, error="no sandbox"),
    )
    made, *others = list_steps(Trace(command_runs=runs))
    output = "one\n\nstandard error:\ntwo\n(1,000 characters before that were not kept)"
    assert made == Step("command", "A command of a check ended with exit code 2", "make\nmake test", output)
    assert [(step.title.removeprefix("A command of a check "), step.ok) for step in others] == [
        ("was stopped after 5 s", False),
        ("was stopped because it printed too much", False),
        ("could not be started: no sandbox", False),
    ]


def test_a_long_transcript_is_cut_and_says_so() -> None:
    steps = list_steps(_trace(*(Notice(str(number)) for number in range(1_000))))
    assert len(steps) == 201
    assert steps[100] == Step("notice", "800 steps left out here: run.json has them")
    assert (steps[0].text, steps[-1].text) == ("0", "999")

    book = TranscriptBook()
    book.describe(outcome("c", "p", answer="", events=[Text("x" * 5_000)]))
    assert "x" * 3_999 + "…" in book.texts


def test_texts_that_occur_often_are_stored_once() -> None:
    book = TranscriptBook()
    for _ in range(3):
        book.describe(outcome("c", "p"))
    assert len(set(book.texts)) == len(book.texts)


def test_transcripts_without_room_are_counted_and_keep_their_checks() -> None:
    book = TranscriptBook(max_size=1_000)
    described = [book.describe(outcome("c", "m", events=[Text(letter * 500)], reason="why not")) for letter in "abcdef"]
    assert [plain["steps"] is None for plain in described] == [False, True, True, True, True, True]
    assert book.left_out == 5
    assert all(book.texts[plain["checks"][1]["reason"]] == "why not" for plain in described)


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
    for title in ("Pass rates", "Gain", "Triggers", "Coverage", "Infrastructure errors", "Trials"):
        assert f">{title}</h2>" in html
    assert {"svg", "details", "table", "caption", "nav", "noscript"} <= set(seen.tags)
    assert (seen.tags.count("script"), seen.tags.count("style")) == (2, 1)
    assert all(value.startswith("#") for name, value in seen.attributes if name in ("href", "src"))
    assert not re.search(r"https?://|@import|url\(|innerHTML|insertAdjacentHTML|document\.write|\beval\(", html)
    assert len(set(_ids(seen))) == len(_ids(seen))


def test_trials_are_numbered_as_in_the_run() -> None:
    """From 1, so that readers find them in `run.json`."""
    html = render_page(summarize(run_of({case("a"): ("p",), case("b"): ("m",)})))
    assert [f'id="trial-{number}"' in html for number in range(4)] == [False, True, True, False]
    assert html.index('id="trial-2"') < html.index('id="trial-1"'), "the miss comes first"


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
    assert (seen.tags.count("script"), seen.tags.count("style")) == (2, 1)
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("style", "src", "srcdoc")]
    assert all(value.startswith("#") for name, value in seen.attributes if name == "href")


def test_texts_are_escaped_and_hidden_characters_written_out() -> None:
    html = render_page(summarize(run_of({case("a", prompt='<b>\u202e&"</b>'): ("p",)})))
    assert "<q>&lt;b&gt;&lt;U+202E&gt;&amp;&#34;&lt;/b&gt;</q>" in html


def test_the_page_of_a_long_run_has_every_trial() -> None:
    """The misses come first."""
    rows = {case(f"c{at}"): ("pp",) for at in range(1_000)} | {case("bad"): ("m",)}
    html = render_page(summarize(run_of(rows)))
    assert html.count("<tr id=") == 2_001
    assert html.index("pdf/bad") < html.index("pdf/c1<")
    assert len(html) < 1_000 * 2_001


# --- in a browser ---

needs_browser = pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium here to open the page with")


_PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # 1 × 1 pixel
)


def _open(page: Path, fragment: str = "") -> str:
    """Return what a browser makes of a page."""
    profile = page.parent / "profile"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000"]
    words = ["chromium", *options, f"--user-data-dir={profile}", "--dump-dom", f"file://{page}{fragment}"]
    return subprocess.run(words, capture_output=True, text=True, timeout=120).stdout


def _shown_trials(dom: str) -> list[int]:
    return [int(number) for number in re.findall(r'<tr id="trial-(\d+)" data-trial="\d+">', dom)]


@needs_browser
@pytest.mark.parametrize("fragment", ["", "#trial-1", "#trials?q=script"])
def test_a_browser_runs_nothing_that_a_run_holds(fragment: str, tmp_path: Path) -> None:
    """The page's own script runs under its policy. A payload that got through would change the title or load x."""
    write_run(summarize(hostile("".join(_PAYLOADS))), tmp_path)
    dom = _open(tmp_path / "report.html", fragment)
    assert '<form id="filters" role="search">' in dom
    assert "<title>owned" not in dom
    assert not set(_look(dom).tags) & {"img", "b onerror"}
    assert ("<dialog open" in dom or 'open=""' in dom) == (fragment != "")


@needs_browser
def test_an_address_opens_a_transcript_next_to_the_trial_without_the_skill(tmp_path: Path) -> None:
    info = case("fill")
    trials = [
        outcome(info.id, "p", "with", 1, [ToolCalled("1", "fill_form", {"form": "a.pdf"}), Text("Filled.")]),
        outcome(info.id, "m", "without", 1, [Text("I cannot.")], reason="no form was filled"),
        outcome(info.id, "p", "without", 2, [Text("Another repeat.")]),
    ]
    run = Run("r", "2026-11-15T10:00:00Z", "m", (info,), tuple(trials), repeats=2, baseline="none")
    write_run(summarize(run), tmp_path)
    dom = _open(tmp_path / "report.html", "#trial-2")
    opened = dom[dom.index("<dialog") : dom.index("</dialog>")]
    assert opened.index("with, trial 1") < opened.index("without, trial 1")
    for text in ("fill_form", "form: a.pdf", "Filled.", "I cannot.", "no form was filled"):
        assert text in opened
    assert "Another repeat." not in opened


@needs_browser
def test_a_transcript_shows_pictures_and_which_files_the_agent_did_not_make(tmp_path: Path) -> None:
    info = case("draw")
    picture = Artefact("a b.png", "artefacts/c-with-1-0123456789ab/001-a_b.png", 67, "image")
    text = Artefact("log", "artefacts/c-with-1-0123456789ab/002-log.txt", 3, "text", by_check=True)
    trial = replace(outcome(info.id, "p"), artefacts=Artefacts((picture, text)))
    write_run(summarize(Run("r", "2026-11-15T10:00:00Z", "m", (info,), (trial,))), tmp_path)
    (tmp_path / picture.path).parent.mkdir(parents=True)
    (tmp_path / picture.path).write_bytes(base64.b64decode(_PICTURE))
    page = tmp_path / "report.html"
    # The width is 0 if the policy of the page does not let the browser load the picture.
    probe = (
        "<script>addEventListener('load', () => document.title = document.querySelector('img').naturalWidth)</script>"
    )
    source = base64.b64encode(hashlib.sha256(probe[8:-9].encode()).digest()).decode()
    page.write_text(page.read_text().replace("script-src ", f"script-src &#39;sha256-{source}&#39; ") + probe)
    dom = _open(page, "#trial-1")
    opened = dom[dom.index("<dialog") : dom.index("</dialog>")]
    assert f'<img src="{picture.path}" alt="a b.png">' in opened
    assert opened.count("made by a command of a check, not by the agent") == 1
    assert "<title>1</title>" in dom


_VISIT = """
(async () => {
  const links = [...document.querySelectorAll('a.trials[href^="#trials"]')].map((link) => link.getAttribute("href"));
  const shown = {};
  for (const address of ADDRESSES ?? links) {
    location.hash = "";
    await new Promise((go) => setTimeout(go, 1));
    location.hash = address;
    await new Promise((go) => setTimeout(go, 1));
    const rows = document.querySelectorAll("tr[data-trial]:not([hidden])");
    shown[address] = [...rows].map((row) => Number(row.id.slice("trial-".length))).sort();
  }
  document.title = JSON.stringify(shown);
})();
"""


def _visit(summary: Summary, folder: Path, addresses: list[str] | None = None) -> dict[str, list[int]]:
    """Return the trials that each address of a page shows in a browser: those of its links, if none are given."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", render_page(summary))
    script = _VISIT.replace("ADDRESSES", json.dumps(addresses))
    path = folder / "report.html"
    path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    title = re.search(r"<title>(.*?)</title>", _open(path), re.S)
    assert title
    shown: dict[str, list[int]] = json.loads(unescape(title[1]))
    return shown


def _count_behind_links(summary: Summary, folder: Path) -> dict[str, int]:
    return {link: len(trials) for link, trials in _visit(summary, folder).items()}


@needs_browser
def test_an_address_shows_the_trials_that_meet_its_conditions(tmp_path: Path) -> None:
    expected = {
        "#trials?q=total": [1, 2, 3, 4],
        "#trials?q=BETA%20total": [3, 4],
        "#trials?q=unheard-of": [],
        "#trials?status=missed&arm=with": [2],
        "#trials?flaky=yes": [1, 2],
        "#trials?case=pdf/beta": [3, 4],
        "#trials?skill=csv": [],
        "#trials?__proto__=1&constructor=2&unknown=3": [1, 2, 3, 4],
    }
    run = run_of({case("alpha"): ("pm",), case("beta"): ("p", "m")})
    assert _visit(summarize(run), tmp_path, list(expected)) == expected

    # At its opening, under the page's own policy.
    write_run(summarize(run), tmp_path)
    assert sorted(_shown_trials(_open(tmp_path / "report.html", "#trials?q=BETA%20total"))) == [3, 4]


@needs_browser
def test_no_number_of_a_run_without_results_leads_nowhere(tmp_path: Path) -> None:
    rows = {case("broken"): ("e", "e"), case("ask", should=True): ("e",), case("alone", "csv", should=True): ("m",)}
    counts = _count_behind_links(summarize(run_of(rows), TEXTS), tmp_path)
    assert [link for link, trials in counts.items() if not trials] == []


@needs_browser
def test_every_number_leads_to_the_trials_behind_it(tmp_path: Path) -> None:
    run = sample()
    scripted = scripted_case("alone")
    run = replace(run, cases=(*run.cases, scripted), outcomes=(*run.outcomes, outcome(scripted.id, "p")))
    summary = summarize(run, TEXTS)
    counts = _count_behind_links(summary, tmp_path)
    expected: dict[str, int] = {}
    for group in summary.skills:
        for arm, numbers in group.arms.items():
            expected[link_rate(group.name, arm)] = numbers.counts.trials
        for versus in group.versus:
            expected[link_gain(group.name, versus.base)] = sum(pair.base[1] + pair.new[1] for pair in versus.pairs)
    total = summary.total.arms["with"].counts
    expected[link_trials(live=True, arm="with", status="missed")] = total.missed
    expected[link_trials(live=True, arm="with", status="error")] = total.errors
    for number, fault in enumerate(summary.faults, 1):
        expected[link_trials(status="error", fault=number)] = fault.times
    expected[link_trials(live=False)] = 1
    confusion = summary.confusion
    assert confusion
    for (row, column), times in confusion.counts.items():
        cell = link_trials(skill=row.skill, trigger=row.should, loaded=column, live=True, arm="with", status=COUNTED)
        expected[cell] = times
    pdf = next(group.trigger for group in summary.skills if group.trigger)
    precision = link_trials(about="pdf", loaded="pdf", live=True, arm="with", status=COUNTED)
    expected[precision] = pdf.precision.total
    expected[link_trials(skill="pdf", trigger=True, live=True, arm="with", status=COUNTED)] = pdf.recall.total

    assert {link: counts.get(link) for link in expected} == expected
    assert all(counts.values()), "no link leads to nothing"


def test_a_transcript_links_only_to_copies_beside_the_page() -> None:
    """A run that was read from a file could name any address."""
    good = Artefact("a.txt", "artefacts/c-with-1-0123456789ab/001-a.txt", 3, "text")
    page = replace(good, name="<b>", view="artefacts/c-with-1-0123456789ab/001-b.view.html")
    bad_view = replace(good, view="javascript:alert(1)")
    bad = [replace(good, path=path) for path in ("javascript:alert(1)", "artefacts/../../x", "https://a/artefacts/b/c")]
    kept = Artefacts((good, page, bad_view, *bad), (LeftOut("larger than 8 MiB", 2),))
    described = TranscriptBook().describe(replace(outcome("c", "p"), artefacts=kept))
    assert [(file["name"], file["path"] == good.path, file["view"]) for file in described["artefacts"]] == [
        ("a.txt", True, ""),
        ("<b>", True, page.view),
        ("a.txt", True, ""),
    ]
    assert described["left_out"] == ["2 files not kept: larger than 8 MiB"]
