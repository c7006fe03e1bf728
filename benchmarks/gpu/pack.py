"""Gathers what a machine without a network needs for the GPU benchmarks, in one ignored folder.

    python benchmarks/gpu/pack.py ENGINE_DIR VOCAB_DIR

ENGINE_DIR holds ``libs.tar.xz.*`` (libllama, ggml with CUDA, llama-bench) and ``make_models.py``;
VOCAB_DIR holds llama.cpp's ``models/ggml-vocab-*.gguf``. The binding's Python files come from this
environment, wheels from the package index. ``setup.sh`` unpacks the folder on the other machine.
"""

import argparse
import lzma
import shutil
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / ".gpu"
MAX_BYTES = 64 << 20
VOCABULARIES = ("qwen2", "llama-bpe", "llama-spm")
# what a Python with the usual scientific packages lacks, in the versions of our locks
WHEELS = ("msgspec", "platformdirs", "psutil", "rich", "diskcache", "nvidia-ml-py", "gguf")
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
LOADERS = (
    "libvulkan1", "libegl1", "libglvnd0", "libopengl0", "libgl1", "libglx0", "libgles2",
    "libx11-6", "libxcb1", "libxau6", "libxdmcp6", "libxext6", "libbsd0", "libmd0",
)  # fmt: skip


def main() -> int:
    """Write the folder and say how large what travels is."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("engine_dir", type=Path)
    parser.add_argument("vocab_dir", type=Path)
    parser.add_argument(
        "--vulkan", action="store_true", help="also this environment's engine, with its Vulkan part"
    )
    args = parser.parse_args()
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir()
    ignore()
    for part in [*args.engine_dir.glob("libs.tar.xz.*"), args.engine_dir / "make_models.py"]:
        shutil.copyfile(part, TARGET / part.name)
    copy_binding()
    for name in VOCABULARIES:
        data = (args.vocab_dir / f"ggml-vocab-{name}.gguf").read_bytes()
        (TARGET / f"ggml-vocab-{name}.gguf.xz").write_bytes(lzma.compress(data))
    download_wheels()
    if args.vulkan:
        add_vulkan()
    carried, tree = folder_bytes(TARGET), tree_bytes()
    print(f"{TARGET}: {carried / 2**20:.1f} MiB, tree {tree / 2**20:.1f} MiB")
    return 0 if carried + tree < MAX_BYTES else 1


def ignore() -> None:
    """Keep the folder out of the repository without a line in the shared ignore file."""
    found = subprocess.run(
        ["git", "rev-parse", "--git-path", "info/exclude"],  # noqa: S607 - git is on the path
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    exclude = ROOT / found.stdout.strip()
    lines = exclude.read_text(encoding="utf-8").splitlines() if exclude.exists() else []
    if "/.gpu/" not in lines:
        exclude.write_text("\n".join([*lines, "/.gpu/", ""]), encoding="utf-8")


def copy_binding() -> None:
    """Copy the binding without the libraries this machine built."""
    spec = find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        sys.exit("llama_cpp is not installed here")
    shutil.copytree(
        Path(spec.origin).parent,
        TARGET / "llama_cpp",
        ignore=shutil.ignore_patterns("lib", "__pycache__"),
    )


def download_wheels() -> None:
    """Fetch the wheels for Python 3.12 on Linux, in the versions that the locks name."""
    pins = [pin for name in WHEELS if (pin := locked(name))]
    platforms = [word for p in PLATFORMS for word in ("--platform", p)]
    # an environment made without pip borrows the system's
    python = sys.executable if find_spec("pip") else "python3"
    subprocess.run(
        [
            python, "-m", "pip", "download", "--quiet", "--no-deps",
            "--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp",
            *platforms, "-d", str(TARGET), *pins,
        ],
        check=True,
    )  # fmt: skip


def add_vulkan() -> None:
    """Pack this environment's own engine and what a bare machine lacks for Vulkan.

    The driver's part opens GLVND and X libraries even where nothing is drawn.
    """
    spec = find_spec("llama_cpp")
    assert spec
    assert spec.origin
    libraries = Path(spec.origin).parent / "lib"
    if not (libraries / "libggml-vulkan.so").exists():
        sys.exit(f"{libraries} has no Vulkan part")
    with tarfile.open(TARGET / "vulkan.tar.xz", "w:xz") as archive:
        for path in sorted(libraries.glob("*.so*")):
            # libfoo.so and libfoo.so.0.1 are copies of libfoo.so.0; libllama.so is what is opened
            if path.name.count(".") < 4 and not is_copy(path):
                archive.add(path, arcname=path.name)
    subprocess.run(
        ["apt-get", "download", "--quiet", *LOADERS],  # noqa: S607 - a Debian tool
        cwd=TARGET,
        check=True,
    )


def is_copy(path: Path) -> bool:
    """Whether the same library is there under the name by which others ask for it."""
    return path.with_name(path.name + ".0").exists() and path.name != "libllama.so"


def locked(name: str) -> str:
    """Return ``name==version`` as a lock file has it."""
    for lock in sorted((ROOT / "packaging/requirements").glob("*.txt")):
        for line in lock.read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}=="):
                return line.split()[0]
    sys.exit(f"no lock file names {name}")


def folder_bytes(folder: Path) -> int:
    """Return the size of all files in ``folder``."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def tree_bytes() -> int:
    """Return the size of all files of the repository that are not ignored."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    names = [n for n in listed.stdout.split("\0") if n]
    return sum((ROOT / n).stat().st_size for n in set(names) if (ROOT / n).is_file())


if __name__ == "__main__":
    sys.exit(main())
