from __future__ import annotations

from attribution.gold_answers.transcript import Transcript
from tracing.systems.conversations import Conversation, DialogueSession, Turn

SPOKEN = ("I bought a camera for photography.", "Nice, a road trip!", "My roadtrip is over.", "I am a photographer.")


def talk(*spoken: str) -> Conversation:
    turns = tuple(Turn(id=f"D1:{at}", speaker="Mara", text=text) for at, text in enumerate(spoken, start=1))
    return Conversation(id="talk", speakers=("Mara",), sessions=(DialogueSession(id="D1", turns=turns),))


def test_the_past_of_a_transcript_says_what_was_said_by_then() -> None:
    whole = talk(*SPOKEN)
    for count in range(1, len(SPOKEN) + 1):
        session = whole.sessions[0].model_copy(update={"turns": whole.sessions[0].turns[:count]})
        past = Transcript(whole.model_copy(update={"sessions": (session,)}), Transcript(whole))
        alone = Transcript(talk(*SPOKEN[:count]))
        for word in ("photography", "photographer", "trip", "roadtrip", "camera", "tortoise"):
            assert past.where(word) == alone.where(word)
            assert past.weight(word) == alone.weight(word)


def test_what_is_no_past_of_a_transcript_has_an_index_of_its_own() -> None:
    later = Transcript(talk(*SPOKEN[2:]), Transcript(talk(*SPOKEN)))
    assert later.where("photographer") == {1}
    assert later.where("camera") == frozenset()
