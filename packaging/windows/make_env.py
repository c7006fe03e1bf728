"""Windows without Windows: our Windows code run by a Windows Python under Wine, on Debian 12.

    python3.11 packaging/windows/make_env.py                 make or renew the environment
    python3.11 packaging/windows/make_env.py test            run the suite there, folder by folder
    python3.11 packaging/windows/make_env.py test ARG...     run pytest there with ARG
    python3.11 packaging/windows/make_env.py bundle          freeze the programs there and test them
    python3.11 packaging/windows/make_env.py run ARG...      Windows python.exe ARG...
    python3.11 packaging/windows/make_env.py exe FILE ARG... any Windows program

Wine is not Windows, but what fails here fails for users. docs/windows.md says what this has shown
and what only a real Windows can show.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # the set-up of a real machine has most of what this needs

from boot_engine import LOCKS  # noqa: E402
from boot_host import Problem, cache_dir, install_system_parts, one_at_a_time, say  # noqa: E402
from bootstrap import ROOT, digest, ensure  # noqa: E402
from wine_engine import engine_key_parts, engine_package, install_engine  # noqa: E402
from wine_host import NEEDS, Wine, make_prefix, windows_path  # noqa: E402
from wine_python import (  # noqa: E402
    add_project,
    install_requirements,
    make_interpreter,
    make_stand_ins,
)
from wine_suite import run_suite  # noqa: E402

INSTALLED = ("run", "demo", "test", "build")


def prepare(wine: Wine) -> None:
    """Bring the environment up to date; a step whose inputs are unchanged is skipped."""
    wine.home.mkdir(parents=True, exist_ok=True)
    stamp = wine.home / "stamp.json"
    code = sorted((HERE / "c").iterdir())
    with one_at_a_time(wine.home / "lock"):
        needs = digest(*(need.package for need in NEEDS))
        ensure("system", needs, lambda: install_system_parts(NEEDS), stamp)
        stand_ins = digest(*code, HERE / "wine_host.py")
        make = lambda: make_prefix(wine, make_stand_ins(wine.home / "build"))  # noqa: E731
        ensure("prefix", stand_ins, make, stamp)
        interpreter = digest(*code, HERE / "interpreter.txt", HERE / "wine_python.py")
        ensure("interpreter", interpreter, lambda: make_interpreter(wine), stamp)
        locks = [LOCKS / f"{lock}.txt" for lock in INSTALLED]
        packages = digest(interpreter, *locks)
        ensure("packages", packages, lambda: install_requirements(wine, INSTALLED), stamp)
        project = digest(packages, str(ROOT), ROOT / "pyproject.toml")
        ensure("project", project, lambda: add_project(wine), stamp)
        engine = digest(*engine_key_parts())
        home = cache_dir() / "engine" / f"windows-{engine}"
        install = lambda: install_engine(wine, engine_package(home))  # noqa: E731
        ensure("engine", digest(packages, engine), install, stamp)


def test(wine: Wine, extra: list[str]) -> int:
    """Run the whole suite or what is asked for; what cannot run under Wine skips itself."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    if not extra:
        return run_suite(wine)
    python = wine.python / "python.exe"
    return wine.run([python, "-m", "pytest", "-p", "no:cacheprovider", *extra], cwd=ROOT)


def bundle(wine: Wine) -> int:
    """Freeze the programs with Windows' PyInstaller and run the bundle's tests on the result."""
    folder = wine.home / "bundle"
    python = wine.python / "python.exe"
    places = [f"--{name}path={windows_path(folder / name)}" for name in ("dist", "work")]
    spec = windows_path(ROOT / "packaging" / "rigtune.spec")
    options = ("--noconfirm", "--log-level", "WARN", *places)
    code = wine.run([python, "-m", "PyInstaller", *options, spec], cwd=ROOT)
    if code != 0:
        return code
    os.environ["RIGTUNE_BUNDLE"] = windows_path(folder / "dist" / "rigtune")
    return test(wine, ["tests/frozen"])


def main() -> int:
    """Read the command line, do the job, turn problems into sentences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    jobs = ("env", "test", "bundle", "run", "exe")
    parser.add_argument("job", choices=jobs, nargs="?", default="env")
    parser.add_argument("extra", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    wine = Wine(cache_dir() / "wine")
    try:
        prepare(wine)
        if given.job == "test":
            return test(wine, given.extra)
        if given.job == "bundle":
            return bundle(wine)
        if given.job == "run":
            return wine.run([wine.python / "python.exe", *given.extra])
        if given.job == "exe":
            return wine.run(given.extra)
        say(f"ready: {wine.home}")
    except (Problem, OSError) as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
