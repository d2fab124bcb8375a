"""Evidence that the cited turns are about another event or speaker, or that a question asks about what never was."""

from __future__ import annotations

import re

from attribution.explanations import quote
from attribution.gold_answers.claim import (
    NEARBY,
    ON_TOPIC,
    SUPPORTING,
    AnnotatedClaim,
    addresses,
    clauses_with,
    is_supported,
    names,
)
from attribution.gold_answers.other_time import Days, may_be, times_of
from attribution.gold_answers.suspicion import Doubt, Finding
from attribution.gold_answers.transcript import Transcript
from attribution.text.calendar_names import MONTH
from attribution.text.content import content_of, is_date
from attribution.text.dates import spans_of
from attribution.text.languages.language_data import compiled_of_language, words_of_language
from attribution.text.phrases import says_unknown
from attribution.text.question_kinds import is_yes_or_no

_SILENT, _QUIET = 0.15, 0.3
_CLEARLY, _TELLS, _DIFFERS = 0.65, 0.55, 0.35
_SAME_EVENT = 0.5
_FEWEST_TOPIC_WORDS = 2

_MONTH = re.compile(MONTH)
_WORD = re.compile(r"[\w'’-]+")
_PATTERNS = compiled_of_language("common", "gold_answers")
_BEFORE_A_THING = frozenset(words_of_language("common", "before_a_thing"))
_FIRST_PLACE, _REACH = 3, 2
_FITS, _FEWEST_WORDS = 0.75, 3
_EARLY, _LATE = 7, 31
_OWN = re.compile(r"\b(?:I|I['’]\w+|my|mine|we|we['’]\w+|our|us)\b")


def other_event(claim: AnnotatedClaim, reply: str, talk: Transcript) -> Finding | None:
    """What speaks against the answer because the cited turns say little of what is asked, and others much of it.

    None where turns on the question's matter say the gold answer too: then only the citation is wrong. An answer from
    several sessions is about several events.
    """
    question = claim.question
    sessions = {talk.session[turn] for turn in question.evidence if turn in talk.session}
    if claim.concludes or len(sessions) != 1 or len(claim.topic) < _FEWEST_TOPIC_WORDS:
        return None
    here = talk.share(claim.topic, claim.around)
    others = frozenset(at for at, turn in enumerate(talk.turns) if talk.session[turn.id] not in sessions)
    elsewhere, at = talk.best(claim.topic, others)
    if at is None or here > _QUIET or elsewhere < _TELLS or elsewhere - here < _DIFFERS:
        return None
    if any(_told_on_topic(claim.words_of(answer, talk), claim, talk) for answer in question.answers):
        return None
    turn = talk.turns[at]
    of_person = claim.person is None or turn.speaker == claim.person or names(turn.text, claim.person)
    supported = is_supported(claim, reply, talk, talk.near([turn.id], NEARBY))
    reason = (
        f"{', '.join(question.evidence)}, cited for the gold answer {quote(question.answers[0])}, says nothing of "
        f"what is asked; {turn.id} does, {quote(turn.text)}"
    )
    if supported:
        reason += f", and supports the reply {quote(reply)}"
    strong = of_person and here <= _SILENT and elsewhere >= _CLEARLY
    return Finding("event", strong, supported, reason, (*question.evidence, turn.id))


def _told_on_topic(words: frozenset[str], claim: AnnotatedClaim, talk: Transcript) -> bool:
    """Whether a turn away from the cited ones says most of an answer's words near those of the question."""
    for at in frozenset[int]().union(*map(talk.where, words)) - claim.around:
        near = talk.near([talk.turns[at].id], 1)
        if talk.share(words, [at]) >= SUPPORTING and talk.share(claim.topic, near) >= _SAME_EVENT:
            return True
    return not words


def false_premise(claim: AnnotatedClaim, reply: str, talk: Transcript, days: Days) -> Finding | None:
    """What speaks against the question itself; None for a conclusion, and where only a paraphrase may be missing.

    A name that nobody says counts by itself, and so does a time at which the cited turns were not said and of which
    they don't tell. Another thing that nobody mentions does not: it is mostly just the question's word for it, also
    where the reply is that there is no answer, since systems say that for any loss.
    """
    if claim.concludes or not claim.cited:
        return None
    corrected = _other_premise_time(claim, reply, talk, days)
    if corrected is not None:
        return corrected
    objection = _at_another_time(claim, talk, days) or _unmentioned(claim, talk)
    if objection is None:
        return None
    doubt, reason = objection
    supported = says_unknown(reply)
    if supported:
        reason += f"; the reply {quote(reply)} says that there is no answer"
    return Finding(doubt, True, supported, reason, claim.question.evidence)


def _other_premise_time(claim: AnnotatedClaim, reply: str, talk: Transcript, days: Days) -> Finding | None:
    """What speaks against a question that names a day, where the reply says another, on which the cited turns agree."""
    question = claim.question
    asked = spans_of(_PATTERNS["looked_back_from"].sub("", question.question))
    cited = [talk.turns[at].id for at in sorted(claim.cited)]
    spoken = [(day.toordinal(), day.toordinal()) for turn in cited if (day := days.get(turn))]
    told = [*times_of(cited, talk, days, claim.topic), *spoken]
    corrected = [span for span in spans_of(reply) if not any(may_be(span, other) for other in asked)]
    if not asked or not corrected or any(may_be(span, other) for span in asked for other in told):
        return None
    if is_date(question.answers[0]) or not all(any(may_be(span, other) for other in told) for span in corrected):
        return None
    reason = f"{', '.join(cited)} tells of another time than the question, and the reply {quote(reply)} agrees with it"
    return Finding("premise", False, True, reason, tuple(cited))


