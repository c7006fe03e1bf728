"""The engine settings RigTune chooses, and the one table that describes them.

CLI flags, JSON, exports and the window derive from ``SETTINGS``; names are llama.cpp's own.
"""

import re
from enum import StrEnum

from app.domain.record import Record


class FlashAttn(StrEnum):
    """Flash attention; ``auto`` only in requests, effective settings are ``on`` or ``off``."""

    ON = "on"
    OFF = "off"
    AUTO = "auto"


class LoadMode(StrEnum):
    """How weights that stay in RAM are read: mapped from the file or copied (pinned)."""

    MMAP = "mmap"
    NONE = "none"


class SplitMode(StrEnum):
    """How several devices share a model (``llama_split_mode``, llama.h).

    ``none``: only the first device. ``layer``: whole layers, one device after the other.
    ``row``: each matrix by rows, the rest on the first device; deprecated, and refused by backends
    without split buffers. ``tensor``: weights and cache, all devices at once; experimental.
    """

    NONE = "none"
    LAYER = "layer"
    ROW = "row"
    TENSOR = "tensor"


class Switch(StrEnum):
    """A setting that is on or off."""

    ON = "on"
    OFF = "off"


class Level(StrEnum):
    """What a change of a setting costs: a new load of the weights, or a new context."""

    LOAD = "load"
    CONTEXT = "context"


# bytes per block, elements per block (ggml type traits); the KV types llama.cpp accepts
KV_TYPES: dict[str, tuple[int, int]] = {
    "f32": (4, 1),
    "f16": (2, 1),
    "bf16": (2, 1),
    "q8_0": (34, 32),
    "q5_1": (24, 32),
    "q5_0": (22, 32),
    "q4_1": (20, 32),
    "q4_0": (18, 32),
    "iq4_nl": (18, 32),
}


SPLIT = re.compile(r"\d{1,6}(,\d{1,6}){0,15}")
"""A ``tensor_split``: whole numbers, one per device."""

LAYERS_ALL = "all"
"""What llama.cpp calls every layer, the output layer included."""

MAX_N_CTX = (1 << 31) - 256
"""llama.cpp counts tokens in 32 bits; above it a context silently becomes another one."""


class Settings(Record, frozen=True, kw_only=True):
    """One complete engine configuration.

    Attributes:
        n_gpu_layers: Layers in device memory, 0…blocks + 1 (the output layer counts as one).
        n_cpu_moe: Expert tensors of the first N layers stay in RAM, 0…blocks.
        n_ctx: Context size over all slots, tokens.
        n_batch: Logical prompt batch, tokens; ≥ ``n_ubatch``.
        n_ubatch: Physical prompt batch, tokens.
        flash_attn: Flash attention.
        type_k: Element type of the K cache, a key of ``KV_TYPES``.
        type_v: Element type of the V cache; a quantised one needs flash attention.
        n_threads: CPU threads in decode; 0 asks for the physical cores.
        n_threads_batch: CPU threads in prefill; 0 = as ``n_threads``.
        load_mode: How host weights are read.
        devices: Engine device names in use, e.g. ``("CUDA0",)``; empty = every GPU there is.
        n_seq_max: Parallel sequences (slots).
        split_mode: How several devices share the model; only ``layer`` unless asked.
        tensor_split: Shares of the model per device, ``"3,1"``; empty = by free memory.
        offload_kqv: Whether the KV cache of layers on a device lies there too.
        op_offload: Whether large batches of layers in RAM are computed on a device.
        override_tensor: Tensors that lie elsewhere, ``"PATTERN=CPU,…"``; decides before
            ``n_cpu_moe`` (``app.domain.overrides``).
    """

    n_gpu_layers: int
    n_cpu_moe: int = 0
    n_ctx: int = 4096
    n_batch: int = 2048
    n_ubatch: int = 512
    flash_attn: FlashAttn = FlashAttn.ON
    type_k: str = "f16"
    type_v: str = "f16"
    n_threads: int = 0
    n_threads_batch: int = 0
    load_mode: LoadMode = LoadMode.MMAP
    devices: tuple[str, ...] = ()
    n_seq_max: int = 1
    tensor_split: str = ""
    offload_kqv: Switch = Switch.ON
    op_offload: Switch = Switch.ON
    override_tensor: str = ""
    split_mode: SplitMode = SplitMode.LAYER

    @property
    def is_divided(self) -> bool:
        """Whether several devices work on each layer at once (if there are several)."""
        return self.split_mode in (SplitMode.ROW, SplitMode.TENSOR)

    @property
    def load_key(self) -> tuple[object, ...]:
        """The part that decides whether loaded weights can be kept."""
        return tuple(getattr(self, s.name) for s in SETTINGS if s.level is Level.LOAD)


