"""Matchers: survival asks the one it is given, and each sees what it is for. The scripted server is the models."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from scripted_memory import ScriptedMemory
from scripted_server import ScriptedServer, vector_of

from attribution.attributor import open_attributor
from attribution.cases import Case
from attribution.conformance import MatcherConformance
from attribution.recordings import Recording
from attribution.survival.gold import Gold
from attribution.survival.matching.known_verdicts import known_pairs, known_replies
from attribution.survival.matching.matcher import Claim, Grade, Matcher, Passage, open_matcher
from attribution.survival.matching.model_matcher import MOST_ASKED, by_asking, margins_of
from attribution.survival.matching.word_matcher import WordMatcher, by_words
from attribution.survival.needs import Need
from attribution.survival.survival_method import Survival
from attribution.text.content import Vocabulary, content_of
from benchmarks.matching.contradictions import contrary, of_another, swapped, unreal
from benchmarks.matching.embedding_matcher import by_meaning
from optimizer.objectives.objectives import Golds
from tracing.errors import BudgetExceededError, ConfigError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.systems.conversations import Conversation, Question

Open = Callable[..., ModelAccess]
CRUNCHY = "Mara's reptile loves bitter red leaves."
GREENS = Question(
    id="greens", question="What greens does Mara's tortoise like?", answers=("chicory",), evidence=("D1:1",)
)
CHICORY = Need((content_of("chicory"),), ("D1:1",), "chicory", "unstated", unique=False)


class TestWords(MatcherConformance):
    def factory(self) -> Any:
        return by_words


class Everything:
    """Holds that every text carries everything."""

    def __init__(self, carries: bool) -> None:
        self.carries = carries

    def may_carry(self, claim: Claim, texts: Sequence[str]) -> Sequence[bool]:
        return [self.carries] * len(texts)

    def grades(self, claim: Claim, passages: Sequence[Passage]) -> Sequence[Grade]:
        grade = Grade(float(self.carries), "right", 1.0, True, self.carries)
        return [grade if passage.wording != "reply" else Grade(0.0, "right", 1.0, True, False) for passage in passages]


def recorded(pets: Conversation, *hits: str) -> tuple[Case, Recording]:
    with ScriptedMemory(pets) as memory:
        memory.remember(("D1:1", "D1:2"), CRUNCHY, "Ilya's gecko eats mashed papaya.")
        case = memory.answer(GREENS, list(hits), "cabbage")
    return case, Recording(memory.recorder.graph, pets, memory.operations)


def verdict(case: Case, recording: Recording, matcher: Matcher) -> str:
    method = Survival(recording.graph, recording.conversation, recording.operations, matcher=matcher)
    (blame,) = method.attribute(case).decisive
    return blame.error_type


@pytest.mark.parametrize(("carries", "blamed"), [(True, "ResponseError"), (False, "AnnotationError")])
def test_survival_goes_by_what_its_matcher_says(pets: Conversation, carries: bool, blamed: str) -> None:
    case, recording = recorded(pets, "m1", "m2")
    assert verdict(case, recording, Everything(carries)) == blamed


def test_repairs_and_local_objectives_go_by_their_matcher(pets: Conversation) -> None:
    vocabulary = Vocabulary(turn.text for turn in pets.turns())
    (asked,) = [one for one in pets.questions if one.id == "food"]
    for carries in (True, False):
        gold = Gold(asked, pets, vocabulary, verbatim=False, matcher=Everything(carries))
        assert gold.answered_by(["The bus was late."]) is carries
        golds = Golds(verbatim=False, matching=lambda _, carries=carries: Everything(carries))  # type: ignore[misc]
        assert golds.of(pets)[0].carries_any("The bus was late.") is carries


def meaningful(text: str) -> Sequence[float]:
    """Vectors of a model that knows which words mean the same."""
    for words, meant in (("bitter red leaves", "chicory chicory"), ("reptile", "tortoise"), ("loves", "like greens")):
        text = text.replace(words, meant)
    return vector_of(text)


@pytest.mark.parametrize(("hits", "blamed"), [(("m1", "m2"), "ResponseError"), (("m2",), "RetrievalError")])
def test_meaning_finds_a_paraphrase_that_words_do_not(
    pets: Conversation, open_access: Open, scripted_server: ScriptedServer, hits: tuple[str, ...], blamed: str
) -> None:
    scripted_server.embed = meaningful
    case, recording = recorded(pets, *hits)
    assert verdict(case, recording, by_words(pets)) == "AnnotationError"
    assert verdict(case, recording, by_meaning(pets, open_access())) == blamed
    assert scripted_server.requests == []


def test_meaning_refuses_what_has_the_words_and_says_something_else(
    pets: Conversation, open_access: Open, scripted_server: ScriptedServer
) -> None:
    asked = Question(id="q", question="Who sold Ilya the ducks?", answers=("Agata",), evidence=())
    claim = Claim(asked, Need((content_of("Agata"),), (), "Agata"))
    passages = [
        Passage("Agata sold Ilya the ducks.", traced=True),
        Passage("Ilya sold Agata the ducks.", traced=True),
        Passage("Agata plans to sell Ilya the ducks.", traced=True),
    ]
    words = WordMatcher(pets).grades(claim, passages)
    assert [grade.carries for grade in words] == [True, True, True]
    meaning = by_meaning(pets, open_access()).grades(claim, passages)
    assert [grade.carries for grade in meaning] == [True, False, False]


KNOWN = {json.dumps(pair.text, ensure_ascii=False): pair.carries for pair in known_pairs("en")}


def knowing(body: dict[str, Any]) -> str:
    text = body["messages"][-1]["content"].partition("Text: ")[2].partition("\n\nReply")[0]
    return json.dumps({"tells": KNOWN.get(text, "bitter red leaves" in text)})


def claims_asked(server: ScriptedServer) -> list[dict[str, Any]]:
    """The requests about texts, without those about the known pairs."""
    texts = [
        (body, json.dumps(body)) for body in server.requests if "tells" in json.dumps(body.get("response_format", ""))
    ]
    return [body for body, sent in texts if not any(json.dumps(known)[1:-1] in sent for known in KNOWN)]


@pytest.mark.parametrize(("hits", "blamed"), [(("m1", "m2"), "ResponseError"), (("m2",), "RetrievalError")])
def test_a_chat_model_as_matcher_decides(
    pets: Conversation, open_access: Open, scripted_server: ScriptedServer, hits: tuple[str, ...], blamed: str
) -> None:
    scripted_server.script = knowing
    case, recording = recorded(pets, *hits)
    access = open_access()
    factory = open_attributor("survival", matcher="llm")
    plain = Survival(recording.graph, recording.conversation, recording.operations).attribute(case)
    found = factory(recording, access).attribute(case)
    assert plain.main is not None
    assert found.main is not None
    assert (plain.main.error_type, found.main.error_type) == ("AnnotationError", blamed)
    asked = claims_asked(scripted_server)
    assert asked
    assert all(body["response_format"]["json_schema"]["schema"]["required"] == ["tells"] for body in asked)
    before = len(scripted_server.requests)
    assert factory(recording, access).attribute(case) == found
    assert len(scripted_server.requests) == before


def test_a_chat_model_is_asked_about_the_likeliest_texts_only(
    pets: Conversation, open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = knowing
    passages = [Passage(f"Mara's tortoise likes chicory number {number}.") for number in range(3 * MOST_ASKED)]
    grades = by_asking(pets, open_access()).grades(Claim(GREENS, CHICORY), passages)
    assert len(claims_asked(scripted_server)) == MOST_ASKED
    assert not any(grade.carries for grade in grades)


def test_a_reply_that_is_not_yes_or_no_leaves_it_to_the_words(
    pets: Conversation, open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: "perhaps"
    passages = [Passage("Mara's tortoise likes chicory."), Passage("The bus was late.")]
    grades = by_asking(pets, open_access(retries=0)).grades(Claim(GREENS, CHICORY), passages)
    assert grades == by_words(pets).grades(Claim(GREENS, CHICORY), passages)


@pytest.mark.parametrize("always", [True, False])
def test_a_model_that_says_the_same_of_every_text_is_not_believed(
    pets: Conversation,
    open_access: Open,
    scripted_server: ScriptedServer,
    caplog: pytest.LogCaptureFixture,
    always: bool,
) -> None:
    scripted_server.script = lambda body: json.dumps({"tells": always})
    passages = [Passage(text) for text in ("Mara's tortoise likes chicory.", "The bus was late.")]
    access = open_access()
    grades = by_asking(pets, access).grades(Claim(GREENS, CHICORY), passages)
    assert grades == by_words(pets).grades(Claim(GREENS, CHICORY), passages)
    tried = len(scripted_server.requests)
    assert tried == len(known_pairs("en"))
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "the model scripted cannot tell whether a text tells an answer, where that is known"
    ]
    by_asking(pets, access).grades(Claim(GREENS, CHICORY), passages)
    assert len(scripted_server.requests) == tried


@pytest.mark.parametrize(
    ("leniency", "said"),
    [(0.0, (True, False)), (0.01, (True, False)), (0.03, (None, False)), (0.2, (None, False)), (1.0, (None, None))],
)
def test_a_judge_has_a_say_as_far_as_it_is_right_where_that_is_known(
    pets: Conversation,
    open_access: Open,
    scripted_server: ScriptedServer,
    leniency: float,
    said: tuple[bool | None, bool | None],
) -> None:
    """`leniency` is the share of wrong replies that it calls right, besides all right ones."""
    twins = known_replies()
    pardoned = [each.wrong for each in twins[: round(leniency * len(twins))]]
    right = {
        json.dumps(each, ensure_ascii=False) for each in (*pardoned, *(twin.right for twin in twins), "Yes, red leaves")
    }

    def grading(body: dict[str, Any]) -> str:
        given = body["messages"][-1]["content"].partition("Answer to grade: ")[2].partition("\n")[0]
        return json.dumps({"reason": "", "label": "right" if given in right else "wrong"})

    scripted_server.script = grading
    judge = by_asking(pets, open_access())
    assert (judge.right(GREENS, "Yes, red leaves"), judge.right(GREENS, "No")) == said
    asked = len(scripted_server.requests)
    judge.right(GREENS, "Red leaves, I think")
    assert len(scripted_server.requests) == asked + (said != (None, None))


def test_margins_leave_hardly_a_known_reply_misjudged_and_meet_where_all_are_told_apart() -> None:
    apart = margins_of([2.0] * 99, [-2.0] * 99)
    assert apart == (0.0, 0.0)
    mixed = margins_of([-1.0] * 33 + [1.0] * 33 + [3.0] * 33, [-3.0] * 33 + [-2.0] * 33 + [2.0] * 33)
    assert [mixed.verdict(each) for each in (2.5, 2.0, 0.0, -1.0, -2.5)] == [None, None, None, None, False]
    once = margins_of([1.0] * 98 + [-5.0], [-1.0] * 98 + [5.0])
    assert once == (0.0, 0.0)


def test_of_few_replies_none_tells_how_seldom_a_margin_is_exceeded() -> None:
    # Of 48 margins in random order the last is the greatest once in 48 times, which is more than 2 %.
    assert margins_of([1.0] * 48, [-1.0] * 48) == (math.inf, -math.inf)
    assert margins_of([1.0] * 49, [-1.0] * 49) == (0.0, 0.0)


def test_a_budget_ends_the_asking(pets: Conversation, open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.script = knowing
    case, recording = recorded(pets, "m1", "m2")
    method = open_attributor("survival", matcher="llm")(recording, open_access(limits=Limits(calls=1)))
    with pytest.raises(BudgetExceededError):
        method.attribute(case)


def test_a_method_without_a_matcher_and_an_unknown_matcher_are_refused() -> None:
    with pytest.raises(ConfigError, match="asks no matcher"):
        open_attributor("asking_method:ASKING", matcher="llm")
    with pytest.raises(ConfigError, match="matcher: unknown: 'sense'; choose one of words, llm"):
        open_matcher("sense")


@pytest.mark.parametrize(
    ("statement", "text", "how"),
    [
        ("Does Ana like the sea? She loves it", "Ana hates the sea.", "opposed"),
        ("Mag Uwe Hunde? Er liebt sie", "Uwe kann Hunde nicht leiden.", "opposed"),
        ("¿Qué hizo Luis con la oferta? La aceptó", "Luis rechazó la oferta.", "opposed"),
        ("Comment va Zoé ? Elle est guérie", "Zoé est malade.", "opposed"),
        ("Did Ana lose? She lost", "Ana did not win.", None),
        ("Does Ana smoke? Yes", "Ana doesn't smoke.", "denied"),
        ("What does Ana's brother sell? Fish", "Ana's sister sells fish.", "opposed"),
        ("Where does Ana live? In Rome", "Ana lives in Rome.", None),
    ],
)
def test_the_contrary_is_an_opposite_not_denied_or_a_denial(statement: str, text: str, how: str | None) -> None:
    assert contrary(statement, text) == how


def test_plans_and_relatives_are_not_the_fact() -> None:
    assert unreal("Where does Ana live? In Rome", "Ana used to live in Rome.")
    assert not unreal("Where does Ana plan to live? In Rome", "Ana lives in Rome.")
    assert of_another("What does Ana play? The flute", "Ana's cousin plays the flute.")
    assert not of_another("What does Ana's cousin play? The flute", "Ana's cousin plays the flute.")


@pytest.mark.parametrize(
    ("question", "answer", "text", "exchanged"),
    [
        ("Who taught Bo to ski?", "Cy", "Bo taught Cy to ski.", True),
        ("Who taught Bo to ski?", "Cy", "Cy taught Bo to ski.", False),
        ("Who taught Bo to ski?", "Cy", "Bo was taught to ski by Cy.", False),
        ("Who did Bo visit?", "Cy", "Cy visited Bo.", True),
        ("What did Bo lend Cy?", "A tent", "Cy lent Bo a tent.", True),
        ("Wen hat Uwe besucht?", "Jana", "Jana hat Uwe besucht.", True),
        ("¿A quién visitó Eva?", "A Juan", "Eva visitó a Juan.", False),
        ("Qui a aidé Luc ?", "Zoé", "Luc a aidé Zoé.", True),
        ("Who is Bo's boss?", "Cy", "Bo is Cy's boss.", True),
        ("Who is Bo's boss?", "Cy", "Cy is Bo's boss.", False),
        ("Wer ist Uwes Chefin?", "Jana", "Uwe ist Janas Chef.", True),
        ("Wer ist Uwes Chefin?", "Jana", "Jana ist Uwes Chefin.", False),
        ("Wen hat Uwe besucht?", "Jana und Lars", "Uwe hat Lars und Jana besucht.", None),
        ("Who did Bo marry?", "Cy", "Cy married Bo.", None),
        ("What did Bo buy?", "A tent", "Cy bought a tent.", None),
    ],
)
def test_two_people_have_the_parts_that_the_statement_gives_them(
    question: str, answer: str, text: str, exchanged: bool | None
) -> None:
    assert swapped(question, answer, text) is exchanged


def test_the_suite_notices_a_matcher_that_matches_everything() -> None:
    class Careless(MatcherConformance):
        def factory(self) -> Any:
            return lambda conversation, access: Everything(True)

    with pytest.raises(AssertionError, match="something else"):
        Careless().test_a_text_that_says_it_carries_it_and_others_do_not()
    Careless().test_each_passage_has_its_grade()
