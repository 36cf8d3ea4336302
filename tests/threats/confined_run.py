"""A script that lets an agent run a command through its real tool, and prints the text that the tool returned.

    confined_run.py WORKSPACE OUTSIDE COMMAND

`{victim}` in the command is the process id of another program of this user. OUTSIDE gets sockets that listen.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys

from skillshelf.agent import AgentCore, Policy, call
from skillshelf.agent.events import ToolReturned
from skillshelf.testing import ScriptedModel


async def main(root: str, outside: str, command: str, victim: int) -> None:
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
    step = call("run_command", command=command.replace("{victim}", str(victim)), timeout_seconds=240)
    core = AgentCore(ScriptedModel(step, "ok"), root, policy=Policy("yolo"))
    texts = [event.text async for event in core.process_message("go") if isinstance(event, ToolReturned)]
    for address in addresses:
        if address.startswith("/"):
            os.unlink(address)
    print(json.dumps({"text": texts[0], "level": core.confinement.level, "user": os.geteuid()}))


# The command must not read the environment of this process.
other = subprocess.Popen(
    ["sleep", "600"], env={"SECRET": "hidden", "PATH": os.environ["PATH"]}, stdout=subprocess.DEVNULL
)
try:
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], other.pid))
finally:
    other.kill()
    other.wait()
