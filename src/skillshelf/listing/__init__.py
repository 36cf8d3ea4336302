"""The Available Skills section: what the model always sees of the shelf."""

from skillshelf.listing.choose import Listing, Shortened, make_listing
from skillshelf.listing.markup import Entry, parse, to_xml
from skillshelf.tokens import DEFAULT_BUDGET

__all__ = ["DEFAULT_BUDGET", "Entry", "Listing", "Shortened", "make_listing", "parse", "to_xml"]
