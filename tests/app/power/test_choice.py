"""What the user chose: kept between runs, and refused where it makes no sense."""

from pathlib import Path

import pytest

from app.domain.errors import UsageProblem
from app.power.choice import FILE, PowerChoice, load_choice, save_choice
from app.power.records import Mode, Wish
from app.runtime import HOME_VARIABLE, data_dir

CHOICE = PowerChoice(mode=Mode.QUIET, caps_w={"": 200.0, "GPU-1": 150.0}, price_per_kwh=0.3)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))


def test_a_choice_is_kept() -> None:
    """The next run knows it; before any choice there are defaults."""
    assert load_choice() == PowerChoice()
    save_choice(CHOICE)
    assert load_choice() == CHOICE


@pytest.mark.parametrize("text", ["", "{", '{"mode":"loud"}', '{"target_c":9999}', "\0"])
def test_a_damaged_file_means_the_defaults(text: str) -> None:
    """What cannot be read chooses nothing, least of all a limit."""
    (data_dir() / FILE).write_text(text)
    assert load_choice() == PowerChoice()


@pytest.mark.parametrize(
    "choice",
    [
        PowerChoice(target_c=20.0),
        PowerChoice(target_c=float("nan")),
        PowerChoice(caps_w={"": 0.0}),
        PowerChoice(caps_w={"k": float("inf")}),
        PowerChoice(price_per_kwh=-0.1),
        PowerChoice(price_per_kwh=float("nan")),
    ],
)
def test_figures_that_make_no_sense_are_refused(choice: PowerChoice) -> None:
    """Nothing is moved into a range, and nothing is kept."""
    with pytest.raises(UsageProblem):
        save_choice(choice)
    assert load_choice() == PowerChoice()


def test_each_device_gets_its_own_limit() -> None:
    """A device's own cap counts before the one for every other."""
    assert CHOICE.wish("GPU-1") == Wish(mode=Mode.QUIET, cap_w=150.0)
    assert CHOICE.wish("other").cap_w == 200.0
