"""A data set from conversations: the questions of every session drafted and tested, and written with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from experiments.data.dataset_reader import Progress
from experiments.data.generating.author import QuestionAuthor, prompts_digest
from experiments.data.generating.chats import Chats
from experiments.data.generating.citations import KINDS, PER_SESSION, Citations, Kind
from experiments.data.generating.complaints import KIND, Objection, complaints_within, rows_of_complaints
from experiments.data.generating.dialogue import Dialogue
from experiments.data.generating.drafting import TWIN, SessionRows, rows_of, without_twins
from experiments.data.generating.finished_parts import FinishedParts
from optimizer.evaluation.memories import digest
from tracing.errors import BudgetExceededError, ConfigError, in_one_line
from tracing.llm.access import ModelAccess
from tracing.suggestions import unknown_names
from tracing.systems.conversations import Conversation, DialogueSession, write_conversations


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked: kinds of questions, and in each session the facts of so many turns at most."""

    kinds: Sequence[Kind] = KINDS
    per_session: int = PER_SESSION


def plan_of(kinds: str | Sequence[str] | None, per_session: int | None) -> Plan:
    """A plan of these kinds (names, or a text with commas between them), of all by default.

    Raises:
        ConfigError: there is no such kind.
    """
    names = kinds.split(",") if isinstance(kinds, str) else kinds
    chosen = [name.strip() for name in names if name.strip()] if names is not None else list(KINDS)
    if unknown := [name for name in chosen if name not in KINDS]:
        raise ConfigError(f"--kinds: there is no {unknown_names(unknown, KINDS)}; choose from {', '.join(KINDS)}")
    return Plan([kind for kind in KINDS if kind in chosen], per_session or PER_SESSION)


@dataclass(slots=True)
class Generated:
    """What came of a pass.

    Attributes:
        conversations: all of them, each with its new questions behind those that it had.
        sessions: how many are done.
        drafts: by kind; complaints are a kind of their own.
        kept: new questions, by kind.
        dropped: drafts, by reason.
        stopped: which budget ended it before the last session; None if none did.
    """

    conversations: list[Conversation] = field(default_factory=list)
    sessions: int = 0
    drafts: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None

    @property
    def share_kept(self) -> float:
        """The part of the drafts that became questions."""
        return self.kept.total() / max(1, self.drafts.total())


def generate(
    chats: Chats, access: ModelAccess, out: Path, plan: Plan | None = None, *, progress: Progress | None = None
) -> Generated:
    """Draft and test the questions of all sessions with the proposer of `access`, and write the data set to `out`.

    Parts that an unfinished pass with the same model, prompts and plan has done are not done again. A spent budget ends
    the pass: what is done by then is written, and a later pass goes on from there.

    Args:
        chats: the conversations, with complaints about them.
        access: its proposer drafts and tests, and nothing is sent to another model.
        out: the file of the data set; one that is there must be that of an unfinished pass.
        plan: what is asked; by default everything.
        progress: told how many of the parts are done.

    Raises:
        DataError: `out` is there already.
        CallFailedError: the model cannot be asked.
    """
    finished, result = FinishedParts(out), Generated()
    work = _Pass(access, plan or Plan(), finished)
    total = sum(len(conversation.sessions) + 1 for conversation in chats.conversations)
    at = 0
    for conversation in chats.conversations:
        parts = work.parts_of(conversation, chats.complaints.get(conversation.id, ()))
        result.stopped = work.stopped
        at += len(conversation.sessions) + 1
        if progress is not None:
            progress(at, total)
        result.sessions += sum(part.is_session for part in parts)
        rows, twins = without_twins((row for part in parts for row in part.rows), conversation.questions)
        for part in parts:
            result.drafts.update(part.drafts)
            result.dropped.update(part.dropped)
        result.dropped.update({TWIN: twins} if twins else {})
        result.kept.update(row.kind for row in rows)
        result.conversations.append(conversation.model_copy(update={"questions": (*conversation.questions, *rows)}))
    write_conversations(out, result.conversations)
    if result.stopped is None:
        finished.close()
    return result


class _Pass:
    """Does the parts of conversations that are not finished, until a budget is spent."""

    def __init__(self, access: ModelAccess, plan: Plan, finished: FinishedParts) -> None:
        self.stopped: str | None = None
        self._access, self._plan, self._finished = access, plan, finished
        self._author = QuestionAuthor(access.proposer)
        self._depends_on = [access.proposer.identity, prompts_digest(), list(plan.kinds), plan.per_session]

    def parts_of(self, conversation: Conversation, complaints: Sequence[Objection]) -> list[SessionRows]:
        """The finished parts of a conversation: its sessions in order, and the complaints."""
        content = conversation.model_dump(mode="json", include={"id", "sessions"})
        name = digest([*self._depends_on, content, [repr(complaint) for complaint in complaints]])
        keys = [f"{name}/{place}" for place in range(len(conversation.sessions) + 1)]
        missing = [place for place, key in enumerate(keys) if self._finished.get(key) is None]
        if missing and self.stopped is None:
            dialogue = Dialogue(conversation)
            do = partial(self._do, dialogue, Citations(dialogue, self._plan.per_session), complaints, keys)
            try:
                list(self._access.threads.map(do, missing))
            except BudgetExceededError as error:
                self.stopped = in_one_line(error)
        return [part for key in keys if (part := self._finished.get(key)) is not None]

    def _do(
        self, dialogue: Dialogue, citations: Citations, complaints: Sequence[Objection], keys: Sequence[str], place: int
    ) -> None:
        sessions: Sequence[DialogueSession] = dialogue.conversation.sessions
        if place < len(sessions):
            part = rows_of(dialogue, sessions[place], citations, self._author, self._plan.kinds)
        else:
            logged = (*complaints, *complaints_within(dialogue))
            rows, dropped = rows_of_complaints(dialogue, logged, self._author)
            part = SessionRows(rows, dropped, Counter({KIND: len(logged)} if logged else {}), is_session=False)
        self._finished.add(keys[place], part)
