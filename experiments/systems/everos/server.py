"""An EverOS server on loopback with a storage folder of its own, whose models are ours; and servers kept for reuse."""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from experiments.systems.everos.prompts import FOLDER, write_slots
from experiments.systems.libraries import Library
from tracing.errors import MemorySystemError
from tracing.llm.models import ChatModel, ChatReply, EmbeddingModel
from tracing.llm.serving.gateway import Gateway
from tracing.llm.settings import ModelSettings
from tracing.recording.redaction import excerpt, redact
from tracing.recording.scope import NOTHING

LIBRARY = Library("everos", "1.5.", "memtune system install everos", release="1.5.1", by="everos")
"""Another generation has other prompt slots."""

OWNER = "memtune"
"""The only owner of a conversation's memories: its speakers share them."""

_SERVING = Path(__file__).with_name("server_program.py")
_CHAT, _EMBEDDING = "chat", "embedding"
_STARTS_WITHIN_S = 180.0
_LONGEST_SAID = 400
_NEVER_S = "86400"

_STRATEGIES = """\
# A profile is not searched, and it costs a request an episode.
[strategies.trigger_profile_clustering]
enabled = false
[strategies.extract_user_profile]
enabled = false
"""

Chat = Callable[[Sequence[Mapping[str, str]]], ChatReply]
Embed = Callable[[Sequence[str]], list[list[float]]]


