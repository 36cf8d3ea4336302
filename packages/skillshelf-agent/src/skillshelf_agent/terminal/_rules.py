"""`/approve allow`, `deny`, `rules` and `forget`: the rules that last, typed by the user."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from skillshelf.errors import SettingsError
from skillshelf.slash import Command, Suggestion
from skillshelf.text import closest_names
from skillshelf_agent import SHELL, WRITING, Rule, RuleBook
from skillshelf_agent.rules import Decision
from skillshelf_agent.terminal._face import ChatFace
from skillshelf_agent.terminal._views import PREFIX_NEEDS_SANDBOX, view_rules

_EVERYWHERE = "--everywhere"
_NETWORK = "--network"
_USAGE = f"TOOL [WHAT] [{_EVERYWHERE}]"
_USAGE_ALLOW = f"TOOL [WHAT] [{_NETWORK}] [{_EVERYWHERE}]"
_DENIAL_MISSES = (
    "It stops mistakes, not malice: it misses the program behind another one (sudo, xargs, sh -c), in a variable or in "
    "a script, and options before the words (git -C x push)."
)


def make_rule_commands(face: ChatFace) -> list[Command[ChatFace]]:
    """Return the commands that make, list and remove approval rules."""

    def complete_tool(typed: str) -> Sequence[Suggestion]:
        if " " in typed.lstrip():
            return [
                Suggestion(_NETWORK, meta="a command also gets the network"),
                Suggestion(_EVERYWHERE, meta="in all workspaces, not just this one"),
            ]
        return [Suggestion(SHELL, meta="a command: git status, or pytest *"), *map(Suggestion, sorted(WRITING))]

    def complete_number(_: str) -> Sequence[Suggestion]:
        rules = _get_book(face).list()
        return [Suggestion(str(number), meta=str(rule)) for number, rule in enumerate(rules, 1)]

    def complete_unconfirmed(_: str) -> Sequence[Suggestion]:
        rules = enumerate(_get_book(face).list(), 1)
        return [Suggestion(str(number), meta=str(rule)) for number, rule in rules if not rule.confirmed]

    return [
        Command("allow", "allow a kind of calls from now on", _allow, _USAGE_ALLOW, complete_tool),
        Command("deny", "deny a kind of calls from now on", _deny, _USAGE, complete_tool),
        Command("rules", "the rules that hold here", _list),
        Command("confirm", "put an earlier rule ending in `*` in force", _confirm, "NUMBER", complete_unconfirmed),
        Command("forget", "remove a rule", _forget, "NUMBER", complete_number),
    ]


def _list(face: ChatFace, _: str) -> None:
    book = _get_book(face)
    face.print(view_rules(book.list(), is_sandboxed=bool(face.core.sandbox)))
    if book.problem:
        face.print(Text(f"The rules read last stay in force. {book.problem}", "red"))
    if book.is_in_workspace:
        face.print(
            Text("The file of rules is in this workspace, where the agent could change it: it only denies.", "yellow")
        )


def _allow(face: ChatFace, typed: str) -> None:
    _add(face, "allow", typed)


def _deny(face: ChatFace, typed: str) -> None:
    _add(face, "deny", typed)


def _add(face: ChatFace, decision: Decision, typed: str) -> None:
    book = _get_book(face)
    rule = parse_rule(decision, typed, book.root)
    is_new = book.add(rule)
    where = "in this workspace" if rule.workspace else "everywhere"
    if not is_new:
        face.print(f"That is a rule already: {rule}")
        return
    face.print(f"From now on, {where}: {rule}", *_explain_prefix(face, rule))
    if rule.tool not in face.core.tool_names:
        closest = closest_names(rule.tool, face.core.tool_names, limit=1, min_similarity=0.7)
        suggestion = f" Did you mean {closest[0]!r}?" if closest else ""
        face.print(Text(f"There is no tool {rule.tool!r} here now.{suggestion}", "yellow"))
    if rule.decision == "deny" and rule.tool == SHELL:
        face.print(Text(_DENIAL_MISSES, "yellow"))


def _confirm(face: ChatFace, typed: str) -> None:
    rule = _choose_rule(face, typed)
    if not _get_book(face).add(replace(rule, confirmed=True)):
        raise SettingsError(f"This rule is in force already: {rule}")
    face.print(f"From now on: {rule}", *_explain_prefix(face, rule))


def _explain_prefix(face: ChatFace, rule: Rule) -> Sequence[Text]:
    """Say what a rule ending in `*` allows that the user may not expect."""
    if not rule.allows_prefix:
        return ()
    words = rule.command.strip().removesuffix("*").strip()
    limit = "only the sandbox limits it" if bool(face.core.sandbox) else PREFIX_NEEDS_SANDBOX
    return [Text(f"It allows whatever {words} can do with further words: {limit}.", "yellow")]


def parse_rule(decision: Decision, typed: str, root: str) -> Rule:
    """Return the rule that a user typed: a tool, and what it is about. Raises SettingsError."""
    text = typed.strip()
    workspace = root
    network = False
    while text.endswith((f" {_EVERYWHERE}", f" {_NETWORK}")):
        text, _, option = text.rpartition(" ")
        text = text.rstrip()
        if option == _EVERYWHERE:
            workspace = ""
        else:
            network = True

    tool, _, rest = text.partition(" ")
    rest = rest.strip()
    if not tool:
        raise SettingsError(f'Name a tool and what it may do, such as: /approve {decision} {SHELL} "git diff *"')
    if tool == SHELL:
        return Rule(decision, tool, command=_unquote(rest), workspace=workspace, network=network)
    if tool in WRITING:
        return Rule(decision, tool, path=_unquote(rest), workspace=workspace, network=network)
    rule = Rule(decision, tool, workspace=workspace, network=network)  # first: some tools have no rules at all
    return replace(rule, arguments=_parse_arguments(rest))


def _unquote(text: str) -> str:
    """Take off the quotes around the whole of it. Quotes inside belong to the command."""
    for quote in ('"', "'"):
        if len(text) > 1 and text.startswith(quote) and text.endswith(quote) and quote not in text[1:-1]:
            return text[1:-1]
    return text


def _parse_arguments(text: str) -> dict[str, Any]:
    """Read `name=value` pairs. A value that is JSON is taken as that, and any other as text."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise SettingsError(
            f"The arguments cannot be read: {error}. Write name=value, with quotes if need be."
        ) from None

    arguments: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise SettingsError(f"{word!r:.80} is not an argument. Write name=value.")
        try:
            arguments[name] = json.loads(value)
        except ValueError:
            arguments[name] = value
    return arguments


def _forget(face: ChatFace, typed: str) -> None:
    rule = _choose_rule(face, typed)
    _get_book(face).remove(rule)
    face.print(f"Removed: {rule}")


def _choose_rule(face: ChatFace, typed: str) -> Rule:
    rules = _get_book(face).list()
    number = typed.strip()
    if not number.isdecimal() or not 1 <= int(number) <= len(rules):
        raise SettingsError("Give the number of a rule. /approve rules lists them.")
    return rules[int(number) - 1]


def _get_book(face: ChatFace) -> RuleBook:
    book = face.core.gate.policy.rules
    if book is None:
        raise SettingsError("There are no rules in this chat.")
    return book
