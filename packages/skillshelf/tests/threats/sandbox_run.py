"""A script that lets an agent run commands through its real tool, and prints the texts that the tool returned.

    sandbox_run.py LEVEL WORKSPACE OUTSIDE NETWORK COMMAND…

Each command is one call in the same conversation. NETWORK is `network` if they run with it, by the policy `yolo`, or
`rule` if a rule allows them without it. In the commands, `{victim}` is the process id of another program of this user,
`{terminal}` a terminal of the user, `{port}` a service on this machine. OUTSIDE gets sockets that listen.
"""

import asyncio
import ctypes
import json
import os
import socket
import subprocess
import sys

from skillshelf.sandbox import Sandbox, _sandbox, find_sandbox
from skillshelf_agent import AgentCore, Policy, Rule, RuleBook
from skillshelf_agent.events import ToolReturned
from skillshelf_agent.testing import ScriptedModel, call

IPC_CREAT = 0o1000
SHARED_MEMORY_KEY = 0x534B
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4


async def main(level: str, root: str, outside: str, network: str, commands: list[str], victim: int) -> None:
    if level != "best":
        _sandbox._find_sandbox = lambda: Sandbox(level, landlock=_sandbox._find_landlock())  # type: ignore
    libc = ctypes.CDLL(None)
    if level != "landlock":
        # The tests give an ordinary user the right to read everything, so that it can start this Python. Bubblewrap
        # does not start with more rights than it needs.
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    libc.shmget(SHARED_MEMORY_KEY, 4096, IPC_CREAT | 0o600)

    listeners = []
    addresses = {
        f"{outside}/stream": socket.SOCK_STREAM,
        f"{outside}/datagram": socket.SOCK_DGRAM,
        f"\0skillshelf-{victim}": socket.SOCK_STREAM,
    }
    for address, kind in addresses.items():
        listener = socket.socket(socket.AF_UNIX, kind)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen(10)
        listeners.append(listener)
    service = socket.create_server(("127.0.0.1", 0))
    _, terminal = os.openpty()

    for name, value in (
        ("{victim}", str(victim)),
        ("{terminal}", os.ttyname(terminal)),
        ("{port}", str(service.getsockname()[1])),
    ):
        commands = [command.replace(name, value) for command in commands]
    policy = Policy("yolo")
    if network == "rule":
        rules = RuleBook(root)
        for command in commands:
            rules.add(Rule("allow", "run_command", command=command, workspace=root))
        policy = Policy("ask", rules=rules)

    steps = [call("run_command", command=command, timeout_seconds=240) for command in commands]
    core = AgentCore(ScriptedModel(*steps, "ok"), root, policy=policy)
    texts = [event.text async for event in core.process_message("go") if isinstance(event, ToolReturned)]
    for address in addresses:
        if address.startswith("/"):
            os.unlink(address)
    print(json.dumps({"texts": texts, "level": find_sandbox().level, "user": os.geteuid()}))


# The command must not read the environment of this process.
other = subprocess.Popen(
    ["sleep", "600"], env={"SECRET": "hidden", "PATH": os.environ["PATH"]}, stdout=subprocess.DEVNULL
)
try:
    level, root, outside, network, *commands = sys.argv[1:]
    asyncio.run(main(level, root, outside, network, commands, other.pid))
finally:
    other.kill()
    other.wait()
