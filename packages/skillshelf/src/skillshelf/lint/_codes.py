"""The code of every diagnostic with its meaning, for `skillshelf check`, SARIF and the documentation."""

from skillshelf.skillmd import READING

FORMAT = {
    "allowed-tools-form": "`allowed-tools` is a list or has commas; strict mode accepts only spaces",
    "compatibility-empty": "`compatibility` is there but empty; reported in strict mode",
    "compatibility-too-long": "`compatibility` has more than 500 characters",
    "field-extension": "skillshelf reads a field that the open format does not know",
    "field-known": "other hosts or tools use a field that the open format does not know",
    "hidden-in-instructions": "the instructions have invisible characters",
    "instructions-missing": "there are no instructions below the frontmatter",
    "instructions-too-long": "the instructions have more than 5,000 tokens or 500 lines; code skills, too",
    "mcp-withheld": "strict MCP hosts refuse the skill's entry, so `skillshelf serve` leaves it out of `skills/list`",
    "metadata-not-text": "`metadata` has a value that is not text; reported in strict mode",
    "name-characters": "the name has characters other than letters, digits and hyphens",
    "name-hyphens": "the name begins or ends with a hyphen, or has two in a row",
    "name-lookalike": "the name looks like a plain one but is spelled with other letters",
    "name-mismatch": "the name differs from the folder's name",
    "name-not-ascii": "the name has letters outside a-z",
    "name-reserved": "the name is a command of skillshelf or a device name of Windows",
    "name-too-long": "the name has more than 64 characters",
    "name-uppercase": "the name has capital letters",
    "skills-api-refused": "the Skills API of Claude refuses the name or the description, which the open format allows",
    "template-text": "a sentence of the template of `skillshelf new` is still in a file of the skill",
    "unexpected-fields": "the frontmatter has top-level fields that neither the open format nor any host knows",
}
"""The rules of the open format, which only a check applies."""

REFERENCES = {
    "check-stopped": "a skill has more text than a check reads",
    "filename-refused": "a file is not offered because of its name",
    "markdown-invalid": "a Markdown file is not text, has an unclosed code fence, or links to a missing file",
    "python-invalid": "the Python that runs the check cannot parse a Python file; the message names its version",
    "reference-missing": "a listed reference does not exist",
    "reference-refused": "a reference is a link or special file, or its listed path leaves the skill's folder",
    "reference-too-large": "a reference is larger than one load returns, so its content is not checked",
    "reference-unlisted": "a file under references/ is not on the skill's list",
    "reference-unnamed": "neither the instructions nor a file they lead to names a reference",
    "reference-unreadable": "a reference cannot be read",
}
"""Reported about the references of a skill."""

FINDING = {
    "crowded": "the descriptions of a folder's skills do not fit into a listing",
    "folder-unreadable": "a folder cannot be opened and is left out",
    "hard-link": "a SKILL.md has other hard links, through which it can change",
    "ignore-unreadable": "the ignore file cannot be read",
    "index-unwritable": "the scan cache cannot be written",
    "kept-last-good": "a SKILL.md is broken now; its last good version stays in use",
    "link-broken": "the target of a symlink does not exist",
    "link-outside": "a symlink points outside the folder and is not followed",
    "listing-shortened": "the listing does not show every skill in full",
    "lock-mismatch": "an installed skill is not as `skills.lock` pins it",
    "lock-unusable": "the file `skills.lock` is damaged, has conflict markers, or is from a newer version",
    "more-faults": "further faults with the same code are not listed",
    "name-twin": "two skills have names that look alike",
    "nested-skill": "a SKILL.md inside another skill's folder is not a second skill, nor is its folder offered",
    "no-skill": "no skill was found in the folder or package to check",
    "not-a-folder": "the path to check is not a folder",
    "other-mount": "a folder is on another mount and is not entered",
    "path-missing": "the path to check does not exist",
    "record-mismatch": "a file of an installed package is not as the package installed it, so its skill is not used",
    "root-missing": "the folder of a source does not exist",
    "root-unreadable": "the folder of a source cannot be opened",
    "shadowed": "another skill of the same name comes first",
    "skill-file-missing": "the folder has no SKILL.md",
    "skill-file-case": "a file name differs from SKILL.md only in case, so the file is not read as a skill",
    "skill-file-twin": "the folder has a SKILL.md and a file whose name differs only in case",
    "skill-misplaced": "a wheel has a SKILL.md where users of the package do not get it",
    "skill-file-unreadable": "the SKILL.md is a link, a folder or a special file, or cannot be opened",
    "too-deep": "folders are nested too deep to be searched",
    "too-many-files": "a skill has more files or bytes than the format allows; the rest is not offered",
    "too-many-folders": "there are more folders than a search visits",
}
"""Reported while searching for skills, and about all of them together."""

CODE_SKILLS = {
    "guidance-inline": "a code skill without references has more than two paragraphs of instructions",
    "import-failed": "a module with code skills cannot be imported",
    "invalid-entry-point": "an entry point names neither a package nor a skill class",
    "invalid-skill": "a skill class breaks a rule",
    "package-unchecked": "the folder to check holds code skills only, and those are checked by `check --package`",
    "tool-returns-bytes": "a tool returns bytes, which a model cannot read",
    "tool-taken": "a tool has the name of another skill's tool or of the host's, so the model does not have it",
    "tool-unmarked": "a public method of a skill class is not marked as a tool",
    "tools-missing": "a skill of a package could not be constructed, so the model does not have its tools",
}
"""Reported about skills written in Python."""

EVALS = {
    "case-invalid": "a case of an eval file is invalid",
    "case-missed": "a case did not pass; its checks say why",
    "case-note": "a field of an eval file is not checked, or understood in a certain way",
    "case-twice": "two cases of a skill have the same name",
    "coverage-gap": "no case ever loaded a reference, a section or a skill",
    "no-cases": "an eval file contains no cases",
    "not-tried": "a case could not be run: the provider, a recording or a file failed",
    "reference-missed": "a case expected a reference that was not loaded",
    "trigger-false": "a skill was loaded for a query it should not be loaded for",
    "trigger-missed": "a skill was not loaded for a query it should be loaded for",
}
"""Reported about eval cases, and by them."""

CODES = READING | FORMAT | REFERENCES | FINDING | CODE_SKILLS | EVALS
