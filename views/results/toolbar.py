"""What can be done with a stored result, as a row of icons beside the title."""

from views.widgets.basics import Kit
from views.widgets.flow import Flow


class Toolbar(Flow):
    """Buttons only; the page decides what they do."""

    def __init__(self, kit: Kit) -> None:
        """Build them disabled."""
        super().__init__(kit.unit // 2)
        self.check = kit.button(self.tr("Check Again"), "check", "quiet")
        self.check.setToolTip(self.tr("Measure the recommendation again and compare"))
        self.compare = kit.button(self.tr("Compare"), "compare", "quiet")
        self.compare.setToolTip(self.tr("Compare with another result"))
        self.rename = kit.icon_button(self.tr("Rename…"), "rename")
        self.delete = kit.icon_button(self.tr("Delete"), "bin")
        self.save = kit.icon_button(self.tr("Save as JSON…"), "export")
        self.load = kit.icon_button(self.tr("Open JSON…"), "import")
        for button in (self.check, self.compare, self.rename, self.delete, self.save, self.load):
            self.addWidget(button)

    def show_state(self, *, has_row: bool, can_compare: bool, can_check: bool) -> None:
        """Enable what works now."""
        for button in (self.rename, self.delete, self.save):
            button.setEnabled(has_row)
        self.compare.setEnabled(has_row and can_compare)
        self.check.setEnabled(can_check)
