"""A prompt as published optimizers see it: instructions and demonstrations. Its data and its form stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import cleandoc

from optimizer.proposers.rewrites import Demonstration
from optimizer.proposers.template import is_fixed, take_apart, without_blank_ends
from tracing.systems.prompts import PromptSpec, escaped

_ANY_INSTRUCTION = """The memory system puts the data after the instruction, so the instruction holds no placeholder.
It is general: no name or value from the examples."""


class CarriedPrompt:
    """One prompt of a system, to and from the instructions that an optimizer rewrites.

    An instruction is plain text: literal braces are single in it, and doubled in the prompt. It holds no placeholder;
    those stand in the data, which an instruction comes before. The lines between, which show the reply's form and name
    what the contract asks for, stay as they are: DSPy's own programs have them from an adapter.

    Args:
        spec: of the prompt.
        text: its text, which keeps its contract.

    Attributes:
        instruction: what the text says apart from form, data, demonstrations and cue.
    """

    def __init__(self, spec: PromptSpec, text: str) -> None:
        self._spec, self._text, self._parts = spec, text, take_apart(text)
        *before, last = [part for part in map(without_blank_ends, (self._parts.head, self._parts.tail)) if part] or [()]
        form = _form_of(last, spec.contract.markers)
        # What is nothing but form is rewritten whole.
        self._form = form if before or form != last else ()
        wording = [*before, last[: len(last) - len(self._form)]]
        self.instruction = "\n\n".join(_plain_text(lines) for lines in wording if lines)

    @property
    def rules(self) -> str:
        """What the prompt is for, and what must stay in its instruction."""
        contract = self._spec.contract
        markers = [marker for marker in contract.markers if marker in self.instruction]
        words = f" Keep exactly: {' '.join(markers)}" if markers else ""
        form = f" These lines follow it and stay:\n{_plain_text(self._form)}" if self._form else ""
        return f"{self._spec.purpose} At most {contract.max_chars - len(self._text)} characters longer.{words}{form}"

    @property
    def request(self) -> str:
        """What an author has to know who writes an instruction for this prompt alone."""
        return f"{_ANY_INSTRUCTION} {self.rules}"

    def problems(self, instruction: str) -> list[str]:
        """Why an instruction can't be used, in plain words, whatever the contract says of the text made from it."""
        if not instruction.strip() and self.instruction:
            return ["the instruction is empty"]
        placeholders = [name for name in sorted(self._spec.contract.placeholders) if f"{{{name}}}" in instruction]
        return [f"the instruction holds {{{name}}}, but the data stands elsewhere" for name in placeholders]

    def violations(self, instruction: str) -> list[str]:
        """Why an instruction can't be used: its problems, and what of the contract the text made from it breaks."""
        return [*self.problems(instruction), *self._spec.contract.violations(self.text(instruction))]

    def text(self, instruction: str, demonstrations: Sequence[Demonstration] = ()) -> str:
        """The prompt with another instruction and with demonstrations; unchanged if there is neither."""
        parts, instruction = self._parts, _cleaned(instruction)
        if instruction != self.instruction:
            quoted = escaped(instruction)
            lines = (*quoted.split("\n"), *self._form)
            if not parts.data:
                return "\n".join(lines)
            parts = parts.with_instructions(lines)
        if demonstrations and parts.data:
            parts = parts.with_filled((demonstration.values, demonstration.reply) for demonstration in demonstrations)
        return parts.text


def _form_of(lines: tuple[str, ...], markers: Sequence[str]) -> tuple[str, ...]:
    """The last lines, as far as they are fixed; without the end of an example that begins before them."""
    start = len(lines)
    while start and is_fixed(lines[start - 1], markers):
        start -= 1
    while not _is_whole("".join(lines[start:])):
        start += 1
    return lines[start:]


def _is_whole(example: str) -> bool:
    return all(example.count(opening) == example.count(closing) for opening, closing in (("{", "}"), ("[", "]")))


def _plain_text(lines: Sequence[str]) -> str:
    """Lines of a template, without placeholders, as plain text."""
    return _cleaned("\n".join(lines).format_map({}))


def _cleaned(instruction: str) -> str:
    # DSPy cleans instructions in the same way.
    return cleandoc(instruction)
