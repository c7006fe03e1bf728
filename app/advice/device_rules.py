"""Rules on which devices there are, what drives them and whether the engine can use them."""

from collections.abc import Iterator

from app.advice.rule import Evidence, Rule, Situation, cards, gib, integrated, kind, mib, name_of
from app.domain.finding import Actor, Severity
from app.domain.machine import Gpu, GpuKind

CARVE_OUT_FRAC = 0.5
MIN_CUDA_12_DRIVER = 525
DESKTOP_TAX_BYTES = 600 << 20
IDLE_PCT = 30.0
LOOPBACK = ("127.", "localhost", "[::1]")
GUEST_DRIVERS = {"vfio-pci", "pci-stub", "xen-pciback"}
"""Kernel drivers that hold a device for virtual machines."""


def no_gpu(now: Situation) -> Iterator[Evidence]:
    """Neither a probe nor the engine sees a GPU."""
    if not now.machine.gpus:
        yield {}


def engine_missing(now: Situation) -> Iterator[Evidence]:
    """The engine does not start at all."""
    problem = now.machine.engine_problem
    if problem is not None:
        yield {"message": problem.message, "hint": problem.hint or None}


def engine_sees_no_gpu(now: Situation) -> Iterator[Evidence]:
    """A GPU is there but this engine build has no backend that drives it."""
    engine = now.machine.engine
    if engine is None or any(gpu.unmatched for gpu in now.machine.gpus):
        return
    for gpu in now.machine.gpus:
        info = gpu.info
        if info is None or gpu.engine or info.mig is not None or _reason(info.missing):
            continue
        # A processor's GPU beside a card is left out by design.
        if kind(gpu) is GpuKind.INTEGRATED and any(cards(now.machine)):
            continue
        if _lacks_driver(gpu) or _is_given_away(gpu) or _should_be_listed(gpu, engine.backends):
            continue
        yield {"gpu": name_of(gpu), "backends": ", ".join(engine.backends) or "none"}


def cuda_without_card(now: Situation) -> Iterator[Evidence]:
    """The engine's CUDA backend is loaded, yet CUDA lists no card although one is there."""
    engine = now.machine.engine
    if engine is None or any(d.backend == "CUDA" for d in engine.devices):
        return
    for gpu in cards(now.machine, "nvidia"):
        info = gpu.info
        usable = info is not None and info.mig is None and not _reason(info.missing)
        if usable and _should_be_listed(gpu, engine.backends) and not _is_given_away(gpu):
            yield {
                "gpu": name_of(gpu),
                "driver": info.driver if info is not None else None,
                "cuda": info.cuda_version if info is not None else None,
            }


def given_to_guest(now: Situation) -> Iterator[Evidence]:
    """A card is set aside for virtual machines."""
    for gpu in now.machine.gpus:
        if _is_given_away(gpu):
            yield {"gpu": name_of(gpu), "driver": _driver(gpu)}


def unmatched_device(now: Situation) -> Iterator[Evidence]:
    """The engine lists a device that could not be joined with what the probes see."""
    for gpu in now.machine.gpus:
        own = gpu.unmatched is not None and kind(gpu) not in {GpuKind.SOFTWARE, GpuKind.REMOTE}
        if own and gpu.engine:
            yield {"device": gpu.engine[0].name, "description": name_of(gpu)}


def software_device(now: Situation) -> Iterator[Evidence]:
    """A CPU rasteriser poses as a GPU."""
    for gpu in now.machine.gpus:
        for device in gpu.engine:
            if device.kind is GpuKind.SOFTWARE:
                yield {"device": device.name, "description": device.description}


def remote_device(now: Situation) -> Iterator[Evidence]:
    """RPC is unauthenticated: say so whenever another computer's device is in use."""
    for gpu in now.machine.gpus:
        for device in gpu.engine:
            if device.kind is GpuKind.REMOTE and not (device.endpoint or "").startswith(LOOPBACK):
                yield {"device": device.name, "endpoint": device.endpoint}


