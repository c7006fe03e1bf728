"""Rules on Windows: driver timeouts, driver models, GPU preferences. Everything is only read."""

from collections.abc import Iterator

from app.advice.rule import Evidence, Rule, Situation, cards, name_of
from app.domain.finding import Actor, Severity
from app.domain.machine import WindowsSettings

LONG_S = 10
RECOVER = 3
DEFAULT_DEBUG_MODE = 2
ENGINES = ("llama", "rigtune", "ollama", "koboldcpp", "lm studio", "python")
"""Words in the path of a program that runs an engine."""


def detection_off(now: Situation) -> Iterator[Evidence]:
    """With detection off a hanging card freezes the screen until the power is cut."""
    if _timeout(now, "TdrLevel") == 0:
        yield {}


def no_recovery(now: Situation) -> Iterator[Evidence]:
    """Levels 1 and 2 end in a blue screen or nothing instead of a recovery."""
    level = _timeout(now, "TdrLevel")
    if level is not None and level not in {0, RECOVER}:
        yield {"level": level}


def delay_zero(now: Situation) -> Iterator[Evidence]:
    """A delay of 0 leaves no time at all."""
    if _timeout(now, "TdrDelay") == 0 and _timeout(now, "TdrLevel") != 0:
        yield {}


def delay_long(now: Situation) -> Iterator[Evidence]:
    """With a long delay a real hang freezes the screen that long."""
    delays = [_timeout(now, name) or 0 for name in ("TdrDelay", "TdrDdiDelay")]
    if max(delays) > LONG_S and _timeout(now, "TdrLevel") != 0:
        yield {"delay_s": max(delays)}


def wrong_type(now: Situation) -> Iterator[Evidence]:
    """A value that is no DWORD is not used."""
    settings = _settings(now)
    for value in settings.timeouts if settings is not None else ():
        if value.source == "wrong_type":
            yield {
                "name": value.name,
                "found": value.found,
                "effective": f"{value.effective} {value.unit}".strip(),
            }


def debug_mode(now: Situation) -> Iterator[Evidence]:
    """Debug modes are for driver developers."""
    mode = _timeout(now, "TdrDebugMode")
    if mode is not None and mode != DEFAULT_DEBUG_MODE and _timeout(now, "TdrLevel") != 0:
        yield {"mode": mode}


def invented_value(now: Situation) -> Iterator[Evidence]:
    """A value that Windows does not know was written by a guide or tool."""
    settings = _settings(now)
    if settings is not None and settings.tcc_timeout:
        yield {}


def driver_resets(now: Situation) -> Iterator[Evidence]:
    """The log says that a graphics driver was reset."""
    settings = _settings(now)
    resets = (settings.resets or ()) if settings is not None else ()
    if resets:
        yield {
            "count": len(resets),
            "last": resets[0].time_utc,
            "event": f"{resets[0].provider} {resets[0].event_id}",
        }


def mixed_models(now: Situation) -> Iterator[Evidence]:
    """Cards under different driver models."""
    by_model = {
        gpu.info.driver_model: name_of(gpu)
        for gpu in cards(now.machine, "nvidia")
        if gpu.info is not None and gpu.info.driver_model is not None
    }
    if len(by_model) > 1:
        yield {"models": ", ".join(f"{name}: {model}" for model, name in by_model.items())}


def tcc_model(now: Situation) -> Iterator[Evidence]:
    """TCC is on its way out."""
    for gpu in cards(now.machine, "nvidia"):
        if gpu.info is not None and gpu.info.driver_model == "tcc":
            yield {"gpu": name_of(gpu)}


def silent_spill(now: Situation) -> Iterator[Evidence]:
    """On Windows an NVIDIA card in display mode may overflow into RAM without an error."""
    for gpu in cards(now.machine, "nvidia"):
        shared = gpu.info.driver_model == "wddm" if gpu.info is not None else False
        if shared and any(d.backend == "CUDA" for d in gpu.engine):
            yield {"gpu": name_of(gpu)}
            return


def gpu_preference(now: Situation) -> Iterator[Evidence]:
    """A preference for an engine program has no effect on CUDA and Vulkan."""
    settings = _settings(now)
    for program, preference in (settings.gpu_preferences if settings is not None else {}).items():
        if preference == "power_saving" and any(word in program.lower() for word in ENGINES):
            yield {"program": program}


def _settings(now: Situation) -> WindowsSettings | None:
    return now.machine.host.windows


def _timeout(now: Situation, name: str) -> int | None:
    settings = _settings(now)
    return settings.timeout(name) if settings is not None else None


INFO, HINT, WARNING, PROBLEM = Severity
RIGTUNE, USER, NOBODY = Actor
WINDOWS_RULES = (
    Rule("tdr_off", PROBLEM, USER, "Microsoft, TDR registry keys", detection_off),
    Rule("tdr_no_recovery", WARNING, USER, "Microsoft, TDR registry keys", no_recovery),
    Rule("tdr_delay_zero", WARNING, USER, "Microsoft, TDR registry keys", delay_zero),
    Rule("tdr_delay_long", WARNING, USER, "Microsoft, TDR registry keys", delay_long),
    Rule("tdr_wrong_type", HINT, USER, "Microsoft, TDR registry keys", wrong_type),
    Rule("tdr_debug_mode", INFO, USER, "Microsoft, TDR registry keys", debug_mode),
    Rule(
        "tcc_timeout", INFO, NOBODY, "Microsoft, TDR registry keys: no such value", invented_value
    ),
    Rule(
        "driver_resets",
        WARNING,
        RIGTUNE,
        "Microsoft, timeout detection and recovery; event Display 4101",
        driver_resets,
    ),
    Rule("mixed_driver_models", WARNING, USER, "microsoft/WSL issue 13027", mixed_models),
    Rule("tcc_model", INFO, USER, "nvml.h, nvmlDeviceGetDriverModel_v2", tcc_model),
    Rule("silent_spill", INFO, RIGTUNE, "nvidia.custhelp.com answer 5490", silent_spill),
    Rule("gpu_preference", INFO, NOBODY, "Microsoft DirectX graphics settings", gpu_preference),
)