class Server:
    """A running EverOS; `close` ends it. It also ends with this process, however that ends.

    Args:
        slots: the text of each prompt slot that is not to have EverOS's own; or a folder that has them.
        chat: makes the replies to its chat requests; called in threads.
        embed: makes the vectors it asks for; None if it is to store without an index.
        dimension: their length.
        variables: of its environment, for a user's own settings.
    """

    def __init__(
        self,
        slots: Mapping[str, str] | Path,
        *,
        chat: Chat,
        embed: Embed | None = None,
        dimension: int = 0,
        variables: Mapping[str, str] = NOTHING,
    ) -> None:
        LIBRARY.require()
        self._folder = tempfile.TemporaryDirectory(prefix="memtune-everos-")
        folder = Path(self._folder.name)
        root = folder / "root"
        root.mkdir()
        (root / "ome.toml").write_text(_STRATEGIES, encoding="utf-8")
        config = folder if not isinstance(slots, Path) else slots.absolute()
        if not isinstance(slots, Path):
            write_slots(slots, folder / FOLDER)
        self._log = folder / "server.log"
        self._gateway = Gateway(_Served(chat, embed))
        self._gateway.start()
        endpoint = {"BASE_URL": self._gateway.base_url, "API_KEY": self._gateway.key, "TIMEOUT_SECONDS": _NEVER_S}
        settings = {"EVEROS_ROOT": str(root), "EVEROS_MEMORIZE__MODE": "chat", "EVEROS_LLM__MODEL": _CHAT}
        settings |= {"EVEROS_MEMORIZE__SESSION_LOCK_TIMEOUT_SECONDS": _NEVER_S, "EVEROS_DISABLE_CASCADE_WATCHER": "1"}
        settings |= {f"EVEROS_LLM__{key}": value for key, value in endpoint.items()}
        if embed is None:
            settings["EVEROS_DISABLE_CASCADE"] = "1"
        else:
            settings |= {"EVEROS_EMBEDDING__MODEL": _EMBEDDING, "EVEROS_EMBEDDING__DIM": str(dimension)}
            settings |= {f"EVEROS_EMBEDDING__{key}": value for key, value in endpoint.items()}
            # It is indexed when it is asked to; see `index`.
            settings["EVEROS_CASCADE__SCAN_INTERVAL_SECONDS"] = _NEVER_S
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own script, without a shell
                [sys.executable, "-I", "-X", "utf8", str(_SERVING)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", **variables, **settings},
                cwd=folder,
            )
        try:
            self._url = f"http://127.0.0.1:{self._port(config)}"
            self._await()
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """What it answers."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - http on loopback
            self._url + path, data, {"Content-Type": "application/json"}
        )
        try:
            with _opener.open(request) as response:
                result: dict[str, Any] = json.loads(response.read())
        except urllib.error.HTTPError as error:
            reason = redact(excerpt(" ".join(error.read().decode("utf-8", "replace").split()), _LONGEST_SAID))
            raise MemorySystemError(f"everos refuses {path} ({error.code}): {reason}") from None
        except (OSError, ValueError) as error:
            raise MemorySystemError(f"everos does not answer {path} ({error}); {self._last_words()}") from None
        return result

    def idle(self) -> None:
        """Wait until nothing is extracted in the background."""
        while not self.post("/memtune/idle", {"seconds": 60})["idle"]:
            pass

    def entries(self, app: str) -> list[dict[str, Any]]:
        """What the markdown files of an `app_id` hold, in the order written: kind, id, and the fields and sections of
        each entry.
        """
        rows: list[dict[str, Any]] = self.post("/memtune/entries", {"app": app})["entries"]
        return rows

    def write(self, kind: str, items: Sequence[Mapping[str, Any]]) -> list[str]:
        """Put entries into its markdown files, as it does itself; their ids."""
        ids: list[str] = self.post("/memtune/write", {"kind": kind, "owner": OWNER, "items": list(items)})["ids"]
        return ids

    def index(self) -> None:
        """Index all that was written."""
        outcome = self.post("/api/v2/cascade/quiesce", {})
        unindexed = outcome["pending_after"] + outcome["failed_permanent"]
        if unindexed:
            raise MemorySystemError(f"everos did not index {unindexed} of its files; {self._last_words()}")

    def close(self) -> None:
        """End it, and remove its storage."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._gateway.close()
        self._folder.cleanup()

    def _port(self, config: Path) -> int:
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        try:
            self._process.stdin.write(json.dumps({"slots": str(config)}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass
        line = self._process.stdout.readline()
        if not line:
            raise MemorySystemError(f"everos does not start; {self._last_words()}")
        return int(json.loads(line)["port"])

    def _await(self) -> None:
        until = time.monotonic() + _STARTS_WITHIN_S
        while True:
            try:
                with _opener.open(f"{self._url}/health", timeout=10):
                    return
            except urllib.error.HTTPError:
                return  # it answers
            except OSError:
                if not self.alive or time.monotonic() > until:
                    raise MemorySystemError(f"everos does not start; {self._last_words()}") from None
                time.sleep(0.05)

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text("utf-8", "replace").splitlines() if line.strip()]
        words = redact(" ".join(" ".join(lines[-3:]).split()))[-_LONGEST_SAID:]
        how = "it runs" if self.alive else f"it ended with {self._process.returncode}"
        return f"{how} and said last: {words}" if words else how


class _Served:
    """The models as the gateway serves them."""

    def __init__(self, chat: Chat, embed: Embed | None) -> None:
        self.task: ChatModel = _ServedChat(chat)
        self.proposer: ChatModel = self.task
        self.judge: ChatModel = self.task
        self.embedding: EmbeddingModel = _ServedEmbedding(embed or (lambda texts: []))


class _ServedChat(ChatModel):
    def __init__(self, chat: Chat) -> None:
        self.identity, self.settings, self._chat = _CHAT, ModelSettings(model=_CHAT), chat

    def chat(self, messages: Sequence[Mapping[str, str]], **options: Any) -> ChatReply:
        return self._chat(messages)


class _ServedEmbedding(EmbeddingModel):
    def __init__(self, embed: Embed) -> None:
        self.identity, self.settings, self._embed = _EMBEDDING, ModelSettings(model=_EMBEDDING), embed

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        return self._embed(texts)


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Closeable(Protocol):
    """What can be kept."""

    @property
    def alive(self) -> bool:
        """Whether it can be used again."""

    def close(self) -> None:
        """End it."""


T = TypeVar("T", bound=Closeable)


class ServerPool(Generic[T]):
    """The last few servers of a kind, by what they are good for, since one takes seconds to start; all end with this
    process.
    """

    def __init__(self, most: int) -> None:
        """`most` is how many are kept."""
        self._most, self._guard = most, threading.Lock()
        self._kept: OrderedDict[str, T] = OrderedDict()
        atexit.register(self.close)

    @contextmanager
    def borrowed(self, key: str, make: Callable[[], T]) -> Iterator[T]:
        """One for this key, for the block alone. After an error it is ended."""
        with self._guard:
            server = self._kept.pop(key, None)
        if server is not None and not server.alive:
            server.close()
            server = None
        used = make() if server is None else server
        try:
            yield used
        except BaseException:
            used.close()
            raise
        with self._guard:
            ended = [self._kept.pop(key)] if key in self._kept else []
            self._kept[key] = used
            while len(self._kept) > self._most:
                ended.append(self._kept.popitem(last=False)[1])
        for stale in ended:
            stale.close()

    def close(self) -> None:
        """End all that are kept."""
        with self._guard:
            ended = list(self._kept.values())
            self._kept.clear()
        for server in ended:
            server.close()
