"""The bundle answers: in the terminal, and to programs that speak OpenAI's protocol."""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.bundle import WITHIN_S, Bundle, killed_when_late
from tests.fakes.models import CHAT_TEMPLATE, make_model

pytestmark = pytest.mark.frozen

N_TOKENS = 5


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "模型 tiny.gguf"
    return make_model(path, "llama", chat_template=CHAT_TEMPLATE)


@contextmanager
def served(bundle: Bundle, model: Path) -> Iterator[dict[str, Any]]:
    """Serve a model and give what the command says of it."""
    with (
        subprocess.Popen(
            [bundle.console, "serve", model, "--json"],
            env=bundle.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as server,
        killed_when_late(server),
    ):
        assert server.stdout is not None
        lines: list[bytes] = []
        for line in server.stdout:
            lines.append(line)
            if line.rstrip() == b"}":
                break
        yield json.loads(b"".join(lines) or b"{}")


def ask(said: dict[str, Any], path: str, token: str, body: object = None) -> Any:
    """Open a request to the server."""
    request = urllib.request.Request(
        said["base_url"] + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    return urllib.request.urlopen(request, timeout=WITHIN_S)


def test_serve_streams_a_chat(bundle: Bundle, model: Path) -> None:
    """A client with the token sees the model and gets an answer piece by piece; others do not."""
    question = {
        "messages": [{"role": "user", "content": "Grüße 你好"}],
        "max_tokens": N_TOKENS,
        "temperature": 0,
        "stream": True,
    }
    with served(bundle, model) as said:
        with ask(said, "/models", said["token"]) as answer:
            assert [entry["id"] for entry in json.load(answer)["data"]] == [said["model"]]
        with ask(said, "/chat/completions", said["token"], question) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            events = [line[6:].strip() for line in answer if line.startswith(b"data: ")]
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(said, "/models", "wrong")
        refused.value.close()
    assert refused.value.code == 401
    assert events[-1] == b"[DONE]"
    pieces = [json.loads(event)["choices"][0] for event in events[:-1]]
    assert sum(1 for piece in pieces if "content" in piece["delta"]) > 1
    assert pieces[-1]["finish_reason"] in {"length", "stop"}


def test_chat_answers_once(bundle: Bundle, model: Path) -> None:
    """One question, one document with the answer's timings."""
    done = bundle.run(
        "chat", model, "--prompt", "Grüße 你好", "--max-tokens", str(N_TOKENS), "--json"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["schema"].startswith("rigtune.chat/"), answer
