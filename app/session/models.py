"""The models found on this machine: whether each fits, and how fast it would write here."""

import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from app import library
from app.domain.errors import EnvironmentProblem
from app.domain.machine import Machine
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.domain.sweep import GOAL_WORKLOADS, Goal
from app.gguf import read_model
from app.memory import Memory
from app.session.estimating import Scene, formula, with_most_layers
from app.session.evidence import HOST
from app.session.opening import memory_for, runnable, usable_devices
from app.session.patience import HEADER_S, LIST_S, read_header, within
from app.session.views import ModelEntry, Prediction
from app.store import Profile, Store
from app.store.records import machine_name

N_CTX = 4096
DEMO_NAME = "Gemma 3 270M (demo)"
_RAM_CODES = ("cpu_ceiling", "ram_token_time")


class Predictor:
    """Predicts decode speed from what was measured on this machine before."""

    def __init__(self, machine: Machine, store: Store) -> None:
        """Look through the stored profiles of this machine."""
        own = [p for p in store.profiles() if p.machine == machine_name(machine)]
        self._machine = machine
        self._measured = {p.model_fingerprint: p for p in reversed(own) if p.decode_tok_s}
        self._rates = read_rates(own, machine)
        self._ram_gb_s = _ram_gb_s(own, store)

    def predict(self, spec: ModelSpec, memory: Memory, settings: Settings) -> Prediction:
        """Return decode speed of ``spec`` with a conversation of the goal ``chat`` begun.

        Measured where the model was tuned here; else from the speed at which other models'
        weights were read here; else as a bound, from the measured speed of RAM.
        """
        known = self._measured.get(spec.fingerprint)
        if known is not None and known.decode_tok_s is not None:
            return Prediction(tok_s=known.decode_tok_s.median, source="measured")
        depth = GOAL_WORKLOADS[Goal.CHAT].depth
        scaled = memory.predicted_tok_s(settings, self._rates, depth)
        if scaled is not None:
            return Prediction(tok_s=scaled, source="estimated")
        rates = ({HOST: self._ram_gb_s} if self._ram_gb_s else {}) | self._rates
        bound = memory.predicted_tok_s(settings, rates, depth)
        if bound is not None:
            return Prediction(tok_s=bound, source="bound")
        return Prediction(reason="nothing_measured")


def read_rates(profiles: Iterable[Profile], machine: Machine) -> dict[str, float]:
    """Return at what speed each device read the weights of a tuned model, 10⁹ bytes per second.

    Only answers that use one device tell its speed; of several the fastest counts, because small
    models spend their time on other things.
    """
    rates: dict[str, float] = {}
    for profile in profiles:
        read = _token_bytes(profile, machine)
        users = [(name, n) for name, n in read.items() if n]
        if len(users) == 1 and profile.decode_tok_s is not None:
            ((name, n_bytes),) = users
            rate = n_bytes * profile.decode_tok_s.median / 1e9
            rates[name] = max(rates.get(name, 0.0), rate)
    return rates


def _token_bytes(profile: Profile, machine: Machine) -> Mapping[str, int]:
    try:
        spec = read_model(profile.model_path)
        devices = usable_devices(machine, profile.settings.devices)
    except EnvironmentProblem:
        return {}  # the file or the device is gone
    if spec.fingerprint != profile.model_fingerprint:
        return {}
    depth = GOAL_WORKLOADS[profile.goal].depth if profile.goal else 0
    return memory_for(spec, machine, devices).token_bytes(profile.settings, depth)


def _ram_gb_s(profiles: Iterable[Profile], store: Store) -> float | None:
    """Return the speed of RAM that the newest search measured, if one did."""
    for profile in profiles:
        if profile.sweep_id is None:
            continue
        try:
            reasons = store.sweep(profile.sweep_id).reasons
        except EnvironmentProblem:
            continue  # deleted since
        for reason in reasons:
            gb_s = reason.data.get("gb_s")
            if reason.code in _RAM_CODES and isinstance(gb_s, float):
                return gb_s
    return None


def list_models(scene: Scene, store: Store, folders: tuple[str, ...]) -> tuple[ModelEntry, ...]:
    """Return the models found, each with its verdict and predicted speed; the demo model first.

    Args:
        scene: This machine as it is now; it wakes no GPU.
        store: What was measured here.
        folders: Folders of the user's own to look into, besides other programs'.
    """
    predictor = Predictor(scene.machine, store)
    deadline_s = time.monotonic() + LIST_S
    find = partial(library.find_models, folders=folders)
    found = within(LIST_S, "The model folders", find)
    demo = str(library.demo_path())
    found = tuple(
        msgspec.structs.replace(each, id=library.DEMO, name=DEMO_NAME)
        if each.path == demo
        else each
        for each in found
    )
    # one drive that stalls costs its own entry, and a few of them no more than the deadline
    entries = [
        list_entry(scene, each, predictor, min(HEADER_S, deadline_s - time.monotonic()))
        for each in found
    ]
    if library.has_demo() and not any(entry.id == library.DEMO for entry in entries):
        # its package is here, but it was not unpacked yet
        entries.append(
            ModelEntry(
                id=library.DEMO, origin="rigtune", name=DEMO_NAME, path=demo,
                file_bytes=library.DEMO_BYTES, predicted=Prediction(reason="not_unpacked"),
            )
        )  # fmt: skip
    return tuple(sorted(entries, key=lambda entry: entry.id != library.DEMO))


def list_entry(
    scene: Scene, found: library.FoundModel, predictor: Predictor, budget_s: float
) -> ModelEntry:
    """Return a found model with its verdict and its predicted speed.

    Args:
        scene: This machine as it is now; it wakes no GPU.
        found: The model.
        predictor: Knows what was measured here.
        budget_s: Seconds its drive may take to answer.
    """
    result = ModelEntry(
        id=found.id,
        origin=found.origin,
        name=found.name,
        path=found.path,
        file_bytes=found.file_bytes,
    )
    try:
        spec = runnable(read_header(Path(found.path), budget_s))
    except EnvironmentProblem as problem:
        return msgspec.structs.replace(
            result,
            problem=problem.info.message,
            predicted=Prediction(reason="not_usable"),
        )
    memory = formula(scene, spec)
    base = Settings(n_gpu_layers=0, n_ctx=min(N_CTX, spec.n_ctx_train or N_CTX))
    is_known = scene.machine.engine is not None
    best = with_most_layers(memory, base) if is_known else base
    whole = Settings(n_gpu_layers=spec.max_gpu_layers, devices=best.devices)
    result = msgspec.structs.replace(
        result, arch=spec.arch, quant=spec.ftype, verdict=memory.estimate(whole).verdict
    )
    if not is_known:
        return msgspec.structs.replace(result, predicted=Prediction(reason="gpu_asleep"))
    predicted = predictor.predict(spec, memory, best)
    return msgspec.structs.replace(result, predicted_tok_s=predicted.tok_s, predicted=predicted)
