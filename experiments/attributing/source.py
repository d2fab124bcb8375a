"""One trace as a source of wrong answers: what says which they are, and the history they are attributed from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from attribution.cases import Case
from attribution.failures import NO_REPLY, answer_missing, case_of, complaint, failed_cases, judged_cases
from attribution.judging.words import METRICS, judge_reply
from attribution.recordings import Recording, conversation_of, operations_of
from attribution.text.content import text_of
from experiments.data.own.feedback import FeedbackRow, matching_answer
from experiments.data.own.histories import Histories, references_in
from experiments.data.own.traces import answer_time, answers_of, chats_of
from experiments.runs.cases_file import Verdicts
from tracing.errors import TraceError
from tracing.files.opening import read_file
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.identities import graphs_by_user
from tracing.graph.leaks import leaks_in
from tracing.interchange import read_graph
from tracing.interchange.agent_memory import interpreted, unclear_tools
from tracing.systems.conversations import Conversation
from tracing.systems.protocol import OperationSpec

_DAY = 86400.0
"""How much earlier than its last writing a file may say that it was written, as one from an archive does."""


@dataclass(frozen=True, slots=True)
class TraceContent:
    """The content of a trace: a recording to attribute from, with its judged questions, or its failures alone.

    Attributes:
        problem: what is wrong with the trace, or with what was said of it; None if nothing is.
        unmatched: of that, the complaints that match no answer in it, each with its place.
        complaint_times: by the ids of replies, when users said that they are wrong, in epoch seconds.
        of_users: in a trace of several users, by the ids of wrong replies, the recording of that user alone.
        all_judged: whether right answers would be among the cases; otherwise they are failures alone.
        leaks: entries of one user that another one was answered with.
        unclear: tools whose names do not tell what they do with the memory.
        system_known: whether the system declared the operations; otherwise they are inferred from the graph.
    """

    recording: Recording
    cases: tuple[Case, ...]
    problem: str | None
    unmatched: tuple[str, ...] = ()
    complaint_times: Mapping[str, float] = field(default_factory=dict)
    of_users: Mapping[str | None, Recording] = field(default_factory=dict)
    all_judged: bool = False
    system_known: bool = False
    leaks: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()

    def judged(self) -> dict[str, Case]:
        """Its judged questions by the ids of their replies, with those that its own judge called right."""
        cases = (*judged_cases(self.recording), *self.cases)
        return {case.prediction or case.question.id: case for case in cases}

    def of(self, case: Case) -> Recording:
        """The recording that a case is attributed from."""
        return self.of_users.get(case.prediction, self.recording)

    def time_of(self, case: Case) -> float | None:
        """When a user said that the answer is wrong, or else when it was given; None if nothing tells."""
        time = self.complaint_times.get(case.prediction or "")
        return time if time is not None else answer_time(self.recording.graph, case.prediction)


@dataclass(frozen=True)
class Judging:
    """The questions that a data set has for conversations, how replies are judged, and the system that was traced.

    `conversations` are keyed by the name of a trace file, without its extension.
    `verdicts` are those of the model that judged the run; where it gave none, replies are judged by words.
    """

    conversations: Mapping[str, Conversation]
    metric: str = METRICS[0]
    operations: tuple[OperationSpec, ...] = ()
    verdicts: Verdicts = field(default_factory=dict)


@dataclass(frozen=True)
class Complaint:
    """What a user says: the reply to this question is wrong; `right` may be empty."""

    question: str
    reply: str = ""
    right: tuple[str, ...] = ()

    def is_in(self, path: Path) -> bool:
        """Whether a trace has an answer to the question; one that cannot be read has none."""
        return not isinstance(matching_answer(self.question, self.reply, answers_of(path)), str)


@dataclass(frozen=True)
class Source:
    """One trace file, and what knows the questions asked in it.

    `complaint` is there where only one answer is looked at, and `feedback` where users said which answers are wrong.
    `histories` knows the traces that were given together with it. What is from before `since` is left out.
    `damage` is what is wrong with a trace of which nothing is asked but that others may need.
    """

    path: Path
    judging: Judging = field(default_factory=lambda: Judging({}))
    complaint: Complaint | None = None
    feedback: Sequence[tuple[str, FeedbackRow]] | None = None
    histories: Histories = field(default_factory=lambda: Histories(()))
    since: float | None = None
    damage: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether all that was said of it, or else its last writing, is from before `since`."""
        if self.since is None:
            return False
        row_times = [row.time for _, row in self.feedback or ()]
        times = [time for time in row_times if time is not None]
        if times and len(times) == len(row_times):
            return max(times) < self.since
        return self.path.stat().st_mtime + _DAY < self.since

    def is_earlier(self, content: TraceContent, case: Case) -> bool:
        """Whether a wrong answer in it is from before `since`; where nothing tells its time, it is not."""
        time = content.time_of(case)
        return self.since is not None and time is not None and time < self.since

    @cached_property
    def digest(self) -> str:
        """Start of the SHA-256 of its content, and that of the traces of its history before it."""
        content = hashlib.sha256(read_file(self.path))
        for path in self.histories.before(self.path):
            content.update(read_file(path))
        return content.hexdigest()[:16]

    def read(self) -> TraceContent:
        """Its recording and cases.

        Raises:
            TraceError: it cannot be read, or nothing says which of its answers are wrong.
        """
        if self.damage is not None:
            raise TraceError(self.damage)
        return self.read_in(*read_graph(self.path))

    def read_in(self, graph: ExecutionGraph, problem: str | None) -> TraceContent:
        """As `read`, of its graph, with what is wrong with its file."""
        unclear = tuple(unclear_tools(graph))
        graph = interpreted(graph)
        content = replace(self._alone(graph, problem), unclear=unclear)
        by_user = graphs_by_user(graph)
        if len(by_user) == 1:
            histories = [self.histories.whole(self.path, graph)]
            if self.histories.before(self.path):
                content = replace(content, recording=self._recording(histories[0], content))
        else:
            histories, of_users = [], dict[str | None, Recording]()
            for user, part in by_user.items():
                wrong = {case.prediction for case in content.cases} & part.variables.keys()
                if wrong:
                    histories.append(self.histories.whole(self.path, part, user))
                    of_users |= dict.fromkeys(wrong, self._recording(histories[-1], content))
            content = replace(content, of_users=of_users)
        unknown = [variable for history in histories for variable in references_in(history)]
        if unknown:
            missing = (
                f"{self.path}: reads {len(unknown)} variables that another trace recorded, such as {unknown[0].id}; "
                "give that trace too, or the folder of all"
            )
            content = replace(content, problem=content.problem or missing)
        leaks = (leak for part in (graph, *histories) for leak in leaks_in(part) if leak.piece.id in graph.variables)
        return replace(content, leaks=tuple(dict.fromkeys(leak.line() for leak in leaks)))

    def _recording(self, history: ExecutionGraph, content: TraceContent) -> Recording:
        name, operations = self.path.stem, content.recording.operations
        dialogue = self.judging.conversations.get(name) or conversation_of(history, name)
        return Recording(history, dialogue, operations if content.system_known else operations_of(history))

    def _alone(self, graph: ExecutionGraph, problem: str | None) -> TraceContent:
        name = self.path.stem
        dialogue = self.judging.conversations.get(name)
        operations = self.judging.operations if dialogue is not None else ()
        recording = Recording(graph, dialogue or conversation_of(graph, name), operations or operations_of(graph))
        if self.complaint is not None:
            wrong = complaint(recording, self.complaint.question, self.complaint.reply, self.complaint.right)
            content = TraceContent(recording, (wrong,), problem)
        elif self.feedback is not None:
            content = _by_feedback(recording, self.feedback, problem)
        elif dialogue is not None:
            content = self._by_judging(recording, problem)
        else:
            content = self._by_itself(recording, problem)
        return replace(content, system_known=bool(operations))

    def _by_itself(self, recording: Recording, problem: str | None) -> TraceContent:
        """What its annotations or its own judge call wrong."""
        doubts: list[str] = []
        cases = _annotated(recording, doubts.append) or failed_cases(recording, doubts.append)
        if doubts and problem is None:
            more = f" (and {len(doubts) - 1} more)" if len(doubts) > 1 else ""
            problem = f"{self.path}: {doubts[0]}{more}"
        if not cases and not any(variable.kind == "judge_score" for variable in recording.graph.variables.values()):
            missing = answer_missing(recording.graph)
            if problem is None and missing is not None:
                raise TraceError(f"{self.path}: {missing}")
            why = problem or f"{self.path}: no judge and no annotation tells which of its answers are wrong"
            raise TraceError(f"{why}; give a run, or --data with the questions of conversation {self.path.stem}")
        return TraceContent(recording, tuple(cases), problem)

    def _by_judging(self, recording: Recording, problem: str | None) -> TraceContent:
        """What the judge of its data set calls right or wrong."""
        graph, conversation, judging = recording.graph, recording.conversation, self.judging
        replies = {
            graph.sessions[prediction.session].name: prediction
            for prediction in graph.find_variables(kind="prediction")
            if prediction.session in graph.sessions
        }
        cases = []
        for question in conversation.questions:
            reply = replies.get(question.id)
            if reply is not None:
                reply_text = text_of(reply.value)
                judgement = judge_reply(question, reply_text, judging.metric)
                score = judging.verdicts.get((conversation.id, question.id, reply_text))
                judgement = judgement if score is None else replace(judgement, score=score)
                cases.append(Case(conversation.id, question, reply_text, judgement, reply.id))
        missing = len(conversation.questions) - len(cases)
        if missing and problem is None:
            problem = f"{self.path}: {missing} of {len(conversation.questions)} questions have no answer in it"
        return TraceContent(recording, tuple(cases), problem, all_judged=True)


