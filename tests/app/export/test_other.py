"""Ollama, LM Studio and KoboldCpp: what they can say, and what is noted instead."""

import json

import msgspec
import pytest

from app.domain.errors import UsageProblem
from app.export import Exported, export, render
from tests.fakes.profiles import PROFILE, with_settings


def test_modelfile_holds_what_ollama_can_say() -> None:
    """Four parameters, per-request context, and the rest as comments."""
    exported = render(PROFILE, "ollama")
    lines = [x for x in exported.text.splitlines() if not x.startswith("#")]
    assert lines == [
        f"FROM {PROFILE.model_path}",
        "PARAMETER num_gpu 27",
        "PARAMETER num_ctx 2048",
        "PARAMETER num_batch 1024",
        "PARAMETER num_thread 8",
    ]
    assert "OLLAMA_KV_CACHE_TYPE=q8_0" in exported.text
    assert "OLLAMA_NUM_PARALLEL=4" in exported.text
    assert any("q5_1" in n for n in render(with_settings(type_k="q5_1"), "ollama").notes)
    assert "num_thread" not in export(with_settings(n_threads=0), "ollama")


def test_modelfile_refuses_a_path_it_cannot_hold() -> None:
    """A path with a line break would become other instructions."""
    with pytest.raises(UsageProblem):
        export(msgspec.structs.replace(PROFILE, model_path="/a\nSYSTEM x"), "ollama")


@pytest.mark.parametrize(("n_gpu_layers", "ratio"), [(0, 0.0), (16, 0.5), (32, 1.0), (33, 1.0)])
def test_lm_studio_wants_shares(n_gpu_layers: int, ratio: float) -> None:
    """Layers become a share of the model's blocks; everything is 1."""
    fields = _load_fields(render(with_settings(n_gpu_layers=n_gpu_layers), "lmstudio"))
    assert fields["llm.load.llama.acceleration.offloadRatio"] == ratio
    assert fields["llm.load.contextLength"] == 8192
    assert fields["llm.load.llama.kCacheQuantizationType"] == {"checked": True, "value": "q8_0"}
    assert fields["llm.load.llama.tryMmap"] is False


def test_lm_studio_needs_the_number_of_layers() -> None:
    """Without the model's block count there is no share, and that is said."""
    with pytest.raises(UsageProblem) as caught:
        export(msgspec.structs.replace(PROFILE, n_layer=None), "lmstudio")
    assert caught.value.info.code == "layers_unknown"


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (("CUDA1",), {"usecuda": ["normal", "1"]}),
        (("CUDA0", "CUDA1"), {"usecuda": ["normal", "all"]}),
        (("Vulkan0", "Vulkan2"), {"usevulkan": [0, 2]}),
        (("RPC0",), {}),
        ((), {}),
    ],
)
def test_koboldcpp_device_choice(devices: tuple[str, ...], expected: dict[str, object]) -> None:
    """Backend and device become KoboldCpp's own argument; what it has not is noted."""
    exported = render(with_settings(devices=devices), "koboldcpp")
    document = json.loads(exported.text)
    assert {k: v for k, v in document.items() if k.startswith("use") and k != "usemmap"} == expected
    assert any("The devices (" in n for n in exported.notes) is bool(devices and not expected)


def test_koboldcpp_levels_and_batches() -> None:
    """KV types become levels, batches one of the offered sizes; the loss is noted."""
    document = json.loads(export(PROFILE, "koboldcpp"))
    assert (document["quantkv"], document["batchsize"], document["moecpu"]) == (1, 1024, 3)
    odd = render(with_settings(n_ubatch=768, type_k="f16", type_v="q4_0"), "koboldcpp")
    assert json.loads(odd.text)["batchsize"] == 512
    assert len(odd.notes) == 6
    assert any("split over the devices (3,1)" in n for n in odd.notes)


def _load_fields(exported: Exported) -> dict[str, object]:
    return {f["key"]: f["value"] for f in json.loads(exported.text)["load"]["fields"]}
