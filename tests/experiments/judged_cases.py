"""Cases as a run sees them, recorded with the real recorder: shapes that the tests of case traces and tables share."""

from collections.abc import Callable
from time import time
from typing import Any

from attribution.cases import Attribution, Blame, Case
from attribution.judging.words import judge
from experiments.mlflow_tracking.store import TrackingStore
from experiments.runs.seen_cases import SeenCase
from optimizer.evaluation.scores import SplitName
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable
from tracing.systems.conversations import Question

ANSWER = "Oslo"


def table_of(store: TrackingStore, run: str, path: str) -> Any:
    """A table as MLflow's own reader loads it; that knows only the default store."""
    with store.as_default():
        return store.client.load_table(store.experiment_id, path, run_ids=[run])


def seen_case(
    number: int,
    reply: str,
    *,
    split: SplitName = "test",
    lost_at: str | None = None,
    question: str = "Where does Mara live?",
    conversation: str | None = None,
    answers: tuple[str, ...] = (ANSWER,),
    clock: Callable[[], float] = time,
) -> SeenCase:
    """A question that a memory of two operations answered; `lost_at` is blamed where the reply is wrong."""
    with trace(prefix=f"c{number}", clock=clock) as recorder:
        message = variable("Mara: I moved to Oslo.", name="D1:1", kind="message")
        with operation("extract_facts", kind="llm", inputs={"messages": [message]}) as extract:
            fact = extract.output("facts", "Mara moved.", name="fact", kind="fact")
        with session(f"q{number}"), operation("pipeline"):
            query = variable(question, name="query", kind="query")
            with operation("answer", kind="llm", inputs={"query": query, "context": [fact, message]}) as answer:
                answer.record_call(model="m", prompt_tokens=30, completion_tokens=2)
                prediction = answer.output("prediction", reply, kind="prediction")
    asked = Question(id=f"q{number}", question=question, answers=answers)
    case = Case(conversation or f"conv{number}", asked, reply, judge(reply, answers), prediction.id)
    ids = {"extract_facts": extract.id, "answer": answer.id}
    attribution = None
    if lost_at is not None:
        blame = Blame(lost_at, ids.get(lost_at), "ExtractionError", 0.8, f"{lost_at} lost 'Oslo'")
        attribution = Attribution(case, (blame,))
    return SeenCase(split, case, recorder.graph, attribution)
