"""The user's models: the demo model, what other programs downloaded, and names for both."""

from app.library.demo import demo_model
from app.library.find import FoundModel, find_models
from app.library.resolve import resolve_model, resolve_repo

__all__ = ["FoundModel", "demo_model", "find_models", "resolve_model", "resolve_repo"]
