"""What the user chose once for heat and power; kept between runs."""

import math

import msgspec

from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.record import Record, encode_json
from app.power.records import Mode, Wish
from app.runtime import atomic_write, data_dir

FILE = "power-choice.json"
TARGET_C = (45.0, 95.0)
PRICE_MAX = 1000.0


class PowerChoice(Record, frozen=True, kw_only=True):
    """What the user chose.

    Attributes:
        mode: How warm devices may get; ``full`` holds nothing back that the firmware would not.
        target_c: Target temperature instead of the mode's, °C.
        caps_w: Power limits to stay below, by device; ``""`` = every other device.
        use_helper: Whether limits may be set, for which the system asks for a password.
        price_per_kwh: The user's tariff; ``None`` = not told, so there are no costs to show.
        currency: What the tariff is in, as text.
    """

    mode: Mode = Mode.FULL
    target_c: float | None = None
    caps_w: dict[str, float] = {}
    use_helper: bool = False
    price_per_kwh: float | None = None
    currency: str = ""

    def wish(self, key: str) -> Wish:
        """Return what is wanted of one device."""
        return Wish(
            mode=self.mode, target_c=self.target_c, cap_w=self.caps_w.get(key, self.caps_w.get(""))
        )


def checked(choice: PowerChoice) -> PowerChoice:
    """Return ``choice`` if every figure in it can be meant.

    Raises:
        UsageProblem: A temperature, limit or price is outside what makes sense.
    """
    low, high = TARGET_C
    if choice.target_c is not None and not low <= choice.target_c <= high:
        message = f"A target temperature of {choice.target_c:g} °C makes no sense."
        raise UsageProblem("bad_target", message, f"Choose {low:g} to {high:g} °C.")
    for watts in choice.caps_w.values():
        if not (math.isfinite(watts) and watts >= 1.0):
            message = f"A power limit of {watts:g} W makes no sense."
            raise UsageProblem("bad_cap", message, "Give it in watts.")
    price = choice.price_per_kwh
    if price is not None and not 0.0 <= price <= PRICE_MAX:
        message = f"A price of {price:g} per kWh makes no sense."
        raise UsageProblem("bad_price", message, "Give it per kilowatt-hour, e.g. 0.30.")
    return choice


def load_choice() -> PowerChoice:
    """Return what was chosen; the defaults where nothing was, or where it cannot be read."""
    try:
        text = (data_dir() / FILE).read_bytes()
        return checked(msgspec.json.decode(text, type=PowerChoice))
    except (OSError, EnvironmentProblem, msgspec.DecodeError, UnicodeDecodeError):
        return PowerChoice()


def save_choice(choice: PowerChoice) -> None:
    """Keep ``choice`` for the next run.

    Raises:
        EnvironmentProblem: It cannot be written.
    """
    atomic_write(data_dir() / FILE, encode_json(checked(choice)))
