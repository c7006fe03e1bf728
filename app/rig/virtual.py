"""A rig without hardware: true speeds come from a source, time is virtual, noise is seeded.

Replays and simulated machines share it, so the search sees the same behaviour from both.
"""

import math
import random
from collections.abc import Iterator
from typing import Protocol

import msgspec

from app.domain.errors import ErrorInfo
from app.domain.events import RigEvent, TrialFinished, TrialProgress
from app.domain.memory import DeviceMemory, MemoryEstimate, MemorySource, Verdict
from app.domain.outcome import OUTCOMES, Outcome
from app.domain.record import Record
from app.domain.settings import FlashAttn, Settings, SplitMode
from app.domain.sweep import SearchSpace
from app.domain.trial import Sample, TelemetryWindow, Trial, TrialRequest
from app.domain.units import MIB, NS_PER_S

HEADROOM_BYTES = 256 * MIB
DECODE_SAMPLE_S = 2.0  # a decode sample ends after 64 tokens or 2 s, but not before 8 tokens
MIN_DECODE_TOK = 8
PREFILL_WARM_UPS = 2
STOP_WIDTH_FRAC = 0.02  # repetitions end when the interval of the median is this narrow


class Truth(Record, frozen=True, kw_only=True):
    """What a configuration really does.

    Attributes:
        outcome: How a trial ends.
        prefill_tok_s: Speed of one sequence while all run, where the outcome has one.
        decode_tok_s: Speed of one sequence while all run, where the outcome has one.
        device_bytes: What a dry run answers; empty = the engine refuses to plan it.
        shared_growth_bytes: Growth of shared memory.
        slow_down: Factor on every time of this trial because something else runs, ≥ 1.
        disturbed: Why, as telemetry would say it.
    """

    outcome: Outcome
    prefill_tok_s: float | None = None
    decode_tok_s: float | None = None
    device_bytes: dict[str, int] = {}
    shared_growth_bytes: int = 0
    slow_down: float = 1.0
    disturbed: str | None = None

    def ended(self, outcome: Outcome) -> "Truth":
        """Return this with another outcome and no speeds."""
        return msgspec.structs.replace(self, outcome=outcome, prefill_tok_s=None, decode_tok_s=None)


class TruthSource(Protocol):
    """Says what a configuration does."""

    def truth(self, settings: Settings, depth: int, n_seq: int, nth: int) -> Truth | None:
        """Return what happens at ``depth`` the ``nth`` time (from 0), ``None`` if unknown."""
        ...

    def need(self, settings: Settings, n_seq: int) -> Truth | None:
        """Return what a dry run knows, whatever the depth, ``None`` if unknown."""
        ...


