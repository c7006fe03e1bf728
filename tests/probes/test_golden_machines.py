"""Every recorded machine gives exactly the records beside it.

A machine is a folder with ``machine.json`` (what probes read there), optionally ``engine.json``
(the devices an engine listed there) and ``expected.json``. After a wanted change run once with
``RIGTUNE_UPDATE_GOLDEN=1`` and read the difference.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from app.machine import join_machine, search_devices
from app.session.recording import read_engine
from probes import registry
from tests.fakes.recorded import MACHINES

if TYPE_CHECKING:
    from app.domain.machine import GpuInfo, GpuSample

NAMES = sorted(folder.name for folder in MACHINES.iterdir())


def document_of(folder: Path) -> dict[str, Any]:
    probes = registry.replay(folder)
    host = probes.host.identify()
    infos: list[GpuInfo] = []
    samples: list[GpuSample] = []
    for probe in probes.gpus:
        infos += probe.identify()
        samples += [msgspec.structs.replace(s, t_ns=0) for s in probe.sample()]
        probe.close()
    machine = join_machine(host, infos, read_engine(folder))
    document = {
        "host": host,
        "host_sample": msgspec.structs.replace(probes.host.sample(), t_ns=0),
        "unavailable": probes.unavailable,
        "infos": infos,
        "samples": samples,
        "gpus": [
            {"key": g.key, "engine": [d.name for d in g.engine], "unmatched": g.unmatched}
            for g in machine.gpus
        ],
        "search_devices": search_devices(machine),
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return plain


@pytest.mark.parametrize("name", NAMES)
def test_recorded_machine_gives_the_expected_records(name: str) -> None:
    """Identity, readings, joined GPUs and search devices of a recorded machine never change."""
    folder = MACHINES / name
    document = document_of(folder)
    file = folder / "expected.json"
    if os.environ.get("RIGTUNE_UPDATE_GOLDEN"):
        text = msgspec.json.format(msgspec.json.encode(document), indent=1)
        file.write_bytes(text + b"\n")
    assert document == msgspec.json.decode(file.read_bytes())


@pytest.mark.parametrize("name", NAMES)
def test_every_absent_reading_has_its_reason(name: str) -> None:
    """No field of a GPU is ``None`` without a reason beside it, and none has both."""
    document = document_of(MACHINES / name)
    for record in (*document["infos"], *document["samples"]):
        absent = {field for field, value in record.items() if value is None}
        reasoned = set(record["missing"])
        assert absent - {"vulkan_uuid", "node", "uuid"} <= reasoned, record
        assert not {field for field in reasoned if record.get(field) is not None}, record


def test_there_is_a_machine_of_every_kind() -> None:
    """The kinds of machine that the probes promise to serve are all recorded."""
    assert {
        "nvidia-desktop",
        "hybrid-awake",
        "hybrid-asleep",
        "amd-desktop",
        "amd-apu",
        "intel-arc",
        "no-gpu",
        "driver-mismatch",
        "gpu-lost",
        "jetson",
        "mig-server",
        "egpu-laptop",
        "two-nvidia",
        "old-card",
        "numa-server",
        "dgpu-switched-off",
        "wsl2",
        "windows-desktop",
        "windows-laptop",
        "windows-tweaked",
        "windows-arc",
        "windows-apu",
        "windows-tcc",
        "windows-no-gpu",
    } <= set(NAMES)
    assert len(NAMES) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_every_engine_name_belongs_to_one_gpu(name: str) -> None:
    """Each device of the engine is on exactly one GPU, and what is not joined says why."""
    document = document_of(MACHINES / name)
    engine = read_engine(MACHINES / name)
    names = [device.name for device in engine.devices] if engine is not None else []
    joined = [n for gpu in document["gpus"] for n in gpu["engine"]]
    assert sorted(names) == sorted(joined)
    keys = [gpu["key"] for gpu in document["gpus"]]
    assert len(keys) == len(set(keys))
