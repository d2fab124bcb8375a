"""Right replies in other words are the judge's error, and wrong ones that look much the same are not."""

from __future__ import annotations

import pytest

from attribution.judging.normal_forms import decision_of, lengths_of, same_items, same_value
from attribution.survival.matching.matcher import JudgesReplies
from attribution.survival.verdicts.mistakes import said_right
from attribution.text.languages.language_data import Language
from attribution.text.languages.reading_language import reading
from tracing.systems.conversations import Question


@pytest.mark.parametrize(
    ("answer", "reply", "same"),
    [
        ("three years", "36 months", True),
        ("three years", "30 months", False),
        ("two weeks", "about 14 days", True),
        ("3 Jahre", "36 Monate", True),
        ("2 semanas", "14 días", True),
        ("a year", "12 months", True),
        ("five years", "half a decade", True),
        ("five years", "a decade", False),
        ("March 2023", "Some time between the 1st and the 31st of March 2023.", True),
        ("March 2023", "Some time between the 1st and the 30th of April 2023.", False),
        ("The week before 7 July 2023", "between June 30 and July 6, 2023", True),
        ("The week before 7 July 2023", "from July 14 until July 20, 2023", False),
        ("the year 2010", "from January to December 2010", True),
        ("half a year", "6 months", True),
        ("an hour", "2 hours", False),
        ("18 months", "a year and a half", True),
        ("a year", "a year and a half", False),
        ("5 days", "5 extra days", None),
        ("1 hour", "extra hours", None),
        ("1 day", "twice a day", None),
        ("7 May 2023", "2023-05-07", True),
        ("7 May 2023", "2023-05-08", False),
        ("The week before 6 July 2023", "29 June 2023", None),
        ("12", "a dozen", True),
        ("12", "13 of them", False),
        ("Yes", "Likely yes", True),
        ("Likely no", "Most likely she would", False),
        ("Yes", "Yes, to Berlin", True),
        ("Yes, to Berlin", "Yes, she moved to Berlin", True),
        ("Yes, to Berlin", "Yes", True),
        ("Yes, to Berlin", "No, to Paris", False),
        ("Yes, to Berlin", "Yes, to Paris", None),
        ("No sugar", "No milk", None),
        ("No", "Not mentioned in the conversation.", None),
        ("No", "No information available.", None),
        ("No one", "Not sure", None),
        ("No siblings", "No idea.", None),
        ("Likely no", "Not enough information", None),
        ("Oslo", "Bergen", None),
    ],
)
def test_values_are_compared_in_normal_form(answer: str, reply: str, same: bool | None) -> None:
    assert same_value(answer, reply) is same


@pytest.mark.parametrize(
    ("reply", "same"),
    [
        ("swimming, chess and hiking", True),
        ("They like chess & swimming & hiking", True),
        ("chess and hiking", False),
        ("chess, hiking and rowing", False),
        ("chess, hiking, swimming and rowing", False),
        ("hiking and swimming, but not chess", None),
    ],
)
def test_a_list_has_the_same_items_in_any_order(reply: str, same: bool | None) -> None:
    assert same_items("What do they do?", "hiking, chess and swimming", reply) is same


@pytest.mark.parametrize(
    ("text", "language", "lengths"),
    [
        ("an hour", "en", {("hours", 1.0)}),
        ("half an hour", "en", {("hours", 0.5)}),
        ("one and a half years", "en", {("months", 18.0)}),
        ("a 3-day trip", "en", {("hours", 72.0)}),
        ("fun days", "en", set()),
        ("3 hours a day", "en", {("hours", 3.0)}),
        ("ein Jahr", "de", {("months", 12.0)}),
        ("einige Tage", "de", set()),
        ("un año", "es", {("months", 12.0)}),
        ("une semaine", "fr", {("hours", 168.0)}),
    ],
)
def test_an_article_before_a_unit_is_one_and_the_end_of_a_word_is_none(
    text: str, language: Language, lengths: set[tuple[str, float]]
) -> None:
    with reading(language):
        assert lengths_of(text) == lengths


def test_lengths_of_time_and_decisions_are_read() -> None:
    assert lengths_of("half a year, or six months") == {("months", 6.0)}
    assert [decision_of(text) for text in ("Nein.", "Sí, claro", "Nothing", "Probably not", "Norway")] == [
        False,
        True,
        None,
        False,
        None,
    ]


class Says:
    """A matcher's opinion of every reply."""

    def __init__(self, opinion: bool | None) -> None:
        self.opinion = opinion

    def right(self, question: Question, reply: str) -> bool | None:
        return self.opinion


@pytest.mark.parametrize(("opinion", "right"), [(True, True), (False, False), (None, True)])
def test_a_matcher_that_reads_replies_has_the_last_word(opinion: bool | None, right: bool) -> None:
    judge: JudgesReplies = Says(opinion)
    asked = Question(id="q", question="What did Ana buy?", answers=("a red car",), evidence=())
    assert said_right(asked, "The red car.", judge) is right


