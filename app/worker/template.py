"""Runs a model's own chat template: a program from a stranger's file, so it is boxed in.

Three walls: jinja's sandbox keeps it away from Python's insides; a tracer stops it after
``MAX_S`` (as its caller counts), loops included; an address space limit, where the system has
one, turns a huge text into an error. What none of them can interrupt, one endless call inside C
code, is left to the parent, which ends a worker that says nothing in phase ``template``.
"""

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any

import jinja2
import jinja2.ext
import psutil
from jinja2.sandbox import ImmutableSandboxedEnvironment
from typing_extensions import override

if sys.platform != "win32":
    import resource

MAX_S = 1.2
MAX_SOURCE_CHARS = 262_144
MAX_EXTRA_CHARS = 1 << 20
"""Characters a template may add to those of the conversation."""

_MEMORY_BYTES = 512 << 20
_LOOPING = frozenset({"jinja2.filters", "jinja2.runtime", "jinja2.utils"})
_MAX_FACTOR = 100_000
# text operations that make much of little and that no chat template needs
_NO_FILTERS = ("center", "filesizeformat", "pprint", "random", "urlize", "wordwrap", "xmlattr")
_NO_METHODS = frozenset({"center", "expandtabs", "format_map", "ljust", "rjust", "zfill"})


class _TooLong(BaseException):
    """The time is over; no exception that anyone but ``render`` catches."""


class TemplateProblem(Exception):
    """A template that cannot be used on this conversation; the text says why.

    Attributes:
        is_hostile: It tried what no template needs (time, memory, Python's insides).
    """

    def __init__(self, reason: str, *, is_hostile: bool = False) -> None:
        """Keep why."""
        super().__init__(reason)
        self.is_hostile = is_hostile


def render(source: str, messages: list[dict[str, str]], deadline_s: float, **variables: Any) -> str:
    """Return what the template ``source`` makes of ``messages``.

    Args:
        source: Jinja template, as Transformers defines it.
        messages: Turns with ``role`` and ``content``.
        deadline_s: ``time.monotonic`` when it must have ended.
        variables: Further variables, e.g. ``bos_token``.

    Raises:
        TemplateProblem: It refuses the conversation, is broken, or hostile.
    """
    if len(source) > MAX_SOURCE_CHARS:
        raise TemplateProblem(f"it is {len(source):,} characters long", is_hostile=True)
    limit = MAX_EXTRA_CHARS + 4 * sum(len(m["content"]) for m in messages)
    try:
        with _bounded_memory(), _bounded_time(deadline_s):
            return _collect(_compiled(source).generate(messages=messages, **variables), limit)
    except _TooLong as error:
        raise TemplateProblem("it does not end", is_hostile=True) from error
    except TemplateProblem:
        raise
    except jinja2.exceptions.SecurityError as error:
        raise TemplateProblem(str(error), is_hostile=True) from error
    except (MemoryError, OverflowError, RecursionError) as error:
        reason = f"it needs too much ({type(error).__name__})"
        raise TemplateProblem(reason, is_hostile=True) from error
    except Exception as error:
        raise TemplateProblem(str(error) or type(error).__name__) from error


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox without operators and methods that make much of little."""

    intercepted_binops = frozenset({"*", "**", "<<", "%"})

    @override
    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Multiply small things only; there is no power."""
        if operator == "**":
            raise jinja2.exceptions.SecurityError("powers are not allowed")
        if operator == "%" and isinstance(left, str):
            raise jinja2.exceptions.SecurityError("formatting with % is not allowed")
        if operator == "*" and not (_is_small(left) and _is_small(right)):
            raise jinja2.exceptions.SecurityError("the product is too large")
        return super().call_binop(context, operator, left, right)

    @override
    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Refuse what jinja refuses, and padding."""
        return attr not in _NO_METHODS and super().is_safe_attribute(obj, attr, value)


class _GenerationTag(jinja2.ext.Extension):
    """Hugging Face's ``{% generation %}``, which marks text and does nothing else."""

    tags = {"generation"}

    @override
    def parse(self, parser: Any) -> Any:
        """Return the statements inside."""
        parser.stream.skip(1)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@lru_cache(maxsize=2)
def _compiled(source: str) -> jinja2.Template:
    environment = _Sandbox(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_GenerationTag, jinja2.ext.loopcontrols],
    )
    for name in _NO_FILTERS:
        environment.filters.pop(name, None)
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = _strftime_now
    return environment.from_string(source)


def _is_small(value: Any) -> bool:
    if isinstance(value, str | list | tuple):
        return len(value) <= _MAX_FACTOR
    return not isinstance(value, int) or abs(value) <= _MAX_FACTOR


def _collect(pieces: Iterator[str], limit: int) -> str:
    parts: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > limit:
            raise TemplateProblem("it writes without end", is_hostile=True)
        parts.append(piece)
    return "".join(parts)


@contextlib.contextmanager
def _bounded_time(deadline_s: float) -> Iterator[None]:
    """Raise inside the template once its time is over, wherever Python code runs."""

    def check(frame: Any, _event: str, _argument: Any) -> Any:
        is_template = frame.f_code.co_filename == "<template>"
        module = frame.f_globals.get("__name__") or ""
        if not is_template and not module.startswith("jinja2."):
            # what is raised here could get lost: a finaliser, a callback of the collector
            return None
        if time.monotonic() > deadline_s:
            raise _TooLong
        # lines are watched where templates loop; reading and compiling one is watched by call
        return check if is_template or module in _LOOPING else None

    before = sys.gettrace()
    sys.settrace(check)
    try:
        yield
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def _bounded_memory() -> Iterator[None]:
    """Let the process grow by ``_MEMORY_BYTES`` only, where the system can be told so."""
    if sys.platform == "win32":
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = psutil.Process().memory_info().vms + _MEMORY_BYTES
    lowered = soft == resource.RLIM_INFINITY or wanted < soft
    if lowered:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        if lowered:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - Transformers' signature
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002 - as above
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=min(indent, 16) if isinstance(indent, int) else None,
        separators=separators,
        sort_keys=sort_keys,
    )


def _refuse(message: str) -> None:
    raise TemplateProblem(message)


def _strftime_now(form: str) -> str:
    return datetime.now().astimezone().strftime(form[:200])
