"""What the window remembers between two starts; read before it shows, written after it closes."""

import msgspec

from app.domain.errors import EnvironmentProblem
from app.domain.record import Record, encode_json
from app.runtime import atomic_write, data_dir

FILE_NAME = "window.json"


class WindowState(Record, frozen=True, kw_only=True):
    """Place and last models.

    Attributes:
        geometry: Qt's own description of the window's place, base64.
        last_model: Model the last search or chat used.
        last_profile: Profile last used for chatting.
        recent: Models of the last searches, newest first.
    """

    geometry: str = ""
    last_model: str = ""
    last_profile: str = ""
    recent: tuple[str, ...] = ()


def load_state() -> WindowState:
    """Return the stored state, or a fresh one: a broken file costs a window position, no more."""
    try:
        return msgspec.json.decode((data_dir() / FILE_NAME).read_bytes(), type=WindowState)
    except (OSError, EnvironmentProblem, msgspec.DecodeError):
        return WindowState()


def save_state(state: WindowState) -> None:
    """Write the state; where that cannot be done the next start begins afresh."""
    try:
        atomic_write(data_dir() / FILE_NAME, encode_json(state))
    except EnvironmentProblem:
        return
