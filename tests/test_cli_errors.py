"""With --json, every error is a JSON object on standard output, and nothing else is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf import errors
from skillshelf.cli._errors import find_code

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "code"),
    [
        (("show", "nope"), 1, "skill-not-found"),
        (("show", "skill-authoring", "nope.md"), 1, "reference-not-allowed"),
        (("lst",), 2, "wrong-use"),
        (("list", "--nonsense"), 2, "wrong-use"),
        (("search",), 2, "wrong-use"),
        (("show", "--prompt", "--budget", "many"), 2, "settings"),
        (("check", "--format", "sarif"), 2, "wrong-use"),
        (("check", "--hosts"), 2, "no-skills"),
        (("check", "--hosts", "."), 2, "no-skills"),
        (("check", "--overlap", "nowhere"), 2, "wrong-use"),
        (("completion", "bash"), 2, "wrong-use"),
        (("list", "-C", "nowhere"), 2, "source"),
        (("-C", "nowhere"), 2, "source"),
        (("new", "Bad Name"), 2, "invalid-name"),
        (("new", "taken", "--in", "."), 1, "already-exists"),
        (("trust", "--revoke"), 2, "wrong-use"),
        (("trust", "--yes", "nope"), 1, "skill-not-found"),
        (("eval", "list"), 2, "no-cases"),
        (("eval", "nowhere"), 2, "eval"),
    ],
)
def test_an_error_with_json_is_an_object_with_a_code_and_a_message(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], exit_code: int, code: str
) -> None:
    """The exit code is the one without --json."""
    (tmp_path / "taken").mkdir()
    plain_exit_code, plain_out, complaint = run(*arguments)
    json_exit_code, out, json_complaint = run(*arguments, "--json")
    error = json.loads(out)["error"]
    assert list(json.loads(out)) == ["error"]
    assert (json_exit_code, json_complaint) == (exit_code, "")
    assert error["code"] == code
    assert error["message"]
    if "--format" not in arguments and "completion" not in arguments:  # those are mistakes with --json only
        assert (plain_exit_code, plain_out) == (exit_code, "")
        assert error["message"] in complaint
        assert error.get("hint", "") in complaint


def test_an_unknown_skill_comes_with_the_closest_names(run: Run, write: Callable[..., Path]) -> None:
    write("pdf-forms")
    error = json.loads(run("show", "pdf-form", "--json")[1])["error"]
    assert error["closest"] == ["pdf-forms"]
    assert error["hint"].startswith("Did you mean 'pdf-forms'?")


def test_a_chat_that_cannot_start_ends_its_stream_with_an_error_event(run: Run) -> None:
    code, out, _ = run("chat", "--json", "-p", "hello", "--policy", "nonsense")
    [event] = map(json.loads, out.splitlines())
    assert code == 2
    assert (event["event"], event["code"]) == ("error", "settings")


def test_eval_names_the_folders_that_wait_for_review(run: Run, write: Callable[..., Path]) -> None:
    write("pdf", evals__cases_yaml="cases:\n  - name: a\n    prompt: b\n    script: [c]\n")
    code, out, _ = run("eval", "--json")
    error = json.loads(out)["error"]
    assert (code, error["code"]) == (2, "not-approved")
    assert [(item["name"], item["status"]) for item in error["pending"]] == [("pdf", "new")]


def test_each_error_class_has_a_code_of_its_own() -> None:
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.SkillError)]
    codes = [find_code(cls.__new__(cls)) for cls in classes]
    assert len(set(codes)) == len(codes) > 15
    assert all(code.replace("-", "").islower() for code in codes)
