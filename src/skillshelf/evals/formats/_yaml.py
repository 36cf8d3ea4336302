"""Cases in YAML.

    skills: [..]              # folders, relative to this file; a skill's own evals need none
    code_skills: []           # `my_company.skills.rag.skill:RagSkill`; see skillshelf.evals.code_skills
    policy: yolo              # as for `skillshelf chat`
    cases:
      - name: fills a form
        prompt: Fill in form.pdf with the data of data.json.
        files:
          data.json: '{"name": "Ada"}'
          form.pdf: {from: fixtures/form.pdf}
        checks:
          - skill_loaded: pdf
          - tool_called: {name: write_file, arguments: {path: out.pdf}}
          - not: {response_contains: sorry}

Of the file, for all cases: `skills`, `code_skills`, `skill` (the one under test; in a skill's `evals/`, that skill),
`policy`, `model`, `tags`. Of a case: these, `name`, and

- `prompt`, or `turns`: texts, and between them `{write: {path: text}}` or `{remove: path}`, by another program;
- `files`: the workspace, `path: text` or `path: {from: …}` with a file or a folder below the skill's, or the suite's;
- `script`: steps of a scripted model: texts, `{tool: …, arguments: {…}}`, `{fail: …, after: …}`, and lists of them;
- `should_trigger`: true or false, which is a check of its own;
- `checks`: `name`, `name: argument`, `name: {key: argument}`, or `not:` and one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Edit, Message
from skillshelf.evals._code_skills import code_source
from skillshelf.evals._paths import workspace_path
from skillshelf.evals.check import Check, Context, from_config, trigger
from skillshelf.evals.formats._document import Row, Table, parse_yaml, read_text
from skillshelf.evals.formats._fields import Fields, Home, Listing, bounded, copied, folders_of, only_skill
from skillshelf.evals.formats._outline import not_evaluated
from skillshelf.evals.formats._script import steps

_SHARED = ("skill", "skills", "code_skills", "policy", "model", "tags")
_FILE = (*_SHARED, "cases")
_CASE = ("name", "prompt", "turns", "files", "script", "should_trigger", "checks", *_SHARED)


_SAID = {"prompt", "turns"}


class _Common(NamedTuple):
    """What a file says for all of its cases."""

    skills: tuple[str, ...]
    code_skills: tuple[str, ...]
    skill: str
    policy: str
    model: str
    tags: tuple[str, ...]


def read_yaml(home: Home) -> tuple[list[Case], list[EvalError]]:
    """The cases of a file, and the faults in those that are none. Raises EvalError where nothing of it can be read."""
    value = parse_yaml(read_text(home.path), home.path)
    if isinstance(value, Row):
        table = Table(1)
        table["cases"] = value
        value = table
    shared = Fields(value, home.path, 1, _FILE, "the file")
    if "cases" not in shared:
        raise EvalError("it has no cases", "Write `cases:` and a list of them", home.path, 1)
    # Once for all cases: a fault in it is told once.
    policy, model, tags = shared.policy("yolo"), shared.text("model"), shared.texts("tags")
    common = _Common(_skills(shared, home), _code_skills(shared, home), shared.text("skill"), policy, model, tags)
    cases, faults = [], []
    for item, line in shared.items("cases"):
        try:
            cases.append(_case(item, line, common, home))
        except EvalError as fault:
            faults.append(_placed(fault, home.path, line))
    return cases, faults


def holds_cases(path: str, *, anywhere: bool) -> bool:
    """Whether a YAML file is meant as one of cases: others lie beside them; `anywhere`, of all kinds."""
    value = parse_yaml(read_text(path), path)
    cases = value.get("cases") if isinstance(value, Table) else value
    if anywhere:
        return isinstance(cases, Row) and any(isinstance(one, Table) and _SAID & one.keys() for one in cases)
    return isinstance(value, Row) or (isinstance(value, Table) and "cases" in value)


def _case(item: Any, line: int, common: _Common, home: Home) -> Case:
    fields = Fields(item, home.path, line, _CASE, "the case")
    name = fields.text("name").strip()
    if not name:
        raise fields.fault("name", "the case has no name", "Write `name:` with a few words; reports show it")
    skills = _skills(fields, home) or common.skills or ((home.folder,) if home.folder else ())
    code_skills = _code_skills(fields, home) or common.code_skills
    skill = fields.text("skill") or common.skill or home.skill or _only_skill(skills, code_skills, home)
    should = fields.flag("should_trigger")
    return Case(
        name,
        _turns(fields),
        skill=skill,
        should_trigger=should,
        files=_files(fields, home),
        skills=skills,
        code_skills=code_skills,
        script=_script(fields),
        policy=fields.policy(common.policy),
        tags=(*common.tags, *fields.texts("tags")),
        location=f"{home.path}:{line}",
        model=fields.text("model") or common.model,
        checks=_checks(fields, home, skill, should),
    )


def _skills(fields: Fields, home: Home) -> tuple[str, ...]:
    try:
        return folders_of(fields.texts("skills"), home)
    except EvalError as fault:
        raise fields.fault("skills", fault.problem, fault.fix) from None


def _code_skills(fields: Fields, home: Home) -> tuple[str, ...]:
    names = fields.texts("code_skills")
    if home.listing:
        return names
    try:
        code_source(names)
    except EvalError as fault:
        raise fields.fault("code_skills", fault.problem, fault.fix) from None
    return names


def _only_skill(skills: tuple[str, ...], code_skills: tuple[str, ...], home: Home) -> str:
    """Return the skill under test if the shelf has no other; in a listing, a code skill by the name of its class."""
    if home.listing and len(code_skills) == 1 and not skills:
        return code_skills[0]
    return only_skill(skills, code_skills)


def _turns(fields: Fields) -> tuple[Message | Edit, ...]:
    if ("prompt" in fields) == ("turns" in fields):
        raise fields.fault("prompt", "a case has either `prompt` or `turns`", "Write one of them")
    if "prompt" in fields:
        return (_message(fields.text("prompt")),)
    turns: list[Message | Edit] = []
    for item, line in fields.items("turns"):
        try:
            turns += _turn(item)
        except EvalError as fault:
            raise _placed(fault, fields.path, line) from None
    if not any(isinstance(turn, Message) for turn in turns):
        raise fields.fault("turns", "nothing is said in `turns`", "Write at least one text")
    return tuple(turns)


def _turn(item: Any) -> list[Message | Edit]:
    if isinstance(item, str):
        return [_message(item)]
    match item:
        case {"write": Mapping() as files, **rest} if not rest and files:
            return [Edit(workspace_path(path), _text(text)) for path, text in files.items()]
        case {"remove": str(path), **rest} if not rest:
            return [Edit(workspace_path(path), None)]
    raise EvalError("this is no turn", "It is a text, {write: {path: text}} or {remove: path}")


def _message(text: str) -> Message:
    if not text.strip():
        raise EvalError("a message is blank", "Write what the person says")
    return Message(text)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise EvalError(f"the text of a file is {value!r:.60}", "It must be text: put it in quotes")
    return value


def _files(fields: Fields, home: Home) -> Mapping[str, bytes]:
    table = fields.table.get("files")
    if table is None:
        return {}
    if not isinstance(table, Table):
        raise fields.fault("files", f"`files` is {table!r:.60}", "It is a mapping: `path: text` or `path: {from: …}`")
    files: dict[str, bytes] = {}
    for path, value in table.items():
        try:
            match value:
                case {"from": str(source), **rest} if not rest:
                    files |= copied(home, source, path)
                case _:
                    files[workspace_path(path)] = _text(value).encode("utf-8", "surrogatepass")
        except EvalError as fault:
            raise EvalError(fault.problem, fault.fix, fields.path, table.at(path)) from None
    return bounded(files)


def _script(fields: Fields) -> tuple[Any, ...] | None:
    if "script" not in fields:
        return None
    found: list[Any] = []
    for item, line in fields.items("script"):
        try:
            found.append(steps(item))
        except EvalError as fault:
            raise _placed(fault, fields.path, line) from None
    return tuple(found)


def _checks(fields: Fields, home: Home, skill: str, should: bool | None) -> tuple[Check, ...]:
    try:
        checks = list(trigger(skill, should))
    except EvalError as fault:
        raise fields.fault("should_trigger", fault.problem, fault.fix) from None
    for item, line in fields.items("checks"):
        try:
            checks.append(_check(item, home, skill))
        except EvalError as fault:
            raise _placed(fault, fields.path, line) from None
    if not checks:
        raise fields.fault("checks", "the case checks nothing", "Write `checks:`, or `should_trigger:`")
    return tuple(checks)


def _check(item: Any, home: Home, skill: str) -> Check:
    if isinstance(item, str):
        item = {item: None}
    if not isinstance(item, Mapping) or len(item) != 1:
        raise EvalError(f"{item!r:.60} is no check", "Write `- name: argument`, one to a line")
    [(name, argument)] = item.items()
    if home.listing and _is_registered(name, argument, home.listing):
        return not_evaluated(name)
    return from_config(name, argument, Context(skill, home.base, home.root))


def _is_registered(name: str, argument: Any, listing: Listing) -> bool:
    """True for a check that a file of Python would add if it was run."""
    if name == "not" and isinstance(argument, str):
        return argument in listing.checks
    if name == "not" and isinstance(argument, Mapping):
        return any(inner in listing.checks for inner in argument)
    return name in listing.checks


def _placed(fault: EvalError, path: str, line: int) -> EvalError:
    """The fault with the nearest line that is known."""
    return fault if fault.line else EvalError(fault.problem, fault.fix, path, line)
