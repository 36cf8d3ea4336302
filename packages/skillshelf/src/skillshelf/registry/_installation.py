"""Where installed skills are, and the lock that pins them: in a workspace, or in the user's home folder."""

import os
from typing import NamedTuple

from skillshelf.errors import RegistryError
from skillshelf.files import config_home, is_inside, state_home

LOCK_FILE = "skills.lock"
SKILLS_FOLDER = ".agents/skills"


class Installation(NamedTuple):
    """A folder of installed skills, and the lock that pins them. All paths are real paths."""

    folder: str
    lock_path: str
    is_user: bool
    """True for the skills that a user has in every workspace."""

    @property
    def place(self) -> str:
        """The folder that paths in the lock are relative to."""
        return os.path.dirname(self.lock_path)

    @property
    def state(self) -> str:
        """The folder for what this machine knows of it. Not in the workspace: a clone could bring such files."""
        import hashlib  # only if there is a lock

        home = state_home()
        if home is None:
            raise RegistryError("This user has no home to keep a journal in. Set XDG_STATE_HOME.")
        return os.path.join(home, "registry", hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:32])


def project_installation(root: str) -> Installation:
    """Return the skills of a workspace. Raises RegistryError if their folder is a link out of it, or to Git's own."""
    root = os.path.realpath(root)
    folder = os.path.realpath(os.path.join(root, SKILLS_FOLDER))
    if not is_inside(folder, root):
        raise RegistryError(f"{SKILLS_FOLDER} is a link out of the workspace, so nothing is installed there.")
    if ".git" in folder.removeprefix(root).lower().split("/"):  # a skill named `hooks` would run
        raise RegistryError(f"{SKILLS_FOLDER} is a link into .git, so nothing is installed there.")
    return Installation(folder, os.path.join(root, LOCK_FILE), is_user=False)


def user_installation() -> Installation:
    """Return the skills that the user has in every workspace. Raises RegistryError for a user without a home."""
    folder = os.path.expanduser(f"~/{SKILLS_FOLDER}")
    config = config_home()
    if config is None or not os.path.isabs(folder):
        raise RegistryError("This user has no home to install skills in.")
    # Either may be a link into a folder of dotfiles, and stays one.
    lock_path = os.path.realpath(os.path.join(config, LOCK_FILE))
    return Installation(os.path.realpath(folder), lock_path, is_user=True)
