"""Systems that store what was said word for word: a turn survives unchanged and ascribed to who said it, or not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_memory import RAG, ScriptedMemory

from attribution.cases import Case
from attribution.judging.words import judge
from attribution.recordings import recording_of
from attribution.survival.survival_method import Survival, attribute
from attribution.text.utterances import repeated
from benchmarks.labelled_suites import load_suite
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable
from tracing.systems.conversations import Conversation, DialogueSession, NearMiss, Question, Turn

CONV_26 = Path(__file__).parents[3] / "shared" / "data" / "memeval" / "conv-26.json"
SAID = [
    ("Nell", "I had an ear operation, so my brother feeds the geese for now."),
    ("Odo", "Oh no! Rest well, and drink something warm."),
    ("Nell", "My sister stitched a badger on my satchel, and I keep fourteen buttons inside it."),
    ("Odo", "A badger, how sweet! Mine has a pike on it."),
]


@pytest.fixture
def satchels() -> Conversation:
    turns = tuple(Turn(id=f"D1:{at}", speaker=who, text=text) for at, (who, text) in enumerate(SAID, start=1))
    question = Question(
        id="stitched",
        question="What did Nell's sister stitch on her satchel?",
        answers=("badger",),
        evidence=("D1:3",),
        near_miss=NearMiss(turn="D1:4", value="pike"),
    )
    buttons = Question(
        id="buttons",
        question="How many buttons does Nell keep in the satchel?",
        answers=("fourteen",),
        evidence=("D1:3",),
    )
    session = DialogueSession(id="D1", time="2022-08-14 18:40", turns=turns)
    return Conversation(id="satchels", speakers=("Nell", "Odo"), sessions=(session,), questions=(question, buttons))


def blamed(conversation: Conversation, question: str, chunk: str, turns: tuple[str, ...] = ("D1:3", "D1:4")) -> str:
    """The error type for a wrong reply where this chunk was made of these turns and given to the answer."""
    with ScriptedMemory(conversation, RAG) as memory:
        memory.chunk(turns, chunk)
        asked = next(one for one in conversation.questions if one.id == question)
        return memory.blame(memory.answer(asked, ["m1"], "a hat")).error_type


def lines(*changed: tuple[str, str], stamp: str = "2022-08-14 18:40") -> str:
    text = "\n".join([stamp, *(f"{who}: {said}" for who, said in SAID[2:])])
    for old, new in changed:
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize(
    ("chunk", "error_type"),
    [
        (lines(), "ResponseError"),
        (lines(("Nell:", "Odo:")), "ExtractionError"),
        (lines(("stitched a badger", "stitched a heron")), "ExtractionError"),
        (lines(("Nell: My sister stitched a badger on my satchel", "Nell: My sister was here")), "ExtractionError"),
        ("Odo: A badger on the satchel, how sweet! Your sister's stitches are neat.", "ExtractionError"),
    ],
    ids=["kept", "given to another speaker", "changed although echoed", "cut off", "left out although echoed"],
)
def test_a_chunk_keeps_a_turn_in_its_words_and_with_its_speaker_or_lost_it(
    satchels: Conversation, chunk: str, error_type: str
) -> None:
    assert blamed(satchels, "stitched", chunk) == error_type


def test_the_number_of_a_time_stamp_is_no_answer(satchels: Conversation) -> None:
    assert blamed(satchels, "buttons", lines(("fourteen", "several"))) == "ExtractionError"


def test_a_turn_is_recognised_by_most_of_its_words_whatever_its_label_looks_like(satchels: Conversation) -> None:
    turn = satchels.sessions[0].turns[2]
    for label in ("Nell: ", "[2022-08-14] Nell said, ", "", "18:40 - Nell (to Odo): "):
        found = repeated(turn, f"Odo: Hello.\n{label}{turn.text}", satchels.speakers)
        assert found is not None
        assert (found.share, found.misascribed) == (1.0, False)
    assert repeated(turn, "Odo: Hello.\nOdo: Mine has a pike on it.", satchels.speakers) is None
    wrong = repeated(turn, f"Odo: Hello.\nOdo: {turn.text}", satchels.speakers)
    assert wrong is not None
    assert wrong.misascribed


@pytest.mark.skipif(not CONV_26.is_file(), reason="needs ../shared/data/memeval/conv-26.json")
@pytest.mark.parametrize(("given", "error_type"), [(True, "ResponseError"), (False, "RetrievalError")])
def test_a_cutter_that_loses_nothing_is_not_blamed_whatever_is_asked(given: bool, error_type: str) -> None:
    labelled = load_suite(CONV_26).cases
    conversation = labelled[0].recording.conversation
    chunk_of: dict[str, str] = {}
    with ScriptedMemory(conversation, RAG) as memory:
        for dialogue in conversation.sessions:
            for group in (dialogue.turns[at : at + 6] for at in range(0, len(dialogue.turns), 6)):
                ids = [turn.id for turn in group]
                memory.chunk(ids, "\n".join([dialogue.time, *(turn.spoken for turn in group)]))
                chunk_of.update(dict.fromkeys(ids, list(memory.entries)[-1]))
        cases = []
        for case in (one.case for one in labelled):
            question = case.question
            needed = list(dict.fromkeys(chunk_of[turn] for turn in question.evidence if turn in chunk_of))
            others = [name for name in memory.entries if name not in needed][:5]
            asked = memory.answer(question, [*(needed if given else ()), *others], case.reply)
            cases += [replace(asked, judgement=case.judgement)] if needed else []
    survival = Survival(memory.recorder.graph, conversation, RAG)
    types = Counter(main.error_type for case in cases if (main := survival.attribute(case).main))
    assert len(cases) > 70
    # A wrong form is the answer's error whatever it was given, and of two turns that tell it one may be annotated.
    # Of two gold answers the conversation says otherwise.
    assert types["AnnotationError"] <= 2
    assert types[error_type] >= len(cases) - types["AnnotationError"] - 1


def test_of_a_foreign_buffer_and_its_chunks_the_step_that_cut_the_turn_is_named(satchels: Conversation) -> None:
    question = satchels.questions[0]
    with trace() as recorder:
        buffer = variable("", name="buffer", kind="value")
        written = []
        for number, (who, said) in enumerate(SAID, start=1):
            message = variable(f"{who}: {said}", name=f"D1:{number}", kind="message")
            with operation("buffer_update", inputs={"message": message, "buffer": buffer}) as op:
                buffer = op.output("buffer", f"{buffer.value}\n{who}: {said}".strip(), name="buffer", previous=buffer)
            if number % 2 == 0:
                with operation("finalize_chunk", inputs={"buffer": buffer}) as op:
                    text = str(buffer.value).replace("stitched a badger on my satchel, and I", "I")
                    entry = op.output("chunk", text, name=f"m{number}", kind="memory_entry")
                    buffer = op.output("rest", "", name="buffer", previous=buffer)
                    written.append((op.id, entry))
        with session(question.id):
            query = variable(question.question, name=question.id, kind="query")
            with operation("search", inputs={"query": query, "entries": [entry for _, entry in written]}) as op:
                context = [op.output("context", entry.value, name=entry.name, kind="context") for _, entry in written]
            with operation("question-answering", inputs={"query": query, "context": context}) as op:
                prediction = op.output("prediction", "a pike", kind="prediction")
    recording = recording_of(recorder.graph, "foreign")
    case = Case("foreign", question, "a pike", judge("a pike", question.answers, "f1"), prediction.id)
    assert {spec.prompt for spec in recording.operations if spec.stage == "extract"} == {None}
    main = attribute(case, recording.graph, recording.conversation, recording.operations).main
    assert main is not None
    assert (main.operation_id, main.error_type) == (written[1][0], "ExtractionError")
