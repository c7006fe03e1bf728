"""What measuring a profile again says about an engine: faster, the same, slower, or broken."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from app.domain.errors import ErrorInfo
from app.domain.record import Record
from app.domain.sweep import GOAL_WORKLOADS, Goal
from app.domain.trial import Rate, Trial, Workload
from app.store import Profile
from app.sweep.compare import difference, is_slower, is_tie
from app.sweep.points import Demand, Point, build_points, counted, measured_settings
from app.sweep.stats import Estimate, rate

Verdict = Literal["faster", "same", "unclear", "slower", "broken", "first"]
Against = Literal["previous", "stored"]


class Speeds(Record, frozen=True, kw_only=True):
    """What one engine reached with a profile; measured."""

    prefill_tok_s: Rate
    decode_tok_s: Rate
    request_s: float


class EngineChecked(Record, frozen=True, kw_only=True, tag_field="type", tag="engine.checked"):
    """A profile was measured again.

    Attributes:
        profile_id: Which profile.
        profile_name: The user's name for it.
        verdict: Of the engine of this RigTune; ``first`` = there was nothing to compare with.
        against: What it was compared with: the earlier engine now, or the figures stored then.
        current: What this RigTune's engine reaches now.
        reference: What it was compared with.
        change: How much longer the goal's request takes than the reference, as a share.
        error: Why there is no speed, for ``broken``.
        renewed: Whether the profile now carries the new figures.
    """

    profile_id: str
    profile_name: str
    verdict: Verdict
    against: Against | None = None
    current: Speeds | None = None
    reference: Speeds | None = None
    change: Estimate | None = None
    error: ErrorInfo | None = None
    renewed: bool = False


def workload_of(profile: Profile, stored: Sequence[Trial]) -> Workload:
    """Return what the profile was timed with: its search's workload, or its goal's."""
    own = [t for t in stored if _is_of(t, profile) and t.decode]
    if own:
        return max((t.request.workload for t in own), key=lambda w: (w.depth, w.n_gen))
    work = GOAL_WORKLOADS[profile.goal or Goal.CHAT]
    room = profile.settings.n_ctx // work.n_seq - work.n_prompt - work.n_gen
    return msgspec.structs.replace(work, depth=max(0, min(work.depth, room)))


def judge(
    profile: Profile, stored: Sequence[Trial], current: Sequence[Trial], previous: Sequence[Trial]
) -> EngineChecked:
    """Return what the trials of both engines say, without renewing anything.

    Args:
        profile: What was measured.
        stored: Trials of the search that the profile comes from.
        current: Trials of this RigTune's engine, each on a load of its own.
        previous: Those of the earlier engine, in turns with them; none = only stored ones.
    """
    now = _point(profile, current)
    found = EngineChecked(profile_id=profile.id, profile_name=profile.name, verdict="first")
    if now is None:
        error = next((t.error for t in reversed(current) if t.error), None)
        return msgspec.structs.replace(found, verdict="broken", error=error)
    found = msgspec.structs.replace(found, current=_speeds(now, current))
    sources: tuple[tuple[Against, Sequence[Trial]], ...] = (
        ("previous", previous),
        ("stored", _same_workload(profile, stored, current[0].request.workload)),
    )
    for against, trials in sources:
        reference = _point(profile, trials)
        if reference is not None:
            return msgspec.structs.replace(
                found,
                verdict=_verdict(reference, now),
                against=against,
                reference=_speeds(reference, trials),
                change=difference(reference, now),
            )
    return found


def renewed(profile: Profile, found: EngineChecked, build: str) -> Profile | None:
    """Return the profile with the new figures; ``None`` where the stored ones stay.

    Those of an engine that is slower or broken never replace the last good ones.
    """
    if found.current is None or found.verdict == "slower":
        return None
    return msgspec.structs.replace(
        profile,
        prefill_tok_s=found.current.prefill_tok_s,
        decode_tok_s=found.current.decode_tok_s,
        request_s=found.current.request_s,
        engine=build,
    )


def _verdict(reference: Point, now: Point) -> Verdict:
    if is_slower(now, reference):
        return "slower"
    if is_slower(reference, now):
        return "faster"
    return "same" if is_tie(reference, now) else "unclear"


def _same_workload(
    profile: Profile, stored: Sequence[Trial], workload: Workload
) -> Sequence[Trial]:
    return [t for t in stored if _is_of(t, profile) and t.request.workload == workload]


def _is_of(trial: Trial, profile: Profile) -> bool:
    """Whether a trial ran what the profile keeps: settings as the engine took them."""
    return (trial.effective or measured_settings(trial)) == profile.settings


def _point(profile: Profile, trials: Sequence[Trial]) -> Point | None:
    """Return all passes of one engine together; ``None`` where one of its trials failed."""
    if not trials:
        return None
    work = GOAL_WORKLOADS[profile.goal or Goal.CHAT]
    need = Demand(n_prompt=work.n_prompt, n_gen=work.n_gen)
    points = build_points(trials, trials[0].request.workload, need)
    clean = [p for p in points.values() if p.is_clean and len(p.load_ids) == len(trials)]
    return clean[0] if len(points) == 1 and clean else None


def _speeds(point: Point, trials: Sequence[Trial]) -> Speeds:
    good = counted(trials)
    prefill = rate([s for t in good for s in t.prefill])
    decode = rate([s for t in good for s in t.decode])
    assert prefill is not None
    assert decode is not None
    return Speeds(prefill_tok_s=prefill, decode_tok_s=decode, request_s=point.request_s)
