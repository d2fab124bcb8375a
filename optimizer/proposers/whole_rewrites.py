"""What an author that writes whole prompts, as gepa asks for them, is told: failed executions, and the contract."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from optimizer.proposers.author import REPLY_TOKENS, TEMPERATURE, Author, cut
from optimizer.proposers.examples import Example
from tracing.errors import BudgetExceededError
from tracing.package_data import packaged_text
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace
from tracing.systems.prompts import PromptSpec

_log = logging.getLogger(__name__)

_REQUEST = packaged_text("optimizer.proposers", "whole_rewrites.txt").removesuffix("\n")


def request_for(spec: PromptSpec) -> str:
    """gepa's reflection template for one prompt, with its contract; `<curr_param>` and `<side_info>` are filled in."""
    contract = spec.contract
    listed = ", ".join(repr(marker) for marker in (*contract.markers, *contract.pinned))
    return _REQUEST.format(
        purpose=spec.purpose,
        placeholders=" ".join(f"{{{name}}}" for name in sorted(contract.placeholders)) or "(none)",
        markers=f"- Keep these words exactly: {listed}\n" if listed else "",
        max_chars=min(contract.max_chars, 3 * REPLY_TOKENS),
    )


def rewritten(reflector: Reflector, text: str, request: str, failures: Sequence[Mapping[str, Any]]) -> str:
    """A text in place of another, as gepa asks for one; it may break the contract.

    Args:
        request: gepa's template of it, such as `request_for` makes.
        failures: what is shown, each as of `record_of`.
    """
    from gepa.strategies.instruction_proposal import InstructionProposalSignature

    shown = {
        "current_instruction_doc": text,
        "dataset_with_feedback": list(failures),
        "prompt_template": request,
    }
    return str(InstructionProposalSignature.run(lm=reflector, input_dict=shown)["new_instruction"])


class Reflector:
    """gepa's reflection model. An unusable or failed reply becomes an empty text, which the contract rejects.

    Attributes:
        stopped: the spent budget that stopped it; gepa would catch the error.
    """

    def __init__(self, author: Author, seed: int) -> None:
        self._author, self._seed = author, seed
        self._requests = 0
        self.stopped: BudgetExceededError | None = None

    def __call__(self, prompt: Any) -> str:
        if self.stopped is not None:
            return ""
        self._requests += 1
        try:
            with trace(), operation("reflect", kind="llm"):  # the meter counts by operation
                return self._author.text(
                    str(prompt), temperature=TEMPERATURE, sample=self._seed * 1000 + self._requests
                )
        except BudgetExceededError as error:
            # Raised here, gepa would catch it and ask again.
            self.stopped = error
            return ""


class DebugLog:
    """gepa prints by default."""

    def log(self, message: str) -> None:
        _log.debug("%s", message)


def record_of(example: Example) -> dict[str, Any]:
    """An execution behind a wrong answer, as gepa shows it to the reflection model."""
    question = example.case.question
    reasons = [blame.reason for blame in example.attribution.decisive] if example.attribution else []
    feedback = (
        f"The final answer to {question.question!r} was {example.case.reply!r}, but {question.answers[0]!r} is right."
    )
    if example.unusable_reply:
        reasons.append("The form of the reply or its limit was the trouble, not what the prompt asks for.")
    return {
        "Inputs": {name: cut(text) for name, text in example.inputs.items()},
        "Generated Outputs": cut(example.output),
        "Feedback": " ".join([feedback, *reasons]),
    }
