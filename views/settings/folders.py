"""Folders of the user's own in which models are looked for."""

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QListWidget, QVBoxLayout, QWidget

from views.widgets.basics import Kit


class Folders(QWidget):
    """A list with Add and Remove."""

    def __init__(self, kit: Kit) -> None:
        """Show the stored folders."""
        super().__init__()
        self._options = kit.options
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(kit.unit)
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Folders with models"))
        self.list.setFixedHeight(22 * kit.unit)
        column.addWidget(self.list)
        row = QHBoxLayout()
        self.add = kit.button(self.tr("Add Folder…"), "folder")
        self.remove = kit.button(self.tr("Remove"), "close")
        row.addWidget(self.add)
        row.addWidget(self.remove)
        row.addStretch(1)
        column.addLayout(row)
        self.add.clicked.connect(self._on_add_clicked)
        self.remove.clicked.connect(self._on_remove_clicked)
        self.list.currentRowChanged.connect(self._show_remove)
        self._show()

    def _show(self) -> None:
        self.list.clear()
        folders = self._options.value.model_folders
        self.list.addItems(list(folders))
        self.list.setVisible(bool(folders))
        self._show_remove()

    @Slot()
    def _show_remove(self) -> None:
        self.remove.setEnabled(self.list.currentRow() >= 0)

    @Slot()
    def _on_add_clicked(self) -> None:
        dialog = QFileDialog(self, self.tr("Folder with models"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self.add_folder)
        dialog.open()

    @Slot(str)
    def add_folder(self, path: str) -> None:
        """Look into ``path``, too."""
        known = self._options.value.model_folders
        if path not in known:
            self._options.change(model_folders=(*known, path))
            self._show()

    @Slot()
    def _on_remove_clicked(self) -> None:
        item = self.list.currentItem()
        if item is None:
            return
        known = self._options.value.model_folders
        self._options.change(model_folders=tuple(p for p in known if p != item.text()))
        self._show()
