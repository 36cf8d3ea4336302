"""Name, kind, value and options of every field of a PDF form, one a line."""

import sys

from pypdf import PdfReader


def main(path: str) -> None:
    for name, field in (PdfReader(path).get_fields() or {}).items():
        options = field.get("/_States_") or field.get("/Opt") or ""
        print(name, field.get("/FT"), repr(field.get("/V", "")), options, sep="\t")


if __name__ == "__main__":
    main(sys.argv[1])
