"""What the result says: baselines, ties, cliff, knee, context, reasons."""

import tomllib
from pathlib import Path
from string import Formatter

import pytest

from app.advice.text import render_reason
from app.domain.settings import FlashAttn, Settings
from app.domain.sweep import Goal, SweepRequest, SweepResult
from app.domain.units import GIB, MIB
from app.rig.replay import ReplayRig
from app.rig.simulated import SimulatedRig
from app.rig.simulated_machine import random_machine
from app.session import evidence, outputs
from app.sweep import reasons
from app.sweep.pick import pick, resolve_ties, undecided_rival
from app.sweep.points import Point
from app.sweep.stats import estimate
from tests.fakes.rigs import GOLDEN, machine, search

TEXTS = Path(__file__).resolve().parents[3] / "assets" / "text" / "en.toml"


def codes(result: SweepResult) -> set[str]:
    return {r.code for r in result.reasons}


def a_point(settings: Settings, request_s: float, n_bytes: int, spread: float = 0.001) -> Point:
    times = tuple(request_s * (1 + spread * k) for k in (-1, 0, 1))
    return Point(
        settings=settings,
        indices=(settings.n_ubatch,),
        load_ids=(1,),
        outcome="ok",  # type: ignore[arg-type]
        times=times,
        prefill=times,
        decode=times,
        request=estimate(times),
        device_bytes={"gpu0": n_bytes},
    )


FULL = Settings(n_gpu_layers=33)


def test_tie_goes_to_headroom_then_to_the_simpler() -> None:
    """Within 2 % and inside the interval: less memory wins, then fewer changed knobs."""
    fast = a_point(Settings(n_gpu_layers=33, n_ubatch=1024), 4.00, 2000, spread=0.003)
    lean = a_point(FULL, 4.01, 1000, spread=0.003)
    kept, ties = resolve_ties(fast, [fast, lean])
    assert kept == lean
    assert [(t.kept, t.dropped, t.rule) for t in ties] == [(512, 1024, "more_headroom")]
    plain = a_point(FULL, 4.01, 2000, spread=0.003)
    kept, ties = resolve_ties(fast, [fast, plain])
    assert (kept, ties[0].rule) == (plain, "simpler")


def test_attention_is_not_turned_off_for_luck() -> None:
    """Fewer layers without flash attention win only where they are faster beyond noise."""
    held = a_point(Settings(n_gpu_layers=20), 4.0, 2000, spread=0.02)
    fewer = Settings(n_gpu_layers=19, flash_attn=FlashAttn.OFF)
    assert pick([held, a_point(fewer, 3.95, 1900, spread=0.02)]) == held
    faster = a_point(fewer, 3.6, 1900, spread=0.02)
    assert pick([held, faster]) == faster


def test_no_tie_when_apart_or_unknown() -> None:
    """A clear difference is no tie, and neither is one that noise hides."""
    fast = a_point(Settings(n_gpu_layers=33, n_ubatch=1024), 4.00, 2000)
    for rival in (a_point(FULL, 4.06, 1000), a_point(FULL, 4.01, 1000, spread=0.05)):
        assert resolve_ties(fast, [fast, rival]) == (fast, ())


@pytest.mark.parametrize(("gain", "kind"), [(1.03, "f16"), (1.06, "q8_0")])
def test_quantised_cache_must_win_by_five_per_cent(gain: float, kind: str) -> None:
    """A q8_0 cache is recommended only when it is at least 5 % faster."""
    quantised = Settings(n_gpu_layers=33, type_k="q8_0", type_v="q8_0")
    best = pick([a_point(FULL, 4.0, 2000), a_point(quantised, 4.0 / gain, 1000)])
    assert best is not None
    assert best.settings.type_k == kind


def test_partial_offload_says_why() -> None:
    """The bound, both references and what another GiB would buy are stated with figures."""
    result = search(ReplayRig(GOLDEN / "partial_33.json.gz"))
    assert result.recommended is not None
    assert result.recommended.settings.n_gpu_layers == 24
    assert result.baseline_auto_fit is not None
    assert result.baseline_auto_fit.settings.n_gpu_layers == 20
    assert result.baseline_cpu is not None
    assert result.baseline_cpu.settings.n_gpu_layers == 0
    data = {r.code: r.data for r in result.reasons}
    assert data["layers_bound"] == {
        "n_gpu_layers": 24, "everything": 33, "missing_mib": 178, "headroom_mib": 256,
    }  # fmt: skip
    assert data["auto_fit_gain"]["gain_pct"] == pytest.approx(26, abs=4)
    assert data["gpu_gain"]["factor"] == pytest.approx(2.5, abs=0.2)
    assert data["next_gib"]["n_layers"] == 4


