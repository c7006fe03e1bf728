"""Configurations that decode alike share their passes; those that do not, do not."""

import msgspec

from app.domain.outcome import Outcome
from app.domain.settings import LoadMode, Settings
from app.sweep.compare import difference
from app.sweep.kin import share_decode
from app.sweep.points import Demand, Point
from app.sweep.stats import estimate

NEED = Demand(n_prompt=512, n_gen=256)
BASE = Settings(n_gpu_layers=10, n_threads=8, devices=("gpu0",))


def timed(settings: Settings, prefill_s: float, decode_s: tuple[float, ...]) -> Point:
    prefill = (prefill_s, prefill_s * 1.01, prefill_s * 0.99)
    times = tuple(
        NEED.n_prompt * p + NEED.n_gen * d for p, d in zip(prefill, decode_s, strict=True)
    )
    return Point(
        settings=settings,
        indices=(0,),
        load_ids=(1,),
        outcome=Outcome.OK,
        prefill=prefill,
        decode=decode_s,
        times=times,
        request=estimate(times),
    )


def shared(*points: Point) -> list[Point]:
    return list(share_decode({p.settings: p for p in points}, NEED).values())


def test_luck_in_decode_does_not_hide_a_faster_prompt() -> None:
    """Pinned weights that read the prompt faster win, although their decode passes had bad luck."""
    pinned = msgspec.structs.replace(BASE, load_mode=LoadMode.NONE)
    first = timed(BASE, 0.004, (0.248, 0.262, 0.251))
    second = timed(pinned, 0.001, (0.267, 0.249, 0.263))
    assert second.request_s > first.request_s
    first, second = shared(first, second)
    assert second.request_s < first.request_s
    assert difference(second, first).low > 0


def test_a_slower_decode_is_not_shared() -> None:
    """A batch whose decode is slower beyond noise (an unseen spill) keeps its own passes."""
    larger = msgspec.structs.replace(BASE, n_ubatch=2048)
    first = timed(BASE, 0.004, (0.250, 0.252, 0.251))
    second = timed(larger, 0.001, (0.400, 0.402, 0.399))
    assert shared(first, second)[1].request_s == second.request_s


def test_other_threads_are_no_kin() -> None:
    """Thread counts act on decode: each keeps its own passes."""
    fewer = msgspec.structs.replace(BASE, n_threads=4)
    first = timed(BASE, 0.004, (0.250, 0.262, 0.251))
    second = timed(fewer, 0.004, (0.255, 0.249, 0.263))
    assert [p.request for p in shared(first, second)] == [first.request, second.request]


def test_many_passes_tell_a_small_spill_apart() -> None:
    """A gap wider than the interval of the difference is no noise: each keeps its own passes."""
    larger = msgspec.structs.replace(BASE, n_ubatch=1024)
    first = timed(BASE, 0.004, (0.250, 0.252, 0.248))
    gap = 1.2 * 2**0.5 * estimate(first.decode).half_width  # intervals overlap, not by chance
    second = timed(larger, 0.001, (0.250 + gap, 0.252 + gap, 0.248 + gap))
    assert shared(first, second)[1] == second
