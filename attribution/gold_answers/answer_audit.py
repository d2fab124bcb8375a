"""The audit of a conversation's gold answers: the evidence of every kind against each, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterator

from attribution.gold_answers import suspicion
from attribution.gold_answers.claim import claim_of
from attribution.gold_answers.other_event import false_premise, other_event, other_speaker
from attribution.gold_answers.other_time import other_date
from attribution.gold_answers.suspicion import Finding, Suspicion
from attribution.gold_answers.transcript import Transcript
from attribution.gold_answers.unsaid import unsaid
from attribution.text.dates import days_of
from attribution.text.languages.reading_language import in_its_language, language_of, reading
from attribution.text.phrases import is_unknown
from attribution.text.segments import CJK_CHARACTER
from tracing.systems.conversations import Conversation, Question

_SPEAKERS = 2


class Audit:
    """Audits the gold answers of one conversation; what they share is computed once. No model is asked.

    `whole` is the audit of a conversation of which this one may be the past.
    """

    def __init__(self, conversation: Conversation, whole: Audit | None = None) -> None:
        self._conversation = conversation
        self.language = language_of(turn.text for turn in conversation.turns())
        """The conversation's language, in which texts are read."""
        self._pasts: dict[int, Audit] = {}
        with reading(self.language):
            alike = whole is not None and whole.language == self.language
            self._talk: Transcript = Transcript(conversation, whole._talk if whole is not None and alike else None)
            self._days = days_of(conversation)

    def suspicions(self) -> Iterator[Suspicion]:
        """The suspicious gold answers of all questions, in their order."""
        for question in self._conversation.questions:
            suspected = self.suspicion(question)
            if suspected is not None:
                yield suspected

    def _as_of(self, question: Question) -> Audit:
        """The audit of what had been said when a question was asked."""
        past = self._conversation.until(question)
        if past is self._conversation:
            return self
        if len(past.sessions) not in self._pasts:
            self._pasts[len(past.sessions)] = Audit(past, self)
        return self._pasts[len(past.sessions)]

    def suspicion(self, question: Question, reply: str = "") -> Suspicion | None:
        """The strongest evidence that a gold answer is wrong; None if there is none that counts.

        A reply that was judged wrong counts too where it is what the conversation supports.
        """
        prior = suspicion.IN_FAILURES if reply else suspicion.IN_DATA
        counting = [finding for finding in self.findings(question, reply) if finding.strong or finding.supported]
        if not counting:
            return None
        main = max(counting, key=lambda finding: suspicion.confidence_of(finding, prior=prior))
        calibrated = suspicion.is_calibrated(main) and len(self._conversation.speakers) == _SPEAKERS
        reason = main.reason if calibrated else main.reason + suspicion.NOT_CALIBRATED
        sure = suspicion.confidence_of(main, prior=prior)
        return Suspicion(question.id, main.doubt, sure, reason, main.turns, main.supported)

    def findings(self, question: Question, reply: str = "") -> list[Finding]:
        """The evidence of every kind, weak evidence included; none for a question whose answer is not to be known.

        What was said after the question was asked is no evidence.
        """
        return self._as_of(question)._findings(question, reply)

    @in_its_language
    def _findings(self, question: Question, reply: str) -> list[Finding]:
        answerable = any(answer.strip() and not is_unknown(answer, question.question) for answer in question.answers)
        if question.unanswerable or not answerable:
            return []
        talk, claim = self._talk, claim_of(question, self._talk)
        timed = other_date(claim, reply, talk, self._days)
        if CJK_CHARACTER.search("".join((question.question, *question.answers))):
            # Pairs of characters are no words, so what is missing among them says little.
            return [timed] if timed is not None else []
        findings = (
            timed,
            other_speaker(claim, reply, talk),
            unsaid(claim, reply, talk),
            other_event(claim, reply, talk),
            false_premise(claim, reply, talk, self._days),
        )
        return [finding for finding in findings if finding is not None]
