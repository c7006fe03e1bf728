"""Which of the bundle's engine modules serves: by processor, driver, and what is broken of them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.fakes.bundle import Bundle, copied
from tests.fakes.vulkan_device import DRIVERS

pytestmark = pytest.mark.frozen

NEEDS_AVX512 = (
    "skylakex",
    "cannonlake",
    "cascadelake",
    "cooperlake",
    "icelake",
    "zen4",
    "sapphire",
)
BEFORE_AVX2 = ("x64", "sse42", "sandybridge", "ivybridge", "piledriver")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's processor flags")


def library(bundle: Bundle, name: str) -> bool:
    """Whether the bundle's engine has a module."""
    return any(bundle.console.parent.rglob(f"*ggml-{name}.*"))


@on_linux
def test_one_processor_module_serves_and_it_suits_this_processor(bundle: Bundle) -> None:
    """Of the modules for several processors the best one that this processor can run is mapped."""
    flags = set(
        Path("/proc/cpuinfo").read_text("utf-8").partition("flags")[2].split("\n")[0].split()
    )
    shipped = {path.stem for path in bundle.console.parent.rglob("libggml-cpu*.so")}
    with bundle.worker() as (worker, hello):
        maps = psutil.Process(worker.pid).memory_maps()
    assert hello["type"] == "hello"
    (mapped,) = {stem for m in maps if (stem := Path(m.path).stem).startswith("libggml-cpu")}
    assert mapped in shipped
    if len(shipped) > 1:
        is_old = mapped.endswith(BEFORE_AVX2)
        assert is_old != ("avx2" in flags), mapped
        needs_512 = any(word in mapped for word in NEEDS_AVX512)
        assert needs_512 == ("avx512f" in flags), mapped


@pytest.mark.vulkan
def test_a_vulkan_device_is_offered(bundle: Bundle) -> None:
    """With a driver the device is there, software ones named so, and the processor beside it."""
    if not library(bundle, "vulkan"):
        pytest.skip("the bundle was made without Vulkan")
    found = os.pathsep.join(map(str, sorted(DRIVERS.glob("lvp_icd*.json")))) or "none"
    # unasked, the engine takes no device that computes on the processor
    env = {"VK_DRIVER_FILES": found, "GGML_VK_VISIBLE_DEVICES": "0"}
    with bundle.worker(**env) as (_, hello):
        engine = hello["engine"]
    assert {"CPU", "Vulkan"} <= set(engine["backends"])
    assert [d["kind"] for d in engine["devices"]] == ["software"], engine["devices"]


def broken_driver(folder: Path, kind: str) -> dict[str, str]:
    """Return the environment of a machine whose Vulkan driver is missing or broken."""
    description = folder / "icd.json"
    entry: dict[str, Any] = {"library_path": str(folder / "driver.so"), "api_version": "1.3.0"}
    text = json.dumps({"file_format_version": "1.0.0", "ICD": entry})
    description.write_text("{ cut off" if kind == "description" else text, "utf-8")
    if kind == "text":
        (folder / "driver.so").write_text("not a library", "utf-8")
    if kind == "loader":  # what the engine's module itself is linked against
        (folder / "libvulkan.so.1").write_text("not a library", "utf-8")
        return {"LD_LIBRARY_PATH": str(folder)}
    return {"VK_DRIVER_FILES": str(folder / "none.json" if kind == "missing" else description)}


@on_linux
@pytest.mark.parametrize("kind", ["missing", "description", "gone", "text", "loader"])
def test_a_driver_that_is_missing_or_broken_leaves_the_processor(
    bundle: Bundle, tmp_path: Path, kind: str
) -> None:
    """No driver, a damaged description, a library that is gone or none, a broken loader."""
    with bundle.worker(**broken_driver(tmp_path, kind)) as (_, hello):
        assert hello["type"] == "hello", hello
        assert "CPU" in hello["engine"]["backends"]
        assert hello["engine"]["devices"] == []


CRASHING = """
#include <stdlib.h>
void *vk_icdGetInstanceProcAddr(void *instance, const char *name) { abort(); }
int vk_icdNegotiateLoaderICDInterfaceVersion(unsigned *version) { abort(); }
"""


@on_linux
@pytest.mark.skipif(shutil.which("cc") is None, reason="makes a driver with the C compiler")
def test_a_driver_that_crashes_is_a_sentence_with_a_way_out(bundle: Bundle, tmp_path: Path) -> None:
    """A driver may end its process at once: told as that, and the hint leads to the processor."""
    if not library(bundle, "vulkan"):
        pytest.skip("the bundle was made without Vulkan")
    env = broken_driver(tmp_path, "gone")
    source = tmp_path / "driver.c"
    source.write_text(CRASHING, "utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "driver.so", source], check=True)
    done = bundle.run("engine", "--json", **env)
    assert done.returncode == 3
    error = json.loads(done.stdout)["engines"][0]["error"]
    assert "crashed in start" in error["message"]
    assert "VK_LOADER_DRIVERS_DISABLE" in error["hint"]
    with bundle.worker(VK_LOADER_DRIVERS_DISABLE="*", **env) as (_, hello):
        assert hello["engine"]["devices"] == []


def test_a_module_that_came_apart_is_loaded_first(bundle: Bundle, tmp_path: Path) -> None:
    """What lies in `addons` serves before the bundle's own modules, as CUDA must before Vulkan."""
    copy = copied(bundle, tmp_path / "bundle")
    inside = copy.console.parent / "_internal" / "llama_cpp" / "lib"
    name = "Vulkan" if library(bundle, "vulkan") else "RPC"
    pattern = f"*ggml-{name.lower()}.*"
    (module,) = (p for p in inside.glob(pattern) if p.suffix in {".so", ".dll"})
    addons = copy.console.parent / "addons"
    addons.mkdir()
    with copy.worker() as (_, hello):
        assert hello["engine"]["backends"][-1] == "CPU"
    module.rename(addons / module.name)
    (addons / "libggml-broken.so").write_text("not a library", "utf-8")
    with copy.worker() as (_, hello):
        assert hello["engine"]["backends"][0] == name, hello["engine"]
        assert "CPU" in hello["engine"]["backends"]
