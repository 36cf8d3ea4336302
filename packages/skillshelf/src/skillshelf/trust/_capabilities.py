"""What the files of a skill can do or ask for, by plain rules over their text.

It is a list for the reader and no verdict: rules miss what is written so that they miss it.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`)\]}]+", re.I)
# Names with an ending that is not also that of a file or a module, such as `install.sh` or `java.io`.
_HOST = re.compile(
    r"(?<![\w./@-])(?:[a-z0-9-]+\.)+(?:com|net|org|dev|app|cloud|xyz|example)\b(?![.(])"
    r"|(?<![\w./-])(?!127\.|0\.)\d{1,3}(?:\.\d{1,3}){3}(?![\w.-])"
)

_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w-]*)")
_SHELLS = ("bash", "sh", "shell", "zsh", "fish", "powershell")
_SESSIONS = ("console", "shell-session")
"""Blocks in which commands stand behind a prompt, and the rest is output."""
_PROGRAMS = (
    "apt|apt-get|aws|az|bash|brew|bun|bunx|cargo|chmod|curl|deno|docker|gcloud|gh|git|go|kubectl|make|node|npm|npx|osascript|"
    "pip|pip3|pipx|pnpm|poetry|psql|python|python3|rm|rsync|scp|sh|ssh|sudo|uv|uvx|wget|yarn"
)
_INLINE_COMMAND = re.compile(rf"`((?:\$ )?(?:{_PROGRAMS}) [^`\n]+)`")

_VARIABLE = re.compile(
    r"""(?:environ(?:\.get)?[(\[]|getenv\(|\bENV\[)\s*["'](\w+)["']"""
    r"""|process\.env(?:\.|\[["'])(\w+)|\$env:(\w+)|\$\{?([A-Z][A-Z0-9_]{2,})\b"""
    r"""|\b([A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS))\b"""
)
_EVERYWHERE = frozenset({"ARGUMENTS", "CLAUDE_SKILL_DIR", "HOME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"})
"""Variables that every shell or agent sets, and that are no secret."""

_OUTSIDE = re.compile(
    r"(?<![\w./~:-])((?:~|\$\{?HOME\}?)/[\w./-]+"
    r"|/(?:Applications|Library|Users|etc|home|mnt|opt|private|proc|root|srv|sys|tmp|usr|var)/[\w./-]+"
    r"|[A-Z]:\\[\w.\\-]+|%[A-Z]+%\\[\w.\\-]+)"
)
_UP = re.compile(r"(?<![\w./~-])((?:\.\./)+[\w./-]*)")
_INTERPRETER = re.compile(r"/usr/(?:local/)?bin/|/bin/")

_FETCH_VERB = re.compile(
    r"\b(?:apply|consult|download|fetch|follow|get|load|obey|open|pull|read|retrieve|visit)\b", re.I
)
_INSTRUCTIONS = re.compile(
    r"\b(?:commands?|directives?|guidelines|instructions?|policy|policies|prompts?|rules|skills?|steps)\b", re.I
)
_FETCH_AND_RUN = re.compile(
    r"\b(?:curl|wget|iwr|irm)\b[^|\n]{0,500}\|\s*(?:sudo )?(?:ba|z)?(?:sh|iex|python3?|node)\b"
    r"|(?:ba)?sh (?:-c )?[\"']?(?:<\(|\$\()\s*(?:curl|wget)\b"
)

_PACKED = re.compile(
    r"(?<![A-Za-z0-9+/])(?<!base64,)[A-Za-z0-9+/]{160,}={0,2}|(?:\\x[0-9a-fA-F]{2}){20,}"
    r"|\b(?:base64 (?:-d|-D|--decode)|b64decode|b85decode|atob|fromhex|FromBase64String|marshal\.loads)\b"
)
_PACKED_ENDINGS = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".whl", ".jar", ".pyc", ".dmg", ".pkl")
_PROGRAM_STARTS = (b"\x7fELF", b"MZ\x90", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm")
_SHOWN = 100


def find_addresses(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield URLs, and hosts that are named without one."""
    for text in texts.values():
        for url in _URL.finditer(text):
            yield url[0].rstrip(".,;:")
        for host in _HOST.finditer(_URL.sub(" ", text)):
            yield host[0]


def find_host(address: str) -> str:
    """Return the host of an address, without user and port."""
    host = address.partition("://")[2] or address
    return re.split(r"[/?#]", host, maxsplit=1)[0].rpartition("@")[2].partition(":")[0].lower()


def find_commands(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands in Markdown that the model is told to run."""
    for path, text in texts.items():
        if not path.lower().endswith((".md", ".markdown", ".txt")):
            continue
        yield from (f"{path}: {line}" for line in _find_shell_lines(text))
        yield from (f"{path}: {command[1]}" for command in _INLINE_COMMAND.finditer(text))


def _find_shell_lines(text: str) -> Iterator[str]:
    """Yield the commands in the fenced blocks of a shell."""
    fence = ""
    language = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        words = line.strip()
        if mark and not fence:
            fence = mark[1]
            language = mark[2].lower()
        elif mark and not mark[2] and mark[1].startswith(fence):
            fence = ""
        elif not fence:
            continue
        elif words.startswith("$ ") and language in (*_SHELLS, *_SESSIONS):
            yield words[2:]
        elif words and not words.startswith("#") and language in _SHELLS:
            yield words


def find_variables(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the environment variables that are read or named."""
    for text in texts.values():
        for match in _VARIABLE.finditer(text):
            name = next(filter(None, match.groups()))
            if name not in _EVERYWHERE:
                yield name


def find_outside_files(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield paths that lead out of the skill's folder."""
    for path, text in texts.items():
        for match in _OUTSIDE.finditer(text):
            if not _INTERPRETER.match(match[1]):
                yield f"{path}: {match[1].rstrip('.')}"
        for match in _UP.finditer(text):
            if posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1])).startswith(".."):
                yield f"{path}: {match[1]}"


def find_remote_instructions(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that have the model follow, or a shell run, what is fetched at that moment."""
    for path, text in texts.items():
        for line in text.splitlines():
            is_told = "://" in line and _FETCH_VERB.search(line) and _INSTRUCTIONS.search(_URL.sub(" ", line))
            if is_told or _FETCH_AND_RUN.search(line):
                yield f"{path}: {line.strip()[:_SHOWN]}"


def find_packed(files: Iterable[tuple[str, bytes]], texts: Mapping[str, str]) -> Iterator[str]:
    """Yield archives, compiled programs, and text that is not for reading."""
    for path, data in files:
        if path.lower().endswith(_PACKED_ENDINGS) or data.startswith(_PROGRAM_STARTS):
            yield path
    for path, text in texts.items():
        for match in _PACKED.finditer(text):
            yield f"{path}: {match[0][:_SHOWN]}"
