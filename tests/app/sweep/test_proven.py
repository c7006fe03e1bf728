"""What ran is proof of room unless it ran slower than it should."""

from app.sweep.proven import Proven


def test_what_spilled_unseen_proves_no_room() -> None:
    """A large placement ran, but slowly: the bound lies between it and what ran as it should."""
    proven = Proven()
    proven.ran({"gpu0": 4000})
    proven.ran({"gpu0": 6000})
    proven.rejected({"gpu0": 6000}, {"gpu0": 4000})
    assert proven.ceiling(daring=0.5) == {"gpu0": 5000}
    assert not proven.holds({"gpu0": 5500})
    assert proven.holds({"gpu0": 4000})
