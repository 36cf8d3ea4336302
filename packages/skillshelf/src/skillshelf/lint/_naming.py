"""Find references that nothing names, so that a model has no reason to load them.

The instructions name files, and those files name others. A text names a file in one of these ways:

    references/tone.md, tone.md, ./tone.md       by its path, or the end of it
    references/tone, `tone`, **tone**            without its ending; a plain word only if it is set apart
    references/tones/, the `scripts/` folder     by a folder that it is in
    references/<name>.md, tone-*.md              by a pattern
    import helpers.tone, from . import tone      by importing it, in Python

Everything works on names and texts in memory, in time that grows with their length. tests/test_check_naming.py has
an example of each, and benchmarks/unnamed_references.py measures the result on public skills.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from skillshelf.lint._limits import MAX_COMPARISONS, MAX_WORD

# Instructions that mention one of these folders only say that there are files.
_STANDARD_FOLDERS = frozenset({"references", "scripts", "assets"})
# A module with one of these names is imported by the name of its folder.
_FOLDER_MODULES = frozenset({"index", "__init__", "__main__", "mod"})
_JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx")

# -- words in a text ---------------------------------------------------------------------------------------------------

# A word in prose, in code or in a link. Placeholders may contain spaces and commas: `<file name>.md`, `{a, b}.md`.
_WORD = re.compile(r"(?:[^\s`'\"()|;=,{}<>\[\]]|\{[^{}\n`]{0,100}\}|<[^<>\n`]{1,60}>|\[[^\[\]\n`]{1,60}\](?!\())+")
# A word without placeholders: the `a.md` of `[a.md]`, or a name between letters of another script.
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./@+-]+")
# A word that its author set apart: `word`, **word**, "word", [word], `- word:`
_SET_APART = re.compile(r"[`'\"*\[]([\w][\w.-]*)[`'\"*\]]|^[ \t]*[-*|#]+[ \t]+([\w-]+)[ \t]*(?:[:|—–(]|-|$)", re.M)
# `references/` by itself; the second group matches the word after it in "the `references/` folder".
_WHOLE_FOLDER = re.compile(
    r"(?<![\w./-])(?:\./)?(references|scripts|assets)/(?![\w./<{*\[$-])[`'\"*]*(\s+(?:folder|directory|dir)\b)?"
)
# `import a, b.c`, `from .a import (b, c)`
_PYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<package>[.\w]+)[ \t]+)?import[ \t]+(?P<names>\([^()]{0,4000}\)|[^\n#;]{1,400})", re.M
)

# `{name}`, `${name}`, `{{name}}`, `<name>`, `[name]`, `$name`, `*`, `%s`
_PLACEHOLDER = re.compile(r"\$?\{\{?[^{}]*\}?\}|<[^<>]*>|\[[^\[\]]*\]|\$\w+|\*+|%s")

# -- files that no model is meant to load ------------------------------------------------------------------------------

_LICENCE_FOLDERS = frozenset({"licenses", "licences"})
_TEST_FOLDERS = frozenset({"tests", "test", "__tests__", "testdata", "__mocks__", "evals"})
# `test_x.py`, `x_test.go`, `x.spec.ts`, `conftest.py`
_TEST_FILE = re.compile(
    r"(?:test_.*|.*[_.-]tests?|.*[_.-]spec|conftest|tests?)\.(?:py|[cm]?[jt]sx?|sh|bats|go|rs|rb|java|cs|php)", re.I
)
_PACKAGING_FILE = re.compile(
    "|".join(
        (
            r"(?:readme|changelog|licen[cs]e|copying|notice|ofl)(?:\.(?:md|txt|rst))?",
            r"[\w.-]*licen[cs]e[\w-]*(?:\.txt)?",
            r".*\.lock|.*[.-]lock\.\w+|bun\.lockb",
            # Python
            r"__init__\.\w+|__main__\.py|py\.typed|setup\.(?:py|cfg)|pyproject\.toml|pipfile|pytest\.ini|tox\.ini",
            r"requirements[\w.-]*\.txt|constraints[\w.-]*\.txt",
            # JavaScript and TypeScript
            r".*\.d\.[cm]?ts|package\.json|[jt]sconfig[\w.-]*\.json|deno\.jsonc?",
            r"(?:eslint|prettier|vite|vitest|jest|babel|webpack|rollup|tailwind|postcss)\.config\.\w+",
            # Go, Rust, Ruby, Java
            r"go\.(?:mod|sum)|cargo\.toml|gemfile|.*\.gemspec|build\.gradle(?:\.kts)?|pom\.xml",
        )
    ),
    re.I,
)


def find_unnamed(references: Collection[str], existing: Collection[str], texts: Mapping[str, str]) -> list[str]:
    """Return the references that no text leads to, without those that another of them would lead to.

    `texts` holds the text of each file that was read; the one under `""` are the instructions.
    """
    reference_set = set(references)
    files = _FileIndex(reference_set.union(existing))
    named: dict[str, set[str]] = {}
    for path, text in texts.items():
        if not _is_test(path):
            named[path] = files.find_named(path, text)
    named[""].update(_find_named_folders(texts[""], references, named[""]))

    # The instructions are read, and so are files that are not references: tools and people read a package.json, a
    # README or the commands of a plugin.
    starts = [path for path in named if path not in reference_set or _is_packaging(path)]
    reached: set[str] = set()
    _add_reachable(starts, named, reached)

    unnamed = [path for path in references if path not in reached and not is_never_loaded(path)]
    # If one unnamed file names a second, it is enough to name the first.
    return _find_starts(unnamed, named)


def _find_named_folders(instructions: str, references: Collection[str], named: Collection[str]) -> Iterator[str]:
    """Yield the files of `references/`, `scripts/` or `assets/` if the instructions name that folder itself.

    Next to the names of some files in it, only "the `references/` folder" speaks of the others too.
    """
    mentions = _WHOLE_FOLDER.findall(instructions)
    folders = {folder for folder, _ in mentions}
    folders -= {path.partition("/")[0] for path in named}
    folders |= {folder for folder, as_folder in mentions if as_folder}
    yield from (path for path in references if path.partition("/")[0] in folders)


def is_never_loaded(path: str) -> bool:
    """Return True for tests and packaging, which no model is meant to load."""
    return _is_test(path) or _is_packaging(path)


def _is_test(path: str) -> bool:
    *folders, name = path.casefold().split("/")
    return not _TEST_FOLDERS.isdisjoint(folders) or _TEST_FILE.fullmatch(name) is not None


def _is_packaging(path: str) -> bool:
    *folders, name = path.casefold().split("/")
    return not _LICENCE_FOLDERS.isdisjoint(folders) or _PACKAGING_FILE.fullmatch(name) is not None


def _add_reachable(starts: Iterable[str], named: Mapping[str, Collection[str]], reached: set[str]) -> None:
    """Add everything that the starts lead to, themselves included."""
    waiting = [path for path in starts if path not in reached]
    reached.update(waiting)
    while waiting:
        for path in named.get(waiting.pop(), ()):
            if path not in reached:
                reached.add(path)
                waiting.append(path)


def _find_starts(paths: list[str], named: Mapping[str, Collection[str]]) -> list[str]:
    """Return the fewest of the paths from which all of them can be reached, in their order."""
    finished: list[str] = []
    entered: set[str] = set()
    for path in paths:
        if path in entered:
            continue
        entered.add(path)
        waiting = [(path, iter(sorted(named.get(path, ()))))]
        while waiting:
            current, following = waiting[-1]
            after = next((each for each in following if each not in entered), None)
            if after is None:
                finished.append(current)
                waiting.pop()
            else:
                entered.add(after)
                waiting.append((after, iter(sorted(named.get(after, ())))))

    # A path that finished last is not reached from any path before it, unless they lead to each other.
    starts: set[str] = set()
    reached: set[str] = set()
    for path in reversed(finished):
        if path not in reached:
            starts.add(path)
            _add_reachable([path], named, reached)
    return [path for path in paths if path in starts]


class _FileIndex:
    """The files of a skill, indexed by everything that can name them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(paths)
        self._by_end: dict[str, list[str]] = defaultdict(list)
        """By the path and each end of it: `a/b/c.md`, `b/c.md` and `c.md`."""
        self._by_stem: dict[str, list[str]] = defaultdict(list)
        """The same without the ending; for `a/index.js` also `a`, as an import has it."""
        self._by_folder: dict[str, list[str]] = defaultdict(list)
        """By the ends of each folder's path, all files below it."""
        self._patterns: dict[str, list[str]] = {}
        self._most_patterns = max(10, MAX_COMPARISONS // (len(self._paths) + 1))
        for path in self._paths:
            self._add(path)

    def _add(self, path: str) -> None:
        stem = posixpath.splitext(path.casefold())[0]
        folder, _, name = stem.rpartition("/")
        for end in _path_ends(path.casefold()):
            self._by_end[end].append(path)
        for end in _path_ends(stem):
            self._by_stem[end].append(path)
        if name in _FOLDER_MODULES:
            for end in _path_ends(folder):
                self._by_stem[end].append(path)
        while folder:
            for end in _path_ends(folder):
                if end not in _STANDARD_FOLDERS:
                    self._by_folder[end].append(path)
            folder = posixpath.dirname(folder)

    def find_named(self, path: str, text: str) -> set[str]:
        """Return the files that a text names. `path` is the file it stands in, empty for the instructions."""
        stem, ending = posixpath.splitext(path.casefold())
        folder = posixpath.dirname(stem)
        is_prose = ending in ("", ".md", ".markdown", ".txt", ".rst")
        found: set[str] = set()
        for word in {*_WORD.findall(text), *_PLAIN_WORD.findall(text)}:
            if len(word) <= MAX_WORD:
                found.update(self._find_by_word(word, folder))
        for words in set(_SET_APART.findall(text)):
            found.update(self._find_by_single_word("".join(words), folder, is_prose))
        if ending == ".py":
            for module in _find_imports(text):
                found.update(self._find(module.casefold(), folder))
        return found

    def _find_by_word(self, word: str, folder: str) -> Iterable[str]:
        word = word.partition("#")[0].strip("*~.,:;!?@&").replace("\\", "/")
        if word.startswith("_") and word.endswith("_"):
            word = word.strip("_")  # in italics
        word = word.casefold()
        if _PLACEHOLDER.search(word):
            return self._find_by_pattern(word, folder)
        if word.endswith("/"):
            return self._find_in_folder(word[:-1], folder)
        if "/" in word:
            return self._find(word, folder) or self._find_in_folder(word, folder)
        if "." in word or "-" in word or "_" in word:
            return self._find(word, folder)
        # A plain word, such as `examples`, names a file only if it is set apart.
        return ()

    def _find_by_single_word(self, word: str, folder: str, is_prose: bool) -> Iterable[str]:
        """Find files by a word that stands alone in quotes or the like."""
        word = word.casefold()
        if is_prose and word.endswith(("-", "_")) and len(word) > 2:
            return self._match_all([word, ""])
        found = self._find(word, folder)
        if found or is_prose:
            return found
        # `ROOT / "schemas"`: a script that names a folder goes on to open what is in it.
        return self._find_in_folder(word, folder)

    def _find(self, word: str, folder: str) -> Collection[str]:
        """Find files by a path, with or without its ending, from the text's own folder or from any."""
        if word.startswith("."):
            word = posixpath.normpath(posixpath.join(folder, word)).lstrip("./")
        elif folder:
            near = f"{folder}/{word}"
            found = self._by_end.get(near) or self._by_stem.get(near)
            if found:
                return found
        for end in _path_ends(word):
            found = self._by_end.get(end) or self._by_stem.get(end)
            if found is None and end.endswith(_JAVASCRIPT):
                # TypeScript imports `./x.js` and means `x.ts`.
                found = self._by_stem.get(posixpath.splitext(end)[0])
            if found and "/" in end:
                return found
            if found:
                return _choose_by_bare_name(found, end)
        return ()

    def _find_in_folder(self, word: str, folder: str) -> Collection[str]:
        if word.startswith("."):
            word = posixpath.normpath(posixpath.join(folder, word)).lstrip("./")
        for end in _path_ends(word):
            found = self._by_folder.get(end)
            if found:
                return found
        return ()

    def _find_by_pattern(self, word: str, folder: str) -> Iterable[str]:
        """Find files by `references/<name>.md`, `tone-*.md` or `${SKILL_DIR}/scripts/x.py`."""
        *_, last = _PLACEHOLDER.finditer(word)
        rest = word[last.end() :]
        if rest.startswith("/") and len(rest) > 1:
            return self._find_by_word(rest.lstrip("/"), folder)
        first, *others = _PLACEHOLDER.split(word)
        if not _is_specific([first, *others]):
            return ()
        return self._match_all([first.lstrip("./"), *others])

    def _match_all(self, literals: list[str]) -> list[str]:
        """Compare all files with a pattern, unless too many patterns were compared already."""
        key = "*".join(literals)
        if key not in self._patterns:
            if len(self._patterns) >= self._most_patterns:
                return []
            self._patterns[key] = [path for path in self._paths if _matches_pattern(literals, path.casefold())]
        return self._patterns[key]


def _choose_by_bare_name(found: list[str], name: str) -> Collection[str]:
    """Choose from files that share a bare name: the one at the top, or those of one folder, or else none of them.

    A model that asks for a name that several folders have gets none of the files.
    """
    at_top = [path for path in found if path.casefold() == name]
    if at_top:
        return at_top
    folders = {posixpath.dirname(path) for path in found}
    if len(folders) == 1:
        return found
    return ()


def _path_ends(path: str) -> Iterator[str]:
    """Yield a path and each end of it: `a/b/c`, `b/c`, `c`."""
    yield path
    while "/" in path:
        path = path.partition("/")[2]
        yield path


def _is_specific(literals: list[str]) -> bool:
    """Return False for `<name>.md` and `*`, which would name every file, and for `row["name"]`, which is not a path."""
    text = "".join(literals)
    ending = ""
    if literals[-1].startswith("."):
        ending = literals[-1]
    if "/" not in text and not ending:
        return False
    return len(text.removesuffix(ending).strip("./-_")) > 1


def _matches_pattern(literals: list[str], path: str) -> bool:
    """Return True if a path, or an end of it, has these texts in their order with anything between them."""
    first, *middle, last = literals
    if path.startswith(first):
        position = len(first)
    elif f"/{first}" in path:
        position = path.index(f"/{first}") + len(f"/{first}")
    else:
        return False
    for text in middle:
        position = path.find(text, position)
        if position < 0:
            return False
        position += len(text)
    return path.endswith(last) and position <= len(path) - len(last)


def _find_imports(text: str) -> Iterator[str]:
    """Yield the modules that Python code imports, as paths without an ending."""
    for match in _PYTHON_IMPORT.finditer(text):
        package = (match["package"] or "").lstrip(".").replace(".", "/")
        names = re.findall(r"[\w.]+", match["names"])
        if match["package"] is None:
            yield from (name.replace(".", "/") for name in names)
            continue
        if package:
            yield package
        yield from (f"{package}/{name}".lstrip("/") for name in names)
