"""The store as one object."""

from app.store.calibrations import Calibrations
from app.store.conversations import Conversations
from app.store.documents import Documents
from app.store.profiles import Profiles
from app.store.sweeps import Sweeps


class Store(Sweeps, Profiles, Documents, Conversations, Calibrations):
    """Everything RigTune remembers. ``Store.open()`` gives the user's own."""
