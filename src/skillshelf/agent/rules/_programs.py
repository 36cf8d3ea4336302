"""Programs that run other programs, and the arguments with which they do.

A rule with a `*` at its end would allow them anything. The lists hold the programs that agents use and the ways that
are known; they cannot be complete. A rule for a program that is not listed trusts it with any arguments.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

_VERSION = re.compile(r"-?[0-9][0-9.]*$")

RUNNERS = frozenset(
    "ash asdf at batch bash bunx busybox bwrap capsh chronic chroot compgen csh dash direnv doas docker entr env "
    "expect fakeroot faketime firejail fish flatpak flock hyperfine ionice kubectl ksh ltrace lxc-attach mise nerdctl "
    "nice nix-shell nohup npx nsenter nspawn osascript parallel perf pipx pkexec podman proot rlwrap rsh run-parts "
    "runuser screen script setarch setpriv setsid sh socat ssh sshpass stdbuf strace su sudo systemd-run taskset tcsh "
    "time timeout tmux toolbox unbuffer unshare uvx vagrant valgrind watch watchexec wsl xargs xdg-open xvfb-run "
    "zsh".split()
)
"""They run whatever their arguments say."""

INTERPRETERS = frozenset(
    "awk bun cmake deno ed emacs ex gawk gdb gmake groovy irb java julia less lua m4 make man mawk more nano ninja "
    "node nvim perl php pip psql pypy python r rscript ruby scala sed sqlite swift tclsh ts-node tsx vi "
    "vim".split()
)
"""They run code that their arguments hold or name."""

_TASK_RUNNERS = {
    "bundle": ("exec",),
    "cargo": ("run",),
    "composer": ("exec", "run-script"),
    "conda": ("run",),
    "coverage": ("run",),
    "dotnet": ("exec", "run"),
    "go": ("run", "tool"),
    "hatch": ("run",),
    "nix": ("develop", "run", "shell"),
    "npm": ("create", "exec", "explore", "init", "innit", "run", "run-script", "x"),
    "pdm": ("run",),
    "pipenv": ("run",),
    "pixi": ("exec", "run"),
    "pnpm": ("create", "dlx", "exec", "run", "x"),
    "poetry": ("run",),
    "rustup": ("run",),
    "rye": ("run",),
    "uv": ("run", "tool", "x"),
    "yarn": ("create", "dlx", "exec", "node", "run"),
}
"""Subcommands that run a program or a task which the next word names."""


@dataclass(frozen=True, slots=True)
class _Escapes:
    """Arguments with which a program runs another one, or code that comes with them."""

    letters: str = ""
    """Short options. They can stand together with others and have their value attached: `-Ic`, `-ccode`."""
    options: tuple[str, ...] = ()
    """Long options, which can be shortened: `--upload-pa`."""
    words: tuple[str, ...] = ()
    """Options with one hyphen and a long name, alone or with a value: `-exec`, `-toolexec=x`."""


_CODE = _Escapes(letters="cem", options=("--eval", "--exec", "--print", "--require", "--import", "--loader"))
_NPM = _Escapes(
    letters="C",
    options=(
        "--config",
        "--cwd",
        "--dir",
        "--editor",
        "--git",
        "--globalconfig",
        "--node-options",
        "--prefix",
        "--script-shell",
        "--shell",
        "--use-yarnrc",
        "--userconfig",
        "--viewer",
    ),
)
# A test runner or a checker runs the workspace's own code. These name other code, or a file to write.
_CHECKERS = {
    "black": _Escapes(options=("--config",)),
    "eslint": _Escapes(
        letters="cfo",
        options=("--config", "--format", "--output-file", "--parser", "--plugin", "--resolve-plugins", "--rulesdir"),
    ),
    "flake8": _Escapes(options=("--append-config", "--config", "--output-file")),
    "jest": _Escapes(
        letters="c",
        options=(
            "--config",
            "--coverageDirectory",
            "--globalSetup",
            "--globalTeardown",
            "--outputFile",
            "--preset",
            "--reporters",
            "--resolver",
            "--rootDir",
            "--runner",
            "--setupFilesAfterEnv",
            "--testEnvironment",
            "--testRunner",
            "--transform",
        ),
    ),
    "mypy": _Escapes(options=("--config-file", "--install-types", "--python-executable")),
    "pylint": _Escapes(
        options=(
            "--extension-pkg-allow-list",
            "--extension-pkg-whitelist",
            "--init-hook",
            "--load-plugins",
            "--output",
            "--rcfile",
            "--unsafe-load-any-extension",
        )
    ),
    "pyright": _Escapes(letters="p", options=("--project", "--pythonpath", "--venvpath")),
    "pytest": _Escapes(
        letters="cop",
        options=(
            "--basetemp",
            "--confcutdir",
            "--config-file",
            "--debug",
            "--junit-xml",
            "--junitxml",
            "--log-file",
            "--override-ini",
            "--pastebin",
            "--pdbcls",
            "--rootdir",
        ),
    ),
    "ruff": _Escapes(letters="o", options=("--output-file",)),
    "vitest": _Escapes(
        letters="cr",
        options=("--config", "--environment", "--globalSetup", "--outputFile", "--reporter", "--root"),
    ),
}
_ESCAPES = {
    **_CHECKERS,
    "awk": _Escapes(letters="fiE", options=("--file", "--source", "--include", "--exec", "--load")),
    "cargo": _Escapes(options=("--config",)),
    "curl": _Escapes(letters="KoO", options=("--config", "--output", "--remote-name", "--output-dir")),
    "date": _Escapes(letters="s", options=("--set",)),
    "fd": _Escapes(letters="xX", options=("--exec", "--exec-batch")),
    "file": _Escapes(letters="C", options=("--compile",)),
    "find": _Escapes(
        words=(
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-delete",
            "-fprint",
            "-fprint0",
            "-fprintf",
            "-fls",
            "-files0-from",
        )
    ),
    "git": _Escapes(
        letters="xO",
        options=(
            "--config",
            "--config-env",
            "--exec",
            "--exec-path",
            "--ext-diff",
            "--extcmd",
            "--open-files-in-pager",
            "--output",
            "--paginate",
            "--receive-pack",
            "--template",
            "--textconv",
            "--tool",
            "--upload-pack",
        ),
    ),
    "go": _Escapes(
        words=("-exec", "-toolexec", "-overlay", "-vettool", "-ldflags", "-gccgoflags", "-compiler")  # a linker
    ),
    "hg": _Escapes(options=("--config",)),
    "make": _Escapes(letters="fE", options=("--eval", "--file", "--makefile")),
    "node": _Escapes(letters="epr", options=("--eval", "--print", "--require", "--import", "--loader")),
    "npm": _NPM,
    "perl": _Escapes(letters="eEMmi"),
    "php": _Escapes(letters="rBRE"),
    "pip": _Escapes(options=("--python", "--index-url", "--extra-index-url")),
    "pnpm": _NPM,
    "rg": _Escapes(options=("--pre", "--hostname-bin")),
    "rsync": _Escapes(letters="e", options=("--rsh", "--rsync-path")),
    "scp": _Escapes(letters="So"),
    "sed": _Escapes(letters="efi", options=("--expression", "--file", "--in-place")),
    "sort": _Escapes(letters="o", options=("--compress-program", "--output")),
    "tar": _Escapes(
        letters="IF",
        options=(
            "--checkpoint-action",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
            "--to-command",
            "--use-compress-program",
        ),
    ),
    "tree": _Escapes(letters="o"),
    "uv": _Escapes(letters="p", options=("--config-file", "--python")),  # it runs the Python that they name
    "wget": _Escapes(letters="eiO", options=("--execute", "--use-askpass", "--output-document", "--input-file")),
    "yarn": _NPM,
    "zip": _Escapes(letters="T", options=("--unzip-command", "--test")),
}
_ESCAPES["gawk"] = _ESCAPES["mawk"] = _ESCAPES["awk"]
_ESCAPES["gmake"] = _ESCAPES["make"]
_ESCAPES["fdfind"] = _ESCAPES["fd"]

_GIT_CLONE = _Escapes(letters="cu")
# The arguments or the configuration of these subcommands name programs to run.
_GIT_ESCAPES = frozenset(
    "archive bisect clone config credential daemon difftool fast-import filter-branch for-each-repo hook instaweb "
    "maintenance mergetool p4 receive-pack remote-ext remote-fd send-email shell submodule svn upload-archive "
    "upload-pack web--browse".split()
)


def name_of_program(word: str) -> str:
    """Return a program's name without its folder and version: `python` for `/usr/bin/python3.11`."""
    name = os.path.basename(word).lower()
    return _VERSION.sub("", name) or name


