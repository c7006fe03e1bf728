"""Chat templates in their box."""

import contextlib
import gc
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.worker.template import MAX_S, TemplateProblem, render
from tests.fakes.slowness import slowdown

TALK = [{"role": "user", "content": "hi"}]
PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
SLACK_S = 0.7
"""What one call inside C may take on top, on a quiet core."""


PATIENCE_S = 60.0
"""What a template may take that does end, on a machine that is busy with other things."""


def run(
    source: str,
    talk: list[dict[str, str]] | None = None,
    max_s: float = PATIENCE_S,
    **variables: object,
) -> str:
    return render(source, talk or TALK, time.monotonic() + max_s, **variables)


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set l = range(9999)|list %}{% for i in range(99999) %}{{ l|sort|first }}{% endfor %}",
        "{{ lipsum(n=99999) }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ (messages|list).append(1) }}",
        "{{ 9**9**9 }}",
        "{{ 'a'*10000000000 }}",
        "{{ [0]*10000000000 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ 'x'.ljust(9999999999) }}",
        "{{ 'x'.zfill(9999999999) }}",
        "{% for i in range(99999) %}{% for j in range(9999) %}" + "x" * 99 + "{% endfor %}"
        "{% endfor %}",
        "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{# " + "x" * 300_000 + " #}",
    ],
)
def test_hostile_template_ends_in_a_message(source: str) -> None:
    """Loops, Python's insides and huge texts are refused within two seconds of work.

    Of the processor's time, and more of it on a slow one: the clock says nothing there.
    """
    begin_s = time.thread_time()
    with pytest.raises(TemplateProblem) as caught:
        run(source, max_s=MAX_S)
    assert caught.value.is_hostile
    assert str(caught.value)
    used_s = time.thread_time() - begin_s
    assert used_s < MAX_S + SLACK_S * slowdown()


def test_time_runs_out_also_while_something_else_is_called_back() -> None:
    """A callback of the collector, say, cannot swallow the end and switch the watch off."""

    def collected(_phase: str, _info: dict[str, int]) -> None:
        json.dumps([[]])

    gc.callbacks.append(collected)
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        with pytest.raises(TemplateProblem, match="does not end"):
            run("{% for a in range(99999) %}{% for b in range(99999) %}{{ [[a]] and '' }}"
                "{% endfor %}{% endfor %}", max_s=MAX_S)  # fmt: skip
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collected)


@pytest.mark.skipif("sys.platform == 'win32'", reason="the system has no address space limit")
@pytest.mark.parametrize(
    "source",
    [
        "{{ '{:>9999999999}'.format(1) }}",
        "{% set n = namespace(a='x') %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}"
        "{% endfor %}{{ n.a }}",
        "{{ ('a'*100000).replace('a', 'b'*100000) }}",
    ],
)
def test_huge_texts_do_not_take_the_memory(source: str) -> None:
    """A text that would need gigabytes is an error, and the limit is gone afterwards."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(TemplateProblem) as caught:
        run(source)
    assert caught.value.is_hostile
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% if %}", "Expected an expression"),
        ("{{ nothing.x.y }}", "undefined"),
        ("{{ raise_exception('No system, please') }}", "No system, please"),
        ("{% for a in 5 %}{% endfor %}", "not iterable"),
        ("{% include 'x' %}", "no loader"),
        ("{{ 1/0 }}", "division"),
    ],
)
def test_broken_template_says_why(source: str, reason: str) -> None:
    """A template that is merely wrong, or refuses, is told in its own words."""
    with pytest.raises(TemplateProblem, match=reason) as caught:
        run(source)
    assert not caught.value.is_hostile


def test_what_templates_of_models_use_works() -> None:
    """Loop controls, generation tags, tojson, namespaces, strftime and slices."""
    source = (
        "{% set ns = namespace(n=0) %}{% for m in messages[-2:] %}{% if loop.first %}{% continue %}"
        "{% endif %}{% generation %}{{ m|tojson }}{% endgeneration %}{% set ns.n = ns.n + 1 %}"
        "{% endfor %}{{ ns.n }}{{ strftime_now('%Y')|length }}{{ '%s-%s'.format is defined }}"
    )
    talk = [*TALK, {"role": "assistant", "content": "Grüße"}]
    assert run(source, talk) == '{"role": "assistant", "content": "Grüße"}14True'


def test_variables_reach_the_template() -> None:
    """Tokens and switches are passed on."""
    source = "{{ bos_token }}{{ add_generation_prompt }}{{ tools is none }}"
    assert run(source, bos_token="<s>", add_generation_prompt=True, tools=None) == "<s>TrueTrue"


@given(st.text(max_size=200), st.sampled_from(["user", "system", "assistant", "tool", ""]))
@settings(max_examples=100, deadline=None)
def test_any_text_goes_through_unchanged(content: str, role: str) -> None:
    """What the user wrote is never taken for template code."""
    assert run(PLAIN, [{"role": role, "content": content}]) == f"[{role}]{content}"


@given(st.text(alphabet="{}%#|()[]'\"<>azAZ09 \n_.-*+", max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_source_renders_or_is_refused(source: str) -> None:
    """Nothing but the one exception comes out of garbage."""
    with contextlib.suppress(TemplateProblem):
        assert isinstance(run(source), str)
