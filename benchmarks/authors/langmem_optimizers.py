"""LangMem's prompt optimizers, each asked for one text: their model is an author of ours, so its calls are counted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from langchain_openai import ChatOpenAI
from langmem import create_prompt_optimizer
from langmem.utils import format_sessions

from optimizer.proposers.author import TEMPERATURE, Author
from tracing.errors import MemtuneError, raise_first
from tracing.llm.http.chat_requests import chat_messages, chat_options

if TYPE_CHECKING:
    from tracing.llm.models import ChatModel

Kind = Literal["gradient", "metaprompt", "prompt_memory"]

_SESSION = re.compile(r"(?<=session[_ ])[0-9a-f]{32}")
_ABOUT_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")


def optimized(
    author: ChatModel, kind: Kind, prompt: str, rules: str, failures: Sequence[Mapping[str, Any]], *, sample: int
) -> str:
    """A prompt as an optimizer rewrites it, with LangMem's own settings; literal braces are single in both.

    Args:
        rules: what must be kept, as LangMem's instructions for an update.
        failures: what is shown, each as of `optimizer.proposers.whole_rewrites.record_of`.
        sample: number of the sample of each request.

    Raises:
        ModelError, BudgetExceededError: a call failed.
        Exception: whatever LangMem raises where it cannot use a reply.
    """
    model = _Model(
        model=author.settings.model,
        api_key="none",
        temperature=TEMPERATURE,
        seed=sample,
        max_tokens=Author(author).most,
        asked=author,
    )
    sessions = [(_messages(failure), failure["Feedback"]) for failure in failures]
    request = {
        # The ids of sessions are random otherwise, and no request is like another.
        "trajectories": sessions if kind == "prompt_memory" else _with_counted_ids(format_sessions(sessions)),
        "prompt": {"name": "prompt", "prompt": prompt, "update_instructions": rules},
    }
    try:
        text = create_prompt_optimizer(model, kind=kind).invoke(request)
    except Exception:
        raise_first(model.failures)  # LangMem swallows those of some requests, and then finds no reply
        raise
    return str(text).replace("{{", "{").replace("}}", "}")


class _Model(ChatOpenAI):  # type: ignore[misc]
    """Has its requests answered by a model of ours."""

    asked: Any
    failures: list[MemtuneError] = []  # noqa: RUF012 (pydantic copies it)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        body = self._get_request_payload(messages, stop=stop, **options)
        calls_none = bool(body.get("tools")) and self.asked.settings.embedded
        if calls_none:
            body = without_tools(body)
        try:
            reply = self.asked.chat(chat_messages(body), **chat_options(body))
        except MemtuneError as error:
            self.failures.append(error)
            raise
        calls = [call_in(reply.text, f"call{len(messages)}")] if calls_none else list(reply.tool_calls)
        said = {"content": None, "tool_calls": calls} if calls else {"content": reply.text}
        choice = {"message": {"role": "assistant", **said}, "finish_reason": reply.finish_reason}
        return self._create_chat_result({"choices": [choice]})


def without_tools(body: Mapping[str, Any]) -> dict[str, Any]:
    """A chat request for a model that calls no tools: they are described, and a schema makes the reply call one."""
    choice, functions = body.get("tool_choice"), [tool["function"] for tool in body["tools"]]
    if isinstance(choice, Mapping):
        functions = [function for function in functions if function["name"] == choice["function"]["name"]]
    calls = [
        _object({"name": {"const": function["name"]}, "arguments": _arguments(function)}) for function in functions
    ]
    schema = calls[0] if len(calls) == 1 else {"anyOf": calls}
    described = "\n".join(map(json.dumps, functions))
    told = f"Call one of these functions: reply with JSON, its name and its arguments.\n{described}"
    return {
        **{name: value for name, value in body.items() if name not in _ABOUT_TOOLS},
        "messages": [{"role": "system", "content": told}, *map(_without_calls, body["messages"])],
        "response_format": {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}},
    }


def call_in(reply: str, name: str) -> dict[str, Any]:
    """The call that a reply to such a request is, in the form of a chat message's `tool_calls`, with this id."""
    call = json.loads(reply)
    function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
    return {"id": name, "type": "function", "function": function}


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _arguments(function: Mapping[str, Any]) -> dict[str, Any]:
    return {"additionalProperties": False, **function["parameters"]}


def _without_calls(message: Mapping[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        return {"role": "user", "content": message["content"] or "Go on."}
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    if not functions:
        return dict(message)
    said = [{"name": called["name"], "arguments": json.loads(called["arguments"])} for called in functions]
    return {"role": "assistant", "content": "\n".join(map(json.dumps, said))}


def _messages(failure: Mapping[str, Any]) -> list[dict[str, str]]:
    given = "\n\n".join(f"{name}:\n{text}" for name, text in failure["Inputs"].items())
    return [{"role": "user", "content": given}, {"role": "assistant", "content": failure["Generated Outputs"]}]


def _with_counted_ids(sessions: str) -> str:
    names = {name: str(at) for at, name in enumerate(dict.fromkeys(_SESSION.findall(sessions)), 1)}
    return _SESSION.sub(lambda match: names[match.group()], sessions)
