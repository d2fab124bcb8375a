"""Fields of requests that providers refuse, in their words; the clean score is reached without them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from benchmarks.providers.habit import Act, Exchange, Habit, at_first, chats, embeddings, error, refusal, refusing
from benchmarks.scripted_server import Reply

_WARM = {"temperature": 0.5}
"""With it a request has a seed."""
_FORM = "response_format"


def _unsupported(field: str, message: str) -> Act:
    return refusing(field, error(400, message, param=field, code="unsupported_parameter"))


def _each(*acts: Act) -> Act:
    """The first of these that does not reply as the clean endpoint would."""

    def act(exchange: Exchange) -> Reply:
        replies = (act(exchange) for act in acts)
        return next((reply for reply in replies if reply is not exchange.clean), exchange.clean)

    return act


def _form(forms: Iterable[str], reply: Reply) -> Act:
    """To requests for these forms of JSON."""
    return lambda exchange: reply if exchange.form in forms else exchange.clean


def _schema_with(word: str, reply: Reply) -> Act:
    """To requests whose schema has a key."""
    return lambda exchange: reply if f"'{word}'" in str(exchange.body.get(_FORM)) else exchange.clean


def _many_texts(most: int, reply: Reply) -> Act:
    return embeddings(lambda exchange: reply if len(exchange.body["input"]) > most else exchange.clean)


def _thinks_first(exchange: Exchange) -> Reply:
    most = exchange.body.get("max_completion_tokens", 1_000_000)
    if most > 1000:
        return exchange.clean
    usage = {"prompt_tokens": 20, "completion_tokens": most, "completion_tokens_details": {"reasoning_tokens": most}}
    return replace(
        exchange.clean,
        text="",
        finish_reason="length",
        change=lambda answer: {**answer, "usage": usage},
    )


_NEW_LIMIT = _unsupported(
    "max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
)
_TEMPERATURE = refusing(
    "temperature",
    error(
        400,
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported.",
        param="temperature",
        code="unsupported_value",
    ),
)
_UNKNOWN_NAME = "Invalid JSON payload received. Unknown name"


def _gemini(message: str) -> Reply:
    """Its compatible layer wraps errors in a list."""
    return refusal(400, [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}])


def _validation(field: str, **detail: str) -> Reply:
    return refusal(422, {"detail": [{"loc": ["body", field], **detail}]})


_VLLM = (
    "[{'type': 'extra_forbidden', 'loc': ('body', 'response_format'), 'msg': 'Extra inputs are not permitted', "
    "'input': {'type': 'json_schema'}}]"
)

HABITS = (
    Habit("openai: max_tokens has another name", chats(_NEW_LIMIT)),
    Habit("openai: only the default temperature", chats(_TEMPERATURE)),
    Habit("openai: a reasoning model, all together", chats(_each(_NEW_LIMIT, _TEMPERATURE, _thinks_first))),
    Habit(
        "openai: seed, unrecognized argument",
        chats(refusing("seed", error(400, "Unrecognized request argument supplied: seed"))),
        settings=_WARM,
    ),
    Habit(
        "openai: reasoning_effort that a model has not",
        chats(_unsupported("reasoning_effort", "Unsupported parameter: 'reasoning_effort' is not supported.")),
        fails=("reasoning_effort",),
        settings={"reasoning_effort": "low"},
    ),
    Habit(
        "openai: a field of extra_body that it does not know",
        chats(refusing("top_k", error(400, "Unrecognized request argument supplied: top_k"))),
        fails=("top_k",),
        settings={"extra_body": {"top_k": 5}},
    ),
    Habit(
        "openai: a schema without limits of lists",
        chats(
            _schema_with("maxItems", error(400, "Invalid schema: 'maxItems' is not permitted.", param="text.format"))
        ),
    ),
    Habit(
        "azure: json_schema with an earlier api-version",
        chats(
            _form(
                ["json_schema"],
                error(
                    400,
                    "response_format as json_schema is enabled only for api versions 2024-08-01-preview and later",
                ),
            )
        ),
    ),
    Habit(
        "gemini: seed, a list as error body",
        chats(refusing("seed", _gemini(f'{_UNKNOWN_NAME} "seed": Cannot find field.'))),
        settings=_WARM,
    ),
    Habit(
        "gemini: additionalProperties in a schema",
        chats(
            _schema_with(
                "additionalProperties",
                _gemini(f"{_UNKNOWN_NAME} \"additionalProperties\" at 'generation_config.response_schema'"),
            )
        ),
    ),
    Habit(
        "gemini: invalid argument, without a word which, for a schema",
        chats(_form(["json_schema"], _gemini("Request contains an invalid argument."))),
    ),
    Habit(
        "gemini: invalid argument, without a word which, for keys of a schema",
        chats(_schema_with("maxItems", _gemini("Request contains an invalid argument."))),
    ),
    Habit(
        "gemini: invalid argument, without a word which, for a temperature",
        chats(refusing("temperature", _gemini("Request contains an invalid argument."))),
    ),
    Habit(
        "vllm: response_format is an extra field",
        chats(
            refusing(_FORM, refusal(400, {"object": "error", "message": _VLLM, "type": "BadRequestError", "code": 400}))
        ),
    ),
    Habit(
        "vllm: max_tokens is an extra field",
        chats(
            refusing(
                "max_tokens", _validation("max_tokens", msg="extra fields not permitted", type="value_error.extra")
            )
        ),
    ),
    Habit(
        "mistral: seed is an extra field",
        chats(refusing("seed", _validation("seed", type="extra_forbidden", msg="Extra inputs are not permitted"))),
        settings=_WARM,
    ),
    Habit(
        "tgi: a temperature above zero",
        chats(
            lambda e: (
                error(422, "Input validation error: `temperature` must be strictly positive")
                if e.body.get("temperature") == 0
                else e.clean
            )
        ),
    ),
    Habit(
        "deepseek: json_schema is unavailable",
        chats(_form(["json_schema"], error(400, "This response_format type is unavailable now"))),
    ),
    Habit(
        "deepseek: json_schema is an unknown variant",
        chats(
            _form(
                ["json_schema"],
                refusal(422, b"Failed to deserialize the JSON body: response_format: unknown variant `json_schema`"),
            )
        ),
    ),
    Habit(
        "openai: json_object needs the word in the prompt",
        chats(
            lambda e: (
                error(400, "'messages' must contain the word 'json' in some form, to use 'response_format'.")
                if e.form == "json_object" and "json" not in str(e.body["messages"]).lower()
                else error(
                    400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
                )
                if e.form == "json_schema"
                else e.clean
            )
        ),
    ),
    Habit(
        "lm studio: json_object is no form",
        chats(
            _form(["json_object"], refusal(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"}))
        ),
    ),
    Habit(
        "cerebras: a schema, with an error of one word",
        chats(refusing(_FORM, refusal(400, {"message": "wrong_api_format"}))),
    ),
    Habit(
        "llama.cpp: a grammar that cannot be parsed, 400", chats(refusing(_FORM, error(400, "failed to parse grammar")))
    ),
    Habit(
        "llama.cpp: a grammar that cannot be parsed, 500",
        chats(
            refusing(_FORM, error(500, "Failed to initialize samplers: failed to parse grammar", type="server_error"))
        ),
    ),
    Habit(
        "groq: its JSON does not validate",
        chats(
            refusing(
                _FORM,
                error(
                    400,
                    "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
                    code="json_validate_failed",
                    failed_generation='{"facts": ["Mara',
                ),
            )
        ),
    ),
    Habit(
        "groq: its JSON does not validate, once",
        at_first(chats(refusing(_FORM, error(400, "Failed to generate JSON.", code="json_validate_failed")))),
    ),
    Habit(
        "litellm: parameters that a provider does not support",
        chats(
            lambda e: (
                error(
                    400,
                    f"litellm.UnsupportedParamsError: anthropic does not support parameters: {sorted(refused)}. "
                    "To drop these, set `litellm.drop_params=True`",
                )
                if (refused := {"seed", _FORM} & set(e.body))
                else e.clean
            )
        ),
        settings=_WARM,
    ),
    Habit(
        "a proxy: Bad Request, for any optional field",
        chats(lambda e: refusal(400, b"Bad Request") if {"temperature", _FORM} & set(e.body) else e.clean),
    ),
    Habit("a proxy: 501 for response_format", chats(refusing(_FORM, refusal(501, b"")))),
    Habit(
        "embeddings: encoding_format is not supported",
        embeddings(_unsupported("encoding_format", "Unsupported parameter: encoding_format")),
    ),
    Habit(
        "embeddings: encoding_format, without a word",
        embeddings(refusing("encoding_format", refusal(400, {"error": "bad request"}))),
    ),
    Habit(
        "embeddings: two texts at most, 400",
        _many_texts(2, error(400, "Too many inputs. The max number of inputs is 2.")),
    ),
    Habit(
        "embeddings: two texts at most, 413",
        _many_texts(
            2, refusal(413, {"error": "batch size 3 > maximum allowed batch size 2", "error_type": "Validation"})
        ),
    ),
    Habit("embeddings: two texts at most, 422", _many_texts(2, refusal(422, {"error": "Validation: batch too large"}))),
)
