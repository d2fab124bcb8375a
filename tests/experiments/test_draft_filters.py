"""Each way in which a draft can be unfit has its reason, and a sound draft of each kind is kept."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_server import ScriptedServer

from experiments.data.generating.author import QuestionAuthor
from experiments.data.generating.citations import Citation, Citations, Kind
from experiments.data.generating.dialogue import Dialogue
from experiments.data.generating.filters import Trial, objection, with_near_miss
from experiments.data.generating.never_said import about_the_other, is_told
from experiments.data.generating.statements import stated
from experiments.data.generating.values import Values
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings
from tracing.systems.conversations import Conversation, Question

SESSIONS = {
    "D1": [
        ("Mara", "My ferry to Senja leaves at seven."),
        ("Ilya", "Your cousin Petra paints barns, you said."),
        ("Mara", "I learnt to bake rye bread in Porto, and my tortoise is called Brisket."),
        ("Ilya", "Nice! I went to the dentist in Tromsoe yesterday."),
        ("Mara", "I am going to name the whippet Crouton."),
    ],
    "D2": [
        ("Mara", "My ferry to Senja leaves at nine now."),
        ("Mara", "This month I learnt to bake custard tarts in Porto."),
        ("Mara", "Please forget what I said about the whippet's name, it is undecided."),
        ("Ilya", "Where would you go on a holiday? I would love a holiday."),
    ],
    "D3": [
        ("Ilya", "A gull stole my sandwich in Bodo, so I bought a lid."),
        ("Ilya", "My lantern comes from Narvik."),
        ("Ilya", "Stay away from the kiln -- I have two ovens."),
        ("Ilya", "The lantern from Narvik was swapped for a torch from Alta."),
        ("Mara", "I have hung my curtains on three walls of the sauna."),
        ("Ilya", "I keep bees in Hammerfest."),
        ("Ilya", "Please forget what I said about the bees."),
    ],
}
DIALOGUE = Dialogue(
    Conversation.model_validate(
        {
            "id": "mara",
            "speakers": ["Mara", "Ilya"],
            "sessions": [
                {
                    "id": name,
                    "time": f"2026-03-0{place} 10:00",
                    "turns": [{"id": f"{name}:{n}", "speaker": s, "text": t} for n, (s, t) in enumerate(turns, 1)],
                }
                for place, (name, turns) in enumerate(SESSIONS.items(), start=4)
            ],
        }
    )
)


class Reader:
    """A server whose author writes a given draft, and answers by what the messages that it is shown say."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server

    def __call__(self, kind: Kind, turns: str, question: str, answer: str, *known: tuple[str, str]) -> Any:
        def script(body: dict[str, Any]) -> str:
            prompt = str(body["messages"][-1]["content"])
            if "Ask about: " in prompt:
                return question
            return next((reply for words, reply in known if words in prompt.partition("Question: ")[0]), "unknown")

        self._server.script = script
        model = ModelSettings(model="m", base_url=self._server.base_url, retries=0)
        with ModelAccess.open({"task": model}, cache_dir=None, limits=Limits()) as access:
            author = QuestionAuthor(access.proposer)
            cited = tuple(turns.split())
            told_in = cited if kind == "several_turns" else cited[:1] if kind == "taken_back" else cited[-1:]
            sentences = tuple(stated(DIALOGUE.turns[turn]) for turn in told_in)
            draft = author.draft(DIALOGUE, Citation(kind, cited, sentences, answer))
            assert draft is not None
            trial = Trial(DIALOGUE, draft, author, sentences)
            reason = objection(trial)
            other = about_the_other(trial) if kind == "fact" and reason is None else None
            told = is_told(other) if other is not None else None
            return reason or (with_near_miss(trial), other and other.draft, told)


@pytest.fixture
def tried(scripted_server: ScriptedServer) -> Reader:
    return Reader(scripted_server)


TORTOISE = "What is the name of Mara's tortoise?"


