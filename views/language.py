"""The language of the window: translators, and the locale that numbers are written in."""

from enum import StrEnum

from PySide6.QtCore import QCoreApplication, QLocale, QObject, QTranslator, Signal

from app.runtime import asset

CATALOGUES = {"en": "rigtune_en.qm", "zh": "rigtune_zh_CN.qm"}


class Language(StrEnum):
    """What the user chose; ``system`` follows the system where RigTune speaks its language."""

    SYSTEM = "system"
    ENGLISH = "en"
    CHINESE = "zh"


class Translations(QObject):
    """Holds the translators of every language and installs the one in use.

    The files are read once, at start-up: nothing opens a file on the GUI thread later.

    Signals:
        changed: The texts are different now; what was built before shows the old ones.
    """

    changed = Signal()

    def __init__(self, app: QCoreApplication, language: Language = Language.SYSTEM) -> None:
        """Speak ``language`` from now on."""
        super().__init__(app)
        self._app = app
        # Qt keeps no copy: the bytes must live as long as the translator.
        self._data = {code: _read(name) for code, name in CATALOGUES.items()}
        self._translators = {code: QTranslator(self) for code in CATALOGUES}
        for code, translator in self._translators.items():
            translator.load(self._data[code])
        self._installed = ""
        self._language = language
        self._install()

    @property
    def language(self) -> Language:
        """What the user chose."""
        return self._language

    def choose(self, language: Language) -> None:
        """Speak ``language``; whoever shows texts builds itself anew on ``changed``."""
        self._language = language
        before = self._installed
        self._install()
        if self._installed != before:
            self.changed.emit()

    def _install(self) -> None:
        code = resolved(self._language, QLocale.system())
        if code == self._installed:
            return
        if self._installed:
            self._app.removeTranslator(self._translators[self._installed])
        self._app.installTranslator(self._translators[code])
        self._installed = code
        QLocale.setDefault(number_locale(code, QLocale.system()))


def resolved(language: Language, system: QLocale) -> str:
    """Return the code of the language to speak: English where there is no other."""
    if language is not Language.SYSTEM:
        return language.value
    return "zh" if system.language() == QLocale.Language.Chinese else "en"


def number_locale(code: str, system: QLocale) -> QLocale:
    """Return how numbers are written: as the system does where it speaks the same language.

    Elsewhere the language's own way, because a German comma in an English sentence misleads; so
    would a decimal comma beside the core's own numbers.
    """
    chinese, english = QLocale.Language.Chinese, QLocale.Language.English
    own = QLocale(chinese) if code == "zh" else QLocale(english, QLocale.Country.UnitedStates)
    is_alike = system.language() == own.language() and system.decimalPoint() == "."
    return system if is_alike else own


def text_language() -> str:
    """Return the code of the language in use, for ``app.advice.text``."""
    # Each catalogue translates this word into its own code: no state besides Qt's own.
    return QCoreApplication.translate("Language", "en", "code of this language: en or zh")


def _read(name: str) -> bytes:
    try:
        return asset(f"translations/{name}").read_bytes()
    except OSError:
        return b""  # English is in the code
