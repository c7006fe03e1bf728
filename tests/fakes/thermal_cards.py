"""Made-up cards whose curves follow published figures, for the simulated machine.

Power at core clock ``f`` is ``static + dynamic * f/f_max * (v(f)/v(f_max))²`` with a voltage that
is flat up to ``flat_mhz`` and linear above. Decode is bound by memory bandwidth until the clock
falls to ``knee_mhz``; prefill follows the clock. Sources are named at each card.
"""

import random

import msgspec

from app.domain.record import Record


class Phase(Record, frozen=True, kw_only=True):
    """A kind of work: watts that do not depend on the clock, and those that do (at ``f_max``)."""

    static_w: float
    dynamic_w: float


class Card(Record, frozen=True, kw_only=True):
    """A GPU with its cooler; thermal resistances in °C/W, capacities in J/°C."""

    name: str
    decode: Phase
    prefill: Phase
    decode_tok_s: float
    prefill_tok_s: float
    knee_mhz: float
    f_min_mhz: float = 210.0
    f_max_mhz: float
    flat_mhz: float
    v_max: float = 1.25
    idle_w: float
    default_w: float
    min_w: float
    max_w: float
    # what the firmware allows on battery (20 to 30 W are usual)
    battery_w: float = 30.0
    # a power limiter regulates a little below its limit
    regulated_frac: float = 1.0
    slowdown_c: float
    # where the firmware goes at once when it slows down; None = it steps down gently
    thermal_clock_mhz: float | None = None
    thermal_release_c: float = 3.0
    r_die: float
    c_die: float
    r_sink: float
    c_sink: float
    # the air inside the case or the laptop's body: heats up over half an hour
    r_body: float
    c_body: float
    memory_w: float
    r_memory: float
    memory_tau_s: float = 150.0
    memory_slowdown_c: float = 105.0


RTX_3090 = Card(
    # facts of B20: 280 of 350 W costs under 1 % of decode, below 200 W it collapses; a pure
    # compute load loses 27 % from 300 to 250 W
    name="RTX 3090",
    decode=Phase(static_w=100.0, dynamic_w=240.0),
    prefill=Phase(static_w=115.0, dynamic_w=457.0),
    decode_tok_s=36.0,
    prefill_tok_s=1400.0,
    knee_mhz=1100.0,
    f_max_mhz=1900.0,
    flat_mhz=1200.0,
    idle_w=25.0,
    default_w=350.0,
    min_w=100.0,
    max_w=385.0,
    slowdown_c=83.0,
    r_die=0.05,
    c_die=60.0,
    r_sink=0.085,
    c_sink=900.0,
    r_body=0.025,
    c_body=60000.0,
    memory_w=70.0,
    r_memory=0.35,
)

RTX_5060_TI = Card(
    # B20: 180 W cap: 81.2 tok/s at 172.7 W; 162 W: 81.4 at 159.3; 150 W: 80.4 at 147.2
    name="RTX 5060 Ti",
    decode=Phase(static_w=60.0, dynamic_w=112.7),
    prefill=Phase(static_w=65.0, dynamic_w=160.0),
    decode_tok_s=81.3,
    prefill_tok_s=3600.0,
    knee_mhz=1250.0,
    f_max_mhz=2600.0,
    flat_mhz=1700.0,
    idle_w=10.0,
    default_w=180.0,
    min_w=150.0,
    max_w=180.0,
    regulated_frac=0.983,
    slowdown_c=85.0,
    r_die=0.08,
    c_die=30.0,
    r_sink=0.17,
    c_sink=450.0,
    r_body=0.03,
    c_body=50000.0,
    memory_w=25.0,
    r_memory=0.4,
)

