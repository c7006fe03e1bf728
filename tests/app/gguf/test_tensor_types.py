"""The table of tensor types agrees with the reference implementation's."""

import gguf

from app.gguf.tensor_types import FILE_TYPES, TENSOR_TYPES

ONLY_IN_ENGINE = {9, 42}
"""q8_1 (the package says 40 bytes, ggml 36) and q2_0 (not in the package yet)."""


def test_sizes_agree_with_the_gguf_package() -> None:
    """Names and block sizes are those of the format's own Python package."""
    for kind, (block, block_bytes) in gguf.GGML_QUANT_SIZES.items():
        ours = TENSOR_TYPES[kind.value]
        assert ours.name.lower() == kind.name.lower()
        if kind.value not in ONLY_IN_ENGINE:
            assert (ours.block_elements, ours.block_bytes) == (block, block_bytes)


def test_every_type_of_the_package_is_known() -> None:
    """No type is missing, and none is invented."""
    known = {kind.value for kind in gguf.GGML_QUANT_SIZES} | ONLY_IN_ENGINE
    assert set(TENSOR_TYPES) == known


def test_bytes_are_counted_in_blocks() -> None:
    """64 elements of q8_0 are two blocks of 34 bytes."""
    assert TENSOR_TYPES[8].n_bytes(64) == 68
    assert TENSOR_TYPES[39].n_bytes(32) == 17


def test_file_types_have_the_usual_names() -> None:
    """``general.file_type`` 15 is what users call Q4_K_M."""
    for kind in gguf.LlamaFileType:
        if kind.name != "GUESSED":
            assert FILE_TYPES[kind.value] == kind.name.removeprefix("MOSTLY_").removeprefix("ALL_")
