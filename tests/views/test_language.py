"""Languages: nothing on screen is untranslated, nothing in the catalogues is missing."""

import ast
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication, QLocale
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

import views
from app.runtime import asset
from tests.fakes import window_data as data
from tests.fakes.gui_guard import GuiGuard
from tests.fakes.pseudo_locale import LEFT, PseudoTranslator
from tests.fakes.session import FakeSession
from tests.views.conftest import OpenWindow
from views.language import Language, Translations, number_locale, resolved, text_language
from views.widgets import Kit
from views.wizard.goal_step import GoalStep
from views.words import error_text, number, sentence

ROOT = Path(views.__file__).parents[1]
CALLS = {"tr": 0, "translate": 1, "QT_TRANSLATE_NOOP": 1}
CHINESE = asset("translations/rigtune_zh_CN.ts")

# On screen and not translated, on purpose: names, units, settings, what the core itself says.
DATA = re.compile(
    r"^[\W\d_]*$"  # no letters
    r"|RigTune|NVIDIA|AMD|Qwen|mixtral|org/|gemma3|GGUF|LM Studio|Ollama|Hugging Face"
    r"|CUDA0|host|tok/s|GiB|MiB|GB/s|MHz|qwen2|llama|n_\w+|type_[kv]|flash_attn|load_mode"
    r"|English|简体中文|^[\d.,]+\W*(s|ms|min|W|%|°C)$|^(f16|mmap|q8_0)$|Xorg|^—$"
)


