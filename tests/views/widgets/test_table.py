"""Tables: as high as asked for."""

from pytestqt.qtbot import QtBot

from views.widgets import Kit, Table


def test_table_of_all_rows_does_not_scroll(kit: Kit, qtbot: QtBot) -> None:
    """Inside a page that scrolls, a table must show every row at once, however many there are."""
    table = Table(kit, "Settings", ["Setting", "Value"])
    qtbot.addWidget(table)
    table.resize(400, 50)
    table.show()
    for n_rows in (3, 40):
        table.set_all_rows([("a", "b")] * n_rows)
        qtbot.waitUntil(lambda: table.verticalScrollBar().maximum() == 0)
        last = table.visualRect(table.rows.index(table.rows.rowCount() - 1, 0))
        assert table.viewport().rect().contains(last)
