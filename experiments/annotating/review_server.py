"""The server of the page on which people review generated questions: the rows, decisions on several, agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from experiments.annotating.page_content import safe
from experiments.annotating.page_server import Handler, PageServer, documents
from experiments.annotating.row_reviews import Review, RowReviews
from experiments.data.splits import test_ids
from tracing.errors import DataError
from tracing.systems.conversations import Conversation, Question, first_problem

_FILES = ("review.js", "parts.js", "annotate.css", "review.css")


class ReviewServer(PageServer):
    """Serves the page and what it asks for."""

    def __init__(
        self, reviews: RowReviews, *, port: int | None = None, key: str | None = None, annotator: str = ""
    ) -> None:
        """Bind the port without serving yet, as `PageServer` does; raises as it does."""
        self._reviews = reviews
        self._tested = test_ids(reviews.conversations)
        handlers: dict[str, Handler] = {
            "GET /v1/rows": lambda body: {"rows": self._rows()},
            "POST /v1/standing": self._standing,
            "POST /v1/review": self._review,
            "GET /v1/agreement": lambda body: asdict(self._reviews.agreement()),
        }
        super().__init__(handlers, documents("review.html", _FILES), port=port, key=key, annotator=annotator)

    def _rows(self) -> list[Mapping[str, Any]]:
        """All rows, those of test and sealed conversations first: without a person they count for nothing."""
        rows = [
            _review_row(conversation, question, conversation.id in self._tested)
            for conversation, question in self._reviews.rows.values()
        ]
        return sorted(rows, key=lambda row: not row["tested"])

    def _standing(self, body: Any) -> Mapping[str, Any]:
        """The asker's own decisions, and how many others made; what they say is shown to who has decided too."""
        name, in_force = str(body.get("annotator", "")).strip(), self._reviews.in_force()
        mine = {row: _decision(by[name]) for row, by in in_force.items() if name in by}
        return {
            "mine": mine,
            "others": {
                row: [_decision(review) | {"annotator": safe(other)} for other, review in by.items() if other != name]
                for row, by in in_force.items()
                if row in mine
            },
            "counts": Counter(other for by in in_force.values() for other in by),
        }

    def _review(self, body: Any) -> Mapping[str, Any]:
        try:
            reviews = [
                Review.model_validate({**row, "annotator": str(body["annotator"]).strip()}) for row in body["rows"]
            ]
        except ValidationError as error:
            raise DataError(f"review: {first_problem(error)}; reload the page") from None
        self._reviews.add(reviews)
        return self._standing(body)


def _decision(review: Review) -> dict[str, Any]:
    return {"verdict": review.verdict, "question": safe(review.question), "answers": [*map(safe, review.answers)]}


def _review_row(conversation: Conversation, question: Question, tested: bool) -> Mapping[str, Any]:
    near = question.near_miss
    about = {*question.evidence, *([near.turn] if near is not None else [])}
    return {
        "id": question.id,
        "conversation": safe(conversation.id),
        "kind": question.kind,
        "question": safe(question.question),
        "answers": [*map(safe, question.answers)],
        "unanswerable": question.unanswerable,
        "near_miss": safe(near.value) if near is not None else None,
        "objected": safe(question.objected) if question.objected is not None else None,
        "after_session": question.after_session,
        "tested": tested,
        "turns": [
            {
                "id": turn.id,
                "time": safe(session.time),
                "speaker": safe(turn.speaker),
                "text": safe(turn.text),
                "cited": turn.id in about,
            }
            for session in conversation.sessions
            for place, turn in enumerate(session.turns)
            if any(near_turn.id in about for near_turn in session.turns[max(0, place - 1) : place + 2])
        ],
    }
