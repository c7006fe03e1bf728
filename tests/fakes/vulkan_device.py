"""Mesa's software Vulkan device (llvmpipe): a real driver path where no GPU is.

It computes on the CPU, many times slower than the CPU itself, and its first use of a shape
compiles for up to a minute: its shader cache is kept beside the engine's.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest

from app.domain.machine import EngineDevice
from app.rig.planner import ask_engine
from app.rig.process import Launch

DRIVERS = Path("/usr/share/vulkan/icd.d")
"""Where systems list their Vulkan drivers."""


@contextlib.contextmanager
def software_vulkan() -> Iterator[EngineDevice]:
    """Make the engine see the software device, and no other through Vulkan; give that device.

    Skips only where the engine was built without Vulkan, which on Linux a CI run must not.
    """
    cache = os.environ.get("RIGTUNE_CACHE") or platformdirs.user_cache_dir("rigtune")
    drivers = sorted(DRIVERS.glob("lvp_icd*.json"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GGML_VK_VISIBLE_DEVICES", "0")
        patch.setenv("VK_DRIVER_FILES", ":".join(map(str, drivers)) or "none")
        patch.setenv("MESA_SHADER_CACHE_DIR", str(_folder(Path(cache, "shaders"))))
        engine = ask_engine(Launch())
        if "Vulkan" not in engine.backends:
            reason = "the engine was built without Vulkan"
            if sys.platform == "linux" and os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
        found = [d for d in engine.devices if d.backend == "Vulkan"]
        assert len(found) == 1, "mesa-vulkan-drivers is missing"
        yield found[0]


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
