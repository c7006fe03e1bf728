"""One GPU: who it is, how it is connected, what it does."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

from app.domain.machine import Gpu, GpuKind, GpuSample, PowerState
from app.domain.memory import DeviceMemory
from views.dashboard.device_card import DeviceCard, Span
from views.dashboard.processes import ProcessTable
from views.dashboard.strips import gpu_strips
from views.feed import TelemetryFeed
from views.units import format_bytes
from views.widgets.basics import Kit, text_label
from views.widgets.memory_split import MemorySplit
from views.words import absence_text, throttle_text

translate = QCoreApplication.translate

GONE = {"lost", "stale", "no_power", "driver_not_loaded", "version_mismatch"}
"""Reasons for which a card that was seen cannot be read any more."""


class GpuCard(DeviceCard):
    """A card per GPU."""

    def __init__(self, kit: Kit, gpu: Gpu, *, is_engine_known: bool) -> None:
        """Build the card of ``gpu``.

        Args:
            kit: What widgets are made of.
            gpu: The GPU.
            is_engine_known: Whether the engine was asked for its devices; while a card sleeps it
                is not, because that would wake it.
        """
        super().__init__(kit, "gpu", gpu_name(gpu), gpu_facts(gpu), gpu_strips(gpu.info))
        self._gpu = gpu
        self._memory = MemorySplit(kit)
        self._memory.hide()
        self.column.addWidget(self._memory)
        self._processes: ProcessTable | None = None
        self._loaded: DeviceMemory | None = None
        self._note = text_label(muted=True)
        self._note.hide()
        self.column.addWidget(self._note)
        self._lasting_note = unmatched_text(gpu.unmatched)
        if is_engine_known and not gpu.engine and gpu.unmatched is None:
            # Why not, a driver or a backend that is missing, is the advice's matter.
            self._lasting_note = self.tr(
                "The engine does not list this GPU, so it will not be used."
            )
        self._say(self._lasting_note)
        self.pill.show_state(*self._first_state())

    def refresh(self, feed: TelemetryFeed, span: Span) -> None:
        """Show the newest readings."""
        newest = feed.latest(self._gpu.key)
        if newest is None:
            return
        if newest.power_state is PowerState.ASLEEP:
            self.pill.show_state(self.tr("asleep"), "muted", "asleep")
            self._say(self.tr("It sleeps to save power. RigTune does not wake it for a graph."))
            self.hide_strips()
            self._memory.hide()
            return
        state, tone = state_of(newest)
        reason = absence_text(newest.missing.get("busy_pct", "")) if tone == "bad" else ""
        self._say(reason or self._lasting_note)
        self.pill.show_state(state, tone)
        self.show_series(feed, self._gpu.key, span, newest.missing)
        self.set_limit("power_w", newest.power_limit_w)
        facts = (gpu_facts(self._gpu), link_now(self._gpu, newest), fan_now(newest))
        self.set_facts(" · ".join(fact for fact in facts if fact))
        total = self._gpu.info.vram_total_bytes if self._gpu.info else None
        self._memory.show_sample(newest, total, self._loaded)
        if self._processes is not None:
            self._processes.show_processes(newest.processes)

    @property
    def processes(self) -> ProcessTable:
        """The programs that use the GPU, made when they are wanted first."""
        if self._processes is None:
            self._processes = ProcessTable(self._kit, self.name)
            self._processes.hide()
            self.column.insertWidget(self.column.indexOf(self._memory) + 1, self._processes)
        return self._processes

    def show_programs(self, is_shown: bool) -> None:  # noqa: FBT001
        """Show the programs that use the GPU, or hide them."""
        if is_shown or self._processes is not None:
            self.processes.setVisible(is_shown)

    @property
    def key(self) -> str:
        """The GPU in the telemetry."""
        return self._gpu.key

    def show_loaded(self, devices: Sequence[DeviceMemory]) -> None:
        """Know what RigTune's own model needs here, part by part; empty = none is loaded."""
        names = {device.name for device in self._gpu.engine}
        self._loaded = next((d for d in devices if d.device in names), None)

    def _first_state(self) -> tuple[str, str]:
        if self._gpu.info is None:
            return self.tr("seen by the engine only"), "muted"
        return self.tr("waiting for readings"), "muted"

    def _say(self, text: str) -> None:
        self._note.setText(text)
        self._note.setVisible(bool(text))