def test_knee_saves_memory_or_is_the_answer() -> None:
    """The knee never needs more than the answer and is at most 5 % slower (noise aside)."""
    for name in ("fits_33", "partial_33", "moe_49"):
        result = search(ReplayRig(GOLDEN / f"{name}.json.gz"))
        assert result.knee is not None
        assert result.recommended is not None
        assert result.knee.device_bytes["gpu0"] <= result.recommended.device_bytes["gpu0"]
        assert result.knee.request_s is not None
        assert result.recommended.request_s is not None
        assert result.knee.request_s <= result.recommended.request_s * 1.06


def test_spill_is_a_cliff_and_is_marked() -> None:
    """A rung that spills bounds the answer, and its trials carry the outcome ``spilled``."""
    rig = SimulatedRig(machine(free_bytes=3 * GIB, spills=True, lie_frac=0.15))
    result = search(rig)
    assert result.cliff is not None
    assert result.cliff.kind == "spill"
    assert result.recommended is not None
    assert result.cliff.first_bad == result.cliff.last_good + 1
    assert abs(result.cliff.last_good - result.recommended.settings.n_gpu_layers) <= 1
    spilled = [t for t in result.trials if t.outcome == "spilled"]
    assert spilled
    assert all((t.shared_growth_bytes or 0) > 64 * MIB for t in spilled)
    assert "spill_seen" in codes(result)


def test_context_curve_and_floor() -> None:
    """Decode is timed with the context full, and the floor is judged by its lower bound."""
    high = search(SimulatedRig(machine()), SweepRequest(floor_tok_s=1000.0))
    assert {p.depth for p in high.context_curve if p.n_ctx == 4096} >= {0, 2048, 3840}
    assert "floor_not_met" in codes(high)
    low = search(SimulatedRig(machine()), SweepRequest(floor_tok_s=5.0))
    assert "floor_met" in codes(low)
    assert all(p.meets_floor for p in low.context_curve if p.decode_tok_s)


def test_long_context_grows_until_the_floor() -> None:
    """The goal ``long_context`` recommends the largest context that stays fast enough."""
    slow_when_deep = machine(gpu_depth_frac=0.3, noise_frac=0.005)
    result = search(
        SimulatedRig(slow_when_deep), SweepRequest(goal=Goal.LONG_CONTEXT, floor_tok_s=15.0)
    )
    assert result.recommended is not None
    n_ctx = result.recommended.settings.n_ctx
    judged = {p.n_ctx: p.meets_floor for p in result.context_curve if p.depth == p.n_ctx - 256}
    assert n_ctx == max(n for n, meets in judged.items() if meets)
    assert n_ctx > 4096


def test_a_context_that_spills_is_no_answer() -> None:
    """Fast enough or not: what lies in shared memory does not fit, and is not said to."""
    result = search(SimulatedRig(random_machine(5002)), SweepRequest(goal=Goal.LONG_CONTEXT))
    grown = {t.request.settings.n_ctx for t in result.trials if (t.shared_growth_bytes or 0) > 0}
    assert grown == {32768}
    assert result.recommended is not None
    assert result.recommended.settings.n_ctx == 16384
    assert [p.fits for p in result.context_curve if p.n_ctx == 32768] == [False]
    assert [r.data["n_ctx"] for r in result.reasons if r.code == "larger_context"] == [16384]


def test_a_pinned_context_does_not_grow() -> None:
    """The longest context is what the goal is for, but a pin is what was asked for."""
    request = SweepRequest(goal=Goal.LONG_CONTEXT, floor_tok_s=1.0, pinned={"n_ctx": 4096})
    result = search(SimulatedRig(machine()), request)
    assert result.recommended is not None
    assert result.recommended.settings.n_ctx == 4096


def test_every_reason_has_words_and_the_words_their_data() -> None:
    """Each code of the three tables has a text, whose placeholders are the code's data."""
    texts = tomllib.loads(TEXTS.read_text(encoding="utf-8"))["reason"]
    lines = f"{reasons.__doc__}\n{evidence.__doc__}\n{outputs.__doc__}".splitlines()
    table = [line.split(None, 1) for line in lines if "  " in line.strip()]
    known = {row[0]: {n.strip() for n in row[1].split(",")} for row in table if row[0] != "code"}
    known = {code: data for code, data in known.items() if "=" not in code}
    assert {code.removesuffix("_bare") for code in texts} == set(known)
    for code, text in texts.items():
        used = {name for _, name, _, _ in Formatter().parse(text) if name}
        assert used <= known[code.removesuffix("_bare")], code


