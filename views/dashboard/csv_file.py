"""The live readings as a CSV file. Runs on a thread: there may be a hundred thousand rows."""

import csv
import io
import time
from collections.abc import Sequence
from math import isnan

from app.domain.record import Record
from views.feed import TelemetryFeed

HEADER = ("device", "quantity", "unit", "seconds_before_export", "value")


class Column(Record, frozen=True, kw_only=True):
    """One quantity of one device.

    Attributes:
        device: Name of the device.
        key: The device in the telemetry.
        field: Field of its samples: the quantity's name in the file, the same in every language.
        unit: Unit in the file.
        scale: Factor from stored to written numbers.
        offset: Added after scaling.
    """

    device: str
    key: str
    field: str
    unit: str
    scale: float = 1.0
    offset: float = 0.0


def csv_text(feed: TelemetryFeed, columns: Sequence[Column]) -> str:
    """Return everything that is kept of ``columns``, oldest first; numbers with a point."""
    now_s = time.perf_counter()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for column in columns:
        series = feed.series(column.key, column.field)
        if series is None:
            continue
        for t_s, value in zip(series.t_s, series.values, strict=True):
            if isnan(value):
                continue
            shown = value * column.scale + column.offset
            writer.writerow(
                (column.device, column.field, column.unit, f"{now_s - t_s:.1f}", f"{shown:.6g}")
            )
    return out.getvalue()
