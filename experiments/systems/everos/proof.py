"""EverOS itself, asked: what it sends with the slots of an export, and which texts it ships.

It runs where EverOS is, with memtune. With a `folder` in its input it prints the proof of an export, without one the
texts that EverOS ships.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path

from experiments.systems.everos import server
from experiments.systems.everos.prompts import FOLDER, SLOTS, PromptRequest, read_slot, rendered
from experiments.systems.exporting.proving import print_result
from tracing.errors import ContractError
from tracing.llm.models import ChatReply

_TURNS = ("I like tea.", "Good to know.")
_REPLIES = (
    {"reasoning": "one", "boundaries": [], "should_wait": False},
    {"title": "Tea", "content": "Ada likes tea."},
    {"atomic_facts": {"time": "now", "atomic_fact": ["Ada likes tea."]}},
)
_TITLES = {"boundary_detection": "boundary", "episode_extract": "episode"}


def prove(folder: Path) -> list[str]:
    """Start the real server with an export's slots, let it read a session, and find each text in its requests."""
    requests: list[tuple[str, str]] = []

    def chat(messages: Sequence[Mapping[str, str]]) -> ChatReply:
        requests.append((messages[-1]["role"], messages[-1]["content"]))
        return ChatReply(json.dumps(_REPLIES[min(len(requests), 3) - 1]), "stop", 0, 0, cached=False, model="capture")

    with closing(server.Server(folder, chat=chat)) as running:
        sent = [
            {"sender_id": server.OWNER, "sender_name": name, "role": "user", "timestamp": at * 1000, "content": text}
            for at, (name, text) in enumerate(zip(("Ada", "Bob"), _TURNS, strict=True), start=1_700_000_000)
        ]
        running.post("/api/v2/memory/add", {"session_id": "proof", "messages": sent, "defer_extraction": True})
        running.post("/api/v2/memory/flush", {"session_id": "proof"})
        running.idle()
    release = f"{server.LIBRARY.package} {server.LIBRARY.here()}"
    proof = []
    for name in SLOTS:
        text = read_slot(folder / FOLDER / f"{name}.yaml")
        role = None if text is None else next((role for role, sent in requests if _sends(text, sent)), None)
        if text is None or role is None:
            raise ContractError(f"{name}: {release} does not send it with the conversation; the export is unusable")
        proof.append(
            f"{name}: all {len(text)} characters are in the {role} message of {release}'s {_TITLES[name]} request, "
            "with the conversation"
        )
    return proof


def shipped() -> dict[str, str]:
    """The texts that the installed EverOS uses where a slot is not enabled, by slot."""
    server.LIBRARY.require()
    boundary, episode = map(
        import_module, ("everalgo.boundary.prompts.en.chat", "everalgo.user_memory.prompts.en.episode")
    )
    texts = (boundary.BATCH_BOUNDARY_DETECT_PROMPT_EN, episode.EPISODE_GENERATION_PROMPT)
    return dict(zip(SLOTS, texts, strict=True))


def _sends(text: str, request: str) -> bool:
    values = PromptRequest(text).values(request)
    whole = all(turn in request for turn in _TURNS)
    return values is not None and whole and rendered(text, values) == request


if __name__ == "__main__":
    payload = json.load(sys.stdin)
    print_result(lambda: prove(Path(payload["folder"])) if "folder" in payload else shipped())