def driver_mismatch(now: Situation) -> Iterator[Evidence]:
    """Library and kernel module have different versions until the next reboot."""
    reasons = {"nvml": now.machine.unavailable.get("nvml")}
    reasons |= {g.key: _reason(g.info.missing) for g in now.machine.gpus if g.info is not None}
    if "version_mismatch" in reasons.values():
        driver = next((g.info.driver for g in cards(now.machine, "nvidia") if g.info), None)
        yield {"driver": driver}


def gpu_lost(now: Situation) -> Iterator[Evidence]:
    """A card fell off the bus or its driver was reset."""
    for gpu in now.machine.gpus:
        said = [gpu.info.missing] if gpu.info is not None else []
        said += [s.missing for s in now.samples.get(gpu.key, ())]
        if any(_reason(missing) == "lost" for missing in said):
            yield {"gpu": name_of(gpu)}


def no_nvidia_driver(now: Situation) -> Iterator[Evidence]:
    """An NVIDIA card is on the bus without NVIDIA's driver."""
    for gpu in cards(now.machine, "nvidia"):
        if _lacks_driver(gpu) and not _is_given_away(gpu) and gpu.unmatched is None:
            yield {"gpu": name_of(gpu), "driver": _driver(gpu)}


def card_not_answering(now: Situation) -> Iterator[Evidence]:
    """The card is on the bus with its driver, yet the driver does not list it or answer."""
    nvml = now.machine.unavailable.get("nvml")
    for gpu in cards(now.machine, "nvidia"):
        silent = gpu.info is not None and _reason(gpu.info.missing) == "driver_not_loaded"
        if (nvml == "no_data" or silent) and not _lacks_driver(gpu):
            yield {"gpu": name_of(gpu)}


def old_nvidia_driver(now: Situation) -> Iterator[Evidence]:
    """The driver is older than any CUDA 12 engine needs."""
    by_driver: dict[str, list[str]] = {}
    for gpu in cards(now.machine, "nvidia"):
        text = _driver(gpu) or ""
        major = text.removeprefix("nvidia ").split(".")[0]
        # Windows' own numbering (31.0.…) is not NVIDIA's.
        if major.isdigit() and 100 < int(major) < MIN_CUDA_12_DRIVER:
            by_driver.setdefault(text, []).append(name_of(gpu))
    for text, names in by_driver.items():
        yield {"gpu": ", ".join(names), "driver": text, "needed": MIN_CUDA_12_DRIVER}


def nvidia_without_cuda(now: Situation) -> Iterator[Evidence]:
    """An NVIDIA card is reached through Vulkan only."""
    for gpu in cards(now.machine, "nvidia"):
        backends = {d.backend for d in gpu.engine}
        if backends and "CUDA" not in backends:
            yield {"gpu": name_of(gpu), "device": gpu.engine[0].name}


def hybrid(now: Situation) -> Iterator[Evidence]:
    """Integrated and discrete GPU in one machine: name the one that is used."""
    asked = now.machine.engine is not None
    card = next((g for g in cards(now.machine) if g.engine or not asked), None)
    other = next(integrated(now.machine), None)
    if card is not None and other is not None:
        device = card.engine[0].name if card.engine else name_of(card)
        yield {"gpu": name_of(card), "device": device, "other": name_of(other)}


def gpu_asleep(now: Situation) -> Iterator[Evidence]:
    """A laptop's card sleeps: that saves battery and is not a fault."""
    for gpu in now.machine.gpus:
        if now.asleep(gpu):
            yield {"gpu": name_of(gpu)}


def display_on_card(now: Situation) -> Iterator[Evidence]:
    """The desktop takes memory of the card although the processor has a GPU of its own."""
    if not any(integrated(now.machine)):
        return
    for gpu in cards(now.machine):
        used = now.reading(gpu, "vram_used_bytes")
        busy = now.reading(gpu, "busy_pct")
        shown = gpu.info is not None and gpu.info.drives_display
        if shown and used is not None and used > DESKTOP_TAX_BYTES and (busy or 0.0) < IDLE_PCT:
            yield {"gpu": name_of(gpu), "used_mib": mib(used)}


