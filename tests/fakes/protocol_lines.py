"""One example of every message of the worker protocol."""

from app.domain.errors import ErrorInfo
from app.domain.machine import EngineDevice, EngineInfo, GpuKind
from app.domain.memory import DeviceMemory
from app.domain.outcome import Outcome
from app.domain.pacing import Pace
from app.domain.settings import FlashAttn, LoadMode, Settings
from app.domain.trial import Sample, Workload
from app.worker import protocol

SETTINGS = Settings(
    n_gpu_layers=27, n_cpu_moe=2, n_ctx=8192, flash_attn=FlashAttn.AUTO, type_k="q8_0",
    type_v="q8_0", n_threads=8, n_threads_batch=16, load_mode=LoadMode.NONE, devices=("CUDA0",),
    override_tensor="ffn_up_exps=CPU",
)  # fmt: skip
_ERROR = ErrorInfo(code="out_of_memory", message="No room.", hint="Use fewer layers.")
_SAMPLE = Sample(n_tok=64, ns=1_500_000_000)
_MEMORY = DeviceMemory(
    device="CUDA0", weights_bytes=4_000_000_000, kv_cache_bytes=117_440_512,
    compute_bytes=319_815_680, total_bytes=4_437_256_192,
)  # fmt: skip
_ENGINE = EngineInfo(
    version="0.3.36", llama_version="0.5.0-dev", commit="0c1e57098bba", backends=("CUDA", "CPU"),
    devices=(
        EngineDevice(
            name="CUDA0", backend="CUDA", description="A card", kind=GpuKind.DISCRETE,
            total_bytes=8_589_934_592, free_bytes=8_000_000_000, pci_id="0000:01:00.0",
        ),
    ),
    supports_offload=True,
)  # fmt: skip

REQUESTS: list[protocol.Message] = [
    protocol.Load(model_path="/models/a.gguf", settings=SETTINGS),
    protocol.DryRun(model_path="/models/a.gguf", settings=SETTINGS),
    protocol.RunTrial(
        settings=SETTINGS, workload=Workload(depth=2048), min_reps=3, max_reps=8, max_s=20.0
    ),
    protocol.Generate(
        settings=SETTINGS,
        messages=(protocol.ChatMessage(role="user", content="Grüße, 世界"),),
        max_tokens=128,
        sampling=protocol.Sampling(seed=7),
        stop=("\n\n",),
        template="chatml",
        pace=Pace(duty=0.5),
    ),
    protocol.SetPace(pace=Pace(duty=0.25)),
    protocol.Tokenize(text="hello"),
    protocol.CheckTemplate(),
    protocol.CheckOutput(settings=SETTINGS, n_tok=256, reference=SETTINGS),
    protocol.Speculate(
        settings=SETTINGS,
        draft_path="/models/b.gguf",
        draft_settings=SETTINGS,
        n_draft=8,
        n_gen=64,
        n_turns=5,
        max_s=30.0,
    ),
    protocol.Serve(
        model_path="/models/a.gguf", settings=SETTINGS, alias="a", port=0, token="0123abcd"
    ),
    protocol.Cancel(),
    protocol.Shutdown(),
]
REPLIES: list[protocol.Message] = [
    protocol.Hello(
        protocol=1,
        app_version="0.1.0",
        pid=4242,
        engine=_ENGINE,
        chat_templates=("chatml", "llama3"),
    ),
    protocol.LoadStarted(),
    protocol.LoadProgress(frac=0.5),
    protocol.LoadFinished(requested=SETTINGS, effective=SETTINGS, elapsed_ns=1_200_000_000),
    protocol.DryRunFinished(devices=(_MEMORY,), effective=SETTINGS, elapsed_ns=7_000_000),
    protocol.TrialStarted(effective=SETTINGS, devices=(_MEMORY,)),
    protocol.TrialProgress(phase="warm_up", frac=0.25),
    protocol.TrialSample(phase="decode", sample=_SAMPLE),
    protocol.TrialFinished(prefill=(_SAMPLE,), decode=(_SAMPLE, _SAMPLE)),
    protocol.GenerateStarted(n_prompt=12, n_reused=4, template="model", n_ctx=8192),
    protocol.GenerateProgress(phase="prefill", n_done=8),
    protocol.Token(text="世", n_tok=1),
    protocol.Token(text="hm", n_tok=2, kind="reasoning"),
    protocol.GenerateFinished(
        reason="stop", n_prompt=12, n_reused=4, n_gen=30,
        ttft_ns=80_000_000, prefill_ns=70_000_000, decode_ns=900_000_000,
    ),
    protocol.TokenizeFinished(n_tok=9, per_message=(2, 3)),
    protocol.TemplateChecked(
        template="model",
        findings=(protocol.TemplateFinding(error=_ERROR, stop="<|end|>"),),
        turn_end="<|end|>",
        builtin="phi3",
    ),
    protocol.OutputChecked(
        kl_mean_nats=0.002, kl_max_nats=0.01, same_top=8, n_places=8, n_tok=256
    ),
    protocol.Speculated(
        plain=(_SAMPLE,), drafted=(_SAMPLE,), n_drafted=40, n_accepted=22, same_output=True
    ),
    protocol.ServeStarted(port=8123, effective=SETTINGS, devices=(_MEMORY,)),
    protocol.ServeProgress(n_requests=3, n_active=1),
    protocol.ServeFinished(n_requests=3),
    protocol.Heartbeat(),
    protocol.Log(level="error", text="cudaMalloc failed: out of memory"),
    protocol.Failed(outcome=Outcome.OUT_OF_MEMORY, error=_ERROR),
    protocol.Bye(),
]  # fmt: skip
