"""llama-cpp-python's OpenAI-compatible server on a model that our own engine has loaded.

Its ``Llama`` class cannot express several of our settings and swallows unknown ones. So it gets
weights and context as the profile says, ready made, in place of those it would create; and two
of its habits are replaced: it reuses a prompt's prefix where the model cannot go back (sliding
window), and it runs chat templates without a time limit.
"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

import uvicorn
from llama_cpp import llama_chat_format
from llama_cpp.server import app as server_app
from llama_cpp.server.settings import ModelSettings, ServerSettings
from typing_extensions import override

from app.domain.causes import shorten
from app.domain.outcome import Outcome
from app.worker.cancel import EngineFailure
from app.worker.engine import Context, Engine, Model
from app.worker.native import llama
from app.worker.paced import Link, PacedDecode
from app.worker.prompt import template_source, token_text
from app.worker.protocol import (
    LoadProgress,
    Message,
    Serve,
    ServeFinished,
    ServeProgress,
    ServeStarted,
)
from app.worker.template import MAX_S, render

HOST = "127.0.0.1"
_POLL_S = 0.1
_LINGER_S = 1.0

Send = Callable[[Message], None]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]


class ServeLink(Link, Protocol):
    """The parent: hears how it goes, and says at what pace to work."""

    def send(self, message: Message) -> None:
        """Send one message."""
        ...


def serve_openai(engine: Engine, link: ServeLink, request: Serve) -> ServeFinished:
    """Load the model, serve it until the parent cancels, and return.

    Raises:
        EngineFailure: The engine refused, the port is taken, or the server did not start.
    """
    listener, send = _listen(request.port), link.send
    try:
        engine.load(request.model_path, request.settings, lambda f: send(LoadProgress(frac=f)))
        model = engine.loaded()
        context = engine.open_context(model, request.settings)
        devices, effective = context.known_devices(), context.settings
        proxy, app = _build(model, context, request)
        native: Any = proxy()._ctx  # noqa: SLF001 - it has no other access
        native.decode = PacedDecode(native.decode, link, engine.cancel.is_set)
        # from here on the server owns both
        engine.model = None
    except BaseException:
        listener.close()
        raise
    try:
        send(ServeStarted(port=listener.getsockname()[1], effective=effective, devices=devices))
        counted = _Counted(app, send)
        asyncio.run(_run(counted, listener, engine))
        return ServeFinished(n_requests=counted.n_requests)
    finally:
        proxy.free()
        listener.close()


class _Counted:
    """Tells the parent how many requests there are."""

    def __init__(self, app: Asgi, send: Send) -> None:
        self.n_requests = 0
        self._n_active = 0
        self._app = app
        self._send = send

    async def __call__(self, scope: Any, receive: Any, reply: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, reply)
            return
        self.n_requests += 1
        self._tell(1)
        try:
            await self._app(scope, receive, reply)
        finally:
            self._tell(-1)

    def _tell(self, change: int) -> None:
        self._n_active += change
        self._send(ServeProgress(n_requests=self.n_requests, n_active=self._n_active))


class _Formatter(llama_chat_format.ChatFormatter):
    """Writes prompts with the model's template, in our sandbox."""

    def __init__(self, model: Model) -> None:
        self._source = template_source(model)
        self._bos = token_text(model, llama.llama_vocab_bos(model.vocab))
        self._eos = token_text(model, llama.llama_vocab_eos(model.vocab))

    @override
    def __call__(self, *, messages: list[Any], **variables: Any) -> Any:
        wanted = ("tools", "tool_choice", "functions", "function_call")
        text = render(
            self._source,
            [{**m, "content": m.get("content") or ""} for m in messages],
            time.monotonic() + MAX_S,
            add_generation_prompt=True,
            bos_token=self._bos,
            eos_token=self._eos,
            enable_thinking=True,
            **{name: variables.get(name) for name in wanted},
        )
        is_complete = bool(self._bos) and text.startswith(self._bos)
        return llama_chat_format.ChatFormatterResponse(
            prompt=text, stop=[], added_special=is_complete
        )


