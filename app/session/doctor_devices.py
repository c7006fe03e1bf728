"""The self-test's lines about devices: the role of each, and what advice knows about all."""

from collections.abc import Iterator

from app.advice.device_facts import device_facts
from app.advice.rule import name_of
from app.advice.text import render
from app.domain.finding import Check, CheckStatus
from app.domain.machine import Gpu, Machine
from app.domain.units import format_bytes
from app.machine import kind_of


def device_checks(machine: Machine) -> Iterator[Check]:
    """Yield what there is to say about devices; nothing on a machine without a GPU."""
    for gpu in machine.gpus:
        yield Check(id=f"gpu_{gpu.key}", status=CheckStatus.OK, text=_role(gpu))
    for fact in device_facts(machine):
        text = render("device", fact.code, fact.data)
        hint = render("device", fact.hint, fact.data) if fact.hint is not None else ""
        yield Check(id=fact.id, status=CheckStatus.OK, text=text, hint=hint)


def _role(gpu: Gpu) -> str:
    info = gpu.info
    words = [kind_of(gpu).value]
    if info is not None:
        words += ["drives a display"] if info.drives_display else []
        words += ["may sleep when idle"] if info.may_sleep else []
        words += ["external"] if info.external else []
        words += [f"{format_bytes(info.vram_total_bytes)}"] if info.vram_total_bytes else []
        words += ["asleep"] if "asleep" in info.missing.values() else []
    names = ", ".join(d.name for d in gpu.engine) or "not used by the engine"
    return f"{name_of(gpu)}: {', '.join(words)}; engine names: {names}"
