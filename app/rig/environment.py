"""The environment a worker starts with: free of what changes the engine behind our back."""

from collections.abc import Sequence

from app.rig.pins import Pin, visible_to_cuda
from app.runtime import sibling_environment

# The engine's own variables switch backends, memory and kernels. Some count by mere presence
# (GGML_VK_ALLOW_SYSMEM_FALLBACK=0 switches the fallback on), so they are removed, not set.
_PREFIXES = ("GGML_", "LLAMA_")
_KEPT = frozenset(
    {
        # which devices exist is the user's decision
        "GGML_VK_VISIBLE_DEVICES",
        "GGML_CUDA_DEVICES",
        "GGML_OPENCL_DEVICE",
        "GGML_OPENCL_PLATFORM",
    }
)
_REMOVED = frozenset({"CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "HSA_XNACK"})


def worker_environment(pins: Sequence[Pin] | None = None) -> dict[str, str]:
    """Return this process's environment, cleaned for a worker that may use only ``pins``."""
    environment = {
        name: value
        for name, value in sibling_environment().items()
        if name in _KEPT or not (name.startswith(_PREFIXES) or name in _REMOVED)
    }
    # the order of NVML and nvidia-smi; CUDA's own default puts the fastest first
    environment.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    visible = visible_to_cuda(pins) if pins is not None else None
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    return environment
