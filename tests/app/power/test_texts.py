"""Every code of the governor and its helper has a sentence, and its placeholders are filled."""

import ast
import string
from pathlib import Path

import msgspec
import pytest

from app.advice.text import catalogue
from app.power.records import Mode, Wish
from tests.fakes.governed import Run
from tests.fakes.thermal_cards import LAPTOP_4060, RTX_3090
from tests.fakes.thermal_plant import Plant

ROOT = Path(__file__).resolve().parents[3]
TEXTS = catalogue("en")["power"]
SOURCES = sorted((ROOT / "app/power").rglob("*.py"))

# Answers of the helper to a client that makes a mistake: they end up in an error's text.
INTERNAL = {
    "already_open", "bad_lease", "bad_pci_id", "busy", "no_device", "no_gpu", "asleep", "version",
    "unknown_vendor", "wrong_device", "other_card", "not_understood",
}  # fmt: skip
CALLS = {"Reason", "Refused", "_refused", "DriverRefused", "give_back", "withhold", "release"}


def code_literals() -> set[str]:
    """Return the texts that stand where a code does."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in CALLS:
                values = [*node.args, *(k.value for k in node.keywords if k.arg == "code")]
                found |= {v.value for v in values if isinstance(v, ast.Constant)}
    return {v for v in found if isinstance(v, str) and v.isidentifier() and len(v) > 2}


def test_every_code_has_a_sentence() -> None:
    """A code without a sentence would show up as an error in the window."""
    codes = code_literals()
    assert {"too_warm", "limit_moves", "not_applied", "idle"} <= codes
    assert codes - set(TEXTS) - INTERNAL == set()


def test_no_sentence_is_left_over() -> None:
    """Every sentence belongs to a code that occurs."""
    source = "".join(path.read_text("utf-8") for path in SOURCES)
    assert [code for code in TEXTS if f'"{code}"' not in source] == []


@pytest.mark.parametrize(
    "run",
    [
        Run(Plant(LAPTOP_4060, 58.0), Wish(mode=Mode.QUIET)),
        Run(Plant(RTX_3090), Wish(mode=Mode.FULL, cap_w=250.0)),
    ],
    ids=["hot", "capped"],
)
def test_placeholders_are_filled(run: Run) -> None:
    """What the governor says and does can be put into words."""
    run.break_reading = lambda r: msgspec.structs.replace(
        r, speed=r.speed and r.speed * (1.0 if run.plant.t_s < 300 else 0.6)
    )
    run.go(1800).finish()
    reasons = [*run.state.notes, *(a.reason for m in run.moments for a in m.actions)]
    assert len({reason.code for reason in reasons}) >= 2
    for reason in reasons:
        names = {name for _, name, _, _ in string.Formatter().parse(TEXTS[reason.code]) if name}
        assert names <= set(reason.data), reason.code
