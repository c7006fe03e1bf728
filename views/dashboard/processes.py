"""The programs that hold a GPU's memory."""

import os
from collections.abc import Sequence

from app.domain.machine import GpuProcess
from views.units import format_bytes
from views.widgets.basics import Kit
from views.widgets.table import Table
from views.words import absence_text


class ProcessTable(Table):
    """A row per program, the largest first."""

    def __init__(self, kit: Kit, device: str) -> None:
        """Build it empty."""
        super().__init__(kit, "", ["", "", "", "", ""])
        self.setAccessibleName(self.tr("Programs on {device}").format(device=device))
        self.rows.set_headers(
            [
                self.tr("Program"),
                self.tr("PID"),
                self.tr("GPU memory"),
                self.tr("Shared memory"),
                self.tr("GPU time"),
            ]
        )
        self.setFixedHeight(34 * kit.unit)

    def show_processes(self, processes: Sequence[GpuProcess] | None) -> None:
        """Show who holds memory; ``None`` = it cannot be read."""
        if not self.isVisible():
            return
        if processes is None:
            rows = [(absence_text("not_supported"), "", "", "", "")]
        else:
            largest = sorted(processes, key=lambda p: -(p.vram_bytes or 0))
            rows = [_row(process) for process in largest]
        if tuple(rows) != self.rows.rows:
            self.set_rows(rows)


def _row(process: GpuProcess) -> tuple[str, str, str, str, str]:
    busy = "—" if process.busy_pct is None else f"{process.busy_pct:.0f} %"
    name = "RigTune" if process.pid == os.getpid() else process.name or "—"
    return (
        name, str(process.pid), format_bytes(process.vram_bytes),
        format_bytes(process.shared_bytes), busy,
    )  # fmt: skip
