"""The proof of an export for Memori: it is loaded in the real library, which sends its text.

It runs where Memori is, with memtune, and prints a sentence for the prompt.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from runpy import run_path
from typing import Any

from experiments.systems.exporting.capture_server import chat_completion
from experiments.systems.exporting.proving import print_result
from experiments.systems.memori import library
from experiments.systems.memori.augmentation import PROMPTS_FILE
from tracing.errors import ContractError
from tracing.llm.serving.loopback import LoopbackServer, Request

AUGMENTATION_FILE = "memori_augmentation.py"

_TURN, _REPLIED, _FACT = "Ada: I like tea.", "Bob: Good to know.", "Ada likes tea."


def prove(folder: Path) -> list[str]:
    """Register the exported augmentation, let Memori read an exchange, and find the prompt in the request it sends."""
    library.load()
    template = json.loads((folder / PROMPTS_FILE).read_bytes())["extract"]
    requests: list[list[dict[str, Any]]] = []

    def chat(request: Request) -> dict[str, Any]:
        requests.append(request.body["messages"])
        return chat_completion({"content": json.dumps({"facts": [_FACT]})})

    server = LoopbackServer("capture", {"POST /v1/chat/completions": chat})
    server.start()
    try:
        stored = _stored_with(folder, server.base_url, server.key)
    finally:
        server.close()
    release = f"{library.LIBRARY.package} {library.LIBRARY.here()}"
    expected = template.format(conversation=f"{_TURN}\n{_REPLIED}")
    if [messages[-1]["content"] for messages in requests] != [expected]:
        raise ContractError(f"extract: {release} does not send it in its extraction request; the export is unusable")
    if stored != [_FACT]:
        raise ContractError(f"extract: {release} stored {stored} of the reply {_FACT!r}; the export is unusable")
    role = requests[0][-1]["role"]
    return [
        f"extract: all {len(template)} characters are in the {role} message of {release}'s extraction request, and "
        f"the fact of its reply is stored"
    ]


def _stored_with(folder: Path, base_url: str, key: str) -> list[str]:
    """What a Memori with the exported augmentation holds after one exchange."""
    import openai
    from memori.memory.augmentation._registry import Registry

    client = openai.OpenAI(api_key=key, base_url=base_url, max_retries=0)

    def ask(text: str) -> str:
        reply = client.chat.completions.create(model="capture", messages=[{"role": "user", "content": text}])
        return reply.choices[0].message.content or ""

    before = Registry._augmentations
    try:
        run_path(str(folder / AUGMENTATION_FILE))["register"](ask)
        with tempfile.TemporaryDirectory(prefix="memtune-memori-") as scratch, ExitStack() as stack:
            memori = library.open_memori(Path(scratch) / "memori.sqlite", "memtune-proof", _Constant(), lambda: "")
            stack.callback(library.close, memori)
            memori.attribution(entity_id="proof", process_id="proof")
            replaying = library.replaying_client(lambda: _REPLIED)
            memori.llm.register(replaying)
            replaying.chat.completions.create(model="replayed", messages=[{"role": "user", "content": _TURN}])
            library.settle(memori)
            return [fact.content for fact in memori.recall("tea")]
    finally:
        Registry._augmentations = before


class _Constant(library.Hooks):
    """Every vector is the same."""

    def embed_query(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]


if __name__ == "__main__":
    print_result(lambda: prove(Path(json.load(sys.stdin)["folder"])))
