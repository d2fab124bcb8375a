"""The window holds the newest messages that fit, and what was trimmed from it is recorded as deleted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scripted_server import ScriptedServer, prompt_of

from experiments.systems.long_context import LongContext
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import trace
from tracing.systems.conformance import SMALL_TALK
from tracing.systems.prompts import baseline_candidate, tokens_of

BASELINE = baseline_candidate(LongContext.prompts)
SAID = [(turn.id, f"{part.time}\n{turn.spoken}") for part in SMALL_TALK.sessions for turn in part.turns]


@pytest.mark.parametrize("most", [1, 40, 60, 1000])
def test_the_newest_messages_that_fit_are_kept_and_the_others_deleted_in_the_trace(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer, most: int
) -> None:
    with trace() as recorder:
        memory = LongContext(window_tokens=most).build(SMALL_TALK, BASELINE, open_access())
    kept = [entry["text"] for entry in memory.state["entries"]]
    texts = [text for _, text in SAID]
    assert kept == texts[len(texts) - len(kept) :]
    assert len(kept) == 1 or sum(map(tokens_of, kept)) <= most
    longer = texts[len(texts) - len(kept) - 1 :]
    assert len(kept) == len(texts) or sum(map(tokens_of, longer)) > most
    graph = recorder.graph
    deleted = [graph.variables[str(each.previous)].value for each in graph.find_variables(kind="delete_marker")]
    assert deleted == texts[: len(texts) - len(kept)]
    assert scripted_server.requests == scripted_server.embedding_requests == []


def test_the_answer_reads_the_whole_window_in_the_order_in_which_it_was_said(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer
) -> None:
    access, system = open_access(), LongContext()
    memory = system.build(SMALL_TALK, BASELINE, access)
    system.answer(memory, SMALL_TALK.questions[0], BASELINE, access)
    (request,) = scripted_server.requests
    assert "\n".join(f"- {text}" for _, text in SAID) in prompt_of(request)


def test_given_facts_are_trimmed_too_and_given_entries_are_not(open_access: Callable[..., ModelAccess]) -> None:
    system, access, facts = LongContext(window_tokens=8), open_access(), ["An old long fact, all in all.", "New."]
    assert [each["text"] for each in system.build_from_facts([facts], BASELINE, access).state["entries"]] == ["New."]
    assert [each["text"] for each in system.with_entries(facts, access).state["entries"]] == facts
