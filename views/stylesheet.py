"""The style sheet that Fusion's own drawing needs on top: cards, sidebar, buttons, pills.

Widgets are selected by the dynamic properties ``role`` and ``tone``, not by classes of our own,
so that any widget can be a card or a primary button.
"""

from views.colors import Colors


def stylesheet(colors: Colors, unit_px: int, *, controls: str) -> str:
    """Return the style sheet of the application.

    Args:
        colors: What stands for each colour: ``colors.ROLES``.
        unit_px: The step of all spacing, pixels.
        controls: Folder of the arrows and ticks that controls show.
    """
    return "".join(
        (_areas(colors, unit_px), _buttons(colors, unit_px), _sidebar(colors, unit_px),
         _inputs(colors, unit_px), _tones(colors), _lists(colors, unit_px),
         _scroll_bars(colors, unit_px), _fields(colors, unit_px, controls),
         _choices(colors, unit_px, f"{controls}/check.svg"))
    )  # fmt: skip


def _areas(c: Colors, u: int) -> str:
    return f"""
    QMainWindow, QWidget[role="page"], QScrollArea[role="page"] {{ background: {c.window}; }}
    QScrollArea {{ border: none; background: transparent; }}
    QFrame[role="card"] {{
        background: {c.surface}; border: 1px solid {c.line}; border-radius: {2 * u}px;
    }}
    QFrame[role="sunken"] {{ background: {c.sunken}; border: none; border-radius: {u}px; }}
    QLabel[role="muted"] {{ color: {c.muted}; }}
    QLabel[role="link"] {{ color: {c.accent}; }}
    QToolTip {{
        background: {c.surface}; color: {c.text}; border: 1px solid {c.control}; padding: {u}px;
    }}
    QMenuBar {{ background: {c.window}; }}
    QMenuBar::item {{ padding: {u}px {2 * u}px; background: transparent; }}
    QMenuBar::item:selected {{ background: {c.sunken}; }}
    """


def _buttons(c: Colors, u: int) -> str:
    return f"""
    QPushButton {{
        background: {c.surface}; color: {c.text}; border: 1px solid {c.control};
        border-radius: {u + 1}px; padding: {u}px {3 * u}px; min-height: {5 * u}px;
    }}
    QPushButton:hover {{ background: {c.sunken}; }}
    QPushButton:pressed {{ background: {c.line}; }}
    QPushButton:disabled {{ color: {c.control}; border-color: {c.line}; }}
    QPushButton:checked {{ background: {c.sunken}; border-color: {c.accent}; }}
    QPushButton[role="primary"] {{
        background: {c.accent}; color: {c.on_accent}; border: 1px solid {c.accent};
        font-weight: 700;
    }}
    QPushButton[role="primary"]:hover {{ border-color: {c.text}; }}
    QPushButton[role="primary"]:disabled {{
        background: {c.sunken}; color: {c.control}; border-color: {c.line};
    }}
    QPushButton[role="quiet"], QToolButton[role="quiet"] {{
        background: transparent; border: 1px solid transparent; padding: {u}px {2 * u}px;
        border-radius: {u + 1}px;
    }}
    QPushButton[role="quiet"]:hover, QToolButton[role="quiet"]:hover {{ background: {c.sunken}; }}
    QPushButton[role="quiet"]:checked {{ background: {c.sunken}; border-color: {c.control}; }}
    QPushButton:focus, QToolButton[role="quiet"]:focus {{
        border: 2px solid {c.accent}; padding: {u - 1}px {3 * u - 1}px;
    }}
    QPushButton[role="quiet"]:focus, QToolButton[role="quiet"]:focus {{
        border: 2px solid {c.accent}; padding: {u - 1}px {2 * u - 1}px;
    }}
    QPushButton[role="primary"]:focus {{ border: 2px solid {c.text}; }}
    """


def _sidebar(c: Colors, u: int) -> str:
    return f"""
    QWidget[role="sidebar"] {{ background: {c.surface}; border-right: 1px solid {c.line}; }}
    QToolButton[role="nav"] {{
        background: transparent; color: {c.text}; border: 2px solid transparent;
        border-left-width: 4px; border-radius: {u + 2}px; text-align: left;
        border-top-left-radius: 0; border-bottom-left-radius: 0;
        padding: {2 * u - 2}px {2 * u}px;
    }}
    QToolButton[role="nav"]:hover {{ background: {c.sunken}; }}
    QToolButton[role="nav"]:checked {{
        background: {c.sunken}; color: {c.accent}; border-left-color: {c.accent};
    }}
    QToolButton[role="nav"]:focus {{ border-color: {c.accent}; }}
    """


def _inputs(c: Colors, u: int) -> str:
    return f"""
    QLineEdit, QPlainTextEdit {{
        background: {c.surface}; border: 1px solid {c.control}; border-radius: {u + 1}px;
        padding: {u}px; selection-background-color: {c.accent};
        selection-color: {c.on_accent};
    }}
    QLineEdit:focus, QPlainTextEdit:focus {{ border: 2px solid {c.accent}; padding: {u - 1}px; }}
    QTextBrowser[role="message"] {{ background: transparent; border: none; }}
    QFrame[role="code"] {{ background: {c.window}; border-radius: {u}px; }}
    QPlainTextEdit[role="code"], QPlainTextEdit[role="code"]:focus {{
        background: transparent; border: none; padding: 0;
    }}
    QProgressBar {{
        background: {c.sunken}; border: none; border-radius: {u}px; height: {2 * u}px;
        text-align: center;
    }}
    QProgressBar::chunk {{ background: {c.accent}; border-radius: {u}px; }}
    """


