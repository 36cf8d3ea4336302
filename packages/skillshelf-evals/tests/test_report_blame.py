"""Annotations: each miss on the line where it can be fixed."""

from dataclasses import replace
from pathlib import Path

import pytest

from run_kit import TEXTS, case, result, run_of, sample, scripted_case
from skillshelf.cli._diagnostics import github_annotation
from skillshelf.skills import Diagnostic
from skillshelf_evals import Check, Run, Verdict, check
from skillshelf_evals.report import Gates, annotate, judge_run, summarize
from skillshelf_evals.report._annotations import SkillLines

SKILL = """\
---
name: pdf
description: Does it.
---

# How

Never load forms.md.bak.
Load references/forms.md.
"""


@pytest.fixture
def skill(tmp_path: Path) -> str:
    (tmp_path / "SKILL.md").write_text(SKILL)
    return str(tmp_path / "SKILL.md")


def missed(*checks: Check, skills: dict[str, str], name: str = "fill") -> Run:
    """Return a replayed run with one trial in which these checks did not hold."""
    run = replace(run_of({case(name): ("m",)}, skills=skills), replayed=True)
    failed = tuple(result(made, Verdict(False, "none")) for made in checks)
    return replace(run, outcomes=(replace(run.outcomes[0], checks=failed),))


def places(run: Run) -> list[tuple[str, str, int]]:
    return [(note.code, note.path, note.line) for note in annotate(summarize(run))]


def test_annotations_are_on_the_lines_that_can_be_mended(skill: str) -> None:
    """A missed trigger is on `description:`, a case that was not followed on the instructions, and gaps are notes."""
    notes = annotate(summarize(replace(sample(skill), replayed=True), TEXTS))
    assert [(note.severity, note.code, note.path, note.line) for note in notes] == [
        ("error", "trigger-missed", skill, 3),
        ("error", "trigger-false", skill, 3),
        ("error", "case-missed", skill, 6),
        ("warning", "not-tried", "skills/pdf/evals/cases.yaml", 7),
        ("info", "coverage-gap", skill, 1),
    ]
    assert notes[0].message == "not loaded when it should be: 'Fill in this form' (passed 0 of 3)"
    assert notes[2].message == (
        "not followed: pdf/merge (skills/pdf/evals/cases.yaml:7, passed 2 of 3): "
        "response_contains 'total': it is not there"
    )
    assert notes[3].message == "1 trial of pdf/split could not be completed: ModelHTTPError: 529 overloaded"
    assert github_annotation(notes[3]).startswith(
        "::warning file=skills/pdf/evals/cases.yaml,line=7,title=not-tried::1 trial of"
    )
    assert github_annotation(notes[4]).endswith("::no case loaded 1 of 2 references: references/b.md")


def test_misses_that_do_not_fail_the_run_are_notices(skill: str) -> None:
    """With a gate that failed, those that made it fail are errors, and so is the gate itself."""
    run = run_of({case("merge"): ("ppm",), scripted_case("fill"): ("p",)}, skills={"pdf": skill})
    [note] = annotate(summarize(run))
    assert (note.severity, note.code) == ("info", "case-missed")
    assert github_annotation(note).startswith("::notice ")
    gate, error = annotate(summarize(run), judge_run(summarize(run), Gates(fail_under=1.0)))
    assert (gate.severity, gate.code, gate.path) == ("error", "gate-failed", "")
    assert github_annotation(gate).startswith(
        "::error title=gate-failed::--fail-under 100%25: failed. The pass rate is"
    )
    assert error == replace(note, severity="error")


