"""What a load takes beyond the engine's buffers, read from outside."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.domain.events import RigEvent, TrialFinished, TrialProgress
from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.settings import Settings
from app.domain.sweep import SearchHost
from app.domain.trial import TrialRequest, Workload
from app.domain.units import GIB, MIB
from app.gguf import read_model
from app.rig.footprint import Footprint, FootprintMeter
from app.rig.process import Launch
from app.rig.workers import WorkerRig
from tests.fakes.models import make_model
from tests.fakes.rpc_device import rpc_device

SETTINGS = Settings(n_gpu_layers=9)
BUFFERS = (
    DeviceMemory(device="CUDA0", kv_cache_bytes=MIB, total_bytes=GIB),
    DeviceMemory(device="host", kv_cache_bytes=MIB, total_bytes=GIB),
)


def falling(*free_mib: int | None) -> Callable[[str], int | None]:
    readings: Iterator[int | None] = iter(free_mib)

    def free_now(_name: str) -> int | None:
        reading = next(readings)
        return None if reading is None else reading * MIB

    return free_now


def measure(*free_mib: int | None) -> tuple[Footprint, ...]:
    meter = FootprintMeter(falling(*free_mib), ["CUDA0"])
    meter.context_made(SETTINGS, BUFFERS)
    for _ in free_mib[2:]:
        meter.pass_ended()
    return meter.trial_ended(600)


def test_context_and_growth_are_told_apart() -> None:
    """8 GiB free, 1 GiB of buffers: 530 MiB before the first batch, 90 MiB in the second pass."""
    in_context = 8192 - 1024 - 530
    (found,) = measure(8192, in_context, in_context - 80, in_context - 90, in_context - 85)
    assert (found.driver_context_bytes, found.growth_bytes) == (530 * MIB, 90 * MIB)
    assert (found.has_cpu_layers, found.depth) == (True, 600)


@pytest.mark.parametrize(
    "free_mib",
    [
        (8192, 7500, 7500),  # less than the buffers: another program gave memory back
        (8192, 4000, 4000),  # 3 GiB beside the buffers: another program took some
        (None,),  # no probe
        (8192, None),  # the card was lost meanwhile
        (8192, 8192 - 1024 - 530, None),  # or in the first pass
        (8192, 8192 - 1024 - 530),  # no pass ran
        (8192, 6638, 6700, 7900),  # another program ended meanwhile, or the context had already
    ],
)
def test_readings_that_cannot_be_true_teach_nothing(free_mib: tuple[int | None, ...]) -> None:
    """Wrong or missing readings are dropped, not stored."""
    assert measure(*free_mib) == ()


def test_a_load_that_failed_teaches_nothing() -> None:
    """Without a context there is nothing to compare."""
    assert FootprintMeter(falling(8192), ["CUDA0"]).trial_ended(0) == ()


@contextmanager
def learning_rig(
    folder: Path, free_now: Callable[[str], int | None], kept: list[Footprint]
) -> Iterator[WorkerRig]:
    """Give a rig on a real device with a made-up memory; what it learns goes to ``kept``."""
    spec = read_model(make_model(folder / "tiny.gguf"))
    host = SearchHost(cores_physical=1, cores_logical=1, ram_bytes=1 << 34)
    with rpc_device() as endpoint:
        rig = WorkerRig(
            spec, host, devices=("RPC0",), launch=Launch(rpc=(endpoint,)), free_now=free_now,
            learn=kept.append,
        )  # fmt: skip
        with closing(rig):
            yield rig


@pytest.mark.engine
def test_only_the_first_context_of_a_process_teaches(tmp_path: Path) -> None:
    """A rig on a real device hands over one footprint per load, of the settings that ran.

    What it grew by is read while the context is there: afterwards everything is free again.
    """
    kept: list[Footprint] = []
    free = iter([8 * GIB, 7 * GIB, 7 * GIB - 50 * MIB, 7 * GIB - 90 * MIB])
    with learning_rig(tmp_path, lambda _: next(free, 8 * GIB), kept) as rig:
        for n_ubatch in (512, 256):
            asked = Settings(
                n_gpu_layers=9, n_ctx=512, n_ubatch=n_ubatch, n_threads=1, devices=("RPC0",)
            )
            assert _run(rig, asked) is Outcome.OK
    assert [(f.settings.n_ubatch, f.growth_bytes) for f in kept] == [(512, 90 * MIB)]


@pytest.mark.engine
def test_a_trial_cut_short_leaves_nothing_for_the_next(tmp_path: Path) -> None:
    """Its context was another one: what it read says nothing of the one that follows."""
    kept: list[Footprint] = []
    free = iter([8 * GIB, 6 * GIB])
    with learning_rig(tmp_path, lambda _: next(free, 7 * GIB), kept) as rig:
        asked = Settings(n_gpu_layers=9, n_ctx=512, n_threads=1, devices=("RPC0",))
        events = rig.run_trial(_request(asked))
        while next(events) != TrialProgress(phase="decode"):
            pass
        events.close()  # type: ignore[attr-defined]
        assert rig.loaded == asked
        assert _run(rig, asked) is Outcome.OK
    assert kept == []


def _run(rig: WorkerRig, settings: Settings) -> Outcome:
    last: RigEvent | None = None
    for event in rig.run_trial(_request(settings)):
        last = event
    assert isinstance(last, TrialFinished)
    return last.trial.outcome


def _request(settings: Settings) -> TrialRequest:
    return TrialRequest(
        stage="test", settings=settings, workload=Workload(n_prompt=16, n_gen=8), min_reps=1,
        max_reps=1, max_s=1,
    )  # fmt: skip
