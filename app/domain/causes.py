"""What the last lines of an engine's log say about why it failed.

The child reads them when the engine refuses something, the parent when the child has died.
"""

import re
from collections.abc import Sequence

from app.domain.errors import ErrorInfo
from app.domain.outcome import Outcome
from app.domain.record import Record


class Cause(Record, frozen=True, kw_only=True):
    """A reason for a failure: how the trial ends and what to tell the user."""

    outcome: Outcome
    error: ErrorInfo


class _Rule(Record, frozen=True, kw_only=True):
    pattern: str
    outcome: Outcome
    code: str
    message: str
    hint: str


# Texts of llama.cpp, ggml's backends, CUDA and Vulkan as they were seen in real failures.
# The first rule that matches any line wins.
_RULES: tuple[_Rule, ...] = (
    _Rule(
        pattern=r"device ?lost|launch timed out|unspecified launch failure|\bTDR\b|"
        r"device removed|fallen off the bus|nvlink error|uncorrectable ECC",
        outcome=Outcome.DEVICE_LOST,
        code="device_lost",
        message="The graphics driver reset the device or lost it.",
        hint="Wait until the device answers again; if it repeats, use a smaller n_ubatch.",
    ),
    _Rule(
        pattern=r"RPC server (crashed|disconnected)|failed to connect to .*:\d|"
        r"RPC.*(malformed|connection)",
        outcome=Outcome.DEVICE_LOST,
        code="remote_lost",
        message="The connection to a remote device broke.",
        hint="Check that the RPC server runs and that its version equals this engine's.",
    ),
    _Rule(
        pattern=r"in a buffer \(.*\) that cannot run the operation",
        outcome=Outcome.OUT_OF_MEMORY,
        code="device_buffer_limit",
        message="A single buffer would be larger than the device allows.",
        hint="Use a shorter context, or a smaller KV cache type.",
    ),
    _Rule(
        pattern=r"out of memory|cudaMalloc failed|(failed|unable) to allocate|"
        r"OutOf(Device|Host|Pool)Memory|bad_alloc|cannot allocate memory|alloc failed|"
        r"failed to reserve|cuMemCreate",
        outcome=Outcome.OUT_OF_MEMORY,
        code="out_of_memory",
        message="The device (or RAM) had no room for what these settings need.",
        hint="Use fewer GPU layers, a shorter context or a smaller n_ubatch.",
    ),
    _Rule(
        pattern=r"does not support split buffers",
        outcome=Outcome.UNSUPPORTED,
        code="no_split_buffers",
        message="A device cannot divide matrices by rows (split_mode row).",
        hint="Use split_mode layer, the default; several equal cards may try split_mode tensor.",
    ),
    _Rule(
        pattern=r"SPLIT_MODE_TENSOR (not implemented|requires|needs)",
        outcome=Outcome.UNSUPPORTED,
        code="no_tensor_split",
        message="Split mode tensor does not work with this model or these settings.",
        hint="Use split_mode layer, the default; tensor needs flash attention and a device.",
    ),
    _Rule(
        pattern=r"unknown model architecture|cannot be used as main model",
        outcome=Outcome.UNSUPPORTED,
        code="unsupported_model",
        message="This engine build cannot run this model.",
        hint="Use another model, or a newer engine with --engine-dir.",
    ),
    _Rule(
        pattern=r"quantized V cache",
        outcome=Outcome.UNSUPPORTED,
        code="needs_flash_attn",
        message="A quantised V cache needs flash attention.",
        hint="Switch flash attention on, or use an f16 V cache.",
    ),
)


def find_cause(lines: Sequence[str]) -> Cause | None:
    """Return the cause that ``lines`` name, or ``None`` when they name none.

    Args:
        lines: Lines of the engine's log or of its standard error, oldest first.
    """
    for rule in _RULES:
        found = next(
            (x for x in reversed(lines) if re.search(rule.pattern, x, re.IGNORECASE)), None
        )
        if found is not None:
            message = f"{rule.message} The engine said: {shorten(found)}"
            error = ErrorInfo(code=rule.code, message=message, hint=rule.hint)
            return Cause(outcome=rule.outcome, error=error)
    return None


def shorten(line: str, limit: int = 300) -> str:
    """Return ``line`` without surrounding space, cut to ``limit`` characters."""
    text = " ".join(line.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