def dgpu_switched_off(now: Situation) -> Iterator[Evidence]:
    """A switching tool keeps the discrete card off."""
    if now.machine.host.gpu_mode == "integrated" and not any(cards(now.machine)):
        yield {}


def mux_on_card(now: Situation) -> Iterator[Evidence]:
    """The display switch is set to the card, which therefore never sleeps."""
    if now.machine.host.gpu_mode == "discrete" and now.machine.host.is_laptop:
        for gpu in cards(now.machine):
            yield {"gpu": name_of(gpu)}


def external_gpu(now: Situation) -> Iterator[Evidence]:
    """A card on a cable: reading weights across it is slow."""
    for gpu in now.machine.gpus:
        if gpu.info is not None and gpu.info.external:
            yield {"gpu": name_of(gpu)}


def mig_parent(now: Situation) -> Iterator[Evidence]:
    """A split card: only its parts can be used."""
    for gpu in now.machine.gpus:
        if gpu.info is not None and gpu.info.mig == "parent":
            parts = sum(g.info is not None and g.info.mig == "instance" for g in now.machine.gpus)
            yield {"gpu": name_of(gpu), "parts": parts}


def unified_memory(now: Situation) -> Iterator[Evidence]:
    """An NVIDIA system whose GPU memory is the RAM."""
    for gpu in integrated(now.machine):
        if gpu.info is not None and gpu.info.vendor == "nvidia" and gpu.info.unified_memory:
            shared = gpu.info.shared_total_bytes
            yield {"gpu": name_of(gpu), "ram_gib": None if shared is None else gib(shared)}


def carve_out(now: Situation) -> Iterator[Evidence]:
    """The "VRAM" of a processor's GPU is a firmware setting, not the limit."""
    for gpu in integrated(now.machine):
        info = gpu.info
        if info is None or not info.vram_total_bytes or not info.shared_total_bytes:
            continue
        if info.shared_total_bytes > info.vram_total_bytes and not any(cards(now.machine)):
            yield {
                "gpu": name_of(gpu),
                "carve_out_mib": mib(info.vram_total_bytes),
                "shared_gib": gib(info.shared_total_bytes),
            }


def backend_sees_carve_out(now: Situation) -> Iterator[Evidence]:
    """One backend sees only the carve-out where another sees all shared memory."""
    for gpu in integrated(now.machine):
        known = [d for d in gpu.engine if d.total_bytes]
        largest = max(known, key=lambda d: d.total_bytes or 0, default=None)
        for device in known:
            if largest is not None and (device.total_bytes or 0) < CARVE_OUT_FRAC * (
                largest.total_bytes or 0
            ):
                yield {"small": device.name, "large": largest.name}


def unequal_cards(now: Situation) -> Iterator[Evidence]:
    """Cards of different models: splitting each layer evenly makes the slower one the pace."""
    usable = [gpu for gpu in cards(now.machine) if gpu.engine]
    names = {name_of(gpu) for gpu in usable}
    if len(usable) > 1 and len(names) > 1:
        yield {"gpus": ", ".join(name_of(gpu) for gpu in usable)}


def equal_cards(now: Situation) -> Iterator[Evidence]:
    """Two cards of one model: capacity first, speed of one answer only on a fast link."""
    usable = [gpu for gpu in cards(now.machine) if gpu.engine]
    if len(usable) > 1 and len({name_of(gpu) for gpu in usable}) == 1:
        yield {"count": len(usable), "gpu": name_of(usable[0])}


def _driver(gpu: Gpu) -> str | None:
    return gpu.info.driver if gpu.info is not None else None


def _is_given_away(gpu: Gpu) -> bool:
    return _driver(gpu) in GUEST_DRIVERS


def _lacks_driver(gpu: Gpu) -> bool:
    """Whether an NVIDIA card runs without NVIDIA's driver."""
    is_nvidia = gpu.info is not None and gpu.info.vendor == "nvidia"
    return is_nvidia and not (_driver(gpu) or "").startswith("nvidia")


