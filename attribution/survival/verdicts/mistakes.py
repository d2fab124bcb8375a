"""Wrong answers that no operation is to blame for: the judge misread right words, or the annotation is mistaken."""

from __future__ import annotations

from collections.abc import Sequence

from attribution.cases import Blame
from attribution.explanations import quote
from attribution.gold_answers.suspicion import Suspicion
from attribution.judging.normal_forms import same_form_as_any
from attribution.survival.case_view import CaseView
from attribution.survival.matching.matcher import JudgesReplies
from attribution.text.content import content_of, is_date, words_of
from attribution.text.dates import spans_of
from attribution.text.languages.language_data import compiled_of_language
from attribution.text.languages.reading_language import language as reading_language
from attribution.text.names import names_in
from attribution.text.phrases import denies, frames, is_unknowable, says_unknown
from attribution.text.stems import is_number
from tracing.systems.conversations import Question

MISJUDGED, MISJUDGED_BY_A_MODEL = 0.95, 0.74
"""How often a reply that is told as right is so, if one in ten that were judged wrong is.

Words and values told 0 of 301 wrong replies so and 0.85 of 285 right ones. A model may tell 2 % of the wrong ones so,
and tells half of the right ones.
"""

UNSUPPORTED = 0.5


def misjudged(view: CaseView) -> Blame | None:
    """Blame for a judge that called the accepted answer wrong."""
    case = view.case
    judge = view.matcher if isinstance(view.matcher, JudgesReplies) else None
    if case.judgement.em != 1 and not said_right(case.question, case.reply, judge):
        return None
    sure = case.judgement.em == 1 or judge is None or said_right(case.question, case.reply, None)
    reason = f"the reply {quote(case.reply)} is the accepted answer, but was judged wrong"
    evidence = (case.prediction,) if case.prediction else ()
    confidence = MISJUDGED if sure else MISJUDGED_BY_A_MODEL
    return Blame("judge", None, "JudgeError", confidence, reason, evidence)


def misannotated(suspicion: Suspicion, view: CaseView) -> Blame:
    """Blame for a gold answer against which the conversation speaks."""
    messages = tuple(message.id for message in view.flow.messages(*suspicion.turns))
    return Blame("annotation", None, "AnnotationError", suspicion.confidence, suspicion.reason, messages)


def unsupported(view: CaseView) -> Blame:
    """Blame for a gold answer that no turn says and of a kind that cannot be inferred."""
    question = view.case.question
    evidence = tuple(message.id for message in view.flow.messages(*question.evidence))
    gold = quote(question.answers[0])
    reason = f"neither the evidence {', '.join(question.evidence)} nor another turn says the gold answer {gold}"
    return Blame("annotation", None, "AnnotationError", UNSUPPORTED, reason, evidence)


def said_right(question: Question, reply: str, judge: JudgesReplies | None) -> bool:
    """Whether a reply is an accepted answer in other words.

    Dates, lengths of time, numbers, lists, and yes or no are compared by their values. Otherwise a matcher that reads
    replies has the last word. Where there is none, or it has no opinion, the reply has to have the answer's words and
    no others.
    """
    plain = unframed(reply)
    verdict = same_form_as_any(question.question, question.answers, plain)
    if verdict is None and judge is not None and not is_unknowable(question) and not says_unknown(reply):
        verdict = judge.right(question, reply)
    return same_answer(plain, question.answers, question.question) if verdict is None else verdict


def unframed(reply: str) -> str:
    """A reply without what says only that somebody thinks so: It was Oslo, as far as I can tell."""
    for language in dict.fromkeys((reading_language(), "en")):
        reply = frames(language).sub("", reply)
    return reply


def same_answer(reply: str, answers: Sequence[str], question: str) -> bool:
    """Whether a reply is an accepted answer in other words: the same time, or the same content, and nothing else.

    The question's name may stand for a pronoun: Nora's uncle for her uncle.
    """
    for answer in answers:
        same = _same_content(answer, reply) or _named_instead(question, answer, reply)
        if same and not denies(reply) and not denies(answer):
            return True
        answer_spans, reply_spans = spans_of(answer), spans_of(reply)
        if answer_spans and answer_spans == reply_spans and is_date(answer) and is_date(reply):
            return True
    return False


def _same_content(answer: str, reply: str) -> bool:
    """Whether two texts have the same content words; of nothing but numbers, such as 3-1, in the same order."""
    words, other = words_of(answer), words_of(reply)
    return bool(words) and (words == other if all(map(is_number, words)) else set(words) == set(other))


def _named_instead(question: str, answer: str, reply: str) -> bool:
    """Whether answer and reply are the same but for whose it is: by a pronoun in one, by a name in the other."""
    pronoun = compiled_of_language(reading_language(), "frames")["possessive"]
    if (pronoun.search(answer) is None) == (pronoun.search(reply) is None):
        return False
    owner, answer_words, reply_words = names_in(f"¦ {question}"), content_of(answer), content_of(reply)
    named = (reply_words if pronoun.search(answer) else answer_words) & owner
    # Of two names it may be either's.
    return bool(owner) and named == owner and answer_words - owner == reply_words - owner != frozenset()
