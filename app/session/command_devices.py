"""Which devices a llama.cpp command line uses, and how they share the model.

As ``common/arg.cpp`` and ``llama_prepare_model_devices`` (src/llama.cpp) take it: ``--main-gpu``
counts within the devices given and chooses one with ``--split-mode none`` only.
"""

import math
import re
from typing import NamedTuple

from app.domain.errors import UsageProblem
from app.domain.settings import SPLIT, SplitMode
from app.domain.sweep import Reason, SearchSpace
from app.session.command_values import bad, choice, note, number

_BETWEEN = re.compile(r"[,/]")  # llama-bench writes one list with slashes
_SHARE_MAX = 999_999


class Sharing(NamedTuple):
    """The devices, how they share the model, and the shares."""

    devices: tuple[str, ...]
    split_mode: SplitMode
    tensor_split: str


def sharing(options: dict[str, str], space: SearchSpace, notes: list[Reason]) -> Sharing:
    """Return what ``options`` say of devices; what has no effect is noted.

    Raises:
        UsageProblem: A device is not there, or a split is none.
    """
    devices = _devices(options.get("devices"), space)
    mode = SplitMode(choice(options, "split_mode", SplitMode.LAYER))
    shares = _shares(options.get("tensor_split", ""))
    if mode is SplitMode.NONE:
        return Sharing(_main_gpu(options, devices), mode, "")
    if number(options, "main_gpu", -1) > 0:
        notes.append(note("main_gpu_unused", main_gpu=options["main_gpu"], split_mode=mode))
    return Sharing(devices, mode, shares if len(devices) > 1 else "")


def _devices(text: str | None, space: SearchSpace) -> tuple[str, ...]:
    known = {d.id.lower(): d.id for d in space.devices}
    if text is None:
        real = [d.id for d in space.devices if d.kind not in ("integrated", "software")]
        return tuple(real or known.values())
    if text.lower() == "none":
        return ()
    wanted = [word.strip() for word in _BETWEEN.split(text) if word.strip()]
    for name in wanted:
        if name.lower() not in known:
            hint = f"Known: {', '.join(known.values()) or 'none besides the CPU'}."
            raise UsageProblem("unknown_device", f"There is no device {name!r}.", hint)
    return tuple(dict.fromkeys(known[name.lower()] for name in wanted))


def _main_gpu(options: dict[str, str], devices: tuple[str, ...]) -> tuple[str, ...]:
    """Return the one device that ``--split-mode none`` leaves; below 0 is the CPU alone."""
    text = options.get("main_gpu", "0")
    index = -1 if text == "-1" else number(options, "main_gpu", 0)
    if index < 0 or not devices:
        return ()
    if index >= len(devices):
        listed = ", ".join(f"{i} = {name}" for i, name in enumerate(devices))
        raise bad("main_gpu", text, f"llama.cpp would refuse to load. The devices are: {listed}.")
    return (devices[index],)


def _shares(text: str) -> str:
    """Return a split as whole numbers: only their proportions count; all 0 is by free memory."""
    words = [word for word in _BETWEEN.split(text) if word]
    try:
        shares = [float(word) for word in words]
    except ValueError:
        shares = [math.nan]
    if not all(math.isfinite(share) and share >= 0 for share in shares):
        raise bad("tensor_split", text, "It must be one number per device, such as 3,1.")
    if not any(shares):
        return ""
    whole = all(share == int(share) for share in shares) and max(shares) <= _SHARE_MAX
    counts = shares if whole else [1000 * (share / max(shares)) for share in shares]
    split = ",".join(str(round(count)) for count in counts)
    if SPLIT.fullmatch(split) is None:
        raise bad("tensor_split", text, "At most 16 devices can share a model here.")
    return split
