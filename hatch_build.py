"""Makes the package's long description from README.md: a package index has no files that relative links could lead to.

The address of the repository stands in pyproject.toml, under [tool.hatch.metadata.hooks.custom]. With it, links and
pictures get whole addresses at the tag of the version. Without it, links keep their text and lose their target, and
pictures are left out.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_FENCE = re.compile(r"(?ms)^(`{3,})[^\n]*\n.*?^\1`*[ \t]*$")
# A picture that stands alone goes with its line; the text of a link may run over the end of a line.
_PICTURE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)\n?")
# Text that makes sense only beside its picture goes with it.
_WITH_PICTURE = re.compile(r"(?s)<!-- with picture -->.*?<!-- end of picture -->\n")
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)


class MetadataHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        address = self.config["repository"].rstrip("/")
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")

        def resolve(path: str, form: str) -> str:
            if not address:
                return ""
            return str(self.config[form]).format(repository=address, version=metadata["version"], path=path)

        text = long_description(readme, resolve)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if address:
            metadata["urls"] = {
                "Repository": address,
                "Documentation": resolve("docs/index.md", "files"),
                "Changelog": resolve("CHANGELOG.md", "files"),
                "Issues": f"{address}/issues",
            }


def long_description(readme: str, resolve: Any) -> str:
    """Return the README for a package index. `resolve(path, form)` gives a file's address, or "" if it has none."""
    pieces: list[str] = []
    end = 0
    for fence in _FENCE.finditer(readme):
        pieces.append(_rewrite(readme[end : fence.start()], resolve))
        pieces.append(fence[0])
        end = fence.end()
    pieces.append(_rewrite(readme[end:], resolve))
    text = "".join(pieces)
    if not resolve("", "pictures"):
        text = _WITH_PICTURE.sub("", text)
    return re.sub(r"\n{3,}", "\n\n", text)


def _rewrite(prose: str, resolve: Any) -> str:
    def picture(match: re.Match[str]) -> str:
        if _ABSOLUTE.match(match["target"]):
            return match[0]
        address = resolve(match["target"], "pictures")
        return f"![{match['text']}]({address})\n" if address else ""

    def link(match: re.Match[str]) -> str:
        if _ABSOLUTE.match(match["target"]):
            return match[0]
        address = resolve(match["target"], "files")
        return f"[{match['text']}]({address})" if address else match["text"]

    return _LINK.sub(link, _PICTURE.sub(picture, prose))
