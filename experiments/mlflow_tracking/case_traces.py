"""Which cases become traces in MLflow, and what these show: a span for each operation, and the blame as feedback on it.

A trace holds what led to the answer: the operations behind the reply, those that built the memory, and those blamed
for losing what it lacks. With every operation of the conversation, all its questions would have the same long trace.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from attribution.attributor import SURVIVAL
from experiments.display.terminal import literal
from experiments.runs.seen_cases import SeenCase
from optimizer.evaluation.scores import SplitName
from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.mlflow_traces import token_usage, values_by_role
from tracing.interchange.spans import nanoseconds
from tracing.recording.redaction import Redaction, excerpt
from tracing.strict_models import StrictModel

LONGEST_TITLE = 900
"""In characters: MLflow keeps 1,000 of a request's preview."""

_Key = tuple[str, str]
_LEGIBLE = Redaction(longest=20_000)
"""A conversation that is a span's input would be written once for each of its questions."""
_Shift = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The cases that become traces, in the same order for both sides.

    Attributes:
        baseline: the cases under the prompts that the run began with.
        champion: those under the champion; none where it is the baseline.
        titles: each question by its conversation and id; MLflow pairs two traces by this text alone, so it is unique.
        parts: split → how many of its questions are among them, and how many the baseline answered.
    """

    baseline: tuple[SeenCase, ...]
    champion: tuple[SeenCase, ...]
    titles: Mapping[_Key, str]
    parts: Mapping[SplitName, tuple[int, int]]

    def metric(self, name: str, split: SplitName) -> str:
        """What the score of a split's questions is called: their mean is the run's where it has the metric's own name.

        The test has that name, if it is there as a whole; others say their split, and how much of it is there.
        """
        here, of_all = self.parts[split]
        restrictions: list[str] = [] if (split, here) == ("test", of_all) else [split]
        if here < of_all:
            restrictions.append(f"{here} of {of_all}")
        return f"{name} ({', '.join(restrictions)})" if restrictions else name


def question_set(baseline: Sequence[SeenCase], champion: Sequence[SeenCase], most: int) -> QuestionSet:
    """At most `most` questions that both sides answered: those of the test, then those that flipped, then the rest.

    Where not all of a group has room, what is taken has right and wrong answers, kinds and splits in proportion.
    """
    alone = champion == baseline
    before_by_key, after_by_key = ({_key(seen_case): seen_case for seen_case in side} for side in (baseline, champion))
    both = {key: (before, after_by_key[key]) for key, before in before_by_key.items() if key in after_by_key}

    def group(pair: tuple[SeenCase, SeenCase]) -> int:
        if pair[0].split == "test":
            return 0
        return 1 if pair[0].case.passed != pair[1].case.passed else 2

    def stratum(pair: tuple[SeenCase, SeenCase]) -> Hashable:
        before, after = pair
        return group(pair), before.split, before.case.question.kind, before.case.passed, after.case.passed

    places = _spread([stratum(pair) for pair in both.values()])
    ranked = sorted(zip(both, places, strict=True), key=lambda pair: (group(both[pair[0]]), pair[1]))
    chosen = {key for key, _ in ranked[:most]}
    chosen_pairs = [pair for key, pair in both.items() if key in chosen]
    here = Counter(before.split for before, _ in chosen_pairs)
    of_all = Counter(seen_case.split for seen_case in baseline)
    return QuestionSet(
        tuple(before for before, _ in chosen_pairs),
        () if alone else tuple(after for _, after in chosen_pairs),
        _titles([before for before, _ in chosen_pairs]),
        {split: (count, of_all[split]) for split, count in here.items()},
    )


def _spread(strata: Sequence[Hashable]) -> list[float]:
    """A place from 0 to 1 for each, so that every beginning of the order has the strata in proportion."""
    sizes, counts = Counter(strata), Counter[Hashable]()
    places = []
    for stratum in strata:
        places.append((counts[stratum] + 0.5) / sizes[stratum])
        counts[stratum] += 1
    return places


def _titles(cases: Sequence[SeenCase]) -> dict[_Key, str]:
    """The questions as they were put; one that was put several times says where."""
    titles = {_key(seen_case): excerpt(seen_case.case.question.question, LONGEST_TITLE) for seen_case in cases}
    for part in (0, 1):  # the conversation, and if that is the same too, the question's id
        by_title: dict[str, list[SeenCase]] = defaultdict(list)
        for seen_case in cases:
            by_title[titles[_key(seen_case)]].append(seen_case)
        for title, alike in by_title.items():
            for seen_case in alike if len(alike) > 1 else ():
                titles[_key(seen_case)] = f"{title} · {excerpt(_key(seen_case)[part], 40)}"
    return titles


def _key(seen_case: SeenCase) -> _Key:
    return seen_case.case.conversation, seen_case.case.question.id


class CaseSpan(StrictModel):
    """An operation as a span; times are in nanoseconds since the epoch, moved as `CaseTrace` says."""

    operation: str
    name: str
    parent: str | None
    kind: str
    start: int
    end: int
    failed: str | None
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    attributes: Mapping[str, Any]


class CaseFeedback(StrictModel):
    """An assessment; `operation` is the one whose span it is on, None for the whole trace."""

    name: str
    value: float | str
    source: str
    operation: str | None = None
    rationale: str | None = None
    metadata: Mapping[str, str] = {}


class CaseTrace(StrictModel):
    """A case as a trace.

    A memory may be built long before it is asked. The trace has the time of the work alone: what came before a pause is
    moved to its end, and every span says when it really began.

    Attributes:
        name: of the trace.
        asked: the question as MLflow lists it, unlike all others of its set.
        prompts: name in the registry → digest of the text that made it.
    """

    name: str
    asked: str
    tags: Mapping[str, str]
    conversation: str
    question: str
    answers: tuple[str, ...]
    reply: str
    spans: tuple[CaseSpan, ...]
    feedback: tuple[CaseFeedback, ...]
    prompts: Mapping[str, str] = {}
    mark: str = ""

    def marked(self) -> CaseTrace:
        """The same with its mark: what it shows, without times and costs, which a resumed run has otherwise."""
        content = self.model_dump_json(exclude={"mark": True, "spans": {"__all__": {"start", "end", "attributes"}}})
        return self.model_copy(update={"mark": hashlib.sha256(content.encode()).hexdigest()[:32]})


def case_traces(
    side: str,
    cases: Sequence[SeenCase],
    questions: QuestionSet,
    *,
    metric: str,
    method: str,
    prompts: Mapping[str, str],
) -> Iterator[CaseTrace]:
    """The traces of a side's cases, which `method` attributed; `prompts` made them, as `CaseTrace.prompts` says."""
    source = "information survival" if method == SURVIVAL else method
    for seen_case in cases:
        case, attribution = seen_case.case, seen_case.attribution
        blames = attribution.decisive if attribution is not None else ()
        spans = _spans(seen_case.graph, case.prediction, [blame.operation_id for blame in blames])
        there = {span.operation for span in spans}
        name = questions.metric(metric, seen_case.split)
        feedback = [CaseFeedback(name=name, value=case.judgement.score, source="memtune judge")]
        for blame in blames:
            feedback.append(
                CaseFeedback(
                    name="blame",
                    value=blame.operation,
                    source=f"memtune {source}",
                    operation=blame.operation_id if blame.operation_id in there else None,
                    rationale=literal(f"{blame.error_type}: {blame.reason}"),  # the UI shows it as Markdown
                    metadata={"error_type": blame.error_type, "confidence": f"{blame.confidence:g}"},
                )
            )
        yield CaseTrace(
            name=f"{side} {case.conversation} {case.question.id}",
            asked=questions.titles[case.conversation, case.question.id],
            tags={"memtune.side": side, "memtune.split": seen_case.split, "memtune.passed": str(case.passed).lower()},
            conversation=case.conversation,
            question=case.question.question,
            answers=case.question.answers,
            reply=case.reply,
            spans=tuple(spans),
            feedback=tuple(feedback),
            prompts=prompts,
        ).marked()


