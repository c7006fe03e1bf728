"""The gate before a trial after a device slowed itself down."""

from app.domain.outcome import Outcome
from app.domain.trial import TelemetryWindow, TrialRequest
from app.rig.attempt import Attempt
from app.rig.cooling import MAX_S, CoolDown, throttled_gpus
from app.worker import protocol
from tests.fakes.records import a_trial

HOT = TelemetryWindow(n_samples=5, throttle={"g": ("hw_thermal",)}, temp_max_c={"g": 90.0})


class Plant:
    """A card that cools one degree per look; ``now`` moves with every sleep."""

    def __init__(self, temp_c: float, step_c: float = 1.0) -> None:
        self.temp_c, self.step_c, self.now = temp_c, step_c, 0.0

    def temp(self, key: str) -> float:
        assert key == "g"
        self.temp_c -= self.step_c
        return self.temp_c

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def gate(self) -> CoolDown:
        return CoolDown(self.temp, lambda: self.now)


def test_a_throttled_card_is_let_cool() -> None:
    """The next trial waits until the card is 8 °C below its peak, and says so meanwhile."""
    plant = Plant(90.0)
    gate = plant.gate()
    gate.note(HOT)
    waited = list(gate.wait(plant.sleep))
    assert {e.phase for e in waited} == {"cool_down"}
    assert plant.temp_c == 82.0
    assert list(gate.wait(plant.sleep)) == [], "once is enough"


def test_a_card_that_stays_hot_holds_nothing_up_for_ever() -> None:
    """After a minute the search goes on."""
    plant = Plant(90.0, step_c=0.0)
    gate = plant.gate()
    gate.note(HOT)
    assert list(gate.wait(plant.sleep))
    assert MAX_S <= plant.now < MAX_S + 1


def test_nothing_is_waited_for_without_throttling() -> None:
    """A power limit at work is how cards run; an unknown reason is no reason."""
    plant = Plant(90.0)
    gate = plant.gate()
    gate.note(None)
    gate.note(TelemetryWindow(n_samples=5, throttle={"g": ("sw_power_cap",)}))
    assert list(gate.wait(plant.sleep)) == []


def test_which_reasons_count() -> None:
    """Heat, slowdown and power brake; by GPU."""
    reasons = {"a": ("sw_thermal",), "b": ("hw_power_brake",), "c": ("sw_power_cap",), "d": ()}
    assert throttled_gpus(TelemetryWindow(n_samples=3, throttle=reasons)) == ("a", "b")


def test_a_trial_in_which_the_card_slowed_down_is_flagged() -> None:
    """It keeps its speed and is called throttled, so that the search repeats it."""
    request: TrialRequest = a_trial().request
    attempt = Attempt(request)
    attempt.take(protocol.TrialFinished(prefill=(), decode=()))
    assert attempt.trial(1, 1.0).outcome is Outcome.OK
    attempt.telemetry = HOT
    assert attempt.trial(1, 1.0).outcome is Outcome.THROTTLED
