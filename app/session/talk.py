"""A model loaded for chat on chosen settings."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from app.domain.events import ChatEvent, TrialProgress
from app.domain.model import ModelSpec
from app.domain.settings import Settings
from app.rig.chat_engine import ChatEngine
from app.rig.process import Launch
from app.worker.protocol import ChatMessage, Sampling


class Chat:
    """A loaded model. A context manager: leaving it unloads the model.

    Attributes:
        spec: The model.
        settings: Settings it runs on (effective once loaded).
        profile_id: Stored profile they come from, if any.
        notes: Sentences the user should know first.
    """

    def __init__(
        self,
        spec: ModelSpec,
        settings: Settings,
        launch: Launch,
        profile_id: str | None,
        notes: tuple[str, ...],
    ) -> None:
        """Prepare; nothing is loaded yet."""
        self.spec = spec
        self.settings = settings
        self.profile_id = profile_id
        self.notes = notes
        self._engine = ChatEngine(launch)

    @property
    def has_template(self) -> bool:
        """Whether the model brings a chat template; without one it completes plain text."""
        return self.spec.chat_template is not None

    @property
    def is_running(self) -> bool:
        """Whether it can answer: loaded and alive."""
        return self._engine.is_running

    def load(self) -> Iterator[TrialProgress]:
        """Load the model (again, after a crash); every event is a cancel point.

        Raises:
            EnvironmentProblem: The engine cannot be had or does not load it.
        """
        yield from self._engine.start(self.spec, self.settings)
        self.settings = self._engine.effective or self.settings

    def generate(
        self,
        messages: tuple[ChatMessage, ...],
        sampling: Sampling | None = None,
        max_tokens: int | None = None,
    ) -> Iterator[ChatEvent]:
        """Stream an answer; closing the generator cancels within one token."""
        yield from self._engine.generate(messages, sampling, max_tokens)

    def tokenize(self, text: str) -> int:
        """Return the number of tokens of ``text``."""
        return self._engine.tokenize(text)

    def close(self) -> None:
        """Unload the model."""
        self._engine.close()

    def __enter__(self) -> Self:
        """Load the model."""
        for _ in self.load():
            pass
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Unload the model."""
        self.close()
