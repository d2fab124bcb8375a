"""Chunks hold the whole conversation in order, within their size, and never cross a session."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from scripted_server import ScriptedServer, prompt_of

from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.recording.recorder import trace
from tracing.systems.conversations import Conversation, Question
from tracing.systems.protocol import Memory
from tracing.systems.rag.system import Rag

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
