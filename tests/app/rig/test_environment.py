"""The environment of a worker."""

import pytest

from app.rig.environment import worker_environment


def test_variables_that_change_the_engine_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What switches memory, backends or arguments does not reach the worker."""
    names = (
        "GGML_CUDA_ENABLE_UNIFIED_MEMORY",
        "GGML_VK_ALLOW_SYSMEM_FALLBACK",
        "GGML_BACKEND_PATH",
        "LLAMA_ARG_N_GPU_LAYERS",
        "LLAMA_CPP_LIB_PATH",
        "CUDA_LAUNCH_BLOCKING",
    )
    for name in names:
        monkeypatch.setenv(name, "0")
    assert not set(names) & set(worker_environment())


def test_choice_of_devices_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which devices exist is the user's decision."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    monkeypatch.setenv("GGML_VK_VISIBLE_DEVICES", "0")
    environment = worker_environment()
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert environment["GGML_VK_VISIBLE_DEVICES"] == "0"


def test_cuda_order_is_stable(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA counts as NVML does, unless the user says otherwise."""
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    assert worker_environment()["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    assert worker_environment()["CUDA_DEVICE_ORDER"] == "FASTEST_FIRST"
