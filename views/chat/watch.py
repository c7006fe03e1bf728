"""Reads what the machine does while a model answers; on the chat's own thread."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from app.chat.in_use import Rest, devices_in_use, draw_w, rest_of
from app.chat.neighbours import Neighbours
from app.chat.slowness import MIN_TOK, SlowEvidence, slow_causes
from app.domain.events import GenerationStarted, TokenGenerated
from app.domain.machine import GpuSample, Machine, PowerSource
from app.domain.resets import reset_between
from app.domain.sweep import GOAL_WORKLOADS
from app.store.records import Profile
from views.chat.turns import Vitals
from views.feed import TelemetryPort, merged, timely
from views.port import ChatPort

MIN_S = 3.0
"""A very slow answer need not have ``MIN_TOK`` tokens before its speed says something."""


RECENT = timedelta(hours=1)
"""Age up to which a driver's reset may still be why a card is slow."""


class Watch:
    """Knows which devices a chat uses and what they did when it was loaded."""

    def __init__(
        self,
        chat: ChatPort,
        machine: Machine,
        telemetry: TelemetryPort,
        profile: Profile | None,
        clock_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Look for the first time: what is true now is what later readings are compared with."""
        self._chat = chat
        self._telemetry = telemetry
        self._profile = profile
        self._clock_s = clock_s
        now = datetime.now(UTC)
        self._reset = reset_between(machine.host, now - RECENT, now)
        self._names = devices_in_use(machine, chat.settings)
        self._neighbours = Neighbours({os.getpid(), *([chat.pid] if chat.pid else [])})
        self._neighbour: str | None = None
        first = self._samples()
        for sample in first:
            self._neighbours.look(sample)
        self._shared = {s.key: s.shared_used_bytes or 0 for s in first}
        self._draw_w = draw_w(first)
        self._depth = 0
        self._n_prompt = self._n_tok = 0
        self._begin_s: float | None = None
        self._begin_tok = 0

    def note(self, event: object) -> None:
        """Take speed and depth from an event of an answer."""
        match event:
            case GenerationStarted(n_prompt=n_prompt):
                self._n_prompt, self._n_tok, self._begin_s = n_prompt, 0, None
            case TokenGenerated(n_tok=n_tok):
                self._n_tok = n_tok
                if self._begin_s is None and n_tok:
                    self._begin_s, self._begin_tok = self._clock_s(), n_tok
            case _:
                return
        self._depth = self._n_prompt + self._n_tok

    def end(self) -> None:
        """The answer has ended, stopped or not: nothing is slow any more."""
        self._begin_s = None

    def look(self) -> Vitals:
        """Return what is to be shown now."""
        samples = self._samples()
        wanted = next((w for s in samples if (w := self._neighbours.look(s))), None)
        if wanted is not None:
            self._neighbour = wanted.name or ""
        self._draw_w = draw_w(samples)
        host = self._telemetry.latest_host()
        temps = [s.temp_c for s in samples if s.temp_c is not None]
        if not self._names and host is not None and host.cpu_temp_c is not None:
            temps.append(host.cpu_temp_c)
        return Vitals(
            power_w=self._draw_w,
            temp_c=max(temps) if temps else None,
            causes=slow_causes(self._evidence(samples)),
            neighbour=None if wanted is None else wanted.name or "",
            free_bytes=None if wanted is None else wanted.free_bytes,
            idle_left_s=self._chat.idle_left_s(),
        )

    def rest(self) -> Rest:
        """Return how the devices rest now that the model is unloaded."""
        return rest_of(self._draw_w, self._samples())

    def _evidence(self, samples: tuple[GpuSample, ...]) -> SlowEvidence:
        profile, settings, spec = self._profile, self._chat.settings, self._chat.spec
        speed = profile.decode_tok_s if profile is not None else None
        work = GOAL_WORKLOADS.get(profile.goal) if profile is not None and profile.goal else None
        host = self._telemetry.latest_host()
        on_cpu = max(0, spec.max_gpu_layers - settings.n_gpu_layers)
        return SlowEvidence(
            decode_tok_s=self._speed(),
            promised_tok_s=None if speed is None else speed.median,
            promised_depth=None if work is None else work.depth + work.n_prompt,
            depth=self._depth,
            n_cpu_layers=min(spec.max_gpu_layers, on_cpu + settings.n_cpu_moe),
            n_layers=spec.max_gpu_layers,
            samples=samples,
            names=self._names,
            shared_before=self._shared,
            neighbour=self._neighbour,
            reset=self._reset,
            power_source=PowerSource.UNKNOWN if host is None else host.power_source,
        )

    def _speed(self) -> float | None:
        if self._begin_s is None:
            return None
        count, elapsed_s = self._n_tok - self._begin_tok, self._clock_s() - self._begin_s
        is_enough = count >= MIN_TOK or (count >= 2 and elapsed_s >= MIN_S)
        return count / elapsed_s if is_enough and elapsed_s > 0 else None

    def _samples(self) -> tuple[GpuSample, ...]:
        found = (merged(timely(self._telemetry, key)) for key in self._names)
        return tuple(sample for sample in found if sample is not None)
