"""Systems whose methods are `async def`, with a client that they keep and never close."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, ClassVar

import pytest
from openai import AsyncOpenAI
from scripted_server import ScriptedServer

from tracing import operation, session, trace, variable
from tracing.errors import MemorySystemError
from tracing.llm.access import ModelAccess
from tracing.systems.calls import answer_question, build_memory
from tracing.systems.conformance import SMALL_TALK, MemorySystemConformance
from tracing.systems.prompts import Contract, PromptSpec, render
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import noted, recalled, variables_of


class AsyncNotes:
    """Keeps every turn, and answers from all with an asynchronous client of its own."""

    prompts: ClassVar = {
        "reply": PromptSpec(
            name="reply",
            text="Notes:\n{notes}\n\nAsked: {asked}\nReply in a few words:",
            operation="reply",
            contract=Contract(placeholders=frozenset({"notes", "asked"})),
            purpose="Answer the question from the notes.",
            builds=False,
        )
    }
    operations = (OperationSpec("keep", "extract", None), OperationSpec("reply", "answer", "reply"))

    def __init__(self) -> None:
        self._client: AsyncOpenAI | None = None

    async def build(self, conversation: Any, candidate: Any, access: ModelAccess) -> Memory:
        kept = []
        for chat in conversation.sessions:
            with session(chat.id):
                for turn in chat.turns:
                    said = noted(turn.spoken, name=turn.id, kind="message")
                    with operation("keep", inputs={"turn": said.variable}) as op:
                        await asyncio.sleep(0)
                        note = op.output("note", said.text, name=turn.id, kind="memory_entry")
                    kept.append({"text": said.text, "variable": note.id})
        return Memory({"notes": kept})

    async def answer(self, memory: Memory, question: Any, candidate: Any, access: ModelAccess) -> Answer:
        asked, notes = noted(question.question, name=question.id, kind="query"), memory.state["notes"]
        inputs = {
            "asked": variables_of([asked]),
            "notes": recalled(note["variable"] for note in notes),
            "prompt": variable(candidate["reply"], name="reply", kind="prompt"),
        }
        with operation("reply", kind="llm", inputs=inputs) as op:
            request = render(candidate["reply"], {"notes": "\n".join(n["text"] for n in notes), "asked": asked.text})
            text = await self._ask(access, request)
            return Answer(text, op.output("prediction", text, kind="prediction").id or None)

    async def _ask(self, access: ModelAccess, request: str) -> str:
        gateway = access.gateway()
        if self._client is None or str(self._client.base_url) != f"{gateway.base_url}/":
            self._client = AsyncOpenAI(base_url=gateway.base_url, api_key=gateway.key, max_retries=0)
        with gateway.attached() as attached:
            reply = await self._client.chat.completions.create(
                model=access.task.settings.model,
                messages=[{"role": "user", "content": request}],
                max_tokens=40,
                extra_headers=dict(attached.headers),
            )
        return reply.choices[0].message.content or ""


class TestAsyncNotes(MemorySystemConformance):
    def system(self) -> Any:
        return AsyncNotes()


def test_one_client_serves_many_threads_and_calls_without_a_word(
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    access, system = open_access(cache=False), AsyncNotes()
    seed = {name: spec.text for name, spec in system.prompts.items()}

    def run(number: int) -> list[str]:
        with trace() as recorder:
            memory = build_memory(system, SMALL_TALK, seed, access)  # type: ignore[arg-type]
            question = SMALL_TALK.questions[0]
            answers = [answer_question(system, memory, question, seed, access) for _ in range(3)]  # type: ignore[arg-type]
        assert {one.name for one in recorder.graph.operations.values()} == {"keep", "reply"}
        assert recorder.graph.find_operations(name="reply")[0].calls == 1
        return [one.text for one in answers]

    with caplog.at_level(logging.DEBUG), ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda n: copy_context().run(run, n), range(8))) == [["ok"] * 3] * 8
        system._client = None
        gc.collect()
    said = caplog.text + "".join(capfd.readouterr())
    assert "Event loop is closed" not in said
    assert "never retrieved" not in said


def test_an_error_in_a_coroutine_names_its_place(open_access: Callable[..., ModelAccess]) -> None:
    class Failing(AsyncNotes):
        async def build(self, conversation: Any, candidate: Any, access: ModelAccess) -> Memory:
            await asyncio.sleep(0)
            raise ValueError("no quinces")

    with pytest.raises(MemorySystemError, match=r"failed in build \(.*test_async_systems.py:\d+\): ValueError: no qui"):
        build_memory(Failing(), SMALL_TALK, {"reply": ""}, open_access())  # type: ignore[arg-type]
