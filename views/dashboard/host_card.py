"""CPU and RAM."""

from PySide6.QtCore import QCoreApplication

from app.domain.machine import STALE, HostInfo, PowerSource
from views.dashboard.device_card import DeviceCard, Span
from views.dashboard.strips import host_strips
from views.feed import HOST, TelemetryFeed
from views.units import format_bytes
from views.widgets.basics import Kit

translate = QCoreApplication.translate


class HostCard(DeviceCard):
    """The card of the machine itself."""

    def __init__(self, kit: Kit, host: HostInfo) -> None:
        """Build the card of ``host``."""
        name = host.cpu_name or translate("HostCard", "Processor")
        super().__init__(kit, "cpu", name, host_facts(host), host_strips(host))
        self.show_power(host.power_source)

    def refresh(self, feed: TelemetryFeed, span: Span) -> None:
        """Show the newest readings."""
        newest = feed.latest_host()
        if newest is not None:
            self.show_power(newest.power_source)
            fields = (strip.field for strip in self.quantities)
            missing = dict.fromkeys(fields, STALE) if feed.is_host_stale() else {}
            self.show_series(feed, HOST, span, missing)

    def show_power(self, source: PowerSource) -> None:
        """Say when the machine runs on battery: measurements differ then."""
        if source is PowerSource.BATTERY:
            self.pill.show_state(self.tr("on battery: slower"), "warn")
        else:
            self.pill.show_state("", "muted")


def host_facts(host: HostInfo) -> str:
    """Return what the machine is in one line."""
    parts: list[str] = []
    if host.cores_physical:
        parts += [_cores(host.cores_physical), _threads(host.cores_logical or host.cores_physical)]
    if host.ram_bytes:
        parts.append(translate("HostCard", "{size} RAM").format(size=format_bytes(host.ram_bytes)))
    parts.append(" ".join(x for x in (host.os.capitalize(), host.os_version) if x))
    if host.virtualization:
        parts.append(host.virtualization)
    return " · ".join(parts)


def _cores(n: int) -> str:
    several = translate("HostCard", "{n} cores").format(n=n)
    return translate("HostCard", "1 core") if n == 1 else several


def _threads(n: int) -> str:
    several = translate("HostCard", "{n} threads").format(n=n)
    return translate("HostCard", "1 thread") if n == 1 else several
