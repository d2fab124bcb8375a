"""The picture of a failure shows as lost what its verdict blames, and nothing else, whatever the graph seems to say."""

from collections.abc import Callable
from typing import get_args

import pytest
from scripted_memory import FACT_MEMORY, RAG, ScriptedMemory

from attribution.cases import OUTSIDE_THE_SYSTEM, UNUSABLE_REPLY, Attribution, Blame, Case, ErrorType
from attribution.recordings import Recording
from attribution.survival.failure_picture import FailurePicture, StepName
from attribution.survival.survival_method import pictures_of
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Conversation

LOST_AT: dict[ErrorType, StepName] = {
    "ExtractionError": "extracted",
    "UpdateError": "in memory",
    "DeletionError": "in memory",
    "RetrievalError": "retrieved",
    "ResponseError": "reply",
    "AnnotationError": "needs",
    "JudgeError": "reply",
}
BED, FOOD = "Mara's tortoise sleeps in an old suitcase.", "Mara's tortoise only comes out for radicchio."


def all_of_it(memory: ScriptedMemory) -> Case:
    """What was needed reached the answer."""
    memory.remember(["D1:1"], FOOD)
    return memory.answer(question(memory, "food"), ["m1"], "papaya")


def nothing_of_it(memory: ScriptedMemory) -> Case:
    memory.remember(["D1:1"], "Mara has a tortoise.")
    return memory.answer(question(memory, "food"), ["m1"], "papaya")


def half_of_it(memory: ScriptedMemory) -> Case:
    """It was stored and not retrieved."""
    memory.remember(["D1:1"], FOOD)
    memory.remember(["D1:2"], "Ilya's gecko eats mashed papaya.")
    return memory.answer(question(memory, "food"), ["m2"], "papaya")


def question(memory: ScriptedMemory, qid: str):
    return next(one for one in memory.conversation.questions if one.id == qid)


def lost_in(picture: FailurePicture) -> list[StepName]:
    return [step.name for step, state in zip(picture.steps, picture.states, strict=True) if state == "lost"]


def picture(memory: ScriptedMemory, attribution: Attribution) -> FailurePicture:
    (drawn,) = pictures_of(Recording(memory.recorder.graph, memory.conversation, memory.operations), [attribution])
    assert drawn.steps, drawn.abstained
    return drawn


@pytest.mark.parametrize("went", [all_of_it, nothing_of_it, half_of_it])
@pytest.mark.parametrize("kind", get_args(ErrorType))
def test_the_step_of_every_error_type_is_lost_and_no_other(
    went: Callable[[ScriptedMemory], Case], kind: ErrorType, pets: Conversation
) -> None:
    with ScriptedMemory(pets) as memory:
        case = went(memory)
    names = {spec.name: step for spec, step in zip(FACT_MEMORY, STEPS, strict=True)} if kind == UNUSABLE_REPLY else {}
    for operation, lost in (names or {"any": LOST_AT.get(kind, "reply")}).items():
        ran = next((op.id for op in memory.recorder.graph.operations.values() if op.name == operation), None)
        evidence = tuple(vid for vid, one in memory.recorder.graph.variables.items() if one.kind != "query")
        blame = Blame(operation, ran, kind, 0.9, "because", evidence)
        shown = picture(memory, Attribution(case, (blame,)))
        assert lost_in(shown) == [lost]
        place = [step.name for step in shown.steps].index(lost)
        assert shown.steps[place].blames == (blame,)
        if kind not in OUTSIDE_THE_SYSTEM:
            assert set(shown.states[:place]) <= {"carried", "unseen"}
            assert set(shown.states[place + 1 :]) <= {"after"}


STEPS: tuple[StepName, ...] = ("extracted", "in memory", "in memory", "retrieved", "reply")


def test_what_went_through_is_shown_where_it_is(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(["D1:3"], "Mara's tortoise sleeps in a wine crate.")
        (fact,) = memory.extract(["D2:1"], [BED])
        memory.store(fact, "UPDATE", "m1", near=["m1"])
        memory.remember(["D1:2"], "Ilya's gecko eats mashed papaya.")
        case = memory.answer(question(memory, "bed"), ["m2"], "wine crate")
    shown = picture(memory, memory.attribute(case))
    assert str(shown) == (
        "needs ✓ → said ✓ → extracted ✓ → in memory ✓ → retrieved ✗ RetrievalError · retrieve → given – → reply –"
    )
    needs, said, extracted, stored, retrieved, *_ = shown.steps
    assert [text.text for text in needs.texts] == ["Where does Mara's tortoise sleep?", "old suitcase · suitcase"]
    assert [text.name for text in said.texts] == ["D2:1"]
    assert [text.text for text in extracted.texts] == [BED]
    assert [(text.name, text.version, text.text) for text in stored.texts] == [("m1", 2, BED)]
    assert [(text.carries, text.text) for text in retrieved.texts] == [(False, "Ilya's gecko eats mashed papaya.")]


def test_every_version_of_a_deleted_entry_is_shown(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(["D1:1"], FOOD)
        (fact,) = memory.extract(["D1:2"], ["Ilya's gecko eats mashed papaya."])
        memory.store(fact, "DELETE", "m1", near=["m1"])
        case = memory.answer(question(memory, "food"), [], "papaya")
    shown = picture(memory, memory.attribute(case))
    assert lost_in(shown) == ["in memory"]
    stored = next(step for step in shown.steps if step.name == "in memory")
    assert [(text.version, text.deleted, text.carries) for text in stored.texts] == [
        (1, False, False),
        (2, True, False),
    ]


def test_an_abstention_has_nothing_lost_and_a_missing_stage_no_step(pets: Conversation) -> None:
    with ScriptedMemory(pets, RAG) as memory:
        memory.chunk(["D1:1", "D1:2"])
        case = memory.answer(question(memory, "food"), ["m1"], "papaya")
    shown = picture(memory, Attribution(case, abstained="nobody knows"))
    assert str(shown) == "needs ✓ → said ✓ → extracted ✓ → retrieved ✓ → given ✓ → reply ?"
    assert shown.abstained == "nobody knows"
    # The line of the piece that says it, of several.
    given = next(step for step in shown.steps if step.name == "given")
    assert given.texts[0].text == "Mara: My tortoise, Brisket, only comes out for radicchio."


def test_a_graph_that_shows_no_answering_has_a_picture_and_one_that_cannot_be_read_says_why(
    pets: Conversation,
) -> None:
    with ScriptedMemory(pets) as memory:
        case = all_of_it(memory)
    blame = Blame("answer", None, "ResponseError", 0.9, "because")
    (bare,) = pictures_of(Recording(ExecutionGraph(), pets, FACT_MEMORY), [Attribution(case, (blame,))])
    assert lost_in(bare) == ["reply"]
    (broken,) = pictures_of(Recording(None, pets, FACT_MEMORY), [Attribution(case, (blame,))])  # type: ignore[arg-type]
    assert broken.steps == ()
    assert broken.abstained is not None
    assert broken.abstained.startswith("it cannot be drawn: ")
