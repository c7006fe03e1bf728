"""A profile follows its card, not the number the engine gave it that day."""

from app.domain.settings import Settings
from app.session.same_cards import keys_of, on_same_cards
from tests.fakes import situations as s

TUNED = Settings(n_gpu_layers=33, devices=("CUDA1",))


def test_a_card_that_changed_its_number_is_found() -> None:
    """A second card was taken out: what was CUDA1 is CUDA0 now."""
    then = s.machine(s.gpu(1, s.device("CUDA0")), s.gpu(2, s.device("CUDA1")))
    keys = keys_of(TUNED, then)
    assert keys == {"CUDA1": "GPU-2"}
    now = s.machine(s.gpu(2, s.device("CUDA0"), s.device("Vulkan0")))
    settings, gone = on_same_cards(TUNED, keys, now)
    assert settings.devices == ("CUDA0",)
    assert gone == ()


def test_a_card_that_is_gone_is_named() -> None:
    """Another card under the old name is not taken for it."""
    now = s.machine(s.gpu(1, s.device("CUDA0")), s.gpu(3, s.device("CUDA1")))
    settings, gone = on_same_cards(TUNED, {"CUDA1": "GPU-2"}, now)
    assert gone == ("CUDA1",)
    assert settings.devices == ()


def test_a_profile_of_an_older_version_keeps_its_names() -> None:
    """Without stored identities the names are all there is; one that is missing is said."""
    now = s.machine(s.gpu(1, s.device("CUDA0")), s.gpu(2, s.device("CUDA1")))
    assert on_same_cards(TUNED, {}, now) == (TUNED, ())
    assert on_same_cards(TUNED, {}, s.machine())[1] == ("CUDA1",)


def test_a_profile_for_every_card_stays_one() -> None:
    """No named device means all: nothing to look for."""
    every = Settings(n_gpu_layers=33)
    assert on_same_cards(every, {}, s.machine()) == (every, ())
