"""Settings are screened without a chat call, chosen end to end with the texts, and their gain is told from prompts'."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import LENGTHY, WeakModel, kind_of, world

from attribution.methods import survival
from experiments.systems.building_blocks.answering import QUOTING
from experiments.systems.fact_memory import FactMemory
from experiments.systems.rag import Rag
from optimizer.evaluation.evaluator import Evaluator, score_of
from optimizer.evaluation.scores import Settings
from optimizer.evaluation.variants import Variants
from optimizer.gating.verdict import NO_CHANGE
from optimizer.objectives.objectives import Golds
from optimizer.objectives.retrieval import Retrieval, retrieval_of
from optimizer.racing.study_storage import StudyJournal
from optimizer.search import retrieved_settings
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.search.retrieved_settings import Considered, considered_settings
from optimizer.search.settings_choice import racing_of
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings
from optimizer.tuning.round import Change, Ending, RoundLog
from tracing.llm.access import ModelAccess
from tracing.systems.protocol import MemorySystem

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
SPLITS = world(train=6, validation=4, test=6)


class Silent:
    """Nobody is told."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *told, **more: None


def far(*numbers: str) -> Callable[[str], Sequence[float]]:
    """Vectors under which a question is nearer to lorries than to parrots, except for parrots of other numbers."""

    def vector(text: str) -> Sequence[float]:
        if "weather is lovely" in text:
            return [0.0, 1.0]
        if "parrot is called" not in text:
            return [1.0, 0.0]
        return [0.6, 0.8] if text.split("'")[0].endswith(numbers) else [1.0, 0.0]

    return vector


EVERY = tuple("0123456789")


class Chatty(WeakModel):
    """Extracts the weather too, which nobody asks about and no question is near to."""

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        reply = super().__call__(body)
        if kind_of(body) != "extract" or "lovely weather" not in prompt_of(body):
            return reply
        return json.dumps({"facts": [*json.loads(str(reply))["facts"], "The weather is lovely."]})


def made(top_k: int = 1, **settings: Any) -> FactMemory:
    return FactMemory(near=2.0, top_k=top_k, **settings)


def variants_of(base: Evaluator, allowed: dict[str, Sequence[int]], made: Callable[..., Any] = made) -> Variants:
    def opened(settings: Settings) -> MemorySystem:
        return made(**settings)

    return Variants(base, allowed, opened)


Search = Callable[..., LoopResult]


@pytest.fixture
def search(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path) -> Search:
    def run(
        model: WeakModel,
        allowed: dict[str, Sequence[int]],
        *,
        optimizer: str = "local-search",
        made: Callable[..., Any] = made,
        **settings: Any,
    ) -> LoopResult:
        scripted_server.script = model
        access = open_access(retries=0)
        base = Evaluator(made(), access, "short_contains", tmp_path / "memories")
        return optimize(
            evaluator=base,
            splits=SPLITS,
            baseline={name: spec.text for name, spec in base.system.prompts.items()},
            settings=LoopSettings(**{"rounds": 1, **settings}),
            access=access,
            failures=Failures(survival, access, base.system.operations),
            observer=Silent(),  # type: ignore[arg-type]
            optimizer=open_optimizer(optimizer),
            variants=variants_of(base, allowed, made) if allowed else None,
        )

    return run


@pytest.fixture
def evaluator(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path) -> Evaluator:
    scripted_server.script = WeakModel()
    scripted_server.embed = far(*EVERY)
    return Evaluator(made(), open_access(), "short_contains", tmp_path / "memories")


def test_what_a_setting_retrieves_is_measured_on_recorded_memories_without_a_chat_call(
    evaluator: Evaluator, scripted_server: ScriptedServer
) -> None:
    evaluator.evaluate(BASELINE, SPLITS.train)
    known = variants_of(evaluator, {"top_k": [2, 9], "window": [1]})
    before = scripted_server.count
    found = {
        (name, value): retrieval_of(
            known.under({name: value}), evaluator, BASELINE, SPLITS.train, Golds(verbatim=False)
        )
        for name, value in (("top_k", 1), ("top_k", 2), ("top_k", 9), ("window", 1))
    }
    assert scripted_server.count == before
    one, two = found["top_k", 1], found["top_k", 2]
    assert one is not None
    assert two is not None
    # Of each conversation one fact is needed, the parrot's name, and the lorry is nearer.
    assert ((one.recall, one.needs), (two.recall, two.needs)) == ((0.0, 6), (1.0, 6))
    assert 0 < one.tokens < two.tokens
    # There is nothing more to retrieve, and a setting of the building changes nothing in what is built already.
    assert (found["top_k", 9], found["window", 1]) == (two, one)