def _tones(c: Colors) -> str:
    tones = {"good": c.good, "warn": c.warn, "bad": c.bad, "info": c.accent, "muted": c.muted}
    return "".join(
        f"""
    QFrame[role="pill"][tone="{tone}"] {{
        background: transparent; border: 1px solid {color}; border-radius: 6px;
    }}
    QLabel[tone="{tone}"] {{ color: {color}; }}
    QFrame[role="banner"][tone="{tone}"] {{
        background: {c.surface}; border: 1px solid {color}; border-left: 5px solid {color};
        border-radius: 6px; border-top-left-radius: 0; border-bottom-left-radius: 0;
    }}
    """
        for tone, color in tones.items()
    )


def _lists(c: Colors, u: int) -> str:
    return f"""
    QAbstractItemView {{
        background: {c.surface}; border: 1px solid {c.line}; border-radius: {u}px;
        selection-background-color: {c.accent}; selection-color: {c.on_accent};
        gridline-color: {c.line}; outline: none;
    }}
    QAbstractItemView:focus {{ border: 2px solid {c.accent}; }}
    QListWidget::item {{ padding: {u}px {2 * u}px; border-radius: {u}px; }}
    QTableView::item {{ padding: 0 {2 * u}px; border: none; }}
    QTableView::item:selected {{ background: {c.accent}; color: {c.on_accent}; }}
    QHeaderView {{ background: {c.window}; border: none; }}
    QHeaderView::section {{
        background: {c.window}; color: {c.muted}; border: none;
        border-bottom: 1px solid {c.line}; padding: {u}px {2 * u}px;
    }}
    """


def _scroll_bars(c: Colors, u: int) -> str:
    wide = 3 * u
    return f"""
    QScrollBar:vertical {{ background: transparent; width: {wide}px; margin: 0; }}
    QScrollBar:horizontal {{ background: transparent; height: {wide}px; margin: 0; }}
    QScrollBar::handle {{
        background: {c.control}; border-radius: {u - 1}px; margin: 2px;
    }}
    QScrollBar::handle:vertical {{ min-height: {8 * u}px; }}
    QScrollBar::handle:horizontal {{ min-width: {8 * u}px; }}
    QScrollBar::handle:hover {{ background: {c.muted}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QSplitter::handle {{ background: transparent; }}
    """


def _fields(c: Colors, u: int, controls: str) -> str:
    reach = 3 * u // 2
    handle = u + 2 * reach  # as wide as high: a radius of more than half of it draws a square
    return f"""
    QComboBox, QAbstractSpinBox {{
        background: {c.surface}; color: {c.text}; border: 1px solid {c.control};
        border-radius: {u + 1}px; padding: 1px {2 * u}px; min-height: {5 * u}px;
        selection-background-color: {c.accent}; selection-color: {c.on_accent};
    }}
    QComboBox:focus, QAbstractSpinBox:focus {{
        border: 2px solid {c.accent}; padding: 0 {2 * u - 1}px;
    }}
    QAbstractSpinBox QLineEdit {{
        border: none; padding: 0 {2 * u - 1}px; background: transparent;
    }}
    QComboBox::drop-down {{ border: none; width: {5 * u}px; }}
    QComboBox::down-arrow, QAbstractSpinBox::down-arrow {{
        image: url("{controls}/down.svg"); width: {3 * u}px; height: {3 * u}px;
    }}
    QAbstractSpinBox::up-arrow {{
        image: url("{controls}/up.svg"); width: {3 * u}px; height: {3 * u}px;
    }}
    QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{
        border: none; background: transparent; width: {5 * u}px;
    }}
    QSlider:horizontal {{ min-height: {handle}px; }}
    QSlider::groove:horizontal {{
        background: {c.control}; height: {u}px; border-radius: {u // 2}px;
    }}
    QSlider::sub-page:horizontal {{ background: {c.accent}; border-radius: {u // 2}px; }}
    QSlider::handle:horizontal {{
        background: {c.accent}; border: 2px solid {c.surface}; border-radius: {handle // 2}px;
        width: {handle - 4}px; margin: -{reach}px 0;
    }}
    QSlider::handle:horizontal:focus {{ border-color: {c.text}; }}
    """


def _choices(c: Colors, u: int, check: str) -> str:
    size = 4 * u - 2
    dot = f"qradialgradient(cx:0.5, cy:0.5, radius:0.5, fx:0.5, fy:0.5, stop:0 {c.accent}, "
    return f"""
    QCheckBox::indicator, QRadioButton::indicator {{
        width: {size}px; height: {size}px; border: 1px solid {c.control};
        background: {c.surface};
    }}
    QCheckBox, QRadioButton {{ spacing: {3 * u // 2}px; }}
    QCheckBox::indicator {{ border-radius: {u - 1}px; }}
    QRadioButton::indicator {{ border-radius: {size // 2 + 1}px; }}
    QCheckBox::indicator:checked {{
        background: {c.accent}; border-color: {c.accent}; image: url("{check}");
    }}
    QRadioButton::indicator:checked {{
        border-color: {c.accent};
        background: {dot} stop:0.55 {c.accent}, stop:0.65 {c.surface}, stop:1 {c.surface});
    }}
    QCheckBox::indicator:focus, QRadioButton::indicator:focus {{ border: 2px solid {c.accent}; }}
    """
