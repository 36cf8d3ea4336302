"""Hostile YAML: a frontmatter constructs nothing, expands nothing, and can spoil only its own file."""

import json
import re
import resource
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from effort import examples
from repository import modules
from skillshelf import MemorySource, Shelf
from skillshelf.skillmd import Unreadable, decode, read, render_skill
from skillshelf.skillmd._frontmatter import parse_block
from skillshelf.skillmd._layout import DiagnosticCollector
from skillshelf.skillmd._read import _read_any, _read_plain, scan_fields
from skillshelf.skillmd.bounded_yaml import MAX_BLOCK, MAX_NODES, YamlFault
from skillshelf.text.hidden import find_dishonest
from threats.read_folder import SECONDS
from threats.workspace import GOOD, Workspace, assert_standard, read_in_process


def _laughs() -> str:
    """Nine levels of nine aliases each: three billion texts when expanded."""
    levels = ["l0: &l0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    levels += [f"l{n + 1}: &l{n + 1} [{', '.join([f'*l{n}'] * 9)}]" for n in range(9)]
    return "\n".join(levels)


def _merges() -> str:
    """Eight levels of eight merges each: hangs yaml.safe_load."""
    levels = ["m0: &m0 {key: value}"]
    levels += [f"m{n + 1}: &m{n + 1} {{<<: [{', '.join([f'*m{n}'] * 8)}]}}" for n in range(8)]
    return "\n".join(levels)


ALIASES = ["yaml-repaired"] * 9
MERGES = ["yaml-repaired"] * 8

# Scenario: the block, and the name, description and diagnostic codes that come of it.
BLOCKS: dict[str, tuple[str, str, str, list[str]]] = {
    "Y01-billion-laughs": (f"{_laughs()}\nname: y\ndescription: d", "y", "d", ALIASES),
    "Y01-laughs-last": (f"name: y\ndescription: d\n{_laughs()}", "y", "d", ALIASES),
    "Y02-brackets": ("name: y\ndescription: d\nx: " + "[" * 20_000 + "]" * 20_000, "y", "d", ["yaml-repaired"]),
    "Y02-braces": ("x: " + "{a: " * 20_000 + "\nname: y\ndescription: d", "y", "d", ["yaml-repaired"]),
    "Y02-unclosed": ("name: y\ndescription: d\nx: " + "[" * 100_000, "y", "d", ["yaml-repaired"]),
    "Y02-dashes": ("name: y\ndescription: d\nx: " + "- " * 20_000, "y", "d", ["yaml-repaired"]),
    "Y02-indented": (
        "name: y\ndescription: d\nx:\n" + "".join(f"{' ' * n}-\n" for n in range(1, 600)),
        "y",
        "d",
        ["yaml-invalid"],
    ),
    "Y03-python-call": ("name: y\ndescription: d\nx: !!python/object/apply:os.abort []", "y", "d", ["yaml-tag"]),
    "Y03-python-name": ("name: !!python/name:os.abort y\ndescription: d", "y", "d", ["yaml-tag"]),
    "Y03-python-module": ("name: y\ndescription: !!python/module:antigravity d", "y", "d", ["yaml-tag"]),
    "Y03-binary": ("name: y\ndescription: !!binary aGk=", "y", "aGk=", ["yaml-tag"]),
    "Y03-local-tag": ("name: y\ndescription: !include /etc/passwd", "y", "/etc/passwd", ["yaml-tag"]),
    "Y04-open-quote": ("name: y\ndescription: 'open\nlicense: MIT", "y", "'open", ["yaml-repaired"]),
    "Y04-open-double-quote": ('name: y\ndescription: "open\nlicense: MIT', "y", '"open', ["yaml-repaired"]),
    "Y04-open-list": ("name: y\ndescription: d\nx: [a, b", "y", "d", ["yaml-repaired"]),
    "Y05-duplicate": ("name: y\ndescription: first\ndescription: last", "y", "last", ["yaml-duplicate-key"]),
    "Y06-list": ("name: y\ndescription: [a, b]", "y", "a b", ["field-invalid"]),
    "Y06-mapping": ("name: y\ndescription: {a: b}", "y", "a: b", ["field-invalid"]),
    "Y06-name-is-list": ("name: [y]\ndescription: d", "bad", "d", ["name-refused"]),
    "Y06-numbers": ("name: 12\ndescription: 1.10", "12", "1.10", []),
    "Y06-null": ("name: y\ndescription: null", "y", "null", []),
    "Y07-no": ("name: no\ndescription: yes", "no", "yes", []),
    "Y07-date": ("name: y\ndescription: 2024-01-01", "y", "2024-01-01", []),
    "Y07-sexagesimal": ("name: y\ndescription: 12:30:45", "y", "12:30:45", []),
    "Y07-octal": ("name: '010'\ndescription: 0o17", "010", "0o17", []),
    "Y08-empty": ("", "bad", "Do it.", ["description-missing", "name-missing"]),
    "Y10-dashes-inside": ("name: y\ndescription: one --- two ---", "y", "one --- two ---", []),
    "Y10-dashes-quoted": ("name: y\ndescription: '--- a'", "y", "--- a", []),
    "Y10-dashes-in-block": ("name: y\ndescription: |\n  a\n  ---\n  b", "y", "a\n---\nb", []),
    "Y11-bad-escape": ('name: y\ndescription: "\\d+ \\q"', "y", "\\d+ \\q", ["yaml-repaired"]),
    "Y11-beyond-unicode": ('name: y\ndescription: "\\U00110000"', "y", "\\U00110000", ["yaml-repaired"]),
    "Y11-beyond-an-int": ('name: y\ndescription: "\\UFFFFFFFF"', "y", "\\UFFFFFFFF", ["yaml-repaired"]),
    "Y11-half-escape": ('name: y\ndescription: "\\x4"', "y", "\\x4", ["yaml-repaired"]),
    "Y11-surrogate": ('name: y\ndescription: "\\ud800"', "y", "\\ud800", ["yaml-repaired"]),
    "Y12-merge-bomb": (f"{_merges()}\nname: y\ndescription: d", "y", "d", MERGES),
    "Y13-digits": ("name: y\ndescription: d\nx: " + "9" * 200_000, "y", "d", []),
    "Y13-hex-digits": ("name: y\ndescription: d\nx: 0x" + "f" * 200_000, "y", "d", []),
    "Y13-float": ("name: y\ndescription: d\nx: 1e" + "9" * 200_000, "y", "d", []),
    "Y15-second-document": (
        "name: y\ndescription: d\n--- {name: z, description: other}",
        "y",
        "d",
        ["yaml-second-document"],
    ),
    "Y16-tab-before-value": ("name:\ty\ndescription:\td", "y", "d", []),
    "Y16-tab-as-indent": ("name: y\ndescription: d\nmetadata:\n\ta: b", "y", "d", ["yaml-invalid"]),
    "Y17-unknown-keys": ("name: y\ndescription: d\nfoo: bar\nx-y: [1, 2]", "y", "d", []),
    "Y18-anchors": ("name: y\ndescription: &d Shared.\nmetadata: {also: *d}", "y", "Shared.", []),
    "Y18-unknown-alias": ("name: y\ndescription: d\nx: *nothing", "y", "d", ["yaml-repaired"]),
    "Y18-alias-of-itself": ("name: y\ndescription: d\nx: &a [*a]", "y", "d", ["yaml-repaired"]),
}


@pytest.mark.parametrize(("block", "name", "description", "codes"), BLOCKS.values(), ids=BLOCKS.keys())
def test_a_hostile_block_costs_no_more_than_its_faulty_field(
    block: str, name: str, description: str, codes: list[str], workspace: Workspace
) -> None:
    """Y01-Y18: readable fields are kept, each fault is one diagnostic, and nothing is constructed."""
    workspace.raw("bad", f"---\n{block}\n---\n\nDo it.\n")
    shelf = workspace.shelf()
    assert {key: skill.description for key, skill in shelf.catalog.items()} == {name: description, GOOD: "Does it."}
    assert shelf.turn().load(name).text == "Do it.\n"
    assert_standard(workspace, shelf, [(code, "bad/SKILL.md") for code in codes])


FILES: dict[str, tuple[str, str]] = {
    "Y09-two-rules": ("---\n---\n", "no-text"),
    "Y09-rules-only": ("---\n---\n---\n---\n", "no-text"),
    "Y09-one-rule": ("---\n", "frontmatter-unclosed"),
    "Y09-dashes-without-end": ("-" * 1_000_000, "frontmatter-missing"),
    "Y14-spaces-after-a-fence": ("```" + " " * 1_000_000 + "x", "frontmatter-missing"),
    "Y14-spaces-after-a-rule": ("---" + " " * 1_000_000 + "x", "frontmatter-missing"),
    "Y14-newlines": ("\n" * 1_000_000 + "x", "frontmatter-missing"),
    "Y14-comments": ("<!-- -->\n" * 110_000 + "<!--", "frontmatter-missing"),
    "Y14-open-comments": ("<!--" * 260_000, "frontmatter-missing"),
    "Y14-half-rules": ("---\n" + "--- x\n" * 170_000, "frontmatter-unclosed"),
    "Y14-spaces-in-a-value": ("---\nname:" + " " * 250_000 + "x\ndescription: d\t\n---\n", ""),
    "Y14-spaces-in-a-key": ("---\na" + " " * 250_000 + "\nb: {\n---\nx", "yaml-repaired"),
    "Y14-path-like": ("." * 4_000 + ":", "frontmatter-missing"),
    "Y14-heading": ("# a" + " #" * 9_000 + "x\n", "frontmatter-missing"),
    "Y14-block-too-large": ("---\nname: y\nx: " + "a" * 300_000 + "\n---\n", "frontmatter-too-large"),
    "Y14-faulty-fields": (
        "---\ndescription: d\n" + "".join(f'key-{n}: "\\e[2J"{"x" * 20}\n' for n in range(4_900)) + "---\nx",
        "more-faults",
    ),
    "Y14-hidden-fields": (
        "---\ndescription: d\n" + "".join(f'key-number-{n}: "\\e[2J {"x" * 20}"\n' for n in range(4_900)) + "---\nx",
        "hidden-characters",
    ),
    "Y14-word-without-end": ("---\nname: y\ndescription: d\n---\n" + "a" * 1_000_000, ""),
    "Y14-own-tag-without-end": ("---\nname: y\ndescription: d\n---\n<" + " " * 1_000_000, ""),
    "Y14-own-tags": ("---\nname: y\ndescription: d\n---\n" + "</skill>" * 120_000, ""),
    "Y14-hidden-body": ("---\nname: y\ndescription: d\n---\n" + "\u200b" * 340_000, ""),
}


@pytest.mark.parametrize(("content", "code"), FILES.values(), ids=FILES.keys())
def test_a_hostile_file_is_read_within_bounds(content: str, code: str, workspace: Workspace) -> None:
    """Y09, Y14: no delimiter, comment, key or word of a megabyte takes a scan, listing or load beyond its bounds."""
    folder = workspace.raw("bad", content)
    (folder / "other.md").write_text("So that the instructions are searched for names of files.")
    outcome = read_in_process(workspace.root)
    assert outcome["loaded"][GOOD] == len("Do it.\n")
    assert code in outcome["codes"] if code else outcome["codes"] == [] or "yaml-invalid" in outcome["codes"]


@pytest.mark.parametrize("case", ["Y01-billion-laughs", "Y02-brackets", "Y02-unclosed", "Y12-merge-bomb", "Y13-digits"])
def test_a_bomb_is_defused_within_bounds(case: str, workspace: Workspace) -> None:
    """Y01, Y02, Y12, Y13: a bomb takes no more time and memory than any other file."""
    workspace.raw("bad", f"---\n{BLOCKS[case][0]}\n---\n\nDo it.\n")
    assert read_in_process(workspace.root)["loaded"] == {GOOD: 7, "y": 7}


TOKENS = list("[]{},:-?&*!|>'\"%@`#(é😀\t \n\r\x85\u2028\x1b\u200b")
TOKENS += ["<<:", "...", "---", "&a", "*a", "!t", "!<t>", "[]", "{}", "[a,", "{a: b,", "a:", "name:", "description:"]
TOKENS += ["\\x", '"\\', "<!--", "-->", "```", "~~~", "./", "../", "a.", "</skill>", "&lt;", "<U", "<  ", "\r\n"]
TOKENS += ["- ", "? ", ": ", "a: ", "- - ", "a:\n", "- a\n", "a: b\n", "? a\n", "k: |\n a\n", "k: >\n a\n", "x: {\n"]
TOKENS += ["a: b: ", "a: @b\n", " - @b\n"]

READ_ALL = """
import json, sys
from skillshelf.skillmd import Unreadable, read
for number, text in enumerate(json.load(open(sys.argv[1]))):
    print(number, end=" ", flush=True)
    try:
        read(text, "folder")
    except Unreadable:
        pass
"""


@pytest.mark.parametrize("before", ["", "---\n", "---\nname: y\ndescription: ", "---\nx: ", "---\nname: y\n---\n"])
def test_no_token_repeated_to_the_limit_takes_long(before: str, tmp_path: Path) -> None:
    """Y02, Y14: every token of YAML and Markdown, a quarter of a megabyte of it, in every part of a file."""
    texts = [before + token * (250_000 // len(token)) + "\n---\nDo it.\n" for token in TOKENS]
    file = tmp_path / "texts.json"
    file.write_text(json.dumps(texts))
    # CPU time, since a busy machine takes longer for everything.
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
    completed = subprocess.run(
        [sys.executable, "-c", READ_ALL, str(file)], capture_output=True, text=True, preexec_fn=limit
    )
    last = TOKENS[int((completed.stdout or "0").split()[-1])]
    assert completed.returncode == 0, f"takes too long: {last!r} after {before!r}\n{completed.stderr}"


# -- laws -------------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["name", "description", "license", "end", "x", "a-b", "A_1", "", " ", "a b", "é", "?", "'q'"])
FRAGMENTS = st.sampled_from(
    [
        *":#-?!&*|>'\"%@`[]{},\\=~.",
        *["a", "b c", ": ", " #", "- ", " ", "  ", "--- ", "...", "'a'", '"a"', "1.10", "no", "null", "~", "<<"],
        *["|", ">", "|-", ">-", "|+", "|2", "a:b", "#a", "é", "😀", "\t", "\u00a0", "\u2028", "\x85", "\ufeff", "\r"],
    ]
)
VALUES = st.lists(FRAGMENTS, max_size=5).map("".join)
INDENTS = st.sampled_from(["", "", "", " ", "  ", "    ", "\t"])
LINES = st.one_of(
    st.tuples(INDENTS, KEYS, st.sampled_from([":", ": ", ":  ", " : ", ""]), VALUES).map("".join),
    st.tuples(INDENTS, st.sampled_from(["- ", "-", "-  "]), VALUES).map("".join),
    st.tuples(INDENTS, VALUES).map("".join),
    st.sampled_from(["", "", " ", "   ", "# comment", "  # comment", "---", "...", "%YAML 1.1"]),
    st.sampled_from(["description: |", "description: >", "description: >-", "  text", "  more text", "metadata:"]),
)
ADVERSE = st.lists(LINES, max_size=8).map("\n".join)
WORDS = st.sampled_from(["Use when", "the user", "asks: now", "it's", "C#", "#1", "e.g.", "—", "12:30", "`x`", "(a)"])
PROSE = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
FIELD = st.tuples(st.sampled_from(["name", "description", "license", "version", "tags"]), PROSE)
USUAL = st.one_of(
    FIELD.map(": ".join),
    FIELD.map(lambda field: f"{field[0]}: '{field[1]}'"),
    FIELD.map(lambda field: f'{field[0]}: "{field[1]}"'),
    st.tuples(FIELD, st.sampled_from("|>"), st.sampled_from(["", "-"])).map(
        lambda parts: f"{parts[0][0]}: {parts[1]}{parts[2]}\n  {parts[0][1]}\n\n  and more\n"
    ),
    st.lists(PROSE, min_size=1, max_size=3).map(lambda items: "tags:\n  - " + "\n  - ".join(items)),
    st.lists(PROSE, min_size=1, max_size=3).map(lambda items: "tags:\n- " + "\n- ".join(items)),
    st.lists(FIELD, min_size=1, max_size=3).map(lambda items: "metadata:\n  " + "\n  ".join(map(": ".join, items))),
)
BLOCKS_OF_LINES = st.one_of(
    ADVERSE, st.lists(USUAL, max_size=5).map("\n".join), st.lists(USUAL | LINES, max_size=6).map("\n".join)
).flatmap(lambda block: st.sampled_from([block, block + "\n", block + "\n\n"]))


@pytest.mark.sampled
@given(BLOCKS_OF_LINES)
@settings(max_examples=examples(700), deadline=None)
@example('a: ""\n  b: c\n')
@example("a:\n  b: c\n\n  d: e\n")
@example("a:\n  b: c\nd:\n e: f\n")
@example("a:\n  b: c\n d: e\n")
def test_the_line_scanner_answers_as_pyyaml_does(block: str) -> None:
    """Y05-Y11, Y16: if the scanner gives an answer, PyYAML gives the same."""
    scanned = scan_fields(block)
    if scanned is not None:
        assert scanned == (yaml.load(block, Loader=yaml.CBaseLoader) or {})


DESCRIPTIONS = st.one_of(
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1, max_size=40),
    st.text(
        st.sampled_from("aé—…日 :#'\"\x85\xa0\u2028\u200b\u2800\u3164\ufe0f\ufeff\x00\x7f👍"), min_size=1, max_size=12
    ),
)


@pytest.mark.sampled
@given(DESCRIPTIONS)
@settings(max_examples=examples(700), deadline=None)
@example("Fill in forms — and sign them…")
@example("forms\x85")
@example("forms\xa0")
def test_a_plain_file_is_read_as_any_other(description: str) -> None:
    """Y05-Y11: if a file is read without the YAML parser, the general way reads the same."""
    text = f"---\nname: forms\ndescription: {description}\nlicense: MIT\n---\nDo it — now.\n"
    plain = _read_plain(text)
    if plain is not None:
        other = _read_any(text, "forms")
        assert (plain.name, plain.description, plain.instructions) == (
            other.name,
            other.description,
            other.instructions,
        )
        assert plain.optional == other.optional
        assert not other.diagnostics


def test_a_dash_in_a_description_needs_no_yaml_parser() -> None:
    assert _read_plain("---\nname: forms\ndescription: Fill in forms — größer…\n---\nDo it.\n") is not None


@pytest.mark.sampled
@given(BLOCKS_OF_LINES)
@settings(max_examples=examples(500), deadline=None)
def test_the_event_reader_answers_as_pyyaml_does(block: str) -> None:
    """Y03-Y18: the reader returns the mapping that BaseLoader returns, or raises YamlFault if there is none."""
    try:
        loaded = yaml.load(block, Loader=yaml.CBaseLoader)
        expected = loaded if loaded is not None else {}
    except (yaml.YAMLError, TypeError, ValueError):
        expected = None
    assume(expected is None or isinstance(expected, dict))
    try:
        read_values = parse_block(block, DiagnosticCollector(), 1)
    except YamlFault:
        assert expected is None or not all(isinstance(key, str) for key in expected)
    else:
        # BaseLoader refuses a second document; we leave it out and report it.
        readings = [reading or {} for reading in _readings(block)]
        assert read_values in readings or (not readings and next(yaml.compose_all(block, Loader=yaml.BaseLoader)))


def _readings(block: str) -> list[Any]:
    """Return the values that PyYAML's two parsers read from a block; they differ in corner cases."""
    readings = []
    for loader in (yaml.BaseLoader, yaml.CBaseLoader):
        with suppress(yaml.YAMLError, ValueError, TypeError):
            readings.append(yaml.load(block, Loader=loader))
    return readings


def _weigh(value: Any) -> tuple[int, int]:
    """Count the values and the characters of a value with everything in it written out."""
    if isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
    elif isinstance(value, list):
        parts = value
    else:
        return 1, len(str(value))
    weights = [_weigh(part) for part in parts]
    return 1 + sum(nodes for nodes, _ in weights), sum(characters for _, characters in weights)


@st.composite
def bombs(draw: st.DrawFn) -> str:
    """Fields of anchors and aliases that name one another, some of them broken, so that they are read one by one."""
    lines: list[str] = []
    for number in range(draw(st.integers(1, 30))):
        text = draw(st.sampled_from(["x", "y" * 100, "z" * 5_000]))
        known = [f"*a{draw(st.integers(0, number - 1))}"] * draw(st.integers(0, 300)) if number else []
        items = ", ".join([text, *known])
        shape = draw(st.sampled_from(["[{0}]", "[{0}]", "{{k: [{0}]}}", "{{<<: [{0}]}}", "'{0}", "[&i {0}, *i, *i]"]))
        lines.append(f"f{number}: &a{number} {shape.format(items)}")
    return "\n".join(lines)


@pytest.mark.sampled
@given(bombs())
@settings(max_examples=examples(150), deadline=None)
def test_no_block_becomes_more_values_or_text_than_the_bounds(block: str) -> None:
    """Y01, Y12: however aliases and repairs are combined, the result is no larger than a block may be."""
    skill = read(f"---\nname: y\ndescription: d\n{block}\n---\n\nDo it.\n")
    # A field that cannot be read is a text and its key: at most 256 of them beside the fields that can.
    nodes, characters = _weigh(skill.values)
    assert nodes <= MAX_NODES + 2 * 256
    assert characters <= 2 * MAX_BLOCK
    typed_nodes, typed_characters = _weigh(skill.typed_values() or {})
    assert typed_nodes <= MAX_NODES
    assert typed_characters <= MAX_BLOCK


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
PLAIN_VALUES = st.recursive(
    TEXTS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


@given(
    st.dictionaries(TEXTS, PLAIN_VALUES, max_size=6),
    st.sampled_from([None, "'", '"', "|", ">"]),
    st.sampled_from([True, False, None]),
    st.booleans(),
    st.sampled_from([20, 80, 4096]),
)
@settings(max_examples=300, deadline=None)
def test_any_mapping_that_pyyaml_writes_is_read_back(
    values: dict[str, Any], style: str | None, flow: bool | None, unicode: bool, width: int
) -> None:
    """Y06, Y07, Y10, Y11, Y18: any mapping in any style is read as BaseLoader reads it, shared parts included."""
    values = {**values, "again": values}
    block = yaml.safe_dump(values, default_style=style, default_flow_style=flow, allow_unicode=unicode, width=width)
    assert parse_block(block, DiagnosticCollector(), 1) in _readings(block)


FIELD_VALUES = st.text(st.characters(categories=["Lu", "Ll", "Nd", "P", "S", "Zs"]), min_size=1).filter(
    lambda text: not any(find_dishonest(text))
)
BODIES = st.text(st.characters(exclude_categories=["Cs"])).map(str.lstrip)


@given(
    st.from_regex(r"[a-z0-9]+(-[a-z0-9]+){0,5}", fullmatch=True).filter(lambda name: len(name) <= 64),
    FIELD_VALUES.filter(str.strip),
    st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,20}", fullmatch=True), PLAIN_VALUES, max_size=4),
    BODIES,
)
@settings(max_examples=300, deadline=None)
@example("a", "d", {}, "---\n---\n")
@example("a", "d", {}, "\ufeff")
@example("no", "1.10 # : - \"x\" 'y'", {"metadata": {"a": "---\n---"}}, "x\r\n\r\ny")
def test_a_rendered_skill_is_read_back(name: str, description: str, rest: dict[str, Any], body: str) -> None:
    """Y07, Y10: values and instructions survive writing and reading, except for blank lines before the instructions."""
    values = {"name": name, "description": description.strip(), **rest}
    text = read(render_skill(values, body))
    assert (text.values, text.instructions) == (values, body)
    assert (text.name, text.description) == (values["name"], values["description"])


PIECES = st.lists(
    st.one_of(
        LINES.map(lambda line: line + "\n"),
        st.sampled_from(["---\n", "---", "--- \n", "---\r\n", "```\n", "~~~yaml\n", "<!-- -->\n", "\ufeff", "\ud800"]),
        st.sampled_from(["\0", "\x1b[2J", "\u200b", "\U000e0041", "\ufffe", "\r", "\u2028", "# Title\n", "Text.\n"]),
        st.text(max_size=10),
    ),
    max_size=14,
).map("".join)


@pytest.mark.sampled
@given(PIECES, st.sampled_from(["folder", "", "a/b", "\udcff", "\u3164", "../x", "a" * 300]))
@settings(max_examples=examples(700), deadline=None)
def test_any_text_is_read_or_is_unreadable(text: str, folder: str) -> None:
    """Y01-Y18: no text raises anything but Unreadable, and a skill that is read has a usable name and description."""
    try:
        skill = read(text, folder)
    except Unreadable as fault:
        assert (fault.diagnostic.message and fault.diagnostic.fix) != ""  # noqa: PT017 - it says what to do
        return
    assert skill.name
    assert skill.name.isprintable()
    assert skill.description.strip() == skill.description != ""
    assert skill.text.endswith(skill.instructions)
    for note in skill.diagnostics:
        assert note.message
        assert len(note.message) <= 401
        assert 1 <= note.line <= text.count("\n") + 1


@pytest.mark.sampled
@given(st.binary(max_size=60) | PIECES.map(lambda text: text.encode("utf-16", "surrogatepass")))
@settings(max_examples=examples(300), deadline=None)
def test_any_bytes_make_a_skill_or_a_diagnostic(data: bytes) -> None:
    """E01, E02, E04: a scan turns any bytes into a skill, or into one diagnostic with a fix."""
    shelf = Shelf([MemorySource({"bad": {"SKILL.md": data}})])
    if not shelf.catalog:
        (note,) = shelf.catalog.diagnostics
        assert note.severity == "error"
        assert note.fix
    else:
        assert decode(data)


def test_only_one_module_gives_text_to_a_yaml_parser() -> None:
    """Y01-Y18: a second reader would have other bounds, or none. The check of hosts only imports node classes."""
    importing = {
        name
        for name, path in modules().items()
        if re.search(r"^\s*(?:import yaml\b|from yaml\b(?!\.nodes))", path.read_text(), re.M)
    }
    assert importing == {"skillshelf.skillmd._read", "skillshelf.skillmd.bounded_yaml"}
    reader = modules()["skillshelf.skillmd._read"].read_text()
    assert "yaml.dump(" in reader
    assert "yaml.load" not in reader