def test_reasons_carry_the_data_of_the_table() -> None:
    """What searches of every kind emit has exactly the data that the table promises."""
    rigs = [
        ReplayRig(GOLDEN / f"{n}.json.gz") for n in ("fits_33", "partial_33", "moe_49", "spill_33")
    ]
    sims = [
        machine(cpu_layer_ms=0.2),
        machine(free_bytes=3 * GIB, prefill_cpu_ms=2.0, pinned_gain=4.0, lie_frac=0.1),
        machine(free_bytes=3 * GIB, expert_frac=0.9, disturbed_frac=0.2),
    ]
    for rig in [*rigs, *(SimulatedRig(m) for m in sims)]:
        result = search(rig, SweepRequest(kv_types=("f16", "q8_0"), floor_tok_s=10.0))
        for reason in result.reasons:
            assert render_reason(reason)


def test_agent_request_is_that_of_one_of_four() -> None:
    """Four slots run together; the request time is what one of them waits."""
    rig = SimulatedRig(machine(noise_frac=0.0))
    result = search(rig, SweepRequest(goal=Goal.AGENT))
    assert result.recommended is not None
    asked = result.recommended.settings
    assert (asked.n_seq_max, asked.n_ctx) == (4, 16384)
    truth = rig.truth(asked, 0, 4)
    assert truth is not None
    assert truth.prefill_tok_s is not None
    assert truth.decode_tok_s is not None
    expected = 2048 / truth.prefill_tok_s + 256 / truth.decode_tok_s
    assert result.recommended.request_s == pytest.approx(expected, rel=1e-3)


def test_no_sentence_without_its_figure() -> None:
    """Nothing is "0 % longer" or "-2 % less", and a cliff goes upwards."""
    for seed in range(6):
        result = search(SimulatedRig(random_machine(seed)), SweepRequest(floor_tok_s=5.0))
        for reason in result.reasons:
            for name in ("gain_pct", "loss_pct", "difference_pct"):
                value = reason.data.get(name)
                assert value is None or float(value) > 0, reason
        if result.cliff is not None and result.cliff.knob == "n_gpu_layers":
            assert result.cliff.last_good < result.cliff.first_bad


def test_curve_and_answer_say_the_same() -> None:
    """The answer's own depth in the curve carries the answer's figure, repetitions included."""
    for seed in range(6):
        result = search(SimulatedRig(random_machine(seed)))
        best = result.recommended
        assert best is not None
        depth = result.trials[best.trial].request.workload.depth
        same = [
            p for p in result.context_curve if (p.n_ctx, p.depth) == (best.settings.n_ctx, depth)
        ]
        assert [p.decode_tok_s for p in same] == [best.decode_tok_s]


def test_a_decided_twin_does_not_end_the_finals() -> None:
    """The rival to time again is the fastest that is still open, not the one next to the winner."""
    winner = a_point(FULL, 4.00, 2000)
    slower = a_point(Settings(n_gpu_layers=33, n_ubatch=1024), 4.10, 2000)
    open_one = a_point(Settings(n_gpu_layers=33, n_ubatch=256), 4.12, 2000, spread=0.05)
    assert undecided_rival([winner, slower, open_one], winner) == open_one
    assert undecided_rival([winner, slower], winner) is None


def test_a_quantised_cache_is_a_rival_by_what_it_must_gain() -> None:
    """A q8_0 cache 2 % faster is weighed as 3 % slower: another open point comes first."""
    winner = a_point(FULL, 4.00, 2000, spread=0.05)
    quantised = Settings(n_gpu_layers=33, type_k="q8_0", type_v="q8_0")
    q8 = a_point(quantised, 3.92, 1000, spread=0.05)
    near = a_point(Settings(n_gpu_layers=33, n_ubatch=256), 4.05, 2000, spread=0.05)
    assert undecided_rival([winner, q8, near], winner) == near
    assert undecided_rival([winner, q8], winner) == q8


def test_a_quantised_winner_has_rivals_of_its_own_kind() -> None:
    """Against the best without it is decided; the same cache with another batch is still open."""
    quantised = Settings(n_gpu_layers=33, type_k="q8_0", type_v="q8_0")
    winner = a_point(quantised, 4.00, 1000, spread=0.05)
    full = a_point(FULL, 5.00, 2000)
    other = a_point(
        Settings(n_gpu_layers=33, type_k="q8_0", type_v="q8_0", n_ubatch=256),
        4.05,
        1000,
        spread=0.05,
    )
    assert undecided_rival([winner, full, other], winner) == other
