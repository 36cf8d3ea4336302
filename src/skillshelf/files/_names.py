"""How file systems compare names."""

import unicodedata


def fold_name(name: str) -> str:
    """Return a name in the form in which the most lenient file system compares it.

    macOS ignores case and Unicode forms, and older versions of it ignore invisible characters too: there, `.GIT` is
    `.git`. Rules that protect a name compare this form on every system.
    """
    if name.isascii():
        return name.lower()
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")
