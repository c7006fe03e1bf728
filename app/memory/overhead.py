"""What llama.cpp does not count: the driver's context and what backends allocate at first use."""

from collections.abc import Mapping

from app.domain.machine import GpuKind
from app.domain.record import Record
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import SearchDevice
from app.domain.units import MIB

# Priors, used until a real load on this machine has shown the truth. CUDA was measured on one
# card: 530 MiB of context, 80-250 MiB of growth, and without flash attention 1.1 GiB of growth
# at 32k depth. Other GPUs get the same until they are measured.
_DRIVER_CONTEXT = 530 * MIB
_GROWTH = 250 * MIB
_PLAIN_ATTENTION_GROWTH = 1126 * MIB
_PLAIN_ATTENTION_DEPTH = 32768
# a server that computes on its CPU, and software drivers, have no context of their own
_CPU_BACKED_GROWTH = 16 * MIB
_HEADROOM = 256 * MIB
_DISPLAY_HEADROOM = 512 * MIB
_FLOOR = 128 * MIB
_FLOOR_OVER_GROWTH = 32 * MIB
_DISPLAY_MINIMUM = 256 * MIB
_FIRST_BUCKET = 2048

DRIVER_CONTEXT = "driver_context"
GROWTH = "growth"


class Overhead(Record, frozen=True, kw_only=True):
    """Memory of a device beyond the engine's own buffers, bytes.

    ``measured`` names the parts that real loads on this machine showed, with ``driver``; the
    others are priors.
    """

    driver_context_bytes: int
    growth_bytes: int
    measured: tuple[str, ...] = ()
    driver: str | None = None


def depth_bucket(depth: int) -> int:
    """Return the highest depth whose growth counts as that of ``depth``, tokens."""
    return max(_FIRST_BUCKET, 1 << max(0, depth - 1).bit_length())


def calibration_slot(device: str, settings: Settings, *, has_cpu_layers: bool) -> str:
    """Return the key under which the growth of ``settings`` on ``device`` is learned.

    With flash attention growth does not depend on the depth; without it counts the full context.
    """
    layers = "split" if has_cpu_layers else "whole"
    slot = f"{device}/{settings.n_ubatch}/{layers}"
    if settings.flash_attn is FlashAttn.OFF:
        return f"{slot}/plain/{depth_bucket(settings.n_ctx)}"
    return f"{slot}/flash"


def overhead(
    device: SearchDevice,
    settings: Settings,
    calibration: Mapping[str, Overhead],
    *,
    has_cpu_layers: bool,
) -> Overhead:
    """Return what a real load taught about this device and shape, else the prior.

    The driver's context is the same for every shape: ``calibration`` has it under the device's
    name.
    """
    slot = calibration_slot(device.id, settings, has_cpu_layers=has_cpu_layers)
    if slot in calibration:
        return calibration[slot]
    prior, seen = _prior(device, settings), calibration.get(device.id)
    if seen is None:
        return prior
    return Overhead(
        driver_context_bytes=seen.driver_context_bytes,
        growth_bytes=prior.growth_bytes,
        measured=(DRIVER_CONTEXT,),
        driver=seen.driver,
    )


def headroom_bytes(*, drives_display: bool) -> int:
    """Return what to leave free on a device by default."""
    return _DISPLAY_HEADROOM if drives_display else _HEADROOM


def floor_bytes(growth: int, *, drives_display: bool) -> int:
    """Return what must be free once the context exists, or the first batches abort."""
    floor = max(_FLOOR, growth + _FLOOR_OVER_GROWTH)
    return max(floor, growth + _DISPLAY_MINIMUM) if drives_display else floor


def is_cpu_backed(device: SearchDevice) -> bool:
    """Return whether the device computes without a GPU driver in our process."""
    return device.kind in {GpuKind.SOFTWARE, GpuKind.REMOTE} or device.backend == "RPC"


def _prior(device: SearchDevice, settings: Settings) -> Overhead:
    if is_cpu_backed(device):
        return Overhead(driver_context_bytes=0, growth_bytes=_CPU_BACKED_GROWTH)
    growth = _GROWTH
    if settings.flash_attn is FlashAttn.OFF:
        depth = settings.n_ctx / _PLAIN_ATTENTION_DEPTH
        growth += round((_PLAIN_ATTENTION_GROWTH - _GROWTH) * depth)
    return Overhead(driver_context_bytes=_DRIVER_CONTEXT, growth_bytes=growth)
