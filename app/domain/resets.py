"""When a graphics driver was reset, as the system's log says."""

from datetime import datetime, timedelta

from app.domain.host import DriverReset, HostInfo

CLOCK_SLACK = timedelta(seconds=10)
"""An entry may be written a moment after the driver came back."""


def moment(text: str | None) -> datetime | None:
    """Return a time as systems and records write it, with its zone; ``None`` if it is none."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def reset_between(host: HostInfo, start: datetime, end: datetime) -> DriverReset | None:
    """Return the newest reset from ``start`` to ``end``, give or take the clocks' slack."""
    resets = host.windows.resets if host.windows is not None else None
    for reset in resets or ():
        at = moment(reset.time_utc)
        if at is not None and start - CLOCK_SLACK <= at <= end + CLOCK_SLACK:
            return reset
    return None


def event_of(reset: DriverReset) -> str:
    """Return an entry's name: ``nvlddmkm 153``."""
    return f"{reset.provider} {reset.event_id}"
