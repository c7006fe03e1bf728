"""Curves that people published, in our own numbers, as recordings: one or two for each of them.

The source of each is named where it is made; speeds are tokens per second.
"""

from collections.abc import Iterable, Iterator

import msgspec

from app.domain.outcome import Outcome
from app.domain.sweep import SearchDevice, SearchHost
from app.domain.units import GIB, MIB
from app.rig.replay_file import Replay, ReplayPoint, SettingValue
from tests.fakes.rigs import point, replay


def layers(
    curve: Iterable[tuple[int, float]], *, mib_per_layer: int, base_mib: int
) -> list[ReplayPoint]:
    """Return points along ``n_gpu_layers`` whose memory grows evenly."""
    return [point(n, speed, (base_mib + n * mib_per_layer) * MIB) for n, speed in curve]


def depths(curve: Iterable[tuple[int, float, float]], *, n_layer: int) -> list[ReplayPoint]:
    """Return everything on the GPU at (depth, decode, prefill), and the CPU far behind."""
    everything = [
        point(n_layer + 1, decode, 6 * GIB, prefill_tok_s=prefill, depth=depth, n_ctx=n_ctx)
        for depth, decode, prefill in curve
        for n_ctx in (4096, 8192, 16384, 32768)
    ]
    return [*everything, *(point(0, 9.0, 0, prefill_tok_s=60.0, n_ctx=n) for n in (4096, 32768))]


def b01() -> Replay:
    """48 blocks on a 16 GiB card: the last step alone is 3.5 × as fast."""
    curve = [(0, 2.9), (8, 3.6), (16, 4.2), (24, 5.6), (32, 7.3), (40, 12.5), (49, 43.2)]
    points = layers(curve, mib_per_layer=180, base_mib=265)
    return replay(points, n_layer=48, free_bytes=15 * GIB)


def b02() -> Replay:
    """The last three layers triple the speed."""
    curve = [(0, 9.0), (10, 13.5), (20, 21.4), (30, 40.0), (31, 48.2), (32, 54.8), (33, 131.7)]
    points = layers(curve, mib_per_layer=120, base_mib=300)
    return replay(points, n_layer=32, free_bytes=8 * GIB)


def b04() -> Replay:
    """Large batches go to the GPU whatever lies there: one layer more is within the noise."""
    prefill = [1180.0, 1222.0, 1251.0, 1294.0, 1300.0, 1314.0, 1372.0, 1405.0]
    points = [
        point(n, 11.0 + 0.25 * n, (700 + 120 * n) * MIB, prefill_tok_s=speed, devices="gpu0")
        for n, speed in enumerate(prefill)
    ]
    points.append(point(0, 11.0, 0, prefill_tok_s=120.0))
    return replay(_with_devices(points), n_layer=32, free_bytes=1850 * MIB, noise_frac=0.03)


def b07(free_gib: int) -> Replay:
    """Experts on the CPU against whole layers: 2.8 × as fast at the same memory."""
    experts = [(40, 50.1), (32, 57.0), (24, 67.4), (16, 82.0), (8, 104.0), (0, 150.0)]
    points = [point(41, speed, (7217 - (k - 40) * 478) * MIB, n_cpu_moe=k) for k, speed in experts]
    whole = [(0, 8.0), (8, 9.4), (17, 12.2), (28, 19.0), (40, 70.0)]
    points += [point(n, v, (1100 + 600 * n) * MIB, n_cpu_moe=0) for n, v in whole]
    return replay(points, n_layer=40, n_expert=256, free_bytes=free_gib * GIB)


def b08() -> Replay:
    """Two cards, everything on them: it spills, and is hardly faster than one; fewer layers are."""
    points = []
    for both, speed_of in ((True, 1.0), (False, 0.8)):
        names = ("gpu0", "gpu1") if both else ("gpu0",)
        free = 46 if both else 23
        for n in range(0, 82, 3):
            need = 1 + n * 0.75
            over = max(0.0, need - free)
            speed = speed_of / (0.65 - 0.0055 * n + 0.12 * over)
            each = {d: round(need * GIB / len(names)) for d in names}
            points.append(_shared(n, speed, each, round(over * GIB), names))
    return _two_cards(points, n_layer=80, gib=23)


def b09() -> Replay:
    """A busy desktop: the driver reports memory that is not there, and nothing shows the spill."""
    curve = [(0, 6.1), (16, 9.0), (24, 11.6), (32, 16.4), (36, 19.6)]
    curve += [(38, 14.0), (40, 8.2), (44, 4.1), (49, 2.5)]
    points = layers(curve, mib_per_layer=165, base_mib=900)
    return replay(points, n_layer=48, free_bytes=11316 * MIB)


def b10() -> Replay:
    """A laptop in one power mode: 20 of 33 layers; the same in another mode is no rival."""
    curve = [(0, 2.0), (6, 2.4), (12, 3.0), (18, 3.8), (20, 4.15)]
    points = layers(curve, mib_per_layer=190, base_mib=500)
    return replay(points, n_layer=32, free_bytes=4600 * MIB, noise_frac=0.03)


