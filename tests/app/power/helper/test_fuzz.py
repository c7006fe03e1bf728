"""A few thousand lines of nonsense a time; ``python -m tests.fakes.helper_fuzz`` sends 100,000."""

from pathlib import Path

import pytest

from tests.fakes.helper_fuzz import fuzz


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nonsense_sets_nothing_outside_the_range(tmp_path: Path, seed: int) -> None:
    """Whatever comes: limits in range, one answer each, everything back after every end."""
    done = fuzz(tmp_path, 1000, seed)
    assert done.n_applied > 20
    assert done.n_ends > 10
