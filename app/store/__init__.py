"""What RigTune remembers: sweeps, profiles, conversations and calibrations, in one SQLite file.

The names are imported when first asked for: the window starts with the preferences alone, and
everything else here costs it as much as a frame or two.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.store.records import (
        Calibration,
        CalibrationKey,
        Conversation,
        Profile,
        SearchHit,
        StoredMessage,
        StoredSweep,
        SweepFingerprint,
        sweep_fingerprint,
        what_changed,
    )
    from app.store.store import Store

__all__ = [
    "Calibration",
    "CalibrationKey",
    "Conversation",
    "Profile",
    "SearchHit",
    "Store",
    "StoredMessage",
    "StoredSweep",
    "SweepFingerprint",
    "sweep_fingerprint",
    "what_changed",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    module = importlib.import_module("app.store.store" if name == "Store" else "app.store.records")
    return getattr(module, name)
