"""What a user may type for a model."""

import os
import sys
from pathlib import Path

import pytest

from app.domain.errors import EnvironmentProblem, UsageProblem
from app.library import resolve_model, resolve_repo


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("RIGTUNE_HOME", str(tmp_path / "rigtune"))
    for name in ("OLLAMA_MODELS", "HF_HOME", "HF_HUB_CACHE", "LLAMA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _model(home: Path, name: str) -> Path:
    path = home / ".lmstudio" / "models" / f"{name}.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(name.encode())
    return path


def test_a_path_is_taken_as_it_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths come back absolute, relative to the current folder or to the home folder."""
    path = _model(home, "a/b/m")
    monkeypatch.chdir(path.parent)
    assert resolve_model("m.gguf") == path
    assert resolve_model("~/.lmstudio/models/a/b/m.gguf") == path


@pytest.mark.parametrize("typed", ["lmstudio:a/b/Qwen-Q4", "a/b/Qwen-Q4", "qwen-q4"])
def test_ids_and_unambiguous_names(home: Path, typed: str) -> None:
    """The id, the name and its last part find the model, in any case."""
    path = _model(home, "a/b/Qwen-Q4")
    assert resolve_model(typed) == path


def test_ambiguous_names_list_the_choices(home: Path) -> None:
    """A name that two models share is refused with both ids."""
    _model(home, "a/b/m")
    _model(home, "a/c/m")
    with pytest.raises(UsageProblem) as caught:
        resolve_model("m")
    assert caught.value.info.code == "model_ambiguous"
    assert "lmstudio:a/b/m" in caught.value.info.message
    assert "lmstudio:a/c/m" in caught.value.info.message


@pytest.mark.parametrize(
    ("typed", "code"), [("nothing", "model_not_found"), (".", "model_is_folder")]
)
def test_what_is_no_model_is_said(home: Path, typed: str, code: str) -> None:
    """Unknown names and folders are problems the user can mend, with a hint."""
    with pytest.raises(EnvironmentProblem) as caught:
        resolve_model(typed)
    assert caught.value.exit_code == 3
    assert caught.value.info.code == code
    assert caught.value.info.hint


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes, and links need a privilege")
def test_what_is_there_is_left_to_the_reader(home: Path) -> None:
    """A pipe and a dead link are no unknown name: the reader says what they are."""
    os.mkfifo(home / "pipe.gguf")
    (home / "link.gguf").symlink_to("gone.gguf")
    for name in ("pipe.gguf", "link.gguf"):
        assert resolve_model(str(home / name)) == home / name


def _cached(home: Path, repo: str, file: str) -> Path:
    folder = "models--" + repo.replace("/", "--")
    path = home / ".cache" / "huggingface" / "hub" / folder / "snapshots" / "1" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.encode())
    return path


def test_a_repository_as_llama_cpp_names_it(home: Path) -> None:
    """``-hf org/repo:quant`` finds the file that was downloaded for it, and only that."""
    fine = _cached(home, "org/Gemma-GGUF", "gemma-Q8_0.gguf")
    _cached(home, "org/Gemma-GGUF", "gemma-Q4_K_M.gguf")
    _cached(home, "org/Gemma-GGUF-2", "gemma-Q8_0.gguf")
    assert resolve_repo("org/gemma-gguf:q8_0") == fine
    with pytest.raises(UsageProblem, match="one of 2"):
        resolve_repo("org/Gemma-GGUF")
    with pytest.raises(EnvironmentProblem, match="No file"):
        resolve_repo("org/Other-GGUF:Q8_0")
