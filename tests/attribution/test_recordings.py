"""A dialogue is read off the messages of a foreign graph, in whichever of the usual forms they are."""

from __future__ import annotations

import pytest

from attribution.recordings import conversation_of
from tracing.graph.elements import Variable
from tracing.graph.execution_graph import ExecutionGraph


@pytest.mark.parametrize(
    ("text", "speaker", "said", "time"),
    [
        ("Ann: It's at 10:30.\nTimestamp: 8 May, 2023", "Ann", "It's at 10:30.", "8 May, 2023"),
        (
            "Speaker Ann (role: user) says: Hi: all.\nTimestamp: 2023-05-08 13:56:00",
            "Ann",
            "Hi: all.",
            "2023-05-08 13:56:00",
        ),
        ("user: My dog says: woof", "user", "My dog says: woof", ""),
        ("Speaker: hello", "Speaker", "hello", ""),
        ("We left at 10:30", "", "We left at 10:30", ""),
    ],
)
def test_a_message_is_told_apart_into_speaker_text_and_time(text: str, speaker: str, said: str, time: str) -> None:
    graph = ExecutionGraph([Variable("v1", "D1:1", "message", text)])
    (session,) = conversation_of(graph, "talk").sessions
    (turn,) = session.turns
    assert (turn.speaker, turn.text, session.time) == (speaker, said, time)
