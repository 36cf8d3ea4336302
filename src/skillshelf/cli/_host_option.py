"""The option `--host`, with which `check` and `map` ask about some hosts only."""

import argparse

from skillshelf.cli._parsers import Parser
from skillshelf.text import closest_names


def add_host_option(parser: Parser) -> None:
    parser.add_argument(
        "--host",
        metavar="NAME",
        type=_host_name,
        action="append",
        default=[],
        help="ask only about this host, such as codex; repeatable",
    )


def _host_name(word: str) -> str:
    from skillshelf.lint.hosts import load_records

    hosts = list(load_records())
    if word not in hosts:
        message = f"unknown host {word!r}; choose from {', '.join(hosts)}"
        closest = closest_names(word, hosts)
        if closest:
            message = f"unknown host {word!r}; did you mean {', '.join(closest)}?"
        raise argparse.ArgumentTypeError(message)
    return word
