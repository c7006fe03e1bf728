"""The façade that the command line and the window call: tune, estimate, chat, probe, doctor."""

from app.session.check import CommandChecked
from app.session.draft import DraftTried
from app.session.engine_verdict import EngineChecked
from app.session.engines import EngineName, Engines, EngineStanding, EngineState
from app.session.facade import Session
from app.session.probing import Probing
from app.session.serving import Server
from app.session.talk import Chat
from app.session.views import Estimate, IfClosed, ModelEntry, Prediction, Remedy

__all__ = [
    "Chat",
    "CommandChecked",
    "DraftTried",
    "EngineChecked",
    "EngineName",
    "EngineStanding",
    "EngineState",
    "Engines",
    "Estimate",
    "IfClosed",
    "ModelEntry",
    "Prediction",
    "Probing",
    "Remedy",
    "Server",
    "Session",
]
