"""With which model and settings a chat or a server runs, and what the user should know first."""

from collections.abc import Callable
from typing import NamedTuple

from app.domain.machine import Machine
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.rig.process import Launch
from app.session.engines import MEASURED_ELSEWHERE, is_of_another
from app.session.opening import pinned, usable_devices
from app.session.same_cards import on_same_cards
from app.store import Profile, Store

CHAT_N_CTX = 4096

Defaults = Callable[[ModelSpec, int], Settings]


class Chosen(NamedTuple):
    """What to load, and how: the arguments of a chat and of a server."""

    spec: ModelSpec
    settings: Settings
    launch: Launch
    profile_id: str | None
    notes: tuple[str, ...]


def choose(
    spec: ModelSpec,
    profile: Profile | None,
    defaults: Defaults,
    machine: Callable[[], Machine],
    launch: Launch,
) -> Chosen:
    """Return how ``spec`` is run on this machine.

    Args:
        spec: A model that can be run.
        profile: The stored profile to use, if there is one.
        defaults: Settings that fit a model and a context, for one without a profile.
        machine: Looks at the machine, engine included.
        launch: How engines are started.

    Raises:
        EnvironmentProblem: No worker can be had.
    """
    notes = []
    if profile is None:
        n_ctx = min(CHAT_N_CTX, spec.n_ctx_train or CHAT_N_CTX)
        settings = defaults(spec, n_ctx)
        notes.append("No tuned profile for this model yet; using defaults that fit.")
    else:
        settings = profile.settings
    if spec.chat_template is None:
        notes.append("This model has no chat template: it completes text, it does not answer.")
    now = machine()
    if profile is not None:
        if is_of_another(profile, now.engine):
            notes.append(MEASURED_ELSEWHERE)
        settings, gone = on_same_cards(settings, profile.device_keys, now)
        if gone:
            lost = ", ".join(gone)
            notes.append(f"The profile's device {lost} is not there now; the others are used.")
    names = settings.devices or (d.id for d in usable_devices(now))
    pins = pinned(launch, now, names if settings.n_gpu_layers else settings.devices)
    return Chosen(spec, settings, pins, profile.id if profile else None, tuple(notes))


def profile_for(
    spec: ModelSpec, profile_id: str | None, store: Callable[[], Store]
) -> Profile | None:
    """Return the profile asked for by id or name, else the newest one of this model."""
    if profile_id is not None:
        return store().profile(profile_id)
    stored = store().profiles(spec.fingerprint)
    return stored[0] if stored else None
