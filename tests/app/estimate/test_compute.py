"""The compute model against buffers that real runs have logged, within its error bar."""

import pytest

from app.domain.model import ModelSpec
from app.domain.settings import FlashAttn, Settings
from app.domain.units import MIB
from app.estimate.compute import ERROR_FRAC
from app.estimate.formula import Formula
from app.estimate.profile import EngineProfile, FormulaDevice
from tests.fakes.shapes import a_spec, dense_tensors, moe_tensors

GPU = FormulaDevice(name="CUDA0", split=1.0)
# llama.cpp's own programs reserve logits for a whole batch
ALL_LOGITS = EngineProfile(kv_unified=True, n_outputs_max=2048)
OFF = FlashAttn.OFF


def shaped(n_embd: int, n_vocab: int, n_ff: int, n_head: int, k_dim: int) -> ModelSpec:
    """One dense layer of the shape: compute does not depend on how many there are."""
    table = dense_tensors(
        n_layer=1, n_embd=n_embd, n_vocab=n_vocab, n_ff=n_ff, n_q=n_head * k_dim, n_kv=k_dim
    )
    return a_spec(
        n_layer=1, n_embd=n_embd, n_vocab=n_vocab, n_head=n_head, n_head_kv=8, k_dim=k_dim,
        tensors=table,
    )  # fmt: skip


def compute_mib(
    spec: ModelSpec,
    settings: Settings,
    *devices: FormulaDevice,
    profile: EngineProfile = ALL_LOGITS,
) -> list[float]:
    parts = Formula(spec, devices, profile).estimate(settings)
    return [(p.compute_bytes or 0) / MIB for p in parts]


GEMMA3_27B = shaped(5376, 262208, 21504, 32, 128)
QWEN3_32B = shaped(5120, 151936, 25600, 64, 128)
GEMMA2_2B = shaped(2304, 256000, 9216, 8, 256)
GEMMA_2B = shaped(2048, 256000, 16384, 8, 256)
QWEN25_7B = shaped(3584, 152064, 18944, 28, 128)


@pytest.mark.parametrize(
    ("spec", "n_ctx", "n_ubatch", "logged_mib"),
    [
        (GEMMA3_27B, 32768, 512, 522.62),
        (QWEN3_32B, 8192, 1024, 633.5),
        (GEMMA_2B, 2048, 512, 504.25),
        (QWEN25_7B, 4096, 128, 76.0),
        (QWEN25_7B, 131072, 512, 304.0),
        (QWEN25_7B, 4096, 2048, 1216.0),
    ],
)
def test_full_offload_is_as_logged(
    spec: ModelSpec, n_ctx: int, n_ubatch: int, logged_mib: float
) -> None:
    """On the card the logits of a batch decide, and the model gives them within 4 %."""
    settings = Settings(n_gpu_layers=2, n_ctx=n_ctx, n_ubatch=n_ubatch)
    assert compute_mib(spec, settings, GPU)[0] == pytest.approx(logged_mib, rel=0.04)


def test_moe_on_one_card_is_as_logged() -> None:
    """A 30B MoE with 64k context and four slots: 300.75 MiB."""
    table = moe_tensors(
        n_layer=1, n_embd=2048, n_vocab=151936, n_ff_exp=768, n_expert=4, n_q=4096, n_kv=512
    )
    spec = a_spec(
        n_layer=1, n_embd=2048, n_vocab=151936, n_head=32, n_head_kv=4, k_dim=128, tensors=table,
        n_expert=4, n_expert_used=8,
    )  # fmt: skip
    settings = Settings(n_gpu_layers=2, n_ctx=65536, n_seq_max=4)
    assert compute_mib(spec, settings, GPU)[0] == pytest.approx(300.75, rel=0.01)


@pytest.mark.parametrize(
    ("spec", "n_ctx", "attention", "logged_mib"),
    [
        (GEMMA2_2B, 8192, FlashAttn.ON, 509.0),
        (QWEN3_32B, 40960, OFF, 5252.01),
        (GEMMA3_27B, 131072, OFF, 8743.51),
    ],
)
def test_cpu_only_is_as_logged(
    spec: ModelSpec, n_ctx: int, attention: FlashAttn, logged_mib: float
) -> None:
    """In RAM too; without flash attention the scores of all heads decide."""
    settings = Settings(n_gpu_layers=0, n_ctx=n_ctx, flash_attn=attention)
    assert compute_mib(spec, settings)[0] == pytest.approx(logged_mib, rel=0.03)


def test_few_logits_free_a_batch_of_them() -> None:
    """Reserving one row instead of a batch saves (n_ubatch - 1) · n_vocab · 4 bytes at most."""
    settings = Settings(n_gpu_layers=2, n_ubatch=2048)
    whole = compute_mib(QWEN25_7B, settings, GPU)[0]
    ours = compute_mib(QWEN25_7B, settings, GPU, profile=EngineProfile())[0]
    assert ours < whole / 2


def test_layers_in_ram_cost_the_card_a_copy_of_their_weights() -> None:
    """With all layers in RAM a card that computes their prefill still needs buffers."""
    remote = FormulaDevice(name="RPC0", split=1.0, has_op_offload=False)
    on_cuda = Settings(n_gpu_layers=0, devices=("CUDA0",))
    assert compute_mib(QWEN25_7B, on_cuda, GPU)[0] > 0
    assert compute_mib(QWEN25_7B, Settings(n_gpu_layers=0, devices=("RPC0",)), remote)[0] == 0


def test_devices_that_overlap_batches_need_more() -> None:
    """Two devices with everything on them keep four batches of inputs in flight."""
    settings = Settings(n_gpu_layers=2, n_ctx=131072)
    second = FormulaDevice(name="CUDA1", split=1.0)
    alone = compute_mib(QWEN25_7B, settings, GPU, profile=EngineProfile())
    both = compute_mib(QWEN25_7B, settings, GPU, second, profile=EngineProfile())
    assert both[0] > alone[0] + 3 * 128
    assert both[-1] > alone[-1] + 3 * 128


def test_error_bar_is_a_share_of_compute() -> None:
    """The bar of a device is that of its compute part alone: the rest is exact."""
    formula = Formula(QWEN25_7B, (GPU,))
    on_gpu = formula.estimate(Settings(n_gpu_layers=2))[0]
    assert formula.error_bytes(on_gpu) == int((on_gpu.compute_bytes or 0) * ERROR_FRAC)


def test_scores_of_a_whole_context_are_as_logged() -> None:
    """Without window cache and flash attention 64 heads ask for 16,930 MiB at 131,072 tokens."""
    spec = shaped(2880, 201088, 2880, 64, 64)
    settings = Settings(n_gpu_layers=2, n_ctx=131072, flash_attn=OFF)
    assert compute_mib(spec, settings, GPU)[0] == pytest.approx(16929.88, rel=0.04)
