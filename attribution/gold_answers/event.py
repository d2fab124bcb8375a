"""Evidence that the cited turns are about another event than the question."""

from __future__ import annotations

from attribution.explanations import quote
from attribution.gold_answers.claim import NEARBY, SUPPORTING, AnnotatedClaim, is_supported, names
from attribution.gold_answers.suspicion import Finding
from attribution.gold_answers.transcript import Transcript

_SILENT, _QUIET = 0.15, 0.3
_CLEARLY, _TELLS, _DIFFERS = 0.65, 0.55, 0.35
_SAME_EVENT = 0.5
_FEWEST_WORDS = 2


def other_event(claim: AnnotatedClaim, reply: str, talk: Transcript) -> Finding | None:
    """What speaks against the answer because the cited turns say little of what is asked, and others much of it.

    None where turns on the question's matter say the gold answer too: then only the citation is wrong. An answer from
    several sessions is about several events.
    """
    question = claim.question
    sessions = {talk.session[turn] for turn in question.evidence if turn in talk.session}
    if claim.concludes or len(sessions) != 1 or len(claim.topic) < _FEWEST_WORDS:
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
