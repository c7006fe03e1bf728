"""Every program's folder layout, built in a temporary folder and read in place."""

import json
import os
from pathlib import Path

import pytest

from app.library import find
from app.library.find import FoundModel, find_models
from app.library.places import Origin, Place, places_of
from tests.fakes.wine import is_wine

DIGEST = "ab" * 32


def _write(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _find(path: Path, origin: Origin = Origin.LM_STUDIO) -> tuple[FoundModel, ...]:
    return find_models([Place(origin=origin, path=path)])


def _manifest(root: Path, where: str, digest: str = f"sha256:{DIGEST}") -> None:
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "cd" * 32},
        {"mediaType": "application/vnd.ollama.image.model", "digest": digest},
    ]
    _write(root / "manifests" / where, json.dumps({"layers": layers}).encode())


def test_lm_studio_names_publisher_and_repository(tmp_path: Path) -> None:
    """LM Studio's models carry publisher/repository/file; partial downloads do not show."""
    path = _write(tmp_path / "org" / "Qwen-GGUF" / "Qwen-Q4_K_M.gguf", b"12345")
    _write(tmp_path / "org" / "Qwen-GGUF" / "Other.gguf.part")
    _write(tmp_path / "org" / "Qwen-GGUF" / "Empty.gguf", b"")
    (model,) = _find(tmp_path)
    assert model.id == "lmstudio:org/Qwen-GGUF/Qwen-Q4_K_M"
    assert (model.path, model.file_bytes, model.is_complete) == (str(path), 5, True)


def test_ollama_manifests_lead_to_blobs(tmp_path: Path) -> None:
    """Ollama's names are name:tag; two tags of one blob are one model with an alias."""
    blob = _write(tmp_path / "blobs" / f"sha256-{DIGEST}")
    _manifest(tmp_path, "registry.ollama.ai/library/llama3/8b")
    _manifest(tmp_path, "registry.ollama.ai/library/llama3/latest")
    _manifest(tmp_path, "registry.ollama.ai/someone/own/v1", "sha256:" + "ef" * 32)
    (model,) = _find(tmp_path, Origin.OLLAMA)
    assert {model.id, *model.aliases} == {"ollama:llama3:8b", "ollama:llama3:latest"}
    assert model.path == str(blob)


def test_ollama_keeps_other_hosts_and_owners(tmp_path: Path) -> None:
    """Only what Ollama itself leaves out of a name is left out."""
    _write(tmp_path / "blobs" / f"sha256-{DIGEST}")
    _manifest(tmp_path, "hf.co/bartowski/Qwen-GGUF/Q4_K_M")
    (model,) = _find(tmp_path, Origin.OLLAMA)
    assert model.name == "hf.co/bartowski/Qwen-GGUF:Q4_K_M"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"layers": 1}',
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model"}]}',
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": 7}]}',
        (
            b'{"layers": [{"mediaType": "application/vnd.ollama.image.model",'
            b' "digest": "sha256:../../../../etc/passwd"}]}'
        ),
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_bad_manifest_hides_only_itself(tmp_path: Path, content: bytes) -> None:
    """A damaged or hostile manifest costs its own entry and no other."""
    _write(tmp_path / "blobs" / f"sha256-{DIGEST}")
    _manifest(tmp_path, "registry.ollama.ai/library/good/1b")
    _write(tmp_path / "manifests" / "registry.ollama.ai" / "library" / "bad" / "1b", content)
    assert [m.name for m in _find(tmp_path, Origin.OLLAMA)] == ["good:1b"]


@pytest.mark.skipif(is_wine(), reason="Wine 8 makes no symbolic links")
def test_hugging_face_snapshots_link_to_blobs(tmp_path: Path) -> None:
    """The cache shows repository and file once, however many revisions link to the blob."""
    repo = tmp_path / "models--org--Repo-GGUF"
    blob = _write(repo / "blobs" / "0a1b", b"123")
    for revision in ("aaa", "bbb"):
        folder = repo / "snapshots" / revision / "sub"
        folder.mkdir(parents=True)
        (folder / "m-Q8_0.gguf").symlink_to(blob)
    (repo / "snapshots" / "aaa" / "gone.gguf").symlink_to(repo / "blobs" / "missing")
    _write(tmp_path / "datasets--org--x" / "snapshots" / "aaa" / "data.gguf")
    (model,) = _find(tmp_path, Origin.HUGGING_FACE)
    assert model.id == "huggingface:org/Repo-GGUF/sub/m-Q8_0"
    assert model.aliases == ()
    assert model.file_bytes == 3


def test_jan_names_the_folder(tmp_path: Path) -> None:
    """Jan calls each file model.gguf: its folder is the name."""
    _write(tmp_path / "org" / "Jan-nano" / "model.gguf")
    assert [m.id for m in _find(tmp_path, Origin.JAN)] == ["jan:org/Jan-nano"]


def test_splits_become_one_model(tmp_path: Path) -> None:
    """Shards show as one model at the first file with the size of all."""
    for index, size in ((2, 20), (1, 10), (3, 30)):
        _write(tmp_path / f"big-Q4-0000{index}-of-00003.gguf", b"x" * size)
    (model,) = _find(tmp_path)
    assert model.name == "big-Q4"
    assert Path(model.path).name == "big-Q4-00001-of-00003.gguf"
    assert (model.file_bytes, model.n_files, model.is_complete) == (60, 3, True)


