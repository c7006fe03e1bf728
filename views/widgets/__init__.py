"""Small building blocks that every page uses; they know nothing of the session."""

from views.widgets.banner import Banner
from views.widgets.basics import Card, Heading, Kit, ValueLabel, primary, text_label
from views.widgets.empty_state import EmptyState
from views.widgets.pill import Pill
from views.widgets.table import Table

__all__ = [
    "Banner",
    "Card",
    "EmptyState",
    "Heading",
    "Kit",
    "Pill",
    "Table",
    "ValueLabel",
    "primary",
    "text_label",
]
