"""What the experts of a block in RAM cost of the whole block there, learned from what was timed.

Three things change a token's time: blocks in RAM, the output layer in RAM, and blocks whose
experts alone are in RAM. Placements with layers in RAM and with experts in RAM together tell them
apart; neither kind does alone.
"""

from collections.abc import Iterable, Sequence

import msgspec

from app.domain.record import Record
from app.domain.settings import Settings
from app.sweep.kin import kin_of
from app.sweep.ladder import Rung
from app.sweep.points import Point

LEAST_POINTS = 4
TIMING_FRAC = 0.03  # how far a timed token may lie from the line
MOST_ERROR = 0.2  # of the share, as a standard deviation: more and it is not known
MOST_SHARE = 2.0  # a device hardly faster than the CPU gains little by a whole block


class ExpertLine(Record, frozen=True, kw_only=True):
    """The line that decode times lie on, experts in RAM or not.

    Attributes:
        n_blocks: Blocks of the model.
        output_blocks: What the output layer weighs, in blocks.
        share: What the experts of a block gain on the device, of what the whole block gains.
    """

    n_blocks: int
    output_blocks: float
    share: float

    def place(self, rung: Rung) -> float:
        """Return where ``rung`` lies: blocks gained over the CPU alone."""
        blocks, experts = _parts(rung, self.n_blocks, self.output_blocks)
        return blocks - self.share * experts


def expert_line(points: Iterable[Point], n_blocks: int, output_blocks: float) -> ExpertLine | None:
    """Return the line through ``points``; ``None`` where they do not tell what experts cost."""
    groups: dict[Settings, list[Point]] = {}
    for point in points:
        if point.is_clean and not point.disturbed:
            groups.setdefault(_without_place(point.settings), []).append(point)
    members = max(groups.values(), key=len, default=[])
    if len(members) < LEAST_POINTS:
        return None
    share = _solve([(_parts(p.rung, n_blocks, output_blocks), p.decode_s) for p in members])
    if share is None:
        return None
    share = min(MOST_SHARE, max(0.0, share))
    return ExpertLine(n_blocks=n_blocks, output_blocks=output_blocks, share=share)


def _without_place(settings: Settings) -> Settings:
    return msgspec.structs.replace(kin_of(settings), n_gpu_layers=0, n_cpu_moe=0, devices=())


def _parts(rung: Rung, n_blocks: int, output_blocks: float) -> tuple[float, float]:
    """Return blocks on the device, the output among them, and those of them without experts."""
    on_device = min(rung.n_gpu_layers, n_blocks)
    without = max(0, rung.n_cpu_moe - (n_blocks - on_device)) if on_device else 0
    return on_device + (output_blocks if rung.n_gpu_layers > n_blocks else 0.0), float(without)


def _solve(timed: Sequence[tuple[tuple[float, float], float]]) -> float | None:
    """Fit time = a − b × blocks + c × experts by weighted least squares; return c / b."""
    rows = [
        (1 / (TIMING_FRAC * y), -blocks / (TIMING_FRAC * y), experts / (TIMING_FRAC * y))
        for (blocks, experts), y in timed
    ]
    inverse = _inverse([[sum(r[i] * r[j] for r in rows) for j in range(3)] for i in range(3)])
    if inverse is None:
        return None
    right = [sum(r[i] for r in rows) / TIMING_FRAC for i in range(3)]
    _, b, c = (sum(inverse[i][j] * right[j] for j in range(3)) for i in range(3))
    if b <= 0:
        return None
    share = c / b
    variance = inverse[2][2] - 2 * share * inverse[1][2] + share**2 * inverse[1][1]
    return share if variance < (MOST_ERROR * b) ** 2 else None


def _inverse(m: list[list[float]]) -> list[list[float]] | None:
    """Return the inverse of a symmetric 3 × 3 matrix, ``None`` where it has none."""
    cofactors = [
        [
            m[(i + 1) % 3][(j + 1) % 3] * m[(i + 2) % 3][(j + 2) % 3]
            - m[(i + 1) % 3][(j + 2) % 3] * m[(i + 2) % 3][(j + 1) % 3]
            for j in range(3)
        ]
        for i in range(3)
    ]
    determinant = sum(m[0][j] * cofactors[0][j] for j in range(3))
    if determinant <= 1e-9 * m[0][0] * m[1][1] * m[2][2]:
        return None
    return [[cofactors[j][i] / determinant for j in range(3)] for i in range(3)]
