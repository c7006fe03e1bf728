"""Builds the engine that a release ships, and puts it into the environment of this checkout.

    python3 packaging/bootstrap.py env
    python3 packaging/engine/shipped.py
    sh packaging/linux/build.sh

It differs from the one for development by a CPU module for each kind of processor: the best one is
chosen at run time, so that one without AVX2 works too. The same script serves Linux and Windows.

    python3 packaging/engine/shipped.py --cuda FOLDER

builds the CUDA module with nvcc instead, and writes it with NVIDIA's run time into a folder for
users to put beside the programs as `addons`. It fits the bundle of the same version only. For one's
own card alone, in a fraction of the time: `--architectures native`, or a number such as 89-real.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import zipfile
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import boot_engine
import boot_vulkan
from boot_host import WINDOWS, Problem, say
from bootstrap import PYTHON

ALL_PROCESSORS = (*boot_engine.PORTABLE, "GGML_CPU_ALL_VARIANTS=ON")
# Real code for Turing to Blackwell, so that no start compiles for minutes; newer cards take the
# last one's intermediate code.
ARCHITECTURES = "75-real;80-real;86-real;89-real;90-real;120"
CUDA_RUN_TIME = (
    ("cudart64_*.dll", "cublas64_*.dll", "cublasLt64_*.dll")
    if WINDOWS
    else ("libcudart.so.*", "libcublas.so.*", "libcublasLt.so.*")
)


def recipe() -> boot_engine.Recipe:
    """Return the shipped recipe; Vulkan is in it wherever it can be built."""
    if not boot_vulkan.is_possible():
        return boot_engine.Recipe("shipped", ALL_PROCESSORS, "10 to 20")
    flags = (*ALL_PROCESSORS, "GGML_VULKAN=ON")
    return boot_engine.Recipe("shipped", flags, "14 to 30", prepare=boot_vulkan.prepare)


def cuda_recipe(architectures: str) -> boot_engine.Recipe:
    """Return how the CUDA module is built for these cards, in CMake's names."""
    flags = (
        *boot_engine.CUDA,
        f"CMAKE_CUDA_ARCHITECTURES={architectures}",
        "GGML_CUDA_FA_QUANTS=all",  # quantised KV caches would run slowly without
    )
    return boot_engine.Recipe("cuda", flags, "80 and more for each kind of card:")


def write_cuda(folder: Path, architectures: str) -> None:
    """Build the CUDA module and write it with what it needs into ``folder``."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise Problem("The CUDA module needs nvcc, NVIDIA's compiler, in PATH.")
    kit = Path(os.path.realpath(nvcc)).parents[1]
    libraries = [file for pattern in CUDA_RUN_TIME for file in kit.rglob(pattern)]
    if not libraries:
        raise Problem(f"CUDA's run time was not found below {kit}.")
    wheel = boot_engine.engine_wheel([cuda_recipe(architectures)])
    folder.mkdir(parents=True, exist_ok=True)
    unpack_modules(wheel, folder, "ggml-cuda")
    for file in libraries:
        # by the name that the module asks for: links become files, so that any disk holds them
        shutil.copyfile(file, folder / file.name)


def unpack_modules(wheel: Path, folder: Path, word: str) -> None:
    """Write the wheel's engine modules whose name has ``word`` into ``folder``."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            path = PurePosixPath(name)
            if word in path.name and path.suffix in {".so", ".dll"}:
                (folder / path.name).write_bytes(archive.read(name))


def main() -> int:
    """Build, or take from the cache, and install or write."""
    parser = argparse.ArgumentParser(description="Build the engine that a release ships.")
    parser.add_argument("--cuda", type=Path, metavar="FOLDER", help="write the CUDA module here")
    parser.add_argument("--architectures", default=ARCHITECTURES, help="CUDA cards to build for")
    given = parser.parse_args()
    try:
        if given.cuda:
            write_cuda(given.cuda, given.architectures)
            return 0
        wheel = boot_engine.engine_wheel([recipe()])
        options = ("install", "--no-index", "--no-deps", "--force-reinstall", wheel)
        boot_engine.pip("installing the engine", PYTHON, "pip-engine", options)
    except Problem as problem:
        say(str(problem))
        return 1
    say("the next start of packaging/bootstrap.py keeps it; delete .venv to go back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
