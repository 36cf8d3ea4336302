"""What the loaders of other hosts make of a SKILL.md, for `skillshelf check --hosts`.

    python -m benchmarks.portability                what differs from the table, for the hosts installed here
    python -m benchmarks.portability --write        and writes that
    python -m benchmarks.portability --install      with all hosts, in an environment made for it and thrown away
    python -m benchmarks.portability --corpus DIR   and for how many skills below DIR `check --hosts` says what they do

A file for each condition goes through each host's own loader (`host_loaders.py`), in a process where nothing but the
hosts can be imported by mistake.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.host_loaders import HOSTS, Variant
from skillshelf.lint.hosts import find_conditions, judge_conditions
from skillshelf.lint.hosts._detect import BEHAVIOR_FIELDS
from skillshelf.skillmd import Unreadable, decode, read

TABLE = Path(__file__).parents[1] / "packages" / "skillshelf" / "src" / "skillshelf" / "lint" / "hosts" / "hosts.json"
LOADERS = Path(__file__).with_name("host_loaders.py")
BODY = "Say hello, then stop.\n"
# Where there is no description, a heading must not be taken for one.
HEADED = f"# Greeting\n\n{BODY}"
SAYS = "Greets people by name."
# A condition that every loader copes with, and without which its probe itself is wrong.
CONTROL = "plain"


def _text(description: str = SAYS, name: str = "plain", more: str = "", body: str = BODY) -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}"


def with_field(field: str) -> Variant:
    """A plain skill with one more field."""
    return _more(f"{field}: true\n")


def _more(fields: str) -> Variant:
    return Variant(_text(more=fields))


def _named(name: str, written: str = "") -> Variant:
    return Variant(_text(name=written or name), name)


def _says(text: str, written: str = "") -> Variant:
    return Variant(_text(written or text), description=text)


def _undescribed(line: str) -> Variant:
    return Variant(f"---\nname: plain\n{line}---\n\n{HEADED}", description=BODY.strip())


def _unnamed(line: str) -> Variant:
    return Variant(f"---\n{line}description: {SAYS}\n---\n\n{BODY}")


VARIANTS = {
    CONTROL: Variant(_text()),
    "allowed-tools-list": _more("allowed-tools:\n  - Read\n  - Grep\n"),
    "allowed-tools-text": _more("allowed-tools: Read Grep\n"),
    "block-on-one-line": _says(SAYS, f"> {SAYS}"),
    "bom": Variant("\ufeff" + _text()),
    "comment-cuts-value": _says("Greets people by name # and title."),
    "compatibility-list": _more("compatibility:\n  - Python\n"),
    "compatibility-too-long": _more(f"compatibility: {'Needs Python. ' * 40}\n"),
    "cr-only": Variant(_text().replace("\n", "\r")),
    "crlf": Variant(_text().replace("\n", "\r\n")),
    "dashes-after": _more("license: MIT---0\n"),
    "dashes-break": _says("Greets people --- by name.", '"Greets people --- by name."'),
    "dashes-in-description": _says("Greets people --- by name."),
    "delimiter-spaces": Variant(_text().replace("---\n", "---  \n")),
    "description-anchor": _says(SAYS, f"&says {SAYS}"),
    "description-below": _says(SAYS, f"\n  {SAYS}"),
    "description-block": _says(SAYS, ">-\n  Greets people\n  by name."),
    "description-comment": _says(SAYS, f'"{SAYS}"  # the short one'),
    "description-empty": _undescribed('description: ""\n'),
    "description-escaped": _says('Greets "people" by name.', '"Greets \\"people\\" by name."'),
    "description-key-quoted": Variant(_text().replace("description:", '"description":')),
    "description-markup": _says("Greets <b>people</b> & cats."),
    "description-missing": _undescribed(""),
    "description-nothing": _undescribed("description:\n"),
    "description-quote-ends": _says('"Hello" is what it says, or "goodbye"'),
    "description-quoted-lines": _says(SAYS, '"Greets people\n  by name."'),
    "description-surrogates": _says("🚀 greets people.", '"\\ud83d\\ude80 greets people."'),
    "description-too-long": _says((f"{SAYS} " * 60).strip()),
    "description-unindented": _says(SAYS, "Greets people\nby name."),
    "description-very-long": _says((f"{SAYS} " * 200).strip()),
    "description-wrapped": _says(SAYS, "Greets people\n  by name."),
    "duplicate-field": _more(f"description: {SAYS}\n"),
    "duplicate-key": _more("author: me\nauthor: you\n"),
    "duplicate-metadata": _more("metadata:\n  author: me\n  author: you\n"),
    "empty": Variant(""),
    "field-capitals": _more("License: MIT\n"),
    "field-key": _more("yes: me\n"),
    "field-nothing": _more("license:\n"),
    "field-number": _more("license: 2.0\n"),
    "fields-behavior": _more("".join(f"{field}: x\n" for field in sorted(BEHAVIOR_FIELDS - {"paths"}))),
    "fields-unknown": _more("author: me\nuser-invocable: true\n"),
    "file-lowercase": Variant(_text(), file="skill.md"),
    "folder-linked": Variant(_text(), linked=True),
    "folder-nested": Variant(_text(), nested=True),
    "frontmatter-last": Variant(_text(body="").rstrip()),
    "frontmatter-missing": Variant(HEADED, description=BODY.strip()),
    "frontmatter-not-first": Variant("\n\n" + _text()),
    "frontmatter-unclosed": Variant(f"---\nname: plain\ndescription: {SAYS}\n\n{BODY}"),
    "instructions-missing": Variant(_text(body="")),
    "invocable-other": _more("user-invocable: yes\n"),
    "license-list": _more("license:\n  - MIT\n"),
    "line-separators": _says("Greets people\u2028by name."),
    "metadata-date": _more("metadata:\n  since: 2024-01-01\n"),
    "metadata-key": _more("metadata:\n  1: one\n"),
    "metadata-nested": _more("metadata:\n  tags:\n    - a\n    - b\n"),
    "metadata-not-mapping": _more("metadata: by me\n"),
    "metadata-nothing": _more("metadata:\n"),
    "metadata-null": _more("metadata:\n  author:\n"),
    "metadata-number": _more("metadata:\n  version: 1.0\n"),
    "model-invocation-off": Variant(_text(more="disable-model-invocation: true\n"), hidden=True),
    "name-characters": _named("my_skill"),
    "name-comment": _named("plain", "plain  # for now"),
    "name-empty": _unnamed('name: ""\n'),
    "name-hyphen-end": _named("plain-"),
    "name-hyphens": _named("my--skill"),
    "name-mismatch": Variant(_text(), folder="other"),
    "name-missing": _unnamed(""),
    "name-not-ascii": _named("café"),
    "name-nothing": _unnamed("name:\n"),
    "name-too-long": _named("a" * 65),
    "name-uppercase": _named("Plain"),
    "not-utf8": Variant(_text("Grüßt Menschen.").encode("latin-1"), description="Grüßt Menschen."),
    "nul-byte": _says("Greets\0people."),
    "paths-given": _more("paths: src/**\n"),
    "value-list": _says("- Greets people.", "\n  - Greets people."),
    "value-null": _says("~"),
    "value-number": _named("123"),
    "value-yes-no": _named("yes"),
    "yaml-anchor": _more("metadata:\n  author: &me you\n  editor: *me\n"),
    "yaml-flow": _more('metadata: {version: "1"}\n'),
    "yaml-repaired": _says("Use when: asked to greet."),
    "yaml-tag": _says("!people are greeted."),
}


def measure_with(python: str, variants: Mapping[str, Variant] = VARIANTS) -> dict[str, dict[str, Any]]:
    """What the hosts of an interpreter make of each variant."""
    given = json.dumps({name: variant.as_json() for name, variant in variants.items()})
    # With -P nothing beside that file can be imported by mistake.
    done = subprocess.run([python, "-P", str(LOADERS)], input=given, check=True, stdout=subprocess.PIPE, text=True)
    rows: dict[str, dict[str, Any]] = json.loads(done.stdout)
    for host, row in rows.items():
        if row["makes"].pop(CONTROL, "loads") != "loads":
            raise SystemExit(f"{host} {row['version']} does not load a plain skill: its probe is out of date")
    return rows


# -- over real skills -------------------------------------------------------------------------------------------------


def corpus(folder: Path) -> dict[str, Variant]:
    """The skills below a folder, by their path, each with what its author means as far as we can tell."""
    paths = sorted(folder.rglob("SKILL.md"))
    return {str(path.relative_to(folder)): _meant(path.read_bytes(), path.parent.name) for path in paths}


def _meant(data: bytes, folder: str) -> Variant:
    try:
        skill = read(decode(data), folder)
    except Unreadable:
        # We refuse it, so what is meant is what is written.
        lines = data.decode(errors="replace").replace("\r", "\n")
        written = dict(re.findall(r"^(name|description):[ \t]*(.*)$", lines, re.M))
        return Variant(data, written.get("name", folder), written.get("description", ""), folder)
    name = skill.values.get("name")
    if not isinstance(name, str) or not name:
        name = folder
    description = skill.description
    conditions = find_conditions(data, folder)
    if "comment-cuts-value" in conditions:
        # What comes after ` #` is lost to us too; its author sees it.
        description += "".join(re.findall(r"^description:.*?(\s#.*)$", skill.text, re.M)[:1])
    return Variant(data, name, description, folder, hidden="model-invocation-off" in conditions)


def disagreements(
    skills: Mapping[str, Variant], rows: Mapping[str, dict[str, Any]]
) -> Iterator[tuple[str, str, str, str]]:
    """Host, skill, what `check --hosts` says of the two, and what the host does."""
    for path, skill in skills.items():
        said = {one.host: one.makes for one in judge_conditions(find_conditions(skill.data, skill.folder))}
        for host, row in rows.items():
            if row["makes"][path] != said[host]:
                yield host, path, said[host], row["makes"][path]


def report_agreement(skills: Mapping[str, Variant], rows: Mapping[str, dict[str, Any]]) -> None:
    """Print how often `check --hosts` says what the hosts do, and each skill for which it does not."""
    wrong = list(disagreements(skills, rows))
    for host in rows:
        agreed = len(skills) - sum(one[0] == host for one in wrong)
        print(f"{host}: agreed on {agreed:,} of {len(skills):,} skills")
    for host, path, said, does in wrong:
        print(f"  {path}: {host} {does}, and we say that it {said}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="bring the table up to date")
    parser.add_argument("--install", action="store_true", help="with every host, in an environment made for it")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="say how often the table is right for real skills")
    parser.add_argument("--python", default=sys.executable, help="the interpreter whose hosts are asked (this one)")
    args = parser.parse_args()
    if args.install:
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=True)
            python = f"{folder}/bin/python"
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *(package for package, _ in HOSTS.values())], check=True)
            return _measured(python, args)
    return _measured(args.python, args)


def _measured(python: str, args: argparse.Namespace) -> int:
    rows = measure_with(python)
    for row in rows.values():
        row["measured"] = date.today().isoformat()
    before = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    after = dict(sorted({**before, **rows}.items()))
    for host in rows:
        is_same = before.get(host, {}).get("makes") == rows[host]["makes"]
        print(f"{host}: {'as in the table' if is_same else 'differs from the table'}")
    if args.write:
        TABLE.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if args.corpus:
        skills = corpus(args.corpus)
        report_agreement(skills, measure_with(python, skills))
    is_same = all(before.get(host, {}).get("makes") == row["makes"] for host, row in rows.items())
    return 0 if args.write or is_same else 1


if __name__ == "__main__":
    sys.exit(main())