def test_what_is_retrieved_is_worth_more_the_more_is_found_and_less_the_longer_it_is() -> None:
    few, same, more, whole = (
        Retrieval(*figures, needs=10, questions=5) for figures in ((0.5, 30), (0.5, 60), (0.7, 60), (0.75, 240))
    )
    assert sorted([few, same, more, whole], key=lambda retrieval: retrieval.worth) == [same, few, whole, more]
    assert few.covers(same)
    assert not any(retrieval.covers(other) for retrieval, other in ((same, few), (few, more), (more, few)))


@pytest.mark.parametrize(
    ("figures", "racing"),
    [
        (((0.97, 217), (1.0, 328), (0.93, 166), (0.86, 111), (0.82, 107)), (0, 3)),
        (((0.97, 217), (0.93, 166)), (0,)),
        (((1.0, 800), (0.9, 400), (0.8, 366)), (0, 2)),
        (((1.0, 800), (0.9, 400), (0.95, 600)), (0, 2)),
        (((1.0, 800),), (0,)),
        ((), ()),
    ],
)
def test_the_most_promising_settings_race_with_a_shorter_context(
    figures: Sequence[tuple[float, float]], racing: Sequence[int]
) -> None:
    own = Retrieval(0.9, 366, needs=10, questions=5)
    options = [Considered({"top_k": at}, Retrieval(*each, needs=10, questions=5)) for at, each in enumerate(figures)]
    assert [option.settings["top_k"] for option in racing_of(own, options)] == [*racing]


class OwnClient(FactMemory):
    """Answers without the access."""

    calls = 0

    def answer(self, memory: Any, question: Any, candidate: Any, access: Any) -> Any:
        type(self).calls += 1
        return super().answer(memory, question, candidate, _Answering(access))


class _Answering:
    def __init__(self, access: ModelAccess) -> None:
        self.embedding, self.task = access.embedding, self

    def chat(self, *given: Any, **more: Any) -> Any:
        return type("Said", (), {"text": "Zibbel"})


def test_a_system_with_a_client_of_its_own_is_not_run_on_to_measure_what_it_retrieves(evaluator: Evaluator) -> None:
    evaluator.evaluate(BASELINE, SPLITS.train)
    own = evaluator.of(OwnClient(near=2.0))
    assert retrieval_of(own, evaluator, BASELINE, SPLITS.train, Golds(verbatim=False)) is None
    assert OwnClient.calls == 1


class AsksFirst(FactMemory):
    """Has a model say what to look for."""

    def answer(self, memory: Any, question: Any, candidate: Any, access: Any) -> Any:
        access.task.chat([{"role": "user", "content": question.question}], max_tokens=8)
        return super().answer(memory, question, candidate, access)


class FailsAtTwo(FactMemory):
    """Cannot answer with two memories."""

    def answer(self, memory: Any, question: Any, candidate: Any, access: Any) -> Any:
        if self.settings["top_k"] == 2:
            raise ValueError("two is company")
        return super().answer(memory, question, candidate, access)


def test_of_a_system_that_fails_under_a_value_its_own_error_is_the_reason(evaluator: Evaluator) -> None:
    base = evaluator.of(FailsAtTwo(near=2.0))
    base.evaluate(BASELINE, SPLITS.train)
    known = variants_of(base, {"top_k": [2]}, made=FailsAtTwo)
    before, (failing,) = considered_settings(known, (BASELINE, known.own), SPLITS.train)
    assert before is not None
    assert str(failing.refused).startswith("the memory system failed in answer (")
    assert str(failing.refused).endswith("ValueError: two is company")