def _unmentioned(claim: AnnotatedClaim, talk: Transcript) -> tuple[Doubt, str] | None:
    question = claim.question
    unheard = [word for word in claim.topic if not talk.where(word) and not _MONTH.fullmatch(word)]
    rest = claim.topic.difference(unheard)
    supported_answer = any(
        talk.share(claim.words_of(answer, talk), claim.cited) >= SUPPORTING for answer in question.answers
    )
    if len(unheard) != 1 or len(rest) < _FEWEST_WORDS or not supported_answer or talk.share(rest, claim.around) < _FITS:
        return None
    words = _WORD.findall(question.question)
    at = next((at for at, word in enumerate(words) if unheard[0] in content_of(word)), 0)
    before = {word.lower() for word in words[max(0, at - _REACH) : at]}
    if at < _FIRST_PLACE or before.isdisjoint(_BEFORE_A_THING) or not words[at][0].isupper():
        return None
    reason = (
        f"nobody in the conversation mentions {quote(words[at])}, which the question takes for granted; "
        f"{', '.join(question.evidence)}, cited for it, fits otherwise"
    )
    return "premise", reason


def _at_another_time(claim: AnnotatedClaim, talk: Transcript, days: Days) -> tuple[Doubt, str] | None:
    """The question names a time, and the cited turns are said at another and don't tell of it.

    Where they are not on its matter either, they are about another event.
    """
    question = claim.question
    # `As of` is when it is looked back from, not when it was.
    question_times = spans_of(_PATTERNS["looked_back_from"].sub("", question.question))
    spoken = {turn: day for turn in question.evidence if (day := days.get(turn))}
    if not question_times or not spoken:
        return None
    told_times = times_of((talk.turns[at].id for at in claim.around), talk, days)
    if any(
        first - _EARLY <= span[1] and span[0] <= last + _EARLY for first, last in question_times for span in told_times
    ):
        return None
    if any(
        first - _EARLY <= day.toordinal() <= last + _LATE for first, last in question_times for day in spoken.values()
    ):
        return None
    when = " and ".join(f"{turn} was said on {day}" for turn, day in spoken.items())
    reason = f"{when} and tells of no time that the question names, for the gold answer {quote(question.answers[0])}"
    return "premise" if talk.share(claim.topic, claim.around) >= ON_TOPIC else "event", reason


def other_speaker(claim: AnnotatedClaim, reply: str, talk: Transcript) -> Finding | None:
    """What speaks against the answer because all cited turns are others', who don't speak to or of the person.

    None where the person says it too, or tells of it right beside the cited turns. "No" is right just because it was
    another one, so questions for yes or no are left out.
    """
    question, person = claim.question, claim.person
    turns = [talk.turns[at] for at in sorted(claim.cited)]
    if person is None or not turns or is_yes_or_no(question) or any(turn.speaker == person for turn in turns):
        return None
    forms = [claim.words_of(answer, talk) for answer in question.answers]
    holds = max(talk.share(form, claim.cited) for form in forms) >= SUPPORTING
    topic_share = talk.share(claim.topic, claim.cited)
    if not holds and topic_share < ON_TOPIC:
        return None
    answer_words = frozenset[str]().union(*forms) if holds else claim.topic
    clauses = [clause for turn in turns for clause in clauses_with(turn, answer_words, talk)]
    own = any(map(_OWN.search, clauses))
    who = " and ".join(dict.fromkeys(turn.speaker for turn in turns))
    ids = tuple(turn.id for turn in turns)
    reason = (
        f"{', '.join(ids)}, cited for the gold answer {quote(question.answers[0])}, is what {who} says, "
        f"{quote(turns[0].text)}, and the question is about {person}"
    )
    if any(addresses(clause, person) for clause in clauses) or not (holds or own):
        return None
    if own and _says_who(claim, reply, talk, {turn.speaker for turn in turns}):
        return Finding("speaker", True, True, f"{reason}; the reply {quote(reply)} says who it was", ids)
    own_places = [at for at, turn in enumerate(talk.turns) if turn.speaker == person]
    if holds and any(_says_too(at, forms, claim, talk) for at in own_places):
        return None
    tells = any(
        talk.share(claim.topic, [at]) >= topic_share and _OWN.search(talk.turns[at].text)
        for at in claim.around.intersection(own_places)
    )
    if tells and not (own and holds):
        return None
    supported = says_unknown(reply)
    if supported:
        reason += f"; the reply {quote(reply)} says that {person} does not"
    return Finding("speaker", True, supported, reason, ids)


def _says_who(claim: AnnotatedClaim, reply: str, talk: Transcript, speakers: set[str]) -> bool:
    """Whether a reply says of what was asked only that it was the one speaker who says it."""
    beside = content_of(reply) - content_of(claim.question.question) - talk.names
    named = {name for name in talk.conversation.speakers if names(reply, name)} - {claim.person}
    return not beside and named == speakers


def _says_too(at: int, forms: list[frozenset[str]], claim: AnnotatedClaim, talk: Transcript) -> bool:
    """Whether a turn says the answer, where the question's matter is spoken of."""
    near = talk.near([talk.turns[at].id], 1)
    return any(talk.share(form, [at]) >= SUPPORTING for form in forms) and talk.share(claim.topic, near) >= ON_TOPIC
