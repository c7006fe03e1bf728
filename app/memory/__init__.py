"""Chooses formula or dry run, judges what fits, and answers the inverse questions."""

from app.memory.memory import Memory
from app.memory.overhead import Overhead, calibration_slot

__all__ = ["Memory", "Overhead", "calibration_slot"]
