"""A search that goes on after its window was closed: a note in the tray, or minimised."""

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, Slot
from PySide6.QtWidgets import QApplication, QMenu, QMessageBox, QSystemTrayIcon, QWidget
from typing_extensions import override

from views.widgets.basics import Kit

translate = QCoreApplication.translate


class Background(QObject):
    """Asks what to do with a running search, and keeps it while no window shows."""

    def __init__(self, kit: Kit, window: QWidget) -> None:
        """Nothing shows in the tray before it is needed."""
        super().__init__(window)
        self._kit = kit
        self._window = window
        self._tray: QSystemTrayIcon | None = None
        self._finish: Callable[[], None] | None = None
        self._title = ""

    @property
    def is_on(self) -> bool:
        """Whether the window is away and the tray stands for it."""
        return self._tray is not None

    def ask(self, finish: Callable[[], None]) -> QMessageBox:
        """Open the question; ``finish`` is called when the user wants to close.

        The dialog does not block: measuring and drawing go on behind it.
        """
        self._finish = finish
        box = QMessageBox(self._window)
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle(translate("Closing", "A search is running"))
        box.setText(translate("Closing", "A search is running. Stop it and close RigTune?"))
        box.setInformativeText(
            translate(
                "Closing", "What was measured is kept, and the next search can go on from there."
            )
        )
        role = QMessageBox.ButtonRole
        close = box.addButton(translate("Closing", "Stop and Close"), role.DestructiveRole)
        later = box.addButton(self._later_text(), role.AcceptRole)
        stay = box.addButton(translate("Closing", "Keep Searching"), role.RejectRole)
        box.setDefaultButton(stay)
        box.setEscapeButton(stay)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        close.clicked.connect(finish)
        later.clicked.connect(self.go_on)
        box.open()
        return box

    def _later_text(self) -> str:
        if QSystemTrayIcon.isSystemTrayAvailable():
            return translate("Closing", "Go On in the Background")
        return translate("Closing", "Minimise and Go On")

    @Slot()
    def go_on(self) -> None:
        """Take the window away; without a tray it is only minimised, or nobody would find it."""
        if not QSystemTrayIcon.isSystemTrayAvailable():
            self._window.showMinimized()
            return
        self._tray = tray = QSystemTrayIcon(self._kit.icons.icon("rigtune"), self)
        tray.setToolTip(translate("Closing", "RigTune: a search is running"))
        menu = QMenu(self._window)
        menu.addAction(translate("Closing", "Show RigTune")).triggered.connect(self.come_back)
        menu.addAction(translate("Closing", "Stop and Close")).triggered.connect(self._on_stop)
        tray.setContextMenu(menu)
        tray.activated.connect(self._on_activated)
        tray.messageClicked.connect(self.come_back)
        tray.show()
        QApplication.setQuitOnLastWindowClosed(False)
        self._window.hide()
        tray.showMessage(
            "RigTune", translate("Closing", "The search goes on. Click here to see it again.")
        )

    def tell(self, text: str) -> None:
        """Say what the search came to, or what it waits for, where nobody sees the window.

        In the tray as a note and on hover; without one in the title, which the taskbar shows.
        """
        if self._tray is None:
            self._tell_minimised(text)
        elif QSystemTrayIcon.isSystemTrayAvailable():
            self._tray.setToolTip(f"RigTune: {text}")
            self._tray.showMessage("RigTune", text)
        else:
            self.come_back()  # the tray has gone; nobody would find the window again

    def _tell_minimised(self, text: str) -> None:
        if self._window.isMinimized():
            self._title = self._title or self._window.windowTitle()
            self._window.setWindowTitle(f"RigTune: {text}")
            self._window.installEventFilter(self)
            QApplication.alert(self._window)

    @Slot()
    def come_back(self) -> None:
        """Show the window again."""
        QApplication.setQuitOnLastWindowClosed(True)
        if self._tray is not None:
            self._tray.hide()
            self._tray.deleteLater()
            self._tray = None
        self._window.showNormal()
        self._window.activateWindow()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.WindowStateChange and not self._window.isMinimized():
            self._window.removeEventFilter(self)
            self._window.setWindowTitle(self._title)
        return super().eventFilter(watched, event)

    @Slot(QSystemTrayIcon.ActivationReason)
    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason is not QSystemTrayIcon.ActivationReason.Context:
            self.come_back()

    @Slot()
    def _on_stop(self) -> None:
        self.come_back()
        if self._finish is not None:
            self._finish()
