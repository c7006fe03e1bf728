"""The façade that the command line and the window call: tune, estimate, chat, probe, doctor."""

from app.session.facade import Probing, Session
from app.session.serving import Server
from app.session.talk import Chat
from app.session.views import Estimate, IfClosed, ModelEntry

__all__ = ["Chat", "Estimate", "IfClosed", "ModelEntry", "Probing", "Server", "Session"]
