"""Rules that place tensors by name are read as llama.cpp reads them."""

import pytest

from app.domain.errors import UsageProblem
from app.domain.overrides import check_overrides, override_for, read_overrides


def buffer(text: str, name: str) -> str | None:
    rule = override_for(read_overrides(text), name)
    return None if rule is None else rule.buffer


def test_the_first_pattern_found_decides() -> None:
    """A later rule never overrules an earlier one; a pattern may be found anywhere in the name."""
    text = r"blk\.1\.ffn=CUDA1,ffn=CPU"
    assert buffer(text, "blk.1.ffn_up.weight") == "CUDA1"
    assert buffer(text, "blk.11.ffn_up.weight") == "CPU"
    assert buffer(text, "blk.1.attn_q.weight") is None
    assert read_overrides("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "exps", "exps=", "=CPU", "a=CPU,", "(=CPU", "a{2,3}=CPU", "[=CPU", r"(?<=x)y=CPU",
        "(?P<n>x)=CPU", "(?i)x=CPU", r"\Ablk=CPU", "x++=CPU", "[[:digit:]]=CPU", "a\0b=CPU",
        "x{99999999999999999999}=CPU", "(.+)+x=CPU", r"(\d*a){9}=CPU", "x" * 5000 + "=CPU",
    ],
)  # fmt: skip
def test_what_llama_cpp_would_refuse_is_a_sentence(text: str) -> None:
    """No PATTERN=BUFFER, a broken pattern, one only Python knows: said before anything loads."""
    with pytest.raises(UsageProblem) as caught:
        read_overrides(text)
    assert caught.value.info.code == "bad_overrides"
    assert "PATTERN=BUFFER" in caught.value.info.hint


@pytest.mark.parametrize("text", [r"blk\.(?:0|1)\.=CPU", "(?!x)a=CPU", r"\d+?\.=CPU", "a+=CPU"])
def test_what_both_dialects_have_is_taken(text: str) -> None:
    """Groups without a number, lookahead and lazy quantifiers are ECMAScript's, too."""
    assert len(read_overrides(text)) == 1


def test_a_buffer_is_ram_or_on_a_device_in_use() -> None:
    """Names are the engine's; a remote device's buffer also carries its address."""
    check_overrides("a=CPU,b=RPC0,c=RPC0[127.0.0.1:50052]", ("RPC0",))
    for text in ("a=cpu", "a=CUDA0", "a=RPC01"):
        with pytest.raises(UsageProblem, match="no buffer") as caught:
            check_overrides(text, ("RPC0",))
        assert "CPU, RPC0" in caught.value.info.hint
