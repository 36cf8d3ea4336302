from abc import abstractmethod

from skillshelf.skills import BaseSkill, tool


class SiteSkill(BaseSkill):
    """What the skills for single sites share: no skill by itself."""

    @abstractmethod
    def _home(self) -> str: ...

    @tool
    def open(self, path: str = "/") -> str:
        """The text of a page."""
        return f"{self._home()}{path}"


class BrowserSkill(SiteSkill):
    name = "browser"
    description = "Reads web pages."
    instructions = "Call `open`. If an element is not found, load selectors.md."
    references = ("references/selectors.md",)

    def _home(self) -> str:
        return "https://example.org"
