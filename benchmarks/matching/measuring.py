"""What matchers make of the pairs and the replies: right verdicts by kind and language, and the time of one."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attribution.judging.words import judge
from attribution.survival.matching.known_verdicts import ClaimPair
from attribution.survival.matching.matcher import Claim, JudgesReplies, Matcher, Passage
from attribution.survival.needs import Need
from attribution.survival.verdicts.mistakes import said_right
from attribution.text.content import content_of
from benchmarks.matching.pairs import LANGUAGES, conversation_of
from benchmarks.matching.replies import JudgedReply
from experiments.bench.attribution import Progress
from tracing.systems.conversations import Conversation, Question

Make = Callable[[Conversation], Matcher]


def measure_matcher(
    make: Make, pairs: Sequence[ClaimPair], replies: Sequence[JudgedReply], progress: Progress
) -> dict[str, Any]:
    """How a matcher does on pairs and on replies.

    Args:
        make: makes it for a conversation.
        pairs, replies: what to measure it on; none of either leaves its keys out.
        progress: called with what is judged, how many of it, and of how many.

    Keys of the result:
        pairs: kind → language or "all" → n, and right, the share of right verdicts.
        balanced: mean of the shares of right verdicts on pairs that carry the claim and on pairs that do not.
        replies: kind, "free" (all in free words) or "all" (all others) → n and pardoned, the share of right replies
            told from wrong ones, and wrong and false_pardons, the same of wrong replies; and as_format, the share of
            right replies that words count as right in a form that was not asked for.
        check_s: seconds of the first verdict of each matcher, before which one that asks a model may try it.
        ms_per_pair, ms_per_reply: means over all, once that is done; with what is cached.
    """
    matchers = {
        language: make(conversation_of([pair for pair in pairs if pair.language == language])) for language in LANGUAGES
    }
    started = time.perf_counter()
    for pair in {pair.language: pair for pair in pairs}.values():
        _is_right(matchers[pair.language], pair)
    reader = matchers[LANGUAGES[0]]
    if replies and isinstance(reader, JudgesReplies):
        # Asked itself, since values may decide the first reply.
        reader.right(_question_of(replies[0]), replies[0].reply)
    figures: dict[str, Any] = {"check_s": time.perf_counter() - started}
    if pairs:
        figures |= _measure_pairs(matchers, pairs, progress)
    if replies:
        figures |= _measure_replies(reader, replies, progress)
    return figures


def _measure_pairs(matchers: Mapping[str, Matcher], pairs: Sequence[ClaimPair], progress: Progress) -> dict[str, Any]:
    verdicts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    carried: dict[bool, list[bool]] = {True: [], False: []}
    started = time.perf_counter()
    for done, pair in enumerate(pairs, start=1):
        is_right = _is_right(matchers[pair.language], pair)
        for language in (pair.language, "all"):
            verdicts[pair.kind, language].append(is_right)
        carried[pair.carries].append(is_right)
        progress("pairs", done, len(pairs))
    spent = time.perf_counter() - started
    by_kind: dict[str, dict[str, Any]] = defaultdict(dict)
    for (kind, language), right in verdicts.items():
        by_kind[kind][language] = {"n": len(right), "right": _share(right)}
    return {
        "pairs": by_kind,
        "balanced": sum(map(_share, carried.values())) / 2,
        "ms_per_pair": spent * 1000 / len(pairs),
    }


def _is_right(matcher: Matcher, pair: ClaimPair) -> bool:
    question = Question(id="q", question=pair.question, answers=(pair.answer,), evidence=())
    need = Need((content_of(pair.answer),), (), pair.answer)
    (grade,) = matcher.grades(Claim(question, need), [Passage(pair.text, traced=True)])
    return grade.carries == pair.carries


def _measure_replies(matcher: Matcher, replies: Sequence[JudgedReply], progress: Progress) -> dict[str, Any]:
    rows: dict[str, dict[bool, list[tuple[bool, bool]]]] = defaultdict(lambda: {True: [], False: []})
    started = time.perf_counter()
    for done, reply in enumerate(replies, start=1):
        right = _is_pardoned(matcher, reply)
        in_form = judge(reply.reply, (reply.answer,)).contains == 1
        for kind in (reply.kind, "free" if reply.kind.startswith("free") else "all"):
            rows[kind][reply.right].append((right, in_form))
        progress("replies", done, len(replies))
    spent = time.perf_counter() - started
    return {"replies": {kind: _row(both) for kind, both in rows.items()}, "ms_per_reply": spent * 1000 / len(replies)}


def _is_pardoned(matcher: Matcher, reply: JudgedReply) -> bool:
    return said_right(_question_of(reply), reply.reply, matcher if isinstance(matcher, JudgesReplies) else None)


def _question_of(reply: JudgedReply) -> Question:
    return Question(id="q", question=reply.question, answers=(reply.answer,), evidence=())


def _row(both: Mapping[bool, list[tuple[bool, bool]]]) -> dict[str, Any]:
    return {
        "n": len(both[True]),
        "pardoned": _share(said for said, _ in both[True]),
        "as_format": _share(in_form and not said for said, in_form in both[True]),
        "wrong": len(both[False]),
        "false_pardons": _share(said for said, _ in both[False]),
    }


def _share(hits: Iterable[bool]) -> float:
    listed = list(hits)
    return sum(listed) / len(listed) if listed else 0.0
