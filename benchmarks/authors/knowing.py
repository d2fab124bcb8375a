"""The strongest author there can be, scripted: it knows the line that a planted flaw took out of a prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.blame.real_model import RealFlaw
from benchmarks.blame.scripted import SHOWN
from benchmarks.scripted_model import ScriptedModel
from experiments.systems.fact_memory import PROMPTS
from optimizer.proposers.template import sentences

KNOWING = "scripted"
"""Its name on the command line."""

_NOTHING = "There is nothing to add."
_CURRENT = re.compile(r"<current_prompt>\n(.*?)\n</current_prompt>", re.DOTALL)
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


class KnowingAuthor(ScriptedModel):
    """Gives the right line back in the form that is asked for: lines, a whole text, an instruction for DSPy or LangMem.

    Args:
        flaws: what was planted in the prompts of the fact memory; a request tells the purpose of its prompt.
    """

    def __init__(self, flaws: Sequence[RealFlaw]) -> None:
        super().__init__([])
        self._flaws = {PROMPTS[flaw.prompt].purpose: flaw for flaw in flaws}

    def reply(self, text: str, schema: str) -> str:
        """The reply to a request; nothing of use where no flaw is planted."""
        flaw = next((flaw for purpose, flaw in self._flaws.items() if purpose in text), None)
        if flaw is None:
            return _NOTHING
        if '"lines"' in schema:
            return json.dumps({"lines": _lines(flaw, text)})
        if '"new_prompt"' in schema:
            return json.dumps({"logic": "-", "update_prompt": True, "new_prompt": _in_langmem(flaw, text)})
        shown = SHOWN.findall(text)
        in_dspy = [instruction for instruction, _ in shown if instruction]
        if in_dspy:
            return _mended(flaw, in_dspy[-1])
        return f"```\n{_mended(flaw, shown[0][1])}\n```" if shown else _NOTHING

    def calls(self, texts: Sequence[str], tools: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
        """The right instruction where LangMem's optimizers offer a tool for it, and else what leads there."""
        text, offered = "\n".join(texts), {tool["function"]["name"] for tool in tools}
        purpose, flaw = next(((purpose, flaw) for purpose, flaw in self._flaws.items() if purpose in text), ("", None))
        if "OptimizedPromptOutput" in offered:
            improved = _in_langmem(flaw, text) if flaw is not None else None
            return [("OptimizedPromptOutput", {"analysis": "-", "improved_prompt": improved})]
        if "recommend" in offered:
            # Nothing else tells the next request's prompt.
            wanted = {} if flaw is None else {"hypotheses": purpose, "full_recommendations": _line(flaw)}
            return [("recommend", {"warrants_adjustment": flaw is not None, **wanted})]
        return [("think", {"thought": "-"})]


def _line(flaw: RealFlaw) -> str:
    """The right line as an instruction: where it stood at the end of a prompt, it opened the reply."""
    return re.sub(r":$", ".", flaw.replaces)


def _lines(flaw: RealFlaw, text: str) -> list[str]:
    spoiled = sentences([flaw.by])
    numbers = [number for number, line in _NUMBERED.findall(text) if line in spoiled]
    if not numbers:
        return [_line(flaw)]
    return [f"{numbers[0]}. {_line(flaw)}", *(f"drop {number}" for number in numbers[1:])]


def _in_langmem(flaw: RealFlaw, text: str) -> str:
    return _mended(flaw, _CURRENT.findall(text)[-1])


def _mended(flaw: RealFlaw, shown: str) -> str:
    if flaw.by in shown:
        return shown.replace(flaw.by, flaw.replaces)
    return f"{_line(flaw)}\n{shown}"
