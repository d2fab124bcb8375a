"""Rewrites by reflection: a model reads failed executions and why they failed, and rewrites the prompt; with gepa.

One call runs one generation of GEPA (Agrawal et al. 2025): several rewrites of the current text, each from other failed
executions, each measured on the same few train conversations. This module prevents what would go wrong with gepa:
contracts are checked before a rollout, its evaluation cache and run folder stay off, its prints go to the log, and a
spent budget ends it (gepa catches and retries any exception of the reflection model).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attribution.text.tokens import contains
from optimizer.proposers.author import REPLY_TOKENS, Author
from optimizer.proposers.earlier import EarlierText, best_and_worst
from optimizer.proposers.examples import Example
from optimizer.proposers.rewrites import Means, Rewrite, RewriteRequest, is_new
from tracing.errors import BudgetExceededError, ModelError
from tracing.package_data import packaged_text
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from tracing.llm.models import ChatModel
    from tracing.systems.conversations import Conversation
    from tracing.systems.prompts import PromptSpec

EXAMPLES_SHOWN = 3
"""Failed executions in one reflection request: what a context of 4,096 tokens holds beside the prompt."""

_LONGEST_INPUT = 700
TEMPERATURE = 0.7
"""Of the author: rewrites of the same text should differ."""

_log = logging.getLogger(__name__)

_REQUEST = packaged_text("optimizer.proposers", "reflection.txt").removesuffix("\n")


class ReflectionProposer:
    """Asks the author model for rewrites, and keeps those that lose nothing on a few train conversations.

    Args:
        evaluator: measures a candidate on conversations.
        author: the model that writes.
    """

    name = "reflection"

    def __init__(self, evaluator: Evaluator, author: ChatModel) -> None:
        self._evaluator, self.author = evaluator, author
        self._writer = Author(author)

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        """At most `request.count` rewrites, best on the minibatch first; none if the model's replies are unusable.

        Raises:
            BudgetExceededError: a hard budget does not allow the next model call.
        """
        batch = list(request.minibatch)
        if not request.failed or not batch or request.count < 1:
            return []
        reflector = Reflector(self._writer, request.seed)
        adapter = _Adapter(self._evaluator, request)
        try:
            _one_generation(request, batch, reflector, adapter)
        except ModelError as error:
            _log.warning("reflection on %r gave nothing: %s", request.prompt.name, error)
            return []
        if reflector.stopped is not None:
            raise reflector.stopped
        before = adapter.total(request.text)
        texts = {text: adapter.total(text) for text in adapter.scores if text != request.text}
        unharmed = sorted((text for text in texts if texts[text] >= before), key=lambda text: -texts[text])
        size = len(batch)
        return [
            Rewrite(
                request.prompt.name,
                text,
                self.name,
                f"rewritten from {len(request.failed)} failed executions; "
                f"{before / size:.2f} to {texts[text] / size:.2f} on {size} train conversations",
            )
            for text in unharmed[: request.count]
        ]


def reflection(means: Means) -> ReflectionProposer:
    """Rewrites by the author."""
    return ReflectionProposer(means.evaluator, means.author)


def _one_generation(
    request: RewriteRequest, batch: list[Conversation], reflector: Reflector, adapter: _Adapter
) -> None:
    import gepa
    from gepa.strategies.proposal_sampling import SameParentSampling

    gepa.optimize(
        seed_candidate={**request.candidate, request.prompt.name: request.text},
        trainset=batch,
        valset=batch,
        adapter=adapter,
        reflection_lm=reflector,
        reflection_minibatch_size=len(batch),
        reflection_prompt_template=request_for(
            request.prompt, [earlier_text for earlier_text in request.earlier if earlier_text.text != request.text]
        ),
        # The signals blamed it before the generation began.
        module_selector=lambda *_: [request.prompt.name],
        candidate_selection_strategy="current_best",
        sampling_strategy=SameParentSampling(request.count),
        # One generation: gepa counts iterations from -1 before the first.
        stop_callbacks=lambda state: state.i >= 0,
        logger=DebugLog(),
        run_dir=None,
        cache_evaluation=False,
        display_progress_bar=False,
        raise_on_exception=True,
        seed=request.seed,
    )


def request_for(spec: PromptSpec, earlier: Iterable[EarlierText] = ()) -> str:
    """gepa's reflection template for one prompt, with its contract; `<curr_param>` and `<side_info>` are filled in.

    Of `earlier` texts the best and the worst are shown, within a bound.
    """
    contract = spec.contract
    listed = ", ".join(repr(marker) for marker in (*contract.markers, *contract.pinned))
    return _REQUEST.format(
        purpose=spec.purpose,
        placeholders=" ".join(f"{{{name}}}" for name in sorted(contract.placeholders)) or "(none)",
        earlier=_earlier_note(best_and_worst(earlier)),
        markers=f"- Keep these words exactly: {listed}\n" if listed else "",
        max_chars=min(contract.max_chars, 3 * REPLY_TOKENS),
    )


def _earlier_note(earlier: Sequence[EarlierText]) -> str:
    """Earlier texts with their scores; empty if there are none."""
    if not earlier:
        return ""
    lines = [
        f"Scored {text.score:.2f}, where the template of the time scored {text.champion:.2f}:\n```\n{text.text}\n```\n"
        for text in earlier
    ]
    return f"Templates tried before, each on its own step (0 is worst, 1 is best):\n{''.join(lines)}\n"


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


class _Adapter:
    """gepa's view of the memory system: conversations in, mean scores out, failed executions as feedback.

    Attributes:
        scores: text of the prompt that was measured, in order → id of a conversation → score.
    """

    propose_new_texts = None  # gepa asks for the attribute

    def __init__(self, evaluator: Evaluator, request: RewriteRequest) -> None:
        self._evaluator, self._request = evaluator, request
        self._datasets = 0
        self.scores: dict[str, dict[str, float]] = {}

    def total(self, text: str) -> float:
        """Sum of the scores of a measured text over the conversations."""
        return sum(self.scores.get(text, {}).values())

    def evaluate(self, batch: list[Conversation], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        from gepa.core.adapter import EvaluationBatch

        text = candidate[self._request.prompt.name]
        if text != self._request.text and not self._worth_measuring(text):
            scores = [0.0] * len(batch)
        else:
            scores = self._measure(batch, candidate, text)
        trajectories = [conversation.id for conversation in batch]
        return EvaluationBatch(
            outputs=list(trajectories), scores=scores, trajectories=trajectories if capture_traces else None
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Each rewrite of a generation is shown other failed executions, as far as there are."""
        failed = list(self._request.failed)
        random.Random(self._request.seed).shuffle(failed)  # noqa: S311 (which examples are shown)
        start = self._datasets * EXAMPLES_SHOWN % len(failed)
        self._datasets += 1
        examples = (failed[start:] + failed[:start])[:EXAMPLES_SHOWN]
        return {self._request.prompt.name: [record_of(example) for example in examples]}

    def _worth_measuring(self, text: str) -> bool:
        problems = self._request.prompt.contract.violations(text)
        if not problems and not is_new(text, self._request):
            problems = ["the text was tried already"]
        copied = _copied_answers(text, self._request)
        if not problems and len(copied) > 1:
            problems = [f"it holds answers of the cases shown: {', '.join(copied)}"]
        if problems:
            _log.info("a rewrite of %r was rejected: %s", self._request.prompt.name, "; ".join(problems))
        return not problems

    def _measure(self, batch: list[Conversation], candidate: dict[str, str], text: str) -> list[float]:
        scores = self.scores.setdefault(text, {})
        missing = [conversation for conversation in batch if conversation.id not in scores]
        if missing:
            outcomes = self._evaluator.evaluate(candidate, missing)
            scores |= {outcome.conversation.id: outcome.score_or_zero for outcome in outcomes}
        return [scores[conversation.id] for conversation in batch]


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


def cut(text: str) -> str:
    """The start of a long text."""
    return text if len(text) <= _LONGEST_INPUT else f"{text[:_LONGEST_INPUT]} …"


def _copied_answers(text: str, request: RewriteRequest) -> list[str]:
    """Answers of the failed cases that are in `text` but not in the text it replaces."""
    answers = {
        answer
        for example in request.failed
        if not example.wants_unknown
        for answer in example.case.question.answers[:1]
    }
    return sorted(answer for answer in answers if contains(text, answer) and not contains(request.text, answer))