def _plain_formatter(*, messages: list[Any], **_: Any) -> Any:
    """Complete the plain texts: a base model has no other form."""
    text = "\n".join(str(m.get("content") or "") for m in messages)
    return llama_chat_format.ChatFormatterResponse(prompt=text, stop=[])


def _build(model: Model, context: Context, request: Serve) -> tuple[Any, Any]:
    """Return the server's model holder and its ASGI application."""
    # it would read its settings from there
    os.environ.pop("CONFIG_FILE", None)
    settings = ModelSettings.model_construct(
        model=request.model_path,
        model_alias=request.alias,
        n_ctx=context.settings.n_ctx,
        n_batch=context.settings.n_batch,
        n_ubatch=context.settings.n_ubatch,
        n_threads=context.settings.n_threads,
        n_threads_batch=context.settings.n_threads_batch,
        logits_all=False,
        embedding=False,
        verbose=False,
    )
    server = ServerSettings.model_construct(
        host=HOST, port=request.port, api_key=request.token, interrupt_requests=False
    )
    try:
        with _ready_made(model, context):
            app = server_app.create_app(server_settings=server, model_settings=[settings])
    except Exception as error:
        reason = shorten(f"{type(error).__name__}: {error}")
        message = f"The server did not start: {reason}"
        raise EngineFailure(Outcome.LOAD_FAILED, "server_failed", message) from error
    proxy: Any = server_app._llama_proxy  # noqa: SLF001 - it has no other access
    llm: Any = proxy()
    formatter = _Formatter(model) if template_source(model) else _plain_formatter
    llm.chat_handler = llama_chat_format.chat_formatter_to_chat_completion_handler(formatter)
    llm._ctx.kv_cache_seq_rm = _careful_cut(context)  # noqa: SLF001 - as above
    return proxy, app


@contextlib.contextmanager
def _ready_made(model: Model, context: Context) -> Iterator[None]:
    """Let the server's classes take over weights and context instead of creating them."""
    before = llama.llama_model_load_from_file, llama.llama_init_from_model
    llama.llama_model_load_from_file = lambda *_: model.handle
    llama.llama_init_from_model = lambda *_: context.handle
    try:
        yield
    finally:
        llama.llama_model_load_from_file, llama.llama_init_from_model = before


def _careful_cut(context: Context) -> Callable[[int, int, int], bool]:
    """Return what cuts the cache only where that gives the earlier state back.

    On ``False`` the server reads the whole prompt again.
    """
    memory, n_swa = context.memory, context.model.n_swa

    def cut(_sequence: int, start: int, end: int) -> bool:
        if n_swa and 0 < start <= llama.llama_memory_seq_pos_max(memory, 0):
            oldest = llama.llama_memory_seq_pos_min(memory, 0)
            if oldest != 0 and oldest >= start - n_swa:
                return False
        return bool(llama.llama_memory_seq_rm(memory, 0, start, end))

    return cut


async def _run(app: Asgi, listener: socket.socket, engine: Engine) -> None:
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
    server: Any = uvicorn.Server(config)
    # Ctrl-C and the end of the process are the parent's business
    server.capture_signals = contextlib.nullcontext
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    while not serving.done():
        await asyncio.wait([serving], timeout=_POLL_S)
        if engine.cancel.is_set() and not server.should_exit:
            server.should_exit = True
            asyncio.get_running_loop().call_later(_LINGER_S, _force, server)
    await serving


def _force(server: uvicorn.Server) -> None:
    server.force_exit = True


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name != "nt":  # there the option means something else
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        message = f"Port {port} cannot be used: {getattr(error, 'strerror', None) or error}."
        hint = "Choose another port, or none for any free one."
        raise EngineFailure(Outcome.UNSUPPORTED, "port_taken", message, hint) from error
    return listener
