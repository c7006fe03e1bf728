"""Where RigTune runs from and where it keeps things: the only reader of ``sys.frozen`` and paths.

``RIGTUNE_HOME`` puts every folder under one place (a portable installation, and every test).
"""

import contextlib
import errno
import os
import secrets
import sys
import time
import tomllib
from pathlib import Path
from typing import Literal

import platformdirs

from app.domain.errors import EnvironmentProblem

APP_NAME = "rigtune"
HOME_VARIABLE = "RIGTUNE_HOME"
FILE_LIST = "files.txt"
"""In a bundle: its own files, one a line, as they lie in the bundle's folder."""

Program = Literal["cli", "gui", "worker"]
_Kind = Literal["data", "cache", "log", "runtime"]

# per program: the module a source tree runs, the executable and arguments a bundle runs
_PROGRAMS: dict[Program, tuple[str, tuple[str, ...]]] = {
    "cli": ("app", ("rigtune",)),
    "gui": ("views", ("rigtune-gui",)),
    # the window's executable carries no engine, so workers always come from the console program
    "worker": ("app.worker", ("rigtune", "--worker")),
}
# the source tree's worker with the engine package in the folder given first
_WITH_OTHER_ENGINE = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
    "runpy.run_module('app.worker', run_name='__main__', alter_sys=True)"
)
_REPLACE_S, _REPLACE_TICK_S = 1.0, 0.02
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def is_frozen() -> bool:
    """Whether this is the shipped bundle and not a source tree."""
    return bool(getattr(sys, "frozen", False))


def source_root() -> Path:
    """Return the folder that holds ``app`` and ``assets``: the repository or the bundle."""
    if is_frozen():
        return Path(getattr(sys, "_MEIPASS", Path(sys.executable).parent))
    return Path(__file__).resolve().parent.parent


def version() -> str:
    """Return RigTune's version; the source tree's own file wins over stale metadata."""
    project = source_root() / "pyproject.toml"
    if project.is_file():
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    from importlib import metadata  # noqa: PLC0415 - fifty modules that few starts need

    try:
        return metadata.version(APP_NAME)
    except metadata.PackageNotFoundError:
        return "0+unknown"


def asset(path: str) -> Path:
    """Return where the shipped file ``assets/<path>`` lies."""
    return source_root() / "assets" / path


def sibling_command(program: Program) -> list[str]:
    """Return the command line that starts another program of RigTune.

    From source it needs ``sibling_environment`` unless the package is installed.

    Args:
        program: ``cli``, ``gui`` or ``worker``.
    """
    module, (executable, *arguments) = _PROGRAMS[program]
    if not is_frozen():
        return [_python(), "-m", module]
    here = Path(sys.executable)
    return [str(here.parent / f"{executable}{_suffix(here)}"), *arguments]


def previous_worker() -> tuple[str, ...] | None:
    """Return the command of the worker from before the last upgrade; ``None`` = none was kept.

    Installers put it aside: a bundle into the folder ``previous`` of the new one, ``bootstrap.py``
    the engine package into the environment. Engine and binding stay together, because a binding
    reads the structures of its own llama.cpp only.
    """
    if is_frozen():
        here = Path(sys.executable)
        kept = here.parent / "previous" / f"rigtune{_suffix(here)}"
        return (str(kept), "--worker") if kept.is_file() else None
    folder = Path(sys.prefix) / "previous-engine"
    if not (folder / "llama_cpp").is_dir():
        return None
    return _python(), "-c", _WITH_OTHER_ENGINE, str(folder)


def engine_addons() -> tuple[Path, ...]:
    """Return engine modules that were put beside a bundle: too large for every download (CUDA)."""
    if not is_frozen():
        return ()
    folder = Path(sys.executable).parent / "addons"
    return tuple(sorted(p for p in folder.glob("*ggml-*") if p.suffix in {".so", ".dll"}))


def missing_files() -> tuple[str, ...]:
    """Return the files of the bundle that are not there any more; a source tree has no list."""
    try:
        listed = (source_root() / FILE_LIST).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    return tuple(name for name in listed if not (source_root() / name).exists())


