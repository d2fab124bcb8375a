"""The agent's prompts, the shapes its replies must have, and what of its steps is told to it again.

The shapes accept errors of form but not of meaning: null for an empty text, a number for a text, one id
for a list, too many words. Only endpoints that enforce the schema prevent them all.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo

from attribution.agent.exploration import TOOLS, Exploration, short
from attribution.cases import Case, ErrorType
from attribution.text.content import content_of, text_of
from tracing.graph.elements import Operation, Variable
from tracing.package_data import packaged_tables
from tracing.systems.protocol import OperationSpec

_LONGEST = 400
_MOST_OPERATIONS = 20
_MOST_EVIDENCE = 4
_MOST_CITABLE = 200

_TYPES = {name.casefold(): name for name in (*get_args(ErrorType), "none")}

MOST_TEXTS = 4
MOST_OF_A_TEXT = 2
"""Copies of one text that are shown, those recorded first; most of the others are contexts of answers."""

_MOST_NEIGHBOURS = 3
_BRIEF_CHARACTERS = 140
_LEFT_OUT = ("prompt",)


def _text(raw: Any, about: ValidationInfo) -> Any:
    """A value as text: empty for null, digits for a number; cut if too long."""
    if raw is None:
        return ""
    text = str(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else raw
    return text[: _LENGTHS.get(about.field_name or "", len(text))] if isinstance(text, str) else text


def _ids(raw: Any) -> Any:
    """A value as a list of ids: from a single id, null, or a list that is too long (the first are kept)."""
    listed = [raw] if isinstance(raw, str) else raw or []
    return [str(element_id) for element_id in listed[:_MOST_IDS]] if isinstance(listed, list) else listed


def _error_type(raw: Any) -> Any:
    """An error type however it is spelled."""
    return _TYPES.get(re.sub(r"[^a-z]", "", raw.casefold()), raw) if isinstance(raw, str) else raw


def _confidence(raw: Any) -> Any:
    """A level however it is written; numbers by the nearest level's."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        share = raw / 100 if raw > 1 else raw
        return "high" if share >= _HIGH else "medium" if share >= _MEDIUM else "low"
    return raw.casefold().strip() if isinstance(raw, str) else raw or "low"


_LENGTHS = {"thought": 300, "target": 120, "text": 120, "reason": 600, "operation": 200, "answer": 900}
_MOST_IDS = 12
_HIGH, _MEDIUM = 0.75, 0.45
_Text = BeforeValidator(_text)
_Ids = Annotated[list[str], BeforeValidator(_ids), Field(max_length=_MOST_IDS)]


# The titles are part of the request; fixed here, they survive a renaming of the classes.
class AgentStep(BaseModel, title="Step"):
    """One use of a tool."""

    thought: Annotated[str, _Text] = Field(default="", max_length=_LENGTHS["thought"])
    tool: Literal[
        "operations",
        "operation",
        "search",
        "view",
        "producers",
        "consumers",
        "backward",
        "forward",
        "versions",
        "diff",
        "conclude",
    ]
    target: Annotated[str, _Text] = Field(default="", max_length=_LENGTHS["target"])
    text: Annotated[str, _Text] = Field(default="", max_length=_LENGTHS["text"])


class AgentVerdict(BaseModel, title="Verdict"):
    """Whose fault a wrong answer is; error type "none" where nobody's shows."""

    reason: Annotated[str, _Text] = Field(default="", max_length=_LENGTHS["reason"])
    error_type: Annotated[ErrorType | Literal["none"], BeforeValidator(_error_type)]
    operation: Annotated[str, _Text] = Field(default="", max_length=_LENGTHS["operation"])
    confidence: Annotated[Literal["low", "medium", "high"], BeforeValidator(_confidence)] = "low"
    evidence: _Ids = Field(default_factory=list)


class Prose(BaseModel):
    """The answer to a free question, with the ids it rests on."""

    answer: Annotated[str, _Text] = Field(max_length=_LENGTHS["answer"], json_schema_extra={"minLength": 1})
    evidence: _Ids = Field(default_factory=list, json_schema_extra={"minItems": 1})


_PROMPTS = packaged_tables("attribution", "prompts.toml")["agent"]
ATTRIBUTION, QUESTION = (_PROMPTS["graph"] + _PROMPTS[task] for task in ("attribution", "question"))
STEP, CONCLUDE = _PROMPTS["step"], _PROMPTS["conclude"]


TOOLBOX = "\n".join(["Tools:", *(f"{name}: {what}" for name, what in TOOLS.items()), "conclude: when you know enough"])


def conclusion_schema(kind: type[BaseModel], citable: Sequence[str]) -> dict[str, Any]:
    """The schema of a conclusion: every key is there, and ids are of those shown, unless they are too many."""
    schema = kind.model_json_schema()
    schema["required"] = list(schema["properties"])
    if 0 < len(citable) <= _MOST_CITABLE:
        schema["properties"]["evidence"]["items"] = {"enum": list(citable)}
    return schema


def step_schema(repeated: str | None) -> dict[str, Any]:
    """The schema of a step, without the tool that was last used a second time in the same way."""
    schema = AgentStep.model_json_schema()
    tool = schema["properties"]["tool"]
    tool["enum"] = [name for name in tool["enum"] if name != repeated]
    return schema


