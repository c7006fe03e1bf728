"""Tensors that the user's rules place: what they move away from where the rule would put them."""

from typing import NamedTuple

from app.domain.model import ModelSpec, TensorInfo
from app.domain.overrides import override_for, read_overrides
from app.domain.settings import Settings
from app.estimate.profile import FormulaDevice, pad
from app.estimate.weights import (
    HOST,
    HOST_ALIGNMENT,
    TensorGroup,
    is_expert,
    loaded_tensors,
    repacks,
    stored_bytes,
)

_EMBEDDING = "token_embd.weight"
_MATRIX_DIMS = 2
_FEED_FORWARD = ("ffn_up", "ffn_gate", "ffn_down")
_WIDE = ("attn_q", "attn_output")
_SINKS = ".attn_sinks."


class Overridden(NamedTuple):
    """A tensor that a rule names.

    Attributes:
        tensor: The tensor.
        group: What it belongs to.
        layer: Its block; the number of blocks for what is in none.
        device: Name of the device it lies on; ``None`` = RAM.
    """

    tensor: TensorInfo
    group: TensorGroup
    layer: int
    device: str | None

    def home(self, devices: tuple[FormulaDevice, ...]) -> int:
        """Return the index of its device; ``HOST`` also for one that is not used."""
        if self.device is None:
            return HOST
        return next((i for i, d in enumerate(devices) if d.name == self.device), HOST)

    def origins(self, places: tuple[int, ...], settings: Settings) -> tuple[int, ...]:
        """Return where it would lie (rotary factors: ``move`` is told)."""
        if self.group is TensorGroup.INPUT:
            return (HOST,)
        if self.group is TensorGroup.FIRST:
            return (places[0],)
        kept = self.layer < settings.n_cpu_moe and is_expert(self.tensor)
        return (HOST if kept else places[self.layer],)


def overridden_tensors(spec: ModelSpec, text: str) -> tuple[Overridden, ...]:
    """Return every tensor that the engine loads and a rule of ``text`` names.

    Raises:
        UsageProblem: A rule is none.
    """
    rules, found = read_overrides(text), []
    for tensor, group, layer in loaded_tensors(spec) if rules else ():
        rule = override_for(rules, tensor.name)
        if rule is not None:
            found.append(Overridden(tensor, group, layer, rule.device))
    return tuple(found)


class InRam(NamedTuple):
    """Blocks of devices, parts of which the rules keep in RAM.

    ``feed_forward`` and ``experts`` are there whole; of ``attention`` (one as wide as Q),
    ``some_forward`` (either kind) and ``some`` (any) a matrix is. Of ``scores``
    the sinks are there. The experts of ``experts_out`` are on a device whatever ``n_cpu_moe`` says;
    ``guests`` are blocks with a matrix on a device that is not theirs: (device, block).
    """

    attention: frozenset[int] = frozenset()
    feed_forward: frozenset[int] = frozenset()
    experts: frozenset[int] = frozenset()
    some_forward: frozenset[int] = frozenset()
    some: frozenset[int] = frozenset()
    scores: frozenset[int] = frozenset()
    experts_out: frozenset[int] = frozenset()
    guests: frozenset[tuple[int, int]] = frozenset()


def parts_in_ram(spec: ModelSpec, overridden: tuple[Overridden, ...]) -> InRam:
    """Return which parts of which blocks the CPU computes because of the rules."""
    kept = {e.tensor.name for e in overridden if e.device is None}
    moved: dict[str, set[int]] = {"attn": set(), "ffn": set(), "exps": set(), "narrow": set()}
    stays = {"ffn": set[int](), "exps": set[int]()}
    for tensor, group, layer in loaded_tensors(spec) if kept else ():
        if group is not TensorGroup.BLOCK or len(tensor.shape) < _MATRIX_DIMS:
            continue
        kind = _kind(tensor)
        if tensor.name in kept:
            moved[kind].add(layer)
        elif kind in stays:
            stays[kind].add(layer)
    some = frozenset[int]().union(*moved.values())
    return InRam(
        attention=frozenset(moved["attn"]),
        feed_forward=frozenset(moved["ffn"] - stays["ffn"]),
        experts=frozenset(moved["exps"] - stays["exps"]),
        some_forward=frozenset(moved["ffn"] | moved["exps"]),
        some=some,
        experts_out=frozenset(e.layer for e in overridden if e.device and is_expert(e.tensor)),
        scores=frozenset(e.layer for e in overridden if _SINKS in e.tensor.name and not e.device),
    )


def guest_blocks(
    overridden: tuple[Overridden, ...],
    places: tuple[int, ...],
    devices: tuple[FormulaDevice, ...],
) -> frozenset[tuple[int, int]]:
    """Return (device, block) for every block that has a matrix on a device that is not its own."""
    found = {
        (e.home(devices), e.layer)
        for e in overridden
        if e.group is TensorGroup.BLOCK and e.device and len(e.tensor.shape) >= _MATRIX_DIMS
    }
    return frozenset((d, i) for d, i in found if d not in (HOST, places[i]))


def _kind(tensor: TensorInfo) -> str:
    name = tensor.name.split(".")[2]
    if is_expert(tensor):
        return "exps"
    if name in _FEED_FORWARD:
        return "ffn"
    return "attn" if name.startswith(_WIDE) else "narrow"


def move(
    overridden: tuple[Overridden, ...],
    weights: list[int],
    places: tuple[int, ...],
    settings: Settings,
    devices: tuple[FormulaDevice, ...],
    *,
    rope_at: tuple[int, ...],
    tied_at: int | None,
    is_twice: bool,
) -> list[int]:
    """Return ``weights`` with every tensor where its rule puts it.

    Args:
        overridden: Result of ``overridden_tensors``.
        weights: Bytes per device and, last, in RAM, without these rules.
        places: Device of each block and of the output layer.
        settings: Requested settings.
        devices: The devices used.
        rope_at: Where the rotary factors are, each place once.
        tied_at: Where the output layer is a copy of the embedding; ``None`` = there is no copy.
        is_twice: Whether embedding and output are two copies even in one place.
    """
    sums = list(weights)
    for entry in overridden:
        is_rope, home, n_copies = entry.group is TensorGroup.ROPE, entry.home(devices), 1
        origins = rope_at if is_rope else entry.origins(places, settings)
        if entry.tensor.name == _EMBEDDING and tied_at is not None:
            # the output goes by the embedding's name, too
            origins += (tied_at,)
            n_copies = 2 if is_twice else 1
        for origin in origins:
            sums[origin] -= _stored(entry.tensor, devices, origin)
        sums[home] += _stored(entry.tensor, devices, home) * n_copies
    return sums


def repacked_change(
    overridden: tuple[Overridden, ...],
    places: tuple[int, ...],
    settings: Settings,
    devices: tuple[FormulaDevice, ...],
) -> int:
    """Return by how much the rules change what the CPU copies of mapped weights, bytes."""
    change = 0
    for entry in overridden:
        if entry.group is TensorGroup.BLOCK and repacks(entry.tensor):
            was = HOST in entry.origins(places, settings)
            change += ((entry.home(devices) == HOST) - was) * entry.tensor.n_bytes
    return change


def _stored(tensor: TensorInfo, devices: tuple[FormulaDevice, ...], place: int) -> int:
    if place == HOST:
        return pad(tensor.n_bytes, HOST_ALIGNMENT)
    device = devices[place]
    return pad(stored_bytes(tensor, device.row_pad), device.alignment)
