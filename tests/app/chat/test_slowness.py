"""Why an answer is slow: only what was read is blamed, and only when it is slow."""

import msgspec
import pytest

from app.advice.text import LANGUAGES, catalogue, render
from app.chat.slowness import SlowEvidence, slow_causes
from app.domain.machine import DriverReset, GpuSample, PowerSource
from app.domain.units import MIB

RESET = DriverReset(provider="Display", event_id=4101, time_utc="2026-01-02T03:04:05Z")
CARD = GpuSample(key="gpu0", t_ns=0, temp_c=87.0, power_w=114.8, power_limit_w=115.0)


def evidence(**changes: object) -> SlowEvidence:
    """Return an answer at half the profile's speed, with nothing wrong that can be read."""
    base = SlowEvidence(
        decode_tok_s=20.0, promised_tok_s=40.0, promised_depth=2560, depth=800, n_layers=29,
        samples=(CARD,), names={"gpu0": "RTX 4070"}, shared_before={"gpu0": 100 * MIB},
    )  # fmt: skip
    return msgspec.structs.replace(base, **changes)


def card(**changes: object) -> tuple[GpuSample, ...]:
    """Return a reading of the card."""
    return (msgspec.structs.replace(CARD, **changes),)


@pytest.mark.parametrize(
    ("changes", "codes"),
    [
        ({"decode_tok_s": None}, []),
        ({"decode_tok_s": 39.0, "samples": card(throttle=("hw_thermal",))}, []),
        ({"samples": card(throttle=("sw_thermal",))}, ["heat"]),
        ({"samples": card(throttle=("sw_power_cap",))}, ["power_limit"]),
        ({"samples": card(throttle=("gpu_idle",))}, ["unexplained"]),
        ({"samples": card(throttle=None)}, ["unexplained"]),
        ({"samples": card(shared_used_bytes=500 * MIB)}, ["spill"]),
        ({"samples": card(shared_used_bytes=120 * MIB)}, ["unexplained"]),
        ({"samples": card(shared_used_bytes=500 * MIB), "shared_before": {}}, ["unexplained"]),
        ({"neighbour": "game.exe"}, ["neighbour"]),
        ({"power_source": PowerSource.BATTERY}, ["battery"]),
        ({"depth": 9000}, ["depth"]),
        ({"reset": RESET}, ["driver_reset"]),
        ({"reset": RESET, "decode_tok_s": 39.0}, []),
        ({"promised_tok_s": None}, []),
        ({"promised_tok_s": None, "decode_tok_s": 4.0, "n_cpu_layers": 12}, ["cpu_layers"]),
        ({"promised_tok_s": None, "decode_tok_s": 12.0, "n_cpu_layers": 12}, []),
        (
            {"samples": card(throttle=("hw_thermal",), shared_used_bytes=900 * MIB), "depth": 9000},
            ["heat", "spill", "depth"],
        ),
    ],
)
def test_causes(changes: dict[str, object], codes: list[str]) -> None:
    """Each cause needs its own reading; without any the miss itself is said."""
    assert [cause.code for cause in slow_causes(evidence(**changes))] == codes


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_cause_can_be_said(language: str) -> None:
    """Data and placeholders belong together in every language."""
    found = slow_causes(
        evidence(
            decode_tok_s=4.0, n_cpu_layers=3, depth=9000, neighbour="x",
            power_source=PowerSource.BATTERY, reset=RESET,
            samples=(
                *card(throttle=("hw_thermal",), shared_used_bytes=900 * MIB),
                *card(throttle=("sw_power_cap",)),
            ),
        )
    )  # fmt: skip
    found += slow_causes(evidence())
    codes = {code for code in catalogue(language)["slow"] if not code.endswith("_bare")}
    assert {cause.code for cause in found} == codes
    for cause in found:
        assert "{" not in render("slow", cause.code, cause.data, language)
