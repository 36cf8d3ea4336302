"""Measure which skills the coding agents from npm show their model, for `check --hosts`.

    python -m benchmarks.npm_hosts                       install the measured versions and report differences
    python -m benchmarks.npm_hosts --write               the same, and bring the table up to date
    python -m benchmarks.npm_hosts --host pi             only this agent; repeatable
    python -m benchmarks.npm_hosts --latest --write      with the newest versions instead
    python -m benchmarks.npm_hosts --installed DIR       with the agents in DIR/node_modules
    python -m benchmarks.npm_hosts --corpus DIR          and count how often `check --hosts` is right for skills in DIR

Agents are installed into a folder that is thrown away (about 1.4 GB for all five). That needs Node, Git and npm's
registry. Each then runs some twenty times against a model on loopback.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.host_loaders import Variant
from benchmarks.npm_hosts.probes import (
    Bench,
    measure_folders,
    measure_linked_folder,
    measure_space,
    measure_variants,
)
from benchmarks.npm_hosts.programs import PROGRAMS, find_version, install
from benchmarks.portability import CONTROL, TABLE, VARIANTS, corpus, report_agreement, with_field
from skillshelf.lint.hosts._detect import BEHAVIOR_FIELDS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", action="append", choices=PROGRAMS, help="measure this agent; repeatable (all)")
    parser.add_argument("--write", action="store_true", help="bring the table up to date")
    parser.add_argument("--latest", action="store_true", help="measure the newest versions")
    parser.add_argument("--installed", type=Path, metavar="DIR", help="use the agents in DIR/node_modules")
    parser.add_argument(
        "--corpus", type=Path, metavar="DIR", help="run the skills below DIR through the agents as well"
    )
    args = parser.parse_args()
    hosts = args.host or list(PROGRAMS)
    if args.installed:
        return _measure_all(hosts, args.installed.absolute(), args)

    versions = {host: "latest" if args.latest else PROGRAMS[host].version for host in hosts}
    with tempfile.TemporaryDirectory(prefix="npm-hosts-") as folder:
        install(Path(folder), hosts, versions)
        return _measure_all(hosts, Path(folder), args)


def _measure_all(hosts: Sequence[str], installed: Path, args: argparse.Namespace) -> int:
    differences = 0
    for host in hosts:
        before = json.loads(TABLE.read_text(encoding="utf-8")).get(host)
        after = measure(host, installed)
        differences += is_different(before, after)
        print(f"{host} {after['version']}: {_describe_change(before, after)}", flush=True)
        if args.write:
            table = json.loads(TABLE.read_text(encoding="utf-8"))
            table[host] = after
            text = json.dumps(dict(sorted(table.items())), indent=1, ensure_ascii=False)
            TABLE.write_text(text + "\n", encoding="utf-8")
    if args.corpus:
        skills = corpus(args.corpus)
        rows = {host: {"makes": measure_variants(Bench(PROGRAMS[host], installed), skills)} for host in hosts}
        report_agreement(skills, rows)
    return 0 if args.write or not differences else 1


def measure(host: str, installed: Path) -> dict[str, Any]:
    """Measure an agent, and return its record."""
    program = PROGRAMS[host]
    bench = Bench(program, installed)
    makes = measure_variants(bench, VARIANTS)
    if makes.pop(CONTROL) != "loads":
        raise SystemExit(f"{host} does not list a plain skill: its probe is out of date")
    _check_fields(host, bench, makes["fields-behavior"])
    return {
        "kind": "program",
        "version": find_version(program, installed),
        "package": program.package,
        "measured": date.today().isoformat(),
        "how": program.how,
        "folders": measure_folders(bench),
        "folder_linked": measure_linked_folder(bench),
        "space": measure_space(bench),
        "makes": dict(sorted(makes.items())),
    }


def _check_fields(host: str, bench: Bench, expected: str) -> None:
    """Check that each field of a condition has the effect that was measured for all of them together."""
    fields: Mapping[str, Variant] = {field: with_field(field) for field in sorted(BEHAVIOR_FIELDS - {"paths"})}
    outcomes = measure_variants(bench, fields)
    different = {field: outcome for field, outcome in outcomes.items() if outcome != expected}
    if different:
        print(f"{host}: these fields need a condition of their own: {different}", file=sys.stderr)


def is_different(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    """Return True if the agent behaves differently from its record, whatever its version and the day."""
    if before is None:
        return True
    return any(before[key] != after[key] for key in ("folders", "folder_linked", "space", "makes"))


def _describe_change(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> str:
    if before is None:
        return "new in the table"
    if not is_different(before, after):
        return "as in the table"
    changes = [
        f"{code} {before['makes'].get(code)} -> {outcome}"
        for code, outcome in after["makes"].items()
        if before["makes"].get(code) != outcome
    ]
    changes.extend(key for key in ("folders", "folder_linked", "space") if before[key] != after[key])
    return f"differs from the table: {'; '.join(changes)}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error}: the agents could not be installed")
