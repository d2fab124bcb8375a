"""A server on loopback that records the texts which a library sends, to a model or to a hosted service."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Messages = Sequence[Mapping[str, Any]]
"""Of a chat request as it put them, then, as of any other request, a message for each text of its tools and schema (or
of its body) with the `part` that it is."""

Reply = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Maps the body of a chat request to the message of the reply."""

_FORMS = ("tools", "response_format")
"""What a chat request has beside its messages; a model reads the descriptions in them."""

DIMENSIONS = 8
"""Of a vector, if the request names no other number."""


class CaptureServer:
    """Answers chat requests with `reply`, requests for embeddings with equal vectors, and all others with `answer`.

    Attributes:
        url: of its root.
        requests: what arrived, without embeddings and what has no body.
    """

    def __init__(self, reply: Reply, answer: Mapping[str, Any]) -> None:
        self.requests: list[Messages] = []
        capture = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments: Any) -> None:
                """A request contains the user's texts: none is logged."""

            def answer(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
                value = capture._answer(f"{self.command} {self.path.partition('?')[0]}", body, reply, answer)
                streamed = isinstance(body, dict) and body.get("stream") is True
                content = "".join(_events(value)) if streamed else json.dumps(value)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if streamed else "application/json")
                self.send_header("Content-Length", str(len(content.encode())))
                self.end_headers()
                self.wfile.write(content.encode())

            do_GET = do_POST = do_PUT = do_PATCH = answer  # noqa: N815 - names of the standard library

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> CaptureServer:
        threading.Thread(target=self._server.serve_forever, name="capture", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str, body: Any, reply: Reply, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        if path.endswith("/embeddings"):
            return _embeddings(body)
        if path.endswith("/chat/completions"):
            forms = {key: body[key] for key in _FORMS if key in body}
            self.requests.append([*body["messages"], *({"part": key, "content": text} for key, text in _texts(forms))])
            return chat_completion(reply(body))
        if body is not None:
            self.requests.append([{"part": f"{key} of {path}", "content": text} for key, text in _texts(body)])
        return answer


def chat_completion(message: Mapping[str, Any]) -> dict[str, Any]:
    """The body of the reply to a chat request."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    base = {"id": "1", "object": "chat.completion", "created": 0, "model": "capture"}
    return {**base, "choices": [choice], "usage": usage}


def _events(completion: Mapping[str, Any]) -> Iterator[str]:
    """The same reply as a stream of one part."""
    choices = [{**choice, "delta": choice["message"]} for choice in completion["choices"]]
    yield f"data: {json.dumps({**completion, 'object': 'chat.completion.chunk', 'choices': choices})}\n\n"
    yield "data: [DONE]\n\n"


def _embeddings(body: Mapping[str, Any]) -> dict[str, Any]:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    size = int(body.get("dimensions") or DIMENSIONS)
    data = [{"object": "embedding", "index": i, "embedding": [1.0] + [0.0] * (size - 1)} for i in range(len(texts))]
    return {"object": "list", "model": "capture", "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}}


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The texts in a JSON value, each after its path; also those in a text that is JSON itself."""
    if isinstance(value, str):
        yield path.lstrip("."), value
        if value.startswith("{"):
            with contextlib.suppress(ValueError):
                yield from _texts(json.loads(value), path)
    elif isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(item, f"{path}.{key}")