@pytest.mark.parametrize(
    ("turns", "question", "answer", "known", "reason"),
    [
        (
            "D1:3",
            "What is Brisket, Mara's tortoise, called?",
            "Brisket",
            (),
            "the question asks for nothing particular",
        ),
        ("D1:3", "What did Mara say about her tortoise?", "Brisket", (), "the question asks for nothing particular"),
        ("D1:3", "Where did Mara learn to bake rye bread, and when?", "Porto", (), "the question asks for nothing"),
        ("D1:3", "What is the name of the tortoise?", "Brisket", (), "the question does not name its subject"),
        ("D1:3", "What is the name of it, Mara's tortoise?", "Brisket", (), "the question does not name its subject"),
        ("D1:3", "What did Mara name her in Porto?", "Brisket", (), "the question does not name its subject"),
        ("D1:3", "What did Mara name him, her tortoise?", "Brisket", (), "the question does not name its subject"),
        ("D1:4", "Where was Ilya at the dentist yesterday?", "Tromsoe", (), "the question does not name its subject"),
        ("D3:1", "Where did Ilya steal his sandwich?", "Bodo", (), "the question says of a speaker what another does"),
        ("D3:2", "Where does Ilya's lantern come from?", "Narvik", (), "another turn is on the same matter"),
        ("D3:6", "Where does Ilya keep his bees?", "Hammerfest", (), "another turn is on the same matter"),
        ("D1:3", "How many loaves did Mara learn to bake?", "Brisket", (), "the answer is not of the sort"),
        ("D3:5", "How many curtains has Mara hung in the sauna?", "three", (), "the answer is not of the sort"),
        ("D1:3", "When did Mara call her tortoise?", "Brisket", (), "the answer is not of the sort"),
        ("D1:3", "In which harbour did Mara paint boats?", "Porto", (), "the question is about more than"),
        ("D1:3", "Where did Mara learn to bake?", "Brisket", (), "another turn is on the same matter"),
        ("D1:3", TORTOISE, "Brisket", (("tortoise", "Mara"),), "asked with the cited turns alone"),
        ("D1:3", TORTOISE, "Brisket", (("tortoise", "Brisket, Pepper and Panda"),), "asked with the cited turns alone"),
        ("D1:3", TORTOISE, "Brisket", (("", "Brisket"),), "asked without any turn"),
        ("D1:3", TORTOISE, "Brisket", (("whippet", "Crouton"), ("Brisket", "Brisket")), "asked with other turns too"),
        ("D1:3", TORTOISE, "Brisket", (("whippet", "Brisket and Crouton"), ("Brisket", "Brisket")), "asked with other"),
    ],
)
def test_an_unfit_draft_is_dropped_for_its_reason(
    tried: Reader, turns: str, question: str, answer: str, known: Any, reason: str
) -> None:
    assert str(tried("fact", turns, question, answer, *known)).startswith(reason)


def test_who_is_told_to_do_something_does_not_do_it(tried: Reader) -> None:
    question = "Who of Mara and Ilya stays away from the kiln?"
    assert tried("who", "D3:3", question, "Ilya") == "the question says of a speaker what another does"


def test_a_sound_fact_is_kept_and_asked_of_the_other_speaker(tried: Reader) -> None:
    fact, other, told = tried("fact", "D1:3", TORTOISE, "Brisket", ('Mara: "I learnt', "Brisket"))
    assert fact.answers == ("Brisket",)
    assert isinstance(other, Question)
    assert other.question == "What is the name of Ilya's tortoise?"
    assert (other.unanswerable, other.evidence, other.kind) == (True, (), "never_said")
    assert told  # this reader names a tortoise whoever is asked about


def test_a_time_is_the_day_that_it_resolves_to(tried: Reader) -> None:
    question = "When did Ilya go to the dentist in Tromsoe?"
    row, _, _ = tried("time", "D1:4", question, "yesterday", ("dentist", "yesterday"))
    assert row.answers == ("3 March 2026", "March 3, 2026", "2026-03-03")
    assert tried("time", "D1:4", question, "yesterday", ("dentist", "last year")).startswith("asked with the cited")
    asked_where = "Where did Ilya go to the dentist in Tromsoe?"
    assert tried("time", "D1:4", asked_where, "yesterday").startswith("the answer is not of the sort")


def test_a_change_has_the_earlier_value_as_what_a_careless_reader_says(tried: Reader) -> None:
    question, known = "At what time does Mara's ferry to Senja leave?", (("nine now", "nine"), ("seven", "seven"))
    row, _, _ = tried("change", "D1:1 D2:1", question, "nine", *known)
    assert (row.supersedes, row.near_miss.turn, row.near_miss.value) == (True, "D1:1", "seven")
    # Where the first turn tells the same, nothing changed.
    assert tried("change", "D1:1 D2:1", question, "nine", ("Senja", "nine")).startswith("one of the cited turns")


