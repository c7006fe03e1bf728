"""Models and contexts on llama.cpp's low-level API, with requested and effective settings."""

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from app.domain.causes import find_cause, shorten
from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.settings import FlashAttn, LoadMode, Settings
from app.worker import devices, memory_breakdown, memory_log, native, parameters
from app.worker.cancel import CancelFlag, Cancelled, EngineFailure
from app.worker.enginelog import EngineLog
from app.worker.forgotten import forgotten_bytes, with_forgotten
from app.worker.native import llama
from app.worker.planned_header import PlannedHeader, planned_header
from app.worker.protocol import NO_BREAKDOWN

_PROGRESS_NS = 100_000_000
_F32_BYTES = 4
# its last line says only that, the one before why
_SUMMARY = "failed to load model"


class Model:
    """Weights in place (or only planned), and what llama.cpp says about them."""

    def __init__(
        self,
        handle: int,
        path: str,
        settings: Settings,
        names: list[str],
        *,
        is_planned: bool = False,
    ) -> None:
        """Describe ``handle``, loaded (or planned) from ``path`` onto devices ``names``."""
        self.is_planned = is_planned
        # of the load's log; needed only where the engine cannot be asked
        self.sizes: memory_log.Sizes = {}
        self.handle = handle
        self.path = path
        self.key = settings.load_key
        self.devices = names
        self.n_layer = int(llama.llama_model_n_layer(handle))
        self.n_embd = int(llama.llama_model_n_embd(handle))
        self.n_swa = int(llama.llama_model_n_swa(handle))
        self.is_recurrent = bool(llama.llama_model_is_recurrent(handle))
        self.is_hybrid = bool(llama.llama_model_is_hybrid(handle))
        self.vocab = llama.llama_model_get_vocab(handle)
        self.n_vocab = int(llama.llama_vocab_n_tokens(self.vocab))
        self.n_expert = int(self.metadata("expert_count") or 0)

    def metadata(self, key: str) -> str | None:
        """Return ``<architecture>.<key>`` of the file as text."""
        arch = _meta(self.handle, "general.architecture")
        return _meta(self.handle, f"{arch}.{key}") if arch else None

    def effective(self, requested: Settings) -> Settings:
        """Return ``requested`` with the load-level part as the engine took it."""
        return msgspec.structs.replace(
            requested,
            n_gpu_layers=min(requested.n_gpu_layers, self.n_layer + 1) if self.devices else 0,
            n_cpu_moe=min(requested.n_cpu_moe, self.n_layer) if self.n_expert else 0,
            devices=tuple(self.devices),
            **parameters.threads(requested),
        )

    def free(self) -> None:
        """Release the weights."""
        llama.llama_model_free(self.handle)


class Context:
    """A context on a model: what decodes."""

    def __init__(
        self, handle: int, model: Model, settings: Settings, sizes: memory_log.Sizes | None = None
    ) -> None:
        """Wrap ``handle``, whose effective settings are ``settings``; ``sizes`` are its log's."""
        self._sizes = sizes or {}
        self.handle = handle
        self.model = model
        self.settings = settings
        self.memory = llama.llama_get_memory(handle)
        self.n_ctx_seq = int(llama.llama_n_ctx_seq(handle))

    def devices(self) -> tuple[DeviceMemory, ...]:
        """Return the bytes per device that model and context hold.

        Raises:
            EngineFailure: This build does not offer the numbers, or not for this split mode.
        """
        if self.settings.is_divided and len(self.model.devices) > 1:
            raise memory_breakdown.unavailable("it counts devices that share each layer as one")
        output_bytes = max(self.settings.n_seq_max, 1) * self.model.n_vocab * _F32_BYTES
        if native.breakdown_function() is None and self._sizes:
            return memory_log.device_memory(
                self.model.sizes | self._sizes,
                self.model.devices,
                output_bytes=output_bytes,
                is_planned=self.model.is_planned,
            )
        return memory_breakdown.device_memory(
            self.handle,
            self.model.devices,
            is_recurrent=self.model.is_recurrent,
            output_bytes=output_bytes,
        )

    def known_devices(self) -> tuple[DeviceMemory, ...]:
        """Return ``devices``; nothing where the engine cannot say, which costs no trial."""
        try:
            return self.devices()
        except EngineFailure as failure:
            if failure.error.code != NO_BREAKDOWN:
                raise
            return ()

    def free(self) -> None:
        """Release KV cache and buffers."""
        llama.llama_free(self.handle)


