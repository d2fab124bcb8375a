"""What holds the right answer and whose it is, is not called absent for the other words of the question."""

from __future__ import annotations

import pytest
from scripted_memory import ScriptedMemory

from attribution.attributor import survival_in
from attribution.cases import Blame, Case
from attribution.judging.words import judge
from attribution.recordings import recording_of
from attribution.survival.calibration import DISPUTED
from attribution.text.stems import stem
from tracing import operation, trace, variable
from tracing.systems.conversations import Conversation, Question

MARA = "Mara: I live in Oslo."
OTHERS = ("Good morning, I had tea.", "The bus was late again.", "It rains a lot here.", "I like my new lamp.")


def blamed(said: str, fact: str, asked: str, answer: str, *, annotated: bool, batch: bool = False) -> Blame:
    """The blame where the fact was stored, and the retrieval gave another entry."""
    turns = [
        {"id": f"D1:{at}", "speaker": ("Mara", "Ilya")[at % 2], "text": text} for at, text in enumerate((said, *OTHERS))
    ]
    session = {"id": "D1", "time": "2024-05-01", "turns": turns}
    talk = Conversation.model_validate({"id": "mara", "speakers": ["Mara", "Ilya"], "sessions": [session]})
    question = Question(id="q", question=asked, answers=(answer,), evidence=("D1:0",) if annotated else ())
    with ScriptedMemory(talk) as memory:
        memory.remember(tuple(f"D1:{at}" for at in range(4 if batch else 1)), fact)
        memory.remember(("D1:4",), "Mara likes her new lamp.")
        return memory.blame(memory.answer(question, ["m2"], "I don't know"))


@pytest.mark.parametrize("annotated", [True, False])
@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize(
    ("said", "fact", "asked", "answer"),
    [
        ("I live in Oslo now.", "Mara lives in Oslo now.", "Where does Mara live?", "Oslo"),
        ("I moved to Oslo.", "Mara moved to Oslo.", "In which city does Mara live?", "Oslo"),
        ("I moved to Oslo.", "Mara moved to Oslo.", "In which city do I live?", "Oslo"),
        ("The train leaves from Bergen.", "Mara's train leaves from Bergen.", "Where did Mara leave from?", "Bergen"),
        ("I work as a nurse.", "Mara is a nurse.", "What does Mara do for a living?", "nurse"),
        ("Our dog is Rex.", "Mara has a pet named Rex.", "What is Mara's dog called?", "Rex"),
        ("Peanuts are bad for me.", "Mara: peanuts allergy", "What is Mara allergic to?", "peanuts"),
    ],
)
def test_a_stored_value_with_its_owner_is_what_retrieval_missed(
    said: str, fact: str, asked: str, answer: str, *, annotated: bool, batch: bool
) -> None:
    blame = blamed(said, fact, asked, answer, annotated=annotated, batch=batch)
    assert (blame.operation, blame.error_type) == ("retrieve", "RetrievalError")


def test_a_text_on_much_else_that_holds_value_and_owner_makes_the_loss_doubtful() -> None:
    said = "My grandmother gave me a silver necklace in Oslo, where I live, and sang old songs by the fire."
    fact = "Mara's grandmother gave her a silver necklace in Oslo and sang old songs by the fire."
    blame = blamed(said, fact, "In which city has Mara got her flat?", "Oslo", annotated=True)
    assert blame.error_type == "RetrievalError" or blame.confidence <= DISPUTED


def test_a_value_that_is_another_persons_is_still_absent() -> None:
    blame = blamed("I live in Oslo.", "Ilya lives in Oslo.", "Where does Mara live?", "Oslo", annotated=True)
    assert blame.error_type == "ExtractionError"
    assert blame.confidence > 0.5


@pytest.mark.parametrize(("one", "other"), [("lives", "live"), ("leaves", "leave"), ("left", "leaves")])
def test_a_verb_that_looks_like_a_plural_is_read_as_the_verb(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def answered_unknown(episode: str) -> Blame:
    """The blame where the answer was given this episode, and said that it does not know."""
    turns = [
        {"id": "D1:0", "speaker": "Mara", "text": "I live in Oslo."},
        {"id": "D1:1", "speaker": "Ilya", "text": "I like my new lamp."},
    ]
    session = {"id": "D1", "time": "2024-05-01", "turns": turns}
    talk = Conversation.model_validate({"id": "mara", "speakers": ["Mara", "Ilya"], "sessions": [session]})
    question = Question(id="q", question="Where does Mara live?", answers=("Oslo",), evidence=("D1:0",))
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:0", "D1:1"), episode)
        return memory.blame(memory.answer(question, ["m1"], "I don't know"))


def test_an_episode_that_gives_a_value_to_another_is_the_extractions_though_it_names_both() -> None:
    kept = answered_unknown("Ilya likes his new lamp. Mara is well. She lives in Oslo.")
    swapped = answered_unknown("Mara likes her new lamp. Ilya is well. He lives in Oslo.")
    assert (kept.error_type, swapped.error_type) == ("ResponseError", "ExtractionError")


def test_of_two_extractions_the_first_that_loses_whose_a_value_is_has_the_fault() -> None:
    question = Question(id="q", question="Where does Mara live?", answers=("Oslo",), evidence=("D1:1",))
    with trace() as recorder:
        said = [variable(text, name=f"D1:{at}", kind="message") for at, text in enumerate(("Ilya: Hi.", MARA))]
        told = "Ilya said hello to Mara. Ilya lives in Oslo."
        with operation("write_episode", inputs={"messages": said}) as op:
            episode = op.output("content", told, kind="fact")
        with operation("extract_facts", inputs={"episode": episode}) as op:
            fact = op.output("facts", "Ilya lives in Oslo.", kind="fact")
        entries = []
        for made in (episode, fact):
            with operation("store", inputs={"fact": made}) as op:
                entries.append(op.output("entry", made.value, name=f"m{len(entries)}", kind="memory_entry"))
        asked = variable(question.question, name="q", kind="query")
        with operation("retrieve", inputs={"query": asked, "entries": entries}) as op:
            found = op.output("context", told, name="m0", kind="context", entry=entries[0].id)
        with operation("answer", inputs={"query": asked, "context": found}) as op:
            reply = op.output("answer", "unknown", kind="prediction")
    case = Case("talk", question, "unknown", judge("unknown", question.answers), reply.id)
    blame = survival_in(recording_of(recorder.graph, "talk")).attribute(case).main
    assert blame is not None
    assert (blame.operation, blame.error_type) == ("write_episode", "ExtractionError")


def test_of_turns_that_say_the_same_of_their_speakers_that_of_the_one_asked_about_is_taken_for_the_evidence() -> None:
    turns = [
        {"id": "D1:0", "speaker": "Mara", "text": "I have lived in Oslo since the spring."},
        {"id": "D1:1", "speaker": "Ilya", "text": "I live in Oslo too."},
    ]
    session = {"id": "D1", "time": "2024-05-01", "turns": turns}
    talk = Conversation.model_validate({"id": "mara", "speakers": ["Mara", "Ilya"], "sessions": [session]})
    question = Question(id="q", question="Where does Mara live?", answers=("Oslo",))
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:0",), "Mara likes the spring.")
        memory.remember(("D1:1",), "Ilya lives in Oslo.")
        blame = memory.blame(memory.answer(question, ["m2"], "I don't know"))
        reader = memory.recorder.graph.operations[blame.operation_id or ""]
        read = [memory.recorder.graph.variables[vid].name for vid in reader.input_ids("messages")]
        assert (blame.error_type, read) == ("ExtractionError", ["D1:0"])
