"""What RigTune remembers: sweeps, profiles, conversations and calibrations, in one SQLite file."""

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
