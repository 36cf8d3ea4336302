"""Run a program in a sandbox, within limits, end everything it started, and report how it ended.

    "$SKILLSHELF_PYTHON" sandbox_runner.py --seconds 10 --memory 512 --processes 32 -- python -m pytest -x

That variable names the Python that has skillshelf, in runs of the skill `execution-debugging`. The program starts in
the current folder with an empty HOME and TMPDIR, writes nowhere else, and gets no input.

The limits: seconds, MiB of memory (for each process, and for all of them together), processes alive at the same time,
MiB of one file. 0 is no limit. Memory and processes are measured 50 ms after the start, and in the end twice a second.
Unless the user is root, the kernel also refuses more than ten times as many processes and threads. At the time limit,
programs get SIGABRT: Python prints where it was, if PYTHONFAULTHANDLER is set.

The output, both streams in order and at most 1 MiB, goes to standard output. The last line on standard error is the
report:

    {"exit_code": 0, "signal": null, "limit": null, "seconds": 0.4, "peak_memory_mb": 23.5, "sandbox": "bubblewrap"}

If a signal ended the program, `signal` is its number, and `exit_code` 128 more. If a limit did ("seconds", "memory",
"processes" or "output"), `exit_code` is null, and 124 for this script. `peak_memory_mb` is 0 if it ended before it was
measured. `sandbox` is "none" where the system has none: then it has limits only.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
from functools import partial

from skillshelf.sandbox import GitGuard, Program, ProgramLimits, find_sandbox, run_program

parser = argparse.ArgumentParser(description="Run a program in a sandbox, within limits.")
parser.add_argument("--seconds", type=float, default=60)
parser.add_argument("--memory", type=int, default=1024, help="in MiB")
parser.add_argument("--processes", type=int, default=64)
parser.add_argument("--file", type=int, default=1024, help="the size of one file, in MiB")
parser.add_argument("program", nargs="+", help="after --")
options = parser.parse_args()

folder = os.path.realpath(os.curdir)
limits = ProgramLimits(options.seconds, memory_mb=options.memory, processes=options.processes, file_mb=options.file)
sandbox = find_sandbox()
with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
    home = os.path.join(os.path.realpath(place), "home")
    os.mkdir(home)
    program = Program(
        # The shell reports a program that is missing (127) or cannot be executed (126).
        ["/bin/sh", "-c", 'exec "$@"', "sh", *options.program],
        folder,
        {**os.environ, "HOME": home},
        writable=[folder, home],
        scratch=os.path.realpath(place),
        network=True,
        git=GitGuard(folder),
    )
    take_output = partial(print, end="", flush=True)
    result = asyncio.run(run_program(program, sandbox, limits, take_output=take_output, merge=True))

number = (result.exit_code or 0) - 128
report = {
    "exit_code": result.exit_code,
    "signal": number if number in signal.valid_signals() else None,
    "limit": result.limit,
    "seconds": round(result.seconds, 3),
    "peak_memory_mb": round(result.peak_memory_mb, 1),
    "sandbox": sandbox.level,
}
print(*result.notices, json.dumps(report), sep="\n", file=sys.stderr)
sys.exit(124 if result.exit_code is None else result.exit_code)
