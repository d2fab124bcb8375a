"""Verdicts where no right answer is known: by what the reply asserts, which is wrong."""

from __future__ import annotations

from attribution.cases import Blame, ErrorType
from attribution.constants import GARBLED, IGNORED, INVENTED
from attribution.explanations import quote, quoted
from attribution.survival.assertion import Assertion
from attribution.survival.case_view import CaseView, Trail
from attribution.text.content import text_of
from tracing.graph.elements import Operation


def on_assertion(view: CaseView, assertion: Assertion) -> Blame | None:
    """Blame for what the reply asserts, where nobody said it; None where somebody did, or it asserts nothing."""
    if assertion.standing == "made up":
        answer = view.answering.answer
        reason = f"the reply is {quote(view.case.reply)}, of which nothing that {answer.name} was given says anything"
        evidence = (view.case.prediction,) if view.case.prediction else ()
        return view.flow.blame(answer, "ResponseError", INVENTED, reason, evidence)
    if assertion.standing != "garbled":
        return None
    entry = assertion.carriers[0]
    fault, kind = _made_it(view, assertion)
    reason = f"entry {entry.name} holds {quoted(entry)}, as the reply has it, but nobody said {quote(view.case.reply)}"
    return view.flow.blame(fault, kind, GARBLED, reason, (entry.id,))


def at_its_word(view: CaseView, trail: Trail, blame: Blame) -> Blame:
    """The blame, but of the extraction where the answer is blamed although it says that it does not know.

    What it was given has the words of the question, as any text on the subject does. Where it has all that was said
    too, nothing was left out.
    """
    readers = view.flow.readers(*trail.need.turns)
    if blame.error_type != "ResponseError" or not readers or not trail.context or view.gives_all(trail):
        return blame
    memory, turns = trail.context[0], " and ".join(trail.need.turns)
    reason = f"of {turns}, {readers[-1].name} left {quoted(memory)}, and the reply says that this does not tell it"
    return view.flow.blame(readers[-1], "ExtractionError", IGNORED * trail.clarity, reason, (memory.id,))


def _made_it(view: CaseView, assertion: Assertion) -> tuple[Operation | None, ErrorType]:
    """The operation that first said it, on the way to the nearest entry that does."""
    flow, variable = view.flow, assertion.carriers[0]
    visited: set[str] = set()
    fault: Operation | None = None
    while variable.id not in visited:
        visited.add(variable.id)
        makers = flow.graph.producers(variable.id)
        if not makers:
            break
        fault = makers[-1]
        saying = [source for source in flow.inputs_of(fault) if assertion.is_in(text_of(source.value))]
        variable = saying[0] if saying else variable
    if fault is not None and flow.stage(fault) == "update":
        return flow.at_fault(fault), "UpdateError"
    return fault, "ExtractionError"
