"""Tensors that are to lie elsewhere than the rule puts them: llama.cpp's ``--override-tensor``.

Written as llama.cpp takes it, ``PATTERN=BUFFER,…``: the first pattern that is found in a
tensor's name decides. A pattern cannot contain a comma or an equals sign, as there.
"""

import re
from functools import lru_cache

from app.domain.errors import UsageProblem
from app.domain.record import Record

CPU_BUFFER = "CPU"
"""The buffer that keeps a tensor in RAM."""
_MAX_LENGTH = 4096
_HINT = r"Write PATTERN=BUFFER, e.g. blk\.(0|1)\.ffn_.*_exps=CPU."
# what Python's patterns have and ECMAScript's, which llama.cpp compiles, have not (and [[:…:]],
# which is the other way round)
_NOT_IN_BOTH = re.compile(r"\(\?(?![:=!])|\\[AZ]|[*+?}]\+|\[\[:")

# a repetition of what repeats: on a name without a match that takes hours
_NESTED = re.compile(r"\((?:[^()\\]|\\.)*[*+}](?:[^()\\]|\\.)*\)[*+{]")


class OverrideRule(Record, frozen=True, kw_only=True):
    """One rule.

    Attributes:
        pattern: A regular expression, found anywhere in a tensor's name.
        buffer: ``CPU``, or a device's name (over RPC with its address: ``RPC0[HOST:PORT]``).
    """

    pattern: str
    buffer: str

    @property
    def device(self) -> str | None:
        """The engine device whose buffer this is; ``None`` = RAM."""
        return None if self.buffer == CPU_BUFFER else self.buffer.partition("[")[0]


@lru_cache(maxsize=64)
def read_overrides(text: str) -> tuple[OverrideRule, ...]:
    """Return the rules of an ``override_tensor`` setting, in their order; empty text has none.

    Raises:
        UsageProblem: A rule is no ``PATTERN=BUFFER``, or its pattern is none.
    """
    if len(text) > _MAX_LENGTH:
        raise _bad(text[:40] + "…", f"it is longer than {_MAX_LENGTH} characters")
    return tuple(_rule(part) for part in text.split(",")) if text else ()


def override_for(rules: tuple[OverrideRule, ...], name: str) -> OverrideRule | None:
    """Return the rule that decides where the tensor ``name`` lies, if there is one."""
    return next((r for r in rules if re.search(r.pattern, name, re.ASCII)), None)


def check_overrides(text: str, devices: tuple[str, ...]) -> None:
    """Refuse rules whose buffer is neither RAM nor on one of ``devices``.

    Raises:
        UsageProblem: Says which buffer there is not, and which there are.
    """
    for rule in read_overrides(text):
        if rule.device is not None and rule.device not in devices:
            known = ", ".join((CPU_BUFFER, *devices))
            message = f"There is no buffer {rule.buffer!r} to put tensors in."
            raise UsageProblem("unknown_buffer", message, f"Buffers of the devices used: {known}.")


def _rule(text: str) -> OverrideRule:
    pattern, equals, buffer = text.partition("=")
    if not (pattern and equals and buffer) or not text.isprintable():
        raise _bad(text, "it is no PATTERN=BUFFER")
    unknown = _NOT_IN_BOTH.search(pattern)
    if unknown:
        raise _bad(text, f"llama.cpp's patterns have no {unknown[0]!r}")
    if _NESTED.search(pattern):
        raise _bad(text, "it repeats what repeats already")
    try:
        re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise _bad(text, f"the pattern is broken: {error}") from error
    return OverrideRule(pattern=pattern, buffer=buffer)


def _bad(text: str, why: str) -> UsageProblem:
    return UsageProblem("bad_overrides", f"--override-tensor cannot be {text!r}: {why}.", _HINT)
