"""A simulated GPU behind the session's heat and power: its sensors, and the helper's fake sysfs."""

import sys
import time
from pathlib import Path

from app.domain.machine import GpuInfo, GpuKind, GpuSample, HostSample, PowerSource
from app.power.client import HelperClient, PipeLink
from tests.fakes.power_sysfs import AMD_PCI, limit_w, make_amd

SCRIPT = Path(__file__).resolve().parent / "power_helper.py"
KEY = AMD_PCI
INFO = GpuInfo(
    probe="drm", pci_id=AMD_PCI, vendor="amd", name="RX test", kind=GpuKind.DISCRETE,
    temp_slowdown_c=83.0,
)  # fmt: skip


class FakeMachine:
    """One AMD card: what its sensors say is set by hand, its limit lies in a fake sysfs.

    Attributes:
        temp_c: Core temperature; ``None`` = not readable.
        power_w: Draw.
        energy_j: Energy counter; ``None`` = there is none.
        t_s: Time of the next readings.
        source: Mains or battery.
        stale: Whether the probe hangs.
    """

    def __init__(self, folder: Path) -> None:
        """Make the card below ``folder``."""
        self.root, self.journal = folder / "root", folder / "journal"
        self.hwmon = make_amd(self.root)
        self.temp_c: float | None = 60.0
        self.power_w: float | None = 200.0
        self.energy_j: float | None = None
        self.t_s = 1000.0
        self.source = PowerSource.AC
        self.stale = self.lost = False
        self.helpers: list[HelperClient] = []

    def limit_w(self) -> float:
        """Return the limit in force."""
        return limit_w(self.hwmon)

    def helper(self) -> HelperClient:
        """Start a helper on the fake sysfs."""
        command = [sys.executable, str(SCRIPT), str(self.root), str(self.journal), "fast"]
        client = HelperClient(PipeLink(command))
        self.helpers.append(client)
        return client

    # --- as telemetry ------------------------------------------------------------------------

    def sample_now(self, timeout_s: float = 0.5) -> bool:
        """Nothing to wait for."""
        return True

    def latest(self, key: str) -> tuple[GpuSample, ...]:
        """Return one reading."""
        return (
            GpuSample(
                key=key,
                t_ns=round(self.t_s * 1e9),
                temp_c=self.temp_c,
                power_w=self.power_w,
                power_limit_w=self.limit_w(),
                energy_j=self.energy_j,
                missing={"temp_c": "lost"} if self.lost else {},
            ),
        )

    def latest_host(self) -> HostSample:
        """Return the power source."""
        return HostSample(t_ns=time.perf_counter_ns(), power_source=self.source)

    def is_stale(self, _sample: GpuSample | HostSample) -> bool:
        """Whether the probe hangs."""
        return self.stale
