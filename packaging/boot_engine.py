"""The engine: llama.cpp built from a hash-pinned source once, then kept outside the repository."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from boot_host import BUILD_NEEDS, WINDOWS, Problem, cache_dir, install_system_parts, work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOCKS = Path(__file__).resolve().parent / "requirements"
PYTHON_IN_VENV = Path("Scripts", "python.exe") if WINDOWS else Path("bin", "python")
OLDEST_PIP = (22, 3)  # the first that can fill an environment that has no pip (--python)


class Recipe(NamedTuple):
    """One way to build the engine: taken when all its tools are on the PATH."""

    name: str
    flags: tuple[str, ...]
    tools: tuple[str, ...] = ()


# Backends are loadable modules built for no particular processor, so the same wheel works on any
# machine of its platform; RPC gives tests a second device. A recipe for a GPU goes above "cpu"
# with the tool that it needs (glslc for Vulkan, nvcc for CUDA): the first match is built.
PORTABLE = ("GGML_BACKEND_DL=ON", "GGML_NATIVE=OFF", "GGML_RPC=ON", "LLAVA_BUILD=OFF")
RECIPES = (Recipe("cpu", PORTABLE),)


def choose_recipe(
    recipes: Sequence[Recipe] = RECIPES, which: Callable[[str], str | None] = shutil.which
) -> Recipe:
    """Return the first recipe whose tools this machine has."""
    return next(recipe for recipe in recipes if all(which(tool) for tool in recipe.tools))


def engine_key(lock: str, recipe: Recipe, platform: str) -> str:
    """Name one build, so that another version, flag or platform never meets its wheel."""
    version = re.search(r"^llama-cpp-python==(\S+)", lock, re.MULTILINE)
    if version is None:
        raise Problem("packaging/requirements/engine.txt names no version of llama-cpp-python.")
    mark = hashlib.sha256("\0".join([lock, *recipe.flags]).encode()).hexdigest()[:12]
    return f"{version[1]}-{recipe.name}-{platform}-{mark}"


def engine_home() -> Path:
    """Return the cache folder in which this machine's engine wheel lies, or will lie."""
    lock = (LOCKS / "engine.txt").read_text("utf-8")
    return cache_dir() / "engine" / engine_key(lock, choose_recipe(), sysconfig.get_platform())


def engine_wheel(home: Path) -> Path:
    """Return the engine wheel, building it first unless the cache has it."""
    if not any(home.glob("*.whl")):
        install_system_parts(BUILD_NEEDS)
        scratch = home.with_name(f"{home.name}.{os.getpid()}.tmp")
        try:
            build_wheel(scratch)
            shutil.rmtree(home, ignore_errors=True)
            (scratch / "out").replace(home)
        except Problem as problem:
            hint = "\nIt needs the Visual Studio Build Tools with C++." if WINDOWS else ""
            raise Problem(f"{problem}{hint}") from None
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return next(home.glob("*.whl"))


def build_wheel(scratch: Path) -> None:
    """Build the engine into scratch/out, with locked build tools in scratch/env."""
    make_venv("making a place to build the engine in", scratch / "env")
    python = scratch / "env" / PYTHON_IN_VENV
    pip_install_locked("fetching the engine's build tools", python, "engine-build")
    options = ("--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--require-hashes")
    command = ("wheel", "-v", *options, "-w", scratch / "out", "-r", LOCKS / "engine.txt")
    flags = " ".join(f"-D{flag}" for flag in choose_recipe().flags)
    label = "building llama.cpp from its source, once (4 to 8 minutes on two cores)"
    pip(label, python, "engine-build", command, cmake_args=flags)


def make_venv(label: str, target: Path) -> None:
    """Make an environment without pip: stock Debian has no ensurepip; the host's pip will do."""
    work(label, [sys.executable, "-m", "venv", "--without-pip", target], "venv", {})


def pip_install_locked(label: str, target: Path, lock: str) -> None:
    """Install exactly what a lock file lists, each file checked against its hash."""
    options = ("--require-hashes", "--only-binary", ":all:")
    pip(label, target, f"pip-{lock}", ("install", *options, "-r", LOCKS / f"{lock}.txt"))


def pip(
    label: str, target: Path, log_name: str, arguments: Sequence[str | Path], cmake_args: str = ""
) -> None:
    """Run one pip command for the environment of the Python at target, quietly."""
    env = {
        "PIP_USER": "0",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PYTHONPATH": "",
        # Always set: flags of the user's own would make a wheel that its key does not describe.
        "CMAKE_ARGS": cmake_args,
    }
    work(label, [*find_pip(target), *arguments], log_name, env)


def find_pip(target: Path) -> list[str | Path]:
    """Return a pip command for an environment: the host's, or one from the standard library."""
    ask = [sys.executable, "-m", "pip", "--version"]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
    version = re.match(r"pip (\d+)\.(\d+)", answer)
    if version and (int(version[1]), int(version[2])) >= OLDEST_PIP:
        return [sys.executable, "-m", "pip", "--python", target]
    if importlib.util.find_spec("ensurepip") is not None:
        own: list[str | Path] = [target, "-m", "pip"]
        if subprocess.run([*own, "--version"], capture_output=True, check=False).returncode != 0:
            work("putting pip into the environment", [target, "-m", "ensurepip"], "ensurepip", {})
        return own
    raise Problem(
        f"RigTune needs pip {OLDEST_PIP[0]}.{OLDEST_PIP[1]} or newer for {sys.executable}. "
        "On Debian and Ubuntu, run: sudo apt-get install python3-pip"
    )
