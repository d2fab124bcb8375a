"""Secrets are taken out whole, however they are spelled, and before anything is cut."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest

from tracing.recording.redaction import Redaction, excerpt, redact

HIDDEN = 'kolibri"REST\\end'
KEY = "unusual/key+4711=xyz"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("redis://:pw@h:6379/0", "redis://[redacted]@h:6379/0"),
        ("postgres://ann:p:w@h/db", "postgres://[redacted]@h/db"),
        ("amqp://ann:p@ss@h/db", "amqp://[redacted]@h/db"),
        ("see http://host:8080/path and ann@example.org", "see http://host:8080/path and ann@example.org"),
        ("git clone ssh://git@host/x", "git clone ssh://git@host/x"),
        ('{"password": "ab\\"REST", "n": 1}', '{"password": "[redacted]", "n": 1}'),
        ('{"password": "ab\\\\", "n": 1}', '{"password": "[redacted]", "n": 1}'),
        ("{'password': 'ab\"REST', 'n': 1}", "{'password': '[redacted]', 'n': 1}"),
        ('{"password": 12345, "n": 1}', '{"password": [redacted], "n": 1}'),
        ('{"password": null, "n": 1}', '{"password": null, "n": 1}'),
        ('{"password": ["ab", "REST"], "n": 1}', '{"password": [redacted], "n": 1}'),
        ('{"password": {"first": "ab"}, "n": 1}', '{"password": [redacted], "n": 1}'),
        ('{"password": "cut off in the mid', '{"password": "[redacted]'),
        ("login(password='it\\'s', n=1)", "login(password='[redacted]', n=1)"),
        ("Settings(password=b'REST', n=1)", "Settings(password=b'[redacted]', n=1)"),
        ("{'password': b'REST', 'n': 1}", "{'password': b'[redacted]', 'n': 1}"),
        ("Settings(api_key=['ab', 'REST'], n=1)", "Settings(api_key=[redacted], n=1)"),
        ("Settings(api_key=keys.Key('REST'), n=1)", "Settings(api_key=[redacted], n=1)"),
        ("{'api_key': Key('REST'), 'n': 1}", "{'api_key': [redacted], 'n': 1}"),
        ("https://h/?password={ab}REST&b=2", "https://h/?password=[redacted]&b=2"),
        ("password=\n[section]", "password=\n[section]"),
        ("https://h/?a=1&password=ko=libri&b=2", "https://h/?a=1&password=[redacted]&b=2"),
        ("api_key=abc==\nnext", "api_key=[redacted]\nnext"),
        ('if password == "x": pass', 'if password == "x": pass'),
    ],
)
def test_a_credential_in_a_text_is_taken_out_whole_and_nothing_else(text: str, left: str) -> None:
    assert redact(text) == left
    assert redact(left) == left


@pytest.mark.parametrize("deep", [0, 1, 2, 3])
def test_a_secret_in_json_within_json_is_taken_out_whole(deep: int) -> None:
    text = json.dumps({"password": HIDDEN, "left": "kept"})
    for _ in range(deep):
        text = json.dumps({"inner": text, "left": "kept"})
    cleaned = redact(f"before {text} after")
    value = json.loads(cleaned.removeprefix("before ").removesuffix(" after"))
    for _ in range(deep):
        assert value["left"] == "kept"
        value = json.loads(value["inner"])
    assert value == {"password": "[redacted]", "left": "kept"}


@pytest.mark.parametrize(
    "spelled",
    [
        KEY,
        quote(KEY, safe=""),
        quote(KEY),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY).replace("/", "\\/")[1:-1],
        base64.b64encode(KEY.encode()).decode(),
        *(base64.b64encode(f"{user}:{KEY}".encode()).decode() for user in ("", "a", "ab", "abc")),
        base64.urlsafe_b64encode(f"ann:{KEY}".encode()).decode(),
        KEY[:-1],
        KEY[:12],
    ],
)
def test_a_known_secret_is_taken_out_in_whatever_spelling(spelled: str) -> None:
    cleaned = excerpt(f"refused <{spelled}> here", 500, KEY)
    assert cleaned.startswith("refused <")
    assert cleaned.endswith("> here")
    assert "[redacted]" in cleaned
    for piece in (spelled[2:10], spelled[-10:-2], KEY[:8]):
        assert piece not in cleaned


@pytest.mark.parametrize(
    ("said", "secret"),
    [
        (f"wrong key {KEY}, bye", KEY),
        ("wrong key sk-abcDEF123456ghiJKL, bye", "sk-abcDEF123456ghiJKL"),
        ('say {"password": "kolibri07"} twice', "kolibri07"),
    ],
)
def test_a_cut_never_splits_a_secret_out_of_recognition(said: str, secret: str) -> None:
    for length in range(1, 60):
        cut = excerpt(said, length, KEY)
        assert len(cut) <= length + 1
        assert secret[:6] not in cut


def test_a_secret_that_is_too_short_to_be_one_is_left_alone() -> None:
    assert excerpt("none of the models is known", 500, "none", "", None) == "none of the models is known"


@pytest.mark.parametrize(
    "text",
    [
        "://" + "a:" * 200_000,
        "://a:" + "b@" * 200_000,
        'password="' * 50_000,
        'password":\\"' * 50_000,
        '"password": [\n' * 50_000,
        "'password': '\n" * 50_001,
        "password=" * 100_000,
        "password=key.Key(" * 50_000,
        "password=" + "a." * 200_000,
        "\\" * 200_000 + '"password": "' + "\\" * 200_000,
    ],
    ids=[
        "colons",
        "ats",
        "unclosed quotes",
        "escaped quotes",
        "unclosed lists",
        "unclosed lines",
        "names",
        "unclosed calls",
        "long words",
        "backslashes",
    ],
)
def test_redaction_takes_time_in_proportion_to_the_text(text: str) -> None:
    started = time.monotonic()
    redact(text)
    assert time.monotonic() - started < 2


def test_a_long_value_is_redacted_before_it_is_shortened() -> None:
    rules = Redaction(longest=20)
    assert "kolibri" not in rules.text('{"n": 1, "password": "kolibri07"}')
