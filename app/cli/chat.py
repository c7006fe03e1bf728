"""``rigtune chat``: talk to a model on its tuned settings."""

import argparse
import sys
from collections.abc import Iterator

from app.chat.conversation import Conversation
from app.cli.output import EXIT_DONE, EXIT_PROBLEM, human, print_json, progress_console
from app.domain.errors import ErrorInfo
from app.domain.events import ChatEvent, GenerationFinished, TokenGenerated
from app.domain.record import Record
from app.domain.settings import Settings
from app.domain.units import format_seconds, format_tok_s
from app.session import Chat, Session

NAME = "chat"
HELP = "chat with a model on its best known settings"
QUIT_WORDS = ("/quit", "/exit")


class ChatDocument(Record, frozen=True, kw_only=True):
    """``rigtune.chat/1``: one reply with its timings."""

    schema: str = "rigtune.chat/1"
    text: str
    template: bool
    settings: Settings
    profile_id: str | None
    reason: str
    n_prompt: int
    n_prompt_reused: int
    n_gen: int
    ttft_ms: float | None
    prefill_tok_s: float | None
    decode_tok_s: float | None
    error: ErrorInfo | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="path, id from `models`, or demo")
    parser.add_argument("--profile", metavar="ID", help="use this stored profile")
    parser.add_argument("--prompt", metavar="TEXT", help="answer once and end")
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    parser.add_argument("--max-tokens", type=int, default=None, metavar="N", help="longest answer")


def run(args: argparse.Namespace, session: Session) -> int:
    """Answer once, or hold a conversation until the input ends."""
    with session.chat(args.model, args.profile) as chat:
        tell_how(chat)
        conversation = Conversation(chat, args.system)
        if args.prompt is not None:
            return answer_once(args, chat, conversation)
        return converse(args, conversation)


def tell_how(chat: Chat) -> None:
    """Say on which settings it runs, and when the model is no chat model."""
    console = progress_console()
    for note in chat.notes:
        console.print(note, markup=False)


def answer_once(args: argparse.Namespace, chat: Chat, conversation: Conversation) -> int:
    """Print one answer, as text while it arrives or as one JSON document."""
    limit = args.max_tokens or 256
    text, end = consume(conversation.ask(args.prompt, None, limit), echo=not args.json)
    if args.json:
        print_json(
            ChatDocument(
                text=text,
                template=chat.has_template,
                settings=chat.settings,
                profile_id=chat.profile_id,
                reason=end.reason,
                n_prompt=end.n_prompt,
                n_prompt_reused=end.n_prompt_reused,
                n_gen=end.n_gen,
                ttft_ms=end.ttft_ms,
                prefill_tok_s=end.prefill_tok_s,
                decode_tok_s=end.decode_tok_s,
                error=end.error,
            )
        )
    else:
        show_end(end)
    return EXIT_PROBLEM if end.error else EXIT_DONE


def converse(args: argparse.Namespace, conversation: Conversation) -> int:
    """Read lines and answer them; Ctrl-C stops an answer, Ctrl-D ends."""
    console = human()
    console.print("Type a message; /quit ends, Ctrl-C stops an answer.", markup=False)
    while True:
        try:
            text = input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return EXIT_DONE
        if text in QUIT_WORDS:
            return EXIT_DONE
        if not text:
            continue
        stream = conversation.ask(text, None, args.max_tokens)
        try:
            _, end = consume(stream, echo=True)
        except KeyboardInterrupt:
            close(stream)
            console.print("\n(stopped)", markup=False)
            continue
        show_end(end)
        if end.error:
            return EXIT_PROBLEM


def consume(stream: Iterator[ChatEvent], *, echo: bool) -> tuple[str, GenerationFinished]:
    """Read an answer to its end, writing it as it arrives."""
    text = ""
    end = GenerationFinished(reason="error", n_prompt=0)
    for event in stream:
        if isinstance(event, TokenGenerated):
            text += event.text
            if echo:
                sys.stdout.write(event.text)
                sys.stdout.flush()
        else:
            end = event
    if echo:
        sys.stdout.write("\n")
    return text, end


def close(stream: Iterator[ChatEvent]) -> None:
    """Stop an answer."""
    closer = getattr(stream, "close", None)
    if closer is not None:
        closer()


def show_end(end: GenerationFinished) -> None:
    """Print the timings of an answer, or why it ended early."""
    console = progress_console()
    if end.error:
        console.print(f"{end.error.message} {end.error.hint}", style="red", markup=False)
        return
    ttft = format_seconds(None if end.ttft_ms is None else end.ttft_ms / 1000)
    console.print(
        f"{end.n_gen} tokens, first after {ttft}, {format_tok_s(end.decode_tok_s)}; "
        f"prompt {end.n_prompt} tokens ({end.n_prompt_reused} re-used), "
        f"{format_tok_s(end.prefill_tok_s)}; ended by {end.reason}",
        style="dim",
        markup=False,
    )
