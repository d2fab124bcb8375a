"""Memori's fact extraction with a prompt and a model of your own, in place of that of its cloud.

    import memori_augmentation

    memori_augmentation.register(ask)  # before Memori(conn=...); `ask` sends a text to your model and returns its reply

The prompt is `extract` in `memori.json` beside this file: a template in `str.format` style with the placeholder
`{conversation}`. Its reply is JSON, `{"facts": ["...", ...]}`. Needs memori 3.3 without its Rust core, which asks the
cloud by itself: `Memori(conn=..., use_rust_core=False)`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

PROMPTS_FILE = "memori.json"


class PromptedAugmentation:
    """Reads one exchange, asks for its facts, and lets Memori store them.

    The exchange begins with the `<memori_context>` that Memori put into the chat request, if it recalled anything.

    Args:
        config: Memori's own.
        template: the prompt.
        ask: sends a text to a model and returns its reply.
    """

    enabled = True

    def __init__(self, config: Any = None, *, template: str, ask: Callable[[str], str]) -> None:
        self.config, self.template, self.ask = config, template, ask

    async def process(self, ctx: Any, driver: Any) -> Any:
        """Memori's entry point; what it raises is logged by Memori and not raised again."""
        payload = ctx.payload
        if not payload.entity_id:
            return ctx
        facts = await asyncio.to_thread(self.extract, [message.content for message in payload.conversation_messages])
        if facts:
            vectors = await asyncio.to_thread(self.embed, facts)
            entity = driver.entity.create(payload.entity_id)
            ctx.add_write("entity_fact.create", entity, facts, vectors, payload.conversation_id)
        return ctx

    def extract(self, messages: Sequence[str]) -> list[str]:
        """The facts of an exchange, given its messages in order."""
        reply = json.loads(self.ask(self.template.format(conversation="\n".join(messages))))
        return [fact for fact in reply["facts"] if isinstance(fact, str)]

    def embed(self, facts: Sequence[str]) -> list[list[float]]:
        """Their vectors, from Memori's own embedding model."""
        from memori.embeddings import embed_texts

        vectors: list[list[float]] = embed_texts(list(facts), model=self.config.embeddings.model)
        return vectors


def register(ask: Callable[[str], str], template: str | None = None) -> None:
    """Let every `Memori` made from now on extract facts by this prompt, by default the one beside this file."""
    from memori.memory.augmentation._registry import Registry

    if template is None:
        template = json.loads(Path(__file__).with_name(PROMPTS_FILE).read_bytes())["extract"]
    Registry._augmentations = {"advanced_augmentation": partial(PromptedAugmentation, template=template, ask=ask)}