def test_where_nothing_can_be_measured_no_setting_is_tried_and_the_round_says_why(evaluator: Evaluator) -> None:
    evaluator.evaluate(BASELINE, SPLITS.train)
    unanswered = [
        conversation.model_copy(
            update={
                "questions": tuple(
                    question.model_copy(update={"answers": ("Xyzzy",), "evidence": ()})
                    for question in conversation.questions
                )
            }
        )
        for conversation in SPLITS.train
    ]
    own, asks_first = evaluator.of(OwnClient(near=2.0)), evaluator.of(AsksFirst(near=2.0))
    unseen = "what answers are given cannot be seen: the system asks a model before it retrieves or a client of its own"
    for base, conversations, reason in (
        (evaluator, unanswered, "no question names evidence turns and no turn states an answer, so nothing tells"),
        (own, SPLITS.train, unseen),
        (asks_first, SPLITS.train, unseen),
    ):
        known = variants_of(base, {"top_k": [2]}, made=type(base.system))
        before, considered = considered_settings(known, (BASELINE, known.own), conversations)
        assert before is None
        log = RoundLog(base.access.meter, lambda record: None)
        ending = Ending(BASELINE, score_of(evaluator.evaluate(BASELINE, SPLITS.validation)), {}, None, {})
        with log.recorded(1, lambda ending=ending: ending, after=0, optimizer=None) as this_round:
            this_round.settings += [option.not_tried() for option in considered]
        assert str(log.records[0].settings_sentence).startswith(f"settings are not chosen: {reason}")


def test_settings_are_compared_on_as_many_questions_as_are_enough(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator.evaluate(BASELINE, SPLITS.train)
    known = variants_of(evaluator, {"top_k": [2]})
    questions = len(SPLITS.train[0].questions)
    monkeypatch.setattr(retrieved_settings, "ENOUGH_QUESTIONS", questions + 1)
    (own, (two,)) = considered_settings(known, (BASELINE, known.own), SPLITS.train)
    assert own is not None
    assert two.retrieval is not None
    # Of each conversation one fact is needed.
    assert own.needs == two.retrieval.needs == 2


def test_a_memory_that_no_prompt_builds_is_built_under_the_setting(evaluator: Evaluator) -> None:
    texts = {"answer": Rag.prompts["answer"].text}
    small, large = (evaluator.of(Rag(chunk_tokens=size, top_k=1)) for size in (5, 200))
    found = [retrieval_of(each, large, texts, SPLITS.train, Golds(verbatim=True)) for each in (small, large)]
    assert None not in found
    assert found[0] != found[1]


def test_embedding_what_other_settings_store_takes_none_of_the_searchs_calls(evaluator: Evaluator) -> None:
    texts = {"answer": Rag.prompts["answer"].text}
    base = evaluator.of(Rag(chunk_tokens=200, top_k=1))
    known = variants_of(base, {"chunk_tokens": [5, 10]}, lambda **settings: Rag(**{"top_k": 1, **settings}))
    budget = evaluator.access.budget
    before = budget.spent.calls
    with budget.part("search.calls", 1):
        own, considered = considered_settings(known, (texts, {"chunk_tokens": 200}), SPLITS.train)
        assert own is not None
        assert all(option.retrieval for option in considered)
        assert budget.spent.calls > before + 1
        assert budget.remaining_calls() == (None, 1)


@pytest.mark.slow
def test_a_setting_that_helps_becomes_the_champions_and_prompts_alone_are_told_to_gain_nothing(
    search: Search, scripted_server: ScriptedServer
) -> None:
    scripted_server.embed = far(*EVERY)
    result = search(Chatty(), {"top_k": [2, 9], "window": [2]}, rounds=3)
    # With the new setting nothing is wrong, so there is no second round.
    (record,) = result.rounds
    assert (record.accepted, result.champion_candidate) == (True, BASELINE)
    assert {name: (each.before, each.after) for name, each in result.settings.items()} == {"top_k": (1, 2)}
    assert record.changed == result.settings
    assert {split: score.score for split, score in result.baseline.items()} == dict.fromkeys(
        ("train", "validation", "test"), 0.5
    )
    assert result.champion["test"].score == 1
    assert (result.verdict, result.delta, result.prompts_alone) == ("improved", 0.5, NO_CHANGE)
    assert result.settings_alone is not None
    assert (result.settings_alone.verdict, result.settings_alone.delta) == ("improved", 0.5)
    tried = {json.dumps(each.settings): each for each in record.settings}
    best = tried['{"top_k": 2}']
    assert (best.recall, best.prompts, best.gain, str(best.gate or "")[:8]) == (1.0, (), 0.5, "accepted")
    assert best.context_tokens is not None
    more = tried['{"top_k": 9}']
    assert (more.recall, (more.context_tokens or 0) > best.context_tokens, more.gain) == (1.0, True, None)
    assert str(more.gate or "").startswith("not tried: with top_k 2 as much is retrieved in no more tokens")
    assert len(tried) == len(record.settings)
    edit = record.edit
    assert edit is not None
    assert (edit.diffs, len(edit.broken)) == ({}, 0)
    assert {case.asked.split()[3] for case in edit.fixed} == {"parrot"}


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["local-search", "local-search,random"])
def test_whoever_approves_is_asked_about_settings_too_and_what_they_decline_is_not_changed(
    search: Search, scripted_server: ScriptedServer, optimizer: str
) -> None:
    scripted_server.embed = far(*EVERY)
    asked: list[tuple[Change, str]] = []

    def decline(change: Change, before: str) -> bool:
        asked.append((change, before))
        return False

    result = search(Chatty(), {"top_k": [2, 9], "window": [2]}, optimizer=optimizer, proposals=1, approve=decline)
    assert ("top_k 2", "top_k 1") in [(change.text, before) for change, before in asked]
    assert all(str(change.gate).startswith("accepted") for change, _ in asked)
    assert (result.settings, any(record.accepted for record in result.rounds)) == ({}, False)
    decided = result.rounds[0 if optimizer == "local-search" else -1]
    (noted,) = (each for each in decided.settings if each.gain is not None)
    assert str(noted.gate).startswith("declined by hand, though accepted")