def b12() -> Replay:
    """The largest context loads, then spills in the first request."""
    curve = [(0, 3.0, 0), (40, 9.0, 0), (60, 30.0, 0), (66, 18.0, 620)]
    points = [point(n, v, (500 + 210 * n) * MIB, growth_bytes=grown * MIB) for n, v, grown in curve]
    return replay(points, n_layer=65, free_bytes=15 * GIB)


def b13() -> Replay:
    """KV in RAM buys six layers and costs far more than they gain."""
    points = []
    for n, prefill, decode in ((0, 30.0, 1.5), (40, 300.0, 3.4), (75, 712.0, 7.9)):
        need = (3000 + 290 * n) * MIB
        points.append(point(n, decode, need, prefill_tok_s=prefill, offload_kqv="on"))
    points.append(point(81, 5.0, 24000 * MIB, prefill_tok_s=34.0, offload_kqv="off"))
    return replay(points, n_layer=80, free_bytes=25200 * MIB)


def b14() -> Replay:
    """Everything on a large card: 43 % slower with 32k tokens in the context."""
    curve = [(0, 220.7, 9000.0), (4096, 200.7, 8600.0), (16384, 160.8, 7000.0)]
    points = depths([*curve, (32768, 126.1, 5200.0)], n_layer=36)
    return replay(points, n_layer=36, free_bytes=90 * GIB)


def b15() -> Replay:
    """Seconds per token grow evenly with the context: 56 % slower at 7,680 tokens."""
    curve = [(0, 41.5, 603.0), (2048, 31.1, 488.0), (4096, 24.8, 399.0), (7680, 18.2, 301.0)]
    return replay(depths(curve, n_layer=46), n_layer=46, free_bytes=70 * GIB)


def b17() -> Replay:
    """Decode is best with 8 threads, the prompt with all 32."""
    decode = {4: 12.2, 8: 16.7, 16: 15.3, 32: 15.0}
    prefill = {4: 23.2, 8: 32.3, 16: 33.5, 32: 59.0}
    points = [
        point(0, v, 0, prefill_tok_s=p, n_threads=n, n_threads_batch=b)
        for n, v in decode.items()
        for b, p in prefill.items()
    ]
    return replay(points, n_layer=32, free_bytes=300 * MIB, cores=16)


def b18() -> Replay:
    """A tiny model decodes faster on the CPU."""
    points = [
        point(0, 1240.0, 0, prefill_tok_s=8268.0),
        point(8, 1180.0, 60 * MIB, prefill_tok_s=9000.0),
        point(17, 1000.0, 90 * MIB, prefill_tok_s=9000.0),
    ]
    return replay(points, n_layer=16, free_bytes=8 * GIB)


def _with_devices(points: Iterable[ReplayPoint]) -> Iterator[ReplayPoint]:
    """Yield ``points`` with the devices they state as a list, the others without any."""
    for each in points:
        stated: dict[str, SettingValue] = dict(each.settings)
        stated["devices"] = (str(stated["devices"]),) if "devices" in stated else ()
        yield msgspec.structs.replace(each, settings=stated)


def _shared(
    n_gpu_layers: int, speed: float, need: dict[str, int], grown: int, devices: tuple[str, ...]
) -> ReplayPoint:
    return ReplayPoint(
        settings={"n_gpu_layers": n_gpu_layers, "devices": devices if n_gpu_layers else ()},
        depth=0,
        outcome=Outcome.OK,
        prefill_tok_s=300.0,
        decode_tok_s=round(speed, 3),
        device_bytes=need if n_gpu_layers else {},
        shared_growth_bytes=grown,
    )


def _two_cards(points: list[ReplayPoint], *, n_layer: int, gib: int) -> Replay:
    one = replay(points, n_layer=n_layer, free_bytes=gib * GIB)
    cards = tuple(
        SearchDevice(
            id=name, kind="discrete", backend="CUDA", total_bytes=48 * GIB,
            # the driver reports more than there is, as with a desktop on the card
            free_bytes=round(23.9 * GIB) + 20 * GIB,
        )
        for name in ("gpu0", "gpu1")
    )  # fmt: skip
    host = SearchHost(cores_physical=16, cores_logical=32, ram_bytes=128 * GIB)
    return msgspec.structs.replace(one, devices=cards, host=host)


KNOWN = {
    "b01_vram_cliff": b01(),
    "b02_last_layers": b02(),
    "b04_noise_of_one_layer": b04(),
    "b07_experts_16gib": b07(15),
    "b07_experts_12gib": b07(11),
    "b08_two_cards_spill": b08(),
    "b09_busy_desktop": b09(),
    "b10_one_power_mode": b10(),
    "b12_spill_in_request": b12(),
    "b13_cache_in_ram": b13(),
    "b14_depth_decay": b14(),
    "b15_depth_decay_even": b15(),
    "b17_threads": b17(),
    "b18_cpu_wins": b18(),
}
"""Case and what it is about → its recording."""
