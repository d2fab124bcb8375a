"""Evidence that the gold answer is about another speaker than the one asked about."""

from __future__ import annotations

import re

from attribution.explanations import quote
from attribution.gold_answers.claim import ON_TOPIC, SUPPORTING, AnnotatedClaim, addresses, clauses_with
from attribution.gold_answers.suspicion import Finding
from attribution.gold_answers.transcript import Transcript
from attribution.text.phrases import says_unknown
from attribution.text.question_kinds import is_yes_or_no

_OWN = re.compile(r"\b(?:I|I['’]\w+|my|mine|we|we['’]\w+|our|us)\b")


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
    if any(addresses(clause, person) for clause in clauses) or not (holds or own):
        return None
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
    ids = tuple(turn.id for turn in turns)
    who = " and ".join(dict.fromkeys(turn.speaker for turn in turns))
    reason = (
        f"{', '.join(ids)}, cited for the gold answer {quote(question.answers[0])}, is what {who} says, "
        f"{quote(turns[0].text)}, and the question is about {person}"
    )
    if supported:
        reason += f"; the reply {quote(reply)} says that {person} does not"
    return Finding("speaker", True, supported, reason, ids)


def _says_too(at: int, forms: list[frozenset[str]], claim: AnnotatedClaim, talk: Transcript) -> bool:
    """Whether a turn says the answer, where the question's matter is spoken of."""
    near = talk.near([talk.turns[at].id], 1)
    return any(talk.share(form, [at]) >= SUPPORTING for form in forms) and talk.share(claim.topic, near) >= ON_TOPIC
