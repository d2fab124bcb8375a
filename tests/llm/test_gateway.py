"""The gateway: clients of other libraries get the cache, budget and recording of the access, each in its operation."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import httpx
import openai
import pytest
from scripted_server import Reply, ScriptedServer, prompt_of

from tracing.errors import BudgetExceededError, CallFailedError, ReplyCutShortError
from tracing.llm.access import ModelAccess
from tracing.llm.models import ChatModel
from tracing.llm.serving.gateway import CALL_HEADER, Gateway
from tracing.llm.settings import Limits
from tracing.llm.threads import GivenUp
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

ASKED: Any = [{"role": "user", "content": "How are you?"}]


@pytest.fixture
def access(open_access: Callable[..., ModelAccess]) -> ModelAccess:
    return open_access()


@pytest.fixture
def connect() -> Iterator[Callable[[ModelAccess | Gateway], openai.OpenAI]]:
    """The openai package's client with its own habits (retries, base64 embeddings) at a gateway."""
    made: list[openai.OpenAI] = []

    def client(of: ModelAccess | Gateway) -> openai.OpenAI:
        gateway = of.gateway() if isinstance(of, ModelAccess) else of
        made.append(openai.OpenAI(base_url=gateway.base_url, api_key=gateway.key))
        return made[-1]

    yield client
    for one in made:
        one.close()


Connect = Callable[[ModelAccess | Gateway], openai.OpenAI]


def ask(client: openai.OpenAI, text: str = "How are you?", **options: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="scripted", messages=messages, **options)


def test_each_run_has_its_own_token_and_no_other_is_served(
    access: ModelAccess, open_access: Callable[..., ModelAccess]
) -> None:
    gateway, other = access.gateway(), open_access().gateway()
    assert gateway.base_url.startswith("http://127.0.0.1:")
    assert access.gateway() is gateway
    assert gateway.key != other.key
    for token in ("", "Bearer guess", f"Bearer {other.key}"):
        refused = httpx.get(f"{gateway.base_url}/models", headers={"Authorization": token})
        assert refused.status_code == 401
    served = httpx.get(f"{gateway.base_url}/models", headers={"Authorization": f"Bearer {gateway.key}"})
    assert [model["id"] for model in served.json()["data"]] == ["scripted", "scripted-embedding"]


def test_a_client_of_a_coroutine_that_nobody_closes_holds_no_connection(access: ModelAccess) -> None:
    """Collected while it holds one, it takes the loop's next connection of the same number along: that call hangs."""
    gateway = access.gateway()

    async def asked() -> list[Any]:
        client = openai.AsyncOpenAI(base_url=gateway.base_url, api_key=gateway.key)
        with gateway.attached() as attached:
            await client.chat.completions.create(model="scripted", messages=ASKED, extra_headers=attached.headers)
        transport: Any = client._client._transport
        return list(transport._pool.connections)

    assert asyncio.run(asked()) == []


def test_it_ends_with_its_access(access: ModelAccess) -> None:
    gateway = access.gateway()
    access.close()
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{gateway.base_url}/models")


def test_replies_are_cached_metered_and_counted_against_the_budget(
    access: ModelAccess, connect: Connect, scripted_server: ScriptedServer
) -> None:
    client = connect(access)
    first, second = ask(client), ask(client)
    assert first.choices[0].message.content == second.choices[0].message.content == "ok"
    assert first.usage.total_tokens == 4
    assert scripted_server.count == 1
    assert access.budget.spent.calls == 1
    assert access.meter.totals()["calls_cached"] == 1


def test_the_request_reaches_the_model_as_the_access_would_send_it(
    access: ModelAccess, connect: Connect, scripted_server: ScriptedServer
) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "mine", "schema": schema}}
    parts: Any = [{"role": "user", "content": [{"type": "text", "text": "How are you?"}]}]
    client = connect(access)
    client.chat.completions.create(
        model="scripted", messages=parts, max_tokens=7, stop="\n", top_p=0.1, response_format=wanted
    )
    access.task.chat(ASKED, max_tokens=7, stop=["\n"], schema=schema)
    assert scripted_server.count == 1
    ask(client, response_format={"type": "json_object"})
    assert scripted_server.requests[-1]["response_format"] == {"type": "json_object"}


