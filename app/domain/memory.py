"""What a configuration needs, per device and part, and whether it fits."""

from enum import StrEnum

from app.domain.record import Record


class Verdict(StrEnum):
    """Whether a configuration fits a device."""

    FITS = "fits"
    TIGHT = "tight"
    DOES_NOT_FIT = "does_not_fit"
    UNKNOWN = "unknown"


class MemorySource(StrEnum):
    """Where an estimate comes from."""

    DRY_RUN = "dry_run"
    FORMULA = "formula"
    REPLAY = "replay"


class DeviceMemory(Record, frozen=True, kw_only=True):
    """Bytes one device must hold. ``device`` is an engine name, or ``host`` for RAM.

    ``None`` in a part means it is not known separately (then ``total_bytes`` says it all).
    ``driver_context`` and ``growth`` are what llama.cpp does not count: the driver's own
    context and what backends allocate at first use. ``measured_parts`` names those of the two
    that real loads on this machine showed, with ``measured_driver``; the others come from a
    table. ``reserve_bytes`` is
    kept for something else and no part of the total; ``capacity_bytes`` is all the device has.
    ``reason`` is a code for a verdict that
    needs one: ``will_thrash``, ``swapped``, ``out_of_ram``, ``pinned``, ``asleep``, ``unread``.
    """

    device: str
    weights_bytes: int | None = None
    kv_cache_bytes: int | None = None
    recurrent_state_bytes: int | None = None
    compute_bytes: int | None = None
    output_bytes: int | None = None
    driver_context_bytes: int | None = None
    growth_bytes: int | None = None
    total_bytes: int
    free_bytes: int | None = None
    capacity_bytes: int | None = None
    headroom_bytes: int = 0
    reserve_bytes: int = 0
    measured_parts: tuple[str, ...] = ()
    measured_driver: str | None = None
    verdict: Verdict = Verdict.UNKNOWN
    reason: str | None = None


class MemoryEstimate(Record, frozen=True, kw_only=True):
    """The need of one configuration.

    Attributes:
        devices: GPUs first, then ``host``.
        source: Dry run (exact), formula or replay.
        verdict: The worst verdict over the devices.
        elapsed_ms: Time the answer took.
        note: Why it cannot run at all, where the engine refused (an abort means no fit).
        max_error_pct: Error bar of a formula's total, ``None`` for exact sources.
    """

    devices: tuple[DeviceMemory, ...]
    source: MemorySource
    verdict: Verdict
    elapsed_ms: float | None = None
    note: str | None = None
    max_error_pct: float | None = None

    def device_bytes(self) -> dict[str, int]:
        """Total need per GPU (host excluded), bytes."""
        return {d.device: d.total_bytes for d in self.devices if d.device != "host"}
