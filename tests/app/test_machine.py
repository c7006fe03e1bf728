"""One GPU, one identity: joining probes and engine; and the memory that can be believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.machine import (
    MAX_MEMORY_BYTES,
    EngineDevice,
    EngineInfo,
    Gpu,
    GpuInfo,
    GpuKind,
    GpuSample,
    HostInfo,
    Machine,
    PowerState,
)
from app.machine import (
    aliases,
    best_first,
    flagged,
    join_machine,
    judged_memory,
    kind_of,
    merge_infos,
    merge_samples,
    placement,
    search_devices,
)

MIB, GIB = 1 << 20, 1 << 30
HOST = HostInfo(os="linux", ram_bytes=64 * GIB, ram_available_bytes=50 * GIB)


def device(
    name: str,
    backend: str = "CUDA",
    description: str = "NVIDIA GeForce RTX 4080",
    *,
    kind: GpuKind = GpuKind.DISCRETE,
    total: int | None = 16 * GIB,
    free: int | None = 15 * GIB,
    pci: str | None = None,
    endpoint: str | None = None,
) -> EngineDevice:
    return EngineDevice(
        name=name,
        backend=backend,
        description=description,
        kind=kind,
        total_bytes=total,
        free_bytes=free,
        pci_id=pci,
        endpoint=endpoint,
    )


def engine(*devices: EngineDevice) -> EngineInfo:
    return EngineInfo(
        version="1",
        llama_version="b1",
        backends=("CPU",),
        devices=devices,
        supports_offload=bool(devices),
    )


def nvidia(n: int, name: str = "NVIDIA GeForce RTX 4080", pci: str | None = None) -> GpuInfo:
    return GpuInfo(
        probe="nvml", uuid=f"GPU-{n}", pci_id=pci, name=name, vendor="nvidia", kind=GpuKind.DISCRETE
    )


def joined(infos: list[GpuInfo], *devices: EngineDevice) -> Machine:
    return join_machine(HOST, infos, engine(*devices))


def names(machine: Machine) -> dict[str, list[str]]:
    return {gpu.key: [d.name for d in gpu.engine] for gpu in machine.gpus}


def test_all_names_of_one_card_are_one_gpu() -> None:
    """NVML, DRM, CUDA and Vulkan see one card, whatever form they write the address in."""
    infos = [
        nvidia(1, pci="0000:09:00.0"),
        GpuInfo(probe="drm", pci_id="0000:09:00.0", vendor="nvidia", boot_vga=True, node="card1"),
    ]
    machine = joined(
        infos,
        device("Vulkan1", "Vulkan", pci="0000:09:00.0"),
        device("CUDA0", pci="00000000:09:00.0"),
    )
    assert names(machine) == {"GPU-1": ["CUDA0", "Vulkan1"]}
    info = machine.gpus[0].info
    assert info is not None
    assert (info.boot_vga, info.node, info.name) == (True, "card1", "NVIDIA GeForce RTX 4080")
    known = aliases(machine)
    assert {known[n] for n in ("GPU-1", "0000:09:00.0", "CUDA0", "Vulkan1")} == {"GPU-1"}


def test_order_of_devices_does_not_matter() -> None:
    """Two cards in opposite orders are matched by address, not by index."""
    infos = [nvidia(1, "RTX 3090", "0000:01:00.0"), nvidia(2, "GTX 1660", "0000:02:00.0")]
    machine = joined(
        infos,
        device("CUDA0", description="GTX 1660", pci="0000:02:00.0"),
        device("CUDA1", description="RTX 3090", pci="0000:01:00.0"),
    )
    assert names(machine) == {"GPU-1": ["CUDA1"], "GPU-2": ["CUDA0"]}


def test_name_is_the_last_resort() -> None:
    """Without an address a name that fits one card only joins; drivers' additions are ignored."""
    infos = [nvidia(1, "Orin (nvgpu)"), nvidia(2, "NVIDIA GeForce RTX 3090", "0000:01:00.0")]
    machine = joined(
        infos, device("CUDA0", description="Orin"), device("CUDA1", description="GeForce RTX 3090")
    )
    assert names(machine) == {"GPU-1": ["CUDA0"], "GPU-2": ["CUDA1"]}


def test_similar_names_are_different_cards() -> None:
    """An RTX 3090 Ti is no RTX 3090; what no probe sees stands alone and says so."""
    machine = joined(
        [nvidia(1, "NVIDIA GeForce RTX 3090")], device("CUDA0", description="RTX 3090 Ti")
    )
    assert {gpu.key: gpu.unmatched for gpu in machine.gpus} == {
        "GPU-1": None,
        "CUDA:RTX 3090 Ti": "no_probe_sees_it",
    }


