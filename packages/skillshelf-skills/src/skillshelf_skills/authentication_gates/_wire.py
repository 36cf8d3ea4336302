"""Single requests that may carry a secret: under the network rules, and without redirects."""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

from skillshelf_skills.net import Fetched, Fetcher, NetworkRules


class Wire:
    """Sends requests. Each has a client of its own, which therefore knows no cookies of another site or port."""

    def __init__(self, rules: NetworkRules) -> None:
        self.rules = rules

    async def send(
        self, url: str, *, headers: Mapping[str, str] | None = None, form: Mapping[str, str] | None = None
    ) -> Fetched:
        """Get an address, or post a form to it. A redirect is returned, not followed."""
        method = "GET" if form is None else "POST"
        async with Fetcher(self.rules) as fetcher:
            return await fetcher.fetch(url, method=method, headers=headers, form=form, follow=False)

    async def probe(self, url: str) -> Fetched:
        """Get an address without any credential, through its redirects."""
        async with Fetcher(self.rules) as fetcher:
            return await fetcher.fetch(url)


def read_cookies(fetched: Fetched, cookies: dict[str, str]) -> None:
    """Bring cookies up to date with what a site sets and deletes."""
    for line in fetched.headers.get_list("set-cookie"):
        try:
            parsed = SimpleCookie(line)
        except CookieError:
            continue
        for name, morsel in parsed.items():
            if morsel["max-age"] == "0" or not morsel.coded_value:
                cookies.pop(name, None)
            else:
                cookies[name] = morsel.coded_value


def parse_cookie_header(text: str) -> dict[str, str]:
    """Return the cookies of a `Cookie` header."""
    pairs = (part.strip().partition("=") for part in text.split(";"))
    return {name: value for name, _, value in pairs if name}
