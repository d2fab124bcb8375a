"""Wrong gold answers: survival blames the annotation where the conversation speaks against it, and only there."""

from __future__ import annotations

import pytest
from scripted_memory import RAG, ScriptedMemory

from attribution.cases import Blame
from attribution.gold_answers.answer_audit import Audit
from tracing.systems.conversations import Conversation, Question

FRIENDS = Conversation.model_validate(
    {
        "id": "friends",
        "speakers": ["Nadia", "Oskar"],
        "sessions": [
            {
                "id": "D1",
                "time": "2:10 pm on 4 March, 2023",
                "turns": [
                    {
                        "id": "D1:1",
                        "speaker": "Nadia",
                        "text": "I adopted a hedgehog yesterday and called him Biscuit.",
                    },
                    {"id": "D1:2", "speaker": "Oskar", "text": "Lovely! I repaired my grandmother's accordion."},
                    {"id": "D1:3", "speaker": "Nadia", "text": "Did it take long?"},
                    {"id": "D1:4", "speaker": "Oskar", "text": "Three weeks, and I learned to solder for it."},
                ],
            },
            {
                "id": "D2",
                "time": "7:00 pm on 18 June, 2023",
                "turns": [
                    {"id": "D2:1", "speaker": "Oskar", "text": "Last weekend I hiked along the river with my cousin."},
                    {"id": "D2:2", "speaker": "Nadia", "text": "Nice. I baked rye bread for the street festival."},
                    {"id": "D2:3", "speaker": "Oskar", "text": "Your rye bread is famous by now."},
                    {"id": "D2:4", "speaker": "Nadia", "text": "I also sold jars of plum jam there."},
                ],
            },
        ],
    }
)


def blame(question: str, gold: str, evidence: str, reply: str) -> Blame:
    """The verdict on a reply that was judged wrong, by a memory that found every turn."""
    asked = Question(id="q", question=question, answers=(gold,), evidence=tuple(evidence.split()))
    with ScriptedMemory(FRIENDS, RAG) as memory:
        for session in FRIENDS.sessions:
            memory.chunk([turn.id for turn in session.turns])
        found = memory.attribute(memory.answer(asked, ["m1", "m2"], reply))
    assert found.main is not None
    return found.main


@pytest.mark.parametrize(
    ("question", "gold", "evidence", "reply", "told"),
    [
        pytest.param(
            "Which animal did Nadia adopt?", "a chinchilla", "D1:1", "hedgehog", "nobody in the conversation says",
            id="nobody says it",
        ),
        pytest.param(
            "What did Nadia sell at the festival?", "plum jam, candles", "D2:4", "plum jam", "'candles'",
            id="nobody says one item of it",
        ),
        pytest.param(
            "What did Nadia repair?", "her grandmother's accordion", "D1:2", "not mentioned", "is what Oskar says",
            id="another speaker says it",
        ),
        pytest.param(
            "When did Nadia adopt the hedgehog?", "11 March 2023", "D1:1", "3 March 2023", "2023-03-03",
            id="the dated evidence gives another day",
        ),
        pytest.param(
            "How long did Oskar need for the accordion?", "five months", "D1:4", "three weeks", "21 days",
            id="the evidence gives another length",
        ),
        pytest.param(
            "What did Oskar do along the river with his cousin?", "learned to solder", "D1:4", "hiked", "D2:1",
            id="the cited turn is about another event",
        ),
        pytest.param(
            "What did Nadia bake for the street festival in Lisbon?", "rye bread", "D2:2", "not mentioned", "'Lisbon'",
            id="the premise is false",
        ),
        pytest.param(
            "What did Nadia bake for the street festival in May 2022?", "rye bread", "D2:2", "not mentioned",
            "2023-06-18", id="the premise names another time",
        ),
    ],
)  # fmt: skip
def test_a_gold_answer_that_the_conversation_speaks_against_is_the_annotations_error(
    question: str, gold: str, evidence: str, reply: str, told: str
) -> None:
    found = blame(question, gold, evidence, reply)
    assert (found.operation, found.error_type) == ("annotation", "AnnotationError")
    assert told in found.reason
    assert found.evidence, "the messages that speak against it"


