"""The bundle, built once for all of these tests."""

import os
from pathlib import Path

import pytest

from tests.fakes.bundle import SUFFIX, Bundle, build


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Return the bundle given by RIGTUNE_BUNDLE, or one built here, under an awkward path."""
    folder = tmp_path_factory.mktemp("bundle 中文")
    given = os.environ.get("RIGTUNE_BUNDLE")
    programs = Path(given) if given else build(folder)
    env = {**os.environ, "RIGTUNE_HOME": str(folder / "home"), "QT_QPA_PLATFORM": "offscreen"}
    env.pop("PYTHONPATH", None)
    return Bundle(programs / f"rigtune{SUFFIX}", programs / f"rigtune-gui{SUFFIX}", env)
