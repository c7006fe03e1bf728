"""The user's models: the demo model, what other programs downloaded, and names for both."""

from app.library.demo import DEMO_BYTES, demo_model, demo_path, has_demo
from app.library.find import FoundModel, find_models
from app.library.resolve import DEMO, resolve_model, resolve_repo

__all__ = [
    "DEMO",
    "DEMO_BYTES",
    "FoundModel",
    "demo_model",
    "demo_path",
    "find_models",
    "has_demo",
    "resolve_model",
    "resolve_repo",
]
