"""What an untuned model is run with: the devices that have room, and every layer they hold."""

import msgspec
import pytest

from app.domain.units import GIB, MIB
from app.rig.process import Launch
from app.session.estimating import Scene, default_settings
from app.session.opening import Learned
from app.session.readings import Readings
from tests.fakes.recorded import MACHINES, situation_of
from tests.fakes.shapes import a_spec, dense_tensors

DENSE = a_spec(
    n_layer=32, n_embd=4096, n_vocab=128256, n_head=32, n_head_kv=8, k_dim=128,
    tensors=dense_tensors(
        n_layer=32, n_embd=4096, n_vocab=128256, n_ff=14336, n_q=4096, n_kv=1024, kind="q4_K"
    ),
)  # fmt: skip


def twins(*free: int) -> Scene:
    """Return a machine of two RTX 3090 with ``free`` bytes each."""
    machine = situation_of(MACHINES / "twin-3090").machine
    left = dict(zip(("CUDA0", "CUDA1"), free, strict=True))
    gpus = tuple(
        msgspec.structs.replace(
            gpu,
            engine=tuple(msgspec.structs.replace(d, free_bytes=left[d.name]) for d in gpu.engine),
        )
        for gpu in machine.gpus
    )
    return Scene(msgspec.structs.replace(machine, gpus=gpus), Readings({}), Learned(), Launch())


@pytest.mark.parametrize(
    ("free", "devices"),
    [
        ((100 * MIB, 23 * GIB), ("CUDA1",)),
        ((23 * GIB, 0), ("CUDA0",)),
        # it holds a few layers, and with its share of eleven layers the other stays empty
        ((1500 * MIB, 7 * GIB), ("CUDA1",)),
        ((23 * GIB, 23 * GIB), ()),
        ((4 * GIB, 4 * GIB), ()),
    ],
)
def test_a_full_card_does_not_keep_the_model_from_the_free_one(
    free: tuple[int, int], devices: tuple[str, ...]
) -> None:
    """Cards that have too little room for their share are left out, others are not."""
    found = default_settings(twins(*free), DENSE, 4096)
    assert found.devices == devices
    assert found.n_gpu_layers == DENSE.max_gpu_layers


def test_two_full_cards_leave_the_processor() -> None:
    """No layer fits anywhere: nothing is offloaded."""
    found = default_settings(twins(100 * MIB, 200 * MIB), DENSE, 4096)
    assert (found.n_gpu_layers, found.devices) == (0, ())
