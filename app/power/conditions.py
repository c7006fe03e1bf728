"""Under which power conditions something was measured, and whether two results may be compared.

The same settings run 45 % faster on mains with the performance profile than just after battery
(case B10), so a ranking across modes says nothing about the settings.
"""

from app.domain.machine import PowerSource
from app.domain.record import Record
from app.domain.sweep import Reason


class Conditions(Record, frozen=True, kw_only=True):
    """Power conditions of a measurement; ``None`` = unknown.

    Attributes:
        source: Mains or battery.
        profile: The system's power profile.
    """

    source: PowerSource = PowerSource.UNKNOWN
    profile: str | None = None


def why_not_comparable(one: Conditions, other: Conditions) -> Reason | None:
    """Return why two results must not be ranked against each other, ``None`` when they may.

    Unknown conditions compare with anything: most desktops have no profile.
    """
    if PowerSource.UNKNOWN not in {one.source, other.source} and one.source is not other.source:
        return Reason(code="source_differs", data={"one": one.source, "other": other.source})
    profiles = {one.profile, other.profile} - {None}
    if len(profiles) == 2:
        return Reason(code="profile_differs", data={"one": one.profile, "other": other.profile})
    return None
