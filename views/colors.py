"""The colour sets of the window, as data: the only place that names a colour."""

from enum import StrEnum

from app.domain.record import Record


class Scheme(StrEnum):
    """What the user chose; ``auto`` follows the system."""

    AUTO = "auto"
    LIGHT = "light"
    DARK = "dark"


class Colors(Record, frozen=True, kw_only=True):
    """Every colour of one look, as ``#rrggbb``.

    Text colours reach 4.5:1 on ``window`` and ``surface``, series and borders of controls 3:1.

    Attributes:
        window: Behind the cards.
        surface: Cards and plots.
        sunken: Fields, tracks of bars, pressed buttons.
        text: Normal text.
        muted: Captions and units.
        line: Hairlines between areas (decoration only).
        control: Borders of buttons and fields.
        accent: Primary action, selection, focus ring.
        on_accent: Text on ``accent``.
        good: Fits, done.
        warn: Tight, throttled.
        bad: Failed, does not fit.
        prefill: Series of prefill speed (and of busy time).
        decode: Series of decode speed.
        memory: Series of memory.
        power: Series of power.
        heat: Series of temperature.
    """

    window: str
    surface: str
    sunken: str
    text: str
    muted: str
    line: str
    control: str
    accent: str
    on_accent: str
    good: str
    warn: str
    bad: str
    prefill: str
    decode: str
    memory: str
    power: str
    heat: str


# Series: Okabe-Ito subsets, checked with the Machado-2009 simulation of colour blindness:
# smallest CIE76 distance 17.0 (light) and 16.1 (dark), contrast at least 3.06 on the surface.
LIGHT = Colors(
    window="#f3f4f6", surface="#ffffff", sunken="#e9ebef", text="#1b1d21", muted="#565d67",
    line="#dcdfe4", control="#878e99", accent="#0b5fb8", on_accent="#ffffff", good="#17693b",
    warn="#8a4b00", bad="#b3261e", prefill="#0072b2", decode="#d55e00", memory="#009e73",
    power="#cc79a7", heat="#333333",
)  # fmt: skip
DARK = Colors(
    window="#161719", surface="#1e1e1e", sunken="#2a2c30", text="#eceef1", muted="#a7adb7",
    line="#34373d", control="#787f8a", accent="#6cb2f5", on_accent="#0b1622", good="#5fcf92",
    warn="#f0b64a", bad="#ff8f85", prefill="#56b4e9", decode="#d55e00", memory="#009e73",
    power="#cc79a7", heat="#e69f00",
)  # fmt: skip
# The style sheet names roles of the palette instead of colours: its text is the same for every
# look, so that a switch of the look polishes widgets one by one instead of all at once.
ROLES = Colors(
    window="palette(window)", surface="palette(base)", sunken="palette(midlight)",
    text="palette(window-text)", muted="palette(placeholder-text)", line="palette(light)",
    control="palette(mid)", accent="palette(highlight)", on_accent="palette(highlighted-text)",
    good="palette(link-visited)", warn="palette(shadow)", bad="palette(bright-text)",
    prefill="", decode="", memory="", power="", heat="",
)  # fmt: skip
_STRONG = {
    Scheme.LIGHT: {"window": "#ffffff", "muted": "#000000", "text": "#000000",
                   "line": "#000000", "control": "#000000"},
    Scheme.DARK: {"window": "#000000", "surface": "#000000", "muted": "#ffffff",
                  "text": "#ffffff", "line": "#ffffff", "control": "#ffffff"},
}  # fmt: skip


def colors_of(scheme: Scheme, strong: bool = False) -> Colors:  # noqa: FBT001, FBT002
    """Return the colours of ``scheme``, with black and white text and lines when ``strong``."""
    base = DARK if scheme is Scheme.DARK else LIGHT
    if not strong:
        return base
    fields = {name: getattr(base, name) for name in Colors.__struct_fields__}
    return Colors(**{**fields, **_STRONG[scheme]})
