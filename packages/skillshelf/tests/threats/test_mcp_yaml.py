"""Y01–Y13 over MCP: no frontmatter freezes or ends the server. A real process serves each over real pipes."""

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

from threats.test_yaml import BLOCKS
from threats.workspace import GOOD, Workspace

CPU_SECONDS = 20
"""The server gets SIGXCPU after this much work, however busy the machine is: a frozen server ends the test."""

CHARACTERS = "name: y\ndescription: d\na: &a '" + "x" * 100_000 + "'\nb: [" + "*a, " * 9_000 + "*a]"
"""One long text behind nine thousand aliases: few values, but a gigabyte of text."""

FIELDS = "broken: 'open\nname: y\ndescription: d\n" + "".join(
    f"f{n}: [&a{n} [x, x, x, x, x, x, x, x, x, x], {', '.join([f'*a{n}'] * 200)}]\n" for n in range(250)
)
"""Two hundred fields that are each within the bounds; together they are not."""

HOSTILE = {name: block for name, (block, *_) in BLOCKS.items() if "Y01" <= name[:3] <= "Y13"} | {
    "Y01-a-gigabyte-of-text": CHARACTERS,
    "Y01-many-fields": FIELDS,
    "Y02-dashes-alone": "- " * 30_000,
    "Y02-dashes-below": "name: y\ndescription: d\nx:\n  " + "- " * 30_000,
    "Y09-dashes-only": "---\n---",
}


def limit_cpu() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


def converse(folder: Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Send the requests to a server in its own process, and return its answers in order."""
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": greeting},
        {"method": "notifications/initialized"},
    ]
    messages += [{"id": number, **request} for number, request in enumerate(requests, 1)]
    command = [sys.executable, "-m", "skillshelf", "serve", "-C", str(folder), "--trust-workspace"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, preexec_fn=limit_cpu) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages))
        server.stdin.flush()
        answers: list[Any] = []
        while len(answers) <= len(requests) and (line := server.stdout.readline()):
            message = json.loads(line)
            if "id" in message:
                answers.append(message)
        _, complaints = server.communicate()
    ended_by = signal.Signals(-server.returncode).name if server.returncode < 0 else ""
    assert (ended_by, len(answers)) == ("", len(requests) + 1), complaints
    return sorted(answers, key=lambda answer: int(answer["id"]))[1:]


def test_no_frontmatter_freezes_or_ends_the_server(workspace: Workspace) -> None:
    """Y01–Y13: with all of them on one shelf, every request for each of them and for their neighbour is answered."""
    for name, block in HOSTILE.items():
        if not block.startswith("- "):
            block = block.replace("name: y\n", f"name: {name.lower()}\n")
        workspace.raw(f"skills/{name.lower()}", f"---\n{block}\n---\n\nDo it.\n")
    uris = [f"skill://{name.lower()}/SKILL.md" for name in HOSTILE]
    uris.append(f"skill://{GOOD}/SKILL.md")
    requests: list[dict[str, Any]] = [{"method": "skills/list", "params": {}}]
    for uri in uris:
        requests += [{"method": method, "params": {"uri": uri}} for method in ("skills/get", "resources/read")]
    requests.append({"method": "tools/call", "params": {"name": "list_skills", "arguments": {}}})

    answers = converse(workspace.root, *requests)

    good = answers[-3]["result"]["skill"]["frontmatter"]
    assert good == {"name": GOOD, "description": "Does it."}
    assert max(len(json.dumps(answer)) for answer in answers[1:]) < 1_500_000


@pytest.mark.parametrize(
    ("yaml_value", "published"),
    [
        ("1.5", 1.5),
        ("12", 12),
        ("true", True),
        ("null", None),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("yes", "yes"),
        ("2024-01-01", "2024-01-01"),
        ("12:30:45", "12:30:45"),
        ("010", "010"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("9" * 5_000, "9" * 5_000),
        ("&a [1, 2]", [1, 2]),
        ("{<<: {a: 1}, b: 2}", {"<<": {"a": 1}, "b": 2}),
    ],
)
def test_a_value_is_published_with_the_meaning_that_json_and_yaml_share(
    workspace: Workspace, yaml_value: str, published: Any
) -> None:
    """Y03, Y06, Y07, Y12, Y13: numbers, flags and nulls keep their type; disputed values are text."""
    from skillshelf.skillmd import read

    text = read(f"---\nname: y\ndescription: d\nx: {yaml_value}\n---\n\nDo it.\n")
    assert text.typed_values() == {"name": "y", "description": "d", "x": published}
