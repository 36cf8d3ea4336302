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
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PlainValidator, StrictBool
from pydantic_core import PydanticCustomError

from skillshelf.errors import EvalError
from skillshelf.settings import Mode
from skillshelf_evals._case import Case, Edit, Message, make_code_source
from skillshelf_evals._folders import check_workspace_path
from skillshelf_evals._text import show_value
from skillshelf_evals.check import Check, from_config, trigger
from skillshelf_evals.formats._document import (
    DocumentModel,
    YamlEntry,
    YamlList,
    YamlMapping,
    parse_document,
    read_entry,
    read_text,
)
from skillshelf_evals.formats._home import (
    CaseListing,
    FileContent,
    Home,
    check_size,
    copy_from,
    find_only_skill,
    resolve_skill_folders,
)
from skillshelf_evals.formats._python import make_listed_check

if TYPE_CHECKING:
    from skillshelf_agent.testing import Fail, ScriptedCall

_MESSAGE_KEYS = {"prompt", "turns"}
_HOW_TO_WRITE_A_STEP = "Write a text, {tool: …, arguments: {…}}, {fail: …, after: …}, or a list of them"


def _read_texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts. A single text stands for a list of one."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise PydanticCustomError("texts", "It must be a list of texts")
    return tuple(texts)


Texts = Annotated[tuple[str, ...], PlainValidator(_read_texts)]


class SharedValues(DocumentModel):
    """The values that a file may set for all of its cases."""

    skill: str = ""
    skills: Texts = ()
    code_skills: Texts = ()
    policy: Mode | None = None
    model: str = ""
    tags: Texts = ()


class CaseFileValues(SharedValues):
    cases: list[Any] | None = None


class CaseValues(SharedValues):
    name: str = ""
    prompt: str = ""
    turns: list[Any] | None = None
    files: dict[str, Any] = Field(default_factory=dict)
    script: list[Any] | None = None
    should_trigger: StrictBool | None = None
    checks: list[Any] = Field(default_factory=list)


def read_yaml(home: Home) -> FileContent:
    """Return the cases of a file, and the faults in those that cannot be read.

    Raises EvalError if nothing of the file can be read.
    """
    value = parse_document(read_text(home.path), home.path)
    if isinstance(value, YamlList):
        mapping = YamlMapping(1)
        mapping["cases"] = value
        value = mapping

    file = read_entry(CaseFileValues, value, home.path, 1, "the file")
    if file.values.cases is None:
        raise EvalError("it has no cases", "Write `cases:` and a list of them", home.path, 1)

    # Read once for all cases, so that a fault is reported once.
    shared = file.values.model_copy(
        update={"skills": _read_skills(file, home), "code_skills": _read_code_skills(file, home)}
    )
    content = FileContent()
    for item, line in file.items("cases"):
        try:
            case = _read_case(item, line, shared, home, content)
        except EvalError as fault:
            content.add_fault(fault, home.path, line)
        else:
            content.cases += [case] if case else []
    return content


def holds_cases(path: str, *, anywhere: bool) -> bool:
    """True if a YAML file is meant to hold cases. `anywhere` says that files of all kinds may be beside it."""
    value = parse_document(read_text(path), path)
    cases = value.get("cases") if isinstance(value, YamlMapping) else value
    if anywhere:
        items = cases if isinstance(cases, YamlList) else ()
        return any(isinstance(item, YamlMapping) and _MESSAGE_KEYS & item.keys() for item in items)
    return isinstance(value, YamlList) or (isinstance(value, YamlMapping) and "cases" in value)


def _read_case(item: Any, line: int, shared: SharedValues, home: Home, content: FileContent) -> Case | None:
    """Return a case; None if checks of it are faulty, which are added to the content one by one."""
    entry = read_entry(CaseValues, item, home.path, line, "the case")
    values = entry.values
    if not values.name.strip():
        raise entry.fault("name", "the case has no name", "Write `name:` with a few words; reports show it")

    skills = _read_skills(entry, home) or shared.skills
    if not skills and home.folder:
        skills = (home.folder,)
    code_skills = _read_code_skills(entry, home) or shared.code_skills
    case = Case(
        name=values.name.strip(),
        turns=_read_turns(entry),
        skill=values.skill or shared.skill or home.skill or _find_only_skill(skills, code_skills, home),
        should_trigger=values.should_trigger,
        files=_read_files(entry, home),
        skills=skills,
        code_skills=code_skills,
        script=_read_script(entry),
        policy=values.policy or shared.policy or "yolo",
        tags=(*shared.tags, *values.tags),
        location=f"{home.path}:{line}",
        model=values.model or shared.model,
    )
    checks = _read_checks(entry, home, case, content)
    return None if checks is None else replace(case, checks=checks)


