raise SystemExit("an example beside a skill must not be imported")
