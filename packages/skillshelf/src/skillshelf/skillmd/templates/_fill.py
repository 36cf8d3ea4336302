"""Fill in templates, and find in files the sentences that they leave to the author.

The templates are the only list of these sentences: `<<Say what it does.>>` in a template is written to the file without
the marks, and the same sentence is what a check looks for.
"""

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import Template

from skillshelf._version import __version__
from skillshelf.skillmd.templates import _texts

_MARKED = re.compile(r"<<(.+?)>>")


@dataclass(frozen=True, slots=True)
class TemplateSentence:
    """A sentence of a template, for the author to replace, that is still in a file."""

    text: str
    line: int


def find_template_sentences(data: bytes) -> Iterator[TemplateSentence]:
    """Yield the sentences of templates that the content of a file still has, even with other line breaks."""
    words = b" ".join(data.split())
    for sentence in _list_sentences():
        if sentence.encode() not in words:
            continue
        match = re.search(rb"\s+".join(re.escape(word.encode()) for word in sentence.split()), data)
        if match:
            yield TemplateSentence(sentence, data.count(b"\n", 0, match.start()) + 1)


@cache
def _list_sentences() -> tuple[str, ...]:
    templates = (*_texts.SKILL.values(), *_texts.CODE_SKILL.values(), *_texts.PROJECT.values())
    sentences = [sentence for template in templates for sentence in _MARKED.findall(template)]
    return tuple(dict.fromkeys(sentences))


def fill_skill(name: str) -> dict[str, str]:
    """Return the files of a new skill with a SKILL.md, by their path in its folder."""
    return _fill_all(_texts.SKILL, {"name": name, "title": _make_title(name)})


def fill_code_skill(name: str) -> dict[str, str]:
    """Return the files of a new code skill, by their path in its subpackage."""
    return _fill_all(_texts.CODE_SKILL, _name_parts(name))


def module_name(skill: str) -> str:
    """Return the name of the subpackage for a code skill."""
    module = skill.replace("-", "_")
    if module.isidentifier() and not keyword.iskeyword(module):
        return module
    return f"skill_{module}"


def fill_project(package: str, names: Sequence[str]) -> dict[str, str]:
    """Return the files of a new project with a package of code skills, by their path in the project's folder."""
    skills = [_name_parts(name) | {"package": package} for name in names]
    fields = {
        "package": package,
        "distribution": package.replace("_", "-"),
        "version": __version__,
        "imports": "\n".join(_fill(_texts.TEST_IMPORT, skill) for skill in skills),
        "tests": "\n\n\n".join(_fill(_texts.TEST, skill) for skill in skills),
        "cases": "".join(_fill(_texts.CASE, skill) for skill in skills),
        "skills": "\n".join(_fill(_texts.README_ENTRY, skill) for skill in skills),
    }
    files = _fill_all(_texts.PROJECT, fields)
    files[f"src/{package}/__init__.py"] = ""
    for name in names:
        for path, text in fill_code_skill(name).items():
            files[f"src/{package}/{module_name(name)}/{path}"] = text
    return files


def _fill_all(templates: Mapping[str, str], fields: Mapping[str, str]) -> dict[str, str]:
    return {path: _fill(template, fields) for path, template in templates.items()}


def _fill(template: str, fields: Mapping[str, str]) -> str:
    unmarked = _MARKED.sub(r"\1", template)
    return Template(unmarked).substitute(fields)


def _name_parts(name: str) -> dict[str, str]:
    """Return the names that a code skill has in its files."""
    class_name = "".join(word.capitalize() for word in name.split("-"))
    if not class_name[0].isalpha():
        class_name = f"A{class_name}"
    return {"name": name, "title": _make_title(name), "cls": f"{class_name}Skill", "module": module_name(name)}


def _make_title(name: str) -> str:
    return name.replace("-", " ").capitalize()
