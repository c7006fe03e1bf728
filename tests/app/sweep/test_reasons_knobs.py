"""Why these knobs: only what was a choice is explained as one."""

import pytest

from app.domain.sweep import SweepRequest
from app.rig.simulated import SimulatedRig
from tests.fakes.rigs import machine, search

GIB = 1 << 30
# f16 leaves a third of the layers in RAM, half the cache buys four of them back
LONG = machine(kv_bytes=16384, free_bytes=4 * GIB)


@pytest.mark.parametrize(
    ("request_", "is_told"),
    [
        (SweepRequest(n_ctx_min=16384, kv_types=("f16", "q8_0")), True),
        (SweepRequest(n_ctx_min=16384, kv_types=("q8_0",)), False),
        (
            SweepRequest(
                n_ctx_min=16384,
                kv_types=("f16", "q8_0"),
                pinned={"type_k": "q8_0", "type_v": "q8_0"},
            ),
            False,
        ),
    ],
)
def test_a_cache_type_is_a_choice_where_both_were_allowed(
    request_: SweepRequest, is_told: bool
) -> None:
    """llama.cpp's own fit has an f16 cache, and fewer layers: that is not what f16 costs."""
    found = search(SimulatedRig(LONG), request_)
    assert found.recommended is not None
    assert found.recommended.settings.type_k == "q8_0"
    assert ("kv_chosen" in {reason.code for reason in found.reasons}) is is_told
