"""What the formats share: the record they return, quoting, and the settings to write down."""

import re
import shlex
import subprocess

from app.domain.record import Record
from app.domain.settings import SETTINGS, SettingInfo, SplitMode, Switch
from app.domain.units import counted
from app.store import Profile

# cmd.exe gives these a meaning of their own outside quotes
SWITCHES = frozenset({"offload_kqv", "op_offload"})
"""Settings whose flag turns something off and takes no value."""
_WINDOWS_PLAIN = re.compile(r"[\w.,:/\\+=-]+")
# 0 and "no device" leave the choice to the engine: the target's own default is the same
_LEFT_TO_ENGINE: tuple[object, ...] = (0, (), "", Switch.ON, SplitMode.LAYER)
_MAY_BE_LEFT = {
    "n_threads", "n_threads_batch", "devices", "split_mode", "tensor_split", "override_tensor",
    *SWITCHES,
}  # fmt: skip


class Exported(Record, frozen=True, kw_only=True):
    """A profile in another program's words.

    Attributes:
        text: Command line or file content.
        file_name: Name under which the target looks for it; ``None`` for a command.
        notes: What the target cannot express, as sentences.
    """

    text: str
    file_name: str | None = None
    notes: tuple[str, ...] = ()


def explicit_settings(profile: Profile) -> list[tuple[SettingInfo, object]]:
    """Return the settings that have a concrete value, in the order of ``SETTINGS``."""
    values = [(info, getattr(profile.settings, info.name)) for info in SETTINGS]
    return [
        (info, value)
        for info, value in values
        if info.name not in _MAY_BE_LEFT or value not in _LEFT_TO_ENGINE
    ]


def command_line(arguments: list[str], *, windows: bool) -> str:
    """Return ``arguments`` as one line to paste into a shell (POSIX, or cmd.exe)."""
    if not windows:
        return shlex.join(arguments)
    return " ".join(_windows_quoted(a) for a in arguments)


def one_line(text: str) -> str:
    """Return ``text`` fit for a comment: no line break can end it early."""
    return " ".join(text.split())


def heading(profile: Profile) -> str:
    """Return where a file comes from."""
    return one_line(f"RigTune profile {profile.id}: {profile.name}")


def lost_placement(profile: Profile) -> list[str]:
    """Return notes on device choice and expert placement, for targets that have neither."""
    notes = []
    if profile.settings.devices:
        devices = ", ".join(profile.settings.devices)
        notes.append(f"The devices ({devices}) cannot be chosen here.")
    if profile.settings.n_cpu_moe:
        layers = counted(profile.settings.n_cpu_moe, "layer")
        notes.append(f"Keeping the expert tensors of {layers} in RAM cannot be said here.")
    return notes


def lost_split(profile: Profile) -> list[str]:
    """Return notes on the split over devices, for targets that cannot be told."""
    notes, settings = [], profile.settings
    if settings.tensor_split:
        notes.append(f"The split over the devices ({settings.tensor_split}) cannot be said here.")
    if settings.split_mode is not SplitMode.LAYER:
        notes.append(f"Split mode {settings.split_mode} cannot be said here.")
    if Switch.OFF in (settings.offload_kqv, settings.op_offload):
        notes.append("Keeping the KV cache or large batches off the device cannot be said here.")
    return notes


def lost_overrides(profile: Profile) -> list[str]:
    """Return notes on tensors placed by name, for targets that cannot be told."""
    rules = profile.settings.override_tensor
    return [f"Placing tensors by name ({rules}) cannot be said here."] if rules else []


def lost_drafts(profile: Profile) -> list[str]:
    """Return a note on drafted tokens, for targets that cannot be told."""
    return ["Drafted tokens, which proved a gain, cannot be said here."] if profile.draft else []


def _windows_quoted(argument: str) -> str:
    quoted = subprocess.list2cmdline([argument])
    if quoted.startswith('"') or _WINDOWS_PLAIN.fullmatch(quoted):
        return quoted
    # a trailing backslash would escape the closing quote
    tail = len(argument) - len(argument.rstrip("\\"))
    return f'"{quoted}{argument[len(argument) - tail :]}"'