def runs_any_command(words: Sequence[str]) -> bool:
    """Return True if the program runs a command that its next words name: `sudo`, `sh`, `uv run`."""
    program = name_of_program(words[0])
    if program in RUNNERS:
        return True
    return len(words) > 1 and words[1] in _TASK_RUNNERS.get(program, ())


def find_escape(words: Sequence[str], spelled: int) -> str:
    """Return the argument with which a command runs code that its rule does not spell out, or an empty string.

    `spelled`: how many of the words are in the rule itself. The others are those that its `*` stands for.
    """
    program = name_of_program(words[0])
    if program in RUNNERS:
        return words[0]

    free = words[spelled:]
    if spelled == 1 and free:
        if _is_escaping_subcommand(program, free[0]):
            return free[0]
        if program == "tar" and not free[0].startswith("-"):
            free = [f"-{free[0]}", *free[1:]]  # `tar xf`: the first word is made of options

    all_escapes = []
    if program in _ESCAPES:
        all_escapes.append(_ESCAPES[program])
    elif program in INTERPRETERS:
        all_escapes.append(_CODE)
    if program == "git" and "clone" in words[1:2]:
        all_escapes.append(_GIT_CLONE)

    for word in free:
        if any(_is_escape(word, escapes) for escapes in all_escapes):
            return word
        if program in ("git", "make", "gmake") and "::" in word:
            return word  # `ext::` is a transport that runs a command
        if program in ("make", "gmake") and "=" in word:
            return word  # `SHELL=` is the shell of every recipe
    return ""


def _is_escaping_subcommand(program: str, word: str) -> bool:
    """Return True if a rule for all of a program must not cover this first word."""
    if program == "git":
        return word.startswith("-") or word in _GIT_ESCAPES
    return word in _TASK_RUNNERS.get(program, ())


def _is_escape(word: str, escapes: _Escapes) -> bool:
    name = re.split(r"[=.]", word, maxsplit=1)[0]  # pnpm has `--config.script-shell=x`
    if name in escapes.words or name.removeprefix("-") in escapes.words:
        return True
    if word.startswith("--"):
        return len(name) > 2 and any(option.startswith(name) for option in escapes.options)
    if word.startswith("-"):
        return any(letter in escapes.letters for letter in word[1:])
    return False
