"""`python -m skillshelf`: the command line."""

import os
import sys

# Python puts the current folder first; nothing that lies in a workspace may be imported, or register a command.
if not sys.flags.safe_path and sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]

from skillshelf.cli import main  # not before

raise SystemExit(main())
