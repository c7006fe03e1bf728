"""What crosses borders between devices: figures of the engine's dry runs over remote devices."""

from pathlib import Path

import pytest

from app.domain.settings import FlashAttn, Settings, Switch
from app.domain.units import MIB
from app.estimate.crossing import in_flight
from app.estimate.formula import Formula
from app.estimate.profile import FormulaDevice
from app.estimate.visiting import attends_in_ram
from app.estimate.widths import layer_dims
from app.gguf import read_model
from tests.fakes.published import published_model


@pytest.fixture(scope="module")
def jamba(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Attention in blocks 4, 12, 20 and 28 of 32; recurrent ones elsewhere."""
    name = "Jamba-1.5-Mini"
    return published_model(tmp_path_factory.mktemp("models") / f"{name}.gguf", name)


@pytest.mark.parametrize(
    ("n_ctx", "n_ubatch", "engine_mib"),
    [(65536, 1024, (1072.2, 1264.1)), (12000, 768, (490.6, 634.5)), (24576, 512, (376.4, 472.3))],
)
def test_a_border_between_recurrent_blocks_is_counted(
    jamba: Path, n_ctx: int, n_ubatch: int, engine_mib: tuple[float, float]
) -> None:
    """Half of the blocks on each device: both need more than with attention at the border."""
    pair = tuple(
        FormulaDevice(name=f"RPC{i}", split=1.0, has_op_offload=False, has_host_buffer=False)
        for i in range(2)
    )
    asked = Settings(n_gpu_layers=33, n_ctx=n_ctx, n_ubatch=n_ubatch, flash_attn=FlashAttn.ON)
    *devices, _ = Formula(read_model(jamba), pair).estimate(asked)
    for device, engine in zip(devices, engine_mib, strict=True):
        assert (device.compute_bytes or 0) / MIB == pytest.approx(engine, rel=0.025)


def test_each_side_of_a_device_counts(jamba: Path) -> None:
    """Twice the convolution where a batch arrives, once where it leaves, per batch in flight."""
    spec = read_model(jamba)
    dims, once = layer_dims(spec), 4 * 8192
    found = [in_flight(spec, dims, list(range(*at)), 4) for at in ((0, 8), (8, 16), (16, 32))]
    assert found == [once, 3 * once, 2 * once]
    # attention before, or behind
    assert in_flight(spec, dims, list(range(5, 13)), 4) == 0
    assert in_flight(spec, dims, list(range(8, 16)), 1) == 0


def test_a_choice_of_experts_takes_attention_out_of_ram(jamba: Path) -> None:
    """With the cache in RAM a hybrid's attention stays beside it, unless experts follow it."""
    spec = read_model(jamba)
    off = Settings(n_gpu_layers=33, offload_kqv=Switch.OFF)
    attention = {4, 12, 20, 28}
    assert attends_in_ram(spec, off, frozenset()) >= attention
    assert attends_in_ram(spec, off, frozenset({4, 12})) & attention == {20, 28}
    assert attends_in_ram(spec, Settings(n_gpu_layers=33), frozenset()) == frozenset()