def _spans(graph: ExecutionGraph, prediction: str | None, blamed: Sequence[str | None]) -> list[CaseSpan]:
    behind = graph.backward_slice(prediction).operations if prediction in graph.variables else {}
    names = {*behind, *(operation for operation in blamed if operation in graph.operations)}
    # An outer operation is recorded after the inner one, but a span needs its parent first.
    ordered = sorted(
        (graph.operations[name] for name in names), key=lambda operation: (operation.started, -(operation.ended or 0))
    )
    shift = _without_pauses([_times(operation) for operation in ordered])
    return [_span(graph, operation, shift) for operation in ordered]


def _without_pauses(times: Sequence[tuple[int, int]]) -> _Shift:
    """Gives how far to move what begins at a moment, if nothing is to happen between no two of these in order."""
    pauses: list[tuple[int, int]] = []
    busy_until = times[0][1] if times else 0
    for start, end in times:
        if start > busy_until:
            pauses.append((start, start - busy_until))
        busy_until = max(busy_until, end)
    return lambda moment: sum(length for start, length in pauses if start > moment)


def _times(operation: Operation) -> tuple[int, int]:
    start = nanoseconds(operation.started)
    return start, max(start, nanoseconds(operation.ended)) if operation.ended is not None else start


def _span(graph: ExecutionGraph, operation: Operation, shift: _Shift) -> CaseSpan:
    start, end = _times(operation)
    moved = shift(start)
    attributes = dict(operation.attributes)
    attributes["memtune.began"] = datetime.fromtimestamp(start / 1e9, UTC).isoformat(timespec="milliseconds")
    if operation.calls:
        attributes |= {"model": operation.model, "calls": operation.calls, "calls from cache": operation.cached_calls}
        attributes |= token_usage(operation)
    return CaseSpan(
        operation=operation.id,
        name=operation.name,
        parent=operation.parent,
        kind=operation.kind,
        start=start + moved,
        end=end + moved,
        failed=operation.error,
        inputs=_LEGIBLE.value(values_by_role(graph, operation.inputs)),
        outputs=_LEGIBLE.value(values_by_role(graph, operation.outputs)),
        attributes=attributes,
    )
