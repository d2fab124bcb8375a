"""The answer operation that the built-in systems share: it turns context and question into a short reply."""

from __future__ import annotations

import re
from collections.abc import Sequence

from experiments.systems.building_blocks.prompt_files import SHARED, prompts_in
from experiments.systems.building_blocks.structured_replies import read_reply
from tracing.errors import MalformedReplyError
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

FORMS = ("direct", "quoted")
"""Forms of an answer: at once, or after the line that it is read from."""

QUOTING = "\nFirst copy the line above that tells it, word for word. Then write ANSWER: and the answer alone."
"""What follows the prompt where the form is `quoted`."""

MAX_QUOTED_TOKENS = 160
"""A line of the context, and an answer."""

_MARKER = re.compile(r"ANSWER:", re.IGNORECASE)

ANSWER_PROMPT = prompts_in(SHARED)["answer"]


def answer_from_context(
    query: Text, context: Sequence[Text], template: str, model: ChatModel, form: str = "direct"
) -> Answer:
    """Record and return the reply to `query` given `context` under the answer prompt `template`.

    An empty context is answered `UNKNOWN` without a call. Of a `quoted` form, what follows its marker is the answer;
    a reply without one is counted as malformed, and all of it is.
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
            quoted = form == "quoted"
            messages = [{"role": "user", "content": request + QUOTING if quoted else request}]
            most = MAX_QUOTED_TOKENS if quoted else MAX_ANSWER_TOKENS
            reply = model.chat(messages, max_tokens=most, whole=False).text.strip()
            if quoted:
                reply = read_reply(_unquoted, reply, op) or reply
        text = intervening().answered(step, query.variable, pieces, reply)
        prediction = op.output("prediction", text, name="prediction", kind="prediction")
    return Answer(text, prediction.id or None)


def _unquoted(reply: str) -> str:
    _, *answers = _MARKER.split(reply)
    if not answers or not answers[-1].strip():
        raise MalformedReplyError("no answer follows ANSWER:")
    return answers[-1].strip()


class SharedAnswer:
    """What a system has by replying with this operation: answers from a context that was given to it."""

    answer_form = "direct"
    """One of `FORMS`."""

    def answer_from(
        self, context: Sequence[str], question: Question, candidate: Candidate, access: ModelAccess
    ) -> Answer:
        """Answer from a given context instead of what the system finds."""
        query = noted(question.question, name=question.id, kind="query")
        pieces = [noted(text, name=f"given{rank}", kind="context", rank=rank) for rank, text in enumerate(context, 1)]
        return answer_from_context(query, pieces, candidate["answer"], access.task, self.answer_form)

    def caveats(self, *, embedded: bool) -> list[str]:
        """That the answer prompt is not all that was sent, where it is not."""
        if self.answer_form == "direct":
            return []
        return [f"Answers were quoted: {QUOTING.strip()!r} followed the answer prompt, which an export does not hold."]


def answer_again(parts: Parts, template: str, model: ChatModel, form: str = "direct") -> None:
    """Answer the recorded question from the recorded context under the answer prompt `template`."""
    (query,) = noted_again(parts["question"])
    answer_from_context(query, noted_again(parts.get("context", ())), template, model, form)
