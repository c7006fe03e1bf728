"""What the window remembers."""

from app.runtime import data_dir
from views.state import FILE_NAME, WindowState, load_state, save_state


def test_state_comes_back() -> None:
    """What was saved must be there at the next start."""
    state = WindowState(last_model="/models/ä b.gguf", recent=("/a", "/b"))
    save_state(state)
    assert load_state() == state


def test_broken_state_costs_nothing_more() -> None:
    """A file that cannot be read must not keep the window from opening."""
    (data_dir() / FILE_NAME).write_text('{"recent": 3}', encoding="utf-8")
    assert load_state() == WindowState()
