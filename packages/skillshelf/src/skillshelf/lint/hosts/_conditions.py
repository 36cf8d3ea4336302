"""The conditions of a skill that hosts treat differently, in words, each with its fix."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """Something about a skill that hosts treat differently."""

    says: str
    fix: str = ""
    """Empty if every host loads such a skill."""


_VALID_NAME = "use 1 to 64 lowercase letters a-z, digits and single hyphens, for the folder too"
_ADD_NAME = "write `name:` with the folder's name"
_ADD_FRONTMATTER = "begin the file with `---`, the fields, and `---` again"
_ADD_DESCRIPTION = "say what the skill does and when to use it"
_ONE_LINE = "write it as one plain line, or in quotes without escapes"
_ADD_QUOTES = "put the value in quotes"
_OTHER_DASH = "use another dash"
_MOVE_TO_METADATA = "move them under `metadata:` if no host you use reads them"
_LEAVE_OUT = "give it a value, or leave it out"
_WRITE_AS_TEXT = "write each value as text on one line"
_KEEP_ONE = "keep one"
_MOVE_UP = "move it directly below `skills`, or point the host at the folder it is in"

CONDITIONS: dict[str, Condition] = {
    "allowed-tools-list": Condition("`allowed-tools` is a list", "write the tools on one line, separated by spaces"),
    "allowed-tools-text": Condition("`allowed-tools` is given", "leave it out if no host you use acts on it"),
    "block-on-one-line": Condition("text follows `>` or `|` on the same line", _ONE_LINE),
    "bom": Condition("the file begins with a byte order mark", "save it as UTF-8 without BOM"),
    "comment-cuts-value": Condition("the description has ` #`, which starts a comment in YAML", _ADD_QUOTES),
    "compatibility-list": Condition("`compatibility` is a list or a mapping", "write it as text on one line"),
    "compatibility-too-long": Condition("`compatibility` has more than 500 characters", "shorten it"),
    "cr-only": Condition("the lines end in CR alone", "save it with LF line endings"),
    "crlf": Condition("the lines end in CR LF"),
    "dashes-after": Condition("there is `---` in the frontmatter, after the description"),
    "dashes-break": Condition("there is `---` in the frontmatter, in quotes or before the description", _OTHER_DASH),
    "dashes-in-description": Condition("there is `---` in the description", _OTHER_DASH),
    "delimiter-spaces": Condition("a `---` line has spaces after it", "remove them"),
    "description-anchor": Condition("the description begins with an anchor or a tag (`&a`, `!!str`)", _ONE_LINE),
    "description-below": Condition("the description begins on the line below `description:`", _ONE_LINE),
    "description-block": Condition("the description is a block (`>` or `|`)"),
    "description-comment": Condition("a comment follows the quoted description", "move it to its own line"),
    "description-empty": Condition("the description is empty", _ADD_DESCRIPTION),
    "description-escaped": Condition("the description is quoted and has escapes", _ONE_LINE),
    "description-key-quoted": Condition("the word `description` is in quotes", "remove the quotes"),
    "description-markup": Condition("the description has `<` or `&`"),
    "description-missing": Condition("there is no description", _ADD_DESCRIPTION),
    "description-nothing": Condition("nothing follows `description:`", _ADD_DESCRIPTION),
    "description-quote-ends": Condition("the description begins and ends with a quoted word", _ONE_LINE),
    "description-quoted-lines": Condition("the description is quoted and continues on the next line", _ONE_LINE),
    "description-surrogates": Condition("the description has an emoji as two escapes (`\\ud83d\\ude80`)", _ONE_LINE),
    "description-too-long": Condition("the description has more than 1,024 characters", "shorten it to 1,024"),
    "description-unindented": Condition("the description continues on the next line without indentation", _ONE_LINE),
    "description-very-long": Condition("the description has more than 1,536 characters", "shorten it to 1,024"),
    "description-wrapped": Condition("the description continues on the next line"),
    "duplicate-field": Condition("a field of the format is given twice", _KEEP_ONE),
    "duplicate-key": Condition("a field that the format does not know is given twice", _KEEP_ONE),
    "duplicate-metadata": Condition("a key of `metadata` is given twice", _KEEP_ONE),
    "empty": Condition("the file is empty", _ADD_FRONTMATTER),
    "field-capitals": Condition("a field of the format is written with capital letters", "write it in lowercase"),
    "field-key": Condition("YAML reads the name of a field as a number or as yes or no", "put it in quotes"),
    "field-nothing": Condition("`license`, `compatibility` or `allowed-tools` has no value", _LEAVE_OUT),
    "field-number": Condition("YAML reads `license` or `compatibility` as a number or as yes or no", _ADD_QUOTES),
    "fields-behavior": Condition("it has fields that steer only some hosts, such as `model`", _MOVE_TO_METADATA),
    "fields-unknown": Condition("it has fields that the format does not know", _MOVE_TO_METADATA),
    "file-lowercase": Condition("the file is called `skill.md`", "call it `SKILL.md`"),
    "folder-linked": Condition("the skill's folder is a symlink", "put the folder itself there"),
    "folder-nested": Condition("the skill is more than one folder below `skills`", _MOVE_UP),
    "frontmatter-last": Condition("the file ends right after the closing `---`", "write instructions below it"),
    "frontmatter-missing": Condition("there is no frontmatter", _ADD_FRONTMATTER),
    "frontmatter-not-first": Condition("the frontmatter is not the first thing in the file", _ADD_FRONTMATTER),
    "frontmatter-unclosed": Condition("the frontmatter has no closing `---`", _ADD_FRONTMATTER),
    "instructions-missing": Condition("there are no instructions"),
    "invocable-other": Condition("`user-invocable` or `disable-model-invocation` is not true or false", "use either"),
    "license-list": Condition("`license` is a list or a mapping", "write it as text on one line"),
    "line-separators": Condition("the frontmatter has the line separator U+0085, U+2028 or U+2029", "remove it"),
    "metadata-date": Condition("`metadata` has a date", _ADD_QUOTES),
    "metadata-key": Condition("YAML reads a key of `metadata` as a number or as yes or no", "put it in quotes"),
    "metadata-nested": Condition(
        "`metadata` has lists or mappings", f"{_WRITE_AS_TEXT}, except for what a host reads, such as `openclaw`"
    ),
    "metadata-not-mapping": Condition("`metadata` is text or a list", "write `key: value` lines below it"),
    "metadata-nothing": Condition("nothing follows `metadata:`", _LEAVE_OUT),
    "metadata-null": Condition("a key of `metadata` has no value", _LEAVE_OUT),
    "metadata-number": Condition("`metadata` has a number, or a yes or no"),
    "model-invocation-off": Condition(
        "`disable-model-invocation` keeps it from the model", "say in the description that only the user starts it"
    ),
    "name-characters": Condition("the name has characters other than letters, digits and hyphens", _VALID_NAME),
    "name-comment": Condition("a comment follows the name", "move it to its own line"),
    "name-empty": Condition("the name is empty", _ADD_NAME),
    "name-hyphen-end": Condition("the name begins or ends with a hyphen", _VALID_NAME),
    "name-hyphens": Condition("the name has two hyphens in a row", _VALID_NAME),
    "name-mismatch": Condition("the name differs from the folder's name", "give both the same name"),
    "name-missing": Condition("there is no name", _ADD_NAME),
    "name-not-ascii": Condition("the name has letters outside a-z", _VALID_NAME),
    "name-nothing": Condition("nothing follows `name:`", _ADD_NAME),
    "name-too-long": Condition("the name has more than 64 characters", _VALID_NAME),
    "name-uppercase": Condition("the name has capital letters", _VALID_NAME),
    "not-utf8": Condition("the file is not UTF-8", "save it as UTF-8"),
    "nul-byte": Condition("the file has a NUL byte", "save it as UTF-8 text"),
    "paths-given": Condition("`paths` limits it to some files", "leave it out, and name the files in the description"),
    "value-list": Condition("the name or the description is a list or a mapping", _ONE_LINE),
    "value-null": Condition("the name or the description is `~` or `null`", _ADD_QUOTES),
    "value-number": Condition("YAML reads the name or the description as a number or a date", _ADD_QUOTES),
    "value-yes-no": Condition("YAML reads the name or the description as yes or no", _ADD_QUOTES),
    "yaml-anchor": Condition("there is an anchor, an alias or a standard tag (`&a`, `*a`, `!!str`)", "write it out"),
    "yaml-flow": Condition("a list or mapping is written in brackets, such as `[a, b]`", "write one value per line"),
    "yaml-repaired": Condition("a value is not valid YAML, such as `Use when: asked`", _ADD_QUOTES),
    "yaml-tag": Condition("a value begins with `!`, which starts a tag in YAML", _ADD_QUOTES),
}
