"""The demo model is put together once, whole or not at all."""

import sys
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem
from app.library import demo


class _Package:
    """Stands in for the package from PyPI: the real one copies 241 MiB per call."""

    def __init__(self, content: bytes, error: Exception | None = None) -> None:
        self.content = content
        self.error = error
        self.calls = 0

    def assemble(self, path: Path) -> Path:
        self.calls += 1
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.content)
        if self.error:
            raise self.error
        return path


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path))
    monkeypatch.setattr(demo, "DEMO_BYTES", 4)
    return tmp_path / "data" / "models"


def test_assembles_once(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call returns the file without touching the package; a wrong size repairs it."""
    package = _Package(b"GGUF")
    monkeypatch.setitem(sys.modules, demo.DEMO_PACKAGE, package)
    path = demo.demo_model()
    assert path.read_bytes() == b"GGUF"
    assert demo.demo_model() == path
    assert package.calls == 1
    path.write_bytes(b"GG")
    assert demo.demo_model().read_bytes() == b"GGUF"
    assert list(models.iterdir()) == [path]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("sha256"), "demo_damaged"),
        (FileNotFoundError("part 3"), "demo_damaged"),
        (OSError(28, "No space left on device"), "disk_full"),
    ],
)
def test_failure_leaves_nothing_behind(
    models: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    """A failed assembly is a sentence, and no part of the model stays."""
    monkeypatch.setitem(sys.modules, demo.DEMO_PACKAGE, _Package(b"GG", error))
    with pytest.raises(EnvironmentProblem) as caught:
        demo.demo_model()
    assert caught.value.info.code == code
    assert list(models.iterdir()) == []


def test_missing_package_says_how_to_get_it(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the hint names the command that installs it."""
    monkeypatch.setitem(sys.modules, demo.DEMO_PACKAGE, None)
    with pytest.raises(EnvironmentProblem) as caught:
        demo.demo_model()
    assert caught.value.info.code == "demo_not_installed"
    assert "bootstrap.py" in caught.value.info.hint