def _should_be_listed(gpu: Gpu, backends: tuple[str, ...]) -> bool:
    """Whether the engine has the backend that drives a card with its vendor's driver loaded."""
    return (_driver(gpu) or "").startswith("nvidia") and "CUDA" in backends


def _reason(missing: dict[str, str]) -> str | None:
    """Return the reason that hides everything about a device, if there is one."""
    for reason in ("lost", "version_mismatch", "driver_not_loaded", "no_power"):
        if reason in missing.values():
            return reason
    return None


INFO, HINT, WARNING, PROBLEM = Severity
RIGTUNE, USER, NOBODY = Actor
DEVICE_RULES = (
    Rule("no_gpu", INFO, USER, "NVIDIA NVML return codes; Linux PCI bus", no_gpu),
    Rule("engine_missing", PROBLEM, USER, "the engine's own process", engine_missing),
    Rule("engine_sees_no_gpu", WARNING, USER, "llama.cpp device registry", engine_sees_no_gpu),
    Rule(
        "cuda_without_card",
        WARNING,
        USER,
        "microsoft/WSL issue 11589; ollama/ollama issue 15918",
        cuda_without_card,
    ),
    Rule("given_to_guest", INFO, USER, "Linux VFIO documentation", given_to_guest),
    Rule("unmatched_device", HINT, NOBODY, "ggml-org/llama.cpp PR 15947", unmatched_device),
    Rule("software_device", INFO, RIGTUNE, "ggml-org/llama.cpp PR 15947", software_device),
    Rule("remote_device", WARNING, USER, "llama.cpp tools/rpc/README.md", remote_device),
    Rule(
        "driver_mismatch", PROBLEM, USER, "ollama/ollama issue 15918; NVML code 18", driver_mismatch
    ),
    Rule(
        "gpu_lost",
        PROBLEM,
        USER,
        "NVML code 15; NVIDIA/open-gpu-kernel-modules issue 507",
        gpu_lost,
    ),
    Rule("no_nvidia_driver", WARNING, USER, "NVML codes 9 and 12", no_nvidia_driver),
    Rule(
        "card_not_answering",
        WARNING,
        USER,
        "NVIDIA/open-gpu-kernel-modules issue 862",
        card_not_answering,
    ),
    Rule("old_nvidia_driver", WARNING, USER, "NVIDIA CUDA compatibility guide", old_nvidia_driver),
    Rule("nvidia_without_cuda", INFO, USER, "llama.cpp docs/build.md", nvidia_without_cuda),
    Rule(
        "hybrid",
        INFO,
        RIGTUNE,
        "llama.cpp src/llama.cpp: integrated devices only without a discrete one",
        hybrid,
    ),
    Rule(
        "gpu_asleep",
        INFO,
        RIGTUNE,
        "Linux runtime power management; D-Brox/cosmic-ext-applet-system-monitor issue 38",
        gpu_asleep,
    ),
    Rule("display_on_card", HINT, USER, "measured memory in use", display_on_card),
    Rule("dgpu_switched_off", HINT, USER, "bayasdev/envycontrol issue 198", dgpu_switched_off),
    Rule("mux_on_card", INFO, USER, "Linux vga_switcheroo documentation", mux_on_card),
    Rule("external_gpu", INFO, RIGTUNE, "Linux PCI sysfs ABI: removable", external_gpu),
    Rule("mig_parent", INFO, RIGTUNE, "NVIDIA MIG user guide; nvml.h", mig_parent),
    Rule("unified_memory", INFO, RIGTUNE, "nvml.h; Syllo/nvtop PR 411", unified_memory),
    Rule("carve_out", INFO, RIGTUNE, "ggml-org/llama.cpp issue 19818", carve_out),
    Rule(
        "backend_sees_carve_out",
        HINT,
        RIGTUNE,
        "ggml-org/llama.cpp issue 19818",
        backend_sees_carve_out,
    ),
    Rule("unequal_cards", INFO, RIGTUNE, "llama.cpp docs/multi-gpu.md", unequal_cards),
    Rule("equal_cards", INFO, RIGTUNE, "llama.cpp docs/multi-gpu.md", equal_cards),
)
