"""Spilled and throttled: what telemetry saw becomes the trial's outcome."""

import contextlib
from collections.abc import Collection, Iterator, Mapping

import msgspec
import pytest

from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.settings import LoadMode, Settings
from app.domain.sweep import SearchHost
from app.domain.trial import TelemetryWindow, Trial, TrialRequest, Workload
from app.domain.units import GIB, MIB
from app.rig.seen import outcome_seen, pinned_bytes, shared_growth
from app.rig.workers import WorkerRig
from tests.fakes.faulty_worker import faulty
from tests.fakes.records import a_model
from tests.fakes.rigs import run_one

ON_GPU = Settings(n_gpu_layers=1, devices=("CUDA0",))


class Seen:
    """A window over simulated telemetry: what it will have seen is given."""

    def __init__(self, result: TelemetryWindow) -> None:
        self.result: TelemetryWindow | None = result

    def own(self, pid: int) -> None:
        """Nobody else runs here."""

    def begin(self) -> None:
        """What was seen is given."""


def trial_seen(
    window: TelemetryWindow, own_memory: Mapping[str, int | None] | None = None
) -> Trial:
    """Run one trial in a real child, below telemetry that saw ``window``."""

    @contextlib.contextmanager
    def opened(own_pids: Collection[int]) -> Iterator[Seen]:
        yield Seen(window)

    rig = WorkerRig(
        msgspec.structs.replace(a_model(), file_bytes=1000),
        SearchHost(cores_physical=1, cores_logical=1, ram_bytes=GIB),
        launch=faulty(),
        window=opened,
        own_memory=own_memory,
    )
    try:
        return run_one(rig, TrialRequest(stage="test", settings=ON_GPU, workload=Workload()))
    finally:
        rig.close()


def test_a_trial_says_what_spilled() -> None:
    """Growth of shared memory beyond our own host buffers arrives, with its price as spilled."""
    grown = {"GPU-1": 900 * MIB}
    trial = trial_seen(TelemetryWindow(n_samples=9, shared_growth_bytes=grown))
    assert trial.outcome is Outcome.OK
    assert trial.shared_growth_bytes is not None
    assert 800 * MIB < trial.shared_growth_bytes <= 900 * MIB
    busy = TelemetryWindow(n_samples=9, shared_growth_bytes=grown, pcie_rx_bytes_s={"GPU-1": 8e9})
    assert trial_seen(busy).outcome is Outcome.SPILLED


@pytest.mark.parametrize(
    ("peak", "counts"),
    [({"GPU-1": 4 * GIB}, False), ({"GPU-1": 15 * GIB // 2}, True), ({}, True)],
)
def test_a_card_with_room_does_not_spill(peak: dict[str, int], counts: bool) -> None:
    """Windows stages copies in shared memory: growth is a spill only on a card that is full."""
    window = TelemetryWindow(
        n_samples=9,
        vram_peak_bytes=peak,
        shared_growth_bytes={"GPU-1": 900 * MIB},
        pcie_rx_bytes_s={"GPU-1": 8e9},
    )
    trial = trial_seen(window, own_memory={"GPU-1": 8 * GIB})
    assert bool(trial.shared_growth_bytes) is counts
    assert (trial.outcome is Outcome.SPILLED) is counts


def test_an_integrated_gpu_does_not_spill() -> None:
    """Shared memory is where an integrated GPU lives: without memory of its own, no growth."""
    seen = TelemetryWindow(
        n_samples=9, shared_growth_bytes={"iGPU": GIB}, pcie_rx_bytes_s={"iGPU": 8e9}
    )
    trial = trial_seen(seen, own_memory={"GPU-1": None})
    assert trial.outcome is Outcome.OK
    assert trial.shared_growth_bytes is None


@pytest.mark.parametrize(
    ("reasons", "outcome"),
    [
        (("hw_thermal",), Outcome.THROTTLED),
        (("sw_power_cap",), Outcome.OK),
        ((), Outcome.OK),
    ],
)
def test_heat_makes_a_trial_throttled(reasons: tuple[str, ...], outcome: Outcome) -> None:
    """Heat slows for a while and the trial says so; a power limit is how the card is set."""
    window = TelemetryWindow(n_samples=9, throttle={"GPU-1": reasons})
    assert trial_seen(window).outcome is outcome


def test_host_buffers_explain_growth() -> None:
    """What the engine itself pinned is no spill; mapped weights are not pinned."""
    host = DeviceMemory(device="host", total_bytes=700 * MIB, weights_bytes=500 * MIB)
    copied = msgspec.structs.replace(ON_GPU, load_mode=LoadMode.NONE)
    assert pinned_bytes([host], copied, loaded=True) == 700 * MIB
    assert pinned_bytes([host], copied, loaded=False) == 200 * MIB
    assert pinned_bytes([host], ON_GPU, loaded=True) == 200 * MIB
    window = TelemetryWindow(n_samples=9, shared_growth_bytes={"GPU-1": 750 * MIB})
    assert shared_growth(window, None, 700 * MIB) == 50 * MIB
    assert outcome_seen(window, None, 50 * MIB) is Outcome.OK


def test_nothing_seen_says_nothing() -> None:
    """Without a probe that reads shared memory the growth is unknown, not 0."""
    assert shared_growth(None, None, 0) is None
    assert shared_growth(TelemetryWindow(n_samples=3), None, 0) is None
    assert outcome_seen(None, None, None) is Outcome.OK
