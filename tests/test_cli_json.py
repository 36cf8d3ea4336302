"""One name for one field: docs/reference/json.md describes every field of every --json output, with its type."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from repository import REPO
from skillshelf_agent import events

Run = Callable[..., tuple[int, str, str]]
PAGE = REPO / "docs" / "reference" / "json.md"
TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "object": (dict,),
    "map": (dict,),
    "null": (type(None),),
}
CASE = "cases:\n  - name: loads\n    prompt: fill it\n    script: [done]\n    checks: [{response_contains: done}]\n"


def read_fields() -> dict[str, list[str]]:
    """Return the types of each field, as the page describes them."""
    table = PAGE.read_text().split("## Fields")[1]
    fields: dict[str, list[str]] = {}
    for names, types in re.findall(r"^\| (`[^|]*`) \| ([a-z ]+) \|", table, re.M):
        for name in re.findall(r"`(\w+)`", names):
            assert name not in fields, f"{name} is described twice"
            fields[name] = types.split(" or ")
    return fields


FIELDS = read_fields()


def find_deviations(value: Any, place: str = "") -> Iterator[str]:
    """Yield each field that the page does not describe, or describes with another type."""
    if isinstance(value, list):
        for item in value:
            yield from find_deviations(item, place)
    if not isinstance(value, dict):
        return
    for name, item in value.items():
        here = f"{place}.{name}"
        if name not in FIELDS:
            yield f"{here} is not described"
            continue
        types = FIELDS[name]
        allowed = [kind for word in types for kind in TYPES[word]]
        is_number = isinstance(item, bool) and bool not in allowed
        if is_number or not isinstance(item, tuple(allowed)):
            yield f"{here} is {item!r:.40}, not {' or '.join(types)}"
        if "map" not in types:
            yield from find_deviations(item, here)


@pytest.fixture
def workspace(write: Callable[..., Path], tmp_path: Path) -> Path:
    """Create skills with every kind of field, a shadowed one, and faults."""
    write("skills/pdf", "Fill in PDF forms.", "Load `forms.md`.\n", references__forms_md="# Forms\n")
    write("skills/deploy", "Ship it: carefully")
    write("old/skills/pdf", "The old one.")
    write("skills/csv", evals__cases_yaml=CASE)
    write("drafts/form", "Fill in PDF forms.")
    rich = write("skills/rich")
    rich.write_text(
        "---\nname: rich\ndescription: Has everything.\nlicense: MIT\ncompatibility: any\nallowed-tools: Read Grep\n"
        "metadata: {owner: docs}\nargument-hint: FILE\narguments: [file]\ndisclosure: manual\nother: 1\n"
        "user-invocable: false\n---\n\nText.\n"
    )
    return tmp_path


OUTPUTS = [
    (),
    ("list",),
    ("show", "pdf"),
    ("show", "rich"),
    ("show", "pdf", "forms.md"),
    ("search", "fill", "a", "form"),
    ("search", "form", "of", "an", "unheard", "submarine", "orchestra", "rehearsal"),
    ("check", "--overlap"),
    ("check", "--overlap", "drafts/form"),
    ("check",),
    ("check", "--hosts", "skills"),
    ("check", "--hosts"),
    ("show", "--prompt"),
    ("show", "--prompt", "--budget", "120"),
    ("show", "--prompt", "pdf"),
    ("cost",),
    ("why", "pdf"),
    ("why", "pdff"),
    ("why", "csv", "--for", "fill in a form"),
    ("why", "rich", "--for", "fill in a form"),
    ("set", "pdf", "full"),
    ("new", "my-skill"),
    ("new", "my-code", "--code", "my_package"),
    ("trust",),
    ("trust", "--show", "pdf", "-C", "skills"),
    ("trust", "--yes", "deploy"),
    ("doctor",),
    ("eval", "list"),
    ("eval", "--trust-workspace", "--report", "out"),
    ("eval",),
    ("chat", "-p", "/skills:pdf now", "--model", "script:script.json", "--trust-workspace"),
    ("chat", "-p", "go on", "--model", "script:script.json", "--trust-workspace"),
    ("show", "nope"),
    ("lst",),
]


ERRORS = [("eval",), ("show", "nope"), ("lst",)]


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_every_field_is_described_with_its_type(run: Run, workspace: Path, words: tuple[str, ...]) -> None:
    call = {"tool": "load_skill_instructions", "arguments": {"skill_name": "pdf", "reference": "../../x"}}
    (workspace / "script.json").write_text(json.dumps([call, call, "Done."]))
    _, out, _ = run(*words, "--json")
    outputs = [json.loads(line) for line in out.splitlines()] if words[:1] == ("chat",) else [json.loads(out)]
    assert ("error" in outputs[-1]) == (words in ERRORS)
    assert [deviation for output in outputs for deviation in find_deviations(output.get("error", output))] == []


def test_two_runs_are_compared_with_described_fields(run: Run, workspace: Path) -> None:
    for folder in ("a", "b"):
        run("eval", "--trust-workspace", "--report", folder)
    assert list(find_deviations(json.loads(run("eval", "compare", "a", "b", "--json")[1]))) == []


def test_every_event_is_described() -> None:
    fields = {name for cls in vars(events).values() for name in getattr(cls, "__dataclass_fields__", ())}
    assert fields - {"kind"} <= FIELDS.keys()


def test_the_fields_of_each_command_are_described() -> None:
    """The table of commands names no field that the table of fields lacks."""
    commands = PAGE.read_text().split("## Commands")[1].split("## Fields")[0]
    for row in commands.splitlines():
        if row.startswith("| `"):
            named = re.findall(r"`(\w+)`", row.split("|")[2])
            assert set(named) <= FIELDS.keys(), row
