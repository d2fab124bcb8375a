"""The question to a chat model whether a text tells what answers a question: a structured yes or no."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attribution.judging.structured import replied_value
from tracing.recording.recorder import operation, trace

if TYPE_CHECKING:
    from tracing.llm.models import ChatModel

_REPLY_TOKENS = 60
_LONGEST_TEXT = 2000
_TASK = """Does a text tell what it takes to answer a question? Judge by meaning: other words, another language, \
another form of a date or number are all fine. It does not if it says the contrary, tells it of another person or of \
another time, exchanges who did what to whom, tells of a plan where a fact is asked for, or leaves the answer open.

Question: {question}
What the text has to tell: {content}
Text: {text}

Reply with JSON: {{"tells": true}} or {{"tells": false}}."""
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"tells": {"type": "boolean"}},
    "required": ["tells"],
    "additionalProperties": False,
}


def tells(model: ChatModel, question: str, content: str, text: str) -> bool | None:
    """Whether a text tells a content, by a model at temperature 0; None if its reply is neither yes nor no.

    Raises:
        BudgetExceededError, ModelError: the call was refused or failed.
    """
    # As JSON strings, so that a text cannot pass for a part of the task.
    question_json, content_json, text_json = (
        json.dumps(argument, ensure_ascii=False) for argument in (question, content, text[:_LONGEST_TEXT])
    )
    messages = [{"role": "user", "content": _TASK.format(question=question_json, content=content_json, text=text_json)}]
    with trace(), operation("matcher", kind="llm"):
        verdict = replied_value(model, messages, _SCHEMA, "tells", max_tokens=_REPLY_TOKENS)
    return verdict if isinstance(verdict, bool) else None