LAPTOP_4060 = Card(
    # claims 112 and 113: limit 115 W, the cooler sustains 95 W, at 83 °C the clock falls
    # from 1830 to 1200 MHz
    name="RTX 4060 Laptop GPU",
    decode=Phase(static_w=32.0, dynamic_w=80.0),
    prefill=Phase(static_w=32.0, dynamic_w=110.0),
    decode_tok_s=41.0,
    prefill_tok_s=1700.0,
    knee_mhz=1450.0,
    f_max_mhz=2250.0,
    flat_mhz=1400.0,
    idle_w=6.0,
    default_w=115.0,
    min_w=35.0,
    max_w=115.0,
    slowdown_c=83.0,
    thermal_clock_mhz=1200.0,
    thermal_release_c=9.0,
    r_die=0.12,
    c_die=12.0,
    r_sink=0.42,
    c_sink=140.0,
    r_body=0.1,
    c_body=12000.0,
    memory_w=12.0,
    r_memory=0.9,
)

LAPTOP_3060 = Card(
    # B10: a model half on the CPU writes 4.15 tok/s in performance mode and 2.85 with what the
    # battery leaves; fixed 80 W without Dynamic Boost
    name="RTX 3060 Laptop GPU",
    decode=Phase(static_w=14.0, dynamic_w=66.0),
    prefill=Phase(static_w=14.0, dynamic_w=90.0),
    decode_tok_s=4.16,
    prefill_tok_s=540.0,
    knee_mhz=925.0,
    f_max_mhz=1700.0,
    flat_mhz=1000.0,
    idle_w=8.0,
    default_w=80.0,
    min_w=30.0,
    max_w=80.0,
    slowdown_c=87.0,
    r_die=0.12,
    c_die=12.0,
    r_sink=0.42,
    c_sink=140.0,
    r_body=0.1,
    c_body=12000.0,
    memory_w=9.0,
    r_memory=0.9,
)

LAPTOP_4080 = Card(
    # a fixed limit; locking the clock to 1800 MHz took about 150 W down to about 80 W with
    # little loss of decode
    name="RTX 4080 Laptop GPU",
    decode=Phase(static_w=20.0, dynamic_w=130.0),
    prefill=Phase(static_w=20.0, dynamic_w=150.0),
    decode_tok_s=60.0,
    prefill_tok_s=3000.0,
    knee_mhz=1250.0,
    f_max_mhz=2600.0,
    flat_mhz=1500.0,
    v_max=1.34,
    idle_w=8.0,
    default_w=175.0,
    min_w=175.0,
    max_w=175.0,
    slowdown_c=87.0,
    r_die=0.08,
    c_die=20.0,
    r_sink=0.25,
    c_sink=250.0,
    r_body=0.06,
    c_body=15000.0,
    memory_w=18.0,
    r_memory=0.8,
)

RTX_6000_PRO = Card(
    # B20: many users at once, so compute-bound: 525.69, 597.02, 620.04 and 625.55 tok/s at 250,
    # 300, 360 and 600 W
    name="RTX 6000 Pro",
    decode=Phase(static_w=132.7, dynamic_w=302.5),
    prefill=Phase(static_w=140.0, dynamic_w=460.0),
    decode_tok_s=626.0,
    prefill_tok_s=9000.0,
    knee_mhz=1324.0,
    f_max_mhz=2600.0,
    flat_mhz=902.0,
    v_max=1.107,
    idle_w=30.0,
    default_w=600.0,
    min_w=150.0,
    max_w=600.0,
    slowdown_c=90.0,
    r_die=0.03,
    c_die=120.0,
    r_sink=0.05,
    c_sink=1500.0,
    r_body=0.015,
    c_body=60000.0,
    memory_w=110.0,
    r_memory=0.25,
)

CARDS = (RTX_3090, RTX_5060_TI, LAPTOP_4060)
"""Those that the governor is tried on; the others are for single published figures."""


def unseen_card(dice: random.Random) -> Card:
    """Return a machine whose cooler is like none of those the governor was made with."""
    card = dice.choice(CARDS)
    return msgspec.structs.replace(
        card,
        r_die=card.r_die * dice.uniform(0.6, 1.6),
        c_die=card.c_die * dice.uniform(0.5, 2.0),
        r_sink=card.r_sink * dice.uniform(0.7, 1.3),
        c_sink=card.c_sink * dice.uniform(0.5, 2.0),
        r_body=card.r_body * dice.uniform(0.3, 2.0),
        c_body=card.c_body * dice.uniform(0.5, 2.0),
    )
