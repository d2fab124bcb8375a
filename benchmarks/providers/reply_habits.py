"""What providers' replies look like: thinking first, JSON as models write it, fields that lack or differ."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.providers.habit import Act, Exchange, Habit, at_first, body, chats, choice, json_text, message, text
from benchmarks.scripted_server import Reply

_THOUGHT = 'Let me see. The form is {"facts": []}, and what was said first does not count.'


def _until_there_is_room(cut: Callable[[Exchange], Reply], answer: Act) -> Act:
    """Thinking takes all tokens unless there are many."""

    def act(exchange: Exchange) -> Reply:
        most = exchange.body.get("max_tokens") or exchange.body.get("max_completion_tokens", 0)
        return cut(exchange) if most <= 1000 else answer(exchange)

    return chats(act)


def _cut(**fields: Any) -> Callable[[Exchange], Reply]:
    return choice(lambda first: {"finish_reason": "length", "message": {"role": "assistant", **fields}})


_reasoned = message(lambda reply: {"content": reply, "reasoning_content": _THOUGHT})


def _usage(usage: Any) -> Act:
    return body(lambda answer: {**answer, "usage": usage})


def _counted_as(kind: Callable[[int], Any]) -> Act:
    return body(lambda answer: {**answer, "usage": {name: kind(count) for name, count in answer["usage"].items()}})


def _fenced(reply: str, language: str = "json") -> str:
    return f"```{language}\n{reply}\n```"


_THINKING = (
    Habit("deepseek: thinking in tags", text(lambda reply: f"<think>\n{_THOUGHT}\n</think>\n\n{reply}")),
    Habit("qwen: thinking without its first tag", text(lambda reply: f"{_THOUGHT}\n</think>\n\n{reply}")),
    Habit("qwen: empty thinking", text(lambda reply: f"<think>\n\n</think>\n\n{reply}")),
    Habit("gemini: thoughts in tags", text(lambda reply: f"<thought>{_THOUGHT}</thought>{reply}")),
    Habit("deepseek: thinking beside the content", _reasoned),
    Habit(
        "openrouter: reasoning and its details",
        message(
            lambda reply: {"reasoning": _THOUGHT, "reasoning_details": [{"type": "reasoning.text", "text": _THOUGHT}]}
        ),
    ),
    Habit(
        "ollama: thinking takes the whole limit",
        _until_there_is_room(
            _cut(content=f"<think>{_THOUGHT}"), text(lambda reply: f"<think>{_THOUGHT}</think>{reply}")
        ),
    ),
    Habit(
        "vllm: thinking takes the whole limit",
        _until_there_is_room(_cut(content=None, reasoning_content=_THOUGHT), _reasoned),
    ),
    Habit(
        "gemini: thinking takes the whole limit, and nothing is left",
        _until_there_is_room(_cut(), message(lambda reply: {})),
    ),
    Habit(
        "harmony: channels in the content",
        text(
            lambda reply: (
                f"<|channel|>analysis<|message|>{_THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{reply}"
            )
        ),
    ),
    Habit(
        "mistral: thinking as a part of the content",
        message(
            lambda reply: {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": _THOUGHT}]},
                    {"type": "text", "text": reply},
                ]
            }
        ),
    ),
    Habit(
        "gemini: thought signatures",
        message(lambda reply: {"extra_content": {"google": {"thought_signature": "Cq4B"}}}),
    ),
    Habit(
        "anthropic: thinking blocks",
        message(
            lambda reply: {
                "thinking_blocks": [{"type": "thinking", "thinking": _THOUGHT, "signature": "x"}],
                "provider_specific_fields": {"a": 1},
            }
        ),
    ),
)

_JSON = (
    Habit("json: in a fence", json_text(lambda value: _fenced(json.dumps(value)))),
    Habit("json: in a fence that is not closed", json_text(lambda value: f"```json\n{json.dumps(value)}")),
    Habit(
        "json: in a fence, with chatter",
        json_text(lambda value: f"Sure! Here it is:\n\n{_fenced(json.dumps(value, indent=2))}\n\nShall I go on?"),
    ),
    Habit(
        "json: with chatter before and after",
        json_text(lambda value: f"Here is the JSON: {json.dumps(value)} I hope that helps {{really}}!"),
    ),
    Habit("json: after the word", json_text(lambda value: f"json\n{json.dumps(value)}")),
    Habit("json: in a tag", json_text(lambda value: f"<answer>\n{json.dumps(value)}\n</answer>")),
    Habit("json: with a byte order mark", json_text(lambda value: f"\ufeff{json.dumps(value)}")),
    Habit(
        "json: with commas at the end",
        json_text(lambda value: json.dumps(value, indent=1).replace("\n ]", ",\n ]").replace("\n}", ",\n}")),
    ),
    Habit("json: in single quotes", json_text(str)),
    Habit("json: with Python's words", json_text(lambda value: str({**value, "more": None, "sure": True}))),
    Habit(
        "json: with comments",
        json_text(lambda value: json.dumps(value, indent=1).replace("{\n", "{ // the facts\n", 1)),
    ),
    Habit("json: the only element of a list", json_text(lambda value: json.dumps([value]))),
    Habit("json: a string with JSON in it", json_text(lambda value: json.dumps(json.dumps(value)))),
    Habit(
        "json: twice in a fence, a draft first",
        json_text(lambda value: f"{_fenced('{}')}\nBetter:\n{_fenced(json.dumps(value))}"),
    ),
    Habit("json: apostrophes escaped", json_text(lambda value: json.dumps(value).replace("'", "\\'"))),
    Habit("json: underscores escaped", json_text(lambda value: json.dumps({**value, "a_b": 1}).replace("_", "\\_"))),
    Habit(
        "json: keys without quotes",
        json_text(
            lambda value: (
                json.dumps(value).replace('"facts":', "facts:").replace('"event":', "event:").replace('"id":', "id:")
            )
        ),
    ),
    Habit(
        "json: typographic quotes",
        json_text(
            lambda value: (
                json.dumps(value).replace('{"facts": ["', "{“facts”: [“").replace('", "', "”, “").replace('"]}', "”]}")
            )
        ),
    ),
    Habit("json: braces doubled, as the prompt's", json_text(lambda value: f"{{{json.dumps(value)}}}")),
    Habit("json: with fields that nobody asked for", json_text(lambda value: json.dumps({"reasoning": "so", **value}))),
    Habit("json: under the name of its schema", json_text(lambda value: json.dumps({"reply": value}))),
    Habit(
        "json: line breaks within texts",
        json_text(lambda value: json.dumps({**value, "reason": "LINES"}).replace("LINES", "two\nlines")),
    ),
    Habit("white space around every reply", text(lambda reply: f"\n\n {reply} \n")),
)

_SHAPES = (
    Habit(
        "ollama: no id and no time",
        body(lambda answer: {name: value for name, value in answer.items() if name not in ("id", "created", "object")}),
    ),
    Habit(
        "a proxy: only what is needed",
        chats(body(lambda answer: {"choices": [{"message": {"content": answer["choices"][0]["message"]["content"]}}]})),
    ),
    Habit(
        "gemini: usage is missing",
        body(lambda answer: {name: value for name, value in answer.items() if name != "usage"}),
    ),
    Habit("a proxy: usage is null", _usage(None)),
    Habit("a proxy: usage is empty", _usage({})),
    Habit("a proxy: usage has other names", _usage({"input_tokens": 3, "output_tokens": 4})),
    Habit("a proxy: counts are null", _counted_as(lambda count: None)),
    Habit("a proxy: counts are floats", _counted_as(float)),
    Habit("a proxy: counts are texts", _counted_as(str)),
    Habit(
        "groq: seconds in usage",
        body(
            lambda answer: {
                **answer,
                "usage": {**answer["usage"], "total_time": 0.02, "prompt_tokens_details": None},
                "x_groq": {"id": "r"},
            }
        ),
    ),
    Habit(
        "openrouter: cost and a provider in usage",
        body(
            lambda answer: {
                **answer,
                "provider": "X",
                "usage": {**answer["usage"], "cost": 0.1, "completion_tokens_details": {"reasoning_tokens": None}},
            }
        ),
    ),
    Habit(
        "azure: results of filters",
        choice(lambda first: {"content_filter_results": {"hate": {"filtered": False, "severity": "safe"}}}),
    ),
    Habit("vllm: fields of its own", choice(lambda first: {"stop_reason": None, "token_ids": None, "matched_stop": 2})),
    Habit("content in parts", message(lambda reply: {"content": [{"type": "text", "text": reply}]})),
    Habit(
        "nulls in the message",
        message(
            lambda reply: {"refusal": None, "tool_calls": None, "function_call": None, "audio": None, "annotations": []}
        ),
    ),
    Habit("an empty refusal", message(lambda reply: {"refusal": "", "tool_calls": []})),
    Habit("finish_reason is null", choice(lambda first: {"finish_reason": None})),
    Habit("anthropic: finish_reason is end_turn", choice(lambda first: {"finish_reason": "end_turn"})),
    Habit("gemini: finish_reason in capitals", choice(lambda first: {"finish_reason": "STOP"})),
    Habit("llama.cpp: timings", body(lambda answer: {**answer, "timings": {"prompt_ms": 1.5}})),
    Habit(
        "two choices",
        chats(
            body(
                lambda answer: {
                    **answer,
                    "choices": [
                        *answer["choices"],
                        {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "other"}},
                    ],
                }
            )
        ),
    ),
    Habit("empty content, once", at_first(message(lambda reply: {"content": ""}))),
    Habit("null content, once", at_first(message(lambda reply: {"content": None}))),
    Habit(
        "ollama: empty while it loads",
        at_first(choice(lambda first: {"finish_reason": "load", "message": {"role": "assistant", "content": ""}})),
    ),
    Habit("no choices, once", at_first(chats(body(lambda answer: {**answer, "choices": []})))),
    Habit("choices null, once", at_first(chats(body(lambda answer: {**answer, "choices": None})))),
)


def _of_one(act: Act) -> Act:
    """Only where one question of the test is asked."""
    return chats(lambda exchange: act(exchange) if "Question:" in str(exchange.body["messages"]) else exchange.clean)


_no_text = message(lambda reply: {"content": None})

_UNUSABLE = (
    Habit(
        "openai: refuses to answer",
        _of_one(message(lambda reply: {"content": None, "refusal": "I can't help with that."})),
        counted=("refused",),
    ),
    Habit(
        "azure: filters answers",
        _of_one(
            choice(lambda first: {"finish_reason": "content_filter", "message": {"role": "assistant", "content": None}})
        ),
        counted=("filtered|refused",),
    ),
    Habit(
        "azure: filters answers, without a message",
        _of_one(chats(body(lambda answer: {**answer, "choices": [{"index": 0, "finish_reason": "content_filter"}]}))),
        counted=("filtered|refused",),
    ),
    Habit(
        "gemini: safety",
        _of_one(choice(lambda first: {"finish_reason": "SAFETY", "message": {"role": "assistant"}})),
        counted=("filtered|refused",),
    ),
    Habit(
        "anthropic: cuts answers at max_tokens",
        _of_one(lambda e: replace(e.clean, text="so far as I can", finish_reason="max_tokens")),
        counted=("cut short",),
    ),
    Habit(
        "vllm: the answer stands in the reasoning",
        _of_one(message(lambda reply: {"content": None, "reasoning_content": reply})),
        counted=("empty",),
    ),
    Habit("replies nothing at all", _of_one(_no_text), counted=("empty",)),
    Habit(
        "replies with prose where JSON is asked for",
        json_text(lambda value: "I would store the facts that matter."),
        counted=("malformed",),
    ),
)

HABITS = (*_THINKING, *_JSON, *_SHAPES, *_UNUSABLE)
