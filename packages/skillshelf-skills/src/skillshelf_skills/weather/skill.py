"""The forecast for a place, from Open-Meteo, a public service without keys."""

from collections.abc import Mapping
from datetime import date as calendar_date
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TypedDict, cast

from skillshelf.errors import GuidedError
from skillshelf.skills import BaseSkill, tool
from skillshelf.text import clean_line, truncate

if TYPE_CHECKING:
    from skillshelf_skills.net import NetworkRules

_PLACES_URL = "https://geocoding-api.open-meteo.com/v1/search"
_FORECAST_URL = "https://api.open-meteo.com/v1/forecast"
_MAX_PLACES = 10
_MAX_DAYS = 16
_MAX_WORDS = 100
_TOO_MUCH = 100_000
_DAILY = (
    "weather_code",
    "temperature_2m_min",
    "temperature_2m_max",
    "precipitation_sum",
    "precipitation_probability_max",
    "wind_speed_10m_max",
)


class WeatherError(GuidedError):
    """The weather service gave no forecast."""

    def __init__(self, reason: str, *, reference: str = "") -> None:
        super().__init__(reason, reference=reference)


class Location(TypedDict):
    """A place that has a name."""

    name: str
    region: str
    country: str
    latitude: float
    longitude: float


class Day(TypedDict):
    """The forecast for one day, in the place's own time zone."""

    date: str
    code: int
    """What the sky does, as a WMO weather code."""
    low_celsius: float
    high_celsius: float
    rain_mm: float
    rain_probability_percent: int | None
    """None where the service does not give one: beyond a week, and in some regions."""
    wind_kmh: float


class Forecast(TypedDict):
    """The forecast for a place."""

    time_zone: str
    days: list[Day]


class WeatherSkill(BaseSkill):
    name = "weather"
    description = (
        "Weather forecast for a place, up to 16 days ahead: temperature, rain, wind. "
        "Use when asked about weather, or when a plan depends on it."
    )
    references = ("references/places.md", "references/weather_codes.md")
    instructions = """
    Call `find_place` with the name of the town, then `get_forecast` with its latitude and longitude. Temperatures are
    in degrees Celsius, and days are those of the place. Say for which place and days the forecast is.

    - Several places, or none: load the reference `places.md`.
    - To put a `code` into words, load the reference `weather_codes.md`.
    """

    def __init__(
        self,
        places_url: str = _PLACES_URL,
        forecast_url: str = _FORECAST_URL,
        rules: "NetworkRules | None" = None,
    ) -> None:
        """Connect to nothing yet. The arguments are for a server of your own."""
        self._places_url = places_url
        self._forecast_url = forecast_url
        self._rules = rules

    @classmethod
    def from_setting(cls, setting: str) -> Self:
        """Return the skill. It takes no setting."""
        return cls()

    @tool
    async def find_place(self, name: str, limit: int = 5) -> list[Location]:
        """Find places by name, the most populous first.

        Args:
            name: A town or a postal code, without its country: "Porto".
            limit: The maximum number of places, up to 10.
        """
        if not name.strip():
            raise WeatherError("There is no name to look for. Ask the user which place is meant.")
        count = max(1, min(limit, _MAX_PLACES))
        answer = await self._ask(self._places_url, {"name": name.strip(), "count": str(count), "format": "json"})
        found = answer.get("results") or []
        if not found:
            raise WeatherError(f"No place is called {name!r}.", reference="places.md")
        return _read_places(found, count)

    @tool
    async def get_forecast(self, latitude: float, longitude: float, days: int = 3) -> Forecast:
        """Return the forecast for a place, day by day, today first.

        Args:
            latitude: As `find_place` gives it.
            longitude: As `find_place` gives it.
            days: How many days, up to 16.
        """
        if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
            raise WeatherError(
                f"{latitude}, {longitude} is no place on Earth: latitude goes from -90 to 90 and longitude from -180 "
                f"to 180. Call find_place, and pass its numbers on."
            )
        answer = await self._ask(
            self._forecast_url,
            {
                "latitude": str(latitude),
                "longitude": str(longitude),
                "daily": ",".join(_DAILY),
                "timezone": "auto",
                "forecast_days": str(max(1, min(days, _MAX_DAYS))),
            },
        )
        return _read_forecast(answer)

    async def _ask(self, url: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the service's answer. Raises WeatherError, AddressRefusedError and FetchFailedError."""
        from json import loads
        from urllib.parse import urlencode

        from skillshelf_skills.net import Fetcher

        async with Fetcher(self._rules) as fetcher:
            fetched = await fetcher.fetch(f"{url}?{urlencode(query)}")
        try:
            answer = loads(fetched.body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise WeatherError(
                f"The weather service does not answer as it should (status {fetched.status}). Try later."
            )
        if fetched.status == 429:
            raise WeatherError("The weather service has had too many questions from here. Try again in a minute.")
        if fetched.status != 200:
            raise WeatherError(
                f"The weather service refused the question (status {fetched.status}): {_read_words(answer, 'reason')}"
            )
        return answer


def _read_places(found: object, count: int) -> list[Location]:
    try:
        return [
            Location(
                name=_read_words(place, "name"),
                region=_read_words(place, "admin1"),
                country=_read_words(place, "country"),
                latitude=_check_number(place["latitude"]),
                longitude=_check_number(place["longitude"]),
            )
            for place in cast(list[dict[str, Any]], found)[:count]
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise WeatherError("The weather service's answer has no places in it. Try again later.") from None


def _read_forecast(answer: Mapping[str, Any]) -> Forecast:
    try:
        daily = answer["daily"]
        rows = zip(daily["time"], *(daily[name] for name in _DAILY), strict=True)
        days = [
            Day(
                date=calendar_date.fromisoformat(date).isoformat(),
                code=int(_check_number(code)),
                low_celsius=_check_number(low),
                high_celsius=_check_number(high),
                rain_mm=_check_number(rain),
                rain_probability_percent=None if probability is None else int(_check_number(probability)),
                wind_kmh=_check_number(wind),
            )
            for date, code, low, high, rain, probability, wind in islice(rows, _MAX_DAYS)
        ]
        return Forecast(time_zone=_read_words(answer, "timezone"), days=days)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise WeatherError("The weather service's answer has no forecast in it. Try again later.") from None


def _read_words(answer: Mapping[str, Any], name: str) -> str:
    """Return a text of the service on one line of limited length; empty if it is not there."""
    return truncate(clean_line(str(answer.get(name) or "")), _MAX_WORDS)


def _check_number(value: object) -> float:
    """Return a number of the service. Raises ValueError for anything else, and for what no weather has."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _TOO_MUCH:
        raise ValueError("this is not a measurement")
    return value
