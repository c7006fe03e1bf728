"""Draws every page of the window to PNG files: python tests/views/make_screenshots.py DIR [--all].

Without --all the small set: English at 100 and 150 %, Chinese at 100 %, both looks. With --all also
text at 200 % (``text200``), which is a larger font in a window of the same size.

The machine and the search are made up (``tests.fakes``), so the pictures are the same everywhere.
Each look and scale is drawn by a process of its own: the scale is fixed when Qt starts.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

LARGE_TEXT = "text200"
SCALES = ("1", "1.5", "2", LARGE_TEXT)
LOOKS = ("light", "dark")
LANGUAGES = ("en", "zh")
SMALL_SET = (("en", "1"), ("en", "1.5"), ("zh", "1"))
SIZE = (900, 600)
MAX_WAIT_S = 20.0


def main() -> int:
    """Draw everything, or one look and scale (the second form is called by the first)."""
    folder = Path(sys.argv[1])
    if len(sys.argv) > 4:
        Camera(folder, *sys.argv[2:5]).run()
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [(language, scale) for language in LANGUAGES for scale in SCALES]
    for language, scale in kinds if "--all" in sys.argv else SMALL_SET:
        for look in LOOKS:
            environment = {
                "QT_QPA_PLATFORM": "offscreen", **os.environ,
                "QT_SCALE_FACTOR": "1" if scale == LARGE_TEXT else scale,
                "RIGTUNE_HOME": str(folder / ".home"),
            }  # fmt: skip
            command = [sys.executable, __file__, str(folder), look, scale, language]
            subprocess.run(command, check=True, env=environment)
            # Each starts without the conversations of the one before.
            shutil.rmtree(folder / ".home", ignore_errors=True)
    return 0


class Camera:
    """Walks through the window and takes pictures."""

    def __init__(self, folder: Path, look: str, scale: str, language: str) -> None:
        """Open the window."""
        import msgspec
        from PySide6.QtWidgets import QApplication

        from app.store.preferences import Preferences
        from tests.fakes.session import FakeSession
        from views.colors import Scheme
        from views.icons import Icons
        from views.language import Language, Translations
        from views.main_window import MainWindow
        from views.options import Options
        from views.state import WindowState
        from views.theme import Theme
        from views.widgets import Kit

        size = scale if scale == LARGE_TEXT else int(float(scale) * 100)
        self._suffix = f"{language}-{look}-{size}"
        self._folder = folder
        self._app = QApplication([])
        if scale == LARGE_TEXT:
            font = self._app.font()
            font.setPointSizeF(2 * font.pointSizeF())
            self._app.setFont(font)
        translations = Translations(self._app, Language(language))
        preferences = {"theme": look, "language": language, "is_introduced": True}
        options = Options(msgspec.convert(preferences, Preferences))
        theme = Theme(self._app, Scheme(look))
        self._session = FakeSession()
        self._window = MainWindow(
            Kit(theme, Icons(theme), options), lambda: self._session, WindowState(), translations
        )
        self._window.resize(*SIZE)
        self._window.show()
        self._window.start()

    def run(self) -> None:
        """Take every picture."""
        window, session = self._window, self._session
        self._until(lambda: window.is_ready and not window.jobs.running())
        late = window.late
        assert late is not None
        self._take("dashboard")
        window.open_page("tune")
        self._until(lambda: not window.jobs.running())
        self._take("find-1-model")
        wizard = late.wizard
        wizard.choose_model(session.models()[0].path)
        self._until(lambda: bool(wizard.goal_step.estimate._bars))
        self._until(lambda: not window.jobs.running())
        self._take("find-2-goal")
        session.gate.clear()
        wizard.goal_step.next.click()
        self._until(wizard.plan_step.start.isEnabled)
        self._take("find-3-plan")
        wizard.plan_step.start.click()
        self._until(lambda: len(wizard.run_step._trials) == session.hold_at)
        self._take("find-4-measure")
        session.gate.set()
        self._until(lambda: wizard.step == "result" and not window.jobs.running())
        self._take("find-5-result")
        self._take_plots()
        window.open_page("chat")
        late.chat.offer(session.models()[0].path, "ab12")
        self._until(lambda: not window.jobs.running("profiles"))
        session.reasoning = "The user asks for a definition. Short, with an example."
        late.chat.send("What is a KV cache?")
        self._until(lambda: not late.chat.scene.is_answering)
        self._take("chat")
        for panel in (late.chat.with_history, late.chat.with_setup):
            panel.setChecked(True)
        self._take("chat-setup")
        for panel in (late.chat.with_history, late.chat.with_setup):
            panel.setChecked(False)
        window.open_page("results")
        self._until(late.results.view.chat.isEnabled)
        self._take("results")
        late.results.tools.compare.click()
        late.results.table.selectRow(1)
        self._until(late.results.compare.isVisible)
        self._take("results-compared")
        for page in ("advice", "settings", "intro"):
            window.open_page(page)
            self._take(page)
        window.finish()
        self._until(lambda: not window.isVisible())

    def _take_plots(self) -> None:
        from PySide6.QtWidgets import QScrollArea

        assert self._window.late is not None
        view = self._window.late.wizard.result_step
        area = view.findChild(QScrollArea)
        assert isinstance(area, QScrollArea)
        area.ensureWidgetVisible(view.plot)
        self._take("find-6-curve")

    def _until(self, is_done: Callable[[], bool]) -> None:
        end = time.monotonic() + MAX_WAIT_S
        while not is_done():
            if time.monotonic() > end:
                raise TimeoutError(is_done)
            self._app.processEvents()
            time.sleep(0.005)

    def _take(self, name: str) -> None:
        settled = time.monotonic() + 0.4
        self._until(lambda: time.monotonic() > settled)
        # Quality 0 is the strongest compression of PNG files.
        picture = self._window.grab().toImage()
        picture.save(str(self._folder / f"{name}-{self._suffix}.png"), quality=0)


if __name__ == "__main__":
    raise SystemExit(main())