def _read_skills(entry: YamlEntry[Any], home: Home) -> tuple[str, ...]:
    try:
        return resolve_skill_folders(entry.values.skills, home)
    except EvalError as fault:
        raise entry.fault("skills", fault.problem, fault.fix) from None


def _read_code_skills(entry: YamlEntry[Any], home: Home) -> tuple[str, ...]:
    names: tuple[str, ...] = entry.values.code_skills
    if home.listing:
        return names
    try:
        make_code_source(names)
    except EvalError as fault:
        raise entry.fault("code_skills", fault.problem, fault.fix) from None
    return names


def _find_only_skill(skills: tuple[str, ...], code_skills: tuple[str, ...], home: Home) -> str:
    """Return the skill under test if the shelf has no other. In a listing, a code skill goes by its class."""
    if home.listing and len(code_skills) == 1 and not skills:
        return code_skills[0]
    return find_only_skill(skills, code_skills)


def _read_turns(entry: YamlEntry[CaseValues]) -> tuple[Message | Edit, ...]:
    if ("prompt" in entry) == ("turns" in entry):
        raise entry.fault("prompt", "a case has either `prompt` or `turns`", "Write one of them")
    if "prompt" in entry:
        return (_make_message(entry.values.prompt),)

    turns: list[Message | Edit] = []
    for item, line in entry.items("turns"):
        try:
            turns += _read_turn(item)
        except EvalError as fault:
            raise _with_line(fault, entry.path, line) from None

    if not any(isinstance(turn, Message) for turn in turns):
        raise entry.fault("turns", "`turns` has no message", "Write at least one text")
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


def _read_files(entry: YamlEntry[CaseValues], home: Home) -> Mapping[str, bytes]:
    files: dict[str, bytes] = {}
    for path, value in entry.values.files.items():
        try:
            match value:
                case {"from": str(source), **rest} if not rest:
                    files |= copy_from(home.root, home.base, source, path)
                case _:
                    files[check_workspace_path(path)] = _check_text(value).encode("utf-8", "surrogatepass")
        except EvalError as fault:
            raise EvalError(fault.problem, fault.fix, entry.path, entry.mapping["files"].line_of(path)) from None

    return check_size(files)


def _read_script(entry: YamlEntry[CaseValues]) -> tuple[Any, ...] | None:
    if entry.values.script is None:
        return None
    steps: list[Any] = []
    for item, line in entry.items("script"):
        try:
            steps.append(read_step(item))
        except EvalError as fault:
            raise _with_line(fault, entry.path, line) from None

    return tuple(steps)


def read_step(value: Any) -> str | ScriptedCall | Fail | list[Any]:
    """Return a step of a script; a list is what the model says at once. Raises EvalError."""
    if isinstance(value, list):
        return [_read_part(part) for part in value]
    return _read_part(value)


def _read_part(value: Any) -> str | ScriptedCall | Fail:
    # They come with the model's libraries, which other cases do not need.
    from skillshelf_agent.testing import Fail, ScriptedCall

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


def _read_checks(
    entry: YamlEntry[CaseValues], home: Home, case: Case, content: FileContent
) -> tuple[Check, ...] | None:
    try:
        checks = list(trigger(case.skill, case.should_trigger))
    except EvalError as fault:
        raise entry.fault("should_trigger", fault.problem, fault.fix) from None

    shelf = home.read_shelf(case)
    if shelf and case.skill:
        try:
            shelf.check_skill(case.skill)
        except EvalError as fault:
            raise entry.fault("skill", fault.problem, fault.fix) from None

    is_faulty = False
    for item, line in entry.items("checks"):
        try:
            check = _read_check(item, home, case.skill)
            if shelf:
                shelf.check_subject(check)
            checks.append(check)
        except EvalError as fault:
            content.add_fault(fault, entry.path, line)  # all of them, so that the author corrects them at once
            is_faulty = True

    if is_faulty:
        return None
    if not checks:
        raise entry.fault("checks", "the case checks nothing", "Write `checks:`, or `should_trigger:`")
    return tuple(checks)


def _read_check(item: Any, home: Home, skill: str) -> Check:
    if isinstance(item, str):
        item = {item: None}
    if not isinstance(item, Mapping) or len(item) != 1:
        raise EvalError(f"{show_value(item)} is not a check", "Write `- name: argument`, one to a line")
    [(name, argument)] = item.items()
    if home.listing and _is_registered(name, argument, home.listing):
        return make_listed_check(name)
    return from_config(name, argument, skill=skill, folder=home.base, root=home.root)


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
