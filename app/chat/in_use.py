"""The devices that a chat uses, and what they draw: loaded, and after the model was unloaded."""

from collections.abc import Iterable

from app.domain.machine import GpuSample, Machine, PowerState
from app.domain.record import Record
from app.domain.settings import Settings


class Rest(Record, frozen=True, kw_only=True):
    """What the devices do after an idle model was unloaded.

    Attributes:
        before_w: Their draw with the model loaded and nobody asking; ``None`` = not known.
        now_w: Their draw now; ``None`` = not known.
        is_asleep: Whether all of them sleep.
    """

    before_w: float | None
    now_w: float | None
    is_asleep: bool


def devices_in_use(machine: Machine, settings: Settings) -> dict[str, str]:
    """Return key and name of the GPUs that a model on ``settings`` uses."""
    if settings.n_gpu_layers == 0:
        return {}
    used = [
        gpu
        for gpu in machine.gpus
        if gpu.engine
        and (not settings.devices or {d.name for d in gpu.engine} & set(settings.devices))
    ]
    return {g.key: g.info.name if g.info and g.info.name else g.engine[0].name for g in used}


def draw_w(samples: Iterable[GpuSample]) -> float | None:
    """Return the draw of all devices together; ``None`` where none of them says it."""
    watts = [s.power_w for s in samples if s.power_w is not None]
    return sum(watts) if watts else None


def rest_of(before_w: float | None, samples: Iterable[GpuSample]) -> Rest:
    """Return how the devices rest, by their newest readings."""
    known = tuple(samples)
    is_asleep = bool(known) and all(s.power_state is PowerState.ASLEEP for s in known)
    return Rest(before_w=before_w, now_w=draw_w(known), is_asleep=is_asleep)
