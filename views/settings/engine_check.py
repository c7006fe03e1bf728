"""Measures profiles again with both engines, and says what an upgrade did to them."""

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.domain.units import MISSING, significant
from views.bridge import Jobs
from views.port import SessionPort
from views.words import error_text, number

if TYPE_CHECKING:
    from app.session.engine_verdict import EngineChecked, Speeds

translate = QCoreApplication.translate

KIND = "search"
"""The same kind of job as a search: closing the window asks, and both need the engine."""


def check_profiles(
    session: SessionPort, jobs: Jobs, ids: tuple[str, ...], cancel: threading.Event
) -> Iterator[object]:
    """Measure each profile again; what was found before a cancel is kept."""
    with jobs.engine_turn(cancel) as is_ours:
        if not is_ours:
            return
        with session.measuring("engine"):
            for profile_id in ids:
                with closing(session.engines().check(profile_id)) as events:
                    for event in events:
                        yield event
                        if cancel.is_set():
                            return


def checked_text(found: "EngineChecked") -> str:
    """Return what measuring a profile again showed, in one sentence."""
    verdicts = {
        "faster": translate("EngineCheck", "{name}: faster than before ({speeds})."),
        "same": translate("EngineCheck", "{name}: as fast as before ({speeds})."),
        "unclear": translate(
            "EngineCheck", "{name}: not told apart from before by these measurements ({speeds})."
        ),
        "slower": translate(
            "EngineCheck", "{name}: slower than before ({speeds}). You can go back to the earlier "
            "engine.",
        ),
        "broken": translate("EngineCheck", "{name}: does not run on this engine. {why}"),
        "first": translate(
            "EngineCheck", "{name}: measured ({speeds}); there was nothing to compare with."
        ),
    }  # fmt: skip
    why = error_text(found.error) if found.error is not None else ""
    text = verdicts[found.verdict].format(name=found.profile_name, speeds=_speeds(found), why=why)
    return text.strip()


def _speeds(found: "EngineChecked") -> str:
    if found.reference is None or found.current is None:
        return f"{_decode(found.current)} tok/s"
    before, now = found.reference.decode_tok_s.median, found.current.decode_tok_s.median
    percent = number(100 * (now / before - 1)) if before else MISSING
    percent = percent.replace("-", "−") if percent.startswith("-") else f"+{percent}"
    text = translate("EngineCheck", "decode was {before}, now {now} tok/s: {percent}\u00a0%")
    return text.format(
        before=_decode(found.reference), now=_decode(found.current), percent=percent
    )  # fmt: skip


def _decode(speeds: "Speeds | None") -> str:
    return MISSING if speeds is None else significant(speeds.decode_tok_s.median)
