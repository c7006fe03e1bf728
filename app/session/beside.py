"""Whether a model may be used beside another one: only where the verdict says that it fits."""

from collections.abc import Callable

from app.domain.errors import EnvironmentProblem
from app.domain.memory import MemoryEstimate, Verdict
from app.domain.units import format_bytes
from app.rig.lease import Holder, Room


def room(estimate: Callable[[], MemoryEstimate]) -> Room:
    """Return what refuses a second engine without room, headroom included, on every device.

    Args:
        estimate: Judges the model against the memory that is free now, the first one loaded.
    """

    def must_fit(first: Holder) -> None:
        now = estimate()
        if now.verdict is Verdict.FITS:
            return
        short = next((d for d in now.devices if d.verdict is not Verdict.FITS), None)
        message = f"The devices are in use by {first.words}, and this model does not fit beside it."
        if short is not None and short.free_bytes is not None:
            place = "RAM" if short.device == "host" else short.device
            need, free = format_bytes(short.total_bytes), format_bytes(short.free_bytes)
            message += f" {place}: it needs {need} and a reserve; {free} are free."
        hint = "End the other one, or use a smaller model or context."
        raise EnvironmentProblem("busy", message, hint)

    return must_fit


def shared_note(first: Holder) -> str:
    """Return what sharing the devices means, for the user."""
    return (
        f"The devices are shared with {first.words}: both models fit. Answers are slower while "
        "both write, and heat and power are looked after by the first one only."
    )
