"""Samples the probes on a schedule, keeps the recent past, and watches over trials."""

from app.telemetry.ring import Series
from app.telemetry.telemetry import HOST, Telemetry
from app.telemetry.window import Window

__all__ = ["HOST", "Series", "Telemetry", "Window"]
