"""The Windows settings that matter to long GPU work: timeouts, scheduling, power, preferences.

Read only. Microsoft documents the timeout values for testing drivers and says that neither
programs nor users should change them.
"""

from app.domain.machine import TimeoutValue, WindowsSettings
from probes.reading import Absence
from probes.windows.facts import DWORD, Windows

GRAPHICS = r"HKLM\SYSTEM\CurrentControlSet\Control\GraphicsDrivers"
PREFERENCES = r"HKCU\Software\Microsoft\DirectX\UserGpuPreferences"
POWER = r"HKLM\SYSTEM\CurrentControlSet\Control\Power\User\PowerSchemes"

TIMEOUTS: dict[str, tuple[int, str]] = {
    "TdrLevel": (3, ""),
    "TdrDelay": (2, "s"),
    "TdrDdiDelay": (5, "s"),
    "TdrLimitTime": (60, "s"),
    "TdrLimitCount": (5, ""),
    "TdrDebugMode": (2, ""),
}
"""Value → default when it is absent, and unit (Microsoft, "TDR registry keys")."""
INVENTED = "TccTimeout"
"""Passed around on the web; Windows knows no such value."""
GPU_PREFERENCE = {"0": "auto", "1": "power_saving", "2": "high_performance"}
POWER_MODES = {
    "961cc777-2547-4f9d-8174-7d86181b8a7a": "saver",
    "00000000-0000-0000-0000-000000000000": "balanced",
    "3af9b8d9-7c97-431d-ad78-34a8bfea439f": "balanced",
    "ded574b5-45a0-4f42-8737-46345c09c238": "performance",
    "a1841308-3541-4fab-bc81-f71556f20b4a": "saver",
    "381b4222-f694-41f0-9685-ff5bb260df2e": "balanced",
    "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c": "performance",
    "e9a42b02-d5df-448d-aa00-03f14749eb61": "performance",
}
"""Identifiers of power mode overlays and power plans."""


def windows_settings(windows: Windows, *, hags: bool | None = None) -> WindowsSettings:
    """Return the settings as found or default.

    Args:
        windows: The door.
        hags: What the graphics kernel says of hardware scheduling, where it does.
    """
    resets = windows.resets()
    return WindowsSettings(
        timeouts=tuple(timeout(windows, name) for name in TIMEOUTS),
        tcc_timeout=INVENTED.lower() in {n.lower() for n in windows.value_names(GRAPHICS)},
        gpu_scheduling=gpu_scheduling(windows, hags=hags),
        gpu_preferences=gpu_preferences(windows),
        resets=None if isinstance(resets, Absence) else resets,
    )


def timeout(windows: Windows, name: str) -> TimeoutValue:
    """Return one timeout value; absent or of a wrong type, the default is in effect."""
    default, unit = TIMEOUTS[name]
    found = windows.value(GRAPHICS, name)
    if isinstance(found, Absence):
        return TimeoutValue(name=name, effective=default, unit=unit)
    if found.kind != DWORD or found.number is None:
        text = found.text if found.number is None else str(found.number)
        return TimeoutValue(
            name=name, found=text or "", effective=default, source="wrong_type", unit=unit
        )
    return TimeoutValue(
        name=name, found=str(found.number), effective=found.number, source="registry", unit=unit
    )


def gpu_scheduling(windows: Windows, *, hags: bool | None = None) -> str:
    """Return ``on``, ``off`` or ``default``; the kernel's word counts before the registry's."""
    if hags is not None:
        return "on" if hags else "off"
    found = windows.value(GRAPHICS, "HwSchMode")
    number = None if isinstance(found, Absence) else found.number
    return {1: "off", 2: "on"}.get(number or 0, "default")


def gpu_preferences(windows: Windows) -> dict[str, str]:
    """Return program path → preferred GPU; only DirectX programs obey it."""
    found: dict[str, str] = {}
    for name in windows.value_names(PREFERENCES):
        value = windows.value(PREFERENCES, name)
        text = "" if isinstance(value, Absence) or value.text is None else value.text
        parts = dict(p.strip().partition("=")[::2] for p in text.split(";"))
        preference = GPU_PREFERENCE.get(parts.get("GpuPreference", ""))
        if preference is not None:
            found[name] = preference
    return found


def power_mode(windows: Windows, *, on_battery: bool) -> str | Absence:
    """Return the power mode of the settings page, else the power plan."""
    overlay = "ActiveOverlayDcPowerScheme" if on_battery else "ActiveOverlayAcPowerScheme"
    modes = []
    for name in (overlay, "ActivePowerScheme"):
        value = windows.value(POWER, name)
        text = "" if isinstance(value, Absence) or value.text is None else value.text
        modes.append(POWER_MODES.get(text.strip("{} ").lower()))
    shown, plan = modes
    # The overlay says more, unless it is the neutral one over a plan that is not.
    chosen = plan if shown in {None, "balanced"} and plan is not None else shown
    return chosen or Absence.NO_DATA
