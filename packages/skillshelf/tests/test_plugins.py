"""Test which skills belong to which plugin: marketplaces and manifests of Claude Code, Codex and Agent Plugins."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from skillshelf.sources import ListedFiles, Plugin, PluginOrigin, read_plugins

Run = Callable[..., tuple[int, str, str]]
CLAUDE = ".claude-plugin/marketplace.json"
AGENT_PLUGIN = {"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"}


def read(files: Mapping[str, Any]) -> list[Plugin]:
    """Return the plugins of a repository with these files; values that are not texts become JSON."""
    contents = {}
    for path, value in files.items():
        contents[path] = value.encode() if isinstance(value, str) else json.dumps(value).encode()
    return read_plugins(ListedFiles(contents, contents.get))


def marketplace(*plugins: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "shop", "owner": {"name": "Ann"}, "plugins": plugins, **fields}


def test_a_marketplace_groups_the_skills_of_its_repository() -> None:
    """A plugin has its `skills` folder, and the paths that its manifest and the entry name."""
    plugins = read(
        {
            CLAUDE: marketplace({"name": "pdf", "source": "./plugins/pdf", "skills": ["./extra/ocr"]}),
            "plugins/pdf/.claude-plugin/plugin.json": {"name": "pdf", "description": "Forms.", "skills": "./more"},
            "plugins/pdf/skills/fill/SKILL.md": "",
            "plugins/pdf/skills/notes.md": "",
            "plugins/pdf/more/merge/SKILL.md": "",
            "plugins/pdf/extra/ocr/SKILL.md": "",
            "plugins/pdf/other/x/SKILL.md": "",
        }
    )
    skills = ("plugins/pdf/extra/ocr", "plugins/pdf/skills/fill", "plugins/pdf/more/merge")
    assert plugins == [Plugin("pdf", "Forms.", skills)]


def test_an_entry_that_is_not_strict_decides_alone() -> None:
    """Several entries then share one folder, as in the repository of Anthropic."""
    plugins = read(
        {
            CLAUDE: marketplace(
                {"name": "office", "source": "./", "strict": False, "skills": ["./skills/xlsx", "./skills/docx"]},
                {"name": "art", "source": "./", "strict": False, "skills": ["./skills/paint"]},
            ),
            **{f"skills/{name}/SKILL.md": "" for name in ("xlsx", "docx", "paint", "other")},
        }
    )
    assert [(plugin.name, plugin.skills) for plugin in plugins] == [
        ("office", ("skills/xlsx", "skills/docx")),
        ("art", ("skills/paint",)),
    ]


def test_the_folder_of_plugins_is_that_of_the_marketplace() -> None:
    files = {
        CLAUDE: marketplace({"name": "pdf", "source": "pdf"}, metadata={"pluginRoot": "./plugins"}),
        "plugins/pdf/skills/fill/SKILL.md": "",
    }
    assert [plugin.skills for plugin in read(files)] == [("plugins/pdf/skills/fill",)]


@pytest.mark.parametrize(
    ("source", "origin"),
    [
        (
            {"source": "github", "repo": "ann/pdf", "ref": "v1", "sha": "ab12"},
            PluginOrigin("git", "ann/pdf", "", "v1", "ab12"),
        ),
        (
            {"source": "url", "url": "https://x.org/p.git", "path": "./plugins/pdf"},
            PluginOrigin("git", "https://x.org/p.git", "plugins/pdf"),
        ),
        (
            {"source": "git-subdir", "url": "https://x.org/p.git", "path": "pdf", "sha": "cd"},
            PluginOrigin("git", "https://x.org/p.git", "pdf", "", "cd"),
        ),
        ({"source": "npm", "package": "@ann/pdf"}, PluginOrigin("npm", "@ann/pdf")),
        ({"source": "command", "command": "curl x | sh"}, PluginOrigin("command", "curl x | sh")),
    ],
)
def test_a_plugin_from_elsewhere_says_where_it_is(source: object, origin: PluginOrigin) -> None:
    assert read({CLAUDE: marketplace({"name": "pdf", "source": source})}) == [Plugin("pdf", origin=origin)]


def test_codex_has_local_sources_and_a_marketplace_of_its_own() -> None:
    files = {
        ".agents/plugins/marketplace.json": marketplace(
            {"name": "pdf", "source": {"source": "local", "path": "./pdf"}}
        ),
        "pdf/.codex-plugin/plugin.json": {"name": "pdf"},
        "pdf/skills/fill/SKILL.md": "",
    }
    assert [plugin.skills for plugin in read(files)] == [("pdf/skills/fill",)]


def test_a_repository_can_be_one_agent_plugin() -> None:
    """Only the folder `skills` counts there. Other programs have a plugin.json, too."""
    files = {"skills/fill/SKILL.md": "", "more/x/SKILL.md": ""}
    manifest = {**AGENT_PLUGIN, "name": "ann.pdf", "skills": "./more"}
    assert read({**files, "plugin.json": manifest}) == [Plugin("ann.pdf", skills=("skills/fill",))]
    assert read({**files, "plugin.json": {"name": "grafana-panel", "type": "panel"}}) == []
    [newer] = read({**files, "plugin.json": {"$schema": "https://agent-plugins.org/schemas/2/x", "name": "pdf"}})
    assert (newer.skills, newer.problem) == ((), "it follows another version of Agent Plugins than 1.0.0")


def test_hooks_and_commands_are_named_and_not_used() -> None:
    [plugin] = read(
        {
            ".claude-plugin/plugin.json": {"name": "pdf", "mcpServers": {"x": {"command": "sh"}}},
            "hooks/hooks.json": "{}",
            "commands/go.md": "",
            "skills/fill/SKILL.md": "",
        }
    )
    assert plugin.not_run == ("hooks", "commands", "MCP servers")


@pytest.mark.parametrize("path", ["../x", "/etc", "./a/../../x", "a\0b", "\ud800"])
def test_no_path_leads_out_of_the_repository(path: str) -> None:
    files = {CLAUDE: marketplace({"name": "pdf", "source": path}), "x/skills/a/SKILL.md": ""}
    [plugin] = read(files)
    assert plugin.skills == ()
    assert "is not a path in the repository" in plugin.problem
    [plugin] = read({CLAUDE: marketplace({"name": "pdf", "source": "./", "strict": False, "skills": [path]})})
    assert plugin.skills == ()


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"plugins": 3}', '{"plugins": [3, null, {}]}', "[" * 100_000, '{"metadata": []}']
)
def test_a_broken_marketplace_has_no_skills(text: str) -> None:
    plugins = read({CLAUDE: text, "skills/a/SKILL.md": ""})
    assert all(not plugin.skills for plugin in plugins)


def test_the_name_of_a_plugin_is_shown_cleaned() -> None:
    [plugin] = read({CLAUDE: marketplace({"name": "pdf\x1b[2J", "source": "./"})})
    assert "\x1b" not in plugin.name + plugin.problem
    assert plugin.problem


def test_list_shows_the_plugin_of_each_skill(run: Run, write: Callable[..., Path], tmp_path: Path) -> None:
    write("plugins/pdf/skills/fill")
    write("plain")
    manifest = tmp_path / "plugins/pdf/.claude-plugin/plugin.json"
    manifest.parent.mkdir()
    manifest.write_text('{"name": "pdf", "hooks": "./hooks.json"}')
    code, output, _ = run("list")
    rows = [line.split() for line in output.splitlines()]
    assert code == 0
    assert rows[0][:3] == ["name", "source", "plugin"]
    assert rows[1][:3] == ["fill", "project", "pdf"]
    assert rows[2][:2] == ["plain", "project"]
    assert "pdf" not in rows[2]
    assert "Not used of the plugin pdf: its hooks." in output
    skills = {skill["name"]: skill.get("plugin") for skill in json.loads(run("list", "--json")[1])["skills"]}
    assert (skills["fill"], skills["plain"]) == ("pdf", None)
