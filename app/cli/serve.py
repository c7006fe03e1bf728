"""``rigtune serve``: a local OpenAI-compatible server on a model's tuned settings."""

import argparse
from contextlib import closing

from app.cli.chat_screen import Interrupts
from app.cli.output import EXIT_DONE, EXIT_PROBLEM, human, print_json, progress_console
from app.cli.power_options import News, add_power_arguments, apply_power
from app.domain.errors import UsageProblem
from app.domain.events import ServerEvent, ServerProgress, ServerStarted, ServerStopped
from app.domain.memory import DeviceMemory
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.units import counted
from app.session import Server, Session

NAME = "serve"
HELP = "serve a model to other programs on this machine (OpenAI-compatible)"
MAX_PORT = 65535


class ServeDocument(Record, frozen=True, kw_only=True):
    """``rigtune.serve/1``: where the server is and what it runs on."""

    schema: str = "rigtune.serve/1"
    base_url: str
    token: str
    model: str
    settings: Settings
    devices: tuple[DeviceMemory, ...]
    profile_id: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="path, id from `models`, or demo")
    parser.add_argument("--profile", metavar="ID", help="use this stored profile")
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port on 127.0.0.1 (any free one)"
    )
    add_power_arguments(parser)


def run(args: argparse.Namespace, session: Session) -> int:
    """Serve until Ctrl-C.

    Raises:
        UsageProblem: There is no such port.
    """
    if not 0 <= args.port <= MAX_PORT:
        message = f"--port: {args.port} is not from 0 to {MAX_PORT}"
        raise UsageProblem("bad_setting", message, "Leave it out for any free one.")
    server = session.serve(args.model, args.profile)
    apply_power(args, session.power)
    console = progress_console()
    n_told = _tell(server.notes)
    interrupts, news = Interrupts(), News(session.power)
    with interrupts.caught(), closing(server.run(args.port)) as events:
        n_seen = 0
        for event in events:
            if interrupts.came:
                break
            if isinstance(event, ServerStopped):
                return _stopped(event)
            n_told += _tell(server.notes[n_told:])
            n_seen = _show(event, server, args, n_seen)
            news.tell()
    console.print(f"Stopped after {counted(n_seen, 'request')}.", markup=False)
    return EXIT_DONE


def _tell(notes: tuple[str, ...]) -> int:
    for note in notes:
        progress_console().print(note, markup=False)
    return len(notes)


def _show(event: ServerEvent, server: Server, args: argparse.Namespace, n_seen: int) -> int:
    match event:
        case ServerStarted():
            _announce(event, server, as_json=args.json)
        case ServerProgress(n_requests=n_requests) if n_requests > n_seen:
            progress_console().print(f"Request {n_requests}", style="dim", markup=False)
            return n_requests
        case _:
            pass
    return n_seen


def _announce(started: ServerStarted, server: Server, *, as_json: bool) -> None:
    base_url = f"http://127.0.0.1:{started.port}/v1"
    if as_json:
        print_json(
            ServeDocument(
                base_url=base_url,
                token=server.token,
                model=server.alias,
                settings=started.effective,
                devices=started.devices,
                profile_id=server.profile_id,
            )
        )
        return
    console = human()
    console.print(f"Address  {base_url}", markup=False)
    console.print(f"API key  {server.token}", markup=False)
    console.print(f"Model    {server.alias}", markup=False)
    console.print("Ctrl-C stops the server.", markup=False)


def _stopped(event: ServerStopped) -> int:
    if event.error is None:
        return EXIT_DONE
    text = f"{event.error.message} {event.error.hint}"
    progress_console().print(text, style="red", markup=False)
    return EXIT_PROBLEM