def sources() -> Iterator[tuple[Path, str]]:
    """Yield every text that the code asks a translation for."""
    for path in sorted((ROOT / "views").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else None
            name = node.func.id if isinstance(node.func, ast.Name) else name
            index = CALLS.get(name or "")
            if index is None or len(node.args) <= index:
                continue
            text = node.args[index]
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield path, text.value


def messages(catalogue: Path) -> list[tuple[str, str, str, bool]]:
    """Return context, source, translation and whether it is finished."""
    found = []
    for context in ET.parse(catalogue).getroot().iter("context"):
        for message in context.iter("message"):
            translation = message.find("translation")
            assert translation is not None
            text = "".join(translation.itertext()).strip()
            done = translation.get("type") != "unfinished" and bool(text)
            name, source = context.findtext("name") or "", message.findtext("source") or ""
            found.append((name, source, text, done))
    return found


def test_every_text_of_the_code_is_in_the_catalogue() -> None:
    """A new text must be collected and translated: run packaging/translations.py."""
    known = {source for _, source, _, _ in messages(CHINESE)}
    missing = [(path.name, text) for path, text in sources() if text and text not in known]
    assert missing == []


def test_every_text_is_translated() -> None:
    """No text may be left in English; one whose words are the same in both is repeated."""
    assert [m[1] for m in messages(CHINESE) if not m[3]] == []


def test_catalogue_has_no_context_that_nobody_asks() -> None:
    """``tr`` of a variable ends up in a context of that name, which is never looked up."""
    names = {name for name, *_ in messages(CHINESE)}
    assert all(re.fullmatch(r"[A-Z]\w+", name) for name in names)


@pytest.mark.parametrize("pattern", [r"\{[^}]*\}", r"%L?n", r"&\w", r"<br>|</?b>"])
def test_placeholders_are_the_same(pattern: str) -> None:
    """A translation must take the same values, and keep a key for the keyboard."""
    for _, source, text, _ in messages(CHINESE):
        ours, theirs = (sorted(re.findall(pattern, t)) for t in (source, text))
        if pattern.startswith("&"):
            assert len(ours) == len(theirs), source
        else:
            assert ours == theirs, source


@pytest.mark.parametrize("name", ["rigtune_zh_CN", "rigtune_en"])
def test_compiled_catalogue_is_of_today(name: str, tmp_path: Path) -> None:
    """What is shipped must be made from what is translated."""
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        import translations
    finally:
        sys.path.remove(str(ROOT / "packaging"))
    target = tmp_path / "now.qm"
    translations.compile_to(asset(f"translations/{name}.ts"), target)
    assert target.read_bytes() == asset(f"translations/{name}.qm").read_bytes()


@pytest.fixture
def chinese(qapp: QApplication) -> Iterator[Translations]:
    """Speak Chinese for one test."""
    translations = Translations(qapp, Language.CHINESE)
    yield translations
    qapp.removeTranslator(translations._translators["zh"])
    QLocale.setDefault(QLocale.c())
    translations.deleteLater()


def test_core_texts_follow_the_language(chinese: Translations) -> None:
    """Reasons and errors must be in the language of the window, details included."""
    from app.domain.errors import ErrorInfo
    from views.wizard.plan_step import note_text

    assert text_language() == "zh"
    assert note_text("changed_engine") != "changed engine"
    assert note_text("changed_engine") not in ("", note_text("x"))
    said = error_text(ErrorInfo(code="disk_full", message="The disk is full.", hint="Free some."))
    assert "磁盘" in said
    assert "Free some." in said
    broken = ErrorInfo(
        code="gguf_empty", message="x.gguf is empty (0 bytes).", hint="Choose another file."
    )
    assert re.findall(r"[A-Za-z.]+", error_text(broken)) == ["x.gguf"]
    data = {"message": broken.message}
    assert "empty" not in sentence("finding", "engine_missing", data)


def test_no_choice_stands_there_as_a_raw_word(chinese: Translations) -> None:
    """A choice is said in words, with llama.cpp's own word after it; types have no other."""
    from app.domain.settings import SETTINGS, Settings
    from views.results.text import setting_text

    assert text_language() == "zh"
    plain = Settings(n_gpu_layers=9, devices=("CUDA0",))
    for info in SETTINGS:
        for choice in info.choices if info.name not in ("type_k", "type_v") else ():
            value = type(getattr(plain, info.name))(choice)
            text = setting_text(msgspec.structs.replace(plain, **{info.name: value}), info.name)
            assert re.fullmatch(rf"[\u4e00-\u9fff]+\uff08{choice}\uff09", text), (info.name, text)


def test_plurals_follow_the_number(qapp: QApplication) -> None:
    """English needs two forms; the code holds neither."""
    translations = Translations(qapp, Language.ENGLISH)
    texts = [QCoreApplication.translate("GoalStep", "%n block(s)", "", n) for n in (1, 2)]
    assert texts == ["1 block", "2 blocks"]
    qapp.removeTranslator(translations._translators["en"])
    QLocale.setDefault(QLocale.c())


@pytest.mark.parametrize(
    ("chosen", "system", "code", "sample"),
    [
        (Language.SYSTEM, "de_DE", "en", "1,234.5"),
        (Language.SYSTEM, "zh_CN", "zh", "1,234.5"),
        (Language.SYSTEM, "zh_TW", "zh", "1,234.5"),
        (Language.SYSTEM, "en_ZA", "en", "1,234.5"),
        (Language.ENGLISH, "ar_EG", "en", "1,234.5"),
        (Language.CHINESE, "C", "zh", "1,234.5"),
        (Language.SYSTEM, "C", "en", "1,234.5"),
        (Language.SYSTEM, "en_IN", "en", "1,234.5"),
        (Language.SYSTEM, "xx_YY", "en", "1,234.5"),
    ],
)
def test_odd_locales(chosen: Language, system: str, code: str, sample: str) -> None:
    """Whatever the system says, language and numbers must fit each other."""
    locale = QLocale(system)
    assert resolved(chosen, locale) == code
    QLocale.setDefault(number_locale(code, locale))
    assert number(1234.5, 1) == sample
    QLocale.setDefault(QLocale.c())


def shown_texts(window: QWidget) -> Iterator[str]:
    """Yield what is readable on screen now."""
    for widget in window.findChildren(QWidget):
        if not widget.isVisible():
            continue
        if isinstance(widget, QLabel | QAbstractButton):
            yield widget.text()
        elif isinstance(widget, QComboBox):
            yield from (widget.itemText(i) for i in range(widget.count()))
        elif isinstance(widget, QAbstractSpinBox):
            yield widget.text()
        elif isinstance(widget, QLineEdit):
            yield widget.placeholderText()
        yield widget.toolTip()
        name = widget.accessibleName()
        yield name if not isinstance(widget, QLabel) else ""


def test_nothing_on_screen_is_untranslated(
    qapp: QApplication,
    kit: Kit,
    session: FakeSession,
    open_window: OpenWindow,
    guard: GuiGuard,
    qtbot: QtBot,
) -> None:
    """On each page every text must have gone through the translation, or be a name or number."""
    translator = PseudoTranslator(qapp)
    qapp.installTranslator(translator)
    try:
        window = open_window(session)
        late = window.late
        assert late is not None
        plain: set[str] = set()

        def look() -> None:
            qtbot.waitUntil(lambda: not window.jobs.running())
            plain.update(
                t for t in shown_texts(window) if t and LEFT not in t and not DATA.search(t)
            )

        for key in ("dashboard", "advice", "settings", "intro", "results", "tune"):
            window.open_page(key)
            look()
        wizard = late.wizard
        wizard.choose_model("x")
        qtbot.waitUntil(lambda: wizard.step == "goal" and bool(wizard.goal_step.estimate._bars))
        look()
        wizard.goal_step.next.click()
        qtbot.waitUntil(wizard.plan_step.start.isEnabled)
        plain.update(t for t in shown_texts(window) if t and LEFT not in t and not DATA.search(t))
        wizard.plan_step.start.click()
        qtbot.waitUntil(lambda: wizard.step == "result")
        look()
        # Sentences of assets/text are English here by design: the pseudo language has no file.
        catalogue = asset("text/en.toml").read_text("utf-8")
        stems = {t for t in plain if t[:25] in catalogue}
        reasons = set(wizard.result_step._reasons.text().splitlines())
        assert reasons
        assert plain - stems - reasons == set()
    finally:
        qapp.removeTranslator(translator)


def test_what_is_odd_about_a_model_is_said_in_chinese(
    qapp: QApplication, kit: Kit, qtbot: QtBot
) -> None:
    """The core finds it in English; the page must not show it so."""
    translations = Translations(qapp, Language.CHINESE)
    step = GoalStep(kit)
    qtbot.addWidget(step)
    odd = "The file has no chat template: the model completes text instead of chatting."
    step.show_model(msgspec.structs.replace(data.SPEC, problems=(odd,)))
    assert "聊天模板" in step.banner.text
    translations.choose(Language.ENGLISH)
