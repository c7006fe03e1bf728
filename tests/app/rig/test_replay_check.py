"""A recording that cannot be true is refused with a sentence before a search begins."""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from app.cli.main import run
from app.domain.errors import EnvironmentProblem
from app.domain.settings import Settings
from app.rig import replay_file
from app.rig.replay import ReplayRig
from app.rig.replay_check import check_replay, read_replay
from app.rig.replay_file import Replay
from probes import registry
from tests.fakes.rigs import GOLDEN

DOCUMENT: dict[str, Any] = json.loads((GOLDEN / "format.json").read_text())
POINT = "points/0/"
HUGE = [10**18, 2**63, -1, -(10**18)]
ODD_VALUES: list[tuple[str, Any]] = [
    (POINT + "settings/flash_attn", "maybe"),
    (POINT + "settings/flash_attn", 1),
    (POINT + "settings/type_k", "q9_9"),
    (POINT + "settings/type_v", ["f16"]),
    (POINT + "settings/load_mode", "fast"),
    (POINT + "settings/devices", ["gpu9"]),
    (POINT + "settings/devices", "gpu0"),
    (POINT + "settings/n_gpu_layers", 10),
    (POINT + "settings/n_gpu_layers", True),
    (POINT + "settings/n_cpu_moe", 9),
    (POINT + "settings/n_ctx", 0),
    (POINT + "settings/n_ubatch", -512),
    (POINT + "settings/ngl", 3),
    (POINT + "settings/__proto__", 3),
    (POINT + "decode_tok_s", -4.0),
    (POINT + "decode_tok_s", 1e300),
    (POINT + "decode_tok_s", None),
    (POINT + "prefill_tok_s", "fast"),
    (POINT + "outcome", "fine"),
    (POINT + "depth", 2**31),
    ("points", []),
    ("points", {}),
    ("points", [1]),
    ("devices/0/kind", "quantum"),
    ("devices/0/free_bytes", 10**13),
    ("devices/0/id", ""),
    ("devices", [DOCUMENT["devices"][0]] * 2),
    ("host/cores_physical", 0),
    ("model/n_layer", 513),
    ("model/n_ctx_train", 0),
    ("noise_frac", 1.5),
    ("load_s", 1e12),
    ("seed", "seven"),
    ("format", "rigtune-replay/2"),
    *((POINT + "device_bytes/gpu0", n) for n in HUGE),
    *((POINT + "shared_growth_bytes", n) for n in HUGE),
    *((POINT + "depth", n) for n in HUGE),
    *(("devices/0/total_bytes", n) for n in HUGE),
    *(("host/ram_bytes", n) for n in HUGE),
    *(("model/file_bytes", n) for n in HUGE),
    *(("model/n_expert", n) for n in HUGE),
    *(("load_s", n) for n in HUGE),
]


def with_value(where: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    *parents, last = where.split("/")
    spot: Any = document
    for name in parents:
        spot = spot[int(name)] if name.isdigit() else spot[name]
    spot[last] = value
    return document


def refused(path: Path) -> str:
    with pytest.raises(EnvironmentProblem) as caught:
        read_replay(path)
    assert caught.value.info.code == "replay_invalid"
    return caught.value.info.message


@pytest.mark.parametrize(("where", "value"), ODD_VALUES)
def test_odd_values_are_refused(tmp_path: Path, where: str, value: Any) -> None:
    """Wrong types, odd choices, negative and huge figures, unknown names."""
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(with_value(where, value)))
    assert str(path) in refused(path)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("where", ["noise_frac", "load_s", POINT + "decode_tok_s"])
def test_numbers_that_are_none(tmp_path: Path, where: str, word: str) -> None:
    """What JSON does not know, or no number can hold."""
    path = tmp_path / "nan.json"
    path.write_text(json.dumps(with_value(where, "@")).replace('"@"', word))
    refused(path)


def test_a_configuration_cannot_end_in_two_ways(tmp_path: Path) -> None:
    """The same settings at the same depth, once good and once out of memory."""
    again = {**DOCUMENT["points"][0], "outcome": "out_of_memory"}
    path = tmp_path / "twice.json"
    path.write_text(json.dumps(with_value("points", [DOCUMENT["points"][0], again])))
    assert "same configuration" in refused(path)


def test_nesting_and_unpacked_size_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a million brackets nor a small archive of a huge text is unpacked."""
    deep = tmp_path / "deep.json"
    deep.write_bytes(b"[" * 1_000_000)
    refused(deep)
    monkeypatch.setattr(replay_file, "MAX_FILE_BYTES", 1 << 20)
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b" " * (2 << 20)))
    assert "larger than" in refused(bomb)


def test_the_command_line_says_it_and_exits_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bad recording is a problem the user can act on."""
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(with_value(POINT + "depth", -1)))
    assert run(["tune", "--replay", str(path), "--json"], registry) == 3
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "replay_invalid"


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=3),
    st.sampled_from(["on", "off", "auto", "q8_0", "gpu0", "ok", "out_of_memory", "discrete"]),
    st.lists(st.sampled_from(["gpu0", "x"]), max_size=2),
)  # fmt: skip


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [here, *(place for key, child in items for place in places(child, (*here, key)))]


PLACES = [place for place in places(DOCUMENT) if place]


@examples(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), LEAVES), min_size=1, max_size=3))
def test_what_is_accepted_can_be_searched(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    """Whatever is changed in a recording: refused, or every look-up of it works."""
    document = copy.deepcopy(DOCUMENT)
    for place, value in changes:
        spot: Any = document
        for key in place[:-1]:
            spot = spot[key] if isinstance(spot, dict) and key in spot else None
            if spot is None:
                break
        if isinstance(spot, dict):
            spot[place[-1]] = value
    try:
        replay = msgspec.convert(document, Replay)
    except msgspec.ValidationError:
        return
    if check_replay(replay) is None:
        rig = ReplayRig(replay)
        for layers in (0, 4, 8, 9):
            rig.dry_run(Settings(n_gpu_layers=layers))
