"""LangChain's messages, states and documents as variables."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from tracing.graph.elements import Variable
from tracing.instrument.program_steps import Link, VariableRegistry, request_link
from tracing.recording.trace_context import variable

Channels = dict[str, list[tuple[object, Variable]]]
"""The values that the nodes of a graph have written under each key of its state, oldest first."""

_QUESTIONS = ("question", "query", "input")


def text_of(message: BaseMessage) -> str:
    """The text of a message; where its content is one text, the same object."""
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)


def message_key(message: BaseMessage, thread: str) -> Hashable:
    """What a message is known by; None if it has no id."""
    return ("message", thread, message.id) if message.id else None


def recorded_message(registry: VariableRegistry, message: BaseMessage, thread: str) -> Variable | None:
    """The variable of a message that was seen before: by its id or, without one, as an object; by its tool call."""
    key = message_key(message, thread)
    message_variable = registry.of(message) if key is None else registry.by_key.get(key)
    if message_variable is None and isinstance(message, ToolMessage):
        return registry.by_key.get(("result", message.tool_call_id))
    return message_variable


def conversation_message(registry: VariableRegistry, message: Any, thread: str) -> Variable | None:
    """The variable of what user or assistant said, with the message's id as its name; None for other messages.

    A message that has another text than before under the same id is a new version.
    """
    if isinstance(message, Mapping):
        text, key, name = message["content"], None, str(message.get("id") or message["role"])
        previous, facts = registry.of(text), {"role": message["role"]}
        is_conversation = isinstance(text, str) and message["role"] in ("user", "human", "assistant", "ai")
    else:
        text, key, name = text_of(message), message_key(message, thread), message.id or message.type
        previous, facts = recorded_message(registry, message, thread), {"role": message.type}
        facts |= {"speaker": message.name} if message.name else {}
        is_conversation = isinstance(message, HumanMessage | AIMessage)
    if (
        not is_conversation
        or not text
        or (previous is not None and (previous.kind != "message" or previous.value == text))
    ):
        return previous
    message_variable = variable(text, name=name, kind="message", previous=previous, **facts)
    registry.keep(message_variable, thing=text)
    return registry.keep(message_variable, key=key, thing=message)


def state_links(
    registry: VariableRegistry, state: Any, channels: Channels, thread: str
) -> tuple[list[Link], list[Link]]:
    """What a step was handed: the messages of the conversation, and whatever else is known or is a text."""
    messages: list[Link] = []
    others: list[Link] = []
    for role, value in fields_of(state):
        items = items_of(value)
        if any(map(is_message, items)):
            variables = (conversation_message(registry, element, thread) for element in items if is_message(element))
            messages += [(role, message) for message in variables if message is not None]
        elif role in channels:
            writes = channels[role]
            writes = writes[-1:] if writes[-1][0] is value else writes  # else a reducer has made it of all
            others += [(role, written) for _, written in writes]
        elif isinstance(value, str) and value:
            kind = "query" if role in _QUESTIONS else "value"
            others.append(
                (role, registry.of(value) or registry.keep(variable(value, name=role, kind=kind), thing=value))
            )
        else:
            others += [
                (role, element_variable) for element_variable in map(registry.of, items) if element_variable is not None
            ]
    return messages, others


def request_links(registry: VariableRegistry, messages: Sequence[BaseMessage], step: str, thread: str) -> list[Link]:
    """What a request is made of: the messages that are known, system messages as prompts, and the rest as it is."""
    links: list[Link] = []
    for message in messages:
        recorded, text = recorded_message(registry, message, thread), text_of(message)
        if recorded is not None:
            links += [
                ("messages", recorded),
                *(("context", context) for context in registry.shows.get(id(recorded), ())),
            ]
        else:
            is_prompt = isinstance(message, SystemMessage)
            links += request_link(registry, step, text, message.type, is_prompt=is_prompt)
    return links


def updates_of(returned: Any) -> Iterator[tuple[str, Any]]:
    """What a step returned, by key; `output` for what has none."""
    if hasattr(returned, "goto") and hasattr(returned, "update"):
        yield from updates_of(returned.update)
    elif isinstance(returned, list | tuple) and not any(map(is_message, returned)):
        for update in returned:
            yield from updates_of(update)
    elif returned is not None:
        yield from ((key if key != "input" else "output", value) for key, value in fields_of(returned))


def fields_of(state: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a state, whatever form it has, by name; `input` for what has no parts, `messages` for those."""
    if isinstance(state, Mapping) and not is_message(state):
        yield from ((str(key), value) for key, value in state.items())
    elif any(map(is_message, items_of(state))):
        yield "messages", state
    elif isinstance(state, str | list | tuple):
        yield "input", state
    elif hasattr(state, "to_messages"):
        yield "messages", state.to_messages()
    else:
        names: Any = getattr(type(state), "model_fields", None) or getattr(state, "__dataclass_fields__", ())
        yield from ((name, getattr(state, name)) for name in names)


def is_message(value: Any) -> bool:
    """Whether it is a message, in either of LangChain's forms."""
    return isinstance(value, BaseMessage) or (isinstance(value, Mapping) and {"role", "content"} <= value.keys())


def items_of(value: Any) -> Sequence[Any]:
    """A list as it is, anything else as the only element of one."""
    return value if isinstance(value, list | tuple) else [value]
