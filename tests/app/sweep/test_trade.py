"""How much host memory a search may pin, on machines whose prefill gains fourfold by it."""

import msgspec
import pytest

from app.domain.settings import LoadMode
from app.domain.sweep import SweepRequest, SweepResult
from app.rig.simulated import SimulatedRig
from app.rig.simulated_machine import SimulatedMachine
from tests.fakes.rigs import machine, search

GIB = 1 << 30
LARGE = machine(
    n_layer=16, layer_bytes=GIB, output_bytes=GIB // 4, pinned_gain=4.0, prefill_cpu_ms=0.4,
    free_bytes=7 * GIB,
)  # fmt: skip
SMALL = machine(
    n_layer=32, layer_bytes=GIB // 8, output_bytes=GIB // 8, pinned_gain=4.0, prefill_cpu_ms=0.2,
    total_bytes=3 * GIB, free_bytes=5 * GIB // 2, compute_bytes=GIB // 16,
)  # fmt: skip


def copied(found: SweepResult) -> list[int]:
    """Return the layers of each trial that copied weights to RAM beside a GPU."""
    tried = [t.request.settings for t in found.trials]
    return [s.n_gpu_layers for s in tried if s.load_mode is LoadMode.NONE and s.devices]


@pytest.mark.parametrize(
    ("model", "ram_gib", "is_allowed"),
    [
        (LARGE, 64, True),  # 10 of 64 GiB
        (LARGE, 22, False),  # 40 % are 8.8 GiB
        (SMALL, 16, True),
        (SMALL, 5.4, False),  # 40 % are 2.2 GiB, but only 1.4 leave 4 GiB to everything else
    ],
)
def test_so_much_of_ram_may_be_pinned(
    model: SimulatedMachine, ram_gib: float, is_allowed: bool
) -> None:
    """At most 40 % and all but 4 GiB: beyond that no weights are copied, whatever they gain."""
    rig = SimulatedRig(msgspec.structs.replace(model, ram_bytes=int(ram_gib * GIB)))
    found = search(rig)
    assert found.recommended is not None
    assert 0 < found.recommended.settings.n_gpu_layers <= model.n_layer
    assert bool(copied(found)) is is_allowed
    assert (found.recommended.settings.load_mode is LoadMode.NONE) is is_allowed


def test_what_the_user_pinned_is_done() -> None:
    """The bound holds for what the search tries on its own, not for what was asked for."""
    rig = SimulatedRig(msgspec.structs.replace(LARGE, ram_bytes=22 * GIB))
    found = search(rig, SweepRequest(pinned={"load_mode": "none"}))
    assert found.recommended is not None
    assert found.recommended.settings.load_mode is LoadMode.NONE
