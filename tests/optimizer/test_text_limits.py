"""No text of a run outgrows its limit, changes a pinned line, or gives a train conversation away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from memory_recordings import conversation
from scripted_server import ScriptedServer
from scripted_world import WeakModel, memory, world
from test_loop import BASELINE, Notes

from attribution.methods import survival
from experiments.data.loaders import load_dataset
from experiments.runs.config import RunConfig
from experiments.systems.everos.prompts import PROMPTS as EVEROS
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator
from optimizer.proposers.bank import INSTRUCTIONS
from optimizer.proposers.rewrites import Rewrite, admit
from optimizer.proposers.template import take_apart
from optimizer.proposers.text_limits import TextLimits, train_values
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings
from optimizer.tuning.tuning import Tuning
from tracing.errors import ConfigError, ContractError
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation

CUE = "Answer in a few words:"
TRAIN = [conversation("c", "Anke", "Bodo", "Zibbel", "ochre")]


KEY = "an-unusual-key-of-4711-letters"


def problems(text: str, limits: TextLimits | None = None, train: Sequence[Conversation] = TRAIN) -> list[str]:
    spec = (limits or TextLimits()).applied(FactMemory.prompts, train, [None, KEY])["answer"]
    (_, found), *_ = admit([Rewrite("answer", text, "anyone", "")], spec)[1] or [(None, [])]
    return found


def test_a_long_text_and_a_changed_pinned_line_are_refused_with_the_reason() -> None:
    baseline = BASELINE["answer"]
    assert problems(baseline, TextLimits(30, {"answer": [CUE]})) == []
    assert problems(baseline + " word" * 40, TextLimits(30)) == ["the text has about 66 tokens, at most 30 are allowed"]
    assert problems(baseline.replace(CUE, "Answer:"), TextLimits(None, {"answer": [CUE]})) == [
        f"the pinned line {CUE!r} is missing"
    ]
    # Whole demonstrations have room by default; a text without end has not.
    assert problems(f"{'A rule. ' * 400}\n{baseline}") == []
    assert any("tokens" in each for each in problems(f"{'A rule. ' * 800}\n{baseline}"))


def test_a_users_own_contract_keeps_its_limits_in_a_run() -> None:
    own = FactMemory.prompts["answer"]
    strict = replace(own, contract=replace(own.contract, max_tokens=40, pinned=("Memories:",)))
    for limits, most in ((TextLimits(), 40), (TextLimits(30, {"answer": [CUE]}), 30)):
        contract = limits.applied({"answer": strict}, TRAIN)["answer"].contract
        assert contract.max_tokens == most
        assert contract.pinned == ("Memories:", *limits.pinned.get("answer", ()))


def test_what_a_contract_refuses_stays_refused_in_a_run() -> None:
    spec = TextLimits().applied(EVEROS, TRAIN)["boundary_detection"]
    broken = spec.text.replace("{messages}", "{{{messages}}}")
    assert any("braces beside a placeholder" in said for said in spec.contract.violations(broken))


def test_values_of_train_are_refused_in_an_instruction_and_allowed_in_a_demonstration() -> None:
    baseline = BASELINE["answer"]
    assert problems(f"The parrot is called Zibbel.\n{baseline}") == ["'Zibbel' is a value of the train conversations"]
    assert problems(f"Think of Anke's lorry.\n{baseline}") == ["'Anke' is a value of the train conversations"]
    shown = take_apart(baseline).with_demonstrations(["Memories:\n- Anke's parrot is Zibbel.\n\nAnswer: Zibbel"]).text
    assert problems(shown) == []


def test_what_was_said_in_train_is_quoted_in_demonstrations_only() -> None:
    baseline, talk = BASELINE["answer"], TRAIN[0].model_dump(mode="json")
    said = "Our old harbour master hid seven silver teaspoons under a floorboard."
    talk["sessions"][0]["turns"][1]["text"] = said
    train = [Conversation.model_validate(talk)]
    quoted = ["'our old harbour master hid 7' is said in a train conversation"]
    assert problems(f"{said}\n{baseline}", train=train) == quoted
    assert problems(f"As we know: {said.upper()}\n{baseline}", train=train) == quoted
    assert problems(f"{said}\n{baseline}") == []
    assert problems(f"Silver teaspoons are not asked for.\n{baseline}", train=train) == []
    shown = take_apart(baseline).with_demonstrations([f"Memories:\n- {said}\n\nAnswer: seven"]).text
    assert problems(shown, train=train) == []


@pytest.mark.parametrize("leak", [KEY, KEY[:16], "sk-0123456789abcdef", "password=kolibri07"])
def test_a_credential_is_refused_wherever_it_stands(leak: str) -> None:
    baseline = BASELINE["answer"]
    wrong = ["a credential stands in the text"]
    assert problems(f"Use {leak} here.\n{baseline}") == wrong
    assert problems(take_apart(baseline).with_demonstrations([f"Memories:\n- {leak}\n\nAnswer: x"]).text) == wrong


@pytest.mark.slow
def test_what_the_baseline_says_and_common_words_are_no_secret() -> None:
    assert "Zibbel" not in train_values(TRAIN, "Reply like Zibbel.")
    train = load_dataset(RunConfig()).splits.train
    values = train_values(train, "\n".join(BASELINE.values()))
    assert len(values) > 100
    assert not {"Saturday", "two", "unknown"} & set(values)
    limited = TextLimits().applied(FactMemory.prompts, train)
    refused = {
        each.id
        for each in INSTRUCTIONS
        for name in BASELINE
        if any("train" in one for one in limited[name].contract.violations(f"{each.text}\n{BASELINE[name]}"))
    }
    assert refused == set()


@pytest.mark.parametrize("count", [1, 10])
def test_roles_of_speakers_are_free(count: int) -> None:
    train = [conversation(f"c{n}", "user", "assistant", f"Zibbel{n}", "ochre") for n in range(count)]
    assert problems(f"Help the user as their assistant.\n{BASELINE['answer']}", train=train) == []
    assert problems(f"The user has Zibbel0.\n{BASELINE['answer']}", train=train) != []


def test_a_speaker_of_many_conversations_gives_none_away() -> None:
    train = [conversation(f"c{n}", "Customer", f"Anke{n}", "Zibbel", "ochre") for n in range(3)]
    baseline = BASELINE["answer"]
    assert problems(f"Answer as the customer does.\n{baseline}", train=train) == []
    assert problems(f"Think of Anke1.\n{baseline}", train=train) == ["'Anke1' is a value of the train conversations"]


@pytest.mark.parametrize(
    ("name", "free", "leak"),
    [
        ("Will", "Write down what each speaker will do. Will the plan change?", "Write down what Will plans."),
        ("Mark", "- Mark every date.\n1. Mark names", "Will and Mark are friends."),
        ("Max", "Write at max four facts. Max. 20 words", "Ask what Max's dog is called."),
        ("Bill", "The bill is paid. Bill nothing.", "Bill is the father of two."),
        ("May", "It may be in May 2023. May it be?", "Say what May likes."),
        ("Rose", "Prices rose. (Rose bushes count)", "Keep what was told to Rose."),
        ("Grace", "A grace period; Grace counts", "Do not forget Grace."),
        ("Chance", "Leave nothing to chance. Chance counts", "Chance's dog is old."),
        ("Luna", "Anota la luna. Luna llena", "Write what Luna likes."),
        ("Milo", "Write milo for cocoa.", "Milo"),  # in no list: any capital counts
        ("Hope", "I hope so. HOPE IS A WORD.", "Hope has a sister."),
    ],
)
def test_a_name_that_is_a_common_word_counts_where_it_is_written_as_a_name(name: str, free: str, leak: str) -> None:
    train, baseline = [conversation("c", name, "Bodo", "Zibbel", "ochre")], BASELINE["answer"]
    assert problems(f"{free}\n{baseline}", train=train) == []
    assert problems(f"{leak}\n{baseline}", train=train) == [f"{name!r} is a value of the train conversations"]


def test_an_answer_that_is_a_name_and_a_common_word_is_no_exception() -> None:
    train, baseline = [conversation("c", "Anke", "Bodo", "Will", "ochre")], BASELINE["answer"]
    assert problems(f"Tell what each speaker will do.\n{baseline}", train=train) == []
    assert problems(f"The parrot is called Will.\n{baseline}", train=train) != []
    assert problems(f"It may be Ochre.\n{baseline}", train=train) == problems(
        f"It may be ochre.\n{baseline}", train=train
    )


def test_that_nothing_is_known_is_no_value() -> None:
    talk = TRAIN[0].model_dump(mode="json")
    denials = ["Not mentioned in the conversation", "Nobody revealed it"]
    talk["questions"][0] |= {"answers": denials, "unanswerable": True}
    rewrites = [f"Otherwise reply: {said}\n{BASELINE['answer']}" for said in denials]
    assert [problems(each, train=[Conversation.model_validate(talk)]) for each in rewrites] == [[], []]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (TextLimits(None, {"reply": ["x"]}), "prompts.pinned: there is no prompt 'reply'"),
        (
            TextLimits(None, {"bx": ["y"], "anser": ["x"]}),
            "prompts.pinned: there is no prompt 'anser', 'bx'; did you mean 'answer'?; known: ",
        ),
        (
            TextLimits(None, {"answer": ["Answer"]}),
            "prompts.pinned: 'Answer' is not a line of the baseline's prompt 'answer'",
        ),
        (TextLimits(5), "prompts.max_tokens: the baseline's prompt 'extract' has about"),
    ],
)
def test_limits_that_the_baseline_breaks_are_refused_with_the_key(limits: TextLimits, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        limits.check(FactMemory.prompts)
    assert expected in str(caught.value)


@pytest.fixture
def tuned(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path
) -> Callable[..., LoopResult]:
    def run(limits: TextLimits, **given: object) -> LoopResult:
        scripted_server.script = WeakModel("answer")
        access, system = open_access(None, retries=0, concurrency=1), memory()
        return optimize(
            evaluator=Evaluator(system, access, "short_contains", tmp_path / "memories"),
            splits=world(),
            baseline=BASELINE,
            settings=LoopSettings(rounds=1, proposals=4, limits=limits),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=Notes(lambda: 0),
            **{"optimizer": open_optimizer("closed-loop"), **given},  # type: ignore[arg-type]
        )

    return run


def test_every_rewrite_of_a_run_keeps_the_pinned_line(tuned: Callable[..., LoopResult]) -> None:
    free = [each.text for each in tuned(TextLimits()).rounds[0].rewrites]
    assert any(CUE not in text.splitlines() for text in free)
    pinned = [each.text for each in tuned(TextLimits(None, {"answer": [CUE]})).rounds[0].rewrites]
    assert pinned
    assert all(CUE in text.splitlines() for text in pinned)


def test_an_optimizer_that_does_not_look_is_refused_before_a_call(
    tuned: Callable[..., LoopResult], scripted_server: ScriptedServer
) -> None:
    asked: list[int] = []

    def careless(tuning: Tuning) -> str:
        asked.append(scripted_server.asked)
        with pytest.raises(ContractError, match="'Zibbeltrain0' is a value of the train conversations"):
            tuning.measure({**BASELINE, "answer": f"Say Zibbeltrain0.\n{BASELINE['answer']}"}, tuning.validation, "try")
        asked.append(scripted_server.asked)
        return "done"

    tuned(replace(TextLimits()), optimizer=careless)
    assert asked[0] == asked[1]
