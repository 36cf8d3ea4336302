"""Approval rules: kinds of calls that the user allowed or denied for good, and the file that keeps them."""

from skillshelf_agent.rules._book import RuleBook, rules_file
from skillshelf_agent.rules._command import split_command
from skillshelf_agent.rules._rule import Decision, Rule, RuledCall, denies_every_call, find_ruling, offer_rule

__all__ = [
    "Decision",
    "Rule",
    "RuleBook",
    "RuledCall",
    "denies_every_call",
    "find_ruling",
    "offer_rule",
    "rules_file",
    "split_command",
]
