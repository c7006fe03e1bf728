"""Why an answer comes slowly now: causes with the evidence that was read, never a guess."""

from collections.abc import Sequence

from app.domain.machine import DriverReset, GpuSample, PowerSource
from app.domain.record import Record
from app.domain.resets import event_of
from app.domain.units import MIB

READING_TOK_S = 10.0
"""Slower than this is slower than people read."""
MISSED_FRAC = 0.85
"""Below this share of the profile's measured speed something is different from then."""
SPILL_BYTES = 64 * MIB
MIN_TOK = 16
"""Tokens an answer needs before its speed says anything."""
_HEAT = {"hw_thermal", "sw_thermal", "hw_slowdown"}
_POWER = {"sw_power_cap", "hw_power_brake"}
_DEEPER_FRAC = 1.5

Data = dict[str, str | int | float | None]


class SlowCause(Record, frozen=True, kw_only=True):
    """A reason, as a code of the texts' section ``slow`` with its data; most certain first."""

    code: str
    data: Data = {}


class SlowEvidence(Record, frozen=True, kw_only=True):
    """What was read while an answer was written.

    Attributes:
        decode_tok_s: Speed of the answer; ``None`` = too few tokens yet.
        promised_tok_s: Speed the profile measured; ``None`` = no profile.
        promised_depth: Tokens in the context then.
        depth: Tokens in the context now.
        n_cpu_layers: Layers (experts count as one each) that the CPU computes.
        n_layers: All of them.
        samples: Newest reading of each device in use.
        names: Name of each device, by key.
        shared_before: System memory each device used when the model was loaded, bytes, by key.
        neighbour: Program that took graphics memory since; ``None`` = none seen.
        power_source: Mains or battery.
        reset: Reset of a graphics driver within the last hour, by the system's log.
    """

    decode_tok_s: float | None
    promised_tok_s: float | None = None
    promised_depth: int | None = None
    depth: int = 0
    n_cpu_layers: int = 0
    n_layers: int = 0
    samples: tuple[GpuSample, ...] = ()
    names: dict[str, str] = {}
    shared_before: dict[str, int] = {}
    neighbour: str | None = None
    power_source: PowerSource = PowerSource.UNKNOWN
    reset: DriverReset | None = None


def slow_causes(now: SlowEvidence) -> tuple[SlowCause, ...]:
    """Return why the answer is slow; empty while it is not, or nothing is known."""
    speed = now.decode_tok_s
    if speed is None:
        return ()
    promised = now.promised_tok_s
    is_below_promise = promised is not None and speed < MISSED_FRAC * promised
    is_slow = is_below_promise or speed < READING_TOK_S
    if not is_slow:
        return ()
    found = [cause for sample in now.samples for cause in _of_device(now, sample)]
    if now.neighbour is not None:
        found.append(SlowCause(code="neighbour", data={"name": now.neighbour}))
    if now.reset is not None and is_below_promise:
        when: Data = {"event": event_of(now.reset), "time": now.reset.time_utc}
        found.append(SlowCause(code="driver_reset", data=when))
    if now.power_source is PowerSource.BATTERY:
        found.append(SlowCause(code="battery"))
    deep = now.promised_depth is not None and now.depth > _DEEPER_FRAC * now.promised_depth
    if is_below_promise and deep:
        data: Data = {"depth": now.depth, "measured_depth": now.promised_depth}
        found.append(SlowCause(code="depth", data=data))
    if speed < READING_TOK_S and now.n_cpu_layers:
        data = {"n_cpu": now.n_cpu_layers, "n_all": now.n_layers}
        found.append(SlowCause(code="cpu_layers", data=data))
    if is_below_promise and not found:
        # that nothing explains it is worth knowing, too
        found.append(SlowCause(code="unexplained", data={"tok_s": speed, "promised": promised}))
    return tuple(found)


def _of_device(now: SlowEvidence, sample: GpuSample) -> Sequence[SlowCause]:
    gpu, found = now.names.get(sample.key, sample.key), []
    reasons = set(sample.throttle or ())
    if reasons & _HEAT:
        data: Data = {"gpu": gpu, "temp_c": sample.temp_c}
        found.append(SlowCause(code="heat", data=data))
    elif reasons & _POWER:
        data = {"gpu": gpu, "power_w": sample.power_w, "limit_w": sample.power_limit_w}
        found.append(SlowCause(code="power_limit", data=data))
    before, shared = now.shared_before.get(sample.key), sample.shared_used_bytes
    if before is not None and shared is not None and shared - before >= SPILL_BYTES:
        data = {"gpu": gpu, "growth_mib": (shared - before) // MIB}
        found.append(SlowCause(code="spill", data=data))
    return found
