"""The ``/commands`` of a chat in the terminal."""

from collections.abc import Callable, Iterator
from pathlib import Path

from app.chat.attach import Attachment, read_attachment, with_attachments
from app.chat.context_use import context_use
from app.chat.conversation import Conversation
from app.chat.export import save
from app.chat.overflow import Overflow
from app.chat.presets import PRESETS
from app.chat.thread import Thread
from app.cli.chat_screen import remember, safe
from app.cli.output import human
from app.cli.power_options import carry_out
from app.domain.errors import EnvironmentProblem, UsageProblem
from app.domain.events import ChatEvent
from app.domain.units import counted, format_seconds
from app.session import Chat
from app.store import Store

Answer = Iterator[ChatEvent]

HELP = """\
/help                 this list
/system [TEXT]        show or set the system prompt
/preset NAME          begin with a preset: {presets}
/regen                answer the last message again (the old answer is kept)
/edit TEXT            replace the last message and answer that
/branch [N]           show which versions the last turn with several has, or bring one into view
/continue             go on with an answer that was cut short
/attach FILE          send a text file with the next message
/draft                send the message again that did not fit, e.g. after /new or /overflow
/stats                how full the context is, and the last timings
/power [MODE]         heat and power now, or another mode: quiet, balanced, full; restore
/overflow [HOW]       when the context is full: {overflows}
/template [NAME]      show or choose who writes the prompt: model, text, chatml…
/list [WORDS]         conversations, or those that contain WORDS
/load ID              open a stored conversation
/new                  begin a new conversation
/save FILE            write this one as Markdown, or JSON when FILE ends in .json
/delete               delete this conversation
/quit                 end (so does Ctrl-D)
A line that ends in \\ goes on in the next; a block stands between \"\"\" and \"\"\".
Ctrl-C stops an answer."""