@pytest.mark.parametrize(
    ("question", "gold", "evidence", "reply"),
    [
        pytest.param("Which animal did Nadia adopt?", "hedgehogs", "D1:1", "a cat", id="another form of the word"),
        pytest.param("Which animal did Nadia adopt?", "a hedghog", "D1:1", "a cat", id="a slip of the pen"),
        pytest.param("When did Nadia adopt the hedgehog?", "March 2023", "D1:1", "May 2023", id="a vaguer time"),
        pytest.param("When did Oskar hike?", "10 June 2023", "D2:1", "May 2023", id="a finer time"),
        pytest.param("When did Oskar hike?", "The week before 18 June 2023", "D2:1", "May", id="a time told otherwise"),
        pytest.param("How long did the repair take Oskar?", "21 days", "D1:4", "a year", id="another unit"),
        pytest.param("What is Nadia famous for?", "rye bread", "D2:3", "soup", id="told by the other, to the person"),
        pytest.param("Did Nadia repair the accordion?", "No", "D1:2", "unclear", id="no, for it was the other"),
        pytest.param("Nadia收养了什么动物？", "刺猬", "D1:1", "猫", id="told in another language"),
        pytest.param("Would Nadia enjoy a cooking class?", "Likely yes", "D2:2", "No", id="a conclusion"),
        pytest.param("What did Nadia sell?", "plum jam", "D2:2", "candles", id="only the citation is wrong"),
        pytest.param("What did Nadia bake for the fair?", "rye bread", "D2:2", "cake", id="the question's own word"),
        pytest.param("How long, as of May 2024, has Nadia had Biscuit?", "a year", "D1:1", "no", id="as of"),
        pytest.param("What did Nadia bake the Sunday after June 18, 2023?", "rye bread", "D2:2", "soup", id="a plan"),
    ],
)  # fmt: skip
def test_a_right_gold_answer_is_not_accused(question: str, gold: str, evidence: str, reply: str) -> None:
    assert blame(question, gold, evidence, reply).error_type != "AnnotationError"


BOAT = ("When did Mara paint the boat?", "May 2023", "June 2023")


@pytest.mark.parametrize(
    ("said", "asked", "gold", "reply"),
    [
        ("We're repainting the boat. I'm also singing at a wedding next month.", *BOAT),
        ("We're repainting the boat and I'm singing at a wedding next month!", *BOAT),
        ("Next month my sister gets married. We painted the boat, at last.", *BOAT),
        ("Wir streichen das Boot. Nächsten Monat singe ich auf einer Hochzeit.",
         "Wann hat Mara das Boot gestrichen?", "Mai 2023", "Juni 2023"),
        ("Estamos pintando el barco, y mi hermana se casa el próximo mes.",
         "¿Cuándo pintó Mara el barco?", "mayo de 2023", "junio de 2023"),
        ("We're repainting the boat; next month there's a wedding I'm singing at.", *BOAT),
        ("We're repainting the boat (and my sister's wedding is next month).", *BOAT),
        ("We're repainting the boat, the wedding is next month.", *BOAT),
        ("We're repainting the boat, and Tom flies to Rome next month.", *BOAT),
        ("I'm singing at a wedding next month, plus we're repainting the boat now.", *BOAT),
        ("We're repainting the boat before the wedding next month.", *BOAT),
        ("Wir streichen gerade das Boot, und Tom heiratet nächsten Monat.",
         "Wann hat Mara das Boot gestrichen?", "Mai 2023", "Juni 2023"),
        ("我们在刷船，下个月我姐姐结婚。", "Mara什么时候刷船？", "2023年5月", "2023年6月"),
    ],
)  # fmt: skip
def test_the_time_of_another_clause_is_not_that_of_the_event(said: str, asked: str, gold: str, reply: str) -> None:
    assert boat(said, asked, gold, reply).error_type == "ResponseError"


