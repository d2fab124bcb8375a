from __future__ import annotations

import time
from dataclasses import replace

import pytest
from msgspec import structs
from scripted_memory import RAG, ScriptedMemory

from attribution.cases import Blame
from attribution.survival.survival_method import Survival, attribute
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Conversation, Question

FIRST = ("D1:1", "D1:2", "D1:3", "D1:4")
FOOD = "Mara's tortoise Brisket only comes out for radicchio."
CRATE = "Mara's tortoise sleeps in a wine crate."
SUITCASE = "Mara's tortoise now sleeps in an old suitcase."
CROUTON = "Mara will name her whippet pup Crouton."
FORGET = "Mara wants the name of her whippet forgotten."


def asked(conversation: Conversation, question: str) -> Question:
    return next(one for one in conversation.questions if one.id == question)


def said(blame: Blame) -> tuple[str, str]:
    return blame.operation, blame.error_type


# --- extraction ------------------------------------------------------------------------------------------------------


def test_what_was_never_extracted_is_the_extraction_of_its_turn(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:5", "D1:6"), CROUTON)
        memory.remember(("D1:1", "D1:2"), "Ilya's gecko only eats mashed papaya.")
        blame = memory.blame(memory.answer(asked(pets, "food"), ["m1", "m2"], "papaya"))
    assert said(blame) == ("extract_facts", "ExtractionError")
    read = memory.recorder.graph.operations[blame.operation_id or ""].input_ids("messages")
    assert "D1:1" in {memory.recorder.graph.variables[vid].name for vid in read}
    assert "D1:1" in blame.reason
    assert "radicchio" in blame.reason
    assert blame.confidence > 0.85


@pytest.mark.parametrize(
    "garbled",
    [
        "Ilya's tortoise Brisket only comes out for radicchio.",
        "Mara's tortoise Brisket only comes out for papaya.",
        "Likes radicchio.",
        "A tortoise only comes out for radicchio food.",
    ],
)
def test_a_garbled_fact_is_an_extraction_error_that_quotes_it(pets: Conversation, garbled: str) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(FIRST, garbled)
        blame = memory.blame(memory.answer(asked(pets, "food"), ["m1"], "papaya"))
    assert said(blame) == ("extract_facts", "ExtractionError")
    assert garbled in blame.reason


@pytest.mark.parametrize("kind", ["raised", "noted"])
def test_a_malformed_reply_is_named_as_the_cause(pets: Conversation, kind: str) -> None:
    with ScriptedMemory(pets) as memory:
        if kind == "raised":
            memory.extract(FIRST, [], raises=True)
        else:
            memory.extract(FIRST, [], malformed="the reply is no JSON object")
        blame = memory.blame(memory.answer(asked(pets, "food"), [], "unknown"))
    assert said(blame) == ("extract_facts", "UnusableReplyError")
    assert "could not be used: it was malformed" in blame.reason
    assert "no JSON object" in blame.reason


@pytest.mark.parametrize("reason", ["cut short", "refused", "filtered", "empty"])
@pytest.mark.parametrize("stage", ["extract", "answer"])
def test_a_reply_that_could_not_be_used_lost_nothing(pets: Conversation, reason: str, stage: str) -> None:
    with ScriptedMemory(pets) as memory:
        if stage == "extract":
            memory.extract(FIRST, [], unusable=reason)
            blame = memory.blame(memory.answer(asked(pets, "food"), [], "unknown"))
        else:
            memory.remember(FIRST, FOOD)
            blame = memory.blame(memory.answer(asked(pets, "food"), ["m1"], "", unusable=reason))
    assert said(blame) == ({"extract": "extract_facts"}.get(stage, stage), "UnusableReplyError")
    assert f"it was {reason}" in blame.reason
    assert "never extracted" not in blame.reason
    assert blame.confidence >= 0.9


def test_an_answer_that_was_cut_short_is_not_blamed_for_what_it_was_never_given(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.extract(FIRST, [])
        blame = memory.blame(memory.answer(asked(pets, "food"), [], "As far as I can tell the", unusable="cut short"))
    assert said(blame) == ("extract_facts", "ExtractionError")


# --- update ----------------------------------------------------------------------------------------------------------


def test_a_fact_the_decision_dropped_is_the_decisions_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:3",), CRATE)
        (fact,) = memory.extract(("D1:1", "D1:2"), [FOOD])
        memory.store(fact, "NONE", near=["m1"])
        blame = memory.blame(memory.answer(asked(pets, "food"), ["m1"], "unknown"))
    assert said(blame) == ("decide_update", "UpdateError")
    assert memory.executed(blame) == "decide_update"
    assert "NONE" in blame.reason


def test_an_entry_overwritten_by_another_matter_is_the_decisions_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:1", "D1:2"), FOOD)
        (fact,) = memory.extract(("D1:3", "D1:4"), [CRATE])
        memory.store(fact, "UPDATE", "m1", near=["m1"])
        blame = memory.blame(memory.answer(asked(pets, "food"), ["m1"], "wine"))
    assert said(blame) == ("decide_update", "UpdateError")
    assert FOOD in blame.reason
    assert CRATE in blame.reason


def test_a_decision_not_carried_out_is_the_stores_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:3",), CRATE)
        (fact,) = memory.extract(("D1:1", "D1:2"), [FOOD])
        memory.store(fact, "ADD", near=["m1"], do="NONE")
        blame = memory.blame(memory.answer(asked(pets, "food"), ["m1"], "unknown"))
    assert said(blame) == ("store", "UpdateError")
    assert memory.executed(blame) == "store"


@pytest.mark.parametrize(
    ("event", "target", "garbled"),
    [
        ("ADD", None, "Mara's tortoise now sleeps in a bread bin."),
        ("UPDATE", "m1", "Mara's tortoise now sleeps in a bread bin."),
        # Words of an entry that the decision was shown are no words for what is new.
        ("ADD", None, CRATE),
    ],
)
def test_a_text_stored_in_words_that_nobody_decided_is_the_stores_error(
    pets: Conversation, event: str, target: str | None, garbled: str
) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:3",), CRATE)
        (fact,) = memory.extract(("D2:1",), [SUITCASE])
        memory.store(fact, event, target, near=["m1"], write=garbled)
        blame = memory.blame(memory.answer(asked(pets, "bed"), [target or "m2"], "bread bin"))
    assert said(blame) == ("store", "UpdateError")


def test_a_wrongful_delete_is_a_deletion_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:1", "D1:2"), FOOD)
        (fact,) = memory.extract(("D1:5",), [CROUTON])
        memory.store(fact, "DELETE", "m1", near=["m1"])
        blame = memory.blame(memory.answer(asked(pets, "food"), [], "unknown"))
    assert said(blame) == ("decide_update", "DeletionError")


def test_a_superseded_value_kept_beside_the_new_one_is_an_update_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:3",), CRATE)
        (fact,) = memory.extract(("D2:1",), [SUITCASE])
        memory.store(fact, "ADD", near=["m1"])
        blame = memory.blame(memory.answer(asked(pets, "bed"), ["m1", "m2"], "wine crate"))
    assert said(blame) == ("decide_update", "UpdateError")
    assert "m1" in blame.reason


def test_a_decision_never_shown_the_old_entry_is_not_blamed_for_it(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:3",), CRATE)
        memory.remember(("D1:1", "D1:2"), FOOD)
        (fact,) = memory.extract(("D2:1",), [SUITCASE])
        memory.store(fact, "ADD", near=["m2"])
        both = memory.blame(memory.answer(asked(pets, "bed"), ["m1", "m3"], "wine crate"))
        old = memory.blame(memory.answer(asked(pets, "bed"), ["m1"], "wine crate"))
    # Nor is the storing, which did as decided: old and new are both there to be found and told apart.
    assert said(both) == ("answer", "ResponseError")
    assert said(old) == ("retrieve", "RetrievalError")


def test_a_new_value_retrieved_alone_and_ignored_is_the_answers_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:3",), CRATE)
        (fact,) = memory.extract(("D2:1",), [SUITCASE])
        memory.store(fact, "UPDATE", "m1", near=["m1"])
        blame = memory.blame(memory.answer(asked(pets, "bed"), ["m1"], "wine crate"))
    assert said(blame) == ("answer", "ResponseError")


# --- deletion --------------------------------------------------------------------------------------------------------


def test_a_retraction_not_acted_on_is_a_deletion_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:5",), CROUTON)
        (fact,) = memory.extract(("D2:2",), [FORGET])
        memory.store(fact, "ADD", near=["m1"])
        blame = memory.blame(memory.answer(asked(pets, "pup"), ["m1", "m2"], "Crouton"))
    assert said(blame) == ("decide_update", "DeletionError")
    assert "ADD" in blame.reason


def test_a_retraction_never_extracted_is_an_extraction_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:5",), CROUTON)
        memory.remember(("D2:1", "D2:2"), SUITCASE)
        blame = memory.blame(memory.answer(asked(pets, "pup"), ["m1"], "Crouton"))
    assert said(blame) == ("extract_facts", "ExtractionError")
    assert "D2:2" in blame.reason


def test_a_retraction_extracted_of_somebody_else_is_an_extraction_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:5",), CROUTON)
        memory.remember(("D2:2",), FORGET.replace("Mara", "Ilya"))
        blame = memory.blame(memory.answer(asked(pets, "pup"), ["m1"], "Crouton"))
    assert said(blame) == ("extract_facts", "ExtractionError")


@pytest.mark.parametrize(
    ("event", "hits", "expected"),
    [
        ("NONE", ["m1"], ("decide_update", "UpdateError")),
        ("ADD", ["m1"], ("retrieve", "RetrievalError")),
        ("ADD", ["m1", "m3"], ("answer", "ResponseError")),
    ],
    ids=["dropped", "kept and not found", "found and ignored"],
)
def test_a_retraction_decided_on_without_sight_of_the_entry_goes_on_beside_it(
    pets: Conversation, event: str, hits: list[str], expected: tuple[str, str]
) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:5",), CROUTON)
        memory.remember(("D1:1",), FOOD)
        (fact,) = memory.extract(("D2:2",), [FORGET])
        memory.store(fact, event, near=["m2"])
        blame = memory.blame(memory.answer(asked(pets, "pup"), hits, "Crouton"))
    assert said(blame) == expected


@pytest.mark.parametrize("withdrawal", ["", "Ilya: Scratch what I said about the whippet's name, forget it."])
def test_a_withdrawal_that_a_chunk_left_out_or_gave_to_another_is_the_chunks_error(
    pets: Conversation, withdrawal: str
) -> None:
    with ScriptedMemory(pets, RAG) as memory:
        memory.chunk((*FIRST, "D1:5"))
        memory.chunk(("D2:1", "D2:2"), f"Mara: My tortoise went off that, he sleeps in an old suitcase.\n{withdrawal}")
        blame = memory.blame(memory.answer(asked(pets, "pup"), ["m1"], "Crouton"))
    assert said(blame) == ("chunk", "ExtractionError")


def test_a_value_given_after_it_was_deleted_is_made_up_by_the_answer(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:1", "D1:5"), FOOD, CROUTON)
        (fact,) = memory.extract(("D2:2",), [FORGET])
        memory.store(fact, "DELETE", "m2", near=["m2"])
        for reply in ("Crouton", "radicchio"):
            blame = memory.blame(memory.answer(asked(pets, "pup"), ["m1"], reply))
            assert said(blame) == ("answer", "ResponseError")


def test_owning_not_to_know_in_other_words_is_a_matter_of_format(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:5",), CROUTON)
        blame = memory.blame(memory.answer(asked(pets, "pup"), ["m1"], "I don't know."))
    assert said(blame) == ("answer", "ResponseError")
    assert blame.reason.startswith("format")


# --- retrieval and answer --------------------------------------------------------------------------------------------


def test_what_is_stored_but_not_in_the_context_is_the_retrievals_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(FIRST, FOOD, "Ilya's gecko only eats mashed papaya.")
        case = memory.answer(asked(pets, "food"), ["m2"], "papaya")
        blame = memory.blame(case)
    assert said(blame) == ("retrieve", "RetrievalError")
    assert memory.recorder.graph.operations[blame.operation_id or ""].output_ids()
    assert "m1" in blame.reason


def test_what_is_in_the_context_but_answered_otherwise_is_the_answers_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(FIRST, FOOD, "Ilya's gecko only eats mashed papaya.")
        case = memory.answer(asked(pets, "food"), ["m1", "m2"], "papaya")
        blame = memory.blame(case)
    assert said(blame) == ("answer", "ResponseError")
    assert case.prediction in blame.evidence
    assert "D1:2" in blame.reason


def test_a_right_but_long_reply_is_a_matter_of_format(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(FIRST, FOOD)
        reply = "Judging by everything that I was told about it, the tortoise only ever comes out for radicchio."
        blame = memory.blame(memory.answer(asked(pets, "food"), ["m1"], reply))
    assert said(blame) == ("answer", "ResponseError")
    assert blame.reason.startswith("format")


@pytest.mark.parametrize(
    ("question", "hits", "reply", "expected"),
    [
        ("food", ["m1"], "papaya", ("answer", "ResponseError")),
        ("food", ["m2"], "papaya", ("retrieve", "RetrievalError")),
        ("bed", ["m1", "m2"], "wine crate", ("answer", "ResponseError")),
        ("bed", ["m1"], "wine crate", ("retrieve", "RetrievalError")),
        ("pup", ["m1", "m2"], "Crouton", ("answer", "ResponseError")),
        ("pup", ["m1"], "Crouton", ("retrieve", "RetrievalError")),
    ],
)
def test_a_system_that_only_cuts_and_finds_errs_in_finding_or_answering(
    pets: Conversation, question: str, hits: list[str], reply: str, expected: tuple[str, str]
) -> None:
    with ScriptedMemory(pets, RAG) as memory:
        memory.chunk((*FIRST, "D1:5"))
        memory.chunk(("D2:1", "D2:2"))
        assert said(memory.blame(memory.answer(asked(pets, question), hits, reply))) == expected


# --- beyond the system -----------------------------------------------------------------------------------------------


def test_a_gold_answer_that_nobody_said_is_the_annotations_error(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(FIRST, "Ilya's sister Agata is a farrier.")
        blame = memory.blame(memory.answer(asked(pets, "city"), ["m1"], "unknown"))
    assert said(blame) == ("annotation", "AnnotationError")


def test_nothing_is_said_where_the_trace_tells_too_little(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:5",), CROUTON)
        case = memory.answer(asked(pets, "food"), ["m1"], "Crouton")
    attribution = memory.attribute(case)
    assert not attribution.decisive
    assert "D1:1" in (attribution.abstained or "")


# --- evidence turns only ---------------------------------------------------------------------------------------------


def test_paraphrase_survives(trips: Conversation) -> None:
    with ScriptedMemory(trips) as memory:
        memory.remember(("D1:3",), "Caroline is researching an agency for adoption.")
        blame = memory.blame(memory.answer(asked(trips, "what"), ["m1"], "counselling"))
    assert said(blame) == ("answer", "ResponseError")


def test_a_relative_date_survives_as_the_words_that_tell_it(trips: Conversation) -> None:
    with ScriptedMemory(trips) as memory:
        memory.remember(("D1:1",), "Caroline went to a support group on the previous day.")
        kept = memory.blame(memory.answer(asked(trips, "when"), ["m1"], "8 May 2023"))
    with ScriptedMemory(trips) as memory:
        memory.remember(("D1:1",), "Caroline went to a support group.")
        lost = memory.blame(memory.answer(asked(trips, "when"), ["m1"], "8 May 2023"))
    assert said(kept) == ("answer", "ResponseError")
    assert said(lost) == ("extract_facts", "ExtractionError")


def test_of_an_answer_from_several_turns_the_lost_part_is_blamed(trips: Conversation) -> None:
    with ScriptedMemory(trips) as memory:
        memory.remember(("D1:1", "D1:2"), "Melanie camped at the beach with the kids.")
        (paint,) = memory.extract(("D1:3", "D1:4"), ["Melanie paints to calm down."])
        memory.store(paint)
        blame = memory.blame(memory.answer(asked(trips, "where"), ["m1"], "beach"))
    assert said(blame) == ("extract_facts", "ExtractionError")
    read = memory.recorder.graph.operations[blame.operation_id or ""].input_ids("messages")
    assert "D1:4" in {memory.recorder.graph.variables[vid].name for vid in read}


def test_what_the_reply_gives_was_not_lost(trips: Conversation) -> None:
    with ScriptedMemory(trips) as memory:
        memory.remember(("D1:1", "D1:2"), "Melanie camped.")
        memory.remember(("D1:3", "D1:4"), "Melanie camps in the mountains next time.")
        found = memory.attribute(memory.answer(asked(trips, "where"), ["m1"], "the beach"))
    assert [said(blame) for blame in found.decisive] == [("retrieve", "RetrievalError")]


def test_a_value_stored_among_much_else_without_its_subject_is_not_the_retrievals_error(trips: Conversation) -> None:
    with ScriptedMemory(trips) as memory:
        memory.remember(("D1:3",), "Caroline mentioned adoption agencies.")
        memory.remember(
            ("D1:4",), "Melanie finds painting restful, as she does her old garden bench by the quiet river."
        )
        blame = memory.blame(memory.answer(asked(trips, "free"), ["m1"], "adoption"))
    assert said(blame) == ("extract_facts", "ExtractionError")
    assert "does not name" in blame.reason


def test_without_annotated_evidence_the_turn_that_says_the_answer_is_followed(trips: Conversation) -> None:
    with ScriptedMemory(trips) as memory:
        memory.remember(("D1:3", "D1:4"), "Melanie paints to calm down.", "Caroline looks into adopting.")
        blame = memory.blame(memory.answer(asked(trips, "free"), ["m2"], "adopting"))
    assert said(blame) == ("retrieve", "RetrievalError")


# --- any verdict -----------------------------------------------------------------------------------------------------


def test_stages_count_and_not_names(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        (fact,) = memory.extract(("D1:1", "D1:2"), [FOOD])
        memory.store(fact, "NONE")
        case = memory.answer(asked(pets, "food"), [], "papaya")
    graph = memory.recorder.graph
    renamed = [structs.replace(operation, name=f"step of {operation.name}") for operation in graph.operations.values()]
    strange = ExecutionGraph(graph.variables.values(), renamed, graph.sessions.values())
    specs = [replace(spec, name=f"step of {spec.name}") for spec in memory.operations]
    (blame,) = attribute(case, strange, pets, specs).decisive
    assert said(blame) == ("step of decide_update", "UpdateError")


def test_a_case_takes_milliseconds(pets: Conversation) -> None:
    with ScriptedMemory(pets) as memory:
        for number in range(40):
            memory.remember(FIRST, FOOD, f"Ilya owns gecko number {number}.")
        case = memory.answer(asked(pets, "food"), ["m2"], "papaya")
    survival = Survival(memory.recorder.graph, pets, memory.operations)
    begun = time.process_time()
    for _ in range(20):
        survival.attribute(case)
    assert (time.process_time() - begun) / 20 < 0.02
