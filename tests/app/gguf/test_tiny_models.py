"""The models other tests run on are accepted by the real engine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import models
from tests.fakes.models import TINY_ARCHS, make_model

DECODE = Path(models.__file__).with_name("decode_models.py")


@pytest.mark.engine
def test_every_tiny_model_decodes(tmp_path: Path) -> None:
    """Each architecture, several types and a split model load and give finite logits."""
    paths = [make_model(tmp_path / f"{a}.gguf", a, n_layer=4) for a in TINY_ARCHS]
    paths += [make_model(tmp_path / f"{t}.gguf", tensor_type=t) for t in ("F32", "Q8_0", "Q4_0")]
    paths.append(make_model(tmp_path / "s-00001-of-00002.gguf", n_shards=2))
    done = subprocess.run(
        [sys.executable, str(DECODE), *map(str, paths)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"GGML_NO_BACKTRACE": "1"},
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(paths)
    for result in results:
        assert (result["status"], result["is_finite"]) == (0, True), result["path"]
