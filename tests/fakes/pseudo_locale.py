"""A language in which every translated text is marked and 40 % longer."""

from PySide6.QtCore import QObject, QTranslator
from typing_extensions import override

LEFT, RIGHT = "⟦", "⟧"


class PseudoTranslator(QTranslator):
    """Translates everything: ``Stop`` becomes ``⟦Stop~~⟧``."""

    def __init__(self, parent: QObject) -> None:
        """Remember what was asked for."""
        super().__init__(parent)
        self.asked: set[tuple[str, str]] = set()

    @override
    def translate(
        self, context: str, sourceText: str, disambiguation: str | None = None, n: int = -1
    ) -> str:
        if context == "Language" or not sourceText:
            return sourceText
        self.asked.add((context, sourceText))
        return pseudo(sourceText)

    @override
    def isEmpty(self) -> bool:
        return False


def pseudo(text: str) -> str:
    """Return ``text`` marked and longer."""
    return f"{LEFT}{text}{'~' * max(1, round(0.4 * len(text)))}{RIGHT}"
