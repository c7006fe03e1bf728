"""Reading the cause of a failure from an engine's last lines (texts of real failures)."""

import pytest

from app.domain.causes import find_cause, shorten
from app.domain.outcome import Outcome


@pytest.mark.parametrize(
    ("line", "outcome", "code"),
    [
        (
            (
                "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4168.09 MiB on device 0: "
                "cudaMalloc failed: out of memory"
            ),
            Outcome.OUT_OF_MEMORY,
            "out_of_memory",
        ),
        (
            (
                "llama_init_from_model: failed to initialize the context: failed to allocate "
                "buffer for kv cache"
            ),
            Outcome.OUT_OF_MEMORY,
            "out_of_memory",
        ),
        ("CUDA error: out of memory", Outcome.OUT_OF_MEMORY, "out_of_memory"),
        (
            (
                "ggml_vulkan: Device memory allocation of size 1073741824 failed. "
                "vk::Device::allocateMemory: ErrorOutOfDeviceMemory"
            ),
            Outcome.OUT_OF_MEMORY,
            "out_of_memory",
        ),
        (
            (
                "pre-allocated tensor (cache_k_l5) in a buffer (Vulkan0) that cannot run the "
                "operation (NONE)"
            ),
            Outcome.OUT_OF_MEMORY,
            "device_buffer_limit",
        ),
        ("what():  vk::Queue::submit: ErrorDeviceLost", Outcome.DEVICE_LOST, "device_lost"),
        (
            "CUDA error: the launch timed out and was terminated",
            Outcome.DEVICE_LOST,
            "device_lost",
        ),
        (
            "Remote RPC server crashed or returned malformed response",
            Outcome.DEVICE_LOST,
            "remote_lost",
        ),
        (
            "llama_model_load: error loading model: unknown model architecture: 'gemmaX'",
            Outcome.UNSUPPORTED,
            "unsupported_model",
        ),
        (
            "llama_model_load: error loading model: device CUDA0 does not support split buffers",
            Outcome.UNSUPPORTED,
            "no_split_buffers",
        ),
        (
            "LLAMA_SPLIT_MODE_TENSOR not implemented for architecture 'mamba'",
            Outcome.UNSUPPORTED,
            "no_tensor_split",
        ),
        (
            "llama_init_from_model: quantized V cache requires flash_attn to be enabled",
            Outcome.UNSUPPORTED,
            "needs_flash_attn",
        ),
    ],
)
def test_known_failures(line: str, outcome: Outcome, code: str) -> None:
    """Each text is told apart, quoted, and comes with a next step."""
    cause = find_cause(["llama_model_loader: loaded meta data", line, "something later"])
    assert cause
    assert (cause.outcome, cause.error.code) == (outcome, code)
    assert shorten(line)[:40] in cause.error.message
    assert cause.error.hint


@pytest.mark.parametrize("line", ["", "llama_context: n_ctx = 4096", "STDRIVER loaded"])
def test_ordinary_lines_name_no_cause(line: str) -> None:
    """Nothing is read into a log that says nothing."""
    assert find_cause([line]) is None


def test_long_lines_are_cut() -> None:
    """One line stays one short line."""
    assert shorten("a\n  b") == "a b"
    assert len(shorten("x" * 1000, 50)) == 50
