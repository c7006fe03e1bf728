"""Programs built on llama.cpp that have words of their own for some of its settings."""

import json
import re

from app.domain.errors import UsageProblem
from app.domain.settings import FlashAttn, LoadMode
from app.export.target import (
    Exported,
    heading,
    lost_drafts,
    lost_overrides,
    lost_placement,
    lost_split,
    one_line,
)
from app.store import Profile

# KoboldCpp: its levels of --quantkv, one for K and V together, and its allowed batch sizes
_KOBOLD_KV = {"f16": 0, "q8_0": 1, "q4_0": 2}
_KOBOLD_BATCHES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_OLLAMA_KV = {"f16", "q8_0", "q4_0"}


def ollama(profile: Profile) -> Exported:
    """Return a Modelfile: the four parameters Ollama has, the rest as comments.

    Ollama multiplies the context by its number of parallel requests, and its batch is
    llama.cpp's physical one.
    """
    settings = profile.settings
    if "\n" in profile.model_path or "\r" in profile.model_path:
        message = "The model's path contains a line break, which a Modelfile cannot hold."
        raise UsageProblem("path_not_exportable", message, "Rename the file or its folder.")
    parameters = {
        "num_gpu": settings.n_gpu_layers,
        "num_ctx": settings.n_ctx // settings.n_seq_max,
        "num_batch": settings.n_ubatch,
        "num_thread": settings.n_threads,
    }
    if not settings.n_threads:
        del parameters["num_thread"]
    notes = [
        *_ollama_server(profile),
        *lost_placement(profile),
        *lost_split(profile),
        *lost_overrides(profile),
        *lost_drafts(profile),
    ]
    if settings.load_mode is not LoadMode.MMAP:
        notes.append("Reading the weights into RAM instead of mapping them cannot be said here.")
    if settings.n_threads_batch not in {0, settings.n_threads}:
        notes.append("Ollama uses the decode threads for the prompt too.")
    lines = [
        f"# {heading(profile)}",
        *(f"# {one_line(note)}" for note in notes),
        f"FROM {profile.model_path}",
        *(f"PARAMETER {name} {value}" for name, value in parameters.items()),
    ]
    return Exported(text="\n".join(lines) + "\n", file_name="Modelfile", notes=tuple(notes))


def _ollama_server(profile: Profile) -> list[str]:
    """Return what only the server's environment can say, for all of its models at once."""
    settings = profile.settings
    flash = "1" if settings.flash_attn is FlashAttn.ON else "0"
    variables = [f"OLLAMA_FLASH_ATTENTION={flash}"]
    notes = []
    if settings.type_k == settings.type_v and settings.type_k in _OLLAMA_KV:
        variables.append(f"OLLAMA_KV_CACHE_TYPE={settings.type_k}")
    else:
        kinds = f"{settings.type_k} and {settings.type_v}"
        notes.append(f"KV cache types {kinds} cannot be said here.")
    if settings.n_seq_max > 1:
        variables.append(f"OLLAMA_NUM_PARALLEL={settings.n_seq_max}")
    return [f"Start the Ollama server with {' '.join(variables)}.", *notes]


