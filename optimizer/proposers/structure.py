"""Structural edits of a template: where the question and the instructions are, and how the reply is requested.

They need no author, keep placeholders and literal braces unchanged, and return None if they do not apply.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, starmap
from typing import get_args

from attribution.text.tokens import words
from optimizer.proposers.examples import Symptom, symptoms_of
from optimizer.proposers.rewrites import Means, Rewrite, RewriteRequest, is_new, new_rewrites
from optimizer.proposers.template import is_fixed, sentences, take_apart, without_blank_ends
from optimizer.proposers.turns import by_turns
from tracing.package_data import packaged_tables
from tracing.systems.protocol import Stage

TEXTS = packaged_tables("optimizer.proposers", "texts.toml")
FORMAT_LINES: dict[Stage, list[str]] = TEXTS["format_lines"]
"""Lines that close a request and ask for the form of the reply, by stage."""


def question_twice(template: str, question: str = "question", context: str = "context") -> str | None:
    """The question before and after the context: a small model reads with the question in mind and ends on it.

    Args:
        question, context: names of their placeholders.
    """
    parts = take_apart(template)
    query, recalled_context = f"{{{question}}}", f"{{{context}}}"
    if template.count(query) != 1 or recalled_context not in template:
        return None
    line = next(line for line in parts.data if query in line)
    if line.strip() == query or recalled_context in line:
        line = f"Question: {query}"
    first = template.index(query) < template.index(recalled_context)
    data = (*parts.data, "", line) if first else (line, "", *parts.data)
    return replace(parts, data=data).text


def instructions_last(template: str) -> str | None:
    """The instructions after the data, where a long context does not push them out of sight."""
    parts = take_apart(template)
    head = without_blank_ends(parts.head)
    if not head or not parts.data:
        return None
    tail = without_blank_ends(parts.tail)
    return replace(parts, head=(), data=without_blank_ends(parts.data), tail=("", *tail, *head)).text


def numbered_rules(template: str, markers: Sequence[str] = ()) -> str | None:
    """The instructions before the data as numbered rules; lines the contract asks for stay as they are."""
    parts = take_apart(template)
    rules = sentences(parts.head, markers)
    free = [rule for rule in rules if not is_fixed(rule, markers)]
    if len(free) < 2 or any(line.lstrip().startswith("1.") for line in parts.head):
        return None
    numbers = iter(range(1, len(rules) + 1))
    lines = [rule if is_fixed(rule, markers) else f"{next(numbers)}. {rule}" for rule in rules]
    return replace(parts, head=(*lines, "")).text


def with_format_line(template: str, line: str) -> str | None:
    """The template closed by `line`, which replaces an earlier closing cue."""
    parts = take_apart(template)
    if line in template or not parts.data:
        return None
    gap = () if parts.cue else ("",)
    return replace(parts, cue=(*gap, line)).text


def without_one_sentence(template: str, purpose: str, markers: Sequence[str] = ()) -> Iterator[str]:
    """The template with one sentence removed, for each sentence; those least related to the purpose first."""
    parts = take_apart(template)
    purpose_words = set(words(purpose))

    def use(sentence: str) -> float:
        own = set(words(sentence))
        return len(own & purpose_words) / max(len(own), 1)

    rules = sentences(parts.head, markers)
    free = [number for number, rule in enumerate(rules) if not is_fixed(rule, markers)]
    if len(free) < 2:
        return
    for number in sorted(free, key=lambda place: use(rules[place])):
        rest = (*rules[:number], *rules[number + 1 :])
        yield replace(parts, head=(*rest, "")).text


@dataclass(frozen=True, slots=True)
class Operator:
    """A structural edit, what it does in a few words, and the symptoms it helps against."""

    name: str
    treats: frozenset[Symptom]
    stages: frozenset[Stage]
    apply: Callable[[str, RewriteRequest], Iterable[str | None]]


def format_lines(request: RewriteRequest) -> list[str]:
    """The closing lines for a prompt; those that ask for JSON only where its replies are JSON."""
    is_json = request.prompt.contract.reply_schema is not None or "json" in request.text.casefold()
    return [line for line in FORMAT_LINES.get(request.stage, ()) if is_json or "JSON" not in line]


def _question_twice(text: str, request: RewriteRequest) -> list[str | None]:
    recorded = next(iter((*request.failed, *request.passed)), None)
    question = recorded.placeholder("query") if recorded else None
    context = recorded.placeholder("context", "memory_entry") if recorded else None
    return [question_twice(text, question or "question", context or "context")]


_EDITS: Mapping[str, Callable[[str, RewriteRequest], Iterable[str | None]]] = {
    "format_line": lambda text, request: [with_format_line(text, line) for line in format_lines(request)],
    "question_twice": _question_twice,
    "instructions_last": lambda text, _: [instructions_last(text)],
    "numbered_rules": lambda text, request: [numbered_rules(text, request.prompt.contract.markers)],
    "one_sentence_fewer": lambda text, request: without_one_sentence(
        text, request.prompt.purpose, request.prompt.contract.markers
    ),
}

OPERATORS = tuple(
    Operator(row["name"], frozenset(row["treats"]), frozenset(row.get("stages", get_args(Stage))), _EDITS[edit])
    for edit, row in TEXTS["operators"].items()
)


class StructureProposer:
    """Structural edits, those that treat the most frequent faults first; then pairs of the best."""

    name = "structure"

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        """At most `request.count` edits of the current text."""
        ranked = self._ranked(request)
        rows = [(operator.name, operator.apply(request.text, request)) for operator in ranked]
        for first, second in pairwise(ranked):
            base = next((text for text in first.apply(request.text, request) if text), None)
            if base:
                rows.append((f"{first.name}; {second.name}", second.apply(base, request)))
        offered: set[str] = set()

        def new_texts(name: str, texts: Iterable[str | None]) -> Iterator[tuple[str, str]]:
            for text in texts:
                if text and text not in offered and is_new(text, request):
                    offered.add(text)
                    yield text, name

        # One text per operator and turn, so that an operator with many variants leaves room for the others.
        return new_rewrites(request, self.name, by_turns(starmap(new_texts, rows)))

    def _ranked(self, request: RewriteRequest) -> list[Operator]:
        frequency = Counter(symptom for example in request.failed for symptom in symptoms_of(example, request.stage))
        usable = [operator for operator in OPERATORS if request.stage in operator.stages]
        random.Random(request.seed).shuffle(usable)  # noqa: S311 (order among equals)
        return sorted(usable, key=lambda operator: -sum(frequency[symptom] for symptom in operator.treats))


def structure(means: Means) -> StructureProposer:
    """Edits of the template's structure."""
    return StructureProposer()
