"""Demonstrations bootstrapped from passing cases: recorded inputs of an operation, with what it should reply.

After DSPy's BootstrapFewShot (Khattab et al. 2023), with two differences that a small model needs: the inputs are
cropped to the lines that matter, and replies are kept only if the case proves them right. A small model
copies demonstrations literally, so each is gated like any other rewrite.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from attribution.text.tokens import contains, word_count, words
from optimizer.proposers.examples import Example, event_in
from optimizer.proposers.rewrites import Demonstration, Means, Rewrite, RewriteRequest, new_rewrites
from optimizer.proposers.template import Parts, take_apart
from optimizer.proposers.turns import by_turns
from tracing.systems.layouts import Item
from tracing.systems.protocol import Stage

DEMONSTRATIONS = "demonstrations"
"""The name of their proposer."""

MOST_TOKENS = 100
"""Longest demonstration, at about four characters per token: on a CPU, a small model's cost is the prompt."""

_POOL = 8
"""Number of demonstrations, best first, from which combinations are drawn."""

_SIZES: dict[str, tuple[int, ...]] = {"extract": (1, 2), "update": (2, 1), "answer": (2, 1)}
"""How many demonstrations to try first: a single example of a choice (an event, known or unknown) teaches it always."""


def demonstrations_of(stage: Stage, passed: Sequence[Example], most: int = MOST_TOKENS) -> list[Demonstration]:
    """Every usable demonstration of at most `most` tokens in the recorded executions, each once, shortest first."""
    makers = {"answer": _of_answers, "extract": _of_extractions, "update": _of_decisions}
    if stage not in makers:
        return []
    usable = dict.fromkeys(demonstration for demonstration in makers[stage](passed) if demonstration.tokens <= most)
    return sorted(
        usable,
        key=lambda demonstration: (demonstration.tokens, demonstration.conversation, demonstration.question),
    )