def test_a_trigger_of_another_skill_is_annotated_there(skill: str, tmp_path: Path) -> None:
    """If its file is not known, the annotation is on the case."""
    at_case = ("trigger-missed", "skills/pdf/evals/cases.yaml", 7)
    assert places(missed(check.skill_loaded("xlsx"), skills={"pdf": skill})) == [at_case]
    other = tmp_path / "other.md"
    other.write_text("---\nname: xlsx\nlicense: MIT\ndescription: Sheets.\n---\n\nDo.\n")
    assert places(missed(check.skill_loaded("xlsx"), skills={"pdf": skill, "xlsx": str(other)})) == [
        ("trigger-missed", str(other), 4)
    ]
    assert places(missed(~check.skill_loaded("xlsx"), skills={"xlsx": str(other)})) == [
        ("trigger-false", str(other), 4)
    ]


def test_a_missed_reference_is_annotated_on_the_line_that_names_it(skill: str) -> None:
    """The line names its path or its file name. Misses that follow from it are left out."""
    for reference, line in (("references/forms.md", 9), ("forms.md", 9), ("references/gone.md", 1), ("orms.md", 1)):
        run = missed(check.reference_loaded("pdf", reference), check.response_contains("x"), skills={"pdf": skill})
        assert places(run) == [("reference-missed", skill, line)]


def test_a_missed_trigger_hides_the_misses_that_follow_from_it(skill: str) -> None:
    checks = (check.skill_loaded("pdf"), check.reference_loaded("pdf", "a.md"), check.file_contains("a.txt", "x"))
    run = missed(*checks, skills={"pdf": skill})
    assert places(run) == [("trigger-missed", skill, 3)]


def test_cases_of_one_cause_share_an_annotation(skill: str) -> None:
    """GitHub shows only ten of a kind."""
    notes = annotate(summarize(run_of({case(f"c{at}"): ("m",) for at in range(7)}, skills={"pdf": skill})))
    assert len(notes) == 1
    assert notes[0].message.endswith(": it is not there and 2 more")


def test_without_a_skill_file_each_case_gets_an_annotation() -> None:
    notes = annotate(summarize(missed(check.tool_called("x"), check.file_unchanged("a"), skills={})))
    assert notes == (
        Diagnostic(
            "error",
            "case-missed",
            "pdf/fill passed 0 of 1: tool_called x: none; file_unchanged a: none",
            "skills/pdf/evals/cases.yaml",
            7,
        ),
    )


def test_a_skill_file_that_is_gone_is_annotated_on_line_one() -> None:
    assert {note.line for note in annotate(summarize(sample("gone/SKILL.md"))) if note.path == "gone/SKILL.md"} == {1}


def test_a_code_skill_is_annotated_in_its_class(tmp_path: Path) -> None:
    module = tmp_path / "skill.py"
    module.write_text(
        "class Other(BaseSkill):\n"
        '    name = "other"\n'
        '    description = "Else."\n'
        "\n"
        "class Pdf(BaseSkill):\n"
        '    name: ClassVar[str] = "pdf"\n'
        '    description = "Does it."\n'
        '    instructions = "Load forms.md."\n'
    )
    lines = SkillLines(str(module), "pdf")
    assert (lines.description, lines.instructions, lines.find_reference("references/forms.md")) == (7, 8, 8)
    assert SkillLines(str(module), "unknown").description == 3
    module.write_text("class Pdf(:\n")
    assert (SkillLines(str(module), "pdf").description, SkillLines(str(module), "pdf").instructions) == (1, 1)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("\ufeff---\nname: pdf\ndescription: >\n  Long.\n---\n\n\n# Body\n", (3, 8)),
        ("---\r\nname: pdf\r\n'description' : x\r\n---\r\nBody\r\n", (3, 5)),
        ("No frontmatter.\n\ndescription: not one\n", (1, 1)),
        ("", (1, 1)),
        ("\0", (1, 1)),
    ],
)
def test_lines_are_found_in_unusual_files(tmp_path: Path, text: str, lines: tuple[int, int]) -> None:
    """With a byte order mark, CRLF, a block of text, and the word in the body."""
    path = tmp_path / "SKILL.md"
    path.write_bytes(text.encode())
    found = SkillLines(str(path), "pdf")
    assert (found.description, found.instructions) == lines
