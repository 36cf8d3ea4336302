"""`python -m skillshelf`: the command line."""

from skillshelf.cli import main

raise SystemExit(main())