class Commands:
    """Carries out commands on a conversation.

    Attributes:
        conversation: The conversation in view; commands may replace it.
        chat: The model.
        is_over: Whether the user wants to end.
    """

    def __init__(self, chat: Chat, store: Store | None, conversation: Conversation) -> None:
        """Work on ``conversation``."""
        self.conversation = conversation
        self.is_over = False
        self.chat = chat
        self._store = store
        self._attachments: list[Attachment] = []
        self._sent: tuple[str, list[Attachment]] = ("", [])
        self._draft = ""
        self._console = human()
        self._known: dict[str, Callable[[str], Answer | None]] = {
            "help": self._help,
            "system": self._system,
            "preset": self._preset,
            "regen": lambda _: self.conversation.retry(),
            "edit": self._edit,
            "branch": self._branch,
            "continue": lambda _: self.conversation.go_on(),
            "attach": self._attach,
            "draft": self._send_draft,
            "stats": self._stats,
            "power": self._power,
            "overflow": self._overflow,
            "template": self._template,
            "list": self._list,
            "load": self._load,
            "new": self._new,
            "save": self._save,
            "delete": self._delete,
            "quit": self._quit,
            "exit": self._quit,
        }

    def run(self, line: str) -> Answer | None:
        """Carry out ``line``; return the answer to stream, if it asks for one.

        Raises:
            EnvironmentProblem: It cannot be done.
        """
        name, _, rest = line[1:].partition(" ")
        command = self._known.get(name.lower())
        if command is None:
            message = f"There is no command /{safe(name)}."
            raise UsageProblem("unknown_command", message, "/help lists them.")
        return command(rest.strip())

    def message(self, text: str) -> str:
        """Return what to send for ``text``: with the files attached since the last message."""
        attachments, self._attachments = self._attachments, []
        self._sent = text, attachments
        return with_attachments(text, attachments)

    def take_back(self) -> str:
        """Return the message that just did not fit, as it was typed; its files wait again."""
        text, attachments = self._sent
        self._sent = "", []
        refused = self.conversation.refused
        if not refused:
            return ""
        if refused != with_attachments(text, attachments):
            return f"/edit {refused}"
        self._attachments = [*attachments, *self._attachments]
        self._draft = text
        return text

    def _say(self, text: str) -> None:
        self._console.print(safe(text), markup=False, highlight=False)

    def _help(self, _: str) -> None:
        presets = ", ".join(p.id for p in PRESETS)
        self._say(HELP.format(presets=presets, overflows=", ".join(Overflow)))

    def _system(self, text: str) -> None:
        thread = self.conversation.thread
        if text:
            thread.set_system(text)
        self._say(f"System prompt: {thread.system or 'none'}")

    def _preset(self, name: str) -> None:
        preset = next((p for p in PRESETS if p.id == name), None)
        if preset is None:
            known = ", ".join(p.id for p in PRESETS)
            message = f"There is no preset {safe(name)}." if name else "Name the preset."
            raise UsageProblem("unknown_preset", message, f"Known: {known}.")
        self.conversation.thread.set_system(preset.system)
        self.conversation.sampling = preset.sampling
        self._say(f"System prompt: {preset.system}")

    def _edit(self, text: str) -> Answer:
        questions = [t for t in self.conversation.thread.turns if t.role == "user"]
        if not questions:
            raise UsageProblem("no_message", "There is no message to replace.", "Write one first.")
        return self.conversation.edit(questions[-1].id, text)

    def _branch(self, text: str) -> None:
        thread = self.conversation.thread
        forks = [t for t in thread.turns if len(thread.siblings(t.id)) > 1]
        if not forks:
            raise UsageProblem("no_branch", "Every turn has one version.", "/regen adds another.")
        versions = thread.siblings(forks[-1].id)
        if text:
            if not text.isdecimal() or not 1 <= int(text) <= len(versions):
                message = f"There is no version {safe(text)}."
                raise UsageProblem("no_branch", message, f"There are 1 to {len(versions)}.")
            self.conversation.switch(versions[int(text) - 1].id)
        shown = next(t for t in thread.turns if t in versions)
        self._say(f"Version {versions.index(shown) + 1} of {len(versions)}: {shown.content}")

    def _attach(self, name: str) -> None:
        if not name:
            raise UsageProblem("no_file", "Name the file to attach.", "/attach notes.txt")
        attachment = read_attachment(Path(name.strip("'\"")).expanduser())
        n_tok = self.chat.tokenize(attachment.text)
        self._attachments.append(attachment)
        self._say(f"{attachment.name}: {counted(n_tok, 'token')}, sent with the next message.")

    def _send_draft(self, _: str) -> Answer:
        if not self._draft:
            hint = "A message that did not fit is kept until it was sent."
            raise UsageProblem("no_draft", "There is no draft.", hint)
        text, self._draft = self._draft, ""
        return self.conversation.ask(self.message(text))

    def _stats(self, _: str) -> None:
        conversation = self.conversation
        messages = conversation.prompt
        if messages:
            pieces = self.chat.count_prompt(messages)
            use = context_use(messages, pieces, self.chat.settings.n_ctx)
            self._say(
                f"Context {use.n_ctx} tokens: system {use.system_tok}, you {use.user_tok}, "
                f"model {use.assistant_tok}, markers {use.markers_tok}, free {use.free_tok}"
            )
        timed = [t.timing for t in conversation.thread.turns if t.timing]
        for timing in timed[-1:]:
            speed = "—" if timing.decode_tok_s is None else f"{timing.decode_tok_s:.1f} tok/s"
            self._say(
                f"Last answer: {counted(timing.n_gen, 'token')}, {speed}, ended by {timing.reason}"
            )
        left = self.chat.idle_left_s()
        if left is not None:
            self._say(f"The model is unloaded after {format_seconds(left)} without a question.")

    def _power(self, what: str) -> None:
        carry_out(self.chat.power, what, self._say)

    def _overflow(self, how: str) -> None:
        if how and how not in tuple(Overflow):
            known = ", ".join(Overflow)
            message = f"There is no way {safe(how)}."
            raise UsageProblem("unknown_overflow", message, f"Known: {known}.")
        if how:
            self.conversation.overflow = Overflow(how)
        self._say(f"When the context is full: {self.conversation.overflow}")

    def _template(self, name: str) -> None:
        if name:
            self.chat.choose_template("" if name == "model" else name)
        self._say(f"Prompts are written by: {self.chat.template or 'the model itself'}")

    def _list(self, words: str) -> None:
        store = self._stored()
        if words:
            for hit in store.search_messages(words):
                line = " ".join(hit.message.content.split())[:80]
                self._say(f"{hit.conversation_id:>4}  {hit.title or '—'}: {line}")
            return
        for kept in store.conversations():
            self._say(
                f"{kept.id:>4}  {kept.updated_utc[:16].replace('T', ' ')}  {kept.title or '—'}"
            )

    def _load(self, text: str) -> None:
        if not text.isdigit():
            raise UsageProblem("no_number", "Name the conversation's number.", "/list shows them.")
        self._show(Thread.open(self._stored(), int(text)))
        for turn in self.conversation.thread.turns:
            self._say(("> " if turn.role == "user" else "") + turn.content)

    def _new(self, _: str) -> None:
        self._begin()
        self._say("A new conversation.")

    def _begin(self) -> None:
        old = self.conversation.thread
        self._show(
            Thread(
                self._store,
                system=old.system,
                model_name=old.model_name,
                model_path=old.model_path,
                profile_id=old.profile_id,
            )
        )

    def _save(self, name: str) -> None:
        if not name:
            raise UsageProblem("no_file", "Name the file to write.", "/save chat.md")
        path = Path(name).expanduser().absolute()
        save(self.conversation.thread, path)
        self._say(f"Written: {path}")

    def _delete(self, _: str) -> None:
        thread = self.conversation.thread
        if thread.id is not None:
            self._stored().delete_conversation(thread.id)
        self._begin()
        self._say("Deleted.")

    def _quit(self, _: str) -> None:
        self.is_over = True

    def _show(self, thread: Thread) -> None:
        old = self.conversation
        if self.chat.power is not None:
            self.chat.power.new_conversation()
        self.conversation = Conversation(
            self.chat, thread=thread, overflow=old.overflow, sampling=old.sampling
        )
        self.conversation.max_tokens = old.max_tokens
        remember(t.content for t in thread.turns if t.role == "user")

    def _stored(self) -> Store:
        if self._store is None:
            raise EnvironmentProblem(
                "not_stored", "Conversations are not kept in this chat.", "Start another one."
            )
        return self._store
