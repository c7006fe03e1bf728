"""The formats by name."""

import sys
from collections.abc import Callable

import msgspec

from app.domain.settings import SplitMode
from app.export.llama_cpp import llama_bench, llama_cpp_python, llama_server
from app.export.other import koboldcpp, lmstudio, ollama
from app.export.target import Exported
from app.store import Profile

FORMATS: dict[str, Callable[[Profile, bool], Exported]] = {
    "llama-server": lambda profile, windows: llama_server(profile, windows=windows),
    "llama-bench": lambda profile, windows: llama_bench(profile, windows=windows),
    "llama-cpp-python": lambda profile, _: llama_cpp_python(profile),
    "ollama": lambda profile, _: ollama(profile),
    "lmstudio": lambda profile, _: lmstudio(profile),
    "koboldcpp": lambda profile, _: koboldcpp(profile),
}


def render(profile: Profile, target: str, *, windows: bool = sys.platform == "win32") -> Exported:
    """Return a profile for ``target``, with what it cannot express.

    Args:
        profile: The profile.
        target: A key of ``FORMATS``.
        windows: Quote commands for cmd.exe instead of a POSIX shell.

    Raises:
        UsageProblem: The profile cannot be put into this format.
    """
    settings = profile.settings
    if not (settings.devices or settings.n_gpu_layers):
        # no device shares nothing; llama.cpp refuses to load that by tensor
        settings = msgspec.structs.replace(settings, split_mode=SplitMode.LAYER)
        profile = msgspec.structs.replace(profile, settings=settings)
    return FORMATS[target](profile, windows)


def export(profile: Profile, target: str, *, windows: bool = sys.platform == "win32") -> str:
    """Return only the text of ``render``.

    Raises:
        UsageProblem: The profile cannot be put into this format.
    """
    return render(profile, target, windows=windows).text
