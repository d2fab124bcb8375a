"""Servers of pages on 127.0.0.1, for bearers of a token: their parts, their address, and how refusals are told.

The token is kept in the home, so that an open page finds a server that was started again.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from experiments.annotating.page_content import safe
from tracing.errors import ConfigError, MemtuneError
from tracing.llm.serving.loopback import Document, LoopbackServer, RefusalError, Request

Handler = Callable[[Any], Mapping[str, Any]]
"""Takes the JSON of a request and gives that of the reply."""

USUAL_PORT = 5100
_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
KEY_FILE = "annotate-key"
_BYTES = 24


def documents(page: str, files: Sequence[str]) -> dict[str, Document]:
    """The parts of a page, by path, with what it shares with other pages."""
    folder = resources.files("experiments") / "templates"
    shared = {name: folder / name for name in ("theme.css", "failure.css")}
    texts = {**shared, **{name: folder / "annotate" / name for name in files}}
    parts = {
        f"/{name}": Document(text.read_bytes(), _TYPES[Path(name).suffix], _HEADERS) for name, text in texts.items()
    }
    return {"/": Document((folder / "annotate" / page).read_bytes(), "text/html; charset=utf-8", _HEADERS), **parts}


class PageServer:
    """Serves the parts of a page and what it asks for.

    Attributes:
        address: to open in a browser, with the annotator's name; it holds the token in its fragment, which browsers do
            not send.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        parts: dict[str, Document],
        *,
        port: int | None,
        key: str | None,
        annotator: str,
        later: tuple[type[MemtuneError], ...] = (),
    ) -> None:
        """Bind the port without serving yet: by default 5100, or any free one if that is taken.

        `key` is the token, and `annotator` the name that the page begins with. A handler's `MemtuneError` is told on
        the page, beside the field or button that it is about; after one of `later` the page asks again.

        Raises:
            ConfigError: the port is taken.
        """
        routes = {path: _route(handler, later) for path, handler in handlers.items()}

        def listen(port: int) -> LoopbackServer:
            return LoopbackServer("annotation server", routes, port=port, key=key, documents=parts)

        try:
            self._http = listen(USUAL_PORT if port is None else port)
        except ConfigError:
            if port is not None:
                raise
            self._http = listen(0)
        named = {"annotator": annotator} if annotator else {}
        self.address = f"{self._http.base_url.removesuffix('/v1')}/#{urlencode({'key': self._http.key, **named})}"

    def start(self) -> None:
        """Serve in a background thread."""
        self._http.start()

    def close(self) -> None:
        """Stop serving."""
        self._http.close()


def _route(handler: Handler, later: tuple[type[MemtuneError], ...]) -> Callable[[Request], Mapping[str, Any]]:
    def route(request: Request) -> Mapping[str, Any]:
        try:
            return handler(request.body if request.body is not None else {})
        except MemtuneError as error:
            raise RefusalError(503 if isinstance(error, later) else 422, safe(str(error))) from None

    return route


def server_key(home: Path) -> str:
    """The token in the home, which only its owner may read; made on the first call.

    Raises:
        ConfigError: it cannot be read or written.
    """
    path = home / KEY_FILE
    try:
        new = path.with_name(f".{KEY_FILE}.{os.getpid()}")
        if not path.exists():
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(_BYTES))
            try:
                os.link(new, path)  # whoever is first wins
            except FileExistsError:
                pass
            finally:
                new.unlink()
        key = path.read_text().strip()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be used ({error.strerror}); give --home a writable folder") from None
    if len(key) < _BYTES:
        raise ConfigError(f"{path}: holds no token; remove it")
    return key
