"""How often a method of attribution is right on wrong answers whose decisive operation people labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attribution.attributor import Attributor, GuardedAttributor
from attribution.cases import Attribution, Blame
from attribution.confidence_intervals import clustered_interval
from attribution.labels import FaultLabel, UnreadLabels, labels_in
from attribution.recordings import Recording, recording_of
from tracing.errors import TraceError
from tracing.interchange import smartcomment

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess

Progress = Callable[[str, int, int], None]
"""Called with a phase, what is done of it and its total."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    label: FaultLabel
    attribution: Attribution

    @property
    def main(self) -> Blame | None:
        return self.attribution.main

    @property
    def type_right(self) -> bool:
        return self.main is not None and self.main.error_type == self.label.error_type

    @property
    def operation_right(self) -> bool:
        return self.main is not None and self.main.operation_id in self.label.operation_ids


def measure_attribution(
    suite: Path, make: Callable[[Recording], Attributor], access: ModelAccess | None, progress: Progress
) -> tuple[dict[str, Any], list[str]]:
    """Attribute the labelled cases of an annotated graph, or of all in and under a folder, and score the verdicts.

    Returns:
        Plain JSON, and what a reader of it must know of labels that were not read, or not wholly. Keys:
        n: cases. eta: share of them with the right error type. oia: share of the oia_n cases with a known operation
            where it is named. eta_ci, oia_ci: 95 % intervals over conversations, or over cases of fewer than ten.
        majority_eta: accuracy of always naming the most frequent type. failed: cases where the method, or
            a model call that it made, failed.
        by_type: n, eta, oia and oia_n of each type that occurs or was named; `precision` is the share of the cases
            where it was named that have it (None if it never was).
        cases: one row for each.

    Raises:
        TraceError: a file cannot be read as such a graph, or there is no annotated case at all.
    """
    unread, verdicts, failed = UnreadLabels([], []), list[_Verdict](), 0
    files = sorted(suite.rglob("*.json")) if suite.is_dir() else [suite]
    for number, file in enumerate(files):
        progress("attribution, graph", number, len(files))
        try:
            recording = recording_of(smartcomment.load(file), file.stem)
        except TraceError as error:
            if file == suite:
                raise
            unread.skipped.append(str(error))
            continue
        method = GuardedAttributor(lambda recording=recording: make(recording))  # type: ignore[misc]
        for case, label in labels_in(recording, str(file), unread):
            method.trouble = None
            with access.watch() if access is not None else nullcontext() as watch:
                verdicts.append(_Verdict(label, method.attribute(case)))
            failed += method.trouble is not None or bool(watch is not None and watch.failures)
    if not verdicts:
        why = f" ({unread.skipped[0]})" if unread.skipped else ""
        raise TraceError(f"{suite}: holds no case with a label{why}; give a smartcomment file with data.annotations")
    named = Counter(verdict.main.error_type for verdict in verdicts if verdict.main is not None)
    true = Counter(verdict.label.error_type for verdict in verdicts)
    by_type: dict[str, Any] = {}
    for error_type in sorted({*true, *named}):
        own = [verdict for verdict in verdicts if verdict.label.error_type == error_type]
        right = sum(verdict.type_right for verdict in own)
        precision = right / named[error_type] if named[error_type] else None
        by_type[error_type] = {**_shares(own), "named": named[error_type], "precision": precision}
    figures = {
        **_shares(verdicts, intervals=True),
        "majority_eta": max(true.values()) / len(verdicts),
        "failed": failed,
        "by_type": by_type,
        "cases": [_row(verdict) for verdict in verdicts],
    }
    return figures, [
        *(f"skipped: {line}" for line in unread.skipped),
        *(f"doubtful: {line}" for line in unread.doubts),
    ]


def _shares(verdicts: Sequence[_Verdict], *, intervals: bool = False) -> dict[str, Any]:
    located = [verdict for verdict in verdicts if verdict.label.operation_ids]
    shares: dict[str, Any] = {"n": len(verdicts), "oia_n": len(located)}
    for key, group, hits in (
        ("eta", verdicts, [verdict.type_right for verdict in verdicts]),
        ("oia", located, [verdict.operation_right for verdict in located]),
    ):
        shares[key] = sum(hits) / len(hits) if hits else None
        if intervals and hits:
            conversations = [verdict.attribution.case.conversation for verdict in group]
            shares[f"{key}_ci"] = list(clustered_interval(hits, conversations, seed=0))
    return shares


def _row(verdict: _Verdict) -> dict[str, Any]:
    case, main = verdict.attribution.case, verdict.main
    return {
        "conversation": case.conversation,
        "question_id": case.question.id,
        "question": case.question.question,
        "gold_type": verdict.label.error_type,
        "gold_operation_ids": list(verdict.label.operation_ids),
        "type": main.error_type if main else None,
        "operation": main.operation if main else None,
        "operation_id": main.operation_id if main else None,
        "confidence": main.confidence if main else None,
        "reason": main.reason if main else verdict.attribution.abstained,
        "type_right": verdict.type_right,
        "operation_right": verdict.operation_right if verdict.label.operation_ids else None,
    }
