"""Profiles: kept, found, renamed, deleted and brought back."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings

from app.domain.errors import UsageProblem
from app.domain.settings import Settings
from app.store import Profile, Store
from app.store import profiles as module
from tests.fakes.records import a_model, records

DRAFT = Profile(
    name="Quick",
    settings=Settings(n_gpu_layers=5),
    model_fingerprint="f00d",
    model_name="Tiny",
    model_path="/models/tiny.gguf",
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "rigtune.db") as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("shared") / "rigtune.db") as opened:
        yield opened


def test_a_saved_profile_is_found_by_id_and_name(store: Store) -> None:
    """Saving gives a short id; id and name both lead back to the profile."""
    saved = store.save_profile(DRAFT)
    assert len(saved.id) == 6
    assert saved.created_utc
    assert store.profile(saved.id) == store.profile("Quick") == saved
    assert msgspec.structs.replace(saved, id="", created_utc="") == DRAFT


@given(draft=records(Profile))
@settings(max_examples=25, deadline=None)
def test_any_profile_round_trips(shared: Store, draft: Profile) -> None:
    """Whatever a profile holds comes back equal."""
    saved = shared.save_profile(draft)
    assert shared.profile(saved.id) == saved


def test_profiles_list_newest_first_and_by_model(store: Store) -> None:
    """The list is newest first and can be narrowed to one model."""
    first = store.save_profile(DRAFT)
    second = store.save_profile(msgspec.structs.replace(DRAFT, model_fingerprint="beef"))
    assert store.profiles() == (second, first)
    assert store.profiles("f00d") == (first,)


def test_ids_are_never_given_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id in use, even by a deleted profile, is not given again."""
    monkeypatch.setattr(module, "_ALPHABET", "ab")
    monkeypatch.setattr(module, "_ID_LENGTH", 2)
    ids = {store.save_profile(DRAFT).id for _ in range(3)}
    store.delete_profile(min(ids))
    ids.add(store.save_profile(DRAFT).id)
    assert ids == {"aa", "ab", "ba", "bb"}


def test_a_name_used_twice_is_ambiguous(store: Store) -> None:
    """Two profiles of one name are told apart by id only, and the message lists both."""
    ids = [store.save_profile(DRAFT).id for _ in range(2)]
    with pytest.raises(UsageProblem) as caught:
        store.profile("Quick")
    assert all(i in caught.value.info.message for i in ids)


def test_rename_delete_restore_purge(store: Store) -> None:
    """Deleting hides until purged; restoring before that brings all of it back."""
    saved = store.save_profile(DRAFT)
    store.rename_profile(saved.id, "Slow")
    assert store.profile("Slow").id == saved.id
    store.delete_profile(saved.id)
    assert store.profiles() == ()
    with pytest.raises(UsageProblem):
        store.profile(saved.id)
    store.restore_profile(saved.id)
    assert store.profile(saved.id).name == "Slow"
    store.delete_profile(saved.id)
    store.purge_profiles()
    with pytest.raises(UsageProblem) as caught:
        store.restore_profile(saved.id)
    assert caught.value.info.code == "profile_not_found"


def test_a_profile_follows_its_model(store: Store) -> None:
    """A profile belongs to content: when the file moves, the profile names the new place."""
    saved = store.save_profile(DRAFT)
    store.remember_model(a_model("f00d", path="/new/place.gguf"))
    found = store.profile(saved.id)
    assert (found.model_path, found.n_layer) == ("/new/place.gguf", 4)


def test_renewed_figures_keep_name_and_id(store: Store) -> None:
    """Measuring a profile again changes its figures, and nothing that the user gave it."""
    saved = store.save_profile(DRAFT)
    store.rename_profile(saved.id, "mine")
    store.renew_profile(msgspec.structs.replace(saved, request_s=4.5, engine="newer"))
    found = store.profile(saved.id)
    assert (found.name, found.request_s, found.engine) == ("mine", 4.5, "newer")
    assert found.settings == saved.settings
    store.delete_profile(saved.id)
    gone = msgspec.structs.replace(saved, id="nobody")
    with pytest.raises(UsageProblem):
        store.renew_profile(gone)
