"""One value out of a chat model's structured reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracing.errors import MalformedReplyError
from tracing.llm.http.strict_json import strict_json

if TYPE_CHECKING:
    from tracing.llm.models import ChatModel


def replied_value(
    model: ChatModel, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any], key: str, *, max_tokens: int
) -> Any:
    """The value of a key in a model's reply at temperature 0; None if the reply is no JSON object with it.

    Raises:
        BudgetExceededError, ModelError: the call was refused or failed.
    """
    completion = model.chat(messages, max_tokens=max_tokens, schema=schema, temperature=0.0, whole=False)
    try:
        return strict_json(completion.text)[key]
    except (MalformedReplyError, KeyError, TypeError):
        return None
