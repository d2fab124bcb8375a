"""A memory system as a DSPy program: one predictor carries each prompt, and running it evaluates a conversation.

Of DSPy, only what proposes and chooses is used: the system itself sends its prompts, as it does in use, and no adapter
of DSPy is between them and the model.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from optimizer.proposers.author import REPLY_TOKENS, Author, cut
from optimizer.proposers.whole_rewrites import record_of
from optimizer.published.bootstrap import demonstration_pools
from optimizer.published.candidate_search import CandidateSearch, author_of
from optimizer.published.carried_prompt import CarriedPrompt
from optimizer.tuning.failures import unattributed_examples
from tracing.errors import MemtuneError, ModelError
from tracing.llm.dspy_lm import AccessEngine, lm_of
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response

    from optimizer.proposers.rewrites import Demonstration
    from optimizer.tuning.tuning import Tuning
    from tracing.llm.models import ChatReply
    from tracing.systems.conversations import Conversation
    from tracing.systems.prompts import Candidate

_EXCERPT = 300
"""Characters of a conversation that the author sees of it."""

_RULES = """
The program is a memory system. It puts the data after each instruction, so an instruction holds no placeholder. It is
general: no name or value from the examples. These are the prompts that have an instruction:
{prompts}"""

_NOTHING = "\n"
"""A reply of no use. DSPy raises an error for an empty one, which would end the search."""


class MemoryProgram(dspy.Module):  # type: ignore[misc]
    """Reads a conversation into a memory, and answers the questions on it from the memory.

    Each prompt below instructs a model in one operation of that: what to note, what to change, what to answer.
    """

    def __init__(self, system: MeasuredSystem) -> None:
        super().__init__()
        self.system = system
        for name, prompt in system.prompts.items():
            setattr(self, f"{name}_prompt", PromptPredictor(_FIELDS.with_instructions(prompt.instruction)))

    def forward(self, conversation: str) -> dspy.Prediction:
        """The score and the replies on the conversation with this id."""
        prompts = {name: getattr(self, f"{name}_prompt") for name in self.system.prompts}
        return self.system.run(prompts, conversation)


_FIELDS = dspy.Signature("data -> reply")


class PromptPredictor(dspy.Predict):  # type: ignore[misc]
    """Holds the instructions and demonstrations of one prompt.

    Of a new signature only the instructions count: fields are not sent, and each change of them makes those of DSPy
    deeper, until they cannot be copied any more.
    """

    @property
    def instruction(self) -> str:
        """The instruction; empty where DSPy has put its own in place of an empty one."""
        instructions = str(self._signature.instructions)
        return "" if instructions == _FIELDS.instructions else instructions

    @property
    def signature(self) -> Any:
        return self._signature

    @signature.setter
    def signature(self, value: Any) -> None:
        self._signature = _FIELDS.with_instructions(value.instructions)


class SearchEnded(BaseException):
    """Ends a search of DSPy's, which would catch an `Exception` and go on; `error` is why."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class MeasuredSystem:
    """What a program runs: candidates made of the predictors' instructions and demonstrations, measured by a search.

    Copies of a program share it.

    Attributes:
        prompts: name → the prompt that a predictor carries.
        pools: name → demonstrations from passing train cases.
    """

    def __init__(self, tuning: Tuning, candidates: CandidateSearch, stdout: Any, *, at_once: bool) -> None:
        self.prompts = {name: CarriedPrompt(spec, tuning.baseline[name]) for name, spec in tuning.prompts.items()}
        self.pools = demonstration_pools(tuning)
        self._tuning, self._candidates, self._stdout, self._at_once = tuning, candidates, stdout, at_once
        self._demonstrations = {
            (name, *demo_of(demonstration).values()): demonstration
            for name, pool in self.pools.items()
            for demonstration in pool
        }

    @property
    def rules(self) -> str:
        """What the author has to know of the system and its prompts, whatever it is asked for."""
        return _RULES.format(
            prompts="\n".join(f"- {name}_prompt: {prompt.rules}" for name, prompt in self.prompts.items())
        )

    def __deepcopy__(self, memo: object) -> MeasuredSystem:
        return self

    def run(self, predictors: Mapping[str, Any], conversation: str) -> dspy.Prediction:
        """The prediction for one conversation; what was executed goes into DSPy's trace."""
        try:
            with redirect_stdout(self._stdout):
                return self._prediction(predictors, self._conversation(conversation))
        except Exception as error:
            raise SearchEnded(error) from error

    def _prediction(self, predictors: Mapping[str, Any], conversation: Conversation) -> dspy.Prediction:
        candidate, problems, demonstration_count, rewritten = dict(self._tuning.baseline), {}, 0, False
        for name, carried in self.prompts.items():
            instruction = predictors[name].instruction
            demos = [
                self._demonstrations.get((name, demo.get("data"), demo.get("reply"))) for demo in predictors[name].demos
            ]
            chosen = [demonstration for demonstration in demos if demonstration is not None]
            candidate[name] = carried.text(instruction, chosen)
            problems[name] = carried.problems(instruction)
            demonstration_count += len(chosen)
            rewritten |= instruction != carried.instruction
        changes = ["rewritten by the author"] if rewritten else []
        changes += [f"{demonstration_count} demonstrations of passing train cases"] if demonstration_count else []
        together = self._batch_of(conversation)
        scores = self._candidates.measure(candidate, together, ", ".join(changes), problems=problems)
        replies = self._record_executions(candidate, predictors, conversation)
        return dspy.Prediction(score=scores[list(together).index(conversation)], replies=replies)

    def _record_executions(
        self, candidate: Candidate, predictors: Mapping[str, Any], conversation: Conversation
    ) -> list[str]:
        """Puts executions of each operation into DSPy's trace, a demonstration last; returns the judged replies."""
        outcome, record = self._candidates.outcome(candidate, conversation), dspy.settings.trace
        if outcome is None:
            return ["nothing could be answered with these prompts"]
        for name, spec in self._tuning.prompts.items() if record is not None else ():
            failed, passed = unattributed_examples(spec, self._tuning.operations, [outcome])
            for example in (*failed, *passed)[:1]:
                execution = record_of(example)
                inputs, reply = _lines_of(execution["Inputs"]), execution["Generated Outputs"]
                record.append((predictors[name], {"data": inputs}, {"reply": reply}))
            for demonstration in self.pools.get(name, ()):
                if demonstration.conversation == conversation.id:
                    inputs = _lines_of(demonstration.values)
                    record.append((predictors[name], {"data": inputs}, {"reply": demonstration.reply}))
                    break
        return [
            f"{case.question.question} → {cut(case.reply)} ({'right' if case.passed else 'wrong'})"
            for case in outcome.cases
        ]

    def _conversation(self, name: str) -> Conversation:
        return next(
            conversation for conversation in (*self._tuning.train, *self._tuning.validation) if conversation.id == name
        )

    def _batch_of(self, conversation: Conversation) -> Sequence[Conversation]:
        """The conversations that DSPy will ask for next anyway: measured together, they keep an endpoint busy."""
        if not self._at_once:
            return [conversation]
        return next(split for split in (self._tuning.train, self._tuning.validation) if conversation in split)


