"""What a real load taught reaches every later estimate of the same card, driver and backend."""

import msgspec
import pytest

from app.domain.machine import EngineDevice, Gpu, GpuInfo, GpuKind, HostInfo, Machine
from app.domain.memory import DeviceMemory
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import SearchDevice
from app.domain.units import GIB, MIB
from app.rig.footprint import Footprint
from app.session.calibrating import (
    known_overheads,
    learner,
    outdated_words,
    overhead_words,
)
from app.session.opening import memory_for
from app.store import Calibration
from tests.fakes.shapes import a_spec, dense_tensors

SPEC = a_spec(
    arch="llama", n_layer=8, n_embd=1024, n_vocab=32000, n_head=8, n_head_kv=8, k_dim=128,
    tensors=dense_tensors(
        n_layer=8, n_embd=1024, n_vocab=32000, n_ff=4096, n_q=1024, n_kv=1024, kind="q4_K"
    ),
)  # fmt: skip
WHOLE = Settings(n_gpu_layers=9)


def machine(driver: str = "nvidia 580", kind: GpuKind = GpuKind.DISCRETE) -> Machine:
    device = EngineDevice(
        name="CUDA0", backend="CUDA", description="card", kind=kind, total_bytes=8 * GIB,
        free_bytes=8 * GIB,
    )  # fmt: skip
    info = GpuInfo(probe="nvml", uuid="GPU-1", kind=kind, driver=driver)
    return Machine(host=HostInfo(os="linux"), gpus=(Gpu(key="GPU-1", info=info, engine=(device,)),))


def seen(**changes: object) -> Footprint:
    base = Footprint(
        device="CUDA0", settings=WHOLE, has_cpu_layers=False, depth=600,
        driver_context_bytes=400 * MIB, growth_bytes=90 * MIB,
    )  # fmt: skip
    return msgspec.structs.replace(base, **changes)


def learned(*footprints: Footprint, on: Machine | None = None) -> list[Calibration]:
    kept: list[Calibration] = []
    learn = learner(SPEC, on or machine(), kept.append)
    for footprint in footprints:
        learn(footprint)
    return kept


def overheads_of(rows: list[Calibration], settings: Settings, now: Machine) -> tuple[object, ...]:
    devices = (
        SearchDevice(
            id="CUDA0", kind="discrete", backend="CUDA", total_bytes=8 * GIB, free_bytes=8 * GIB
        ),
    )
    memory = memory_for(SPEC, now, devices, overheads=known_overheads(rows, SPEC, now))
    gpu = memory.estimate(settings).devices[0]
    return gpu.driver_context_bytes, gpu.growth_bytes, gpu.measured_parts


def test_the_same_shape_is_measured() -> None:
    """Driver's context and growth of the load, whatever the context length."""
    longer = msgspec.structs.replace(WHOLE, n_ctx=32768)
    found = overheads_of(learned(seen()), longer, machine())
    assert found == (400 * MIB, 90 * MIB, ("driver_context", "growth"))


@pytest.mark.parametrize(
    "other",
    [
        msgspec.structs.replace(WHOLE, n_ubatch=2048),
        msgspec.structs.replace(WHOLE, n_gpu_layers=3),
        msgspec.structs.replace(WHOLE, flash_attn=FlashAttn.OFF, n_ctx=512),
    ],
)
def test_another_shape_keeps_the_tables_growth(other: Settings) -> None:
    """Another batch, layers in RAM, or plain attention: only the driver's context is known."""
    context, growth, measured = overheads_of(learned(seen()), other, machine())
    assert (context, measured) == (400 * MIB, ("driver_context",))
    assert growth != 90 * MIB


def test_another_driver_knows_nothing() -> None:
    """After a driver update the table counts until the next load."""
    found = overheads_of(learned(seen()), WHOLE, machine("nvidia 600"))
    assert found == (530 * MIB, 250 * MIB, ())


def test_another_family_shares_the_context_only() -> None:
    """Growth belongs to the model's family."""
    rows = [
        msgspec.structs.replace(row, key=msgspec.structs.replace(row.key, family="gemma3"))
        for row in learned(seen())
    ]
    found = overheads_of(rows, WHOLE, machine())
    assert found == (400 * MIB, 250 * MIB, ("driver_context",))


def test_plain_attention_is_known_up_to_its_depth() -> None:
    """Without flash attention growth rises with the depth: a deeper context is not known."""
    plain = msgspec.structs.replace(WHOLE, flash_attn=FlashAttn.OFF, n_ctx=4096)
    rows = learned(seen(settings=plain, depth=4000))
    assert overheads_of(rows, plain, machine())[1] == 90 * MIB
    deeper = msgspec.structs.replace(plain, n_ctx=8192)
    assert overheads_of(rows, deeper, machine())[1] != 90 * MIB


def test_a_shared_pool_teaches_nothing() -> None:
    """Free memory of a GPU inside the processor is every program's."""
    assert learned(seen(), on=machine(kind=GpuKind.INTEGRATED)) == []


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        ((), "from a table until a real load shows them."),
        (("driver_context",), "measured on this machine with nvidia 580; growth: from a table."),
        (("driver_context", "growth"), "growth: measured on this machine with nvidia 580."),
    ],
)
def test_where_the_uncounted_parts_come_from(measured: tuple[str, ...], words: str) -> None:
    """Driver and growth say whether this machine showed them, and with which driver."""
    part = DeviceMemory(
        device="CUDA0", total_bytes=GIB, driver_context_bytes=MIB, growth_bytes=MIB,
        measured_parts=measured, measured_driver="nvidia 580" if measured else None,
    )  # fmt: skip
    assert overhead_words([part]).endswith(words)
    assert overhead_words([DeviceMemory(device="host", total_bytes=GIB)]) == ""


def test_an_update_is_said_until_the_next_load() -> None:
    """What was measured with another driver is named; with the present one there is nothing."""
    rows = learned(seen())
    assert outdated_words(rows, machine()) == ""
    now = machine("nvidia 600")
    text = outdated_words(rows, now)
    assert "nvidia 580" in text
    assert "nvidia 600" in text
    assert outdated_words([*rows, *learned(seen(), on=now)], now) == ""
