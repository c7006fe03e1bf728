"""Values of a command line: numbers and choices, and what is said of those that cannot be."""

from app.domain.errors import UsageProblem
from app.domain.settings import SETTINGS
from app.domain.sweep import Reason

AUTO = {"auto", "-1"}
INFO = {info.name: info for info in SETTINGS}


def number(options: dict[str, str], name: str, default: int, low: int | None = None) -> int:
    """Return the whole number of option ``name``; ``default`` where it is left to llama.cpp.

    Raises:
        UsageProblem: It is none, or below ``low``.
    """
    text = options.get(name)
    if text is None or text in AUTO:
        return default
    try:
        value = int(text)
    except ValueError as error:
        raise bad(name, text, "It must be one whole number.") from error
    if low is not None and value < low:
        raise bad(name, text, f"It must be at least {low}.")
    return value


def choice(options: dict[str, str], name: str, default: str) -> str:
    """Return the choice of option ``name``.

    Raises:
        UsageProblem: There is no such choice.
    """
    if (value := options.get(name, default)) in INFO[name].choices:
        return value
    raise bad(name, value, f"Allowed: {', '.join(INFO[name].choices)}.")


def bad(name: str, value: str, hint: str) -> UsageProblem:
    """Return the problem that option ``name`` cannot be ``value``."""
    flag = INFO[name].flag if name in INFO else "--" + name.replace("_", "-")
    return UsageProblem("bad_option", f"{flag} cannot be {value!r}.", hint)


def note(code: str, **data: str | int) -> Reason:
    """Return what is to be said of a command line, a code of ``[check]``."""
    return Reason(code=code, data=dict(data))
