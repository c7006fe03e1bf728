"""Readings while a model answers: the devices it uses, compared with how they were."""

import time
from datetime import UTC, datetime, timedelta

import msgspec

from app.domain.events import GenerationStarted, TokenGenerated
from app.domain.machine import DriverReset, GpuProcess, WindowsSettings
from app.domain.units import MIB
from tests.fakes import window_data as data
from tests.fakes.session import FakeSession
from views.chat.watch import Watch


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.now_s = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def watch(session: FakeSession, clock: Clock) -> Watch:
    """Return a watch over a chat on the made-up card, tuned for 39.6 tok/s."""
    (profile,) = session.profiles()
    profile = msgspec.structs.replace(profile, goal="chat")
    chat = session.chat("demo")
    return Watch(chat, data.MACHINE, session.fake_telemetry, profile, clock)


def answered(seen: Watch, clock: Clock, tok_s: float) -> None:
    """Let 40 tokens come at this speed."""
    seen.note(GenerationStarted(n_prompt=100, n_prompt_reused=0, n_ctx=4096, template="model"))
    for n in range(1, 41):
        seen.note(TokenGenerated(text="x", n_tok=n))
        clock.now_s += 1 / tok_s


def test_draw_and_heat_of_the_card_in_use() -> None:
    """The numbers are those of the newest reading."""
    session, clock = FakeSession(), Clock()
    seen = watch(session, clock)
    newest = session.fake_telemetry.samples[-1]
    vitals = seen.look()
    assert (vitals.power_w, vitals.temp_c) == (newest.power_w, newest.temp_c)
    assert vitals.idle_left_s == 900.0
    assert vitals.causes == ()


def test_slow_answer_is_explained_and_a_quick_one_is_not() -> None:
    """A throttling card is blamed only while the answer misses its promise."""
    session, clock = FakeSession(), Clock()
    seen = watch(session, clock)
    hot = msgspec.structs.replace(session.fake_telemetry.samples[-1], throttle=("hw_thermal",))
    session.fake_telemetry.samples.append(hot)
    answered(seen, clock, 39.0)
    assert seen.look().causes == ()
    answered(seen, clock, 15.0)
    assert [cause.code for cause in seen.look().causes] == ["heat"]
    seen.end()
    clock.now_s += 60
    assert seen.look().causes == (), "nobody waits for an answer now"


def test_program_that_takes_the_memory_is_named_once() -> None:
    """Our own growth is not blamed; another program's is said once and explains slowness."""
    session, clock = FakeSession(), Clock()
    seen = watch(session, clock)
    game = GpuProcess(pid=77, name="game", vram_bytes=2000 * MIB)
    last = session.fake_telemetry.samples[-1]
    session.fake_telemetry.samples.append(
        msgspec.structs.replace(
            last, vram_free_bytes=100 * MIB, processes=(*(last.processes or ()), game),
            t_ns=time.perf_counter_ns(),
        )
    )  # fmt: skip
    vitals = seen.look()
    assert (vitals.neighbour, vitals.free_bytes) == ("game", 100 * MIB)
    assert seen.look().neighbour is None
    answered(seen, clock, 15.0)
    assert [cause.code for cause in seen.look().causes] == ["neighbour"]


def test_model_on_the_cpu_watches_no_card() -> None:
    """Without layers on a GPU its draw would be somebody else's."""
    session, clock = FakeSession(), Clock()
    chat = session.chat("demo")
    chat.settings = data.settings(0)
    seen = Watch(chat, data.MACHINE, session.fake_telemetry, None, clock)
    assert seen.look().power_w is None
    answered(seen, clock, 4.0)
    assert [cause.code for cause in seen.look().causes] == ["cpu_layers"]


def test_slow_answer_after_a_driver_reset_says_so() -> None:
    """A reset within the last hour is a reason, one of yesterday is none."""
    for hours, codes in ((0.2, ["driver_reset"]), (30.0, ["unexplained"])):
        at = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        log = (DriverReset(provider="Display", event_id=4101, time_utc=at),)
        host = msgspec.structs.replace(data.MACHINE.host, windows=WindowsSettings(resets=log))
        machine = msgspec.structs.replace(data.MACHINE, host=host)
        session, clock = FakeSession(), Clock()
        (profile,) = session.profiles()
        profile = msgspec.structs.replace(profile, goal="chat")
        seen = Watch(session.chat("demo"), machine, session.fake_telemetry, profile, clock)
        answered(seen, clock, 12.0)
        assert [cause.code for cause in seen.look().causes] == codes


def test_reading_of_long_ago_explains_nothing() -> None:
    """While the driver hangs, the last temperature is not blamed for an answer of now."""
    session, clock = FakeSession(), Clock()
    seen = watch(session, clock)
    hot = msgspec.structs.replace(session.fake_telemetry.samples[-1], throttle=("hw_thermal",))
    session.fake_telemetry.samples.append(hot)
    session.fake_telemetry.is_stalled = True
    answered(seen, clock, 12.0)
    vitals = seen.look()
    assert [cause.code for cause in vitals.causes] == ["unexplained"]
    assert vitals.power_w is None
