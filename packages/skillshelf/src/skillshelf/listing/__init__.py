"""The Available Skills section: what the model always sees of the shelf."""

from skillshelf.listing._budget import make_listing
from skillshelf.listing._difference import describe_change, merge_listings
from skillshelf.listing._feed import Feed
from skillshelf.listing._markup import OPENING, Entry, parse, to_xml
from skillshelf.listing._section import Level, Listing, Shortened
from skillshelf.skills import ListingForm
from skillshelf.text.tokens import DEFAULT_BUDGET

__all__ = [
    "DEFAULT_BUDGET",
    "OPENING",
    "Entry",
    "Feed",
    "Level",
    "Listing",
    "ListingForm",
    "Shortened",
    "describe_change",
    "make_listing",
    "merge_listings",
    "parse",
    "to_xml",
]
