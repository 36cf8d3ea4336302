"""Ignore files in gitignore syntax, compared with git itself."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillshelf.sources import IgnoreRules

# Pattern, paths it ignores, paths it does not. A path that ends in a slash is a folder.
CASES = [
    ("build", ["build", "build/", "a/build", "a/b/build/"], ["builds", "rebuild", "Build", "build/x"]),
    ("build/", ["build/", "a/build/"], ["build", "a/build"]),
    ("/build", ["build", "build/"], ["a/build"]),
    ("docs/draft", ["docs/draft"], ["a/docs/draft", "draft", "docs/draft/x"]),
    ("*.tmp", ["x.tmp", ".tmp", "a/x.tmp"], ["x.tmp1", "xtmp"]),
    ("a*b*c", ["abc", "a1b2c", "abcbc"], ["ac", "abcd", "ab"]),
    ("draft-?", ["draft-1", "a/draft-x"], ["draft-", "draft-12"]),
    ("docs/*", ["docs/a", "docs/b/"], ["docs", "docs/a/b"]),
    ("*/a", ["b/a"], ["a", "b/c/a"]),
    ("**/a", ["a", "b/a", "b/c/a"], ["ba", "a/b"]),
    ("a/**", ["a/b", "a/b/c"], ["a", "a/", "b/a/c"]),
    ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "x/a/b"]),
    ("a/**/b/**/c", ["a/b/c", "a/b/b/x/c", "a/x/b/c"], ["a/c", "a/b", "a/c/b"]),
    ("/**", ["a", "a/b/"], []),
    ("**", ["a", "a/b/"], []),
    ("**/", ["a/", "a/b/"], ["a", "a/b"]),
    ("a**b", ["ab", "axxb"], ["a/b", "b"]),
    ("***/a", ["a", "x/y/a"], ["xa"]),
    ("[ab]x", ["ax", "bx"], ["cx", "abx", "x"]),
    ("[!ab]x", ["cx", "!x"], ["ax", "x"]),
    ("[^ab]x", ["cx", "^x"], ["ax"]),
    ("[a-c]", ["a", "b", "c"], ["d", "-"]),
    ("[a-]", ["a", "-"], ["b"]),
    ("[-a]", ["a", "-"], ["b"]),
    ("[]a]", ["]", "a"], ["[", "]a"]),
    ("[!]a]", ["b"], ["]", "a"]),
    ("[]-a]", ["]", "^", "a"], ["-", "b"]),
    ("[]]", ["]"], ["[]", "a"]),
    ("[a]]", ["a]"], ["a", "]"]),
    ("[a-]b]", ["ab]", "-b]"], ["b", "]"]),
    ("[a-c-e]", ["a", "c", "-", "e"], ["d"]),
    ("[!!]", ["a", "^"], ["!"]),
    ("[!^]", ["a", "!"], ["^"]),
    ("[a!]", ["a", "!"], ["b"]),
    ("[[]", ["["], ["[]", "a"]),
    ("[![]", ["a", "]"], ["["]),
    ("[[]]", ["[]"], ["[", "]"]),
    ("[?*]", ["?", "*"], ["a"]),
    ("*[0-9]", ["1", "v10"], ["v", "1v"]),
    ("[a-b]*[c-d]", ["ac", "bxd"], ["a", "ca"]),
    ("[&&~~||]", ["&", "|"], ["a"]),
    (r"\*", ["*"], ["a"]),
    (r"a\?", ["a?"], ["ab"]),
    (r"\#a", ["#a"], ["a"]),
    (r"\!a", ["!a"], ["a"]),
    ("a#b", ["a#b"], []),
    ("#a", [], ["#a", "a"]),
    ("a  ", ["a"], ["a  "]),
    ("a\\  ", ["a "], ["a", "a  "]),
    ("a\\\\  ", ["a\\"], ["a\\ "]),
    ("  a", ["  a"], ["a"]),
    ("a\t", ["a\t"], ["a"]),
    ("a\r", ["a"], ["a\r"]),
    ("a//b", [], ["a/b"]),
    ("a//", [], ["a", "a/"]),
    ("/", [], ["a", "a/"]),
    ("!", [], ["a", "!"]),
    ("//", [], ["a"]),
    (".*", [".cache/", "a/.x"], ["a.b"]),
    ("a.b(c)+{d}$", ["a.b(c)+{d}$"], ["axb(c)+{d}$"]),
]


def ignored(rules: IgnoreRules, path: str) -> int | None:
    return rules.match(path.removesuffix("/"), path.endswith("/"))


@pytest.mark.parametrize(("pattern", "hits", "misses"), CASES, ids=[repr(pattern) for pattern, *_ in CASES])
def test_a_pattern_ignores_these_paths_and_no_others(pattern: str, hits: list[str], misses: list[str]) -> None:
    rules = IgnoreRules.parse(pattern)
    assert [path for path in hits + misses if ignored(rules, path)] == hits


@pytest.mark.parametrize(("pattern", "hits", "misses"), CASES, ids=[repr(pattern) for pattern, *_ in CASES])
def test_a_pattern_ignores_what_git_ignores(pattern: str, hits: list[str], misses: list[str], tmp_path: Path) -> None:
    """A walk that doesn't enter ignored folders leaves out the same paths."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    rules = IgnoreRules.parse(pattern)
    files = [path for path in hits + misses if not path.endswith("/")]
    folders = [path for path in hits + misses if path.endswith("/")]
    assert {path: walked(rules, path) for path in files} == git_ignored(tmp_path, pattern, files)
    for path in folders:
        (tmp_path / path).mkdir(parents=True, exist_ok=True)
    assert {path: walked(rules, path) for path in folders} == git_ignored(tmp_path, pattern, folders)


