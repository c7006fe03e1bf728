"""Whether the installed helper may be handed an administrator's rights.

If anybody but root could change it, or a folder on the way to it, then asking for a password for
it would hand the machine to them. RigTune then does not start it.
"""

import os
import stat
from pathlib import Path

PROGRAM = Path("/usr/libexec/rigtune-power/rigtune-power-helper")
"""Not below /usr/local, which is writable for a group on some distributions."""

FILES_MAX = 2000


def distrust(program: Path, *, owner: int = 0, top: Path = Path("/")) -> str | None:
    """Return why the helper must not be used, ``None`` when it may.

    Args:
        program: The installed helper.
        owner: User id that everything must belong to.
        top: Folder above which nothing is checked (``/``; tests use their own).

    Returns:
        ``not_installed``, ``is_link``, ``wrong_owner``, ``writable_by_others`` or
        ``not_executable``.
    """
    try:
        for path in (program, *program.parents):
            if problem := _problem(path, owner):
                return problem
            if path == top:
                break
        if not program.is_file():
            return "not_installed"
        if not os.access(program, os.X_OK):
            return "not_executable"
        # A frozen program loads what lies beside it.
        return _problem_below(program.parent, owner)
    except OSError:
        return "not_installed"


def _problem(path: Path, owner: int) -> str | None:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return "is_link"
    if found.st_uid != owner:
        return "wrong_owner"
    # The group bits also show what an access control list may grant at most.
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "writable_by_others"
    return None


def _problem_below(folder: Path, owner: int) -> str | None:
    for number, path in enumerate(folder.rglob("*")):
        if number >= FILES_MAX:
            return "not_installed"
        if path.is_symlink():
            # Links to other names of a library are normal; what counts is that they stay inside.
            if not path.resolve().is_relative_to(folder.resolve()):
                return "is_link"
        elif problem := _problem(path, owner):
            return problem
    return None
