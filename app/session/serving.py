"""A model served over HTTP on its tuned settings."""

import secrets
from collections.abc import Generator
from contextlib import closing

import msgspec

from app.domain.events import ServerEvent
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.rig.lease import Lease
from app.rig.process import Launch
from app.rig.serving import serve_model

_TOKEN_BYTES = 24
HOST = "127.0.0.1"


class Server:
    """llama-cpp-python's OpenAI-compatible server, on loopback, behind a random token.

    Attributes:
        spec: The model.
        settings: Settings it is asked to run on.
        profile_id: Stored profile they come from, if any.
        notes: Sentences the user should know first.
        token: What clients send as API key; new for every server.
        alias: Name of the model towards clients.
    """

    def __init__(
        self,
        spec: ModelSpec,
        settings: Settings,
        launch: Launch,
        profile_id: str | None,
        notes: tuple[str, ...],
        *,
        lease: Lease | None = None,
    ) -> None:
        """Prepare; nothing is loaded yet."""
        self.spec = spec
        # it answers one request at a time, so it gets the context of all slots in one
        self.settings = msgspec.structs.replace(settings, n_seq_max=1)
        self.profile_id = profile_id
        self.notes = notes
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.alias = spec.name
        self._launch = launch
        self._lease = lease or Lease("serve")

    def run(self, port: int = 0) -> Generator[ServerEvent, None, None]:
        """Load the model and serve it until the generator is closed.

        Args:
            port: Port on 127.0.0.1; 0 = any free one (``ServerStarted`` says which).

        Raises:
            EnvironmentProblem: Engine or server do not start, or the devices are ``busy``.
        """
        with self._lease:
            events = serve_model(
                self._launch,
                self.spec,
                self.settings,
                alias=self.alias,
                port=port,
                token=self.token,
            )
            with closing(events):
                yield from events
