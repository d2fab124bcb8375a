"""Injected faults are aimed by annotation and lineage, and their cases keep their truth under every condition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from light_environment import make_light

from attribution.judging.words import judge
from benchmarks.attribution_suites import SCRIPTED_SETTINGS
from benchmarks.injected_faults.building_faults import CorruptedValue, CutShort, MergedAway, WrongPronoun
from benchmarks.injected_faults.faults import target_of
from benchmarks.injected_faults.foreign import as_foreign
from benchmarks.injected_faults.hard import CONDITIONS, FOREIGN, hardened
from benchmarks.injected_faults.injector import Injector
from benchmarks.injected_faults.missing_parts import MISSING_PARTS
from benchmarks.injected_faults.trail import ContentTrail, needed_by
from benchmarks.injected_faults.wordings import STYLES, Reworded, Wordings, style_of
from benchmarks.labelled_cases import LabelledCase
from benchmarks.scripted_model import ScriptedModel, serve
from experiments.data.loaders import load_dataset
from experiments.runs.config_file import load_config
from experiments.systems.fact_memory import FactMemory
from experiments.systems.worker import in_worker
from experiments.systems.worker.handle import close_pools
from experiments.systems.worker.isolated import environment_of
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.systems.conversations import Conversation, Question
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Step
from tracing.systems.registry import open_system

TALK = Conversation.model_validate(
    {
        "id": "talk",
        "speakers": ["Ana", "Ben"],
        "sessions": [
            {
                "id": "D1",
                "time": "2024-03-04 10:00",
                "turns": [
                    {"id": "D1:1", "speaker": "Ana", "text": "My sister Ida keeps eleven geese in Oslo."},
                    {"id": "D1:2", "speaker": "Ben", "text": "I was in Oslo too, with my nine ducks."},
                ],
            }
        ],
        "facts": [
            {"id": "f1", "turn": "D1:1", "text": "Ana's sister Ida keeps eleven geese."},
            {"id": "f2", "turn": "D1:2", "text": "Ben keeps nine ducks."},
        ],
        "questions": [
            {
                "id": "q1",
                "question": "How many geese does Ida keep?",
                "answers": ["eleven", "11"],
                "evidence": ["D1:1"],
                "fact": "f1",
                "near_miss": {"turn": "D1:2", "value": "nine"},
            }
        ],
    }
)
STEP = Step("extract_facts", "op1")


def message(turn: str) -> Variable:
    said = next(one for one in TALK.turns() if one.id == turn)
    return Variable(f"v{turn}", turn, "message", said.spoken)


@pytest.fixture
def question() -> Question:
    return TALK.questions[0]


@pytest.fixture
def trail(question: Question) -> ContentTrail:
    return ContentTrail(needed_by(question, Wordings.of(TALK)))


@pytest.mark.parametrize(
    ("turn", "statement", "carries"),
    [
        ("D1:1", "Ana's sister Ida keeps eleven geese.", True),
        ("D1:1", "There are 11 birds at Ida's.", True),  # a model's own words with an accepted answer
        ("D1:1", "Ida has a house in Oslo.", False),
        ("D1:2", "There are 11 birds at Ida's.", False),  # no lineage from the annotated turn
        ("D1:1", "Ana: My sister Ida keeps eleven geese in Oslo.", True),
        ("D1:1", "Ida keeps 110 geese.", False),
    ],
)
def test_a_statement_is_aimed_at_by_the_turn_it_was_made_of_and_the_annotated_words(
    trail: ContentTrail, turn: str, statement: str, carries: bool
) -> None:
    assert bool(trail.among([message(turn)], [statement])) is carries


def test_later_steps_are_followed_by_the_texts_that_earlier_ones_emitted(question: Question) -> None:
    fault = CorruptedValue(target_of(question, Wordings.of(TALK), seed=0))
    needed = fault.trails.needed
    own = "Ida has eleven birds."
    assert not needed.on(own)
    (spoilt,) = fault.extracted(STEP, [message("D1:1")], [own])
    assert spoilt != own
    assert needed.on(own)
    assert needed.on(f"(2024-03-04) {spoilt}")  # what is made of it, whatever it says now
    fault.decided(Step("decide", "op2"), own, [], Change("UPDATE", "m1", "Ida has geese and other birds."))
    assert needed.on("Ida has geese and other birds.")
    assert not needed.on("Ben keeps nine ducks.")
    assert fault.fired == ("op1",)


def test_a_spoilt_copy_does_not_hide_that_another_is_sound(question: Question) -> None:
    fault = CorruptedValue(target_of(question, Wordings.of(TALK), seed=0))
    query = Variable("v", "q1", "query", question.question)
    (spoilt,) = fault.extracted(STEP, [message("D1:1")], ["Ana's sister Ida keeps eleven geese."])
    fault.retrieved(Step("retrieve", "op2"), query, [Entry("m1", spoilt, (), "")], [])
    assert not fault.remains
    fault.answered(Step("answer", "op3"), query, [f"{spoilt} Ben keeps nine ducks."], "nine")
    assert not fault.remains
    cut = CutShort(target_of(question, Wordings.of(TALK), seed=0))
    cut.extracted(STEP, [message("D1:1")], ["Ana's sister Ida keeps eleven geese."])
    cut.answered(Step("answer", "op3"), query, ["Ana's sister Ida keeps eleven geese."], "six")
    assert cut.remains  # though it begins with what was cut
    both = f"{message('D1:1').value}\n{spoilt}"
    fault.retrieved(Step("retrieve", "op2"), query, [Entry("m2", both, (), "")], [])
    assert fault.remains


def test_a_fact_that_is_merged_away_leaves_its_matter_without_its_value(question: Question) -> None:
    fault = MergedAway(target_of(question, Wordings.of(TALK), seed=0))
    both = ["Ana's sister Ida keeps eleven geese.", "Ben keeps nine ducks."]
    assert fault.extracted(STEP, [message("D1:1")], both) == ["Ben keeps nine ducks, and Ana's sister Ida as well."]
    assert fault.extracted(STEP, [message("D1:1")], [f"{one.spoken}" for one in TALK.turns()]) == [
        one.spoken for one in TALK.turns()
    ]


def test_a_wrong_pronoun_gives_the_speaker_what_was_said_of_a_relative(question: Question) -> None:
    fault = WrongPronoun(target_of(question, Wordings.of(TALK), seed=0))
    assert fault.extracted(STEP, [message("D1:1")], ["Ana's sister Ida keeps eleven geese."]) == [
        "Ana keeps eleven geese."
    ]


@pytest.fixture(scope="module")
def conversations() -> list[Conversation]:
    return list(load_dataset(load_config(None)).splits.train[:4])


@pytest.fixture(scope="module")
def access(conversations: list[Conversation], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelAccess]:
    with (
        serve(ScriptedModel(conversations)) as roles,
        ModelAccess.open(roles, cache_dir=tmp_path_factory.mktemp("cache"), limits=Limits()) as opened,
    ):
        yield opened


def test_every_wording_keeps_an_accepted_answer_and_the_scripted_model_reads_it(
    conversations: list[Conversation],
) -> None:
    model, others = ScriptedModel(conversations), 0
    for conversation in conversations:
        wordings = Wordings.of(conversation)
        for one in conversation.questions:
            if one.fact is None or one.unanswerable:
                continue
            for text in wordings.of_fact[one.fact]:
                asked = f"Memories:\n- {text}\n\nQuestion: {one.question}\nAnswer in a few words:"
                assert judge(model.reply(asked, "{}"), one.answers).score == 1.0, text
                others += text != wordings.of_fact[one.fact][0]
    assert others > 40


def test_the_scripted_model_finds_the_episode_whose_facts_everos_and_evermemos_ask_for(
    conversations: list[Conversation],
) -> None:
    model = ScriptedModel(conversations)
    everos = '- EPISODE_TEXT: The memory.\n\nNow:\n- EPISODE_TEXT: "Ada said "x".\nBo left."\n- TIME: "May 2024"\n'
    for request in (everos, 'Text:\nAda said "x".\nBo left.'):
        reply = json.loads(model.reply(request, '{"atomic_fact": {}}'))["event_log"]
        assert reply == {"time": "unknown", "atomic_fact": ['Ada said "x".', "Bo left."]}


def test_the_styles_are_drawn_for_conversations_and_reword_annotated_facts_alone(
    conversations: list[Conversation],
) -> None:
    assert {style_of(one, seed) for one in conversations for seed in range(3)} == set(STYLES)
    facts = [fact.text for fact in TALK.facts]
    made = {style: Reworded(Wordings.of(TALK), style, 0).extracted(STEP, [], [*facts, "Else."]) for style in STYLES}
    assert made["as annotated"] == [*facts, "Else."]
    assert made["paraphrased"][-1] == "Else."
    assert set(made["paraphrased"]).isdisjoint(facts)


def injected(
    system: object, conversations: Sequence[Conversation], access: ModelAccess, count: int
) -> list[LabelledCase]:
    injector = Injector(system, access, lambda asked, reply: judge(reply, asked.answers), seed=1)  # type: ignore[arg-type]
    return injector.inject(conversations, count, lambda done, total: None).cases


@pytest.fixture(scope="module")
def cases(conversations: list[Conversation], access: ModelAccess) -> list[LabelledCase]:
    return injected(FactMemory(near=0.4), conversations, access, 40)


def test_missing_parts_leave_what_the_label_names(cases: list[LabelledCase]) -> None:
    for spoil in MISSING_PARTS.values():
        for labelled in cases:
            spoilt = spoil(labelled, 0)
            graph = spoilt.recording.graph
            assert set(labelled.operation_ids) <= set(graph.operations)
            assert labelled.case.prediction in graph.variables
            assert spoilt.case.question.answers == labelled.case.question.answers
    whole = cases[0].recording.graph
    fewer = MISSING_PARTS["operations missing"](cases[0], 0).recording.graph
    assert 0.4 < len(fewer.operations) / len(whole.operations) < 0.95
    cut = MISSING_PARTS["lineage missing"](cases[0], 0).recording.graph
    links = [sum(len(one.inputs) for one in graph.operations.values()) for graph in (cut, whole)]
    assert 0.5 < links[0] / links[1] < 0.95
    assert MISSING_PARTS["annotations missing"](cases[0], 0).case.question.evidence == ()


def test_a_foreign_trace_has_the_dialogue_and_labels_of_three_conventions(cases: list[LabelledCase]) -> None:
    alone = shared = updated = 0
    for labelled in cases:
        told = as_foreign(labelled, 0)
        assert told is not None
        assert told.error_type == labelled.error_type
        assert told.case.reply == labelled.case.reply
        assert told.case.question.evidence == labelled.case.question.evidence
        assert told.recording.conversation.facts == ()
        said = [(turn.speaker, turn.text) for turn in told.recording.conversation.turns()]
        assert sorted(said) == sorted((turn.speaker, turn.text) for turn in labelled.recording.conversation.turns())
        names = {told.recording.graph.operations[oid].name for oid in told.operation_ids}
        assert names.isdisjoint({"extract_facts", "decide_update", "store", "retrieve", "answer"})
        alone += len(told.operation_ids) == len(told.acceptable_op_ids) == 1
        shared += len(told.operation_ids) > 1
        updated += len(told.acceptable_op_ids) > len(told.operation_ids)
    assert min(alone, shared, updated) >= 2


def test_equal_seeds_make_equal_hard_cases(cases: list[LabelledCase]) -> None:
    first, again, other = (hardened(cases, seed) for seed in (0, 0, 1))
    assert [(one.condition, one.operation_ids) for one in first] == [
        (one.condition, one.operation_ids) for one in again
    ]
    assert [one.condition for one in first] != [one.condition for one in other]
    assert {one.condition for one in first} == set(CONDITIONS)
    assert FOREIGN in CONDITIONS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["long-context", "rag", "evermemos", "trace-memory"])
def test_faults_reach_every_stage_that_a_system_has_a_place_for(
    name: str, conversations: list[Conversation], access: ModelAccess
) -> None:
    system = open_system(name, SCRIPTED_SETTINGS.get(name, {}))
    found = injected(system, conversations[:2], access, 30)
    types = {labelled.error_type for labelled in found}
    stages = {spec.stage for spec in system.operations}
    assert {"ExtractionError", "ResponseError"} <= types
    assert ("RetrievalError" in types) == ("retrieve" in stages)


def test_faults_reach_a_system_in_a_worker(
    conversations: list[Conversation], access: ModelAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(tmp_path))
    apart = in_worker(requirements=())(FactMemory)
    environment = environment_of(apart)
    assert environment is not None
    make_light(environment)
    try:
        found = injected(apart(near=0.4), conversations[:1], access, 24)
    finally:
        close_pools()
    assert len({labelled.error_type for labelled in found}) >= 3
