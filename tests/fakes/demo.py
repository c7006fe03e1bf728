"""The demo model for tests that need real weights."""

from functools import cache

from app.domain.model import ModelSpec
from app.gguf import read_model
from app.library import demo_model


@cache
def demo_spec() -> ModelSpec:
    """Return the demo model as its header describes it."""
    return read_model(demo_model())
