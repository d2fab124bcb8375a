"""How many spoiled gold answers a method finds, and how many sound ones it accuses."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from attribution.attributor import Attributor
from attribution.confidence_intervals import clustered_interval
from attribution.recordings import Recording
from benchmarks.attribution_scores import calibration_error
from benchmarks.gold_answers.spoiling import SPOILINGS
from benchmarks.gold_answers.suite import AnnotatedCase
from tracing.systems.conversations import Conversation

Accuser = Callable[[AnnotatedCase], float | None]
"""How sure a method is that a case's gold answer is wrong; None where it does not say so."""

_WORD = re.compile(r"\w{4,}|\d+")


def by_attribution(make: Callable[[Recording], Attributor]) -> Accuser:
    """A method of attribution: it accuses the gold answer where its main blame is an AnnotationError."""
    attributors: dict[Recording, Attributor] = {}

    def accuse(annotated: AnnotatedCase) -> float | None:
        if annotated.recording not in attributors:
            attributors[annotated.recording] = make(annotated.recording)
        main = attributors[annotated.recording].attribute(annotated.case).main
        return main.confidence if main is not None and main.error_type == "AnnotationError" else None

    return accuse


def not_in_evidence(annotated: AnnotatedCase) -> float | None:
    """Baseline: no longer word of the gold answer is in the cited turns."""
    return _unsaid(annotated, set(annotated.case.question.evidence))


def not_in_conversation(annotated: AnnotatedCase) -> float | None:
    """Baseline: no longer word of the gold answer is anywhere in the conversation."""
    return _unsaid(annotated, {turn.id for turn in annotated.recording.conversation.turns()})


def measure(accuse: Accuser, cases: Sequence[AnnotatedCase], *, seed: int) -> dict[str, Any]:
    """Ask a method about every case; everything in the result is plain JSON.

    Keys:
        n, spoiled, sound: numbers of cases. found: share of the spoiled ones that are accused. accused: share of the
        sound ones that are; accused_n: how many; accused_questions: which, to be read, since data sets have wrong
        answers of their own. precision: share of the accused that are spoiled; None if none is.
        found_ci, accused_ci, precision_ci: 95 % bootstrap intervals over conversations (over cases of fewer than ten).
        by_spoiling: n and found by kind. sure_of_wrong: mean confidence of the accusations of sound answers.
        ece: calibration error of the confidences of all accusations.
        ms_per_case: mean processor time, the first case of each conversation left out, since it prepares what they
        share; ms_preparing: what that one takes, on average.

    Raises:
        ValueError: no spoiled case, or no sound one.
    """
    confidences: list[float | None] = []
    first: list[float] = []
    later: list[float] = []
    seen: set[Recording] = set()
    for annotated in cases:
        begun = time.process_time()
        confidences.append(accuse(annotated))
        (later if annotated.recording in seen else first).append((time.process_time() - begun) * 1000)
        seen.add(annotated.recording)
    verdicts = list(zip(cases, confidences, strict=True))
    kinds: dict[str, list[bool]] = defaultdict(list)
    for annotated, sure in verdicts:
        if annotated.spoiling is not None:
            kinds[annotated.spoiling].append(sure is not None)
    found = [(annotated, sure is not None) for annotated, sure in verdicts if annotated.spoiling is not None]
    accused = [(annotated, sure is not None) for annotated, sure in verdicts if annotated.spoiling is None]
    precise = [(annotated, annotated.spoiling is not None) for annotated, sure in verdicts if sure is not None]
    said = [(sure, annotated.spoiling is not None) for annotated, sure in verdicts if sure is not None]
    wrong = [sure for sure, right in said if not right]
    if not found or not accused:
        raise ValueError("figures need spoiled gold answers and sound ones")
    return {
        "n": len(cases),
        "spoiled": len(found),
        "sound": len(accused),
        **_share("found", found, seed),
        **_share("precision", precise, seed),
        **_share("accused", accused, seed),
        "accused_n": sum(hit for _, hit in accused),
        "accused_questions": [
            {
                "conversation": annotated.recording.conversation.id,
                "question": annotated.case.question.id,
                "confidence": sure,
            }
            for annotated, sure in verdicts
            if annotated.spoiling is None and sure is not None
        ],
        "by_spoiling": {
            kind: {"n": len(kinds[kind]), "found": _mean(kinds[kind])} for kind in SPOILINGS if kinds[kind]
        },
        "sure_of_wrong": _mean(wrong) if wrong else None,
        "ece": calibration_error(said),
        "ms_per_case": _mean(later) if later else None,
        "ms_preparing": _mean(first),
    }


def _unsaid(annotated: AnnotatedCase, turns: set[str]) -> float | None:
    conversation: Conversation = annotated.recording.conversation
    said = "\n".join(turn.text for turn in conversation.turns() if turn.id in turns).casefold()
    words = _WORD.findall(annotated.case.question.answers[0].casefold())
    return 0.5 if words and not any(word in said for word in words) else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _share(key: str, hits: Sequence[tuple[AnnotatedCase, bool]], seed: int) -> dict[str, Any]:
    """The share of hits and its interval; both None of no cases."""
    if not hits:
        return {key: None, f"{key}_ci": None}
    values, conversations = [hit for _, hit in hits], [annotated.recording.conversation.id for annotated, _ in hits]
    interval = clustered_interval(values, conversations, seed=seed)
    return {key: _mean(values), f"{key}_ci": list(interval)}
