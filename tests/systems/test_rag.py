"""Chunks hold the whole conversation in order, within their size, and never cross a session."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import ScriptedServer, prompt_of

from experiments.systems.building_blocks.answering import QUOTING
from experiments.systems.rag import Rag
from tracing.errors import ConfigError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import trace
from tracing.systems.conversations import Conversation, Question
from tracing.systems.protocol import Memory
from tracing.systems.registry import caveats_of, open_system

LONG = "This one remark alone is, all in all, a good deal longer than any chunk is to be."
TEXTS = [["One two three.", "Four five.", LONG, "Six."], ["Seven eight nine ten.", "Eleven."]]
CONVERSATION = Conversation.model_validate(
    {
        "id": "counting",
        "speakers": ["Aurel", "Birte"],
        "sessions": [
            {
                "id": f"D{number}",
                "time": f"2024-03-0{number} 10:00",
                "turns": [
                    {"id": f"D{number}:{place}", "speaker": "Aurel" if place % 2 else "Birte", "text": text}
                    for place, text in enumerate(texts, start=1)
                ],
            }
            for number, texts in enumerate(TEXTS, start=1)
        ],
    }
)
SESSIONS = [[f"{turn.speaker}: {turn.text}" for turn in session.turns] for session in CONVERSATION.sessions]


@pytest.fixture
def chunked(open_access: Callable[..., ModelAccess]) -> Callable[[int], tuple[list[list[str]], Memory, ExecutionGraph]]:
    """The conversation in chunks of a size: their lines, the memory and the graph."""

    def build(size: int) -> tuple[list[list[str]], Memory, ExecutionGraph]:
        with trace() as recorder:
            memory = Rag(chunk_tokens=size).build(CONVERSATION, {}, open_access())
        return [entry["text"].splitlines() for entry in memory.state["entries"]], memory, recorder.graph

    return build


@pytest.fixture
def told(open_access: Callable[..., ModelAccess]) -> Callable[..., list[str]]:
    """What a memory of some texts gives the answer, for a question under some settings."""

    def ask(texts: list[str], question: str, **settings: Any) -> list[str]:
        access, system = open_access(cache=False), Rag(**settings)
        candidate = {name: spec.text for name, spec in system.prompts.items()}
        with trace() as recorder:
            memory = system.with_entries(texts, access)
            system.answer(memory, Question(id="q", question=question, answers=("x",)), candidate, access)
        (answered,) = recorder.graph.find_operations(name="answer")
        return [str(recorder.graph.variables[vid].value) for vid in answered.input_ids("context")]

    return ask


@pytest.mark.parametrize(
    ("reply", "answer", "malformed"),
    [
        ("My lorry is ochre.\nANSWER: ochre", "ochre", None),
        ("They said 'Answer: no'. Answer:  ochre\n", "ochre", None),
        ("ochre", "ochre", "no answer follows ANSWER:"),
        ("My lorry is ochre.\nANSWER:", "My lorry is ochre.\nANSWER:", "no answer follows ANSWER:"),
    ],
)
def test_of_a_quoted_answer_what_follows_the_marker_counts_and_a_reply_without_one_is_counted(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer, reply: str, answer: str, malformed: str
) -> None:
    access, system = open_access(cache=False), Rag(retrieval="sparse", answer_form="quoted")
    scripted_server.script = lambda body: reply
    with trace() as recorder, access.watch():
        memory = system.with_entries(["My lorry is ochre."], access)
        question = Question(id="q", question="Which colour is the lorry?", answers=("ochre",))
        answered = system.answer(memory, question, {"answer": Rag.prompts["answer"].text}, access)
    (operation,) = recorder.graph.find_operations(name="answer")
    assert (answered.text, operation.attributes.get("malformed")) == (answer, malformed)
    assert access.meter.unusable() == ({"answer": {"malformed": 1}} if malformed else {})
    assert prompt_of(scripted_server.requests[-1]).endswith(QUOTING)


def test_what_followed_the_answer_prompt_is_told_with_the_results() -> None:
    (caveat,) = caveats_of("rag", {"answer_form": "quoted"}, embedded=False)
    assert QUOTING.strip() in caveat
    assert caveats_of("rag", {}, embedded=False) == []


def test_an_unknown_form_of_answers_is_refused() -> None:
    for name in ("rag", "fact-memory"):
        with pytest.raises(ConfigError, match=r"system_settings\.answer_form: unknown: 'quote'; did you mean 'quoted'"):
            open_system(name, {"answer_form": "quote"})


def tokens(line: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", line))


@pytest.mark.parametrize("size", [1, 6, 10, 11, 30, 200])
def test_chunks_hold_every_message_once_in_order_and_keep_their_size(
    chunked: Callable[[int], tuple[list[list[str]], Memory, ExecutionGraph]], size: int
) -> None:
    chunks, _, _ = chunked(size)
    assert [line for chunk in chunks for line in chunk[1:]] == [line for session in SESSIONS for line in session]
    for chunk in chunks:
        assert len(chunk) == 2 or sum(map(tokens, chunk[1:])) <= size


def test_a_chunk_is_filled_before_the_next_begins(
    chunked: Callable[[int], tuple[list[list[str]], Memory, ExecutionGraph]],
) -> None:
    one, two = tokens(SESSIONS[0][0]), tokens(SESSIONS[0][1])
    assert chunked(one + two)[0][0][1:] == SESSIONS[0][:2]
    assert chunked(one + two - 1)[0][0][1:] == SESSIONS[0][:1]


def test_a_chunk_never_crosses_a_session_and_begins_with_its_time(
    chunked: Callable[[int], tuple[list[list[str]], Memory, ExecutionGraph]],
) -> None:
    chunks, _, _ = chunked(10_000)
    assert chunks == [["2024-03-01 10:00", *SESSIONS[0]], ["2024-03-02 10:00", *SESSIONS[1]]]


def test_the_graph_tells_which_messages_a_chunk_was_made_of(
    chunked: Callable[[int], tuple[list[list[str]], Memory, ExecutionGraph]],
) -> None:
    chunks, memory, graph = chunked(11)
    for chunk, entry in zip(chunks, memory.state["entries"], strict=True):
        (made,) = graph.producers(entry["variable"])
        assert [graph.variables[vid].value for vid in made.input_ids("messages")] == chunk[1:]


def test_given_facts_are_chunked_by_session_too(open_access: Callable[..., ModelAccess]) -> None:
    memory = Rag(chunk_tokens=9).build_from_facts(
        [["One two.", "Three four.", "Five six seven."], ["Eight."]], {}, open_access()
    )
    assert [entry["text"] for entry in memory.state["entries"]] == [
        "One two.\nThree four.",
        "Five six seven.",
        "Eight.",
    ]


def test_the_answer_sees_the_nearest_chunks_first(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    access, system = open_access(), Rag(top_k=2)
    memory = system.with_entries(["The bus is late.", "Birte plays bassoon.", "Aurel plays chess in Ulm."], access)
    question = Question(id="q", question="What does Aurel play, chess? Birte plays", answers=("chess",))
    system.answer(memory, question, {"answer": "{context}|{question}"}, access)
    assert prompt_of(scripted_server.requests[-1]).partition("|")[0] == (
        "- Birte plays bassoon.\n- Aurel plays chess in Ulm."
    )


def test_by_default_the_requests_are_those_of_retrieval_by_embedding_alone(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    access, system = open_access(), Rag()
    assert list(system.prompts) == ["answer"]
    assert [each.name for each in system.operations] == ["chunk", "retrieve", "answer"]
    memory = system.build(CONVERSATION, {}, access)
    system.answer(memory, Question(id="q", question="Two?", answers=("x",)), {"answer": "{context}{question}"}, access)
    assert [body["input"] for body in scripted_server.embedding_requests] == [
        ["\n".join(["2024-03-01 10:00", *SESSIONS[0]])],
        ["\n".join(["2024-03-02 10:00", *SESSIONS[1]])],
        ["Two?"],
    ]
    assert scripted_server.count == 1


@pytest.mark.parametrize(("size", "overlap"), [(11, 6), (30, 8), (12, 11), (200, 50)])
def test_a_chunk_begins_with_the_end_of_the_one_before_it_within_the_overlap(
    open_access: Callable[..., ModelAccess], size: int, overlap: int
) -> None:
    memory = Rag(chunk_tokens=size, overlap=overlap).build(CONVERSATION, {}, open_access())
    chunks = [entry["text"].splitlines() for entry in memory.state["entries"]]
    new: dict[str, list[str]] = {}
    for time, *lines in chunks:
        seen = new.setdefault(time, [])
        shared = [line for line in lines if line in seen]
        assert lines[: len(shared)] == seen[len(seen) - len(shared) :]
        assert sum(map(tokens, shared)) <= overlap
        assert len(lines) > len(shared)
        assert len(lines) == 1 or sum(map(tokens, lines)) <= size
        seen += lines[len(shared) :]
    assert list(new.values()) == SESSIONS
    assert (size, overlap) != (30, 8) or chunks[1][1:2] == SESSIONS[0][1:2]


def test_words_find_what_embeddings_miss_and_both_find_both(
    told: Callable[..., list[str]], scripted_server: ScriptedServer
) -> None:
    texts = ["Aurel bought code QX-77 for the gate.", "Birte plays bassoon.", "The bus is late."]
    near = {texts[1]: [1.0, 0.0], "What was QX-77 bought for?": [1.0, 0.0]}
    scripted_server.embed = lambda text: near.get(text, [0.0, 1.0])
    asked = "What was QX-77 bought for?"
    assert told(texts, asked, top_k=1, retrieval="dense") == [texts[1]]
    assert told(texts, asked, top_k=1, retrieval="sparse") == [texts[0]]
    assert set(told(texts, asked, top_k=2, retrieval="hybrid")) == {texts[0], texts[1]}


def test_retrieval_by_words_embeds_nothing(told: Callable[..., list[str]], scripted_server: ScriptedServer) -> None:
    assert told(["Birte plays bassoon."], "Who plays?", retrieval="sparse") == ["Birte plays bassoon."]
    assert scripted_server.embedding_requests == []


def test_the_model_s_choice_comes_first_and_an_unusable_one_changes_nothing(
    told: Callable[..., list[str]], scripted_server: ScriptedServer
) -> None:
    texts = ["Birte plays bassoon and chess.", "Birte plays chess.", "Aurel plays bassoon."]
    asked = "Who plays bassoon and chess?"
    for reply, expected in {
        '{"best": ["3", "9", "3"]}': [texts[2], texts[0]],
        '{"best": []}': texts[:2],
        "the third": texts[:2],
        '{"best": 3}': texts[:2],
    }.items():
        scripted_server.script = lambda body, reply=reply: reply if "Passages:" in prompt_of(body) else "Birte"
        assert told(texts, asked, top_k=2, rerank=3, retrieval="sparse") == expected


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"retrieval": "bm25"}, "system_settings.retrieval: unknown: 'bm25'; choose one of dense, sparse, hybrid"),
        ({"chunk_tokens": 20, "overlap": 20}, "system_settings.overlap: 20 does not fit chunks of 20 tokens"),
        ({"overlap": -1}, "system_settings.overlap: -1"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        open_system("rag", settings)