def test_a_question_mark_stands_for_a_character() -> None:
    """For git it stands for a byte."""
    rules = IgnoreRules.parse("ü?")
    assert [ignored(rules, "üä"), ignored(rules, "ü")] == [1, None]


# Most of them never match in git either. It knows the others: an escape or a name in a class.
NOT_UNDERSTOOD = [
    "[abc",
    "a[]b",
    "[!]",
    "[]",
    "[^]",
    "a\\",
    "a\\/",
    r"a\/b",
    "a/[b/]",
    r"[a\-c]",
    "[c-a]",
    "[[:digit:]x]",
]


@pytest.mark.parametrize("pattern", NOT_UNDERSTOOD)
def test_a_pattern_that_is_not_understood_is_reported(pattern: str) -> None:
    """It does not count, and the lines before and after it do."""
    rules = IgnoreRules.parse(f"x\n{pattern}\ny")
    assert rules.refused == (2,)
    assert [rule.line for rule in rules.rules] == [1, 3]


def test_the_last_rule_that_matches_decides() -> None:
    """A later rule overrides an earlier one, and `match` returns its line number."""
    rules = IgnoreRules.parse("\ufeff# notes\n*.md\n\n!keep.md\r\nold/keep.md\n")
    found = {path: ignored(rules, path) for path in ("a.md", "keep.md", "old/keep.md", "a.txt")}
    assert found == {"a.md": 2, "keep.md": None, "old/keep.md": 5, "a.txt": None}


def test_a_file_without_rules_is_false() -> None:
    """Comments and blank lines are not rules."""
    assert not IgnoreRules.parse("# nothing\n\n   \n")
    assert [len(IgnoreRules.parse("a\n#\n!b")), IgnoreRules.parse("").match("a", is_dir=False)] == [2, None]


@pytest.mark.parametrize(
    ("pattern", "path", "hit"),
    [
        ("a*" * 30 + "b", "a" * 250, None),
        ("a*" * 30 + "b", "a" * 250 + "b", 1),
        ("*" * 2000 + "b", "a" * 250, None),
        ("**/a/" * 400 + "b", "a/" * 1000 + "c", None),
        ("**/a/" * 400 + "b", "a/" * 1000 + "b", 1),
        ("**/*a*a*a*a*a*/" * 100 + "b", ("a" * 100 + "/") * 200 + "c", None),
        ("[" * 4000, "[" * 250, None),
        ("x*" * 32_000 + "y", "x" * 250, None),
    ],
)
def test_hostile_patterns_take_no_long_time(pattern: str, path: str, hit: int | None) -> None:
    """A pattern made to run forever is matched as fast as any other."""
    assert IgnoreRules.parse(pattern).match(path, is_dir=False) == hit


