"""What was learnt of a cooler is kept between runs, and nothing breaks without it."""

from pathlib import Path

import msgspec
import pytest

from app.power.cooling import Known, Lasting
from app.power.known import FILE, Coolers

replace = msgspec.structs.replace
KNOWN = Known(target_c=74.0, c_per_w=0.5, room_c=22.0, profile="balanced")


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    """By device, the same profile first, then the nearest target."""
    coolers = Coolers(tmp_path)
    quiet = replace(KNOWN, target_c=61.0, c_per_w=0.6)
    loud = replace(KNOWN, profile="performance", c_per_w=0.4)
    for known in (KNOWN, quiet, loud):
        coolers.keep("gpu", known, is_sure=True)
    assert coolers.find("gpu", 77.0, "balanced") == KNOWN
    assert coolers.find("gpu", 62.0, "balanced") == quiet
    assert coolers.find("gpu", 75.0, "performance") == loud
    assert coolers.find("other", 62.0, "balanced") is None


def test_what_a_hotter_target_taught_is_only_begun_with(tmp_path: Path) -> None:
    """A fan turns down with the device: 10 °C cooler, 30 % less per degree, and not sure."""
    Coolers(tmp_path).keep("gpu", KNOWN, is_sure=True)
    found = Coolers(tmp_path).find("gpu", 64.0, "balanced")
    assert found is not None
    assert found.c_per_w == pytest.approx(1.3 * KNOWN.c_per_w)
    assert (found.target_c, found.is_cautious, found.draw_w) == (64.0, True, None)


def test_a_short_session_does_not_replace_a_long_one(tmp_path: Path) -> None:
    """What is not warm through is kept only where there is nothing yet."""
    coolers = Coolers(tmp_path)
    coolers.keep("gpu", KNOWN, is_sure=False)
    assert coolers.find("gpu", 74.0, "balanced") == KNOWN
    coolers.keep("gpu", replace(KNOWN, c_per_w=0.9), is_sure=False)
    assert coolers.find("gpu", 74.0, "balanced") == KNOWN
    better = replace(KNOWN, c_per_w=0.52)
    coolers.keep("gpu", better, is_sure=True)
    assert coolers.find("gpu", 74.0, "balanced") == better


def test_what_was_assumed_gives_way_to_what_came_after(tmp_path: Path) -> None:
    """Two short sessions in a row: the second one saw more."""
    coolers = Coolers(tmp_path)
    coolers.keep("gpu", replace(KNOWN, is_cautious=True), is_sure=False)
    seen = replace(KNOWN, c_per_w=0.45, is_cautious=True)
    coolers.keep("gpu", seen, is_sure=False)
    assert coolers.find("gpu", 74.0, "balanced") == seen


def test_a_damaged_file_is_nothing_learnt(tmp_path: Path) -> None:
    """Cut, empty, or of another program: it is started anew."""
    for text in (b"", b"{", b"[1]", b'{"gpu": [{"target_c": "x"}]}', b"\xff\xfe"):
        (tmp_path / FILE).write_bytes(text)
        assert Coolers(tmp_path).find("gpu", 74.0, None) is None
        Coolers(tmp_path).keep("gpu", KNOWN, is_sure=True)
        assert Coolers(tmp_path).find("gpu", 74.0, "balanced") == KNOWN


@pytest.mark.parametrize("c_per_w", [0.0, -1.0])
@pytest.mark.parametrize("carried_frac", [0.0, 0.7])
def test_figures_that_nothing_can_have_are_nothing_learnt(
    tmp_path: Path, c_per_w: float, carried_frac: float
) -> None:
    """Whole but senseless: the governor would divide by them."""
    lasting = Lasting(frac=0.8, carried_frac=carried_frac)
    Coolers(tmp_path).keep("gpu", replace(KNOWN, c_per_w=c_per_w), is_sure=True)
    assert Coolers(tmp_path).find("gpu", 74.0, "balanced") is None
    Coolers(tmp_path).keep("gpu", replace(KNOWN, lasting=lasting), is_sure=True)
    assert (Coolers(tmp_path).find("gpu", 74.0, "balanced") is None) == (carried_frac == 0.0)


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    """Losing it costs the first minutes of the next session, no more."""
    Coolers(tmp_path / "gone" / "there").keep("gpu", KNOWN, is_sure=True)
    file = tmp_path / "file"
    file.write_text("x")
    Coolers(file).keep("gpu", KNOWN, is_sure=True)
