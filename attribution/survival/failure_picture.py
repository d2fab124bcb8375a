"""One failure as one picture: what the answer needed, from what was said to the reply, and the step that lost it.

The lost step follows from the verdict alone, whatever texts the steps show, so that no picture contradicts its verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from attribution.cases import OUTSIDE_THE_SYSTEM, Attribution, Blame, ErrorType
from attribution.survival.case_view import CaseView, Trail
from attribution.survival.flow import STAGES, ContentFlow
from attribution.text.content import content_of, text_of
from tracing.graph.elements import Variable
from tracing.recording.redaction import excerpt
from tracing.systems.protocol import Stage

StepName = Literal["needs", "said", "extracted", "in memory", "retrieved", "given", "reply"]
State = Literal["carried", "lost", "after", "unseen"]
"""Of a step: what was needed is there; it was lost here; it had been lost before; nothing shows it."""

STEP_NAMES: tuple[StepName, ...] = get_args(StepName)
_RESULTS: Mapping[Stage, StepName] = {
    "extract": "extracted",
    "update": "in memory",
    "retrieve": "retrieved",
    "answer": "reply",
}
_STAGE_OF = {name: stage for stage, name in _RESULTS.items() if name != "reply"}
"""The stage without which a system has no such step."""
_OUTSIDE: Mapping[ErrorType, StepName] = {"AnnotationError": "needs", "JudgeError": "reply"}
_MARKS: Mapping[State, str] = {"carried": "✓", "lost": "✗", "after": "–", "unseen": "?"}
_MOST_TEXTS = 3
_LONGEST_TEXT = 170


@dataclass(frozen=True, slots=True)
class PictureText:
    """A text that a step shows.

    Attributes:
        name: of the variable, or what the text is.
        text: the line of it that says most of what was needed, without credentials.
        id: of the variable; None where the graph has none.
        version: of the variable, from 1.
        carries: whether it carries what was needed.
        deleted: whether it marks that an entry was deleted.
    """

    name: str
    text: str
    id: str | None = None
    version: int = 1
    carries: bool = True
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class PictureStep:
    """A step of the picture: its texts, how many `more` there are, and the blames for what was lost here."""

    name: StepName
    texts: tuple[PictureText, ...]
    more: int = 0
    blames: tuple[Blame, ...] = ()


@dataclass(frozen=True, slots=True)
class FailurePicture:
    """A wrong answer from what it needed to the reply; a step of which the system has no stage is left out.

    Attributes:
        steps: from left to right.
        abstained: why nothing is blamed; None if something is.

    Example:
        >>> from attribution.conformance import recorded
        >>> from attribution.survival.survival_method import Survival
        >>> recording, cases = recorded()
        >>> method = Survival(recording.graph, recording.conversation, recording.operations)
        >>> print(method.picture(method.attribute(cases[0])))
        needs ✓ → said ✓ → extracted ✓ → given ✓ → reply ✗ ResponseError · answer
    """

    steps: tuple[PictureStep, ...]
    abstained: str | None = None

    @property
    def states(self) -> tuple[State, ...]:
        """The state of each step. Lost is what the verdict blames, and nothing else."""
        states: list[State] = []
        lost = False
        for step in self.steps:
            if step.blames:
                states.append("lost")
            else:
                states.append("after" if lost else "carried" if any(t.carries for t in step.texts) else "unseen")
            lost = lost or any(blame.error_type not in OUTSIDE_THE_SYSTEM for blame in step.blames)
        return tuple(states)

    def __str__(self) -> str:
        """The picture in a line."""
        return " → ".join(map(_step_line, self.steps, self.states))


def _step_line(step: PictureStep, state: State) -> str:
    blamed = ", ".join(f"{blame.error_type} · {blame.operation}" for blame in step.blames)
    return f"{step.name} {_MARKS[state]} {blamed}".rstrip()


def drawn(
    attribution: Attribution, flow: ContentFlow, view: CaseView | None, trails: Sequence[Trail]
) -> FailurePicture:
    """The picture of an attribution; `view` is None, and there are no `trails`, where the graph shows no answering."""
    case, variables = attribution.case, flow.graph.variables
    words = frozenset[str]().union(*(form for trail in trails for form in trail.need.forms))
    places: dict[StepName, dict[str, bool]] = {name: {} for name in STEP_NAMES}
    blames: dict[StepName, list[Blame]] = {name: [] for name in STEP_NAMES}

    def place(name: StepName, shown: Iterable[Variable], *, carries: bool = True) -> None:
        for variable in shown:
            places[name].setdefault(variable.id, carries)

    for trail in trails:
        place("said", flow.messages(*trail.need.turns))
        place("extracted", trail.extracted)
        place("in memory", trail.stored)
        place("retrieved", _retrieved(view, trail) if view is not None else ())
        place("given", trail.context)
    place("said", flow.messages(*case.question.evidence))
    for blame in attribution.decisive:
        lost = _lost_at(blame, flow)
        blames[lost].append(blame)
        for variable in filter(None, map(variables.get, blame.evidence)):
            for name in _places_of(variable, flow):
                before = STEP_NAMES.index(name) < STEP_NAMES.index(lost)
                # What an entry became, or was before, is what went wrong with it.
                place(name, flow.later(variable) if name == lost == "in memory" else (variable,), carries=before)
        fault = flow.graph.operations.get(blame.operation_id or "")
        if fault is not None and not places[lost] and lost != "reply":
            place(lost, flow.outputs_of(fault), carries=False)
    texts = {
        name: [_text(variables[vid], words, carries=carries) for vid, carries in list(shown.items())[:_MOST_TEXTS]]
        for name, shown in places.items()
    }
    answers = " · ".join(answer for answer in case.question.answers if answer.strip()) or "not known"
    texts["needs"] = [
        PictureText("question", excerpt(case.question.asked, _LONGEST_TEXT)),
        PictureText("right answer", excerpt(answers, _LONGEST_TEXT)),
    ]
    reply = excerpt(case.reply, _LONGEST_TEXT) or "(empty)"
    texts["reply"] = [PictureText("reply", reply, case.prediction, carries=False)]
    steps = (
        PictureStep(name, tuple(texts[name]), max(0, len(places[name]) - _MOST_TEXTS), tuple(blames[name]))
        for name in STEP_NAMES
        if blames[name] or name not in _STAGE_OF or flow.has(_STAGE_OF[name])
    )
    return FailurePicture(tuple(steps), attribution.abstained)


def _lost_at(blame: Blame, flow: ContentFlow) -> StepName:
    """The step whose result a blame is about; of an unusable reply by the stage of its operation."""
    error = flow.stage_error(blame)
    return _OUTSIDE[error] if error in _OUTSIDE else _RESULTS[STAGES.get(error, "answer")]


def _places_of(variable: Variable, flow: ContentFlow) -> tuple[StepName, ...]:
    """The steps that show a variable which a verdict rests on."""
    if variable.kind == "message":
        return ("said",)
    if variable.kind == "context":
        return ("retrieved", "given")
    if variable.kind in ("memory_entry", "delete_marker") and flow.has("update"):
        return ("in memory",)
    return ("extracted",) if variable.kind in ("fact", "memory_entry") else ()


def _retrieved(view: CaseView, trail: Trail) -> list[Variable]:
    """What was retrieved that carries a need, on whatever way it reached the answer."""
    given = {variable.id for variable in trail.context}
    outputs = [output for retrieval in view.answering.retrievals for output in view.flow.outputs_of(retrieval)]
    return [output for output in outputs if output.id in given or view.grade(output, trail.need).carries]


def _text(variable: Variable, words: frozenset[str], *, carries: bool) -> PictureText:
    lines = [" ".join(line.split()) for line in text_of(variable.value).splitlines() if line.strip()] or [""]
    line = max(lines, key=lambda line: len(words & content_of(line)))
    return PictureText(
        name=excerpt(variable.name, 60),
        text=excerpt(line, _LONGEST_TEXT) or variable.kind.replace("_", " "),
        id=variable.id,
        version=variable.version,
        carries=carries and variable.kind != "delete_marker",
        deleted=variable.kind == "delete_marker",
    )