def test_settings_that_the_system_does_not_take_together_are_not_tried_and_the_search_goes_on(
    search: Search, scripted_server: ScriptedServer
) -> None:
    scripted_server.embed = far("1", "3", "5")
    result = search(WeakModel("answer"), {"chunk_tokens": [5], "overlap": [8]}, made=Rag)
    tried = {json.dumps(each.settings): each for each in result.rounds[0].settings}
    refused = tried['{"chunk_tokens": 5, "overlap": 8}']
    assert (str(refused.gate), refused.gain, refused.recall) == (
        "not tried: system_settings.overlap: 8 does not fit chunks of 5 tokens; give 0 to 4",
        None,
        None,
    )
    assert '{"chunk_tokens": 5}' in tried


class Quoting(WeakModel):
    """Answers at length, but briefly after a marker."""

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        reply = super().__call__(body)
        if kind_of(body) != "answer":
            return reply
        return f"A line.\nANSWER: {reply}" if prompt_of(body).endswith(QUOTING) else LENGTHY.format(reply)


def test_a_setting_that_only_changes_replies_meets_whole_conversations_after_those_of_retrieval(
    search: Search, scripted_server: ScriptedServer
) -> None:
    scripted_server.embed = far("1", "3", "5")
    result = search(Quoting(), {"top_k": [2], "answer_form": ["quoted"]}, rounds=1, tune=())
    retrieved, replied = result.rounds
    assert {name for option in retrieved.settings for name in option.settings} == {"top_k"}
    assert (retrieved.accepted, replied.accepted) == (False, True)
    assert {name: change.after for name, change in result.settings.items()} == {"answer_form": "quoted"}
    assert str(replied.settings_sentence).startswith("answer_form quoted, tried on whole conversations: accepted: ")


class Together(FactMemory):
    """Finds the parrot with both settings only; each alone changes nothing."""

    def __init__(self, *, top_k: int = 1, spread: int = 0, more: int = 0) -> None:
        super().__init__(near=2.0, top_k=top_k)
        self.spread, self.more = spread, more

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "spread": self.spread, "more": self.more}

    def answer(self, memory: Any, question: Any, candidate: Any, access: Any) -> Any:
        found = FactMemory(near=2.0, top_k=2 if self.spread and self.more else 1)
        return found.answer(memory, question, candidate, access)


@pytest.mark.slow
def test_settings_that_retrieve_more_together_only_are_found(search: Search, scripted_server: ScriptedServer) -> None:
    scripted_server.embed = far(*EVERY)
    result = search(Chatty(), {"spread": [1], "more": [1]}, made=Together)
    (record,) = result.rounds
    assert {name: each.after for name, each in result.settings.items()} == {"spread": 1, "more": 1}
    tried = {json.dumps(each.settings): each for each in record.settings}
    assert tried['{"spread": 1, "more": 1}'].recall == 1
    assert result.delta == 0.5


@pytest.mark.slow
def test_of_many_settings_each_is_compared_alone(search: Search, scripted_server: ScriptedServer) -> None:
    scripted_server.embed = far(*EVERY)
    result = search(Chatty(), {"top_k": [2, 9], "window": [1, 2, 3], "compared": [1, 3, 4, 5]})
    (record,) = result.rounds
    measured = [each.settings for each in record.settings if each.recall is not None]
    assert measured
    assert all(len(each) == 1 for each in measured)
    assert {name: each.after for name, each in result.settings.items()}["top_k"] == 2


