"""How well an evaluation uses an endpoint: calls per second, compared with what latency and concurrency allow.

The endpoint refuses some calls for half a second (`benchmarks.slow_endpoint`), none of them at the end: then
the measured time would contain a wait in which nothing is left to do. The same requests through the bare `openai` SDK,
without cache, ledger, traces and judging, are the peer.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from benchmarks.slow_endpoint import slow_endpoint
from optimizer.evaluation.evaluator import Evaluator
from tracing.llm.access import ModelAccess
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.settings import Limits, ModelSettings
from tracing.recording.operations import operation
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn
from tracing.systems.prompts import Candidate, PromptSpec
from tracing.systems.protocol import Answer, Memory, OperationSpec

QUESTIONS = 20
"""Of one conversation."""


class ThroughputFigures(BaseModel):
    """What was measured.

    Attributes:
        ideal_per_s: requests allowed at once, divided by the latency.
        reached_per_s: calls of the evaluation, divided by its seconds.
        share: the second of the first.
        cpu_ms_per_call: processor time of the evaluating process for each call.
        peer_per_s, peer_share, peer_cpu_ms_per_call: those of the bare SDK.
        most_in_flight: most concurrent requests, as the endpoint saw it.
        retried: requests that came again after a 429.
        early: of those, how many came before the time that `Retry-After` had asked for.
        lost: calls whose reply is not in the result.
    """

    ideal_per_s: float
    reached_per_s: float
    share: float
    cpu_ms_per_call: float
    peer_per_s: float
    peer_share: float
    peer_cpu_ms_per_call: float
    most_in_flight: int
    retried: int
    early: int
    lost: int


class Asking:
    """A memory system with one call a question, and none to build."""

    name, version = "asking", "1"
    settings: Mapping[str, Any] = {}
    prompts: Mapping[str, PromptSpec] = {}
    operations = (OperationSpec("answer", "answer", None),)

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """An empty memory."""
        return Memory({})

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """What the model says to the question."""
        with operation("answer", kind="llm", inputs={"query": question.question}) as op:
            reply = access.task.chat([{"role": "user", "content": question.question}], max_tokens=8)
            said = op.output("prediction", reply.text, kind="prediction")
        return Answer(reply.text, said.id)


def measure_throughput(
    *, calls: int = 2000, latency_s: float = 0.2, allowed: int = 64, progress: Callable[[str, int, int], None]
) -> ThroughputFigures:
    """Evaluate conversations against an endpoint on loopback, with cache, ledger, traces and judging as in a run.

    Args:
        calls: to the endpoint, rounded up to whole conversations.
        latency_s: seconds that it takes for each.
        allowed: concurrent requests that it allows, all of which are used.
    """
    conversations = [_conversation(number) for number in range(-(-calls // QUESTIONS))]
    calls = len(conversations) * QUESTIONS
    with (
        tempfile.TemporaryDirectory(prefix="memtune-bench-") as name,
        slow_endpoint(calls, latency_s, allowed) as (settings, counts),
    ):
        folder = Path(name)
        with (
            ModelAccess.open(
                {"task": settings, "embedding": settings},
                cache_dir=folder / "cache",
                limits=Limits(),
                concurrency=allowed,
            ) as opened,
            closing(Ledger(folder / "ledger.jsonl", cache=folder / "cache")) as ledger,
        ):
            access = opened.with_ledger(ledger)
            access.check()
            evaluator = Evaluator(Asking(), access, "em", folder / "memories", traces=folder / "traces")
            started, spent = time.perf_counter(), time.process_time()
            outcomes = evaluator.evaluate(
                {}, conversations, progress=lambda done, total, _: progress("conversations", done, total)
            )
            seconds, spent = time.perf_counter() - started, time.process_time() - spent
        answered = sum(case.passed for outcome in outcomes for case in outcome.cases)
        seen = counts()
    questions = [question.question for conversation in conversations for question in conversation.questions]
    with slow_endpoint(calls, latency_s, allowed) as (settings, _):
        peer_seconds, peer_spent = asyncio.run(_peer(settings, questions, allowed))
    ideal = allowed / latency_s
    return ThroughputFigures(
        ideal_per_s=ideal,
        reached_per_s=calls / seconds,
        share=calls / seconds / ideal,
        cpu_ms_per_call=1000 * spent / calls,
        peer_per_s=calls / peer_seconds,
        peer_share=calls / peer_seconds / ideal,
        peer_cpu_ms_per_call=1000 * peer_spent / calls,
        most_in_flight=seen.most_in_flight,
        retried=seen.retried,
        early=seen.early,
        lost=calls - answered,
    )


async def _peer(settings: ModelSettings, questions: Sequence[str], allowed: int) -> tuple[float, float]:
    """Seconds and processor time that the bare SDK takes to ask all questions."""
    free = asyncio.Semaphore(allowed)

    async with openai.AsyncOpenAI(base_url=settings.base_url, api_key=settings.key() or "", max_retries=5) as client:

        async def ask(question: str) -> None:
            async with free:
                messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": question}]
                await client.chat.completions.create(model=settings.model, messages=messages, max_tokens=8)

        started, spent = time.perf_counter(), time.process_time()
        await asyncio.gather(*map(ask, questions))
        return time.perf_counter() - started, time.process_time() - spent


def _conversation(number: int) -> Conversation:
    turn = Turn(id="D1:1", speaker="Ann", text=f"This is conversation {number}.")
    words = [f"word{number}x{at}" for at in range(QUESTIONS)]
    return Conversation(
        id=f"c{number}",
        speakers=("Ann", "Bea"),
        sessions=(DialogueSession(id="D1", time="1 May 2024", turns=(turn,)),),
        questions=tuple(
            Question(id=word, question=f"Which word is the last one of this: {word}", answers=(word,)) for word in words
        ),
    )
