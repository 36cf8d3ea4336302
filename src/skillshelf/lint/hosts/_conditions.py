"""What hosts do not agree on, one condition each, in words and with what to change."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """Something about a skill that hosts do not agree on."""

    says: str
    fix: str = ""
    """Empty where every host copes."""


_NAME = "use 1 to 64 lower-case letters a-z, digits and single hyphens, for the folder too"
_NO_NAME = "write `name:` with the folder's name"
_FRONT = "begin the file with `---`, the fields, and `---` again"
_DESCRIBE = "write what the skill does and when to use it"
_ONE_LINE = "write it as one plain line, or in quotes without escapes"
_QUOTES = "put the value in quotes"
_DASHES = "write another dash"
_MOVE = "move them under `metadata:`, where no host you use reads them"
_LEAVE_OUT = "give it a value, or leave it out"
_TEXTS = "write each value as text on one line"
_ONCE = "keep one"
_NESTED = "move it directly below `skills`, or point the host at the folder it lies in"

CONDITIONS: dict[str, Condition] = {
    "allowed-tools-list": Condition("`allowed-tools` is a list", "write the tools in one line, with spaces between"),
    "allowed-tools-text": Condition("`allowed-tools` is given", "leave it out, where no host you use acts on it"),
    "block-on-one-line": Condition("text follows `>` or `|` in the same line", _ONE_LINE),
    "bom": Condition("the file begins with a byte order mark", "save it as UTF-8 without BOM"),
    "comment-cuts-value": Condition("the description has ` #`, where YAML begins a comment", _QUOTES),
    "compatibility-list": Condition("`compatibility` is a list or a mapping", "write it as text on one line"),
    "compatibility-too-long": Condition("`compatibility` has more than 500 characters", "shorten it"),
    "cr-only": Condition("the lines end in CR alone", "save it with LF line endings"),
    "crlf": Condition("the lines end in CR LF"),
    "dashes-after": Condition("there is `---` in the frontmatter, after the description"),
    "dashes-break": Condition("there is `---` in the frontmatter, in quotes or before the description", _DASHES),
    "dashes-in-description": Condition("there is `---` in the description", _DASHES),
    "delimiter-spaces": Condition("a `---` line has spaces after it", "remove them"),
    "description-anchor": Condition("the description begins with an anchor or a tag (`&a`, `!!str`)", _ONE_LINE),
    "description-below": Condition("the description begins in the line below `description:`", _ONE_LINE),
    "description-block": Condition("the description is a block (`>` or `|`)"),
    "description-comment": Condition("a comment follows the quoted description", "move it to a line of its own"),
    "description-empty": Condition("the description is an empty text", _DESCRIBE),
    "description-escaped": Condition("the description is quoted and has escapes", _ONE_LINE),
    "description-key-quoted": Condition("the word `description` is in quotes", "write it without"),
    "description-markup": Condition("the description has `<` or `&`"),
    "description-missing": Condition("there is no description", _DESCRIBE),
    "description-nothing": Condition("nothing follows `description:`", _DESCRIBE),
    "description-quote-ends": Condition("the description begins and ends with a quoted word", _ONE_LINE),
    "description-quoted-lines": Condition("the description is quoted and goes on in the next line", _ONE_LINE),
    "description-surrogates": Condition("the description has an emoji as two escapes (`\\ud83d\\ude80`)", _ONE_LINE),
    "description-too-long": Condition("the description has more than 1,024 characters", "shorten it"),
    "description-unindented": Condition("the description goes on in the next line without indentation", _ONE_LINE),
    "description-wrapped": Condition("the description goes on in the next line"),
    "duplicate-field": Condition("a field of the format is given twice", _ONCE),
    "duplicate-key": Condition("a field that the format does not know is given twice", _ONCE),
    "duplicate-metadata": Condition("a key of `metadata` is given twice", _ONCE),
    "empty": Condition("the file is empty", _FRONT),
    "field-capitals": Condition("a field of the format is written with capital letters", "write it in small letters"),
    "field-key": Condition("the name of a field is a number or a yes/no to YAML", "put it in quotes"),
    "field-nothing": Condition("`license`, `compatibility` or `allowed-tools` has no value", _LEAVE_OUT),
    "field-number": Condition("`license` or `compatibility` is a number or a yes/no to YAML", _QUOTES),
    "fields-behavior": Condition("fields that steer some hosts only, such as `argument-hint` or `model`", _MOVE),
    "fields-unknown": Condition("fields that the format does not know", _MOVE),
    "file-lowercase": Condition("the file is called `skill.md`", "call it `SKILL.md`"),
    "folder-linked": Condition("the skill's folder is a symlink", "put the folder itself there"),
    "folder-nested": Condition("the skill lies more than one folder below `skills`", _NESTED),
    "frontmatter-last": Condition("the file ends right after the closing `---`", "write instructions below it"),
    "frontmatter-missing": Condition("there is no frontmatter", _FRONT),
    "frontmatter-not-first": Condition("the frontmatter is not the first thing in the file", _FRONT),
    "frontmatter-unclosed": Condition("the frontmatter has no closing `---`", _FRONT),
    "instructions-missing": Condition("there are no instructions"),
    "invocable-other": Condition("`user-invocable` or `disable-model-invocation` is not true or false", "write one"),
    "license-list": Condition("`license` is a list or a mapping", "write it as text on one line"),
    "line-separators": Condition("the frontmatter has the line separator U+0085, U+2028 or U+2029", "remove it"),
    "metadata-date": Condition("`metadata` holds a date", _QUOTES),
    "metadata-key": Condition("a key of `metadata` is a number or a yes/no to YAML", "put it in quotes"),
    "metadata-nested": Condition("`metadata` holds lists or mappings", _TEXTS),
    "metadata-not-mapping": Condition("`metadata` is a text or a list", "write one `key: value` a line below it"),
    "metadata-nothing": Condition("nothing follows `metadata:`", _LEAVE_OUT),
    "metadata-null": Condition("a key of `metadata` has no value", _LEAVE_OUT),
    "metadata-number": Condition("`metadata` holds a number or a yes/no"),
    "name-characters": Condition("the name has other characters than letters, digits and hyphens", _NAME),
    "name-comment": Condition("a comment follows the name", "move it to a line of its own"),
    "name-empty": Condition("the name is an empty text", _NO_NAME),
    "name-hyphen-end": Condition("the name begins or ends with a hyphen", _NAME),
    "name-hyphens": Condition("the name has two hyphens in a row", _NAME),
    "name-mismatch": Condition("the name differs from the folder's", "give both the same name"),
    "name-missing": Condition("there is no name", _NO_NAME),
    "name-not-ascii": Condition("the name has letters outside a-z", _NAME),
    "name-nothing": Condition("nothing follows `name:`", _NO_NAME),
    "name-too-long": Condition("the name has more than 64 characters", _NAME),
    "name-uppercase": Condition("the name has capital letters", _NAME),
    "not-utf8": Condition("the file is not UTF-8", "save it as UTF-8"),
    "nul-byte": Condition("the file has a NUL byte", "save it as UTF-8 text"),
    "value-list": Condition("the name or the description is a list or a mapping", _ONE_LINE),
    "value-null": Condition("the name or the description is `~` or `null`", _QUOTES),
    "value-number": Condition("the name or the description is a number or a date to YAML", _QUOTES),
    "value-yes-no": Condition("the name or the description is a yes/no to YAML", _QUOTES),
    "yaml-anchor": Condition("there is an anchor, an alias or a standard tag (`&a`, `*a`, `!!str`)", "write it out"),
    "yaml-flow": Condition("a list or mapping is written in brackets, such as `[a, b]`", "write one value a line"),
    "yaml-repaired": Condition("a value is not valid YAML, such as `Use when: asked`", _QUOTES),
    "yaml-tag": Condition("a value begins with `!`, where YAML has a tag", _QUOTES),
}
