"""Conversations with questions: what a memory system reads, when it was said, and what is asked afterwards.

Users' data is JSONL with one `Conversation` a line; `docs/data-format.md` describes every key.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from tracing.errors import DataError
from tracing.files.whole_files import write_whole
from tracing.strict_models import StrictModel
from tracing.suggestions import unknown_key

Split = Literal["train", "validation", "test", "sealed"]


class Turn(StrictModel):
    """One message of a conversation.

    Example:
        >>> Turn(id="D1:1", speaker="Mara", text="I moved to Oslo.").spoken
        'Mara: I moved to Oslo.'
    """

    id: str
    speaker: str
    text: str

    @property
    def spoken(self) -> str:
        """The message with its speaker's name in front, as systems receive it."""
        return f"{self.speaker}: {self.text}"


class DialogueSession(StrictModel):
    """Turns of one occasion; `time` is the local date and time as text (`2024-03-04 10:00`).

    Example:
        >>> turn = Turn(id="D1:1", speaker="Mara", text="I moved to Oslo.")
        >>> DialogueSession(id="D1", time="2024-03-04 10:00", turns=(turn,)).turns[0].speaker
        'Mara'
    """

    id: str
    time: str = ""
    turns: tuple[Turn, ...]


class Fact(StrictModel):
    """What a faultless memory would do on reading `turn`: add `text`, update or delete the fact `of`, or ignore it."""

    id: str
    turn: str
    text: str
    action: Literal["add", "update", "delete", "ignore"] = "add"
    of: str | None = None


class NearMiss(StrictModel):
    """A value said in `turn` that a careless reader would give as the answer."""

    turn: str
    value: str


