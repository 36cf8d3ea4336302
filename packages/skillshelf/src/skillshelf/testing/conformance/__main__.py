"""Serve the scenario's shelf over MCP on standard streams: `python -m skillshelf.testing.conformance FOLDER`."""

import sys

import anyio

from skillshelf.mcp import make_server, serve_stdio
from skillshelf.testing.conformance import Stage

anyio.run(serve_stdio, make_server(Stage(sys.argv[1]).shelf))