@pytest.mark.parametrize("opinion", [True, False, None])
def test_values_are_compared_whatever_a_matcher_says(opinion: bool | None) -> None:
    asked = Question(id="q", question="How long?", answers=("three years",), evidence=())
    assert said_right(asked, "36 months", Says(opinion))
    assert not said_right(asked, "30 months", Says(opinion))


def test_a_list_in_other_words_altogether_is_left_to_a_matcher_and_one_cut_short_is_not() -> None:
    asked = Question(id="q", question="Where was he?", answers=("Toronto, Canada",), evidence=())
    assert said_right(asked, "In the largest city of Ontario.", Says(True))
    assert not said_right(asked, "In the largest city of Ontario.", None)
    assert not said_right(asked, "Somewhere in Canada.", Says(True))


@pytest.mark.parametrize(
    ("answer", "reply"), [("No", "Not mentioned."), ("No sugar", "No milk"), ("Yes, to Berlin", "Yes, to Paris")]
)
def test_a_reply_that_shares_only_yes_or_no_with_the_answer_is_not_right(answer: str, reply: str) -> None:
    assert not said_right(Question(id="q", question="Did she?", answers=(answer,), evidence=()), reply, None)


def test_an_unknown_or_withdrawn_answer_is_not_pardoned_by_a_matcher() -> None:
    asked = Question(id="q", question="Which colour?", answers=("unknown",), evidence=())
    assert not said_right(asked, "blue", Says(True))
    known = Question(id="q", question="Which colour?", answers=("red",), evidence=())
    assert not said_right(known, "I don't know", Says(True))


@pytest.mark.parametrize(
    ("one", "asked", "answer", "reply", "right"),
    [
        ("en", "When did Nora move?", "June 2023", "2023-06", True),
        ("en", "When did Nora move?", "June 2023", "06/2023", True),
        ("en", "When did Nora move?", "2023-06", "in June 2023", True),
        ("en", "When did Nora move?", "June 2023", "2023-07", False),
        ("de", "Wann ist Nora umgezogen?", "Juni 2023", "06.2023", True),
        ("en", "How much did Nora pay?", "$20,000", "$20k", True),
        ("en", "Who drove Nora?", "her uncle", "Nora's uncle", True),
        ("en", "Who drove Nora?", "Nora's uncle", "her uncle", True),
        ("en", "Who drove Nora?", "her uncle", "the uncle of Nora", True),
        ("en", "Who drove Nora?", "her uncle", "Nora's aunt", False),
        ("en", "Who drove Nora?", "her uncle", "Nora", False),
        ("en", "Who drove Nora and Tom?", "her uncle", "Tom's uncle", False),
        ("de", "Wer hat Nora gefahren?", "ihr Onkel", "Noras Onkel", True),
        ("es", "¿Quién llevó a Nora?", "su tío", "el tío de Nora", True),
        ("fr", "Qui a conduit Nora ?", "son oncle", "l'oncle de Nora", True),
        ("en", "Where did Nora go?", "Oslo", "It was Oslo, as far as I can tell.", True),
        ("en", "Where did Nora go?", "Oslo", "Based on the conversation, the answer is Oslo.", True),
        ("en", "Where did Nora go?", "Oslo", "It was Bergen, as far as I can tell.", False),
        ("en", "Where did Nora go?", "Oslo", "If I remember correctly, Oslo", True),
        ("de", "Wohin fuhr Nora?", "Oslo", "Wenn ich mich richtig erinnere, Oslo", True),
        ("es", "¿Adónde fue Nora?", "Oslo", "Si mal no recuerdo, Oslo", True),
        ("fr", "Où est allée Nora ?", "Oslo", "Oslo, si je me souviens bien.", True),
        ("en", "Where did Nora go?", "Oslo", "It was not Oslo, I think.", False),
        ("en", "What does Nora like?", "chess, tea and tar", "It was tea, tar and chess, I think.", True),
        ("de", "Wo war Nora?", "Oslo", "Das war Oslo, soweit ich weiß.", True),
        ("es", "¿Dónde?", "Oslo", "Fue Oslo, que yo sepa.", True),
        ("fr", "Où ?", "Oslo", "C'était Oslo, à ma connaissance.", True),
    ],
)
def test_another_form_of_a_month_an_owner_or_a_sentence_around_it_is_as_right(
    one: Language, asked: str, answer: str, reply: str, right: bool
) -> None:
    with reading(one):
        assert said_right(Question(id="q", question=asked, answers=(answer,)), reply, None) is right


def test_two_years_are_no_month() -> None:
    assert same_value("2010-12", "December 2010") is not True
    assert same_value("2023-06-15", "June 2023") is None
