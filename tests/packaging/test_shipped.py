"""What a release's engine is built from, and the CUDA module as a folder of its own."""

import importlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture(scope="module")
def shipped() -> Iterator[Any]:
    """Load the script with its folders on the path, as the command line does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        patch.syspath_prepend(str(FOLDER / "engine"))
        yield importlib.import_module("shipped")
    for name in ("shipped", "bootstrap", "boot_engine", "boot_host", "boot_vulkan"):
        sys.modules.pop(name, None)


def test_release_is_for_every_processor_and_loads_at_run_time(shipped: Any) -> None:
    """No flag of the building machine may get in; without Vulkan's parts the rest is built."""
    flags = set(shipped.recipe().flags)
    wanted = {"GGML_BACKEND_DL=ON", "GGML_NATIVE=OFF", "GGML_CPU_ALL_VARIANTS=ON", "GGML_RPC=ON"}
    assert wanted <= flags
    assert shipped.recipe().name == "shipped"


def test_windows_builds_vulkan_with_its_development_kit_only(
    shipped: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kit's installer sets a variable; without it the processor's modules are built."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delenv("VULKAN_SDK", raising=False)
    assert "GGML_VULKAN=ON" not in shipped.recipe().flags
    monkeypatch.setenv("VULKAN_SDK", "C:\\VulkanSDK")
    assert "GGML_VULKAN=ON" in shipped.recipe().flags
    assert shipped.recipe().prepare() == ()


def test_cuda_without_nvcc_is_a_sentence(
    shipped: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is built and no folder made where the compiler is missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(shipped.Problem, match="nvcc"):
        shipped.write_cuda(tmp_path / "addons", "native")
    assert list(tmp_path.iterdir()) == []


def test_only_the_module_is_taken_out_of_the_wheel(shipped: Any, tmp_path: Path) -> None:
    """The module once, wherever the wheel holds it; the rest is the bundle's own."""
    wheel = tmp_path / "engine.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("llama_cpp/lib/libggml-cuda.so", "bin/libggml-cuda.so", "bin/libggml-rpc.so"):
            archive.writestr(name, b"code")
    target = tmp_path / "addons"
    target.mkdir()
    shipped.unpack_modules(wheel, target, "ggml-cuda")
    assert [p.name for p in target.iterdir()] == ["libggml-cuda.so"]
