"""Several devices: subsets, splits, and what the second card is worth. Two cards, recorded."""

import msgspec
import pytest

from app.domain.errors import UsageProblem
from app.domain.memory import MemoryEstimate
from app.domain.outcome import Outcome
from app.domain.settings import Settings, SplitMode
from app.domain.sweep import SearchDevice, SearchHost, SearchModel, SweepRequest
from app.domain.units import GIB, MIB
from app.rig.replay import ReplayRig
from app.rig.replay_file import FORMAT, Replay, ReplayPoint
from app.sweep.plan import make_plan
from tests.fakes.rigs import plan_for, search

EVERYTHING = 33
LAYER = 150 * MIB
FIXED = 500 * MIB


def cards(fast_ms: float, slow_ms: float, *, fast_gib: int, slow_gib: int) -> Replay:
    """Return a machine whose first card takes ``fast_ms`` per layer, the other ``slow_ms``."""
    points = []
    for on_fast in range(EVERYTHING + 1):
        for on_slow in range(EVERYTHING + 1 - on_fast):
            points += _points(on_fast, on_slow, (fast_ms, slow_ms), (fast_gib, slow_gib))
    devices = tuple(
        SearchDevice(
            id=name, kind="discrete", backend="CUDA", total_bytes=gib * GIB, free_bytes=gib * GIB
        )
        for name, gib in (("CUDA0", fast_gib), ("CUDA1", slow_gib))
    )
    return Replay(
        format=FORMAT,
        model=SearchModel(
            name="two cards", n_layer=EVERYTHING - 1, n_ctx_train=32768, file_bytes=5 * GIB
        ),
        host=SearchHost(cores_physical=8, cores_logical=16, ram_bytes=64 * GIB),
        devices=devices,
        noise_frac=0.005,
        seed=3,
        load_s=2.0,
        points=tuple(points),
    )


def _points(
    on_fast: int, on_slow: int, ms: tuple[float, float], gib: tuple[int, int]
) -> list[ReplayPoint]:
    in_ram = EVERYTHING - on_fast - on_slow
    time_ms = on_fast * ms[0] + on_slow * ms[1] + in_ram * 12.0
    need = {"CUDA0": FIXED + on_fast * LAYER, "CUDA1": FIXED + on_slow * LAYER}

    def at(**settings: int | str | tuple[str, ...]) -> ReplayPoint:
        used = settings["devices"]
        assert isinstance(used, tuple)
        return ReplayPoint(
            settings={"n_gpu_layers": on_fast + on_slow, **settings},
            outcome=Outcome.OK,
            prefill_tok_s=2000.0,
            decode_tok_s=round(1000 / time_ms, 3),
            device_bytes={d: n for d, n in need.items() if d in used},
        )

    if not on_fast + on_slow:
        return [at(devices=())]
    by_memory = round((on_fast + on_slow) * gib[0] / sum(gib))
    found = [at(devices=("CUDA0", "CUDA1"), tensor_split=f"{on_fast},{on_slow}")]
    if on_fast == by_memory:
        found.append(at(devices=("CUDA0", "CUDA1"), tensor_split=""))
    if not on_slow:
        found.append(at(devices=("CUDA0",), tensor_split=""))
    if not on_fast:
        found.append(at(devices=("CUDA1",), tensor_split=""))
    return found


def test_the_fast_card_gets_what_it_holds() -> None:
    """Both cards are needed; the fast one is filled, and the gain over free memory is said."""
    result = search(ReplayRig(cards(0.3, 2.0, fast_gib=4, slow_gib=4)), SweepRequest())
    assert result.recommended is not None
    settings = result.recommended.settings
    assert settings.devices == ("CUDA0", "CUDA1")
    on_fast, on_slow = (int(n) for n in settings.tensor_split.split(","))
    assert on_fast + on_slow == EVERYTHING
    # 4 GiB less headroom and fixed buffers hold 22 layers of 150 MiB
    assert on_fast == 22
    said = {r.code: r.data for r in result.reasons}
    assert said["split_chosen"]["tensor_split"] == settings.tensor_split
    assert float(said["split_chosen"]["gain_pct"] or 0) > 10


