"""``rigtune chat``: talk to a model on its tuned settings."""

import argparse
from pathlib import Path

from app.chat.conversation import Conversation
from app.chat.overflow import Overflow
from app.chat.selftest import Trial
from app.chat.thread import Thread
from app.cli.chat_commands import Commands
from app.cli.chat_screen import (
    Interrupts,
    fits_prompt,
    orderly_end,
    read_message,
    remember,
    show_end,
    write_answer,
)
from app.cli.chat_watch import ChatWatch
from app.cli.output import (
    EXIT_DONE,
    EXIT_PARTIAL,
    EXIT_PROBLEM,
    human,
    print_json,
    progress_console,
)
from app.cli.power_options import add_power_arguments, apply_power, show_energy
from app.domain.errors import EnvironmentProblem, ErrorInfo, UsageProblem
from app.domain.events import GenerationFinished, TokenGenerated
from app.domain.record import Record
from app.domain.settings import Settings
from app.session import Chat, Session
from app.session.power_views import EnergyReport
from app.worker.protocol import SAMPLING_RANGES, SEED_RANGE, Sampling

NAME = "chat"
HELP = "chat with a model on its best known settings"
SAMPLER_OPTIONS = {
    "temperature": "how freely words are chosen; 0 = always the likeliest",
    "top_k": "choose among so many likeliest tokens; 0 = all",
    "top_p": "choose among the likeliest that have this share together; 1 = all",
    "min_p": "leave out tokens below this share of the likeliest one's",
    "repeat_penalty": "make repeated tokens less likely; 1 = not",
}
ONE_SHOT_TOKENS = 256


class ChatDocument(Record, frozen=True, kw_only=True):
    """``rigtune.chat/1``: one reply with its timings."""

    schema: str = "rigtune.chat/1"
    text: str
    reasoning: str = ""
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
    energy: EnergyReport | None = None
    error: ErrorInfo | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("model", metavar="MODEL", help="path, id from `models`, or demo")
    parser.add_argument("--profile", metavar="ID", help="use this stored profile")
    parser.add_argument("--prompt", metavar="TEXT", help="answer once and end")
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    parser.add_argument(
        "--max-tokens", type=int, default=None, metavar="N", help="longest answer, tokens"
    )
    parser.add_argument("--conversation", type=int, metavar="ID", help="go on with a stored one")
    parser.add_argument(
        "--overflow",
        choices=tuple(map(str, Overflow)),
        default=str(Overflow.STOP),
        help="what to do when the context is full (%(default)s)",
    )
    parser.add_argument(
        "--template", default="", metavar="NAME", help="built-in chat template, or text for none"
    )
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end answers there"
    )
    defaults = Sampling()
    for name, what in SAMPLER_OPTIONS.items():
        value = getattr(defaults, name)
        option = "--" + name.replace("_", "-")
        text = f"{what} (%(default)s)"
        parser.add_argument(option, type=type(value), default=value, metavar="N", help=text)
    parser.add_argument("--seed", type=int, metavar="N", help="same seed, same answer")
    parser.add_argument("--grammar", metavar="FILE", help="GBNF grammar the answer follows")
    parser.add_argument("--json-schema", metavar="FILE", help="JSON schema the answer follows")
    add_power_arguments(parser)


def run(args: argparse.Namespace, session: Session) -> int:
    """Answer once, or hold a conversation until the input ends."""
    sampling = sampling_of(args)
    if args.max_tokens is not None and args.max_tokens < 1:
        raise UsageProblem("bad_setting", f"--max-tokens: {args.max_tokens} is below 1")
    if args.prompt is not None and args.conversation is not None:
        raise UsageProblem(
            "prompt_in_conversation", "--prompt and --conversation exclude each other"
        )
    if args.json and args.prompt is None:
        raise UsageProblem(
            "json_of_conversation", "--json prints one answer", "Say what to answer: --prompt TEXT."
        )
    if args.prompt is not None and not args.prompt.strip():
        raise UsageProblem("empty_message", "--prompt: the message is empty")
    if "" in args.stop:
        raise UsageProblem("bad_setting", "--stop: the text is empty")
    if args.conversation is not None:
        session.store().conversation(args.conversation)  # before anything loads
    chat = session.chat(args.model, args.profile)
    chat.template = "" if args.template == "model" else args.template
    chat.stop = tuple(args.stop)
    apply_power(args, session.power)
    with orderly_end(), chat:
        console = progress_console()
        for note in chat.notes:
            console.print(note, markup=False)
        if args.prompt is not None:
            conversation = Conversation(chat, args.system, sampling=sampling)
            return answer_once(args, chat, conversation)
        return converse(args, session, chat, sampling)


def sampling_of(args: argparse.Namespace) -> Sampling:
    """Return the sampler chain the arguments ask for.

    Raises:
        UsageProblem: A number is outside its range.
        EnvironmentProblem: The grammar or the schema cannot be read.
    """
    for name in SAMPLER_OPTIONS:
        low, high = SAMPLING_RANGES[name]
        value = getattr(args, name)
        if not low <= value <= high:  # not a number is in no range
            option = "--" + name.replace("_", "-")
            raise UsageProblem("bad_setting", f"{option}: {value} is not from {low} to {high}")
    low, high = SEED_RANGE
    if args.seed is not None and not low <= args.seed <= high:
        message = f"--seed: {args.seed} is not from {low} to {high}"
        raise UsageProblem("bad_setting", message, "Leave it out for another answer each time.")
    return Sampling(
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        min_p=args.min_p,
        repeat_penalty=args.repeat_penalty,
        seed=args.seed,
        grammar=_text_of(args.grammar),
        json_schema=_text_of(args.json_schema),
    )