def test_missing_shard_is_said(tmp_path: Path) -> None:
    """A split model without all its files is listed as incomplete."""
    _write(tmp_path / "big-00002-of-00003.gguf")
    (model,) = _find(tmp_path)
    assert (model.n_files, model.n_files_expected, model.is_complete) == (1, 3, False)


@pytest.mark.skipif(is_wine(), reason="Wine 8 makes no symbolic links")
def test_linked_folders_are_followed_once(tmp_path: Path) -> None:
    """Links to folders are followed (people link their collections), loops are not."""
    real = tmp_path / "elsewhere"
    _write(real / "linked.gguf")
    root = tmp_path / "models"
    root.mkdir()
    (root / "a").symlink_to(real, target_is_directory=True)
    (real / "loop").symlink_to(root, target_is_directory=True)
    (root / "self").symlink_to(root / "self")
    assert [m.name for m in _find(root)] == ["a/linked"]


def test_same_file_in_two_programs_is_one_model(tmp_path: Path) -> None:
    """A file two programs share (a hard link) is listed for the first with an alias."""
    first = _write(tmp_path / "one" / "m.gguf")
    (tmp_path / "two").mkdir()
    os.link(first, tmp_path / "two" / "copy.gguf")
    places = [
        Place(origin=Origin.LM_STUDIO, path=tmp_path / "one"),
        Place(origin=Origin.GPT4ALL, path=tmp_path / "two"),
    ]
    (model,) = find_models(places)
    assert (model.id, model.aliases) == ("lmstudio:m", ("gpt4all:copy",))


def test_walk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither depth nor breadth of a folder can keep the listing from ending."""
    _write(tmp_path / Path(*"0123456789") / "deep.gguf")
    _write(tmp_path / "1" / "shallow.gguf")
    assert [m.name for m in _find(tmp_path)] == ["1/shallow"]
    monkeypatch.setattr(find, "MAX_ENTRIES", 0)
    assert _find(tmp_path) == ()


def test_absent_and_unreadable_places_are_empty(tmp_path: Path) -> None:
    """A folder that is not there, or is a file, is simply empty."""
    _write(tmp_path / "file")
    assert _find(tmp_path / "gone") == ()
    assert _find(tmp_path / "file", Origin.OLLAMA) == ()


@pytest.mark.parametrize(
    ("platform", "environ", "origin", "expected"),
    [
        ("linux", {}, Origin.LM_STUDIO, ".lmstudio/models"),
        ("linux", {}, Origin.LM_STUDIO, ".cache/lm-studio/models"),
        ("linux", {}, Origin.OLLAMA, ".ollama/models"),
        ("linux", {"OLLAMA_MODELS": "/x/o"}, Origin.OLLAMA, "/x/o"),
        ("linux", {}, Origin.HUGGING_FACE, ".cache/huggingface/hub"),
        ("linux", {"HF_HOME": "/x/h"}, Origin.HUGGING_FACE, "/x/h/hub"),
        ("linux", {"HF_HUB_CACHE": "/x/c"}, Origin.HUGGING_FACE, "/x/c"),
        ("linux", {}, Origin.JAN, ".config/Jan/data/llamacpp/models"),
        ("linux", {}, Origin.GPT4ALL, ".local/share/nomic.ai/GPT4All"),
        ("linux", {}, Origin.LLAMA_CPP, ".cache/llama.cpp"),
        ("linux", {"LLAMA_CACHE": "/x/l"}, Origin.LLAMA_CPP, "/x/l"),
        ("linux", {"XDG_CACHE_HOME": "/x/g"}, Origin.LLAMA_CPP, "/x/g/llama.cpp"),
        ("win32", {}, Origin.GPT4ALL, "AppData/Local/nomic.ai/GPT4All"),
        ("win32", {}, Origin.JAN, "AppData/Roaming/Jan/data/llamacpp/models"),
        ("win32", {"LOCALAPPDATA": "/x/w"}, Origin.LLAMA_CPP, "/x/w/llama.cpp"),
        ("darwin", {}, Origin.LLAMA_CPP, "Library/Caches/llama.cpp"),
    ],
)
def test_places_follow_each_program(
    tmp_path: Path, platform: str, environ: dict[str, str], origin: Origin, expected: str
) -> None:
    """Default folders and the variables the programs obey, per operating system."""
    drive = tmp_path.drive  # only with it a path is absolute on Windows
    environ = {name: drive + value for name, value in environ.items()}
    places = places_of(tmp_path, environ, platform)
    assert Place(origin=origin, path=tmp_path / expected) in places


def test_lm_studio_s_moved_folders_are_found(tmp_path: Path) -> None:
    """LM Studio's pointer file and its downloads folder are obeyed; damaged ones ignored."""
    moved = tmp_path / "moved"
    _write(tmp_path / ".lmstudio-home-pointer", f"{moved}\n".encode())
    chosen = json.dumps({"downloadsFolder": str(tmp_path / "big-disk")})
    _write(moved / "settings.json", chosen.encode())
    _write(tmp_path / ".lmstudio" / "settings.json", b"\xff{")
    paths = [p.path for p in places_of(tmp_path, {}, "linux") if p.origin is Origin.LM_STUDIO]
    assert moved / "models" in paths
    assert tmp_path / "big-disk" in paths
