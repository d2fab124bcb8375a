"""What people say of the generated questions of a data set, and the data set as they leave it.

What they say is kept beside the data set, a line for each decision, and so is the data set as it was before. The data
set itself is written anew with each decision: confirmed and corrected questions are marked, dropped ones are gone.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from experiments.annotating.annotator_agreement import cohen_kappa, krippendorff_alpha
from tracing.errors import DataError
from tracing.strict_models import StrictModel
from tracing.systems.conversations import (
    Conversation,
    Question,
    first_problem,
    read_conversations,
    write_conversations,
)

REVIEWS, BEFORE = ".reviews.jsonl", ".before-review"
"""What the names of the two files have behind that of the data set."""

Verdict = Literal["right", "drop", "undo"]


class Review(StrictModel):
    """What one person says of one question; the last one of each person counts, and after `undo` none.

    Attributes:
        row: id of the question.
        question, answers: the texts that were found right, as they were or corrected; of a dropped row they do not
            matter.
    """

    annotator: str = Field(min_length=1, max_length=60)
    row: str
    verdict: Verdict
    question: str = ""
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowAgreement:
    """How well people agree on whether rows are right: shared rows, Krippendorff's alpha, kappa of each pair."""

    shared: int
    alpha: float | None
    pairs: tuple[tuple[str, str, int, float | None], ...]
    disputed: tuple[str, ...]


class RowReviews:
    """The generated questions of a data set with what people say of them; several may work at once.

    Raises:
        DataError: the file is no data set in memtune's own layout, or has no generated question.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._reviews_file = data.with_name(data.name + REVIEWS)
        self._before = data.with_name(data.name + BEFORE)
        self._lock = threading.Lock()
        self.conversations = read_conversations(self._before if self._before.exists() else data)
        self.rows: Mapping[str, tuple[Conversation, Question]] = {
            question.id: (conversation, question)
            for conversation in self.conversations
            for question in conversation.questions
            if question.source == "generated"
        }
        if not self.rows:
            raise DataError(f"{data}: has no generated question; `memtune data generate` makes a file with some")
        self._reviews: list[Review] = []
        if self._reviews_file.exists():
            for line in self._reviews_file.read_text(encoding="utf-8").split("\n")[:-1]:
                try:
                    self._reviews.append(Review.model_validate_json(line))
                except ValidationError as error:
                    raise DataError(
                        f"{self._reviews_file}: {first_problem(error)}; take the damaged line out"
                    ) from None

    def in_force(self) -> Mapping[str, Mapping[str, Review]]:
        """By row and annotator, what counts."""
        latest: dict[str, dict[str, Review]] = defaultdict(dict)
        for review in list(self._reviews):
            if review.verdict == "undo":
                latest[review.row].pop(review.annotator, None)
            else:
                latest[review.row][review.annotator] = review
        return {row: by for row, by in latest.items() if by}

    def add(self, reviews: Sequence[Review]) -> None:
        """Keep several decisions at once, and write the data set with them.

        Raises:
            DataError: a row is not known, or a corrected text is empty; nothing is kept then.
        """
        for review in reviews:
            if review.row not in self.rows:
                raise DataError(f"row {review.row!r}: is not in {self._data}; reload the page")
            if review.verdict == "right" and not (review.question.strip() and any(map(str.strip, review.answers))):
                raise DataError(f"row {review.row!r}: question or answer is empty; write both, or drop the row")
        with self._lock:
            if not self._before.exists():
                shutil.copyfile(self._data, self._before)
            with self._reviews_file.open("a", encoding="utf-8") as file:
                file.write("".join(f"{review.model_dump_json()}\n" for review in reviews))
                file.flush()
                os.fsync(file.fileno())
            self._reviews += reviews
            write_conversations(self._data, self.reviewed())

    def reviewed(self) -> list[Conversation]:
        """The conversations with their questions as they are left."""
        in_force = self.in_force()
        return [
            conversation.model_copy(
                update={
                    "questions": tuple(
                        row
                        for question in conversation.questions
                        if (row := _as_reviewed(question, in_force.get(question.id, {}).values())) is not None
                    )
                }
            )
            for conversation in self.conversations
        ]

    def agreement(self) -> RowAgreement:
        """How well those agree who reviewed the same rows."""
        verdicts = {row: {name: review.verdict for name, review in by.items()} for row, by in self.in_force().items()}
        shared = {row: by for row, by in verdicts.items() if len(by) > 1}
        names = sorted({name for by in shared.values() for name in by})
        pairs = []
        for first, second in combinations(names, 2):
            both = [(by[first], by[second]) for by in shared.values() if first in by and second in by]
            if both:
                pairs.append((first, second, len(both), cohen_kappa(both)))
        alpha = krippendorff_alpha([list(by.values()) for by in shared.values()])
        disputed = tuple(row for row, by in shared.items() if len(set(by.values())) > 1)
        return RowAgreement(len(shared), alpha, tuple(pairs), disputed)


def _as_reviewed(question: Question, reviews: Iterable[Review]) -> Question | None:
    """A question after its reviews: None if more drop it than find it right; unconfirmed where they are even.

    It has the text that was written last, and is confirmed by those who found this text right.
    """
    listed = list(reviews)
    right = [review for review in listed if review.verdict == "right"]
    if len(listed) > 2 * len(right):
        return None
    if len(listed) == 2 * len(right):
        return question
    text, answers = right[-1].question.strip(), tuple(filter(None, map(str.strip, right[-1].answers)))
    names = tuple(review.annotator for review in right if (review.question.strip(), review.answers) == (text, answers))
    return question.model_copy(
        update={"question": text, "answers": answers, "confirmed_by": names or (right[-1].annotator,)}
    )