def answer_once(args: argparse.Namespace, chat: Chat, conversation: Conversation) -> int:
    """Print one answer, as text while it arrives or as one JSON document.

    A base model rarely ends by itself, so the answer is bounded.
    """
    limit = args.max_tokens or ONE_SHOT_TOKENS
    events = conversation.ask(args.prompt, None, limit)
    if not args.json:
        interrupts = Interrupts()
        with interrupts.caught():
            _, end = write_answer(events, interrupts)
        show_end(end)
        show_energy(chat.power)
        return _exit_code(end)
    text = {"answer": "", "reasoning": "", "tool_call": ""}
    end = GenerationFinished(reason="cancelled", n_prompt=0)
    for event in events:
        if isinstance(event, TokenGenerated):
            text[event.kind] += event.text
        elif isinstance(event, GenerationFinished):
            end = event
    energy = None
    if chat.power is not None:
        chat.power.measure()
        energy = chat.power.state.answer
    print_json(
        ChatDocument(
            text=text["answer"] + text["tool_call"],
            reasoning=text["reasoning"].rstrip(),
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
            energy=energy,
            error=end.error,
        )
    )
    return _exit_code(end)


def converse(args: argparse.Namespace, session: Session, chat: Chat, sampling: Sampling) -> int:
    """Read messages and commands until the input ends; Ctrl-C stops an answer only."""
    store = session.store()
    if args.conversation is None:
        thread = Thread(
            store,
            system=args.system or "",
            model_name=chat.spec.name,
            model_path=chat.spec.path,
            profile_id=chat.profile_id,
        )
    else:
        thread = Thread.open(store, args.conversation)
        thread.choose_model(chat.spec.name, chat.spec.path, chat.profile_id)
    check_template(chat)
    overflow = Overflow(args.overflow)
    conversation = Conversation(chat, thread=thread, overflow=overflow, sampling=sampling)
    conversation.max_tokens = args.max_tokens
    remember(t.content for t in thread.turns if t.role == "user")
    human().print("Type a message; /help lists commands, Ctrl-C stops an answer.", markup=False)
    with ChatWatch(session, chat):
        return _talk(Commands(chat, store, conversation))


def check_template(chat: Chat) -> None:
    """Try two short turns and say what is wrong with the template, and what can be done."""
    trial = Trial(chat)
    interrupts = Interrupts()
    with interrupts.caught():
        for _ in trial.run():
            if interrupts.came:
                break
    if interrupts.is_end:
        raise SystemExit(EXIT_PARTIAL)
    console = progress_console()
    for finding in trial.findings:
        text = f"{finding.error.message} {finding.error.hint}"
        console.print(text, style="yellow", markup=False)
        if finding.stop:
            console.print(f"  (--stop {finding.stop!r} ends answers there)", markup=False)
    if trial.findings:
        console.print("  /template NAME chooses another, e.g. /template chatml", markup=False)


def _talk(commands: Commands) -> int:
    interrupts = Interrupts()
    draft = ""
    while not commands.is_over:
        try:
            text, draft = read_message(draft=draft), ""
        except EOFError:
            human().print()
            return EXIT_DONE
        except KeyboardInterrupt:
            human().print("\n(/quit or Ctrl-D ends)", markup=False)
            draft = ""
            continue
        if not text.strip():
            continue
        try:
            if text.startswith("/"):
                events = commands.run(text)
            else:
                events = commands.conversation.ask(commands.message(text))
            if events is None:
                continue
            with interrupts.caught():
                _, end = write_answer(events, interrupts)
            show_end(end)
            draft = _hand_back(commands)
            show_energy(commands.chat.power)
            if interrupts.is_end:
                return EXIT_PARTIAL
        except EnvironmentProblem as problem:
            console = progress_console()
            console.print(f"{problem.info.message} {problem.info.hint}", style="red", markup=False)
            continue
        if end.error and not _revive(commands):
            return EXIT_PROBLEM
    return EXIT_DONE


def _hand_back(commands: Commands) -> str:
    """Return the message that did not fit, to be written at the prompt; say where it is."""
    draft = commands.take_back()
    if not draft:
        return ""
    is_short = fits_prompt(draft)
    where = "it is at the prompt again" if is_short else "/draft sends it again"
    progress_console().print(f"(not sent; {where})", style="dim", markup=False)
    return draft if is_short else ""


def _revive(commands: Commands) -> bool:
    """Load the model again after a crash, so that the conversation can go on."""
    chat = commands.chat
    if chat.is_running:
        return True
    console = progress_console()
    console.print("Loading the model again; /continue goes on with the answer.", markup=False)
    try:
        for _ in chat.load():
            pass
    except EnvironmentProblem as problem:
        console.print(f"{problem.info.message} {problem.info.hint}", style="red", markup=False)
        return False
    return True


def _exit_code(end: GenerationFinished) -> int:
    if end.error:
        return EXIT_PROBLEM
    return EXIT_PARTIAL if end.reason == "cancelled" else EXIT_DONE


def _text_of(name: str | None) -> str:
    if name is None:
        return ""
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{name} cannot be read."
        raise EnvironmentProblem("unreadable", message, "Check its path and encoding.") from error