def _by_feedback(
    recording: Recording, feedback: Sequence[tuple[str, FeedbackRow]], problem: str | None
) -> TraceContent:
    """The answers that users said are wrong."""
    chats, _ = chats_of(recording.graph, recording.conversation.id)
    answers = [answer for chat in chats for answer in chat.answers]
    unrecorded = None if answers else answer_missing(recording.graph)
    cases: dict[str, Case] = {}
    unmatched, complaint_times = [], dict[str, float]()
    for where, row in feedback:
        answer = matching_answer(row.question, row.reply, answers)
        try:
            if isinstance(answer, str):
                raise TraceError(unrecorded or answer)
            if row.right:
                continue
            case = complaint(
                recording, answer.question, answer.reply or NO_REPLY, row.answers, reply_id=answer.prediction
            )
        except TraceError as error:  # of one row; the others go on
            unmatched.append(f"{where}: {error}")
            continue
        key = case.prediction or case.question.id
        if row.answers or key not in cases:  # several may complain about one answer
            cases[key] = case
        if row.time is not None:
            complaint_times[key] = max(row.time, complaint_times.get(key, row.time))
    problem = "\n".join(filter(None, (problem, *unmatched))) or None
    return TraceContent(recording, tuple(cases.values()), problem, tuple(unmatched), complaint_times)


def _annotated(recording: Recording, tell: Callable[[str], None]) -> list[Case]:
    from tracing.interchange import smartcomment

    labels = [
        case_of(raw, recording, lambda problem, place=place: tell(f"data.annotations[{place}].{problem}"))  # type: ignore[misc]
        for place, raw in enumerate(smartcomment.annotations_of(recording.graph))
    ]
    return [case for case in labels if case is not None]