def demo_of(demonstration: Demonstration) -> dict[str, str]:
    """A demonstration in the fields of a predictor."""
    return {"data": _lines_of(demonstration.values), "reply": demonstration.reply}


def _lines_of(inputs: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {text}" for name, text in inputs.items())


def search(
    tuning: Tuning,
    source: str,
    compile_with: Callable[[MemoryProgram, dspy.LM], None],
    *,
    at_once: bool = True,
) -> None:
    """Run one of DSPy's optimizers on the system; the best that it tries becomes the champion.

    DSPy's settings are those of this search only, and its output goes nowhere.

    Args:
        source: name of the optimizer.
        compile_with: runs it on a program with an author.
        at_once: whether it asks for all conversations of a split in turn.
    """
    author, stdout = author_of(tuning, source), sys.stdout
    model = lm_of(_AuthorEngine(author, tuning.settings.seed))
    try:
        with CandidateSearch(tuning, source) as candidates, _quiet():
            system = MeasuredSystem(tuning, candidates, stdout, at_once=at_once)
            with dspy.context(
                lm=model,
                adapter=_AuthorAdapter(author, system.rules),
                trace=None,
                num_threads=1,
                max_errors=1,
                disable_history=True,
            ):
                compile_with(MemoryProgram(system), model)
    except SearchEnded as ended:
        raise ended.error from ended


def score_of(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> float:
    """DSPy's metric: the share of right answers."""
    return float(prediction.score)


def examples_of(conversations: Sequence[Conversation]) -> list[dspy.Example]:
    """Conversations as DSPy's examples: an id for the program, an excerpt and the questions for the author."""
    return [
        dspy.Example(
            conversation=conversation.id,
            excerpt=" ".join(turn.spoken for session in conversation.sessions for turn in session.turns)[:_EXCERPT],
            questions=" ".join(question.question for question in conversation.questions)[:_EXCERPT],
        ).with_inputs("conversation")
        for conversation in conversations
    ]


class _AuthorEngine(AccessEngine):
    """The author for DSPy. A failed call is an empty reply, as a reply of no use is."""

    def __init__(self, author: Author, seed: int) -> None:
        super().__init__(author.model, REPLY_TOKENS)
        self._author, self._seed = author, seed

    def ask(self, messages: Sequence[Mapping[str, str]], **options: Any) -> ChatReply:
        """The author's reply, without its reasoning."""
        options["sample"] += self._seed * 1000
        reply = self._author.chat(messages, **options)
        return replace(reply, text=reply.text or _NOTHING)

    def complete(self, request: Request) -> Response:
        from dspy.lm15 import Message, Response, Usage

        try:
            with trace(), operation("reflect", kind="llm"):  # the meter counts by operation
                return super().complete(request)
        except ModelError:
            nothing = Usage(input_tokens=0, output_tokens=0, total_tokens=0)
            return Response(
                id=None, model="author", message=Message.assistant(_NOTHING), finish_reason="stop", usage=nothing
            )
        except MemtuneError as error:
            raise SearchEnded(error) from error


class _AuthorAdapter(dspy.ChatAdapter):  # type: ignore[misc]
    """Tells the author the prompts' contracts; takes a reply without DSPy's field markers for the first field."""

    def __init__(self, author: Author, rules: str) -> None:
        super().__init__()
        self._author, self._rules = author, rules

    def format_task_description(self, signature: Any) -> str:
        return f"{super().format_task_description(signature)}\n{self._rules}"

    def parse(self, signature: Any, completion: str) -> dict[str, Any]:
        try:
            return dict(super().parse(signature, completion))
        except AdapterParseError:
            fields = signature.output_fields
            if any(field.annotation is not str for field in fields.values()):
                if completion != _NOTHING:
                    self._author.tell("form", "the reply was not in the form that DSPy asks for")
                raise
            return {**dict.fromkeys(fields, ""), next(iter(fields)): completion.strip()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without DSPy's prints, progress bars and log lines, which would show what models wrote."""
    log = logging.getLogger("dspy")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            yield
    finally:
        log.setLevel(level)