def test_what_was_taken_back_is_not_known(tried: Reader) -> None:
    question = "What is the name of Mara's whippet?"
    row, _, _ = tried("taken_back", "D1:5 D2:3", question, "Crouton", ("undecided", "unknown"), ("Crouton", "Crouton"))
    assert (row.unanswerable, row.near_miss.value) == (True, "Crouton")
    assert "unknown" in row.answers
    assert tried("taken_back", "D1:5 D2:3", question, "Crouton", ("Crouton", "Crouton")).startswith("asked with")


def test_an_answer_from_several_turns_needs_each(tried: Reader) -> None:
    question, answer = "What has Mara learnt to bake in Porto?", "rye bread and custard tarts"
    parts = (("rye bread", "rye bread"), ("custard", "custard tarts"))
    reason = tried("several_turns", "D1:3 D2:2", question, answer, ("custard", answer), ("rye", "rye bread"))
    assert reason == "one of the cited turns is not needed"
    assert tried("several_turns", "D1:3 D2:2", question, answer, *parts).startswith("asked with the cited turns alone")


def test_who_is_the_speaker_of_the_cited_turn(tried: Reader) -> None:
    question = "Who of Mara and Ilya learnt to bake rye bread in Porto?"
    row, _, _ = tried("who", "D1:3", question, "Mara", ("rye bread", "Mara"))
    assert row.answers == ("Mara",)
    assert tried("who", "D1:3", "Did Mara learn to bake rye bread?", "Mara").startswith("the answer is not of the sort")


def test_a_turn_is_cited_for_what_it_alone_tells_of_its_speaker() -> None:
    cited = {
        (citation.kind, citation.turns, citation.answer)
        for session in DIALOGUE.conversation.sessions
        for citation in Citations(DIALOGUE).of(session)
    }
    assert ("fact", ("D1:3",), "Porto") in cited
    assert ("time", ("D1:4",), "yesterday") in cited
    assert ("change", ("D1:1", "D2:1"), "nine") in cited
    assert ("taken_back", ("D1:5", "D2:3"), "Crouton") in cited
    assert ("who", ("D1:4",), "Ilya") in cited
    assert not any("D1:2" in turns for _, turns, _ in cited)


@pytest.mark.parametrize("other", ["Assistant", "ai", "Ilya"])
def test_an_assistant_is_not_asked_about_nor_told_from_its_user(other: str) -> None:
    turns = [
        {"id": "0", "speaker": other, "text": "I moved my beehives to Hammerfest yesterday."},
        {"id": "1", "speaker": "user", "text": "I moved my bakery to Porto on 3 May 2025."},
    ]
    session = {"id": "D1", "time": "2026-03-04 10:00", "turns": turns}
    dialogue = Dialogue(Conversation.model_validate({"id": "m", "speakers": ["user", other], "sessions": [session]}))
    cited = Citations(dialogue).of(dialogue.conversation.sessions[0])
    assert {(citation.kind, citation.turns) for citation in cited if citation.turns == ("1",)} >= {("fact", ("1",))}
    is_person = other == "Ilya"
    assert any(citation.turns == ("0",) for citation in cited) == is_person
    assert any(citation.kind == "who" for citation in cited) == is_person


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("I bought a clarinet in Lisbon for ninety euros.", {"clarinet", "Lisbon", "ninety"}),
        ('I read "The Salt Path" on my balcony.', {"The Salt Path", "balcony"}),
        ("I met brands like Umbro and Kappa at the fair.", set()),
        ("I play cello, harp, and Bandoneon.", set()),
        ("I never saw Lisbon.", set()),
        ("I would love to paint in Lisbon.", set()),
        ("She gave me a clarinet from Lisbon.", set()),
        ("You took my clarinet to Lisbon.", set()),
        ("One fiddler I truly enjoy is Bodo Ruud.", set()),
        ("My tortoise spends his nights in an old suitcase.", {"old suitcase"}),
    ],
)
def test_only_a_single_thing_that_the_speaker_states_of_itself_may_be_asked_for(text: str, values: set[str]) -> None:
    turns = [{"id": "1", "speaker": "Mara", "text": text}, {"id": "2", "speaker": "Ilya", "text": "Lovely."}]
    session = {"id": "D1", "time": "2026-03-04 10:00", "turns": turns}
    dialogue = Dialogue(Conversation.model_validate({"id": "m", "speakers": ["Mara", "Ilya"], "sessions": [session]}))
    assert {value.text for value in Values(dialogue).of(dialogue.turns["1"])} == values
