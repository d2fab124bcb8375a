"""The page's server: what it shows of the traces, and what annotators say."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

from attribution.cases import OUTSIDE_THE_SYSTEM
from experiments.annotating.annotator_agreement import agreement_of
from experiments.annotating.attribution_methods import Methods
from experiments.annotating.label_export import export
from experiments.annotating.labels import (
    ERROR_TYPES,
    CaseId,
    Label,
    LabelError,
    LabelStore,
    annotator_from,
    assessment_from,
)
from experiments.annotating.page_content import (
    element,
    safe,
    shown_case,
    shown_entry,
    shown_explanation,
    shown_label,
    timeline,
)
from experiments.annotating.page_server import Handler, PageServer, documents
from experiments.annotating.workspace import NotReadYetError, Workspace

_FILES = ("annotate.js", "case.js", "parts.js", "views.js", "annotate.css")


class AnnotationServer(PageServer):
    """Serves the page and what it asks for."""

    def __init__(
        self,
        workspace: Workspace,
        store: LabelStore,
        methods: Methods,
        *,
        exports: Path,
        port: int | None = None,
        key: str | None = None,
        annotator: str = "",
    ) -> None:
        """Bind the port without serving yet, as `PageServer` does; raises as it does.

        `exports` is the folder that an export from the page is written to.
        """
        self._workspace, self._store, self._methods, self._exports = workspace, store, methods, exports
        handlers: dict[str, Handler] = {
            "GET /v1/overview": lambda body: self._overview(),
            "POST /v1/standing": self._standing,
            "POST /v1/timeline": lambda body: timeline(self._workspace.graph(str(body["graph"])).recording),
            "POST /v1/case": self._case,
            "POST /v1/element": self._element,
            "POST /v1/explain": self._explain,
            "POST /v1/label": self._label,
            "POST /v1/undo": self._undo,
            "GET /v1/agreement": lambda body: self._agreement(),
            "POST /v1/export": self._export,
        }
        parts, later = documents("annotate.html", _FILES), (NotReadYetError,)
        super().__init__(handlers, parts, port=port, key=key, annotator=annotator, later=later)

    def start(self) -> None:
        """Serve in a background thread, while the traces are read in another."""
        super().start()
        self._workspace.start()

    def close(self) -> None:
        """Stop serving."""
        self._workspace.stop()
        super().close()

    def _overview(self) -> Mapping[str, Any]:
        workspace = self._workspace
        order = {entry.id: place for place, entry in enumerate(workspace.queue())}
        return {
            "done": workspace.done,
            "methods": self._methods.names(),
            "error_types": [[name, name in OUTSIDE_THE_SYSTEM] for name in ERROR_TYPES],
            "graphs": [
                {
                    "id": trace.id,
                    "name": safe(trace.name),
                    "problem": safe(trace.problem) if trace.problem else None,
                    "read": trace.is_read,
                    "operations": trace.operations,
                    "variables": trace.variables,
                    "cases": [shown_entry(entry, order.get(entry.id)) for entry in trace.entries],
                }
                for trace in workspace.traces.values()
            ],
        }

    def _standing(self, body: Any) -> Mapping[str, Any]:
        """Who has labelled how much, and the asker's own labels."""
        name = annotator_from(body)
        labels = [label for label in self._store.in_force() if label.case in self._workspace.entries]
        own = [label for label in labels if label.annotator == name]
        return {
            "state": self._store.state(),
            "mine": {_case_key(label): shown_label(label) for label in own},
            "others": Counter(_case_key(label) for label in labels if label.annotator != name),
            "counts": Counter(label.annotator for label in labels),
            "open": sum(entry.state != "right" for entry in list(self._workspace.entries.values())),
        }

    def _case(self, body: Any) -> Mapping[str, Any]:
        case, name = _case_id(body), annotator_from(body)
        content = shown_case(self._workspace, case)
        return {**content, **self._labels_of(name, case)}

    def _labels_of(self, name: str, case: CaseId) -> Mapping[str, Any]:
        """An annotator's own revisions of a case; what others say is shown only to who has labelled it too."""
        history = self._store.history(name, case)
        mine = history[-1] if history and history[-1].in_force else None
        others = [label for label in self._store.in_force() if label.case == case and label.annotator != name]
        return {
            "mine": shown_label(mine) if mine is not None else None,
            "history": [shown_label(label) for label in reversed(history)],
            "others": [shown_label(label) for label in others] if mine is not None else None,
            "others_count": len(others),
        }

    def _element(self, body: Any) -> Mapping[str, Any]:
        return element(self._workspace.graph(str(body["graph"])).recording.graph, str(body["id"]))

    def _explain(self, body: Any) -> Mapping[str, Any]:
        case = _case_id(body)
        explanation = self._methods.explain(case, str(body["method"]))
        return shown_explanation(explanation, self._workspace.graph(case.trace).recording)

    def _label(self, body: Any) -> Mapping[str, Any]:
        case, name = _case_id(body), annotator_from(body)
        if self._workspace.entry(case).state == "right":
            raise LabelError("case: its reply was judged right; only wrong answers are labelled")
        assessment = assessment_from(body, self._workspace.graph(case.trace).recording.graph)
        trace_name = self._workspace.traces[case.trace].name
        self._store.add(name, case, assessment, request=_request_id(body), trace_name=trace_name)
        return self._labels_of(name, case)

    def _undo(self, body: Any) -> Mapping[str, Any]:
        case, name = _case_id(body), annotator_from(body)
        self._store.undo(name, case, request=_request_id(body))
        return self._labels_of(name, case)

    def _agreement(self) -> Mapping[str, Any]:
        report = agreement_of(self._store.in_force(), self._workspace.traces)
        entries = self._workspace.entries
        return {
            **asdict(report),
            "pairs": list(map(astuple, report.pairs)),
            "disputed": [
                {"graph": case.trace, "case": case.case, "question": safe(entries[case].question)}
                for case in report.disputed
                if case in entries
            ],
        }

    def _export(self, body: Any) -> Mapping[str, Any]:
        labels = self._store.in_force()
        if body.get("only_mine"):
            name = annotator_from(body)
            labels = [label for label in labels if label.annotator == name]
        written = export(self._workspace, labels, self._exports)
        return {
            "line": safe(written.line()),
            "folder": safe(str(self._exports.resolve())) if written.files else None,
            "command": f"memtune bench attribution --suite {safe(str(self._exports))} --method survival",
        }


def _case_id(body: Any) -> CaseId:
    return CaseId(str(body["graph"]), str(body["case"]))


def _case_key(label: Label) -> str:
    return f"{label.case.trace}/{label.case.case}"


def _request_id(body: Any) -> str:
    """The page's own number of a request, by which one that is sent twice counts once."""
    return str(body.get("request") or secrets.token_urlsafe(12))[:80]
