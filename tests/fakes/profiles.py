"""A profile in which every setting has a value of its own."""

import msgspec

from app.domain.settings import FlashAttn, LoadMode, Settings, SplitMode, Switch
from app.domain.sweep import Goal
from app.store import Profile

FULL = Settings(
    n_gpu_layers=27,
    n_cpu_moe=3,
    n_ctx=8192,
    n_batch=2048,
    n_ubatch=1024,
    flash_attn=FlashAttn.ON,
    type_k="q8_0",
    type_v="q8_0",
    n_threads=8,
    n_threads_batch=16,
    load_mode=LoadMode.NONE,
    devices=("CUDA0", "CUDA1"),
    n_seq_max=4,
    split_mode=SplitMode.ROW,
    tensor_split="3,1",
    offload_kqv=Switch.OFF,
    op_offload=Switch.OFF,
    override_tensor="attn_k=CPU,ffn_up=CUDA1",
)
PROFILE = Profile(
    id="abc234",
    name="Quick",
    settings=FULL,
    model_fingerprint="f00d",
    model_name="Tiny",
    model_path="/my models/it's 100 % mine.gguf",
    n_layer=32,
    goal=Goal.CHAT,
)


def with_settings(**changes: object) -> Profile:
    """The profile with some of its settings changed."""
    return msgspec.structs.replace(PROFILE, settings=msgspec.structs.replace(FULL, **changes))
