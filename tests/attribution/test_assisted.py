"""The scripted server stands for the model: what it is asked, and what becomes of replies of every kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from scripted_memory import ScriptedMemory
from scripted_server import Reply, ScriptedServer

from attribution.agent.assisted import Probe, assisted, opinion_of
from attribution.cases import Attribution, Case
from attribution.recordings import Recording
from attribution.survival.survival_method import Survival
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.systems.conversations import Conversation, Question

CRUNCHY = "Mara's reptile loves bitter red leaves."
GREENS = ("Mara's tortoise finds greens outside.", "What Mara's tortoise likes is bitter.")


def question(conversation: Conversation) -> Question:
    """About what no text says in the answer's words, so that words alone cannot decide."""
    return Question(
        id="greens", question="What greens does Mara's tortoise like?", answers=("bitter chicory",), evidence=("D1:1",)
    )


def unsure(conversation: Conversation, hits: list[str], *more: str) -> tuple[Case, Recording]:
    with ScriptedMemory(conversation) as memory:
        memory.remember(("D1:1", "D1:2"), CRUNCHY, "Ilya's gecko eats mashed papaya.", *more)
        case = memory.answer(question(conversation), hits, "cabbage")
    return case, Recording(memory.recorder.graph, conversation, memory.operations)


def tells(body: dict[str, Any]) -> str:
    """A model that knows what radicchio is."""
    text = body["messages"][-1]["content"].partition("Text:\n")[2].partition("\n\nReply with")[0]
    return json.dumps({"quote": "bitter red leaves" if CRUNCHY in text else "", "tells": CRUNCHY in text})


def attributed(case: Case, recording: Recording, access: ModelAccess) -> tuple[Attribution, int]:
    with access.watch() as watch:
        found = assisted(recording, access.task).attribute(case)
    return found, watch.prompt_tokens + watch.completion_tokens


@pytest.mark.parametrize(
    ("hits", "error_type"), [(["m1", "m2"], "ResponseError"), (["m2"], "RetrievalError")], ids=["shown", "not shown"]
)
def test_the_model_sees_a_paraphrase_that_words_do_not(
    pets: Conversation,
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    hits: list[str],
    error_type: str,
) -> None:
    scripted_server.script = tells
    case, recording = unsure(pets, hits)
    found, tokens = attributed(case, recording, open_access())
    assert found.main is not None
    assert found.main.error_type == error_type
    assert tokens > 0
    whole = [one.value for one in recording.graph.variables.values() if one.kind == "message"]
    for request in scripted_server.requests:
        assert sum(text in request["messages"][-1]["content"] for text in whole) == 0


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "certainly!",
        '{"tells": "yes"}',
        '{"quote": "words that nobody said", "tells": true}',
        '{"quote": "", "tells": true}',
        Reply(status=400),
        Reply(raw=b"<html>"),
    ],
    ids=["empty", "prose", "malformed", "invented", "no quote", "refused", "garbage"],
)
def test_a_reply_of_no_use_leaves_the_verdict_of_the_words(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], reply: Reply | str
) -> None:
    scripted_server.script = lambda body: reply
    case, recording = unsure(pets, ["m1", "m2"])
    found, _ = attributed(case, recording, open_access(cache=False, retries=0))
    words = assisted_without_model(case, recording)
    assert scripted_server.requests
    assert found == words


def test_a_spent_budget_leaves_the_verdict_of_the_words(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = tells
    case, recording = unsure(pets, ["m1", "m2"])
    found, tokens = attributed(case, recording, open_access(Limits(calls=0)))
    assert (found, tokens) == (assisted_without_model(case, recording), 0)


def test_equal_probes_are_paid_once_and_sure_verdicts_not_at_all(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = tells
    access = open_access()
    case, recording = unsure(pets, ["m1", "m2"])
    first, tokens = attributed(case, recording, access)
    again, none = attributed(case, recording, access)
    assert first == again
    assert tokens > none == 0
    before = len(scripted_server.requests)
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:1", "D1:2"), "Ilya's gecko eats mashed papaya.")
        sure = memory.answer(pets.questions[0], ["m1"], "cabbage")
    found, _ = attributed(sure, Recording(memory.recorder.graph, pets, memory.operations), access)
    assert found.main is not None
    assert found.main.error_type == "ExtractionError"
    assert len(scripted_server.requests) == before


def test_a_quote_must_stand_in_the_text() -> None:
    text = "Mara keeps 12 ducks."
    assert opinion_of('Sure: {"quote": "keeps twelve ducks", "tells": true}', text) is True
    assert opinion_of('{"quote": "twelve geese", "tells": true}', text) is None
    assert opinion_of('{"tells": false}', text) is False
    assert opinion_of("[1, 2", text) is None


def assisted_without_model(case: Case, recording: Recording) -> Attribution:
    return Survival(recording.graph, recording.conversation, recording.operations).attribute(case)


def test_probes_end_when_their_time_is_over(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = lambda body: '{"quote": "", "tells": false}'
    case, recording = unsure(pets, ["m1", "m2", "m3", "m4"], *GREENS)
    now = iter(range(0, 1000, 10))
    probe = Probe(open_access(cache=False, retries=0).task, 15, lambda: float(next(now)))
    found = Survival(recording.graph, recording.conversation, recording.operations, review=probe.review).attribute(case)
    assert scripted_server.count == 1
    assert found == assisted_without_model(case, recording)


def test_probes_about_a_case_end_when_their_tokens_are_spent(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = lambda body: '{"quote": "", "tells": false}'
    case, recording = unsure(pets, ["m1", "m2", "m3", "m4"], *GREENS)
    access = open_access(cache=False)
    unlimited = Probe(access.task)
    assert unlimited.tokens == 2000
    counts = []
    for most in (100, 300, 2000):
        probe = Probe(access.task, tokens=most)
        survival = Survival(recording.graph, recording.conversation, recording.operations, review=probe.review)
        with access.watch() as watch:
            found = survival.attribute(case)
        assert watch.prompt_tokens + watch.completion_tokens <= most
        counts.append(probe.probes)
        if not probe.probes:
            assert found == assisted_without_model(case, recording)
    assert counts[0] == 0 < counts[1] < counts[2]


def test_a_case_has_the_same_verdict_again_and_its_explanation_is_of_that_verdict(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = tells
    case, recording = unsure(pets, ["m2", "m3", "m4"], *GREENS)
    for most in range(200, 1400, 100):
        probe = Probe(open_access(cache=False).task, tokens=most)
        survival = Survival(recording.graph, recording.conversation, recording.operations, review=probe.review)
        first, asked = survival.explain(case), probe.probes
        assert survival.explain(case) == first
        assert survival.attribute(case) == first.attribution
        assert probe.probes == asked, "nothing is asked again"


def test_a_verdict_and_its_explanation_are_one_review(
    pets: Conversation, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = lambda body: '{"quote": "", "tells": false}'
    case, recording = unsure(pets, ["m1", "m2", "m3", "m4"], *GREENS)
    now = iter(range(0, 1000, 10))
    probe = Probe(open_access(cache=False).task, 15, lambda: float(next(now)))
    Survival(recording.graph, recording.conversation, recording.operations, review=probe.review).explain(case)
    assert scripted_server.count == 1
