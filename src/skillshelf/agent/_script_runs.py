"""What a script of a skill gets when it runs: a copy of its skill, its packages, its variables, its confinement."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from anyio import to_thread

from skillshelf.agent._confinement import Confinement, find_repositories
from skillshelf.agent._policy import Approval
from skillshelf.agent._skills import WorkspaceSkills
from skillshelf.agent._tool_names import INSTALL_PACKAGES
from skillshelf.agent.scripts import (
    AskVariable,
    CleanPath,
    PermittedRun,
    Program,
    SkillScript,
    VariableStore,
    describe_packages,
    find_environment,
    find_script,
    find_uv,
    install_environment,
)
from skillshelf.files import cache_home, is_at_or_inside
from skillshelf.trust import ScriptFolders


class ScriptRuns:
    """The scripts of the skills in a workspace, and the values that the user gave for them in this session."""

    def __init__(
        self, skills: WorkspaceSkills, get_confinement: Callable[[], Confinement], ask_variable: AskVariable
    ) -> None:
        self._skills = skills
        self._get_confinement = get_confinement
        self._ask_variable = ask_variable
        self._variables = VariableStore()
        self._workspace = os.path.realpath(skills.folder)
        self._temporary: list[tempfile.TemporaryDirectory[str]] = []
        """Folders that go with this object."""

    def find(self, arguments: Mapping[str, Any]) -> SkillScript:
        """Return the script that a call of the tool means, as it would run now. Raises SkillError."""
        return find_script(
            self._skills.shelf,
            self._folders,
            self._programs,
            skill=arguments["skill"],
            script=arguments["script"],
            arguments=arguments.get("args") or (),
            network=bool(arguments.get("network")),
        )

    def needs_packages(self, script: SkillScript) -> bool:
        """Return True if packages must be installed first. Raises SkillError if there is no way to do that."""
        if script.dependencies is None or find_environment(script.dependencies, self._home):
            return False
        find_uv(self._programs)
        return True

    def make_packages_question(self, script: SkillScript) -> Approval:
        """Return the question whether the packages that a script declares may be installed."""
        assert script.dependencies is not None
        shown = {"skill": script.skill, "script": script.path, **describe_packages(script.dependencies)}
        return Approval(INSTALL_PACKAGES, shown)

    async def prepare(self, script: SkillScript) -> PermittedRun:
        """Install the packages of a script and collect its variables. Raises SkillError.

        Also if the copy that the user was asked about is no longer what it was.
        """
        confinement = await to_thread.run_sync(self._get_confinement)
        interpreter = script.interpreter
        if script.dependencies is not None:
            environment = find_environment(script.dependencies, self._home)
            interpreter = environment or await install_environment(
                script.dependencies, self._home, self._programs, confinement.level
            )
        await to_thread.run_sync(self._folders.verify, script.tree)
        given = await self._variables.collect(script.skill, script.tree, script.variables, self._ask_variable)

        repositories: list[str] = []
        if confinement.level == "mounted":
            repositories = await to_thread.run_sync(find_repositories, self._workspace)
        scratch = self._scratch
        places = {
            "TMPDIR": scratch,
            "XDG_CACHE_HOME": f"{scratch}/cache",
            "SKILL_DIR": script.folder,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        program = Program(
            [interpreter, script.file, *script.arguments],
            folder=self._workspace,
            environment=self._programs.make_environment({**places, **given.values}),
            writable=[self._workspace, scratch],
            level=confinement.level,
            repositories=repositories,
            network=script.network,
        )
        return PermittedRun(script, program, given.values, tuple(self._list_notes(script, given.missing)))

    def _list_notes(self, script: SkillScript, missing: list[str]) -> list[str]:
        notes = []
        if missing:
            names = ", ".join(missing)
            notes.append(f"The user has not given the script a value for {names}.")
        if any(pending.name == script.skill for pending in self._skills.pending):
            notes.append("The script ran as the user approved it. The skill on disk is different, and awaits review.")
        return notes

    @cached_property
    def _folders(self) -> ScriptFolders:
        return ScriptFolders(f"{self._home}/runs")

    @cached_property
    def _programs(self) -> CleanPath:
        return CleanPath(self._skills.root)

    @cached_property
    def _home(self) -> str:
        """The folder for packages and copies, which no script can change."""
        home = cache_home()
        if home is None or is_at_or_inside(os.path.realpath(home), os.path.realpath(self._skills.root)):
            return self._make_temporary_folder()
        return os.path.join(os.path.realpath(home), "scripts")

    @cached_property
    def _scratch(self) -> str:
        """The temporary folder that scripts can write to."""
        return self._make_temporary_folder()

    def _make_temporary_folder(self) -> str:
        folder = tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True)
        self._temporary.append(folder)
        return os.path.realpath(folder.name)