def test_a_stream_carries_the_whole_reply(access: ModelAccess, connect: Connect) -> None:
    chunks = list(ask(connect(access), stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "ok"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None, "stop"]
    assert chunks[-1].usage.completion_tokens == 1


@pytest.mark.parametrize("form", [{"encoding_format": "float"}, {}], ids=["numbers", "packed, the client's default"])
def test_embeddings_are_those_of_the_access(access: ModelAccess, connect: Connect, form: Any) -> None:
    texts = ["a green cottage", "a bassoon"]
    got = connect(access).embeddings.create(model="scripted-embedding", input=texts, **form)
    assert [row.embedding for row in got.data] == access.embedding.embed(texts)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"functions": [{"name": "f", "parameters": {}}]}, "functions: not offered"),
        ({"n": 2}, "n: not offered"),
        ({"max_tokens": -5000}, "max_tokens"),
        ({"model": "gpt-9"}, "gpt-9"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "only text"),
        ({"extra_headers": {CALL_HEADER: "gone"}}, "has ended"),
    ],
)
def test_what_it_cannot_do_is_refused_and_not_dropped(
    access: ModelAccess, connect: Connect, scripted_server: ScriptedServer, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(openai.APIStatusError, match=said):
        connect(access).chat.completions.create(**{"model": "scripted", "messages": ASKED, **options})
    assert scripted_server.count == 0


def test_calls_belong_to_the_operation_that_made_them_whatever_thread_they_run_in(
    access: ModelAccess, connect: Connect, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: f"to {prompt_of(body)}"
    client, gateway = connect(access), access.gateway()
    together = threading.Barrier(6)

    def step(number: int) -> str:
        with operation(f"step{number}") as op, gateway.attached() as attached:

            def work() -> str:
                together.wait()
                return str(ask(client, f"text {number}", extra_headers=attached.headers).choices[0].message.content)

            # A library's own pool, which knows nothing of contexts.
            with ThreadPoolExecutor(1) as inner:
                return str(op.output("said", inner.submit(work).result()).value)

    with trace() as recorder, access.watch() as watch, ThreadPoolExecutor(6) as pool:
        contexts = [copy_context() for _ in range(6)]
        futures = [pool.submit(contexts[n].run, step, n) for n in range(6)]
        assert [future.result() for future in futures] == [f"to text {n}" for n in range(6)]
    steps = recorder.graph.operations.values()
    assert {op.name: (op.calls, op.model) for op in steps} == {f"step{n}": (1, "scripted") for n in range(6)}
    assert watch.calls == 6
    assert {name: usage["calls_made"] for name, usage in access.meter.snapshot().items()} == {
        f"step{n}": 1 for n in range(6)
    }


def test_a_failure_is_kept_for_the_operation_and_asked_for_only_once(
    open_access: Callable[..., ModelAccess], connect: Connect, scripted_server: ScriptedServer
) -> None:
    access = open_access(retries=0)
    scripted_server.script = lambda body: Reply("broken", status=500)
    with access.watch() as watch, access.gateway().attached() as attached, pytest.raises(openai.APIStatusError):
        ask(connect(access), extra_headers=attached.headers)
    assert [type(failure) for failure in attached.failures] == [CallFailedError]
    assert len(watch.failures) == 1
    assert scripted_server.count == 1


def test_a_call_of_work_that_was_given_up_is_refused_at_once(
    access: ModelAccess, connect: Connect, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def given_up(*_: object, **more: object) -> None:
        tried.append(1)
        raise GivenUp

    monkeypatch.setattr(ChatModel, "chat", given_up)
    with access.gateway().attached() as attached, pytest.raises(openai.APIStatusError, match="given up") as caught:
        ask(connect(access), extra_headers=attached.headers)
    assert (caught.value.status_code, len(tried), scripted_server.count) == (502, 1, 0)


def test_a_spent_budget_is_told_as_such(open_access: Callable[..., ModelAccess], connect: Connect) -> None:
    access = open_access(Limits(calls=0))
    with access.gateway().attached() as attached, pytest.raises(openai.APIStatusError) as caught:
        ask(connect(access), extra_headers=attached.headers)
    assert caught.value.status_code == 402
    assert isinstance(attached.failures[0], BudgetExceededError)


def test_json_that_was_cut_short_is_an_error_and_text_is_not(
    access: ModelAccess, connect: Connect, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply('{"facts": ["half', finish_reason="length")
    client = connect(access)
    assert ask(client).choices[0].finish_reason == "length"
    with access.gateway().attached() as attached, pytest.raises(openai.APIStatusError, match="cut short"):
        ask(client, response_format={"type": "json_object"}, extra_headers=attached.headers)
    assert isinstance(attached.failures[0], ReplyCutShortError)


def test_a_reply_schema_takes_the_place_of_json_object_and_is_recorded(
    access: ModelAccess, connect: Connect, scripted_server: ScriptedServer
) -> None:
    schema = {"type": "object", "properties": {"facts": {"type": "array"}}}
    with trace() as recorder, operation("extract"), access.gateway().attached(schema=schema) as attached:
        client = connect(access)
        ask(client, "as JSON", response_format={"type": "json_object"}, extra_headers=attached.headers)
        ask(client, "as text", extra_headers=attached.headers)
    sent, plain = scripted_server.requests
    assert sent["response_format"]["json_schema"]["schema"] == schema
    assert "response_format" not in plain
    (recorded,) = recorder.graph.operations.values()
    assert recorded.attributes["reply_schema"] == schema


def test_in_a_traced_context_loose_calls_are_operations_of_their_own(
    access: ModelAccess, connect: Connect, scripted_server: ScriptedServer
) -> None:
    with trace() as recorder:
        gateway = Gateway(access, context=copy_context())
        gateway.start()
        try:
            ask(connect(gateway))
            connect(gateway).embeddings.create(model="scripted-embedding", input="a bassoon")
        finally:
            gateway.close()
    chat, embed = recorder.graph.operations.values()
    assert (chat.name, chat.calls, embed.name, embed.calls) == ("chat", 1, "embed", 1)
    assert [recorder.graph.variables[vid].value for vid in chat.output_ids()] == ["ok"]
    assert json.dumps(recorder.records()).count(gateway.key) == 0


@pytest.mark.parametrize(
    ("ended", "told"), [("content_filter", "content_filter"), ("refusal", "stop"), ("eos", "stop"), ("stop", "stop")]
)
def test_a_reply_ends_by_a_word_that_every_client_knows(
    access: ModelAccess, connect: Connect, scripted_server: ScriptedServer, ended: str, told: str
) -> None:
    scripted_server.script = lambda body: Reply("Oslo", finish_reason=ended)
    chunks = connect(access).chat.completions.create(model="scripted", messages=ASKED, max_tokens=9, stream=True)
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == told
