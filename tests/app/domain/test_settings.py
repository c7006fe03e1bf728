"""The table of settings is complete and decides what a change costs."""

import msgspec

from app.domain.outcome import OUTCOMES, Outcome
from app.domain.settings import SETTINGS, Level, Settings


def test_every_field_has_exactly_one_row() -> None:
    """Nothing can be set that the table does not describe, and nothing is described twice."""
    fields = [field.name for field in msgspec.structs.fields(Settings)]
    assert sorted(info.name for info in SETTINGS) == sorted(fields)


def test_load_key_changes_with_load_level_settings_only() -> None:
    """Weights are kept unless a setting that decides where they lie changes."""
    base = Settings(n_gpu_layers=10)
    for info in SETTINGS:
        value = getattr(base, info.name)
        other: object = value + 1 if isinstance(value, int) else "changed"
        changed = msgspec.structs.replace(base, **{info.name: other})
        assert (changed.load_key != base.load_key) == (info.level is Level.LOAD), info.name


def test_every_outcome_is_described() -> None:
    """Each end of a trial says what it means; only trials with a speed may win."""
    assert set(OUTCOMES) == set(Outcome)
    for info in OUTCOMES.values():
        assert info.has_speed or not info.may_win