@pytest.mark.parametrize(
    "said",
    [
        "We painted the boat last month. I'm singing at a wedding soon.",
        "Last month, we painted the boat.",
        "We painted the boat! It was last month, what a mess.",
        "We painted the boat. Last month.",
        "We painted the boat and the fence last month.",
        "We painted the boat, finally, last month; the wedding is in July.",
    ],
)
def test_the_time_of_the_clause_that_tells_the_event_speaks_against_another(said: str) -> None:
    assert boat(said, BOAT[0], "January 2023", "April 2023").error_type == "AnnotationError"


def boat(said: str, asked: str, gold: str, reply: str) -> Blame:
    talk = [("Mara", said), ("Jan", "Das ist ja schön, ich bin nicht da." if "Boot" in said else "That is nice.")]
    turns = [{"id": f"D1:{at}", "speaker": name, "text": text} for at, (name, text) in enumerate(talk, 1)]
    session = {"id": "D1", "time": "10:00 am on 9 May, 2023", "turns": turns}
    conversation = Conversation.model_validate({"id": "c", "speakers": ["Mara", "Jan"], "sessions": [session]})
    question = Question(id="q", question=asked, answers=(gold,), evidence=("D1:1",))
    with ScriptedMemory(conversation, RAG) as memory:
        memory.chunk(["D1:1", "D1:2"])
        found = memory.attribute(memory.answer(question, ["m1"], reply))
    assert found.main is not None
    return found.main


def test_a_reply_that_the_conversation_supports_counts_against_the_gold_answer_too() -> None:
    asked = ("Which animal did Nadia adopt?", "a chinchilla", "D1:1")
    assert blame(*asked, "a hedgehog").confidence > blame(*asked, "a parrot").confidence


@pytest.mark.parametrize(
    ("question", "gold", "evidence", "reply", "accused"),
    [
        ("Which animal did Oskar adopt?", "a hedgehog", "D1:1", "It was Nadia.", True),
        ("Which animal did Nadia adopt?", "a hedgehog", "D1:1", "It was Oskar.", False),
        ("What did Nadia sell on 2 July 2023?", "plum jam", "D2:4", "It was on 18 June 2023.", True),
        ("What did Nadia sell on 18 June 2023?", "plum jam", "D2:4", "It was on 2 July 2023.", False),
    ],
)
def test_a_reply_that_corrects_the_person_or_the_time_of_a_question(
    question: str, gold: str, evidence: str, reply: str, accused: bool
) -> None:
    verdict = blame(question, gold, evidence, reply)
    assert (verdict.error_type == "AnnotationError") is accused
    assert not accused or reply in verdict.reason


def test_evidence_that_was_only_assumed_speaks_against_no_gold_answer() -> None:
    assert blame("What did Nadia repair?", "an accordion", "", "a clock").error_type != "AnnotationError"


@pytest.mark.parametrize(
    ("said", "asked", "gold", "sound"),
    [
        ("Auf dem Hof habe ich hundertfünfzig Schafe.", "Was hat Mara auf dem Hof?", "150 Schafe", True),
        ("Im Dezember 2022 bin ich umgezogen.", "Wann ist Mara umgezogen?", "11.12.2022", True),
        ("Vor drei Wochen war meine Ausstellung.", "Wann war Maras Ausstellung?", "August 2022", False),
    ],
)
def test_an_audit_reads_a_conversation_in_its_language(said: str, asked: str, gold: str, sound: bool) -> None:
    answer = "Das ist ja toll, ich war gestern im Kino und habe viel gelacht."
    turns = [{"id": "D1:1", "speaker": "Mara", "text": said}, {"id": "D1:2", "speaker": "Jan", "text": answer}]
    session = {"id": "D1", "time": "9. Mai 2023, 10:00", "turns": turns}
    question = Question(id="q", question=asked, answers=(gold,), evidence=("D1:1",))
    talk = Conversation.model_validate({"id": "c", "speakers": ["Mara", "Jan"], "sessions": [session]})
    assert (list(Audit(talk.model_copy(update={"questions": (question,)})).suspicions()) == []) is sound