def case_task(case: Case, specs: Sequence[OperationSpec], exploration: Exploration) -> str:
    """A wrong answer with where to start looking."""
    handles, graph = exploration.handles, exploration.graph
    question = case.question
    gold = " | ".join(answer for answer in question.answers if answer) or "(not known)"
    lines = [f"Question: {_cut(question.question)}", f"Right answer: {_cut(gold)}", f"Wrong answer: {_cut(case.reply)}"]
    for turn in question.evidence[:_MOST_EVIDENCE]:
        lines += [
            f"Evidence: {exploration.line(message)}" for message in graph.find_variables(kind="message", name=turn)[:1]
        ]
    if case.prediction in graph.variables:
        makers = graph.producers(case.prediction)
        by = f", made by {exploration.line(makers[0])}" if makers else ""
        lines.append(f"The wrong answer is variable {handles.variable(case.prediction)}{by}")
    return "\n".join([*lines, *_pipeline(specs, exploration)])


def question_task(question: str, exploration: Exploration) -> str:
    """A person's question."""
    near = starting_points(question, exploration)
    begin = ["Nearest to it in the trace:", *near] if near else []
    return "\n".join([f"Question: {_cut(question)}", *_pipeline((), exploration), *begin])


def _pipeline(specs: Sequence[OperationSpec], exploration: Exploration) -> list[str]:
    stages = {spec.name: f", stage {spec.stage}" for spec in specs}
    counts = Counter(operation.name for operation in exploration.graph.operations.values())
    operations = [f"{name} ({count}×{stages.get(name, '')})" for name, count in counts.most_common(_MOST_OPERATIONS)]
    kinds = Counter(variable.kind for variable in exploration.graph.variables.values())
    variables = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(_MOST_OPERATIONS))
    return [f"Operations: {'; '.join(operations)}", f"Variables: {variables}"]


def _cut(text: str) -> str:
    return short(" ".join(text.split()), _LONGEST)


def starting_points(question: str, exploration: Exploration) -> list[str]:
    """The nearest variables, two lines for each: what it says, and what is next to it in the graph.

    Texts are ranked by the words that they share with the question, rare ones counting more (inverse document
    frequency), in proportion to all words of the text.
    """
    copies: dict[str, list[Variable]] = {}
    for variable in exploration.graph.variables.values():
        if variable.kind not in _LEFT_OUT and (text := text_of(variable.value)):
            copies.setdefault(text, []).append(variable)
    words = {text: content_of(text) for text in copies}
    frequency = Counter(word for text_words in words.values() for word in text_words)
    weight = {word: math.log(1 + len(words) / count) for word, count in frequency.items()}
    question_words = content_of(question)

    def nearness(text: str) -> float:
        shared = sum(weight[word] for word in words[text] & question_words)
        return shared * shared / sum(weight[word] for word in words[text]) if shared else 0.0

    near = sorted(((nearness(text), text) for text in copies), key=lambda scored: -scored[0])
    chosen = [copies[text][:MOST_OF_A_TEXT] for score, text in near[:MOST_TEXTS] if score > 0]
    return [line for group in chosen for variable in group for line in _lines(variable, exploration)]


def _lines(variable: Variable, exploration: Exploration) -> Iterator[str]:
    graph, handles = exploration.graph, exploration.handles
    yield exploration.line(variable)
    links = [
        _link("made by", graph.producers(variable.id), exploration),
        _link("read by", graph.consumers(variable.id), exploration),
    ]
    if variable.previous in graph.variables:
        links.append(f"version before: {handles.variable(variable.previous)}")
    later = [version for version in graph.versions(variable.id) if version.previous == variable.id]
    links += [f"version after: {handles.variable(version.id)} {version.kind}" for version in later]
    yield f"  {'; '.join(filter(None, links))}"


def _link(relation: str, operations: Sequence[Operation], exploration: Exploration) -> str:
    names = ", ".join(
        f"{exploration.handles.operation(operation.id)} {operation.name}" for operation in operations[:_MOST_NEIGHBOURS]
    )
    more = len(operations) - _MOST_NEIGHBOURS
    return f"{relation} {names}{f' and {more} more' if more > 0 else ''}" if operations else ""


@dataclass(frozen=True, slots=True)
class Note:
    """One step: what was asked and what came of it."""

    request: str
    reply: str

    @property
    def whole(self) -> str:
        """The whole step."""
        return f"> {self.request}\n{self.reply}"

    @property
    def brief(self) -> str:
        """The step in one line."""
        return short(f"> {self.request} => {' '.join(self.reply.split())}", _BRIEF_CHARACTERS)


def tokens_at_most(text: str) -> int:
    """Tokens of a text, on the high side: a token of English has about four bytes, a character of Chinese is one."""
    return len(text.encode("utf-8", "replace")) // 3 + 1


def remembered(notes: Sequence[Note], room: int) -> str:
    """As much of the notes as fits into `room` tokens, in their order.

    The latest are kept whole as long as all earlier ones can still have a line; what still does not fit is
    counted. The latest note is always included, cut if need be.
    """
    lines: list[str] = []
    room -= tokens_at_most("(000 earlier steps left out)\n")
    for place in range(len(notes) - 1, -1, -1):
        note = notes[place]
        reserved = sum(tokens_at_most(earlier.brief) for earlier in notes[:place])
        whole, brief = tokens_at_most(note.whole) + 1, tokens_at_most(note.brief) + 1
        if whole + reserved <= room or (not lines and whole <= room):
            lines.append(note.whole)
            room -= whole
        elif brief <= room:
            lines.append(note.brief)
            room -= brief
        elif not lines:
            lines.append(note.whole[: max(0, room)])
            room = 0
        else:
            break
    omitted = len(notes) - len(lines)
    first = [f"({omitted} earlier step{'s' if omitted > 1 else ''} left out)"] if omitted else []
    return "\n".join(first + lines[::-1])
