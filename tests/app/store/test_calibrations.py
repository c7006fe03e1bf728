"""Calibrations keep the worst case of each key."""

from pathlib import Path

import msgspec

from app.store import Calibration, CalibrationKey, Store

KEY = CalibrationKey(
    device="GPU-1",
    driver="nvidia 580",
    backend="CUDA",
    flash_attn=True,
    n_ubatch=512,
    cpu_layers=False,
    depth_bucket=4096,
    family="llama",
)


def test_the_largest_sizes_stay(tmp_path: Path) -> None:
    """Each size keeps its maximum over the loads; other keys are apart."""
    plain = Calibration(
        key=msgspec.structs.replace(KEY, flash_attn=False), driver_context_bytes=1, growth_bytes=2
    )
    with Store.open(tmp_path / "rigtune.db") as store:
        assert store.calibrations() == ()
        store.add_calibration(Calibration(key=KEY, driver_context_bytes=530, growth_bytes=80))
        store.add_calibration(Calibration(key=KEY, driver_context_bytes=510, growth_bytes=250))
        store.add_calibration(plain)
        known = Calibration(key=KEY, driver_context_bytes=530, growth_bytes=250, n_loads=2)
        assert set(store.calibrations()) == {known, plain}
