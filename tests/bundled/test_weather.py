"""The skill `weather`, against a server that answers as the real one does."""

import json
from collections.abc import Iterator

import pytest
from sites import Site, send

from bundled.calling import call
from bundled.weather_service import make_skill
from skillshelf.bundled.weather.skill import WeatherError, WeatherSkill
from skillshelf.errors import AddressRefusedError, FetchFailedError


@pytest.fixture
def site() -> Iterator[Site]:
    with Site.running() as site:
        yield site


def test_a_place_has_its_region_and_country(site: Site) -> None:
    """Two of one name can be told apart."""
    places = call(make_skill(site), "find_place", name=" Springfield ")
    assert [place["region"] for place in places] == ["Missouri", "Illinois"]


def test_a_forecast_has_a_day_for_each_day(site: Site) -> None:
    """Up to as many as the service has; what it does not know is None."""
    skill = make_skill(site)
    forecast = call(skill, "get_forecast", latitude=41.15, longitude=-8.61, days=100)
    assert len(forecast["days"]) == 16
    assert forecast["days"][0] == {
        "date": "2027-03-01",
        "code": 61,
        "low_celsius": 7,
        "high_celsius": 7,
        "rain_mm": 7,
        "rain_probability_percent": None,
        "wind_kmh": 7,
    }


def test_an_unknown_place_names_the_reference(site: Site) -> None:
    """The model can act on it."""
    with pytest.raises(WeatherError, match=r"No place is called 'Atlantis'\. Load the reference 'places\.md'"):
        call(make_skill(site), "find_place", name="Atlantis")


@pytest.mark.parametrize("numbers", [{"latitude": 91, "longitude": 0}, {"latitude": 0, "longitude": float("nan")}])
def test_numbers_that_are_no_place_are_refused(site: Site, numbers: dict[str, float]) -> None:
    """Before anything is asked."""
    with pytest.raises(WeatherError, match="no place on Earth"):
        call(make_skill(site), "get_forecast", **numbers)
    assert site.requests == []


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, b'{"error": true, "reason": "bad latitude"}', "refused the question .*: bad latitude"),
        (429, b'{"error": true}', "too many questions"),
        (503, b"<html>down</html>", r"does not answer as it should \(status 503\)"),
        (200, b"[]", "does not answer as it should"),
        (200, b'{"daily": {"time": ["2027-03-01"]}}', "no forecast in it"),
        (200, json.dumps({"daily": 5}).encode(), "no forecast in it"),
    ],
)
def test_a_service_in_trouble_is_explained(site: Site, status: int, body: bytes, message: str) -> None:
    """Whatever it sends."""
    skill = make_skill(site)
    site.pages["/forecast"] = send(body, status=status)
    with pytest.raises(WeatherError, match=message):
        call(skill, "get_forecast", latitude=1, longitude=1)


def test_the_service_is_asked_under_the_network_rules(site: Site) -> None:
    """A skill that is sent to this machine does not go there."""
    with pytest.raises(AddressRefusedError):
        call(WeatherSkill(site.url("/places")), "find_place", name="Porto")
    with pytest.raises(FetchFailedError):
        call(WeatherSkill("http://no-such-host.invalid/"), "find_place", name="Porto")
