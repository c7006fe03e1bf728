"""Settings typed on the command line."""

import argparse

import pytest

from app.cli.arguments import add_settings, check_settings, parse_pins, settings_from
from app.domain.errors import UsageProblem
from app.domain.settings import SETTINGS, FlashAttn, Settings

BASE = Settings(n_gpu_layers=0)


def parse(*argv: str, n_layer: int | None = 32, base: Settings = BASE) -> Settings:
    parser = argparse.ArgumentParser()
    add_settings(parser, [info.name for info in SETTINGS])
    return settings_from(parser.parse_args(argv), base, n_layer)


def test_what_is_not_given_keeps_its_value() -> None:
    """No option, no change."""
    assert parse() == BASE


def test_options_are_applied() -> None:
    """Numbers, choices, repeated devices and the word all."""
    settings = parse(
        "--n-gpu-layers", "all", "--flash-attn", "off", "--device", "A", "--device", "B"
    )
    assert settings.n_gpu_layers == 33
    assert settings.flash_attn is FlashAttn.OFF
    assert settings.devices == ("A", "B")


def test_shares_are_for_every_device_unless_some_are_named() -> None:
    """A default that leaves a full device out must not swallow the user's shares."""
    base = Settings(n_gpu_layers=9, devices=("B",))
    assert parse(base=base).devices == ("B",)
    assert parse("--tensor-split", "3,1", base=base).devices == ()
    assert parse("--tensor-split", "3,1", "--device", "A", base=base).devices == ("A",)


def test_a_large_ubatch_brings_its_batch() -> None:
    """The logical batch follows when only the physical one was asked for."""
    assert parse("--n-ubatch", "4096").n_batch == 4096


@pytest.mark.parametrize(
    "argv",
    [
        ("--n-gpu-layers", "34"),
        ("--n-gpu-layers", "-1"),
        ("--n-gpu-layers", "many"),
        ("--n-ctx", "1"),
        ("--n-batch", "256", "--n-ubatch", "512"),
        ("--type-v", "q8_0", "--flash-attn", "off"),
    ],
)
def test_bad_values_are_refused_with_a_sentence(argv: tuple[str, ...]) -> None:
    """A value out of range or a pair the engine refuses never reaches the engine."""
    with pytest.raises(UsageProblem) as caught:
        parse(*argv)
    assert caught.value.info.message


def test_quantised_k_without_flash_attention_is_allowed() -> None:
    """Only the V cache needs flash attention."""
    check_settings(Settings(n_gpu_layers=0, type_k="q8_0", flash_attn=FlashAttn.OFF))


def test_pins() -> None:
    """knob=value texts, with dashes or underscores; anything else is a usage error."""
    assert parse_pins(["n-ubatch=256", "type_k=q8_0"], 32) == {"n_ubatch": 256, "type_k": "q8_0"}
    for bad in ("n_ubatch", "speed=3", "devices=CUDA0", "n_ubatch=x"):
        with pytest.raises(UsageProblem):
            parse_pins([bad], 32)


def test_a_split_is_a_list_of_whole_numbers() -> None:
    """``--tensor-split`` and ``--pin tensor_split=…`` take one number per device, nothing else."""
    assert parse_pins(["n_gpu_layers=all"], None) == {"n_gpu_layers": "all"}
    assert parse_pins(["n_gpu_layers=all"], 32) == {"n_gpu_layers": 33}
    assert parse_pins(["tensor_split=3,1"], None) == {"tensor_split": "3,1"}
    for wrong in ("3;1", "", "a,b", "-1,2", "1,", "0,0"):
        with pytest.raises(UsageProblem):
            parse_pins([f"tensor_split={wrong}"], None)


def test_split_modes() -> None:
    """The four of llama.cpp; ``tensor`` without flash attention is refused before a load."""
    assert parse("--split-mode", "row").split_mode == "row"
    assert parse().split_mode == "layer"
    with pytest.raises(UsageProblem, match="flash attention"):
        parse("--split-mode", "tensor", "--flash-attn", "off")


def test_expert_layers_are_bounded_by_the_model() -> None:
    """More than every block is a slip of the finger; every block is not."""
    assert parse("--n-cpu-moe", "32").n_cpu_moe == 32
    with pytest.raises(UsageProblem, match="above 32"):
        parse("--n-cpu-moe", "33")


def test_pinning_devices_leads_to_the_option_for_it() -> None:
    """Devices are no knob; the hint says what they are chosen with."""
    with pytest.raises(UsageProblem) as caught:
        parse_pins(["devices=CUDA0"], None)
    assert "--device" in caught.value.info.hint