def lmstudio(profile: Profile) -> Exported:
    """Return LM Studio's load settings of one model (keys as its own SDK declares them).

    Raises:
        UsageProblem: The model's number of layers is not known, and LM Studio wants a ratio.
    """
    settings = profile.settings
    if profile.n_layer is None:
        message = "LM Studio wants a share of the layers, and the model has not been seen yet."
        raise UsageProblem("layers_unknown", message, "Run `rigtune inspect` on the model first.")
    ratio = min(1.0, settings.n_gpu_layers / profile.n_layer)
    fields: dict[str, object] = {
        "llm.load.contextLength": settings.n_ctx,
        "llm.load.llama.autoFit": False,
        "llm.load.llama.acceleration.offloadRatio": round(ratio, 4),
        "llm.load.numCpuExpertLayersRatio": round(settings.n_cpu_moe / profile.n_layer, 4),
        "llm.load.llama.evalBatchSize": settings.n_batch,
        "llm.load.llama.physicalBatchSize": settings.n_ubatch,
        "llm.load.llama.cpuThreadPoolSize": settings.n_threads,
        "llm.load.numParallelSessions": settings.n_seq_max,
        "llm.load.llama.flashAttention": settings.flash_attn is FlashAttn.ON,
        "llm.load.llama.kCacheQuantizationType": {"checked": True, "value": settings.type_k},
        "llm.load.llama.vCacheQuantizationType": {"checked": True, "value": settings.type_v},
        "llm.load.llama.tryMmap": settings.load_mode is LoadMode.MMAP,
    }
    if not settings.n_threads:
        del fields["llm.load.llama.cpuThreadPoolSize"]
    document = {
        "preset": "",
        "operation": {"fields": []},
        "load": {"fields": [{"key": key, "value": value} for key, value in fields.items()]},
    }
    notes = [*lost_split(profile), *lost_overrides(profile), *lost_drafts(profile)]
    if settings.n_gpu_layers == profile.n_layer:
        notes.append("LM Studio cannot leave only the output layer in RAM: it goes to the GPU.")
    if settings.devices:
        notes.append("Devices are chosen in LM Studio's hardware settings, for all models.")
    if settings.n_threads_batch not in {0, settings.n_threads}:
        notes.append("LM Studio uses the decode threads for the prompt too.")
    return Exported(
        text=json.dumps(document, indent=2) + "\n", file_name="model.gguf.json", notes=tuple(notes)
    )


def koboldcpp(profile: Profile) -> Exported:
    """Return a ``.kcpps`` file: KoboldCpp's own arguments as JSON."""
    settings = profile.settings
    batch = max((b for b in _KOBOLD_BATCHES if b <= settings.n_ubatch), default=16)
    document: dict[str, object] = {
        "model_param": profile.model_path,
        "gpulayers": settings.n_gpu_layers,
        "moecpu": settings.n_cpu_moe,
        "contextsize": settings.n_ctx,
        "batchsize": batch,
        "flashattention": settings.flash_attn is FlashAttn.ON,
        "quantkv": _KOBOLD_KV.get(settings.type_k, 0),
        "threads": settings.n_threads,
        "blasthreads": settings.n_threads_batch,
        "usemmap": settings.load_mode is LoadMode.MMAP,
        **_kobold_backend(settings.devices),
    }
    if settings.override_tensor:
        document["overridetensors"] = settings.override_tensor
    if not settings.n_threads:
        del document["threads"]
    notes = [*lost_split(profile), *lost_drafts(profile)]
    if settings.devices and not _kobold_backend(settings.devices):
        notes.append(f"The devices ({', '.join(settings.devices)}) cannot be chosen here.")
    if settings.type_k != settings.type_v or settings.type_k not in _KOBOLD_KV:
        kinds = f"{settings.type_k} and {settings.type_v}"
        notes.append(f"KV cache types {kinds} cannot be said here.")
    if batch != settings.n_ubatch:
        notes.append(f"The batch {settings.n_ubatch} is not offered here; {batch} is the next.")
    if settings.n_seq_max > 1:
        notes.append("KoboldCpp answers one request at a time.")
    return Exported(
        text=json.dumps(document, indent=2) + "\n", file_name="rigtune.kcpps", notes=tuple(notes)
    )


def _kobold_backend(devices: tuple[str, ...]) -> dict[str, object]:
    """Return the argument that chooses backend and devices; its indices are the engine's own."""
    found = [match for d in devices if (match := re.fullmatch(r"([A-Za-z]+)(\d+)", d))]
    backends = {match[1] for match in found}
    indices = [match[2] for match in found]
    if backends in ({"CUDA"}, {"ROCm"}):
        # one card or all of them
        return {"usecuda": ["normal", *(indices if len(indices) == 1 else ["all"])]}
    if backends == {"Vulkan"}:
        return {"usevulkan": [int(index) for index in indices]}
    return {}
