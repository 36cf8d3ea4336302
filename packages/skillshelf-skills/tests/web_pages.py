"""Pages for the browser: a shop, a changing list, and pages that mean harm."""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from calling import call
from sites import Page, Site, send
from skillshelf_skills import ATTACHABLE
from skillshelf_skills.browser import BrowserLimits
from skillshelf_skills.browser.skill import BrowserSkill

(ENTRY,) = [skill for skill in ATTACHABLE if skill.name == "browser"]
OBSTACLE = ENTRY.find_obstacle()
needs_browser = pytest.mark.skipif(OBSTACLE is not None, reason=f"there is no browser here: {OBSTACLE}")
CHROMIUM = ENTRY.programs[0].find() or ""
PATIENT = BrowserLimits(seconds=120, load_seconds=60, action_seconds=40)
"""For what must work, however busy the machine is."""

SHOP = """
<title>Shop</title>
<h1>Dairy</h1>
<p>Read the <a href="/terms">terms</a>, then <b>buy</b>.</p>
<ul><li>Milk <button>Remove</button></li><li>Butter <button>Remove</button></li></ul>
<table><tr><th>Day<th>Open<tr><td>Monday<td>9 to 5</table>
<form action="/order">
  <label>Name <input name="name" required></label>
  <label>Size <select name="size"><option>Small<option>Large</select></label>
  <label><input type="checkbox" name="gift"> Gift</label>
  <input type="date" name="day" aria-label="Day">
  <input type="password" name="secret" placeholder="Password" value="hunter2">
  <input type="file" aria-label="Photo">
  <button disabled>Later</button> <input type="submit" value="Order">
</form>
"""
# The first click draws the list anew, one shorter; what was the second row is the first then.
STOCK = """
<h1>Stock</h1><ul></ul>
<script>
  let names = ["Milk", "Butter", "Cheese"];
  function draw() {
    document.querySelector("ul").innerHTML = names.map((name) => `<li>${name} <button>Remove</button></li>`).join("");
    document.querySelectorAll("button").forEach((button, index) => {
      button.onclick = () => { names.splice(index, 1); draw(); };
    });
  }
  draw();
</script>
"""


class Signal:
    """A word that the site says to a page when the test wants it, on a stream that the browser does not wait for."""

    def __init__(self) -> None:
        self.is_given = threading.Event()
        self.is_over = threading.Event()
        """Set when the page has closed the stream, or is gone."""

    def __call__(self, page: BaseHTTPRequestHandler) -> None:
        page.send_response(200)
        page.send_header("Content-Type", "text/event-stream")
        page.end_headers()
        self.is_given.wait()
        try:
            page.wfile.write(b"data: now\n\n")
            while not self.is_over.wait(0.05):
                page.wfile.write(b": still here\n\n")
        except OSError:
            self.is_over.set()


def html(body: str) -> Page:
    """Return a page with this body."""
    data = f"<!doctype html><html><head><meta charset=utf-8></head><body>{body}</body></html>".encode()
    return send(data, Content_Type="text/html; charset=utf-8")


def make_skill(site: Site, limits: BrowserLimits = PATIENT, **options: Any) -> BrowserSkill:
    """Return the skill with this site allowed, and all its tools."""
    skill = BrowserSkill(rules=site.rules, limits=limits, **options)
    return skill.with_policy(dict.fromkeys(BrowserSkill.policy, "safe"))


@contextmanager
def open_browser(site: Site, limits: BrowserLimits = PATIENT, **options: Any) -> Iterator[BrowserSkill]:
    """Yield the skill for this site, and close its browser in the end."""
    skill = make_skill(site, limits, **options)
    try:
        yield skill
    finally:
        call(skill, "close_browser")


def find_number(reading: Mapping[str, Any], name: str, nth: int = 0) -> int:
    """Return the number of the element with this name in a page's text."""
    return int(re.findall(rf'\[(\d+) \w+ "{re.escape(name)}"', reading["text"])[nth])


def serve_for_evals() -> BrowserSkill:
    """Return a skill whose site runs until the process ends. The model knows the site as http://shop.example."""
    site = ExitStack().enter_context(Site.running())
    site.pages |= {
        "/": html(SHOP),
        "/order": html("<h1>Thank you</h1><p>Your order has the number 4711.</p>"),
        "/stock": html(STOCK),
        "/metadata": send(b"", status=302, Location="http://169.254.169.254/latest/meta-data/"),
    }
    skill = make_skill(site)
    open_page = skill.open_page

    async def open_at_site(url: str) -> Any:
        return await open_page(url.replace("http://shop.example", site.url("")))

    skill.open_page = open_at_site  # type: ignore[method-assign]
    return skill