class Question(StrictModel):
    """A question asked after a session, by default the last.

    Attributes:
        answers: each is a full, correct answer; the first is the canonical one.
        kind: any word; scores are broken down by it.
        supersedes: the answer replaced an earlier one that was also said. True by default if `kind` is `updated`.
        unanswerable: the right answer is that it is not known, since it was taken back or never said. True by default
            if `kind` is `deleted`.
        evidence: ids of the turns that contain the answer.
        after_session: the session after which it is asked: its id, or its place (1 is the first); None for the last.
        fact: id of the fact that answers it.
        near_miss: a wrong value that a careless reader would give.
        objected: the reply that a user objected to in the conversation, where the question was first asked there.
        source: whether a person wrote it or it was generated.
        confirmed_by: who read a generated question and found it right.

    Example:
        >>> Question(id="q1", question="Where does Mara live now?", answers=("Oslo",), kind="updated").supersedes
        True
    """

    id: str
    question: str
    answers: tuple[str, ...] = Field(min_length=1)
    kind: str = "stable"
    supersedes: bool = False
    unanswerable: bool = False
    evidence: tuple[str, ...] = ()
    after_session: str | None = Field(default=None, coerce_numbers_to_str=True)
    fact: str | None = None
    near_miss: NearMiss | None = None
    objected: str | None = None
    source: Literal["written", "generated"] = "written"
    confirmed_by: tuple[str, ...] = ()

    @property
    def unconfirmed(self) -> bool:
        """Whether it was generated and nobody has confirmed it: no test may rest on it."""
        return self.source == "generated" and not self.confirmed_by

    @property
    def asked(self) -> str:
        """The question, with the session after which it is asked if that is named, to be shown to people."""
        return self.question if self.after_session is None else f"{self.question} (after session {self.after_session})"

    @model_validator(mode="before")
    @classmethod
    def _read_kind(cls, data: Any) -> Any:
        # Files written before the two keys existed have only the kind.
        if isinstance(data, dict):
            defaults = {"supersedes": data.get("kind") == "updated", "unanswerable": data.get("kind") == "deleted"}
            return {**defaults, **data}
        return data


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sessions, and the questions that are asked after them.

    Attributes:
        sessions: those since the stretch before.
        questions: what is asked after them, in the order of the file.
    """

    sessions: tuple[DialogueSession, ...]
    questions: tuple[Question, ...]


class Conversation(StrictModel):
    """A dialogue of two or more people over one or more sessions, with its questions.

    Example:
        >>> turn = Turn(id="D1:1", speaker="Mara", text="I moved to Oslo.")
        >>> question = Question(id="q1", question="Where does Mara live?", answers=("Oslo",), evidence=("D1:1",))
        >>> dialogue = DialogueSession(id="D1", turns=(turn,))
        >>> conversation = Conversation(id="mara", speakers=("Mara",), sessions=(dialogue,), questions=(question,))
        >>> [turn.id for turn in conversation.turns()]
        ['D1:1']
    """

    id: str
    split: Split | None = None
    speakers: tuple[str, ...]
    sessions: tuple[DialogueSession, ...] = Field(min_length=1)
    facts: tuple[Fact, ...] = ()
    questions: tuple[Question, ...] = ()

    @model_validator(mode="after")
    def _references_resolve(self) -> Self:
        turns = [turn.id for turn in self.turns()]
        for name, ids in (
            ("session", [session.id for session in self.sessions]),
            ("turn", turns),
            ("fact", [f.id for f in self.facts]),
            ("question", [q.id for q in self.questions]),
        ):
            twice = next((repeated for repeated, count in Counter(ids).items() if count > 1), None)
            if twice is not None:
                raise ValueError(f"two {name}s share the id {twice!r}")
        known_turns, known_facts = set(turns), {fact.id: fact for fact in self.facts}
        for fact in self.facts:
            if fact.turn not in known_turns:
                raise ValueError(f"facts.{fact.id}.turn names the unknown turn {fact.turn!r}")
            if fact.of is not None and fact.of not in known_facts:
                raise ValueError(f"facts.{fact.id}.of names the unknown fact {fact.of!r}")
        place_of = {turn.id: place for place, session in enumerate(self.sessions, 1) for turn in session.turns}
        for question in self.questions:
            for key, texts in (("question", (question.question,)), ("answers", question.answers)):
                if not all(map(str.strip, texts)):
                    raise ValueError(f"questions.{question.id}.{key} has a text that is empty; give it, or remove it")
            if question.fact is not None and question.fact not in known_facts:
                raise ValueError(f"questions.{question.id}.fact names the unknown fact {question.fact!r}")
            last, after = self.sessions_before(question), question.after_session
            if after not in (None, self.sessions[last - 1].id, str(last)):
                raise ValueError(
                    f"questions.{question.id}.after_session names the unknown session {after!r}; give the id of a "
                    f"session, or its place, 1 to {len(self.sessions)}"
                )
            for key, turn in (
                *(("evidence", turn) for turn in question.evidence),
                *((("near_miss", question.near_miss.turn),) if question.near_miss else ()),
                *((("fact", known_facts[question.fact].turn),) if question.fact is not None else ()),
            ):
                if turn not in known_turns:
                    raise ValueError(f"questions.{question.id} names the unknown turn {turn!r}")
                if place_of[turn] > last:
                    raise ValueError(
                        f"questions.{question.id}.{key} names the turn {turn!r}, which comes after the session "
                        f"{after!r} that it is asked after; correct it, or after_session"
                    )
        return self

    def sessions_before(self, question: Question) -> int:
        """How many sessions have taken place when a question is asked; all where its session was cut off."""
        after, ids = question.after_session, [session.id for session in self.sessions]
        place = ids.index(after) + 1 if after in ids else int(after) if after and after.isdecimal() else 0
        return place if 1 <= place <= len(ids) else len(ids)

    def stretches(self) -> list[Stretch]:
        """The sessions up to each place at which questions are asked; all of them where there is no question.

        Sessions after the last question are in none.

        Example:
            >>> sessions = [DialogueSession(id=name, turns=()) for name in ("D1", "D2", "D3")]
            >>> questions = [Question(id="q", question="Where to?", answers=("Oslo",), after_session="2")]
            >>> mara = Conversation(id="mara", speakers=("Mara",), sessions=sessions, questions=questions)
            >>> [([session.id for session in stretch.sessions], len(stretch.questions)) for stretch in mara.stretches()]
            [(['D1', 'D2'], 1)]
        """
        by_place: dict[int, list[Question]] = {}
        for question in self.questions:
            by_place.setdefault(self.sessions_before(question), []).append(question)
        stretches, start = [], 0
        for place in sorted(by_place) or [len(self.sessions)]:
            stretches.append(Stretch(self.sessions[start:place], tuple(by_place.get(place, ()))))
            start = place
        return stretches

    def until(self, question: Question) -> Conversation:
        """The conversation as it was when a question was asked: no later session, nor a fact or question of one."""
        count = self.sessions_before(question)
        if count == len(self.sessions):
            return self
        turns = {turn.id for session in self.sessions[:count] for turn in session.turns}
        changes = {
            "sessions": self.sessions[:count],
            "facts": tuple(fact for fact in self.facts if fact.turn in turns),
            "questions": tuple(other for other in self.questions if self.sessions_before(other) <= count),
        }
        return self.model_copy(update=changes)

    def turns(self) -> Iterator[Turn]:
        """All turns in order."""
        for session in self.sessions:
            yield from session.turns

    def parts(self) -> list[Conversation]:
        """The conversation up to the end of each of its stretches, with the questions asked there alone."""
        return [
            self.until(stretch.questions[0]).model_copy(update={"questions": stretch.questions})
            if stretch.questions
            else self
            for stretch in self.stretches()
        ]

    def facts_at_end(self) -> tuple[Fact, ...]:
        """The facts that hold after the last session: neither superseded nor deleted, nor to be ignored."""
        replaced = {fact.of for fact in self.facts if fact.of is not None}
        return tuple(fact for fact in self.facts if fact.action not in ("delete", "ignore") and fact.id not in replaced)


def read_conversations(path: Path, report: Callable[[str], None] | None = None) -> list[Conversation]:
    """Read a JSONL file of conversations.

    Args:
        path: of the file.
        report: called with each problem, and reading goes on with the next row; without it the first problem is raised.

    Raises:
        DataError: the file is missing, or a row is invalid; the message names file, line, key and remedy.
    """
    tell = report or _refuse
    if not path.is_file():
        raise DataError(f"{path}: no such file; give --data an existing JSONL file")
    conversations: list[Conversation] = []
    line_of: dict[str, int] = {}
    asked_in: dict[str, int] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            conversation = Conversation.model_validate_json(line)
        except ValidationError as error:
            if not line_of and _is_one_text(lines):
                tell(
                    f"{path}: is one JSON text, a list or an object over several lines; write each conversation as a "
                    "line of its own, without brackets and commas around them, see docs/data-format.md"
                )
                return []
            for problem in problems_of(error, Conversation):
                tell(f"{path}:{number}: {problem}; see docs/data-format.md")
            continue
        if conversation.id in line_of:
            tell(
                f"{path}:{number}: id: {conversation.id!r} is that of line {line_of[conversation.id]} too; "
                "give each conversation its own id"
            )
            continue
        line_of[conversation.id] = number
        for place, question in enumerate(conversation.questions):
            # Verdicts, signals and reports identify a question by its id alone.
            if question.id in asked_in:
                tell(
                    f"{path}:{number}: questions.{place}.id: {question.id!r} is that of line {asked_in[question.id]} "
                    "too; give each question its own id"
                )
            asked_in.setdefault(question.id, number)
        conversations.append(conversation)
    if not line_of:
        tell(f"{path}: holds no conversation; one JSON object a line is expected, see docs/data-format.md")
    return conversations


def _is_one_text(lines: Sequence[str]) -> bool:
    try:
        whole = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return False
    return isinstance(whole, list) or (isinstance(whole, dict) and sum(map(bool, map(str.strip, lines))) > 1)


def _refuse(problem: str) -> None:
    raise DataError(problem)


def write_conversations(path: Path, conversations: Iterable[Conversation]) -> None:
    """Write conversations as JSONL, one a line; a file that is there stays whole until the new one is."""
    write_whole(path, "".join(conversation.model_dump_json(exclude_none=True) + "\n" for conversation in conversations))


def first_problem(error: ValidationError) -> str:
    """The first problem of a validation as `key.path: message` on one line."""
    return problems_of(error)[0]


def problems_of(error: ValidationError, model: type[BaseModel] | None = None) -> list[str]:
    """Every problem of a validation as `key.path: message`, each on one line.

    Args:
        error: as raised.
        model: the model that was validated, to suggest the right name of a misspelt key; those problems come first.
    """
    problems = error.errors()
    if model is not None:
        # A misspelt key also causes a missing one, and explains it.
        problems.sort(key=lambda problem: problem["type"] != "extra_forbidden")
    described = []
    for problem in problems:
        within = len(problem["loc"])
        if problem["type"] == "too_short" and any(
            other["loc"][:within] == problem["loc"] and len(other["loc"]) > within for other in problems
        ):
            continue  # only because what is in it is invalid
        key = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ").replace("\n", " ")
        if problem["type"] == "unexpected_keyword_argument":  # as a dataclass calls what a file has too much
            message = "Extra inputs are not permitted"
        if model is not None and problem["type"] == "extra_forbidden":
            message = unknown_key(problem["loc"], model)
        described.append(f"{key}: {message}" if key else message)
    return described


_WEEKDAY = re.compile(r"\s*\([^()]*\)")
_FORMS = (
    "%I:%M %p on %d %B, %Y",
    "%I:%M %p on %d %b, %Y",
    "%I %p on %d %B, %Y",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%d %B %Y",
    "%d %B, %Y",
    "%B %d, %Y",
    "%b %d, %Y, %H:%M:%S",
    "%B-%d-%Y",
)


def moment_of(time: str) -> datetime | None:
    """The time that a text gives, with a zone only if the text names one; None if its form is not known.

    Known are ISO 8601 and how published data sets write times; a weekday in brackets is passed over.
    """
    text = _WEEKDAY.sub("", time).strip()
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    return None