def test_the_second_card_s_worth_is_said() -> None:
    """A slow second card that adds memory where the first holds everything costs speed: figures."""
    result = search(ReplayRig(cards(0.3, 2.0, fast_gib=8, slow_gib=12)), SweepRequest())
    assert result.recommended is not None
    assert result.recommended.settings.devices == ("CUDA0",)
    (worth,) = (r.data for r in result.reasons if r.code == "devices_worth")
    assert worth["devices"] == "CUDA1"
    assert worth["gib"] == 12.0
    assert int(str(worth["change_pct"])) < -30


def test_a_card_without_room_does_not_forbid_the_other() -> None:
    """A second card too full for one layer is left out and named; the first is still filled."""
    both = cards(0.3, 0.4, fast_gib=4, slow_gib=4)
    first, second = both.devices
    second = msgspec.structs.replace(second, free_bytes=600 * MIB)
    rig = ReplayRig(msgspec.structs.replace(both, devices=(first, second)))
    plan = plan_for(rig)
    assert plan.too_full == ("CUDA1",)
    assert plan.max_n_gpu_layers == 22
    result = search(rig)
    assert result.recommended is not None
    assert result.recommended.settings.devices == ("CUDA0",)
    (told,) = (r.data for r in result.reasons if r.code == "device_too_full")
    assert told == {"device": "CUDA1", "free_mib": 600}


def test_a_card_that_is_needed_is_worth_its_gain() -> None:
    """Where one card holds a part only, the second one's gain over the CPU is said."""
    result = search(ReplayRig(cards(0.3, 0.4, fast_gib=4, slow_gib=4)), SweepRequest())
    assert result.recommended is not None
    assert len(result.recommended.settings.devices) == 2
    (worth,) = (r.data for r in result.reasons if r.code == "devices_worth")
    assert int(str(worth["change_pct"])) > 50


def test_other_ways_to_share_only_when_pinned() -> None:
    """No trial divides layers unasked; pinned, every one does, and the plan says the limits."""
    rig = ReplayRig(cards(0.3, 2.0, fast_gib=4, slow_gib=4))
    assert {t.request.settings.split_mode for t in search(rig).trials} == {SplitMode.LAYER}
    request = SweepRequest(pinned={"split_mode": "tensor"})
    assert "split_tensor" in plan_for(rig, request).notes
    result = search(rig, request)
    assert result.recommended is not None
    assert result.recommended.settings.split_mode is SplitMode.TENSOR
    fit = [t.request.settings.split_mode for t in result.trials if t.request.stage == "auto_fit"]
    assert set(fit) == {SplitMode.LAYER}  # llama.cpp's own
    others = [t.request.settings for t in result.trials if t.request.stage != "auto_fit"]
    assert {s.split_mode for s in others} == {SplitMode.TENSOR}
    assert {s.tensor_split for s in others} == {""}


def test_a_split_mode_that_the_engine_refuses_ends_before_a_load() -> None:
    """Not in an answer for the CPU alone: in the engine's own words."""
    rig, plan = ReplayRig(cards(0.3, 2.0, fast_gib=4, slow_gib=4)), None
    why = "A device cannot divide matrices by rows (split_mode row)."

    def fits(settings: Settings) -> MemoryEstimate:
        need = rig.dry_run(settings)
        refused = settings.split_mode is SplitMode.ROW and settings.n_gpu_layers > 0
        return msgspec.structs.replace(need, note=why) if refused else need

    with pytest.raises(UsageProblem) as caught:
        plan = make_plan(SweepRequest(pinned={"split_mode": "row"}), rig.space(), fits)
    assert plan is None
    assert (caught.value.info.code, caught.value.info.message) == ("split_mode_refused", why)


def test_equal_cards_keep_the_engine_s_split() -> None:
    """Two equal cards that hold everything together: no split of ours is recommended."""
    result = search(ReplayRig(cards(0.5, 0.5, fast_gib=4, slow_gib=4)), SweepRequest())
    assert result.recommended is not None
    assert result.recommended.settings.tensor_split == ""
    assert result.n_model_loads <= 10
