"""What must hold for every format."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.settings import KV_TYPES
from app.export import FORMATS, export
from tests.fakes.profiles import PROFILE, with_settings


def test_comments_cannot_be_left() -> None:
    """A profile name with line breaks stays inside its comment."""
    profile = msgspec.structs.replace(PROFILE, name="x\nimport os\nos.abort()")
    for target in ("llama-cpp-python", "ollama"):
        first, second, *_ = export(profile, target).splitlines()
        assert "os.abort()" in first
        assert second.startswith("# ")


@given(
    n_gpu_layers=st.integers(0, 33),
    n_ctx=st.integers(256, 1 << 20),
    kind=st.sampled_from(sorted(KV_TYPES)),
    n_threads=st.integers(0, 64),
    devices=st.lists(st.sampled_from(["CUDA0", "Vulkan1", "RPC0", "SYCL2"]), max_size=2),
)
@settings(max_examples=30, deadline=None)
def test_every_format_takes_every_profile(
    n_gpu_layers: int, n_ctx: int, kind: str, n_threads: int, devices: list[str]
) -> None:
    """No combination of settings breaks a format; llama-bench alone has no f32 cache."""
    profile = with_settings(
        n_gpu_layers=n_gpu_layers,
        n_ctx=n_ctx,
        type_k=kind,
        n_threads=n_threads,
        devices=tuple(devices),
    )
    for target in FORMATS:
        if (target, kind) != ("llama-bench", "f32"):
            assert export(profile, target)
