"""What is said above a conversation when several things are to be said at once."""

from tests.fakes import window_data as data
from tests.fakes.session import FakeSession
from tests.views.chat.conftest import User
from views.chat.page import ChatPage

NOTE = "No tuned profile for this model yet; using defaults that fit."


def test_bad_template_is_said_beside_what_a_load_says(
    chat: ChatPage, session: FakeSession, user: User
) -> None:
    """A model without a profile has a note of its own: it must not hide the warning."""
    session.checked = data.BAD_TEMPLATE
    session.chat_notes = (NOTE,)
    user.say("one")
    assert "markers" in chat.banner.text
    assert NOTE in chat.banner.text
    chat.banner._action.click()
    assert chat.setup.isVisible()


def test_dead_engine_is_gone_on_with_whatever_its_template_was(
    chat: ChatPage, session: FakeSession, user: User
) -> None:
    """The button of the last thing said counts, not that of an earlier warning."""
    session.checked = data.BAD_TEMPLATE
    session.breaks = True
    user.say("one")
    assert chat.banner.text == "The engine ended. Restart."
    session.breaks = False
    chat.banner._action.click()
    user.wait()
    assert not chat.setup.isVisible()
    assert len(session.asked) == 2
