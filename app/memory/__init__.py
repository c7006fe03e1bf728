"""Chooses formula or dry run, judges what fits, and answers the inverse questions."""

from app.memory.memory import Memory
from app.memory.overhead import (
    DRIVER_CONTEXT,
    GROWTH,
    Overhead,
    calibration_slot,
    depth_bucket,
)

__all__ = ["DRIVER_CONTEXT", "GROWTH", "Memory", "Overhead", "calibration_slot", "depth_bucket"]
