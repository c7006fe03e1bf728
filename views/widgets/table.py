"""A read-only table of texts: lists, and the data twin that every plot has."""

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView
from typing_extensions import override

from views.widgets.basics import Kit

MIN_CHARS = 14
"""Least width of a column that shares the rest, characters."""
Index = QModelIndex | QPersistentModelIndex


class RowsModel(QAbstractTableModel):
    """Rows of texts under headers; numbers are aligned to the right."""

    def __init__(self, headers: Sequence[str], text_columns: int) -> None:
        """Start without rows; the first ``text_columns`` columns are words."""
        super().__init__()
        self._headers = tuple(headers)
        self._text_columns = text_columns
        self.rows: tuple[tuple[str, ...], ...] = ()

    def set_headers(self, headers: Sequence[str]) -> None:
        """Replace the words above the columns."""
        self._headers = tuple(headers)
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(headers) - 1)

    def set_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Replace the content."""
        self.beginResetModel()
        self.rows = tuple(tuple(row) for row in rows)
        self.endResetModel()

    @override
    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    @override
    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._headers)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self.rows[index.row()][index.column()]
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() >= self._text_columns:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._headers[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignLeft
            if section >= self._text_columns:
                side = Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        return None


class Table(QTableView):
    """Shows rows; the keyboard moves, Return chooses.

    Signals:
        row_chosen: Index of the row that was activated (Return or double click).
        row_selected: Index of the row that is current now.
    """

    row_chosen = Signal(int)
    row_selected = Signal(int)

    def __init__(self, kit: Kit, name: str, headers: Sequence[str], text_columns: int = 1) -> None:
        """Build it empty; ``name`` is read aloud."""
        super().__init__()
        self.setAccessibleName(name)
        self.rows = RowsModel(headers, text_columns)
        self.rows.setParent(self)
        self.setModel(self.rows)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(8 * kit.unit)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setHighlightSections(False)
        self._elastic: tuple[int, ...] = ()
        self.set_elastic(0)
        self.activated.connect(self._on_activated)
        self.selectionModel().currentRowChanged.connect(self._on_current_changed)

    def set_elastic(self, *columns: int) -> None:
        """Let ``columns`` share what the others leave."""
        header = self.horizontalHeader()
        for column in self._elastic:
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        for column in columns:
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        self._elastic = columns

    def _fit(self) -> None:
        """Scroll sideways rather than squeeze the elastic columns to nothing."""
        header = self.horizontalHeader()
        sizes = [header.sectionSize(i) for i in range(header.count()) if i not in self._elastic]
        least = MIN_CHARS * self.fontMetrics().averageCharWidth() * len(self._elastic)
        mode = QHeaderView.ResizeMode.Stretch
        if sum(sizes) + least > self.viewport().width():
            mode = QHeaderView.ResizeMode.ResizeToContents
        for column in self._elastic:
            if header.sectionResizeMode(column) != mode:
                header.setSectionResizeMode(column, mode)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def set_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Replace the rows and keep the current one where it still exists."""
        current = self.currentIndex().row()
        self.rows.set_rows(rows)
        self._fit()
        if 0 <= current < len(rows):
            self.selectRow(current)

    def set_all_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Replace the rows and be as high as they are: the page scrolls, the table does not."""
        self.set_rows(rows)
        header = self.horizontalHeader().sizeHint().height()
        self.setFixedHeight(header + self.verticalHeader().length() + 2 * self.frameWidth() + 2)

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        self.row_chosen.emit(index.row())

    @Slot(QModelIndex, QModelIndex)
    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid():
            self.row_selected.emit(current.row())