class VirtualRig:
    """Runs trials against a ``TruthSource``, deterministically by seed."""

    def __init__(
        self,
        space: SearchSpace,
        source: TruthSource,
        *,
        noise_frac: float,
        seed: int,
        headroom_bytes: int | None = None,
    ) -> None:
        """Start the virtual clock at 0.

        Args:
            space: Model, host and devices.
            source: True behaviour.
            noise_frac: Relative standard deviation of one sample.
            seed: Seed of the noise.
            headroom_bytes: Memory to leave free per device, default 256 MiB.
        """
        self._space = space
        self._source = source
        self._noise_frac = noise_frac
        self._seed = seed
        self._headroom_bytes = HEADROOM_BYTES if headroom_bytes is None else headroom_bytes
        self._now_s = 0.0
        self._load_id = 0
        self._loaded: tuple[object, ...] | None = None
        self._seen: dict[tuple[Settings, int], int] = {}

    def space(self) -> SearchSpace:
        """Return model, host and devices."""
        return self._space

    def now_s(self) -> float:
        """Return the virtual clock, seconds."""
        return self._now_s

    def close(self) -> None:
        """Forget the loaded weights."""
        self._loaded = None

    def concrete(self, settings: Settings) -> Settings:
        """Return ``settings`` as the engine would report them."""
        threads = settings.n_threads or self._space.host.cores_physical
        every = tuple(d.id for d in self._space.devices)
        return msgspec.structs.replace(
            settings,
            flash_attn=FlashAttn.OFF if settings.flash_attn == FlashAttn.OFF else FlashAttn.ON,
            n_threads=threads,
            n_threads_batch=settings.n_threads_batch or threads,
            devices=settings.devices or (every if settings.n_gpu_layers else ()),
        )

    def truth(self, settings: Settings, depth: int, n_seq: int = 1) -> Truth | None:
        """Return what really happens, without noise and without spending time."""
        return self._source.truth(self.concrete(settings), depth, n_seq, 0)

    def dry_run(self, settings: Settings) -> MemoryEstimate:
        """Return the recorded need; it is final, so only the headroom comes on top."""
        truth = self._source.need(self.concrete(settings), settings.n_seq_max)
        if truth is None or not self._is_planned(settings, truth):
            why = "not recorded" if truth is None else OUTCOMES[truth.outcome].label
            return MemoryEstimate(
                devices=(), source=MemorySource.REPLAY, verdict=Verdict.DOES_NOT_FIT, note=why
            )
        devices = tuple(
            self._device_memory(d.id, d.free_bytes, truth.device_bytes.get(d.id, 0))
            for d in self._space.devices
        )
        order = (Verdict.DOES_NOT_FIT, Verdict.TIGHT, Verdict.FITS)
        verdicts = {d.verdict for d in devices}
        worst = next((v for v in order if v in verdicts), Verdict.FITS)
        return MemoryEstimate(devices=devices, source=MemorySource.REPLAY, verdict=worst)

    def _is_planned(self, settings: Settings, truth: Truth) -> bool:
        """Whether a need is recorded; one without any bytes is, where no device is used."""
        if truth.device_bytes or OUTCOMES[truth.outcome].has_speed:
            return True
        uses_device = bool(self._space.devices) and settings.n_gpu_layers > 0
        return truth.outcome is Outcome.UNSUPPORTED and not uses_device

    def run_trial(self, request: TrialRequest) -> Iterator[RigEvent]:
        """Run one trial on the virtual clock."""
        start_s = self._now_s
        settings = request.settings
        load_s = None
        if self._loaded != settings.load_key:
            yield TrialProgress(phase="load")
            load_s = self._space.load_s
            self._now_s += load_s
            self._load_id += 1
            self._loaded = settings.load_key
        key = (settings, request.workload.depth)
        nth = self._seen.get(key, 0)
        self._seen[key] = nth + 1
        effective = self.concrete(settings)
        truth = self._source.truth(
            effective, request.workload.depth, request.workload.n_seq, nth
        ) or Truth(outcome=Outcome.UNSUPPORTED)
        trial = Trial(
            request=request,
            load_id=self._load_id,
            outcome=truth.outcome,
            effective=effective,
            device_bytes=truth.device_bytes,
            load_s=load_s,
        )
        if OUTCOMES[truth.outcome].has_speed:
            yield TrialProgress(phase="decode")
            trial = self._timed(trial, truth, nth)
        else:
            self._loaded = None
            label = OUTCOMES[truth.outcome].label
            error = ErrorInfo(code=str(truth.outcome), message=f"The trial ended: {label}.")
            trial = msgspec.structs.replace(trial, error=error, effective=None)
        elapsed_s = self._now_s - start_s
        yield TrialFinished(index=0, trial=msgspec.structs.replace(trial, elapsed_s=elapsed_s))

    def _device_memory(self, device: str, free_bytes: int, need_bytes: int) -> DeviceMemory:
        left = free_bytes - need_bytes
        verdict = Verdict.FITS if left >= self._headroom_bytes else Verdict.TIGHT
        return DeviceMemory(
            device=device,
            total_bytes=need_bytes,
            free_bytes=free_bytes,
            headroom_bytes=self._headroom_bytes,
            verdict=verdict if left >= 0 else Verdict.DOES_NOT_FIT,
        )

    def _timed(self, trial: Trial, truth: Truth, nth: int) -> Trial:
        request, work = trial.request, trial.request.workload
        assert truth.prefill_tok_s is not None
        assert truth.decode_tok_s is not None
        key = f"{self._seed}/{scenario_key(request.settings)}/{work.depth}/{nth}"
        rng = random.Random(key)  # noqa: S311 - noise, not a secret
        prefill_s = work.n_prompt / truth.prefill_tok_s * truth.slow_down
        per_tok_s = truth.slow_down / truth.decode_tok_s
        n_gen = max(MIN_DECODE_TOK, min(work.n_gen, int(DECODE_SAMPLE_S / per_tok_s)))
        fill_s = work.depth / truth.prefill_tok_s
        self._now_s += fill_s + PREFILL_WARM_UPS * prefill_s + MIN_DECODE_TOK * per_tok_s
        prefill: list[Sample] = []
        decode: list[Sample] = []
        began_s = self._now_s
        while len(decode) < request.max_reps:
            prefill.append(self._sample(rng, work.n_prompt, prefill_s))
            decode.append(self._sample(rng, n_gen, n_gen * per_tok_s))
            if len(decode) < request.min_reps:
                continue
            spent_s = self._now_s - began_s
            if spent_s >= request.max_s or (_is_narrow(prefill) and _is_narrow(decode)):
                break
        window = TelemetryWindow(n_samples=3, disturbed=truth.disturbed)
        return msgspec.structs.replace(
            trial,
            prefill=tuple(prefill),
            decode=tuple(decode),
            shared_growth_bytes=truth.shared_growth_bytes,
            telemetry=window if truth.disturbed else None,
        )

    def _sample(self, rng: random.Random, n_tok: int, true_s: float) -> Sample:
        factor = max(0.2, 1 + self._noise_frac * rng.gauss(0, 1))
        self._now_s += true_s * factor
        return Sample(n_tok=n_tok, ns=max(1, round(true_s * factor * NS_PER_S)))


def scenario_key(settings: Settings) -> str:
    """Return what seeds the noise of ``settings``; a default that came later changes no draw."""
    return repr(settings).replace(f", split_mode={SplitMode.LAYER!r}", "")


def _is_narrow(samples: list[Sample]) -> bool:
    """Whether the samples scatter so little that more would not change the answer."""
    if len(samples) < 2:
        return False
    times = sorted(s.ns / s.n_tok for s in samples)
    middle = times[len(times) // 2]
    mean = sum(times) / len(times)
    spread = math.sqrt(sum((t - mean) ** 2 for t in times) / (len(times) - 1))
    half_width = 2.5 * spread / math.sqrt(len(times))
    return half_width <= STOP_WIDTH_FRAC * middle
