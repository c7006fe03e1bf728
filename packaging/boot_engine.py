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

import boot_vulkan
from boot_host import BUILD_NEEDS, WINDOWS, Problem, cache_dir, install_system_parts, say, work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOCKS = Path(__file__).resolve().parent / "requirements"
PYTHON_IN_VENV = Path("Scripts", "python.exe") if WINDOWS else Path("bin", "python")
OLDEST_PIP = (22, 3)  # the first that can fill an environment that has no pip (--python)


class Recipe(NamedTuple):
    """One way to build the engine.

    Attributes:
        name: As the cache's key and the messages name it.
        flags: CMake definitions; they are part of the key.
        minutes: How long a build takes on two cores.
        is_possible: Tells quickly whether this machine has, or may get, what it needs.
        prepare: Brings that, and returns CMake definitions of places, which are not in the key.
    """

    name: str
    flags: tuple[str, ...]
    minutes: str
    is_possible: Callable[[], bool] = lambda: True
    prepare: Callable[[], tuple[str, ...]] = lambda: ()


def has_cuda() -> bool:
    """Tell whether NVIDIA's compiler and a card to build for are here."""
    return all(shutil.which(tool) for tool in ("nvcc", "nvidia-smi"))


# Backends are loadable modules built for no particular processor, so the same wheel works on any
# machine of its platform; RPC gives tests a second device. NCCL would be one more library to bring.
PORTABLE = ("GGML_BACKEND_DL=ON", "GGML_NATIVE=OFF", "GGML_RPC=ON", "LLAVA_BUILD=OFF")
CUDA = (*PORTABLE, "GGML_CUDA=ON", "GGML_CUDA_NCCL=OFF")
# The first possible one is built, and the next one when it fails.
RECIPES = (
    Recipe(
        "cuda",
        (*CUDA, "CMAKE_CUDA_ARCHITECTURES=native", "GGML_VULKAN=ON"),
        "100",
        lambda: has_cuda() and boot_vulkan.is_possible(),
        boot_vulkan.prepare,
    ),
    Recipe(
        "vulkan",
        (*PORTABLE, "GGML_VULKAN=ON"),
        "9 to 16",
        boot_vulkan.is_possible,
        boot_vulkan.prepare,
    ),
    Recipe("cpu", PORTABLE, "4 to 8"),
)


def possible_recipes(recipes: Sequence[Recipe] = RECIPES) -> list[Recipe]:
    """Return what can be built here or lies in the cache already, the best first."""
    return [r for r in recipes if cached_wheel(engine_home(r)) or r.is_possible()]


def engine_key(lock: str, recipe: Recipe, platform: str) -> str:
    """Name one build, so that another version, flag or platform never meets its wheel."""
    version = re.search(r"^llama-cpp-python==(\S+)", lock, re.MULTILINE)
    if version is None:
        raise Problem("packaging/requirements/engine.txt names no version of llama-cpp-python.")
    mark = hashlib.sha256("\0".join([lock, *recipe.flags]).encode()).hexdigest()[:12]
    return f"{version[1]}-{recipe.name}-{platform}-{mark}"


def engine_home(recipe: Recipe) -> Path:
    """Return the cache folder in which a recipe's wheel lies, or will lie."""
    lock = (LOCKS / "engine.txt").read_text("utf-8")
    return cache_dir() / "engine" / engine_key(lock, recipe, sysconfig.get_platform())


def cached_wheel(home: Path) -> Path | None:
    """Return the wheel that an earlier build left in the cache."""
    return next(home.glob("*.whl"), None)


def engine_wheel(recipes: Sequence[Recipe]) -> Path:
    """Return the engine wheel of the first recipe that is cached or can be built."""
    for recipe in recipes[:-1]:
        try:
            return cached_wheel(engine_home(recipe)) or build(recipe)
        except Problem as problem:
            say(str(problem))
            say(f"So the engine comes without {recipe.name}. To try again: delete .venv and start.")
    return cached_wheel(engine_home(recipes[-1])) or build(recipes[-1])


def build(recipe: Recipe) -> Path:
    """Build one recipe's wheel and keep it in the cache."""
    home = engine_home(recipe)
    install_system_parts(BUILD_NEEDS)
    places = recipe.prepare()
    scratch = home.with_name(f"{home.name}.{os.getpid()}.tmp")
    try:
        build_wheel(scratch, recipe, places)
        shutil.rmtree(home, ignore_errors=True)
        (scratch / "out").replace(home)
    except Problem as problem:
        hint = "\nIt needs the Visual Studio Build Tools with C++." if WINDOWS else ""
        raise Problem(f"{problem}{hint}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return next(home.glob("*.whl"))


def build_wheel(scratch: Path, recipe: Recipe, places: Sequence[str]) -> None:
    """Build the engine into scratch/out, with locked build tools in scratch/env."""
    make_venv("making a place to build the engine in", scratch / "env")
    python = scratch / "env" / PYTHON_IN_VENV
    pip_install_locked("fetching the engine's build tools", python, "engine-build")
    options = ("--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--require-hashes")
    # Pip keeps wheels that it built and asks neither flags nor tools when it takes one again.
    command = (
        "wheel",
        "-v",
        "--no-cache-dir",
        *options,
        "-w",
        scratch / "out",
        "-r",
        LOCKS / "engine.txt",
    )
    flags = " ".join(f"-D{flag}" for flag in (*recipe.flags, *places))
    label = f"building llama.cpp ({recipe.name}), once: {recipe.minutes} minutes on two cores"
    pip(label, python, "engine-build", command, cmake_args=flags)


def keep_installed(purelib: Path, kept: Path) -> None:
    """Copy the engine that an upgrade is about to replace to where RigTune looks for it.

    Engine, binding and (with all CPU variants) the modules beside it belong together. A copy that
    breaks off leaves the one that was kept before.

    Args:
        purelib: Where the environment's packages lie.
        kept: Folder of the copy, ``previous-engine`` in the environment.
    """
    if not (purelib / "llama_cpp").is_dir():
        return
    fresh = kept.with_name(f"{kept.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    leave_out = shutil.ignore_patterns("__pycache__", "*.py[cod]")
    for name in ("llama_cpp", "bin"):
        if (purelib / name).is_dir():
            shutil.copytree(purelib / name, fresh / name, symlinks=True, ignore=leave_out)
    shutil.rmtree(kept, ignore_errors=True)
    fresh.replace(kept)


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