class SettingInfo(Record, frozen=True, kw_only=True):
    """One row of the settings table.

    Attributes:
        name: Field of ``Settings`` (llama.cpp's name).
        level: What a change costs.
        flag: llama.cpp's command-line flag (``llama-server``, ``llama-bench``).
        label: Plain words for the window.
        unit: Unit of the value, empty for a pure choice.
        low: Smallest allowed value, ``None`` for choices.
        high: Largest allowed value, ``None`` where the model or machine decides.
        choices: Allowed values of a choice.
    """

    name: str
    level: Level
    flag: str
    label: str
    unit: str = ""
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """RigTune's own command-line option, e.g. ``--n-gpu-layers``."""
        return "--" + self.name.replace("_", "-")


SETTINGS: tuple[SettingInfo, ...] = (
    SettingInfo(
        name="n_gpu_layers",
        level=Level.LOAD,
        flag="--n-gpu-layers",
        label="GPU layers",
        unit="layers",
        low=0,
    ),
    # before n_cpu_moe: llama.cpp takes the first rule on the command line that matches
    SettingInfo(
        name="override_tensor",
        level=Level.LOAD,
        flag="--override-tensor",
        label="Tensors placed by name",
    ),
    SettingInfo(
        name="n_cpu_moe",
        level=Level.LOAD,
        flag="--n-cpu-moe",
        label="Expert layers on CPU",
        unit="layers",
        low=0,
    ),
    SettingInfo(
        name="n_ctx",
        level=Level.CONTEXT,
        flag="--ctx-size",
        label="Context length",
        unit="tokens",
        low=256,
        high=MAX_N_CTX,
    ),
    SettingInfo(
        name="n_batch",
        level=Level.CONTEXT,
        flag="--batch-size",
        label="Prompt batch",
        unit="tokens",
        low=32,
        high=16384,
    ),
    SettingInfo(
        name="n_ubatch",
        level=Level.CONTEXT,
        flag="--ubatch-size",
        label="Physical batch",
        unit="tokens",
        low=32,
        high=16384,
    ),
    SettingInfo(
        name="flash_attn",
        level=Level.CONTEXT,
        flag="--flash-attn",
        label="Flash attention",
        choices=tuple(FlashAttn),
    ),
    SettingInfo(
        name="type_k",
        level=Level.CONTEXT,
        flag="--cache-type-k",
        label="K cache type",
        choices=tuple(KV_TYPES),
    ),
    SettingInfo(
        name="type_v",
        level=Level.CONTEXT,
        flag="--cache-type-v",
        label="V cache type",
        choices=tuple(KV_TYPES),
    ),
    SettingInfo(
        name="n_threads",
        level=Level.CONTEXT,
        flag="--threads",
        label="Decode threads",
        unit="threads",
        low=1,
        high=512,
    ),
    SettingInfo(
        name="n_threads_batch",
        level=Level.CONTEXT,
        flag="--threads-batch",
        label="Prefill threads",
        unit="threads",
        low=1,
        high=512,
    ),
    SettingInfo(
        name="load_mode",
        level=Level.LOAD,
        flag="--load-mode",
        label="Weights in RAM",
        choices=tuple(LoadMode),
    ),
    SettingInfo(name="devices", level=Level.LOAD, flag="--device", label="Devices"),
    SettingInfo(
        name="n_seq_max",
        level=Level.CONTEXT,
        flag="--parallel",
        label="Parallel sequences",
        unit="sequences",
        low=1,
        high=256,
    ),
    SettingInfo(
        name="split_mode",
        level=Level.LOAD,
        flag="--split-mode",
        label="How devices share the model",
        choices=tuple(SplitMode),
    ),
    SettingInfo(
        name="tensor_split",
        level=Level.LOAD,
        flag="--tensor-split",
        label="Split over devices",
    ),
    SettingInfo(
        name="offload_kqv",
        level=Level.CONTEXT,
        flag="--no-kv-offload",
        label="KV cache on the device",
        choices=tuple(Switch),
    ),
    SettingInfo(
        name="op_offload",
        level=Level.CONTEXT,
        flag="--no-op-offload",
        label="Large batches of RAM layers on the device",
        choices=tuple(Switch),
    ),
)