class Engine:
    """Holds at most one loaded model and one planned one."""

    def __init__(self, log: EngineLog, cancel: CancelFlag) -> None:
        """Start with nothing loaded."""
        self.log = log
        self.cancel = cancel
        self.model: Model | None = None
        self._planned: Model | None = None
        # of the planned model, with the state of its file: making it reads the vocabulary once
        self._header: tuple[object, PlannedHeader] | None = None

    def load(
        self, path: str, settings: Settings, on_progress: Callable[[float], None]
    ) -> tuple[Settings, int]:
        """Allocate the weights, releasing earlier ones; return effective settings and ns.

        Raises:
            EngineFailure: The engine refused; or the parent cancelled.
        """
        self.unload()
        start = time.perf_counter_ns()
        self.model = self._load(path, settings, on_progress)
        return self.model.effective(settings), time.perf_counter_ns() - start

    def loaded(self) -> Model:
        """Return the loaded model.

        Raises:
            EngineFailure: There is none.
        """
        if self.model is None:
            raise EngineFailure(Outcome.UNSUPPORTED, "not_loaded", "No model is loaded.")
        return self.model

    @contextmanager
    def beside(
        self, path: str, settings: Settings, on_progress: Callable[[float], None] = lambda _: None
    ) -> Iterator[Model]:
        """Give a second model beside the loaded one and release it afterwards.

        Raises:
            EngineFailure: The engine refused; or the parent cancelled.
        """
        model = self._load(path, settings, on_progress)
        try:
            yield model
        finally:
            model.free()

    def unload(self) -> None:
        """Release the loaded weights, if any."""
        if self.model:
            self.model.free()
            self.model = None

    def plan(self, path: str, settings: Settings) -> tuple[tuple[DeviceMemory, ...], Settings]:
        """Return what ``settings`` would allocate, and as what the engine would take them.

        Raises:
            EngineFailure: The engine refuses the settings or does not offer the numbers.
        """
        # the planned model is never mapped, so both load modes share it
        planned = msgspec.structs.replace(settings, load_mode=LoadMode.NONE)
        self._read_header(path)
        model = self._planned
        if model is None or (model.path, model.key) != (path, planned.load_key):
            self._drop_plan()
            model = self._planned = self._load(path, planned, lambda _: None, no_alloc=True)
        with self.context(model, settings) as context:
            n_bytes = forgotten_bytes(context.settings, model.n_layer, model.n_embd)
            return with_forgotten(context.devices(), n_bytes), context.settings

    @contextmanager
    def context(self, model: Model, settings: Settings, n_outputs: int = 1) -> Iterator[Context]:
        """Give a context and release it afterwards.

        Args:
            model: What to decode with.
            settings: Its settings.
            n_outputs: Rows of logits a batch may ask for.

        Raises:
            EngineFailure: The engine refused to create it.
        """
        context = self.open_context(model, settings, n_outputs)
        try:
            yield context
        finally:
            context.free()

    def open_context(self, model: Model, settings: Settings, n_outputs: int = 1) -> Context:
        """Create a context; the caller frees it.

        Raises:
            EngineFailure: The engine refused to create it.
        """
        effective = model.effective(settings)
        params = parameters.context_params(effective, self.cancel, n_outputs)
        handle = llama.llama_init_from_model(model.handle, params)
        if not handle:
            raise self.failure(Outcome.UNSUPPORTED, "context_refused", "create a context")
        taken = msgspec.structs.replace(
            effective,
            n_ctx=int(llama.llama_n_ctx(handle)),
            n_batch=int(llama.llama_n_batch(handle)),
            n_ubatch=int(llama.llama_n_ubatch(handle)),
            n_threads=int(llama.llama_n_threads(handle)),
            n_threads_batch=int(llama.llama_n_threads_batch(handle)),
            flash_attn=self._flash_attn(effective.flash_attn),
        )
        return Context(handle, model, taken, self._logged_sizes(model.devices))

    def failure(self, outcome: Outcome, code: str, what: str) -> EngineFailure:
        """Return why the engine did not do ``what``: its own words, or the defaults given."""
        if self.cancel.is_set():
            return Cancelled()
        lines = self.log.errors()
        cause = find_cause(lines)
        if cause:
            return EngineFailure(
                cause.outcome, cause.error.code, cause.error.message, cause.error.hint
            )
        reasons = [line for line in lines if not line.endswith(_SUMMARY)] or lines
        said = f": {shorten(reasons[-1])}" if reasons else " and gave no reason."
        hint = "Try other settings; the last lines of the log are kept with the trial."
        return EngineFailure(outcome, code, f"The engine could not {what}{said}", hint)

    def _load(
        self,
        path: str,
        settings: Settings,
        on_progress: Callable[[float], None],
        *,
        no_alloc: bool = False,
    ) -> Model:
        if not Path(path).is_file():
            message, hint = f"There is no file {path}.", "Choose the model again."
            raise EngineFailure(Outcome.LOAD_FAILED, "file_not_found", message, hint)
        handles = devices.choose(settings)
        names = [devices.name_of(h) for h in handles]
        params = llama.llama_model_default_params()
        # arrays and callbacks must live until the call returns
        device_list = (ctypes.c_void_p * (len(handles) + 1))(*handles)
        buffers = {n: native.dev_buffer_type(h) for n, h in zip(names, handles, strict=True)}
        overrides = parameters.tensor_overrides(settings, buffers)
        shares = parameters.split_shares(settings.tensor_split)
        callback = llama.llama_progress_callback(self._progress(on_progress))
        params.devices = ctypes.addressof(device_list)
        params.tensor_buft_overrides = ctypes.addressof(overrides) if overrides else None
        params.n_gpu_layers = settings.n_gpu_layers
        if shares is not None:
            params.tensor_split = shares
        params.split_mode = parameters.split_mode(settings, len(handles))
        params.load_mode = parameters.LOAD_MODE[settings.load_mode]
        params.progress_callback = callback
        params.no_alloc = no_alloc
        source = PlannedHeader((os.fsencode(path),))
        if no_alloc and self._header:
            source = self._header[1]
        params.kv_overrides = source.overrides
        if len(source.paths) == 1:
            handle = llama.llama_model_load_from_file(source.paths[0], params)
        else:
            paths = (ctypes.c_char_p * len(source.paths))(*source.paths)
            handle = llama.llama_model_load_from_splits(paths, len(paths), params)
        if not handle:
            raise self.failure(Outcome.LOAD_FAILED, "load_failed", f"load {Path(path).name}")
        model = Model(handle, path, settings, names, is_planned=no_alloc)
        sizes = self._logged_sizes(names)
        model.sizes = {key: n for key, n in sizes.items() if key[1] == "model"}
        return model

    def _read_header(self, path: str) -> None:
        """Have the header of ``path`` as it is now; what was planned from another one is void."""
        try:
            state = Path(path).stat()
        except OSError:
            return  # the load says so
        key = path, state.st_ino, state.st_size, state.st_mtime_ns
        if self._header is None or self._header[0] != key:
            self._drop_plan()
            if self._header:
                self._header[1].close()
            self._header = key, planned_header(path)

    def _logged_sizes(self, names: list[str]) -> memory_log.Sizes:
        """Return the buffers of this request's log, where the engine cannot be asked."""
        if native.breakdown_function() is not None:
            return {}
        return memory_log.buffer_sizes(self.log.texts(), names)

    def _progress(self, on_progress: Callable[[float], None]) -> Callable[[float, object], bool]:
        last_ns = 0

        def report(frac: float, _: object) -> bool:
            nonlocal last_ns
            now_ns = time.perf_counter_ns()
            if now_ns - last_ns >= _PROGRESS_NS:
                last_ns = now_ns
                on_progress(frac)
            return not self.cancel.is_set()

        return report

    def _flash_attn(self, requested: FlashAttn) -> FlashAttn:
        """Return what the engine took; there is no getter, only lines of its log."""
        refused = "Flash Attention not supported, set to disabled", "flash_attn is not compatible"
        is_off = requested is FlashAttn.OFF or any(self.log.has(line) for line in refused)
        return FlashAttn.OFF if is_off else FlashAttn.ON

    def _drop_plan(self) -> None:
        if self._planned:
            self._planned.free()
            self._planned = None


def _meta(model: int, key: str) -> str | None:
    buffer = ctypes.create_string_buffer(256)
    length = llama.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode(errors="replace") if length >= 0 else None
