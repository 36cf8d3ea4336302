"""A stand-in for the weather service, as it answers over HTTP."""

import json
from contextlib import ExitStack
from functools import cache
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from sites import Site, send
from skillshelf_skills.weather.skill import WeatherSkill

PLACES = {
    "Porto": [{"name": "Porto", "admin1": "Porto", "country": "Portugal", "latitude": 41.15, "longitude": -8.61}],
    "Springfield": [
        {"name": "Springfield", "admin1": state, "country": "United States", "latitude": 39.8, "longitude": -89.6}
        for state in ("Missouri", "Illinois")
    ],
}


def find_places(page: BaseHTTPRequestHandler) -> None:
    (name,) = parse_qs(urlsplit(page.path).query)["name"]
    found = PLACES.get(name)
    send(json.dumps({"results": found} if found else {"generationtime_ms": 0.1}).encode())(page)


def make_forecast(page: BaseHTTPRequestHandler) -> None:
    query = {name: values[0] for name, values in parse_qs(urlsplit(page.path).query).items()}
    days = int(query["forecast_days"])
    daily: dict[str, list[object]] = {name: [7] * days for name in query["daily"].split(",")}
    daily["time"] = [f"2027-03-{day:02}" for day in range(1, days + 1)]
    daily["weather_code"] = [61] * days
    daily["precipitation_probability_max"] = [None] * days
    send(json.dumps({"timezone": "Europe/Lisbon", "daily": daily}).encode())(page)


def make_skill(site: Site) -> WeatherSkill:
    """Return the skill, asking this site instead of the real service."""
    site.pages |= {"/places": find_places, "/forecast": make_forecast}
    return WeatherSkill(site.url("/places"), site.url("/forecast"), site.rules)


@cache
def serve_for_evals() -> WeatherSkill:
    """Return a skill whose service runs until the process ends."""
    return make_skill(ExitStack().enter_context(Site.running()))