def test_ambiguous_names_are_not_guessed() -> None:
    """Two alike cards without addresses stay apart from the engine's devices, with the reason."""
    machine = joined([nvidia(1), nvidia(2)], device("CUDA0"), device("CUDA1"))
    own = [gpu for gpu in machine.gpus if gpu.info is None]
    assert [gpu.unmatched for gpu in own] == ["ambiguous_name", "ambiguous_name"]
    assert len({gpu.key for gpu in machine.gpus}) == 4


def test_nameless_card_of_the_kernel_joins_by_vendor_when_alone() -> None:
    """DRM has no marketing name: the only AMD device is the only AMD card."""
    amd = GpuInfo(probe="drm", pci_id="0000:03:00.0", vendor="amd", kind=GpuKind.DISCRETE)
    radv = device("Vulkan0", "Vulkan", "AMD Radeon RX 7900 XTX (RADV NAVI31)")
    assert names(joined([amd], radv)) == {"0000:03:00.0": ["Vulkan0"]}
    two = joined([amd], radv, device("Vulkan1", "Vulkan", "AMD Radeon 780M (RADV PHOENIX)"))
    assert [gpu.unmatched for gpu in two.gpus if gpu.info is None] == ["ambiguous_name"] * 2


def test_backends_of_a_card_no_probe_sees_are_joined() -> None:
    """Two backends that report one address are one GPU even without any probe."""
    machine = joined(
        [], device("Vulkan0", "Vulkan", pci="01:00.0"), device("CUDA0", pci="0000:01:00.0")
    )
    assert names(machine) == {"0000:01:00.0": ["CUDA0", "Vulkan0"]}


def test_remote_devices_keep_apart() -> None:
    """Devices of RPC servers are keyed by address, several on one server too."""
    rpc = [device(f"RPC{n}", "RPC", "server", endpoint="10.0.0.2:50052") for n in range(2)]
    machine = joined([nvidia(1)], *rpc)
    assert [kind_of(gpu) for gpu in machine.gpus] == [
        GpuKind.DISCRETE,
        GpuKind.REMOTE,
        GpuKind.REMOTE,
    ]
    assert len({gpu.key for gpu in machine.gpus}) == 3


def test_rasteriser_is_never_offered_beside_a_gpu() -> None:
    """llvmpipe is flagged whatever it calls itself; alone it is offered as what it is."""
    llvmpipe = device(
        "Vulkan0", "Vulkan", "llvmpipe (LLVM 19.1.7, 256 bits)", kind=GpuKind.INTEGRATED
    )
    beside = joined([nvidia(1, pci="0000:01:00.0")], llvmpipe, device("CUDA0", pci="0000:01:00.0"))
    assert [d.id for d in search_devices(beside)] == ["CUDA0"]
    assert beside.engine is not None
    assert beside.engine.devices[0].kind is GpuKind.SOFTWARE
    alone = search_devices(joined([], llvmpipe))
    assert [(d.id, d.kind) for d in alone] == [("Vulkan0", "software")]


def test_discrete_card_leads_the_integrated_one() -> None:
    """Vulkan may list the integrated GPU first; the search gets the card first, kinds named."""
    igpu = GpuInfo(probe="drm", pci_id="0000:00:02.0", vendor="intel", kind=GpuKind.INTEGRATED)
    machine = joined(
        [igpu, nvidia(1, pci="0000:01:00.0")],
        device("Vulkan0", "Vulkan", "Intel Iris Xe", kind=GpuKind.INTEGRATED, pci="0000:00:02.0"),
        device("Vulkan1", "Vulkan", pci="0000:01:00.0"),
    )
    assert [(d.id, d.kind) for d in search_devices(machine)] == [
        ("Vulkan1", "discrete"),
        ("Vulkan0", "integrated"),
    ]


def test_backend_that_sees_only_the_carve_out_goes_last() -> None:
    """On a processor's GPU ROCm's 6 GiB lose against Vulkan's 52; on a card ROCm leads."""
    rocm = device("ROCm0", "ROCm", total=6368 * MIB)
    vulkan = device("Vulkan0", "Vulkan", total=53281 * MIB)
    assert [d.name for d in best_first([rocm, vulkan], GpuKind.INTEGRATED)] == ["Vulkan0", "ROCm0"]
    assert [d.name for d in best_first([vulkan, rocm], GpuKind.DISCRETE)] == ["ROCm0", "Vulkan0"]


