"""The chat's numbers."""

from pytestqt.qtbot import QtBot

from app.chat.context_use import ContextUse
from app.chat.slowness import SlowCause
from app.domain.events import GenerationFinished, GenerationStarted, TokenGenerated
from tests.fakes.layouts import settle, shown
from views.chat.meter import Meter
from views.chat.turns import Vitals
from views.widgets import Kit


def test_context_is_never_more_than_full(kit: Kit, qtbot: QtBot) -> None:
    """The token that filled the context must not be counted beyond it."""
    meter = Meter(kit)
    qtbot.addWidget(meter)
    meter.set_context(4096)
    meter.show_end(GenerationFinished(reason="context_full", n_prompt=4000, n_gen=97))
    assert meter.context.text() == "4,096 of 4,096 tokens"


def test_speed_of_now_and_mean(kit: Kit, qtbot: QtBot) -> None:
    """Now is the last second, mean is since the first token; draw and heat stand beside them."""
    now_s = 100.0
    meter = Meter(kit, clock_s=lambda: now_s)
    qtbot.addWidget(meter)
    meter.begin()
    meter.show_start(
        GenerationStarted(n_prompt=512, n_prompt_reused=500, n_ctx=4096, template="model")
    )
    meter.show_vitals(Vitals(power_w=91.5, temp_c=71.2))
    now_s += 0.5
    n_tok = 0
    for step in range(24):
        n_tok += 5 if step < 20 else 12
        meter.show_token(TokenGenerated(text="x", n_tok=n_tok))
        now_s += 0.25
    text = meter.speed.text().replace("\u00a0", " ")
    assert text == (
        "now 48.0 tok/s, mean 24.9 tok/s · first token 500 ms · prompt 512 tokens, 500 re-used · "
        "148 tokens · 91.5 W · 71 °C"
    )


def test_new_numbers_need_no_layout(kit: Kit, qtbot: QtBot) -> None:
    """Numbers that change four times a second must not have the page laid out anew (counted)."""
    now_s = 100.0
    meter = Meter(kit, clock_s=lambda: now_s)
    page, count = shown(qtbot, meter)
    page.resize(900, 200)
    meter.begin()
    meter.show_start(
        GenerationStarted(n_prompt=512, n_prompt_reused=500, n_ctx=4096, template="model")
    )
    for n_tok in range(1, 21):
        meter.show_token(TokenGenerated(text="x", n_tok=n_tok))
        now_s += 0.3
        settle()
        count.n *= n_tok > 2  # the first ones bring what was not there before
    assert count.n == 0
    assert "20 tokens" in meter.speed.text()


def test_nothing_is_now_once_the_answer_has_ended(kit: Kit, qtbot: QtBot) -> None:
    """A stopped answer leaves its mean; another conversation nothing but the machine."""
    now_s = 100.0
    meter = Meter(kit, clock_s=lambda: now_s)
    qtbot.addWidget(meter)
    meter.begin()
    for n_tok in (1, 11):
        meter.show_token(TokenGenerated(text="x", n_tok=n_tok))
        now_s += 0.5
    meter.end()
    assert meter.speed.text().replace("\u00a0", " ").startswith("mean 20.0 tok/s · first token")
    meter.clear()
    meter.show_vitals(Vitals(power_w=91.5, temp_c=71.2))
    assert meter.speed.text().replace("\u00a0", " ") == "91.5 W · 71 °C"
    meter.begin()
    meter.show_vitals(Vitals(power_w=91.5, temp_c=71.2))
    assert meter.speed.text() == "Reading the prompt…"


def test_why_slow_is_said_and_taken_back(kit: Kit, qtbot: QtBot) -> None:
    """The sentence stands there as long as there is a cause."""
    meter = Meter(kit)
    qtbot.addWidget(meter)
    cause = SlowCause(code="heat", data={"gpu": "RTX 4070", "temp_c": 87.0})
    meter.show_vitals(Vitals(causes=(cause,)))
    assert meter.slow.text() == (
        "Why slow: RTX 4070 slows itself down because of its temperature (87.0\u00a0°C)."
    )
    assert not meter.slow.isHidden()
    meter.show_vitals(Vitals())
    assert meter.slow.isHidden()


def test_gauge_says_what_is_in_the_context(kit: Kit, qtbot: QtBot) -> None:
    """Each part has its number; a screen reader gets the same."""
    meter = Meter(kit)
    qtbot.addWidget(meter)
    use = ContextUse(
        n_ctx=4096, system_tok=20, user_tok=300, assistant_tok=700, markers_tok=40, free_tok=3036
    )
    meter.show_use(use)
    said = "1,060 of 4,096 tokens: system 20, you 300, model 700, markers 40"
    assert meter.context.text() == said
    assert meter.gauge.accessibleDescription() == said