def unmatched_text(code: str | None) -> str:
    """Return why there are no readings of a GPU that only the engine knows."""
    texts = {
        "no_probe_sees_it": translate(
            "GpuCard", "The engine uses this GPU, but no driver tells its readings."
        ),
        "ambiguous_name": translate(
            "GpuCard", "Several GPUs here are called alike: whose readings are this one's is "
            "not known.",
        ),
        "ambiguous_instance": translate(
            "GpuCard", "Several parts of a split card are alike: whose readings are this one's "
            "is not known.",
        ),
    }  # fmt: skip
    return texts.get(code or "", code or "")


def state_of(sample: GpuSample) -> tuple[str, str]:
    """Return what the GPU does, and the tone to say it in."""
    if sample.throttle:
        return translate("GpuCard", "throttled: {why}").format(
            why=throttle_text(sample.throttle)
        ), "warn"
    gone = {sample.missing.get(field) for field in ("busy_pct", "power_w", "temp_c")} & GONE
    if gone and sample.busy_pct is None:
        return translate("GpuCard", "not answering"), "bad"
    if sample.busy_pct is None:
        return translate("GpuCard", "awake"), "good"
    return (
        (translate("GpuCard", "working"), "info")
        if sample.busy_pct >= 10
        else (translate("GpuCard", "idle"), "good")
    )


def link_now(gpu: Gpu, sample: GpuSample) -> str:
    """Return the link in use where it is less than the possible one; idle cards narrow it."""
    info = gpu.info
    if info is None or not (sample.pcie_gen and sample.pcie_width):
        return ""
    if (sample.pcie_gen, sample.pcie_width) == (info.pcie_gen_max, info.pcie_width_max):
        return ""
    text = translate("GpuCard", "link now {gen} x{width}")
    return text.format(gen=sample.pcie_gen, width=sample.pcie_width)


def fan_now(sample: GpuSample) -> str:
    """Return how hard the fan works, as far as it is told."""
    duty = None if sample.fan_pct is None else f"{sample.fan_pct:.0f} %"
    turns = None
    if sample.fan_rpm is not None:
        turns = translate("GpuCard", "{n} rpm").format(n=f"{sample.fan_rpm:.0f}")
    shown = ", ".join(x for x in (duty, turns) if x)
    return translate("GpuCard", "fan {speed}").format(speed=shown) if shown else ""


def gpu_name(gpu: Gpu) -> str:
    """Return the best name there is."""
    if gpu.info is not None and gpu.info.name:
        return gpu.info.name
    return gpu.engine[0].description if gpu.engine else gpu.key


def gpu_facts(gpu: Gpu) -> str:
    """Return identity and connection in one line."""
    info = gpu.info
    parts = []
    kind = info.kind if info else gpu.engine[0].kind
    kinds = {
        GpuKind.DISCRETE: translate("GpuCard", "discrete"),
        GpuKind.INTEGRATED: translate("GpuCard", "integrated"),
        GpuKind.SOFTWARE: translate("GpuCard", "software device"),
        GpuKind.REMOTE: translate("GpuCard", "remote device"),
    }
    if kind in kinds:
        parts.append(kinds[kind])
    total = info.vram_total_bytes if info else gpu.engine[0].total_bytes
    if total is not None:
        parts.append(format_bytes(total))
    if info is not None:
        if info.driver:
            parts.append(translate("GpuCard", "driver {name}").format(name=info.driver))
        if info.pcie_gen_max and info.pcie_width_max:
            text = translate("GpuCard", "PCIe {gen} x{width}")
            parts.append(text.format(gen=info.pcie_gen_max, width=info.pcie_width_max))
        if info.drives_display:
            parts.append(translate("GpuCard", "drives the display"))
    if gpu.engine:
        parts.append(
            translate("GpuCard", "engine: {names}").format(
                names=", ".join(d.name for d in gpu.engine)
            )
        )
    return " · ".join(parts)
