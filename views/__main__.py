"""Composition root of the window."""

import gc
import logging
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QApplication

    from views.main_window import MainWindow
    from views.port import SessionPort


def main(argv: "Sequence[str] | None" = None) -> int:
    """Open the window and return the exit code."""
    from app.runtime import has_display, missing_files
    from views.preflight import NO_DISPLAY, damaged, missing_libraries, sentence, tell

    if lost := missing_files():
        tell(damaged(lost))
        return 3
    # Qt would abort where these are missing, so they are looked for before.
    missing = missing_libraries(needs_x11=has_display())
    if missing:
        tell(sentence(missing))
        return 3
    if not has_display() and not os.environ.get("QT_QPA_PLATFORM"):
        tell(NO_DISPLAY)
        return 3
    logging.basicConfig(level=logging.WARNING)
    app, window = build(sys.argv if argv is None else argv)
    from views.interrupt import Interrupts

    Interrupts(window).interrupted.connect(window.finish)
    window.show()
    window.start()
    return app.exec()


def build(argv: "Sequence[str]") -> "tuple[QApplication, MainWindow]":
    """Return application and window, wired to this machine, not yet shown."""
    from PySide6.QtWidgets import QApplication

    from app.store.preferences import load_preferences
    from views.colors import Scheme
    from views.icons import Icons
    from views.language import Language, Translations
    from views.main_window import MainWindow
    from views.options import Options
    from views.state import load_state
    from views.theme import Theme
    from views.units import use_units
    from views.widgets import Kit

    app = QApplication(list(argv))
    app.setApplicationName("RigTune")
    app.setDesktopFileName("rigtune")
    preferences, notice = load_preferences()
    translations = Translations(app, Language(preferences.language))
    use_units(
        binary=preferences.memory_unit == "binary",
        celsius=preferences.temperature_unit == "celsius",
    )
    theme = Theme(app, Scheme(preferences.theme), strong=preferences.contrast == "high")
    kit = Kit(theme, Icons(theme), Options(preferences, notice))
    app.setWindowIcon(kit.icons.icon("rigtune"))
    window = MainWindow(kit, _open_session, load_state(), translations)
    # What start-up made lives as long as the window. Taken from the garbage collector, whose
    # full rounds would otherwise hold the GUI thread for tens of milliseconds each.
    window.pages_built.connect(gc.freeze)
    folder = recording(argv)
    if folder is not None:
        window.setWindowTitle(f"RigTune: {folder}")
    return app, window


def recording(argv: "Sequence[str]") -> str | None:
    """Return the folder of a recorded machine to show (``--replay DIR``), if one is named."""
    at = argv.index("--replay") + 1 if "--replay" in argv else len(argv)
    return argv[at] if at < len(argv) else None


def _open_session() -> "SessionPort":
    # Called on a thread: the core's code takes half of the start-up to import.
    from app.session import Session
    from probes import registry

    return Session(registry, replay=recording(sys.argv))


if __name__ == "__main__":
    raise SystemExit(main())