@pytest.mark.parametrize(
    ("kind", "probed", "total", "free", "expected"),
    [
        # Free above total: the sum of heaps was sampled apart from the whole.
        (GpuKind.DISCRETE, None, 12 * GIB, 13 * GIB, (12 * GIB, 12 * GIB)),
        # The BAR was added to the total of a 24 GiB card.
        (GpuKind.DISCRETE, 24 * GIB, 55 * GIB, 50 * GIB, (24 * GIB, 24 * GIB)),
        # Vulkan's total a little below NVML's is rounding, not a contradiction.
        (GpuKind.DISCRETE, 16 * GIB, 16 * GIB - MIB, 15 * GIB, (16 * GIB - MIB, 15 * GIB)),
        # A processor's 512 MiB are only the carve-out; available RAM bounds what is free.
        (GpuKind.INTEGRATED, GIB // 2, 60 * GIB, 60 * GIB, (60 * GIB, 50 * GIB + GIB // 2)),
        # More than all RAM cannot be.
        (GpuKind.INTEGRATED, None, 100 * GIB, 40 * GIB, (64 * GIB, 40 * GIB)),
        # Nothing free known: all of it may be.
        (GpuKind.DISCRETE, 8 * GIB, None, None, (8 * GIB, 8 * GIB)),
    ],
)
def test_memory_is_judged(
    kind: GpuKind,
    probed: int | None,
    total: int | None,
    free: int | None,
    expected: tuple[int, int],
) -> None:
    """Totals and free memory of contradicting sources."""
    info = GpuInfo(probe="x", uuid="GPU-1", kind=kind, vram_total_bytes=probed)
    named = device("D0", total=total, free=free, kind=kind)
    assert judged_memory(Gpu(key="GPU-1", info=info, engine=(named,)), named, HOST) == expected


def test_device_without_any_total_is_not_searched() -> None:
    """A device whose memory nobody knows cannot be planned for."""
    assert search_devices(joined([nvidia(1)], device("CUDA0", total=None, free=None))) == ()


@given(
    st.one_of(st.none(), st.integers(1, 1 << 45)),
    st.one_of(st.none(), st.integers(-(1 << 45), 1 << 45)),
    st.one_of(st.none(), st.integers(1, MAX_MEMORY_BYTES)),  # probes answer nothing above
    st.sampled_from(list(GpuKind)),
)
def test_free_is_never_negative_nor_above_total(
    total: int | None, free: int | None, probed: int | None, kind: GpuKind
) -> None:
    """Whatever the sources say, free memory is a part of the total."""
    named = flagged(device("D0", total=total, free=free, kind=kind))
    info = GpuInfo(probe="x", uuid="GPU-1", kind=kind, vram_total_bytes=probed)
    memory = judged_memory(Gpu(key="GPU-1", info=info, engine=(named,)), named, HOST)
    engine_knows = total is not None and total <= MAX_MEMORY_BYTES
    assert (memory is not None) == (engine_knows or probed is not None)
    if memory is not None:
        assert 0 <= memory[1] <= memory[0]
    assert named.free_bytes is None or named.free_bytes >= 0


def test_reasons_of_fields_another_probe_knows_are_dropped() -> None:
    """After merging a field has a value or a reason, never both; a display seen once counts."""
    one = GpuInfo(
        probe="nvml",
        uuid="GPU-1",
        pci_id="0000:01:00.0",
        drives_display=False,
        missing={"boot_vga": "not_supported", "temp_slowdown_c": "not_supported"},
    )
    two = GpuInfo(
        probe="drm",
        pci_id="0000:01:00.0",
        boot_vga=False,
        drives_display=True,
        missing={"uuid": "not_supported"},
    )
    merged = merge_infos([one, two])
    assert len(merged) == 1
    assert merged[0].missing == {"temp_slowdown_c": "not_supported"}
    assert (merged[0].boot_vga, merged[0].drives_display) == (False, True)


def test_machine_before_the_engine_was_asked() -> None:
    """Probes alone give GPUs without engine names, and no search device."""
    machine = join_machine(HOST, [nvidia(1)])
    assert names(machine) == {"GPU-1": []}
    assert machine.engine is None
    assert search_devices(machine) == ()


def test_larger_card_comes_first() -> None:
    """Among cards of one kind the one with more memory leads, whatever the bus order."""
    infos = [nvidia(1, "GTX 1660", "0000:01:00.0"), nvidia(2, "RTX 3090", "0000:02:00.0")]
    machine = joined(
        infos,
        device("CUDA0", description="GTX 1660", total=6 * GIB, pci="0000:01:00.0"),
        device("CUDA1", description="RTX 3090", total=24 * GIB, pci="0000:02:00.0"),
    )
    assert [d.id for d in search_devices(machine)] == ["CUDA1", "CUDA0"]


def split_card(*sizes: int) -> list[GpuInfo]:
    parent = GpuInfo(
        probe="nvml", uuid="GPU-1", pci_id="0000:41:00.0", name="A100", vendor="nvidia",
        kind=GpuKind.DISCRETE, mig="parent", vram_total_bytes=80 * GIB,
    )  # fmt: skip
    parts = [
        GpuInfo(
            probe="nvml", uuid=f"MIG-{n}", pci_id="0000:41:00.0", name=f"A100 MIG {n}",
            vendor="nvidia", kind=GpuKind.DISCRETE, mig="instance", vram_total_bytes=size,
        )
        for n, size in enumerate(sizes)
    ]  # fmt: skip
    return [parent, *parts]


def test_engine_gets_a_part_of_a_split_card_never_the_whole() -> None:
    """The device is the part of its size; the parent stays without, and so unused."""
    infos = split_card(40 * GIB, 20 * GIB)
    machine = joined(infos, device("CUDA0", "CUDA", "A100 MIG", total=20 * GIB, pci="41:00.0"))
    assert names(machine) == {"GPU-1": [], "MIG-0": [], "MIG-1": ["CUDA0"]}
    assert [d.total_bytes for d in search_devices(machine)] == [20 * GIB]


def test_equal_parts_of_a_split_card_are_not_guessed() -> None:
    """Which of two equal parts the engine got cannot be told: that is said."""
    infos = split_card(20 * GIB, 20 * GIB)
    machine = joined(infos, device("CUDA0", "CUDA", "A100 MIG", total=20 * GIB, pci="41:00.0"))
    assert [gpu.unmatched for gpu in machine.gpus if gpu.engine] == ["ambiguous_instance"]


def test_card_address_means_the_whole_card_of_its_parts() -> None:
    """A reading under the card's address belongs to the parent, not to a part."""
    named = aliases(joined(split_card(40 * GIB)))
    assert named["0000:41:00.0"] == "GPU-1"
    assert named["MIG-0"] == "MIG-0"


def windows_info(name: str, luid: str, pci: str | None = None) -> GpuInfo:
    return GpuInfo(
        probe="windows", name=name, luid=luid, pci_id=pci, kind=GpuKind.DISCRETE, vendor="nvidia"
    )


def test_adapter_without_address_joins_its_only_namesake() -> None:
    """Windows' adapter and NVML's card are one, and both keys lead to it."""
    infos = [nvidia(1, pci="0000:01:00.0"), windows_info("NVIDIA GeForce RTX 4080", "0:1")]
    machine = joined(infos, device("CUDA0", pci="0000:01:00.0"))
    assert names(machine) == {"GPU-1": ["CUDA0"]}
    assert aliases(machine)["luid:0:1"] == "GPU-1"


def test_equal_adapters_without_addresses_are_not_guessed() -> None:
    """Two cards of one model stay apart from two adapters of that name."""
    infos = [
        *(nvidia(n, pci=f"0000:0{n}:00.0") for n in (1, 2)),
        *(windows_info("NVIDIA GeForce RTX 4080", f"0:{n}") for n in (1, 2)),
    ]
    assert len(merge_infos(infos)) == 4


def test_memory_on_another_card_is_noticed() -> None:
    """After a load the memory must have risen on the card that was asked."""
    infos = [nvidia(1, "A", "0000:01:00.0"), nvidia(2, "B", "0000:02:00.0")]
    machine = joined(
        infos,
        device("CUDA0", description="A", pci="0000:01:00.0"),
        device("CUDA1", description="B", pci="0000:02:00.0"),
    )
    wrong, rise = placement(machine, ["CUDA0"], {"GPU-1": MIB, "GPU-2": 900 * MIB})
    assert wrong is not None
    assert (wrong.key, rise) == ("GPU-2", 900 * MIB)
    assert placement(machine, ["CUDA0"], {"GPU-1": 900 * MIB, "GPU-2": MIB})[0] is None
    assert placement(machine, ["CUDA0"], {})[0] is None
    assert placement(machine, ["CUDA0"], {"GPU-2": 900 * MIB})[0] is None
    both = {"GPU-1": 500 * MIB, "GPU-2": 500 * MIB}
    assert placement(machine, ["CUDA0", "CUDA1"], both)[0] is None


def test_readings_of_two_probes_become_one() -> None:
    """The better probe wins; what it lacks comes from the other; sleep is believed."""
    one = GpuSample(key="a", t_ns=1, busy_pct=5.0, missing={"shared_used_bytes": "not_supported"})
    two = GpuSample(key="b", t_ns=2, busy_pct=9.0, shared_used_bytes=7)
    merged = merge_samples([one, two])
    assert merged is not None
    assert (merged.key, merged.busy_pct, merged.shared_used_bytes) == ("a", 5.0, 7)
    assert merged.missing == {}
    asleep = GpuSample(key="b", t_ns=2, power_state=PowerState.ASLEEP)
    together = merge_samples([one, asleep])
    assert together is not None
    assert together.power_state is PowerState.ASLEEP
    assert merge_samples([]) is None
