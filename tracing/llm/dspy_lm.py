"""A DSPy language model whose calls are those of a `ChatModel`: cached once, budgeted, metered and recorded."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracing.errors import ConfigError
from tracing.llm.models import ChatModel, ChatReply

if TYPE_CHECKING:
    import dspy
    from dspy.lm15 import Request, Response


def lm_of(engine: AccessEngine) -> dspy.LM:
    """A language model whose calls an engine makes, with DSPy's own cache and retries switched off.

    Raises:
        ConfigError: dspy is not installed.
    """
    require_dspy()
    import dspy

    return dspy.LM(f"memtune/{engine.model.settings.model}", engine=engine, cache=False, num_retries=0)


def require_dspy() -> None:
    """Import dspy, which takes seconds; a `ConfigError` if it is not installed."""
    try:
        import dspy  # noqa: F401
    except ImportError:
        raise ConfigError("dspy is not installed: pip install 'memtune[optimize]'") from None


class AccessEngine:
    """What DSPy calls an engine: one request in, one response out.

    With a temperature above 0, the k-th equal request is the k-th sample: a program that asks again gets another
    reply, and one that runs again gets the same replies from the cache.

    DSPy wraps its errors: a spent budget is the `__cause__` of a `dspy.utils.exceptions.LMError`.

    Attributes:
        model: the model that is asked.
    """

    def __init__(self, model: ChatModel, max_tokens: int) -> None:
        self.model, self._max_tokens = model, max_tokens
        self._asked: Counter[str] = Counter()
        self._guard = threading.Lock()

    def complete(self, request: Request) -> Response:
        """The model's reply.

        Raises:
            ConfigError: the request needs something that the access does not support.
            ModelError, BudgetExceededError: as `ChatModel.chat`.
        """
        from dspy.lm15 import Message, Response, Usage

        config = request.config
        if request.tools:
            raise ConfigError(f"{self.model.settings.model}: tools are not offered; use dspy.Predict or ReAct in text")
        response_format = config.response_format or {}
        temperature = self.model.settings.temperature if config.temperature is None else config.temperature
        reply = self.ask(
            _messages(request),
            max_tokens=config.max_tokens or self._max_tokens,
            schema=response_format.get("schema"),
            temperature=temperature,
            sample=self._sample(request) if temperature > 0 else 0,
            stop=config.stop,
        )
        return Response(
            id=None,
            model=reply.model,
            message=Message.assistant(reply.text),
            finish_reason="length" if reply.finish_reason == "length" else "stop",
            usage=Usage(**_usage(reply)),
        )

    def ask(self, messages: Sequence[Mapping[str, str]], **options: Any) -> ChatReply:
        """The model's reply, even if it is cut short; options as in `ChatModel.chat`."""
        return self.model.chat(messages, whole=False, **options)

    def close(self) -> None:
        """Do nothing: the access closes its own connections."""

    def _sample(self, request: Request) -> int:
        with self._guard:
            key = repr(request)
            self._asked[key] += 1
            return self._asked[key] - 1


def _messages(request: Request) -> list[dict[str, str]]:
    system = (
        request.system if isinstance(request.system, str) else "".join(_text(part) for part in request.system or ())
    )
    messages = [{"role": message.role, "content": "".join(map(_text, message.parts))} for message in request.messages]
    return [{"role": "system", "content": system}, *messages] if system else messages


def _text(part: Any) -> str:
    text = getattr(part, "text", None)
    if not isinstance(text, str):
        raise ConfigError(f"only text can be sent to this model, not {type(part).__name__}")
    return text


def _usage(reply: ChatReply) -> dict[str, int]:
    read, written = reply.prompt_tokens, reply.completion_tokens
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
