"""Builds the engine that a release ships, and puts it into the environment of this checkout.

    python3 packaging/bootstrap.py env
    python3 packaging/engine/shipped.py [--cuda]
    sh packaging/linux/build.sh

It differs from the one for development by a CPU module for each kind of processor (the best one is
chosen at run time, so that one without AVX2 works too) and, with --cuda, by CUDA, which needs nvcc.
The same script serves Linux and Windows.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import boot_engine
import boot_vulkan
from boot_host import Problem, say
from bootstrap import PYTHON

# Real code for Turing to Blackwell, so that no start compiles for minutes; newer cards take the
# last one's intermediate code. Without these kernels quantised KV caches would run slowly.
CUDA_FLAGS = (
    "GGML_CUDA=ON",
    "CMAKE_CUDA_ARCHITECTURES=75-real;80-real;86-real;89-real;90-real;120",
    "GGML_CUDA_FA_QUANTS=all",
)


def recipe(*, cuda: bool) -> boot_engine.Recipe:
    """Return the shipped recipe; Vulkan is in it wherever it can be built."""
    flags = (*boot_engine.PORTABLE, "GGML_CPU_ALL_VARIANTS=ON", *(CUDA_FLAGS if cuda else ()))
    name = "shipped-cuda" if cuda else "shipped"
    minutes = "an hour or more" if cuda else "15 to 30"
    if not boot_vulkan.is_possible():
        return boot_engine.Recipe(name, flags, minutes)
    flags = (*flags, "GGML_VULKAN=ON")
    return boot_engine.Recipe(name, flags, minutes, prepare=boot_vulkan.prepare)


def main() -> int:
    """Build, or take from the cache, and install."""
    try:
        wheel = boot_engine.engine_wheel([recipe(cuda="--cuda" in sys.argv[1:])])
        options = ("install", "--no-index", "--no-deps", "--force-reinstall", wheel)
        boot_engine.pip("installing the engine", PYTHON, "pip-engine", options)
    except Problem as problem:
        say(str(problem))
        return 1
    say("the next start of packaging/bootstrap.py keeps it; delete .venv to go back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