NAMES = ["a", "b", "ab", "ba", "a.b", "a b", "a ", "-", "]", "[a]", "!a", "#a", "*", "\\a"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return a repository with folders and files of awkward names, and their paths."""
    root = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for first in NAMES[:8]:
        for second in ["a", "b", "ab"]:
            (root / first / second).mkdir(parents=True)
            for third in ["a", "b", "a.b"]:
                (root / first / second / third).touch()
        for other in NAMES[4:]:
            (root / first / other).touch()
    for name in NAMES[8:]:
        (root / name).touch()
    found = [path for path in sorted(root.rglob("*")) if ".git" not in path.relative_to(root).parts]
    return root, [str(path.relative_to(root)) + "/" * path.is_dir() for path in found]


def git_ignored(root: Path, text: str, paths: list[str]) -> dict[str, int | None]:
    """Return the line of .gitignore that git reports for each path."""
    (root / ".gitignore").write_bytes(text.encode())
    command = ["git", "-C", str(root), "-c", "core.excludesFile=/dev/null", "check-ignore"]
    output = subprocess.run(
        [*command, "--no-index", "-v", "-n", "-z", "--stdin"],
        input="\0".join(path.removesuffix("/") for path in paths).encode(),
        stdout=subprocess.PIPE,
    ).stdout.decode()
    fields = output.split("\0")
    answers = zip(paths, fields[1::4], fields[2::4], strict=True)
    return {path: int(line) if line and not pattern.startswith("!") else None for path, line, pattern in answers}


def walked(rules: IgnoreRules, path: str) -> int | None:
    """Return the line that ignores a path in a walk from the top: of the first ignored folder, or of the path."""
    names = path.removesuffix("/").split("/")
    folders = ["/".join(names[:end]) + "/" for end in range(1, len(names))]
    return next((line for step in [*folders, path] if (line := ignored(rules, step))), None)


# `**` glued to a name is left out: git takes "ab**/c" across folders, where its manual says that it does not.
pieces = ["a", "b", ".", " ", "?", "*a", "*b", "*.", "!", "#", "-", "a-", "]", "\\", "\\*", "\\\\", "\\]"]
classes = ["[", "[!", "[^", "[]", "[b-", "[/", "[[:", ":]", "[a-b]", "[!b]", "[[:alpha:]]"]
plain = st.sampled_from(["**", "***", "*", "?", "a", "b", "ab", "a.b", "a*", "[!a]*", ""])
segments = plain | plain | st.lists(st.sampled_from(pieces + classes), max_size=5).map("".join)
lines = st.builds(
    lambda mark, root, parts, end: mark + root + "/".join(parts) + end,
    st.sampled_from(["", "", "", "!", "#", "\\"]),
    st.sampled_from(["", "", "/"]),
    st.lists(segments, min_size=1, max_size=4),
    st.sampled_from(["", "", "/", "*", "/**", " ", "\\ ", "\r"]),
).filter(lambda line: "**" not in line.replace("/**", "/").removeprefix("!").removeprefix("**"))


@settings(max_examples=300, deadline=None)
@given(text=st.lists(lines, min_size=1, max_size=5).map("\n".join))
def test_every_path_is_ignored_by_the_same_line_as_in_git(tree: tuple[Path, list[str]], text: str) -> None:
    """This holds for every path of a tree with awkward names."""
    root, paths = tree
    refused = IgnoreRules.parse(text).refused
    text = "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in refused)
    rules = IgnoreRules.parse(text)
    assert {path: walked(rules, path) for path in paths} == git_ignored(root, text, paths)
