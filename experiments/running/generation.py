"""Data generated with the author of a configuration: the one model that is asked, what it costs, and the pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from experiments.data.dataset_reader import Progress
from experiments.data.generating.author import ANSWER_TOKENS, DRAFT_TOKENS, draft_request
from experiments.data.generating.chats import Chats
from experiments.data.generating.citations import Citations
from experiments.data.generating.dialogue import Dialogue
from experiments.data.generating.generating import Generated, Plan, generate
from experiments.running.estimate import CHARACTERS_A_TOKEN, EMBEDDED_READ, EMBEDDED_WRITE, REMOTE_SECONDS, Estimate
from experiments.running.parts import open_access
from experiments.runs.config import Models, RunConfig
from tracing.errors import ModelError
from tracing.llm.accounting.price import price
from tracing.llm.accounting.token_counts import TokenCounts
from tracing.llm.settings import AT_ONCE

_ANSWERS = 4
"""The most tests of a draft that ask the author: cited turns, none, the first of two, and others too."""
_ANSWER_TURNS = 8
_COMPLAINT_CALLS = 2


def author_config(config: RunConfig) -> RunConfig:
    """The configuration with its author alone, the proposer or else the task model: no other model learns anything."""
    author = config.models.proposer or config.models.task
    return config.model_copy(update={"models": Models(task=author)})


def generate_data(
    config: RunConfig,
    chats: Chats,
    home: Path,
    out: Path,
    plan: Plan,
    *,
    progress: Progress | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> Generated:
    """Generate a data set with the author of `config`, within its budgets, with the reply cache of `home`.

    `on_start` is called before the first call. Raises as `generate`; `ConfigError` where the author cannot be used.
    """
    with open_access(author_config(config), home) as access:
        access.check(when_needed=True)
        on_start()
        try:
            return generate(chats, access, out, plan, progress=progress)
        except (KeyboardInterrupt, ModelError) as error:
            error.add_note("the sessions that are done are kept; the same command goes on")
            raise


def generation_cost(config: RunConfig, chats: Chats, plan: Plan) -> Estimate:
    """What it costs at most, if every draft reaches every test and nothing is in the cache; no model is asked."""
    author = author_config(config).models.task
    calls = read = written = 0
    for conversation in chats.conversations:
        dialogue = Dialogue(conversation)
        citations = Citations(dialogue, plan.per_session)
        turns = sum(len(turn.spoken) for turn in dialogue.turns.values()) / max(1, len(dialogue.turns))
        answer = round(_ANSWER_TURNS * turns / CHARACTERS_A_TOKEN)
        for session in conversation.sessions:
            cited = [citation for citation in citations.of(session) if citation.kind in plan.kinds]
            answers = _ANSWERS * len(cited) + ("never_said" in plan.kinds)
            calls += len(cited) + answers
            requests = [draft_request(dialogue, citation) for citation in cited]
            read += sum(len(message["content"]) for request in requests for message in request) // CHARACTERS_A_TOKEN
            read += answers * answer
            written += len(cited) * DRAFT_TOKENS + answers * ANSWER_TOKENS
        logged = _COMPLAINT_CALLS * len(chats.complaints.get(conversation.id, ()))
        calls, read, written = calls + logged, read + logged * answer, written + logged * ANSWER_TOKENS
    seconds = read / EMBEDDED_READ + written / EMBEDDED_WRITE
    if not author.embedded:
        seconds = calls * REMOTE_SECONDS / (config.concurrency or AT_ONCE)
    return Estimate(calls, read, written, seconds / 60, price(author, TokenCounts(read, written)).money)
