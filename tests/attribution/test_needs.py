"""What must survive for an answer, and which texts carry it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scripted_memory import ScriptedMemory

from attribution.survival.needs import Need, needs_of
from attribution.survival.verdicts.mistakes import same_answer
from attribution.text.content import Vocabulary
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

SAID = [
    ("Ann", "I paint sunsets, I swim and I play the violin, which keeps me calm."),
    ("Ben", "Did you hike up the ridge?"),
    ("Ann", "We just did it! I never eat meat, by the way."),
    ("Ann", "I met Joe last Friday. Look what the kids made!"),
    ("Ben", "我的猫叫小黑，昨天去了上海。"),
    ("Ann", "I won my third race."),
]


@pytest.fixture
def talk() -> Conversation:
    turns = tuple(Turn(id=f"D1:{at}", speaker=who, text=text) for at, (who, text) in enumerate(SAID, start=1))
    session = DialogueSession(id="D1", time="1:56 pm on 8 May, 2023", turns=turns)
    return Conversation(id="talk", speakers=("Ann", "Ben"), sessions=(session,))


def asked(question: str, answer: str, turn: int) -> Question:
    return Question(id="q", question=question, answers=(answer,), evidence=(f"D1:{turn}",))


def needed(talk: Conversation, question: str, answer: str, turn: int) -> list[Need]:
    return needs_of(asked(question, answer, turn), talk, Vocabulary(turn.text for turn in talk.turns()))


def test_a_list_needs_every_item_and_a_clause_only_its_content(talk: Conversation) -> None:
    items = needed(talk, "What does Ann do?", "painting, swimming, chess", 1)
    assert [(need.label, need.basis) for need in items] == [
        ("painting", "stated"),
        ("swimming", "stated"),
        ("chess", "unstated"),
    ]
    (clause,) = needed(talk, "Why does Ann play?", "It keeps her calm, and she plays the violin", 1)
    assert clause.basis == "stated"


def test_a_reply_says_what_it_replies_to(talk: Conversation) -> None:
    (need,) = needed(talk, "Where did Ann go?", "a hike up the ridge", 3)
    assert need.turns == ("D1:3",)
    assert need.basis == "partly"


def test_what_is_in_no_words_is_told_from_what_is_concluded(talk: Conversation) -> None:
    assert [need.basis for need in needed(talk, "What did the kids make?", "a clay dog", 4)] == ["unstated"]
    assert [need.basis for need in needed(talk, "Would Ann like a steak?", "Likely no", 3)] == ["implied"]
    assert [need.basis for need in needed(talk, "How many races has Ann won?", "seven", 6)] == ["implied"]


@pytest.mark.parametrize(
    ("fact", "error_type"),
    [
        ("Ann met Joe on 5 May 2023.", "ResponseError"),
        ("Ann met Joe last Friday.", "ResponseError"),
        ("Ann met Joe on a Friday.", "ExtractionError"),
        ("Ann met Joe on 12 May 2023.", "ExtractionError"),
    ],
)
def test_a_time_survives_in_any_form_and_only_if_it_is_that_time(
    talk: Conversation, fact: str, error_type: str
) -> None:
    question = asked("When did Ann meet Joe?", "The Friday before 8 May 2023", 4)
    assert blamed(talk, question, fact, 4) == error_type


def test_a_relative_time_that_is_stored_but_not_found_is_the_retrievals_error(talk: Conversation) -> None:
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:4",), "Ann met Joe three days ago.")
        memory.remember(("D1:6",), "Ann won a race.")
        blame = memory.blame(memory.answer(asked("When did Ann meet Joe?", "5 May 2023", 4), ["m2"], "unknown"))
    assert blame.error_type == "RetrievalError"


@pytest.mark.parametrize(
    ("reply", "is_right"), [("It was her third race that she won.", True), ("She won 1-3 races.", False)]
)
def test_a_reply_of_several_numbers_is_not_the_right_one_in_another_form(
    talk: Conversation, reply: str, is_right: bool
) -> None:
    with ScriptedMemory(talk) as memory:
        memory.remember(("D1:6",), "Ann won a race.")
        question = asked("How many races has Ann won?", "3", 6)
        case = memory.answer(question, ["m1"], reply, "em")
        blame = memory.blame(replace(case, judgement=replace(case.judgement, contains=True)))
    assert (blame.error_type == "JudgeError") is is_right


def test_a_time_that_the_evidence_goes_on_about_is_told_by_the_turns_near_it(talk: Conversation) -> None:
    (need,) = needed(talk, "When did Ann eat with Joe?", "The Friday before 8 May 2023", 3)
    assert need.basis == "dated"
    assert need.turns == ("D1:4", "D1:3")


@pytest.mark.parametrize(
    ("fact", "error_type"),
    [
        ("Ann plays the violin.", "ResponseError"),
        ("Ann does not play the violin.", "ExtractionError"),
        ("Ann can't wait to play the violin.", "ResponseError"),
    ],
)
def test_a_denial_does_not_carry_what_it_denies(talk: Conversation, fact: str, error_type: str) -> None:
    assert blamed(talk, asked("Which instrument does Ann play?", "violin", 1), fact, 1) == error_type


@pytest.mark.parametrize(
    ("speaker", "said", "question", "answer", "fact", "error_type"),
    [
        ("Ann", "We have three kids, Tom, Lucy and Max.", "How many children does Ann have?", "3",
         "Ann has children named Tom, Lucy, and Max.", "ResponseError"),
        ("Ann", "We have three kids, Tom, Lucy and Max.", "How many children does Ann have?", "3",
         "Ann has children named Tom and Lucy.", "ExtractionError"),
        ("Ann", "I moved to Oslo two years ago.", "How long has Ann lived in Oslo?", "two years",
         "Ann moved to Oslo in 2021.", "ResponseError"),
        ("Ann", "I moved to Oslo two years ago.", "How long has Ann lived in Oslo?", "two years",
         "Ann moved to Oslo in 2012.", "ExtractionError"),
        ("小红", "我有三只猫。", "小红有几只猫？", "3只", "小红养了三只猫", "ResponseError"),
        ("小红", "我有三只猫。", "小红有几只猫？", "三只", "小红养了3只猫", "ResponseError"),
        ("小红", "我有三只猫。", "小红有几只猫？", "三只", "小红养了5只猫", "ExtractionError"),
        ("小红", "我昨天报名陶艺课。", "小红何时报名陶艺课？", "2023年5月7日", "小红5月7日报名陶艺课", "ResponseError"),
        ("小红", "我昨天报名陶艺课。", "小红何时报名陶艺课？", "2023年5月7日", "小红5月8日报名陶艺", "ExtractionError"),
        ("ハナ", "猫を二匹飼っています。", "ハナの猫は何匹ですか？", "2匹", "ハナは猫を2匹飼っている", "ResponseError"),
        ("ハナ", "お酒は飲みません。", "ハナはお酒を飲みますか？", "いいえ", "ハナはお酒を飲まない", "ResponseError"),
    ],
)  # fmt: skip
def test_a_number_or_time_survives_in_another_form_of_itself(
    speaker: str, said: str, question: str, answer: str, fact: str, error_type: str
) -> None:
    turns = (Turn(id="D1:1", speaker=speaker, text=said), Turn(id="D1:2", speaker="Ben", text="Oh!"))
    session = DialogueSession(id="D1", time="1:56 pm on 8 May, 2023", turns=turns)
    talk = Conversation(id="talk", speakers=(speaker, "Ben"), sessions=(session,))
    assert blamed(talk, asked(question, answer, 1), fact, 1) == error_type


@pytest.mark.parametrize(
    ("fact", "error_type"), [("Ben的猫叫小黑。", "ResponseError"), ("Ben有一只猫。", "ExtractionError")]
)
def test_chinese_is_followed_by_pairs_of_characters(talk: Conversation, fact: str, error_type: str) -> None:
    assert blamed(talk, asked("Ben的猫叫什么？", "小黑", 5), fact, 5) == error_type


def test_a_right_answer_in_other_words_is_the_judges_error(talk: Conversation) -> None:
    assert same_answer("on the 5th of May 2023", ["5 May 2023"], "What?")
    assert same_answer("She painted sunsets", ["painting a sunset"], "What?")
    assert not same_answer("She does not paint sunsets", ["painting a sunset"], "What?")
    assert not same_answer("6 May 2023", ["5 May 2023"], "What?")
    question = asked("When did Ann meet Joe?", "5 May 2023", 4)
    assert blamed(talk, question, "Ann met Joe.", 4, reply="2023-05-05") == "JudgeError"


def test_a_gold_answer_that_its_evidence_contradicts_is_the_annotations_error(talk: Conversation) -> None:
    question = asked("When did Ann meet Joe?", "March 2022", 4)
    assert blamed(talk, question, "Ann met Joe on 5 May 2023.", 4, reply="5 May 2023") == "AnnotationError"


def blamed(talk: Conversation, question: Question, fact: str, turn: int, reply: str = "unknown") -> str:
    with ScriptedMemory(talk) as memory:
        memory.remember((f"D1:{turn}",), fact)
        return memory.blame(memory.answer(question, ["m1"], reply, "em")).error_type
