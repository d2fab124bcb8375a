"""The answer operation that the built-in systems share: it turns context and question into a short reply."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.systems.building_blocks.prompt_files import SHARED, prompts_in
from tracing.llm.access import ModelAccess
from tracing.llm.models import ChatModel
from tracing.recording.operations import operation
from tracing.recording.trace_context import variable
from tracing.systems.conversations import Question
from tracing.systems.interventions import Step, intervening
from tracing.systems.layouts import Parts, bullets
from tracing.systems.prompts import Candidate, render
from tracing.systems.protocol import Answer
from tracing.systems.texts import Text, noted, noted_again, variables_of

MAX_ANSWER_TOKENS = 40
"""An answer is a few words; a longer one is cut, and judged as it is."""

UNKNOWN = "unknown"
"""The answer from an empty context. The model is not asked: it could only make an answer up."""

ANSWER_PROMPT = prompts_in(SHARED)["answer"]


def answer_from_context(query: Text, context: Sequence[Text], template: str, model: ChatModel) -> Answer:
    """Record and return the reply to `query` given `context` under the answer prompt `template`.

    An empty context is answered `UNKNOWN` without a call.
    """
    prompt = variable(template, name="answer", kind="prompt")
    pieces = [item.text for item in context]
    inputs = {"query": query.variable, "context": variables_of(context), "prompt": prompt}
    with operation("answer", kind="llm", inputs=inputs) as op:
        step = Step("answer", op.id)
        lines = bullets(intervening().presented(step, query.variable, pieces))
        reply = UNKNOWN
        if lines:
            request = render(template, {"context": lines, "question": query.text})
            messages = [{"role": "user", "content": request}]
            reply = model.chat(messages, max_tokens=MAX_ANSWER_TOKENS, whole=False).text.strip()
        text = intervening().answered(step, query.variable, pieces, reply)
        prediction = op.output("prediction", text, name="prediction", kind="prediction")
    return Answer(text, prediction.id or None)


class SharedAnswer:
    """What a system has by replying with this operation: answers from a context that was given to it."""

    def answer_from(
        self, context: Sequence[str], question: Question, candidate: Candidate, access: ModelAccess
    ) -> Answer:
        """Answer from a given context instead of what the system finds."""
        query = noted(question.question, name=question.id, kind="query")
        pieces = [noted(text, name=f"given{rank}", kind="context", rank=rank) for rank, text in enumerate(context, 1)]
        return answer_from_context(query, pieces, candidate["answer"], access.task)


def answer_again(parts: Parts, template: str, model: ChatModel) -> None:
    """Answer the recorded question from the recorded context under the answer prompt `template`."""
    (query,) = noted_again(parts["question"])
    answer_from_context(query, noted_again(parts.get("context", ())), template, model)