def has_display() -> bool:
    """Whether a window could be shown here (always on Windows)."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def sibling_environment() -> dict[str, str]:
    """Return this process's environment, with the source tree importable for a sibling."""
    environment = dict(os.environ)
    if not is_frozen():
        others = environment.get("PYTHONPATH")
        parts = [str(source_root()), *([others] if others else [])]
        environment["PYTHONPATH"] = os.pathsep.join(parts)
        if _python() != sys.executable:
            environment["__PYVENV_LAUNCHER__"] = sys.executable
    return environment


def _suffix(program: Path) -> str:
    return program.suffix if program.suffix.lower() == ".exe" else ""


def _python() -> str:
    """Return the interpreter; on Windows that of the system, told by a variable whose it is.

    The ``python.exe`` of a virtual environment there is a starter, and what it starts is another
    process than the one we would measure and end. ``multiprocessing`` goes past it in this way.
    """
    if sys.platform == "win32":
        return str(getattr(sys, "_base_executable", sys.executable))
    return sys.executable


def data_dir() -> Path:
    """Return the folder for the database and models, created if need be.

    Raises:
        EnvironmentProblem: There is no home folder or it cannot be written.
    """
    return _folder("data")


def cache_dir() -> Path:
    """Return the folder for what can be made again, created if need be.

    Raises:
        EnvironmentProblem: There is no home folder or it cannot be written.
    """
    return _folder("cache")


def log_dir() -> Path:
    """Return the folder for logs and error reports, created if need be.

    Raises:
        EnvironmentProblem: There is no home folder or it cannot be written.
    """
    return _folder("log")


def runtime_dir() -> Path:
    """Return the folder for lock files and sockets of this user, created if need be.

    The same for every process of the user on this machine, in a desktop session or not.

    Raises:
        EnvironmentProblem: It cannot be written.
    """
    return _folder("runtime")


def atomic_write(path: Path, data: bytes) -> None:
    """Write ``data`` so that ``path`` holds either the old or the new content, never a part.

    Raises:
        EnvironmentProblem: Disk full, no permission or another reason of the file system.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise write_problem(error, path) from error


def _replace(temporary: Path, path: Path) -> None:
    """Rename; on Windows wait a second for whoever has ``path`` open (a virus scanner, say)."""
    deadline_s = time.monotonic() + _REPLACE_S
    while True:
        try:
            temporary.replace(path)
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > deadline_s:
                raise
            time.sleep(_REPLACE_TICK_S)
        else:
            return


def write_problem(error: OSError, path: Path) -> EnvironmentProblem:
    """Return the sentence for a file or folder that could not be written."""
    if error.errno in _DISK_FULL:
        hint = "Free some space, or set RIGTUNE_HOME to a folder on another disk."
        return EnvironmentProblem("disk_full", f"The disk is full: {path} was not written.", hint)
    reason = error.strerror or str(error)
    hint = "Check its permissions, or set RIGTUNE_HOME to a folder that can be written."
    return EnvironmentProblem("not_writable", f"{path} cannot be written: {reason}.", hint)


def _folder(kind: _Kind) -> Path:
    try:
        path = _folder_path(kind)
    except RuntimeError:  # newer platformdirs refuse an account without a home
        path = Path()
    if not path.is_absolute():
        message = "This account has no home folder, so there is no place to keep results."
        raise EnvironmentProblem("no_home", message, "Set RIGTUNE_HOME to a folder of your own.")
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise write_problem(error, path) from error
    return path


def _folder_path(kind: _Kind) -> Path:
    if home := os.environ.get(HOME_VARIABLE):
        return Path(home).absolute() / kind
    if kind == "runtime" and sys.platform == "linux":
        return _linux_runtime_path()
    find = getattr(platformdirs, f"user_{kind}_path")
    return Path(find(APP_NAME, appauthor=False))


def _linux_runtime_path() -> Path:
    """Return the folder of this login, or one beside the data where there is none.

    The usual fallback, a predictable name under /tmp, is one that another user can take first.
    """
    base = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")
    if base.is_absolute() and base.is_dir() and base.stat().st_uid == os.geteuid():
        return base / APP_NAME
    return _folder_path("data") / "runtime"
