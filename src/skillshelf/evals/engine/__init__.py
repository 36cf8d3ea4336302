"""Runs that survive: a plan is carried out here and on other machines, and what was paid for is never lost."""
