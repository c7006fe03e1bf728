"""A rig that answers from a recording, with a virtual clock: debug bundle and test bench."""

from pathlib import Path

from app.domain.errors import EnvironmentProblem
from app.domain.settings import Settings
from app.domain.sweep import SearchSpace
from app.rig.replay_check import check_replay, read_replay
from app.rig.replay_file import Replay
from app.rig.replay_lookup import ReplayTable
from app.rig.virtual import Truth, VirtualRig


class ReplayRig(VirtualRig):
    """Runs trials against a recording; ``host`` and ``devices`` of the file replace the real."""

    def __init__(
        self,
        source: Path | Replay,
        seed: int | None = None,
        headroom_bytes: int | None = None,
    ) -> None:
        """Read and check the recording.

        Args:
            source: A file of format ``rigtune-replay/1`` or what it holds.
            seed: Replaces the file's seed.
            headroom_bytes: Memory to leave free per device, default 256 MiB.

        Raises:
            EnvironmentProblem: The file is missing, not of this format, or contradicts itself.
        """
        if isinstance(source, Replay):
            replay, problem = source, check_replay(source)
            if problem:
                raise EnvironmentProblem("replay_invalid", f"The recording is unusable: {problem}.")
        else:
            replay = read_replay(source)
        space = SearchSpace(
            model=replay.model, host=replay.host, devices=replay.devices, load_s=replay.load_s
        )
        super().__init__(
            space,
            _Recorded(replay),
            noise_frac=replay.noise_frac,
            seed=replay.seed if seed is None else seed,
            headroom_bytes=headroom_bytes,
        )


class _Recorded:
    """Truth from the table; remembered, because the search asks for the same need often."""

    def __init__(self, replay: Replay) -> None:
        self._table = ReplayTable(replay.points)
        self._found: dict[tuple[Settings, int], Truth | None] = {}

    def truth(self, settings: Settings, depth: int, n_seq: int, nth: int) -> Truth | None:  # noqa: ARG002 - recorded speeds are the same every time
        key = (settings, depth)
        if key not in self._found:
            self._found[key] = self._table.find(settings, depth)
        return self._found[key]
