"""A part of the user's own that raises may quote a key: what is printed, logged and recorded of it shows none."""

from __future__ import annotations

import base64
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from experiments.display.terminal import say, say_library_messages
from experiments.mlflow_tracking.store import TrackingStore
from optimizer.racing.study_storage import StudyServer
from tracing import load_trace, operation, trace
from tracing.llm.accounting.budget import Budget
from tracing.llm.endpoints import Endpoints
from tracing.llm.settings import Limits, ModelSettings
from tracing.recording import known_secrets
from tracing.recording.redaction import excerpt, redact

KEY = "gateway/Kolibri+4711=xyz"
COMMAND = f"{sys.executable} -c \"print('{KEY}')\""
SETTINGS = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}

SPELLINGS = (
    KEY,
    quote(KEY, safe=""),
    "".join(f"&#{ord(sign)};" for sign in KEY),
    base64.b64encode(f"ann:{KEY}".encode()).decode(),
    KEY.encode().hex(),
    "".join(f"\\u{ord(sign):04x}" for sign in KEY),
    f"{KEY[:9]}\n    {KEY[9:]}",
)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_secrets, "_remembered", {})


def failing(spelled: str) -> Callable[[], None]:
    """A function that raises as a client does, with the key in the message, the cause and a note."""

    def client() -> None:
        try:
            raise KeyError(f"401 for {spelled}")
        except KeyError as cause:
            error = RuntimeError(f"the gateway refused {spelled}")
            error.add_note(f"sent: {spelled}")
            raise error from cause

    return client


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_a_message_traceback_cause_and_note_show_no_key(
    spelled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    factory = logging.getLogRecordFactory()
    ModelSettings(**SETTINGS, api_key=SecretStr(KEY))
    say_library_messages()
    log, handler = logging.getLogger("theirs"), logging.StreamHandler(sys.stderr)
    log.addHandler(handler)
    try:
        with trace(tmp_path / "t.jsonl"), pytest.raises(RuntimeError) as raised, operation("answer"):
            failing(spelled)()
        log.error("failed: %s", spelled, exc_info=raised.value)
        sys.excepthook(type(raised.value), raised.value, raised.value.__traceback__)
        say(f"memtune: {raised.value}", err=True)
    finally:
        logging.setLogRecordFactory(factory)
        log.removeHandler(handler)
    (step,) = load_trace(tmp_path / "t.jsonl").graph.operations.values()
    shown = (
        capsys.readouterr().err + str(step.error) + (tmp_path / "t.jsonl").read_text() + excerpt(str(raised.value), 500)
    )
    assert shown.count("[redacted]") >= 9
    for piece in (spelled[-14:], spelled[:14], json.dumps(spelled)[1:15], KEY[9:16]):
        assert piece not in shown


@pytest.mark.parametrize(
    "given",
    [
        lambda: ModelSettings(**SETTINGS, api_key=SecretStr(KEY)),
        lambda: ModelSettings(**SETTINGS, api_key_env="A_GATEWAYS_KEY").key(),
        lambda: ModelSettings(**SETTINGS, key_command=COMMAND).key(),
        lambda: ModelSettings(**SETTINGS, headers={"X-Gateway": SecretStr(KEY)}),
        lambda: Endpoints(Budget(Limits()), None, None).close(),
        lambda: StudyServer(f"postgresql+psycopg://ann:{quote(KEY, safe='')}@db/studies"),
        lambda: TrackingStore(f"http://ann:{quote(KEY, safe='')}@127.0.0.1:9", "e", "k"),
    ],
    ids=["api_key", "api_key_env", "key_command", "header", "proxy", "studies", "tracking"],
)
def test_every_secret_of_a_run_is_remembered(given: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_GATEWAYS_KEY", KEY)
    monkeypatch.setenv("https_proxy", "http://ann:other@proxy:3128")
    if "Endpoints" in given.__code__.co_names:
        monkeypatch.setenv("https_proxy", f"http://ann:{quote(KEY, safe='')}@proxy:3128")
    assert KEY in redact(f"a {KEY} of nobody")
    given()
    assert redact(f"a {KEY} of theirs") == "a [redacted] of theirs"
    assert redact("a gateway, a kolibri and 4711") == "a gateway, a kolibri and 4711"


def test_a_word_is_no_secret_to_be_remembered() -> None:
    for word in ("ollama", "lm-studio", "password", "none", "12345", "not-needed"):
        known_secrets.remember(word)
        assert redact(f"the word {word} stands here") == f"the word {word} stands here"
