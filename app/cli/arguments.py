"""Options that several commands share, derived from the one table of settings."""

import argparse
from collections.abc import Iterable

import msgspec

from app.domain.errors import UsageProblem
from app.domain.overrides import read_overrides
from app.domain.settings import LAYERS_ALL, SETTINGS, SPLIT, SettingInfo, Settings, SplitMode

_BY_NAME = {s.name: s for s in SETTINGS}
_METAVARS = {"n_gpu_layers": "N|all", "tensor_split": "N,N", "override_tensor": "PATTERN=CPU"}
# llama.cpp's own short form, which is the one everybody writes
_SHORT = {"override_tensor": ("-ot",)}
_MAX_MIB = 1 << 30


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Add one option per named setting; ``--device`` may be repeated."""
    group = parser.add_argument_group("engine settings")
    for name in names:
        info = _BY_NAME[name]
        if name == "devices":
            group.add_argument(
                "--device", action="append", default=[], metavar="ID", help="use this device"
            )
        elif info.choices:
            group.add_argument(info.option, choices=info.choices, help=info.label)
        else:
            metavar = _METAVARS.get(name, "N")
            options = [info.option, *_SHORT.get(name, ())]
            group.add_argument(*options, metavar=metavar, help=info.label)


def add_reserve(parser: argparse.ArgumentParser) -> None:
    """Add the option that keeps device memory for something the engine does not count."""
    parser.add_argument(
        "--reserve",
        type=int,
        metavar="MIB",
        help="what else must fit on the first GPU: a projector, a draft model, a game"
        " (chat, serve and bench take none: they run what was found and judge nothing)",
    )


def mib_from(option: str, mib: int | None) -> int | None:
    """Return a size given in MiB as bytes.

    Raises:
        UsageProblem: It is negative, or more than any machine has.
    """
    if mib is not None and not 0 <= mib <= _MAX_MIB:
        raise UsageProblem("bad_setting", f"{option}: {mib} is not a size in MiB")
    return None if mib is None else mib << 20


def settings_from(args: argparse.Namespace, base: Settings, n_layer: int | None) -> Settings:
    """Return ``base`` with the options the user gave.

    Args:
        args: Parsed arguments; options the command does not have are simply absent.
        base: Values for what was not given.
        n_layer: Blocks of the model, for ``all`` and for the upper bound of layers.

    Raises:
        UsageProblem: A value is out of its range.
    """
    changes: dict[str, object] = {}
    for info in SETTINGS:
        text = getattr(args, info.name, None)
        if text is not None:
            changes[info.name] = parse_setting(info, str(text), n_layer)
    if getattr(args, "device", None):
        changes["devices"] = tuple(args.device)
    elif "tensor_split" in changes:
        changes["devices"] = ()  # the shares are for every device
    raw = msgspec.to_builtins(base) | msgspec.to_builtins(changes)
    if "n_ubatch" in changes and "n_batch" not in changes:
        raw["n_batch"] = max(raw["n_batch"], raw["n_ubatch"])
    settings = msgspec.convert(raw, Settings)
    check_settings(settings)
    return settings


def parse_setting(info: SettingInfo, text: str, n_layer: int | None = None) -> int | str:
    """Return the value of one setting written as text.

    Raises:
        UsageProblem: Not a number, not one of the choices, or out of range.
    """
    if info.choices:
        if text not in info.choices:
            choices = ", ".join(info.choices)
            raise _bad(info, f"{text!r} is not one of {choices}")
        return text
    if info.name == "tensor_split":
        if not SPLIT.fullmatch(text) or not text.strip("0,"):
            raise _bad(info, f"{text!r} is not a list like 3,1, with more than zeros")
        return text
    if info.name == "override_tensor":
        read_overrides(text)
        return text
    if text == LAYERS_ALL and info.name == "n_gpu_layers":
        if n_layer is None:
            raise _bad(info, "'all' needs a model")
        return n_layer + 1
    try:
        value = int(text)
    except ValueError as error:
        raise _bad(info, f"{text!r} is not a whole number") from error
    high = info.high
    if n_layer is not None and info.name in {"n_gpu_layers", "n_cpu_moe"}:
        high = n_layer + (info.name == "n_gpu_layers")
    if info.low is not None and value < info.low:
        raise _bad(info, f"{value} is below {info.low}")
    if high is not None and value > high:
        raise _bad(info, f"{value} is above {high}")
    return value


def parse_pins(pins: Iterable[str], n_layer: int | None) -> dict[str, int | str]:
    """Return ``knob=value`` texts as a mapping of pinned settings.

    Without ``n_layer``, all layers stay "all": the plan knows each model's number.

    Raises:
        UsageProblem: Unknown knob or bad value.
    """
    pinned: dict[str, int | str] = {}
    for pin in pins:
        name, equals, value = pin.partition("=")
        info = _BY_NAME.get(name.replace("-", "_"))
        if not equals or info is None or info.name == "devices":
            known = ", ".join(s.name for s in SETTINGS if s.name != "devices")
            raise UsageProblem(
                "bad_pin",
                f"--pin {pin!r} is not knob=value with a known knob",
                f"Knobs: {known}. Devices are chosen with --device.",
            )
        is_all = info.name == "n_gpu_layers" and value == LAYERS_ALL and n_layer is None
        pinned[info.name] = LAYERS_ALL if is_all else parse_setting(info, value, n_layer)
    return pinned


def check_settings(settings: Settings) -> None:
    """Refuse combinations the engine would refuse (or abort on).

    Raises:
        UsageProblem: Names the two settings that exclude each other.
    """
    if settings.n_ubatch > settings.n_batch:
        raise UsageProblem(
            "ubatch_above_batch",
            f"n_ubatch {settings.n_ubatch} is larger than n_batch {settings.n_batch}",
            "Raise --n-batch or lower --n-ubatch.",
        )
    if settings.split_mode is SplitMode.TENSOR and settings.flash_attn == "off":
        raise UsageProblem(
            "tensor_split_without_flash_attn",
            "Split mode tensor needs flash attention.",
            "Use --flash-attn on, or --split-mode layer.",
        )
    quantised = settings.type_v not in ("f32", "f16", "bf16")
    if quantised and settings.flash_attn == "off":
        raise UsageProblem(
            "quantised_v_without_flash_attn",
            f"a {settings.type_v} V cache needs flash attention",
            "Use --flash-attn on, or --type-v f16.",
        )


def _bad(info: SettingInfo, why: str) -> UsageProblem:
    return UsageProblem("bad_setting", f"{info.option}: {why}", f"{info.label}.")
