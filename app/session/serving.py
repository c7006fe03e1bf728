"""A model served over HTTP on its tuned settings."""

import secrets
from collections.abc import Generator, Iterator
from contextlib import closing

import msgspec

from app.domain.events import ServerEvent, ServerProgress, ServerStarted, ServerStopped
from app.domain.model import ModelSpec
from app.domain.pacing import Pace
from app.domain.settings import Settings
from app.rig.lease import Lease
from app.rig.process import Launch
from app.rig.serving import serve_model
from app.session.aftermath import LookAfterDeath, explained, nothing_seen
from app.session.beside import shared_note
from app.session.landing import Landing
from app.session.power import Power

_TOKEN_BYTES = 24
HOST = "127.0.0.1"


class Server:
    """llama-cpp-python's OpenAI-compatible server, on loopback, behind a random token.

    Attributes:
        spec: The model.
        settings: Settings it is asked to run on.
        profile_id: Stored profile they come from, if any.
        notes: Sentences the user should know; complete once the server is up.
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
        power: Power | None = None,
        landing: Landing | None = None,
        after_death: LookAfterDeath = nothing_seen,
    ) -> None:
        """Prepare; nothing is loaded yet."""
        self._after_death = after_death
        self.spec = spec
        # it answers one request at a time, so it gets the context of all slots in one
        self.settings = msgspec.structs.replace(settings, n_seq_max=1)
        self.profile_id = profile_id
        self.notes = notes
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.alias = spec.name
        self._launch = launch
        self._lease = lease or Lease("serve")
        self._power, self._pace = power, Pace()
        self._landing = landing

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
                pace=lambda: self._pace,
            )
            power = self._power
            if self._lease.beside is not None:
                # two governors would undo each other's changes
                power, self.notes = None, (*self.notes, shared_note(self._lease.beside))
            with closing(events):
                landed = events if self._landing is None else self._landed(events, self._landing)
                told = landed if power is None else self._governed(landed, power)
                for event in told:
                    yield self._explained(event)

    def _landed(
        self, events: Generator[ServerEvent, None, None], landing: Landing
    ) -> Generator[ServerEvent, None, None]:
        """Pass the events on; before ``ServerStarted`` the notes say where the weights went."""
        started: list[ServerStarted] = []

        def load() -> Iterator[ServerEvent]:
            for event in events:
                if isinstance(event, ServerStarted):
                    started.append(event)
                    return
                yield event

        said = yield from landing.watched(load())
        self.notes = (*self.notes, *said)
        yield from started
        yield from events

    def _governed(
        self, events: Generator[ServerEvent, None, None], power: Power
    ) -> Generator[ServerEvent, None, None]:
        """Pass the events on; the devices are governed while the server is up."""
        keeper = None
        try:
            for event in events:
                if isinstance(event, ServerStarted):
                    keeper = power.begin(self.spec, event.effective, self._set_pace)
                elif isinstance(event, ServerProgress) and keeper is not None:
                    keeper.set_active(active=event.n_active > 0)
                yield event
        finally:
            if keeper is not None:
                power.end()

    def _explained(self, event: ServerEvent) -> ServerEvent:
        if not isinstance(event, ServerStopped) or event.error is None:
            return event
        return msgspec.structs.replace(event, error=explained(event.error, self._after_death))

    def _set_pace(self, pace: Pace) -> None:
        self._pace = pace
