"""Mem0's own form of its prompts: configuration keys in a JSON file, and the proof that the library sends them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracing.errors import ContractError
from tracing.llm.serving.loopback import LoopbackServer, Request
from tracing.systems.mem0_memory import library
from tracing.systems.mem0_memory.writing import CONFIG_KEYS, native_prompts
from tracing.systems.prompts import Candidate, render

CONFIG_FILE, ANSWER_FILE = "mem0.json", "answer.txt"

_FACT = "Ada likes tea"
_REPLIES = ({"facts": [_FACT]}, {"memory": [{"id": "0", "text": _FACT, "event": "ADD"}]})


class Mem0Configuration:
    """Mem0's configuration keys in a JSON file, and the answer prompt, which it has no key for, beside it."""

    prompts = frozenset({"extract", "update", "answer"})

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        """Write the configuration keys as JSON and the answer prompt, which Mem0 has no key for, as a template."""
        text = json.dumps(native_prompts(candidate), indent=2, ensure_ascii=False) + "\n"
        (folder / CONFIG_FILE).write_text(text, encoding="utf-8", newline="")
        (folder / ANSWER_FILE).write_text(candidate["answer"], encoding="utf-8", newline="")
        return {**dict.fromkeys(CONFIG_KEYS, CONFIG_FILE), "answer": ANSWER_FILE}

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """One prompt as the user of the export sends it."""
        if name == "answer":
            return render((folder / ANSWER_FILE).read_bytes().decode(), values)
        return str(json.loads((folder / CONFIG_FILE).read_bytes())[CONFIG_KEYS[name]])

    def prove(self, folder: Path) -> list[str]:
        """Load the export in the real library, let it add a message, and find each prompt in the requests it sends.

        Returns:
            A sentence for each prompt that says where it was found.

        Raises:
            ContractError: a prompt is in no request.
            ConfigError: the library is not installed, or another generation.
        """
        settings = json.loads((folder / CONFIG_FILE).read_bytes())
        requests = _requests_of(settings)
        proof = []
        for number, (key, title) in enumerate(
            zip(CONFIG_KEYS.values(), ("extraction", "update"), strict=True), start=1
        ):
            text = settings[key]
            messages = requests[number - 1] if number <= len(requests) else []
            role = next((str(message["role"]) for message in messages if text in str(message["content"])), None)
            release = f"{library.PACKAGE} {library.installed_version()}"
            if role is None:
                raise ContractError(f"{key}: {release} does not send it in its {title} request; the export is unusable")
            proof.append(f"{key}: all {len(text)} characters are in the {role} message of {release}'s {title} request")
        return proof


def _requests_of(settings: Mapping[str, str]) -> list[list[dict[str, Any]]]:
    """The messages of each chat request that a Mem0 with these settings makes while it adds one fact."""
    asked: list[list[dict[str, Any]]] = []

    def chat(request: Request) -> dict[str, Any]:
        asked.append(request.body["messages"])
        message = {"role": "assistant", "content": json.dumps(_REPLIES[min(len(asked), len(_REPLIES)) - 1])}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "1", "object": "chat.completion", "created": 0, "model": "capture", "choices": [choice]}

    def embed(request: Request) -> dict[str, Any]:
        data = [{"object": "embedding", "index": 0, "embedding": [1.0, 0.0]}]
        return {"object": "list", "model": "capture", "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}}

    server = LoopbackServer("capture", {"POST /v1/chat/completions": chat, "POST /v1/embeddings": embed})
    server.start()
    try:
        memory = library.open_memory(
            settings, base_url=server.base_url, key=server.key, chat_model="capture", embedding_model="capture"
        )
        try:
            library.fit(memory, 2)
            memory.add([{"role": "user", "content": f"Ada: {_FACT}"}], user_id="proof")
        finally:
            library.close(memory)
    finally:
        server.close()
    return asked