@pytest.mark.slow
def test_what_prompts_gain_is_measured_under_the_runs_own_settings(
    search: Search, scripted_server: ScriptedServer
) -> None:
    """The answers are too long, and in half of the conversations the parrot is not found either."""
    scripted_server.embed = far("1", "3", "5")
    result = search(WeakModel("answer"), {"top_k": [2]}, rounds=2)
    assert result.champion_candidate["answer"] != BASELINE["answer"]
    assert {name: each.after for name, each in result.settings.items()} == {"top_k": 2}
    assert result.delta == 0.5
    alone = result.prompts_alone
    assert alone is not None
    assert alone.delta == 0.25
    # What is found is of no use in an answer that is too long.
    assert result.settings_alone is not None
    assert result.settings_alone.delta == 0


def studies(file: Path) -> dict[str, list[dict[str, Any]]]:
    storage = JournalStorage(JournalFileBackend(str(file)))
    return {
        name: [
            {"params": each.params, "value": each.value, "steps": each.intermediate_values, "state": each.state.name}
            for each in optuna.load_study(study_name=name, storage=storage).trials
        ]
        for name in optuna.get_all_study_names(storage)
    }


@pytest.mark.slow
def test_the_joint_choice_is_an_optuna_study_with_a_trial_a_combination_and_the_same_again(
    search: Search, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.embed = far("1", "3", "5")
    first = search(WeakModel("answer"), {"top_k": [2]}, studies=StudyJournal(tmp_path / "first.log"))
    # Settings first, then texts under the run's own settings, then settings again, since another text was crowned.
    begun = [trials[0]["params"] for trials in studies(tmp_path / "first.log").values()]
    assert begun == [{"setting top_k": 1}, {"prompt answer": "champion"}, {"setting top_k": 1}]
    for trials in studies(tmp_path / "first.log").values():
        assert trials[0]["value"] == 0
        assert all(each["state"] == "COMPLETE" for each in trials)
        assert len({json.dumps(each["params"]) for each in trials}) == len(trials) > 1
        raced = trials[1:]
        assert all(sum(each["steps"].values()) / len(each["steps"]) == pytest.approx(each["value"]) for each in raced)
    before = scripted_server.asked
    again = search(WeakModel("answer"), {"top_k": [2]}, studies=StudyJournal(tmp_path / "second.log"))
    assert scripted_server.asked == before
    assert again.rounds[0].settings == first.rounds[0].settings
    assert studies(tmp_path / "second.log") == studies(tmp_path / "first.log")


@pytest.mark.slow
def test_where_no_setting_may_be_tuned_none_is_tried(
    search: Search, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.embed = far("1", "3", "5")
    result = search(WeakModel("answer"), {}, studies=StudyJournal(tmp_path / "study.log"))
    assert (result.settings, result.prompts_alone, result.rounds[0].settings) == ({}, None, ())
    assert all(set(each["params"]) == {"prompt answer"} for (each, *_) in studies(tmp_path / "study.log").values())


def test_a_search_without_recorded_inputs_tries_settings_first(search: Search, scripted_server: ScriptedServer) -> None:
    scripted_server.embed = far(*EVERY)
    (record,) = search(WeakModel(), {"top_k": [2]}, local_objectives=False).rounds
    assert (record.n, record.accepted, record.rewrites) == (1, True, ())


def test_settings_that_were_rejected_are_tried_again_with_a_new_text(
    search: Search, scripted_server: ScriptedServer
) -> None:
    """Where replies are too long to count, what is retrieved changes no score until the prompt is another one."""
    scripted_server.embed = far("3")
    result = search(WeakModel("answer"), {"top_k": [2]}, local_objectives=False)
    assert [(each.n, bool(each.settings), each.accepted) for each in result.rounds] == [
        (1, True, False),
        (2, False, True),
        (3, True, False),
    ]


@pytest.mark.parametrize("local_objectives", [True, False])
def test_settings_are_tuned_alone_where_no_prompt_may_be_rewritten(
    search: Search, scripted_server: ScriptedServer, *, local_objectives: bool
) -> None:
    scripted_server.embed = far(*EVERY)
    result = search(Chatty(), {"top_k": [2, 9]}, tune=(), local_objectives=local_objectives)
    (record,) = result.rounds
    assert (record.accepted, record.rewrites, record.edited) == (True, (), ())
    assert record.blame
    assert {name: each.after for name, each in result.settings.items()} == {"top_k": 2}
    assert (result.champion_candidate, result.verdict, result.delta) == (BASELINE, "improved", 0.5)