class DemonstrationProposer:
    """Puts one or two demonstrations before the data, in the template's layout.

    Args:
        train: ids of the train conversations; examples from others are ignored, whatever the request holds.
    """

    name = DEMONSTRATIONS

    def __init__(self, train: Collection[str]) -> None:
        self._train = frozenset(train)

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        """At most `request.count` texts; none if no passing case is short enough."""
        passed = [example for example in request.passed if example.case.conversation in self._train]
        pool = self._ranked(demonstrations_of(request.stage, passed), request)
        parts = take_apart(request.text)
        if not parts.data:
            # The system adds the data in its own layout, which a demonstration would have to share.
            return []
        names = request.prompt.contract.placeholders
        usable = (
            chosen
            for chosen in _candidate_sets(pool, request)
            if all(names <= demonstration.values.keys() for demonstration in chosen)
        )
        return new_rewrites(request, self.name, (_text_and_reason(parts, chosen) for chosen in usable))

    def _ranked(self, demonstrations: list[Demonstration], request: RewriteRequest) -> list[Demonstration]:
        """The kinds of case that fail most come first; the best of each kind before the second of any."""
        failing = Counter(_kind(request.stage, example) for example in request.failed)
        shuffled = list(demonstrations)
        random.Random(request.seed).shuffle(shuffled)  # noqa: S311 (order among equals)
        # Lengths in steps of twenty tokens: among about equally short ones the seed decides.
        ordered = sorted(shuffled, key=lambda demonstration: demonstration.tokens // 20)
        turn: Counter[str] = Counter()
        places: list[tuple[int, int, Demonstration]] = []
        for demonstration in ordered:
            places.append((turn[demonstration.kind], -failing[demonstration.kind], demonstration))
            turn[demonstration.kind] += 1
        return [demonstration for _, _, demonstration in sorted(places, key=lambda place: place[:2])]


def demonstrations(means: Means) -> DemonstrationProposer:
    """Demonstrations from passing train cases."""
    return DemonstrationProposer([conversation.id for conversation in means.train])


def _text_and_reason(parts: Parts, chosen: Sequence[Demonstration]) -> tuple[str, str]:
    """The text with these demonstrations, and the reason for it."""
    sources = ", ".join(f"{demonstration.kind} ({demonstration.question})" for demonstration in chosen)
    text = parts.with_filled((demonstration.values, demonstration.reply) for demonstration in chosen).text
    return text, f"demonstrations from passing cases: {sources}"


def _candidate_sets(pool: Sequence[Demonstration], request: RewriteRequest) -> Iterator[tuple[Demonstration, ...]]:
    """Sets to try: sizes in turn, best first; two demonstrations differ in kind and conversation where they can."""
    best = [demonstration for demonstration in pool if demonstration.kind != "unknown"][:_POOL]
    unknown = [demonstration for demonstration in pool if demonstration.kind == "unknown"][:2]
    # "Unknown" goes last and never alone: a small model would say nothing else.
    pairs = [(first, second) for first in best for second in unknown]
    mixed = list(combinations(best, 2))
    mixed.sort(key=lambda pair: (pair[0].kind == pair[1].kind, pair[0].conversation == pair[1].conversation))
    by_size: dict[int, list[tuple[Demonstration, ...]]] = {
        1: [(demonstration,) for demonstration in best],
        2: [*pairs[:2], *mixed, *pairs[2:]],
    }
    return by_turns(by_size[size] for size in _SIZES.get(request.stage, ()))


def _kind(stage: Stage, example: Example) -> str:
    if stage == "update":
        expected = "UPDATE" if example.case.question.supersedes else "ADD"
        return "DELETE" if example.wants_unknown else expected
    return "unknown" if example.wants_unknown else example.case.question.kind


def _demonstration(example: Example, replaced: Mapping[str, Sequence[str]], reply: str, kind: str) -> Demonstration:
    """An example with `replaced` in the placeholders named there, and its own inputs in the others."""
    own = {name: [item.text for item in items] for name, items in example.parts.items()}
    texts = {**dict.fromkeys(sorted(example.prompt.contract.placeholders), ()), **own, **replaced}
    inputs = tuple((name, example.prompt.layout.fill(name, texts_of_input)) for name, texts_of_input in texts.items())
    return Demonstration(inputs, reply, example.case.conversation, kind, example.case.question.id)


def _of_answers(passed: Sequence[Example]) -> Iterator[Demonstration]:
    for example in passed:
        question = example.case.question
        query, context = example.placeholder("query"), example.placeholder("context", "memory_entry")
        hits = [item.text for item in example.parts.get(context or "", ())]
        near = question.near_miss.value if question.near_miss else ""
        if example.wants_unknown:
            memories = hits[:2]
        else:
            telling = [text for text in hits if any(contains(text, answer) for answer in question.answers)][:1]
            if not telling:
                continue
            others = sorted((text for text in hits if text not in telling), key=lambda text: not contains(text, near))
            memories = [text for text in hits if text in (*telling, *others[:1])]
        # The case proves the value right, not the sentence around it: a long reply is shown as the value alone.
        reply = example.output if word_count(example.output) <= 4 else question.answers[0]
        replaced = {
            name: texts for name, texts in ((context, memories), (query, [question.question])) if name is not None
        }
        yield _demonstration(example, replaced, reply.strip().rstrip("."), _kind("answer", example))


def _of_decisions(passed: Sequence[Example]) -> Iterator[Demonstration]:
    for example in passed:
        kind = _kind("update", example)
        # If a system's decisions are not events, its reply is trusted: the answer was right.
        if event_in(example.output) in (kind, None):
            yield _demonstration(example, {}, example.output, kind)


def _of_extractions(passed: Sequence[Example]) -> Iterator[Demonstration]:
    executions: dict[tuple[str, str, str], list[Example]] = {}
    for example in passed:
        read = example.placeholder("message")
        if read is not None:
            key = (example.case.conversation, example.inputs[read], example.output)
            executions.setdefault(key, []).append(example)
    for group in executions.values():
        # A recording is shown as correct only if it holds the answer of every question that depends on it.
        proven = [example for example in group if not example.wants_unknown]
        if not proven or not all(_holds_answer(example) for example in proven):
            continue
        first = proven[0]
        read = first.placeholder("message") or ""
        for size in (3, 2, 1):
            turns = _evidence(first.parts[read], proven, size)
            facts = _facts_of(proven, turns)
            if turns and facts:
                reply = first.prompt.reply(first.parts, facts)
                yield _demonstration(first, {read: [item.text for item in turns]}, reply, _kind("extract", first))


def _holds_answer(example: Example) -> bool:
    return any(contains(example.output, answer) for answer in example.case.question.answers)


def _evidence(turns: Sequence[Item], proven: Sequence[Example], size: int) -> list[Item]:
    evidence = [turn for example in proven for turn in example.case.question.evidence]
    named = dict.fromkeys(turn for turn in evidence if any(item.name == turn for item in turns))
    chosen = list(named)[:size]
    return [item for item in turns if item.name in chosen] if len(chosen) == size else []


def _facts_of(proven: Sequence[Example], turns: Sequence[Item]) -> list[Item]:
    """The recorded facts that name a speaker and come from the kept turns; none where an answer would be missing."""
    names = {item.name for item in turns}
    speakers = [item.text.partition(":")[0] for item in turns]
    answers = [
        example.case.question.answers for example in proven if names.intersection(example.case.question.evidence)
    ]
    turn_words = set(words(" ".join(item.text for item in turns)))
    facts: list[Item] = []
    for fact in proven[0].statements:
        own = words(fact.text)
        close = bool(own) and sum(word in turn_words for word in own) >= 0.7 * len(own)
        telling = any(contains(fact.text, answer) for group in answers for answer in group)
        if (telling or close) and any(contains(fact.text, speaker) for speaker in speakers):
            facts.append(fact)
    complete = all(any(contains(fact.text, answer) for fact in facts for answer in group) for group in answers)
    return facts if complete else []
