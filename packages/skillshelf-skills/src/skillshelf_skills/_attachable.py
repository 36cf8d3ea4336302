"""The table of skills that come with skillshelf and are attached by name."""

import sys

from skillshelf.sources.attachable import AttachableSkill, SystemProgram

_MAC_BROWSERS = ("Google Chrome.app/Contents/MacOS/Google Chrome", "Chromium.app/Contents/MacOS/Chromium")
CHROMIUM = SystemProgram(
    ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "brew install --cask google-chrome" if sys.platform == "darwin" else "apt install chromium",
    # macOS puts no application on the PATH.
    tuple(f"{folder}/{browser}" for folder in ("/Applications", "~/Applications") for browser in _MAC_BROWSERS),
)

ATTACHABLE: tuple[AttachableSkill, ...] = (
    AttachableSkill(
        "agentic-rag",
        "skillshelf_skills.agentic_rag.skill:AgenticRagSkill",
        "rag",
        ("anyio", "httpx2", "ladybug", "lxml_html_clean", "trafilatura"),
        takes="FOLDER",
    ),
    AttachableSkill(
        "authentication-gates",
        "skillshelf_skills.authentication_gates.skill:AuthenticationGatesSkill",
        "authentication-gates",
        ("anyio", "httpx2"),
        takes="SITES",
    ),
    AttachableSkill(
        "browser",
        "skillshelf_skills.browser.skill:BrowserSkill",
        "browser",
        ("anyio", "httpx2", "playwright"),
        takes="HOSTS",
        programs=(CHROMIUM,),
    ),
    AttachableSkill(
        "database",
        "skillshelf_skills.database.skill:DatabaseSkill",
        "database",
        (),  # SQLite comes with Python; a PostgreSQL server needs the extra, and says so
        takes="FILE",
        needs_setting=True,
    ),
    AttachableSkill(
        "execution-debugging",
        "skillshelf_skills.execution_debugging.skill:ExecutionDebuggingSkill",
        "execution-debugging",
        (),
        takes="FOLDER",
    ),
    AttachableSkill(
        "pdf-extraction",
        "skillshelf_skills.pdf_extraction.skill:PdfExtractionSkill",
        "pdf-extraction",
        ("pdfplumber", "pypdfium2"),
        takes="FOLDER",
    ),
    AttachableSkill("weather", "skillshelf_skills.weather.skill:WeatherSkill", "weather", ("anyio", "httpx2")),
)
"""The attachable skills, by name."""
