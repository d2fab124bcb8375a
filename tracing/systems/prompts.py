"""Prompts as the optimizer sees them: named texts with a contract that a rewrite must keep.

A prompt is a template in `str.format` style: `{name}` stands for a placeholder, `{{` and `}}` for literal braces.
Only plain names are placeholders, so rendering cannot access attributes or indices.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracing.errors import ContractError
from tracing.systems.layouts import PLAIN, Item, Layout, Parts, plain_reply

Candidate = Mapping[str, str]
"""`{prompt name: text}`: one text for every prompt of a system."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What must hold for a prompt's text, whatever its wording.

    Attributes:
        placeholders: names that must each occur at least once; no other may occur.
        reply_schema: JSON schema of the reply, enforced if the endpoint can; None for free text.
        markers: strings the text must contain (such as the key names of the reply).
        waived: those of the markers that a text of a user's own may lack; then its rewrites may, too.
        max_chars: maximum length of the text in characters.
        max_tokens: maximum length in tokens, estimated (`tokens_of`); None for no limit.
        pinned: whole lines that the text must keep.
        rules: further checks; each gives what is wrong with a text.

    Example:
        >>> contract = Contract(placeholders=frozenset({"notes"}), markers=("ANSWER:",))
        >>> contract.violations("Notes: {notes}")
        ["the marker 'ANSWER:' is missing"]
    """

    placeholders: frozenset[str]
    reply_schema: Mapping[str, Any] | None = None
    markers: tuple[str, ...] = ()
    max_chars: int = 6000
    max_tokens: int | None = None
    pinned: tuple[str, ...] = ()
    rules: tuple[Callable[[str], Sequence[str]], ...] = field(default=(), repr=False)
    waived: frozenset[str] = frozenset()

    def violations(self, text: str) -> list[str]:
        """Every way in which `text` breaks this contract, in plain words; empty if it does not."""
        if not text.strip():
            return ["the text is empty"]
        problems = []
        if len(text) > self.max_chars:
            problems.append(f"the text has {len(text)} characters, at most {self.max_chars} are allowed")
        try:
            present = placeholders_of(text)
        except ValueError as error:
            problems.append(f"unbalanced or unusual braces ({error}); write literal braces as {{{{ and }}}}")
        else:
            problems += [f"the placeholder {{{name}}} is missing" for name in sorted(self.placeholders - present)]
            problems += [f"the placeholder {{{name}}} is unknown" for name in sorted(present - self.placeholders)]
        problems += [f"the marker {marker!r} is missing" for marker in self.markers if marker not in text]
        if self.max_tokens is not None and tokens_of(text) > self.max_tokens:
            problems.append(f"the text has about {tokens_of(text)} tokens, at most {self.max_tokens} are allowed")
        lines = text.splitlines()
        problems += [f"the pinned line {line!r} is missing" for line in self.pinned if line not in lines]
        return [*problems, *(problem for rule in self.rules for problem in rule(text))]


@dataclass(frozen=True, slots=True)
class PromptSpec:
    """A named, tunable text of one operation of a memory system.

    Attributes:
        name: unique within the system.
        text: the baseline, which the system ships with.
        operation: name of the operation whose request it makes.
        contract: what every rewrite must keep.
        purpose: one sentence for a proposer: what the operation should achieve.
        builds: True if the prompt shapes the stored memory; False if only answers depend on it.
        layout: how recorded inputs and outputs are written in an example of the operation.
        alternatives: other whole texts for the same task, which a search tries as they are.

    Example:
        >>> contract = Contract(placeholders=frozenset({"notes"}))
        >>> prompt = PromptSpec("reply", "Notes: {notes}", "reply", contract, "Answer from the notes.", builds=False)
        >>> prompt.reply({}, [Item("prediction", "prediction", "prediction", "Oslo")])
        'Oslo'
    """

    name: str
    text: str
    operation: str
    contract: Contract
    purpose: str
    builds: bool
    layout: Layout = PLAIN
    alternatives: tuple[str, ...] = ()

    def reply(self, parts: Parts, outputs: Sequence[Item]) -> str:
        """The outputs of its operation as a reply to a request with these inputs."""
        if self.layout.reply is not None:
            return self.layout.reply(parts, outputs)
        return plain_reply(self.contract.reply_schema, outputs)


def tokens_of(text: str) -> int:
    """About how many tokens a text has: one for four bytes."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 4)


def placeholders_of(template: str) -> set[str]:
    """Names of the placeholders of `template`; a `ValueError` if braces do not balance, or one is no plain name."""
    names: set[str] = set()
    for _, name, spec, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        if not name.isidentifier() or spec or conversion:
            raise ValueError(f"{{{name}}} is not a plain placeholder")
        names.add(name)
    return names


def escaped(text: str) -> str:
    """A plain text as a template without placeholders."""
    return text.replace("{", "{{").replace("}", "}}")


def render(template: str, values: Mapping[str, str]) -> str:
    """`template` with its placeholders replaced and literal braces undoubled.

    Raises:
        ContractError: the template's braces are broken or a placeholder has no value.

    Example:
        >>> render("Question: {question}", {"question": "Where does Mara live?"})
        'Question: Where does Mara live?'
    """
    try:
        missing = placeholders_of(template) - set(values)
    except ValueError as error:
        raise ContractError(f"the prompt cannot be rendered: {error}") from None
    if missing:
        raise ContractError(f"the prompt names unknown placeholders: {', '.join(sorted(missing))}")
    return template.format_map(values)


def baseline_candidate(specs: Mapping[str, PromptSpec]) -> Candidate:
    """The baseline texts of a system, by prompt."""
    return {name: spec.text for name, spec in specs.items()}


def check_candidate(specs: Mapping[str, PromptSpec], candidate: Candidate) -> None:
    """Raise a `ContractError` that names each prompt which a candidate lacks, invents or breaks."""
    problems = [f"{name}: no such prompt (known: {', '.join(specs)})" for name in candidate if name not in specs]
    for name, spec in specs.items():
        if name not in candidate:
            problems.append(f"{name}: missing")
        else:
            problems += [f"{name}: {problem}" for problem in spec.contract.violations(candidate[name])]
    if problems:
        raise ContractError("; ".join(problems))
