"""Cases in YAML.

    skills: [..]              # folders, relative to this file; a skill's own evals need none
    code_skills: []           # `my_company.skills.rag.skill:RagSkill`
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

A file may set for all of its cases: `skills`, `code_skills`, `skill` (the one under test; in a skill's `evals/`, that
skill), `policy`, `model`, `tags`. A case may set the same, and has a `name` and

- `prompt`, or `turns`: texts, and between them `{write: {path: text}}` or `{remove: path}`, by another program;
- `files`: the workspace, `path: text` or `path: {from: …}` with a file or folder below the skill's, or the suite's;
- `script`: steps of a scripted model: texts, `{tool: …, arguments: {…}}`, `{fail: …, after: …}`, and lists of them;
- `should_trigger`: true or false, which is a check of its own;
- `checks`: `name`, `name: argument`, `name: {key: argument}`, or `not:` and one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Edit, Message, make_code_source
from skillshelf.evals._folders import check_workspace_path
from skillshelf.evals.check import CaseContext, Check, from_config, trigger
from skillshelf.evals.formats._document import Fields, YamlList, YamlMapping, parse_document, read_text, show_value
from skillshelf.evals.formats._home import (
    CaseListing,
    Home,
    check_size,
    copy_files,
    find_only_skill,
    resolve_skill_folders,
)
from skillshelf.evals.formats._python import make_listed_check

if TYPE_CHECKING:
    from skillshelf.agent import Fail, ScriptedCall

_SHARED_KEYS = ("skill", "skills", "code_skills", "policy", "model", "tags")
_FILE_KEYS = (*_SHARED_KEYS, "cases")
_CASE_KEYS = ("name", "prompt", "turns", "files", "script", "should_trigger", "checks", *_SHARED_KEYS)
_MESSAGE_KEYS = {"prompt", "turns"}
_HOW_TO_WRITE_A_STEP = "Write a text, {tool: …, arguments: {…}}, {fail: …, after: …}, or a list of them"


@dataclass(frozen=True, slots=True)
class _Shared:
    """The values that a file sets for all of its cases."""

    skills: tuple[str, ...]
    code_skills: tuple[str, ...]
    skill: str
    policy: str
    model: str
    tags: tuple[str, ...]


def read_yaml(home: Home) -> tuple[list[Case], list[EvalError]]:
    """Return the cases of a file, and the faults in those that cannot be read.

    Raises EvalError if nothing of the file can be read.
    """
    value = parse_document(read_text(home.path), home.path)
    if isinstance(value, YamlList):
        mapping = YamlMapping(1)
        mapping["cases"] = value
        value = mapping

    fields = Fields(value, home.path, 1, _FILE_KEYS, "the file")
    if "cases" not in fields:
        raise EvalError("it has no cases", "Write `cases:` and a list of them", home.path, 1)

    # Read once for all cases, so that a fault is reported once.
    shared = _Shared(
        skills=_read_skills(fields, home),
        code_skills=_read_code_skills(fields, home),
        skill=fields.text("skill"),
        policy=fields.policy("yolo"),
        model=fields.text("model"),
        tags=fields.texts("tags"),
    )
    cases = []
    faults = []
    for item, line in fields.items("cases"):
        try:
            cases.append(_read_case(item, line, shared, home))
        except EvalError as fault:
            faults.append(_with_line(fault, home.path, line))

    return cases, faults


def holds_cases(path: str, *, anywhere: bool) -> bool:
    """True if a YAML file is meant to hold cases. `anywhere` says that files of all kinds may lie beside it."""
    value = parse_document(read_text(path), path)
    cases = value.get("cases") if isinstance(value, YamlMapping) else value
    if anywhere:
        items = cases if isinstance(cases, YamlList) else ()
        return any(isinstance(item, YamlMapping) and _MESSAGE_KEYS & item.keys() for item in items)
    return isinstance(value, YamlList) or (isinstance(value, YamlMapping) and "cases" in value)


def _read_case(item: Any, line: int, shared: _Shared, home: Home) -> Case:
    fields = Fields(item, home.path, line, _CASE_KEYS, "the case")
    name = fields.text("name").strip()
    if not name:
        raise fields.fault("name", "the case has no name", "Write `name:` with a few words; reports show it")

    skills = _read_skills(fields, home) or shared.skills
    if not skills and home.folder:
        skills = (home.folder,)
    code_skills = _read_code_skills(fields, home) or shared.code_skills
    skill = fields.text("skill") or shared.skill or home.skill or _find_only_skill(skills, code_skills, home)
    should_trigger = fields.flag("should_trigger")
    case = Case(
        name=name,
        turns=_read_turns(fields),
        skill=skill,
        should_trigger=should_trigger,
        files=_read_files(fields, home),
        skills=skills,
        code_skills=code_skills,
        script=_read_script(fields),
        policy=fields.policy(shared.policy),
        tags=(*shared.tags, *fields.texts("tags")),
        location=f"{home.path}:{line}",
        model=fields.text("model") or shared.model,
    )
    return replace(case, checks=_read_checks(fields, home, case))


def _read_skills(fields: Fields, home: Home) -> tuple[str, ...]:
    try:
        return resolve_skill_folders(fields.texts("skills"), home)
    except EvalError as fault:
        raise fields.fault("skills", fault.problem, fault.fix) from None


def _read_code_skills(fields: Fields, home: Home) -> tuple[str, ...]:
    names = fields.texts("code_skills")
    if home.listing:
        return names
    try:
        make_code_source(names)
    except EvalError as fault:
        raise fields.fault("code_skills", fault.problem, fault.fix) from None
    return names


def _find_only_skill(skills: tuple[str, ...], code_skills: tuple[str, ...], home: Home) -> str:
    """Return the skill under test if the shelf has no other. In a listing, a code skill goes by its class."""
    if home.listing and len(code_skills) == 1 and not skills:
        return code_skills[0]
    return find_only_skill(skills, code_skills)


def _read_turns(fields: Fields) -> tuple[Message | Edit, ...]:
    if ("prompt" in fields) == ("turns" in fields):
        raise fields.fault("prompt", "a case has either `prompt` or `turns`", "Write one of them")
    if "prompt" in fields:
        return (_make_message(fields.text("prompt")),)

    turns: list[Message | Edit] = []
    for item, line in fields.items("turns"):
        try:
            turns += _read_turn(item)
        except EvalError as fault:
            raise _with_line(fault, fields.path, line) from None

    if not any(isinstance(turn, Message) for turn in turns):
        raise fields.fault("turns", "`turns` has no message", "Write at least one text")
    return tuple(turns)


def _read_turn(item: Any) -> list[Message | Edit]:
    match item:
        case str():
            return [_make_message(item)]
        case {"write": Mapping() as files, **rest} if not rest and files:
            return [Edit(check_workspace_path(path), _check_text(text)) for path, text in files.items()]
        case {"remove": str(path), **rest} if not rest:
            return [Edit(check_workspace_path(path), None)]
    raise EvalError("this is not a turn", "Write a text, {write: {path: text}} or {remove: path}")


def _make_message(text: str) -> Message:
    if not text.strip():
        raise EvalError("a message is blank", "Write what the user says")
    return Message(text)


def _check_text(value: Any) -> str:
    if not isinstance(value, str):
        raise EvalError(f"the text of a file is {show_value(value)}", "It must be text: put it in quotes")
    return value


def _read_files(fields: Fields, home: Home) -> Mapping[str, bytes]:
    written = fields.mapping.get("files")
    if written is None:
        return {}
    if not isinstance(written, YamlMapping):
        problem = f"`files` is {show_value(written)}"
        raise fields.fault("files", problem, "It must be a mapping: `path: text` or `path: {from: …}`")

    files: dict[str, bytes] = {}
    for path, value in written.items():
        try:
            match value:
                case {"from": str(source), **rest} if not rest:
                    files |= copy_files(home, source, path)
                case _:
                    files[check_workspace_path(path)] = _check_text(value).encode("utf-8", "surrogatepass")
        except EvalError as fault:
            raise EvalError(fault.problem, fault.fix, fields.path, written.line_of(path)) from None

    return check_size(files)


def _read_script(fields: Fields) -> tuple[Any, ...] | None:
    if "script" not in fields:
        return None
    steps: list[Any] = []
    for item, line in fields.items("script"):
        try:
            if isinstance(item, list):  # several things that the model says at once
                steps.append([_read_step(part) for part in item])
            else:
                steps.append(_read_step(item))
        except EvalError as fault:
            raise _with_line(fault, fields.path, line) from None

    return tuple(steps)


def _read_step(value: Any) -> str | ScriptedCall | Fail:
    from skillshelf.agent import (  # they come with the model's libraries, which other cases do not need
        Fail,
        ScriptedCall,
    )

    match value:
        case str():
            return value
        case {"tool": str(tool), **rest} if rest.keys() <= {"arguments"}:
            arguments = rest.get("arguments") or {}
            if isinstance(arguments, dict):
                return ScriptedCall(tool, dict(arguments))
        case {"fail": str(message), **rest} if rest.keys() <= {"after"}:
            return Fail(ConnectionError(message), str(rest.get("after") or ""))
    raise EvalError(f"{show_value(value)} is not a step of a script", _HOW_TO_WRITE_A_STEP)


def _read_checks(fields: Fields, home: Home, case: Case) -> tuple[Check, ...]:
    try:
        checks = list(trigger(case.skill, case.should_trigger))
    except EvalError as fault:
        raise fields.fault("should_trigger", fault.problem, fault.fix) from None

    shelf = home.read_shelf(case)
    if shelf and case.skill:
        try:
            shelf.check_skill(case.skill)
        except EvalError as fault:
            raise fields.fault("skill", fault.problem, fault.fix) from None

    for item, line in fields.items("checks"):
        try:
            check = _read_check(item, home, case.skill)
            if shelf:
                shelf.check_subject(check)
            checks.append(check)
        except EvalError as fault:
            raise _with_line(fault, fields.path, line) from None

    if not checks:
        raise fields.fault("checks", "the case checks nothing", "Write `checks:`, or `should_trigger:`")
    return tuple(checks)


def _read_check(item: Any, home: Home, skill: str) -> Check:
    if isinstance(item, str):
        item = {item: None}
    if not isinstance(item, Mapping) or len(item) != 1:
        raise EvalError(f"{show_value(item)} is not a check", "Write `- name: argument`, one to a line")
    [(name, argument)] = item.items()
    if home.listing and _is_registered(name, argument, home.listing):
        return make_listed_check(name)
    return from_config(name, argument, CaseContext(skill, home.base, home.root))


def _is_registered(name: str, argument: Any, listing: CaseListing) -> bool:
    """True for a check that a Python file would register if it was run."""
    if name == "not" and isinstance(argument, str):
        return argument in listing.checks
    if name == "not" and isinstance(argument, Mapping):
        return any(inner in listing.checks for inner in argument)
    return name in listing.checks


def _with_line(fault: EvalError, path: str, line: int) -> EvalError:
    """Return the fault with a line, if it has none of its own."""
    return fault if fault.line else EvalError(fault.problem, fault.fix, path, line)
