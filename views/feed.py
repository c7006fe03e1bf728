"""Live readings for the window: tells listeners at most twice a second that there are new ones.

The readings themselves stay in ``app.telemetry``, whose ring buffers any thread may read.
"""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import isnan
from typing import Protocol

import msgspec
from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.domain.machine import STALE, GpuSample, HostSample, PowerState
from views.plots.canvas import Point

MIN_GAP_MS = 500
MAX_GAP_MS = 900
GAP_FRAC = 0.9
MAX_POINTS = 240
HOST = "host"


class SeriesPort(Protocol):
    """One quantity over time, oldest first; NaN where it was not known."""

    @property
    def t_s(self) -> Sequence[float]:
        """Times, ``time.perf_counter()`` seconds."""
        ...

    @property
    def values(self) -> Sequence[float]:
        """Values."""
        ...


class TelemetryPort(Protocol):
    """What the window needs of ``app.telemetry``."""

    def subscribe(
        self, callback: Callable[[str, GpuSample | HostSample], None]
    ) -> Callable[[], None]:
        """Call ``callback`` with every sample, on any thread, until the returned call."""
        ...

    def set_interval(self, interval_s: float | None) -> None:
        """Change the pace outside trials."""
        ...

    def latest(self, key: str) -> Sequence[GpuSample]:
        """Return the newest sample of each probe that reads this GPU, best probe first."""
        ...

    def latest_host(self) -> HostSample | None:
        """Return the newest sample of the host."""
        ...

    def is_stale(self, sample: GpuSample | HostSample) -> bool:
        """Whether a sample is older than its probe should need."""
        ...

    def series(self, key: str, field: str) -> SeriesPort | None:
        """Return the recent past of a field."""
        ...


class TelemetryFeed(QObject):
    """Readings for the GUI thread.

    Signals:
        updated: There are new readings; not sent while nobody looks.
    """

    updated = Signal()
    _woken = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        """Start without a source."""
        super().__init__(parent)
        self._telemetry: TelemetryPort | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._is_active = False
        self._is_told = False
        self._gap = QTimer(self)
        self._gap.setSingleShot(True)
        self._gap.setInterval(MIN_GAP_MS)
        self._gap.timeout.connect(self._on_gap_over)
        self._woken.connect(self._on_woken, Qt.ConnectionType.QueuedConnection)

    def attach(self, telemetry: TelemetryPort) -> None:
        """Listen to ``telemetry`` from now on."""
        self.detach()
        self._telemetry = telemetry
        self._unsubscribe = telemetry.subscribe(self._on_sample)
        self.updated.emit()

    def detach(self) -> None:
        """Stop listening."""
        self._gap.stop()
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._unsubscribe = self._telemetry = None

    def set_interval(self, interval_s: float) -> None:
        """Read every ``interval_s`` outside trials, and tell of it as often.

        Probes answer one after the other: without the gap each would redraw every card.
        """
        self._gap.setInterval(round(min(MAX_GAP_MS, GAP_FRAC * 1000 * interval_s)))
        if self._telemetry is not None:
            self._telemetry.set_interval(interval_s)

    def set_active(self, is_active: bool) -> None:  # noqa: FBT001
        """Tell of new readings, or let them be because nobody looks."""
        self._is_active = is_active
        self._is_told = False
        if not is_active:
            self._gap.stop()

    def latest(self, key: str) -> GpuSample | None:
        """Return the newest reading of a GPU, put together from every probe that reads it.

        What a probe should have read again by now is not known: its driver hangs.
        """
        return None if self._telemetry is None else merged(timely(self._telemetry, key))

    def is_host_stale(self) -> bool:
        """Whether the host should have been read again by now."""
        newest = self.latest_host()
        return bool(self._telemetry and newest and self._telemetry.is_stale(newest))

    def readings(self, keys: Sequence[str]) -> dict[str, tuple[GpuSample, ...]]:
        """Return the newest reading of every probe, by GPU; empty without a source."""
        if self._telemetry is None:
            return {}
        return {key: timely(self._telemetry, key) for key in keys}

    def latest_host(self) -> HostSample | None:
        """Return the newest reading of the host."""
        return self._telemetry.latest_host() if self._telemetry else None

    def points(
        self, key: str, field: str, window_s: float, until_s: float | None = None
    ) -> list[Point]:
        """Return a field inside the window as points, few enough to draw.

        Args:
            key: The device.
            field: Field of its samples.
            window_s: Length of the window, seconds.
            until_s: Its end, ``time.perf_counter()``; ``None`` = now.
        """
        series = self._telemetry.series(key, field) if self._telemetry else None
        end_s = time.perf_counter() if until_s is None else until_s
        return [] if series is None else recent(series, end_s, window_s)

    def series(self, key: str, field: str) -> SeriesPort | None:
        """Return all that is kept of a field; any thread."""
        telemetry = self._telemetry
        return telemetry.series(key, field) if telemetry else None

    def _on_sample(self, _key: str, _sample: GpuSample | HostSample) -> None:
        # Probe threads: one queued call at a time, and none at all while nobody looks.
        if not self._is_active or self._is_told:
            return
        self._is_told = True
        try:
            self._woken.emit()
        except RuntimeError:
            return  # the window is gone

    @Slot()
    def _on_woken(self) -> None:
        if self._is_active and not self._gap.isActive():
            self._is_told = False
            self._gap.start()
            self.updated.emit()

    @Slot()
    def _on_gap_over(self) -> None:
        if self._is_told:
            self._on_woken()


def timely(telemetry: TelemetryPort, key: str) -> tuple[GpuSample, ...]:
    """Return the newest sample of each probe; one that is too old is known to be nothing."""
    return tuple(
        GpuSample.unread(s.key, s.t_ns, STALE) if telemetry.is_stale(s) else s
        for s in telemetry.latest(key)
    )


def merged(samples: Sequence[GpuSample]) -> GpuSample | None:
    """Return one reading with, for each field, the first one that is known."""
    if not samples:
        return None
    fields = {}
    for name in GpuSample.__struct_fields__:
        values = [getattr(s, name) for s in samples]
        fields[name] = next((v for v in values if v is not None), None)
    states = [s.power_state for s in samples if s.power_state is not PowerState.UNKNOWN]
    fields["power_state"] = states[0] if states else PowerState.UNKNOWN
    reasons = {name: why for s in reversed(samples) for name, why in s.missing.items()}
    fields["missing"] = {n: why for n, why in reasons.items() if fields.get(n) is None}
    return msgspec.structs.replace(samples[0], **fields)


def recent(series: SeriesPort, now_s: float, window_s: float) -> list[Point]:
    """Return the window's points as (age in seconds, value); the highest of each bucket."""
    first = bisect_left(series.t_s, now_s - window_s)
    last = bisect_right(series.t_s, now_s)
    count = last - first
    step = max(1, count // MAX_POINTS)
    if step == 1:  # most of the time, and for fifty curves a second
        values = series.values[first:last]
        pairs = zip(series.t_s[first:last], values, strict=True)
        if isnan(sum(values)):
            return [(now_s - t_s, None if isnan(v) else v) for t_s, v in pairs]
        return [(now_s - t_s, v) for t_s, v in pairs]
    found: list[Point] = []
    # Buckets are counted from the newest reading, so that it is always the last point itself.
    for end in range(last, first, -step):
        start = max(first, end - step)
        values = [v for v in series.values[start:end] if not isnan(v)]
        found.append((now_s - series.t_s[end - 1], max(values) if values else None))
    return found[::-1]
