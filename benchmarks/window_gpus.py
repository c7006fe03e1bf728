"""The measured process for eight GPUs: the dashboard on a real telemetry with made-up readings.

Prints the CPU time of the whole process, reading and drawing together, as per cent of one core.
"""

import json
import time
from collections.abc import Iterator

import msgspec
from typing_extensions import override
from window_child import idle_pct, run_loop, wait_until

from app.domain.machine import GpuInfo, GpuSample, HostInfo, HostSample, Machine
from app.domain.units import NS_PER_S
from app.telemetry import Telemetry
from tests.fakes import window_data as data
from tests.fakes.session import FakeSession

N_GPUS = 8
PAST_S = 65
SETTLE_S = 3.0


class Probe:
    """Eight cards whose readings move a little."""

    name = "made up"

    def __init__(self) -> None:
        """Start with the first step."""
        self._step = 0

    def identify(self) -> tuple[GpuInfo, ...]:
        """Return nothing: the machine names the cards."""
        return ()

    def sample(self) -> tuple[GpuSample, ...]:
        """Return one reading per card; the first time those of the last minute, too.

        So the curves are as long as they get at once.
        """
        ages_s = (0,) if self._step else range(PAST_S, -1, -1)
        now = time.perf_counter_ns()
        return tuple(sample for age_s in ages_s for sample in self._read(now - age_s * NS_PER_S))

    def _read(self, t_ns: int) -> Iterator[GpuSample]:
        self._step += 1
        for i in range(N_GPUS):
            yield msgspec.structs.replace(data.gpu_sample(t_ns, self._step + i), key=f"GPU-{i}")

    def close(self) -> None:
        """Release nothing."""


class Host:
    """CPU and RAM."""

    def identify(self) -> HostInfo:
        """Return the made-up host."""
        return data.HOST

    def sample(self) -> HostSample:
        """Return one reading."""
        return data.host_sample(time.perf_counter_ns(), 1)

    def close(self) -> None:
        """Release nothing."""


class Session(FakeSession):
    """The fake session on a real telemetry."""

    @override
    def telemetry(self, interval_s: float | None = None) -> Telemetry:  # type: ignore[override]
        """Return the readings, started."""
        telemetry = Telemetry((Probe(),), Host(), interval_s=interval_s)
        telemetry.start()
        self.real = telemetry
        return telemetry


def main() -> int:
    """Measure the dashboard on screen, another page, and the window minimised."""
    from PySide6.QtWidgets import QApplication  # noqa: PLC0415, TID251 - measures the window

    from views.icons import Icons  # noqa: PLC0415
    from views.main_window import MainWindow  # noqa: PLC0415
    from views.state import WindowState  # noqa: PLC0415
    from views.theme import Theme  # noqa: PLC0415
    from views.widgets import Kit  # noqa: PLC0415

    app = QApplication([])
    theme = Theme(app)
    gpus = tuple(msgspec.structs.replace(data.DISCRETE, key=f"GPU-{i}") for i in range(N_GPUS))
    session = Session(Machine(host=data.HOST, gpus=gpus, engine=data.MACHINE.engine))
    window = MainWindow(Kit(theme, Icons(theme)), lambda: session, WindowState())
    window.resize(1600, 1000)
    window.show()
    window.start()
    wait_until(lambda: window.is_ready and not window.jobs.running(), "the pages")
    window.open_page("dashboard")  # a fresh home shows the introduction first
    run_loop(SETTLE_S)
    figures = {"gpus_visible_pct": idle_pct()}
    window.open_page("advice")
    run_loop(SETTLE_S)
    figures["gpus_other_page_pct"] = idle_pct()
    window.open_page("dashboard")
    window.hide()
    run_loop(SETTLE_S)
    figures["gpus_hidden_pct"] = idle_pct()
    session.real.set_interval(None)
    figures["paused_pct"] = idle_pct()
    session.real.stop()
    window.show()
    window.finish()
    wait_until(lambda: not window.isVisible(), "the window to close")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
