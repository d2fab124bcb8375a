"""A program while memtune runs it: its requests with the prompts of a candidate, each recorded as an operation."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

from experiments.systems.wrapped.background import Background
from experiments.systems.wrapped.processes import withdraw
from experiments.systems.wrapped.requests import ACTIVE, RUNNING
from tracing.errors import MemorySystemError, MemtuneError
from tracing.graph.elements import Variable
from tracing.instrument.known_texts import KnownTexts, known_texts
from tracing.instrument.stages import SOURCES, entries_in
from tracing.interchange.agent_memory import BY_TEXT, LINKED, STAGE
from tracing.recording.operations import ActiveOperation
from tracing.recording.recorder import Recorder, open_recorder
from tracing.recording.scope import current, within
from tracing.recording.trace_context import variable
from tracing.systems.recorded_calls import FilledPrompt, prompt_in

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess
    from tracing.llm.models import ChatReply
    from tracing.systems.prompts import Candidate, PromptSpec
    from tracing.systems.protocol import Stage

BUILDING: tuple[Stage, ...] = ("extract", "update")
"""Stages of a build; the others are those of an answer."""

_NEW: Mapping[Stage, str] = {"extract": "value", "update": "value", "retrieve": "query", "answer": "value"}
"""Stage → kind of what it reads and nothing recorded is in."""


class RunningProgram:
    """One build or one answer of a program.

    Args:
        prompts: its prompts, by name; their baselines are what is looked for.
        stages: prompt name → its stages; guessed: names of those whose stage nobody has told.
        candidate: what they are replaced by.
        access: the models that are asked.
        late: takes the errors of requests that are made after it has ended.
        builds: whether it is a build.

    Attributes:
        seen: names of the prompts that its requests held; requests: how many it made to chat models.
        failures: of its calls; caches: of its functions; background: what it has begun; context: in which it runs.
    """

    def __init__(
        self,
        prompts: Mapping[str, PromptSpec],
        stages: Mapping[str, Sequence[Stage]],
        guessed: Sequence[str],
        candidate: Candidate,
        access: ModelAccess,
        late: list[MemtuneError],
        *,
        builds: bool,
    ) -> None:
        self.access, self.late, self.requests, self.builds = access, late, 0, builds
        self.seen: set[str] = set()
        self.failures: list[MemtuneError] = []
        self.caches: dict[Any, Any] = {}
        self.background, self.context = Background(), Context()
        self._process, self._has_ended = os.getpid(), False
        self._prompts, self._stages, self._guessed, self._candidate = prompts, stages, guessed, candidate
        self._answering: list[tuple[ActiveOperation, str]] = []
        self._turns: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or this is another process, which can record nothing for it."""
        return self._has_ended or os.getpid() != self._process

    @contextlib.contextmanager
    def runs(self) -> Iterator[None]:
        """While it runs, and what it has begun beside."""
        token = RUNNING.set(self)
        self.context = copy_context()
        ACTIVE.append(self)
        try:
            yield
        except Exception:
            self.background.wait()
            raise
        else:
            self.background.wait()
        finally:
            self._has_ended = True
            ACTIVE.remove(self)
            RUNNING.reset(token)
            withdraw(self)

    def turn(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Around a request of a coroutine: one is made after the other, so that equal builds record equal graphs."""
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    @contextlib.contextmanager
    def asking(self, texts: list[str], described: list[str]) -> Iterator[tuple[list[str], Callable[[ChatReply], None]]]:
        """Around a request to a chat model: its texts with the prompts of the candidate, and what takes the reply."""
        self.requests += 1
        places: dict[str, FilledPrompt] = {}
        rest, texts = list(texts), texts + described
        for name, spec in self._prompts.items():
            for at, text in enumerate(texts):
                if (filled := prompt_in(spec.text, text)) is not None:
                    places[name] = filled
                    texts[at] = filled.with_text(self._candidate[name])
                if at < len(rest) and (filled := prompt_in(spec.text, rest[at])) is not None:
                    rest[at] = filled.before + filled.after
        self.seen |= places.keys()
        stages = {name: self._stage(name) for name in places}
        recorder = open_recorder()
        if recorder is None or not places:
            yield texts, lambda _: None
            return
        self._go_on()
        running: list[tuple[ActiveOperation, Stage]] = []
        with contextlib.ExitStack() as stack:
            for name, stage in stages.items():
                running.append((self._begun(recorder, name, stage, places[name], rest), stage))
                stack.enter_context(within(running[-1][0]))
            try:
                yield texts, lambda reply: self._replied(recorder, running, reply)
            except BaseException as error:
                for operation, _ in reversed(running):
                    operation.end(error)
                raise

    def answered(self, text: str) -> Variable | None:
        """The answer of the program, which its last request made; None if it made none."""
        prediction: Variable | None = None
        for operation, _ in reversed(self._answering):
            value = prediction if prediction is not None else text
            prediction = operation.output("prediction", value, name="prediction", kind="prediction")
            operation.end()
        self._answering = []
        return prediction

    def _go_on(self) -> None:
        """What the last request was replied is not the answer: another request follows."""
        for operation, reply in reversed(self._answering):
            operation.output("reply", reply)
            operation.end()
        self._answering = []

    def _stage(self, name: str) -> Stage:
        """The stage that a prompt has here.

        A program may take something in while it answers; a prompt that a build depends on must be known as such.
        """
        fitting = [stage for stage in self._stages[name] if (stage in BUILDING) == self.builds]
        if not fitting and (self.builds or name in self._guessed):
            here, right = ("a memory is built", "extract") if self.builds else ("a question is answered", "answer")
            raise MemorySystemError(
                f"the prompt {name} is sent where {here}, but its stage is {' and '.join(self._stages[name])}; "
                f'say so in memtune.system(…, stages={{"{name}": "{right}"}}), or give a list of its stages'
            )
        return (fitting or self._stages[name])[0]

    def _begun(
        self, recorder: Recorder, name: str, stage: Stage, filled: FilledPrompt, rest: Sequence[str]
    ) -> ActiveOperation:
        """The operation of a prompt, with what fills its placeholders, or else what is said beside it."""
        known = known_texts(recorder)
        beside = "\n".join(filter(None, map(str.strip, rest)))
        links = [("prompt", variable(self._candidate[name], name=name, kind="prompt"))]
        linked = False
        for role, value in [*filled.values.items(), ("beside", beside)]:
            shown = known.shown_in(value, SOURCES[stage])
            linked = linked or bool(shown)
            if not shown and value.strip():
                kind = _NEW[stage]
                shown = [known.add(variable(value, name=role, kind=kind), kind, value)]
            links += [(role, source) for source in shown]
        facts = {STAGE: stage, **({LINKED: BY_TEXT} if linked else {})}
        operation = ActiveOperation(operation_name(name, stage, self._stages), "llm", (), facts, False)
        operation.begin(recorder, current.get(), [(role, source, None) for role, source in links])
        return operation

    def _replied(self, recorder: Recorder, running: list[tuple[ActiveOperation, Stage]], reply: ChatReply) -> None:
        known = known_texts(recorder)
        calls = [str(call.get("function", call)) for call in reply.tool_calls]
        text = "\n".join(filter(None, [reply.text.strip(), *calls]))
        made: list[Variable] = []
        for operation, stage in reversed(running):
            if stage == "answer":
                self._answering.insert(0, (operation, text))
                continue
            for source in made:
                operation.output("entry", source)
            kind = "query" if stage == "retrieve" else "fact" if self._stores_later(stage) else "memory_entry"
            texts = [text] if stage == "retrieve" else entries_in(text)
            for entry in () if made else texts:
                name = f"{operation.name}{known.count(kind) + 1}"
                facts = {LINKED: BY_TEXT} if LINKED in operation.attributes else {}
                made.append(known.add(operation.output("entry", entry, name=name, kind=kind, **facts), kind, entry))
            operation.end()

    def _stores_later(self, stage: Stage) -> bool:
        return stage == "extract" and any("update" in stages for stages in self._stages.values())


def operation_name(prompt: str, stage: Stage, stages: Mapping[str, Sequence[Stage]]) -> str:
    """The operation of a prompt in one of its stages."""
    return prompt if len(stages[prompt]) == 1 else f"{prompt}_{stage}"


def kept_texts(known: KnownTexts) -> list[list[str]]:
    """What a memory keeps of the texts of its build, for what is found in it: text, kind and id of the variable."""
    kinds = ("message", "fact", "memory_entry")
    return [[text, kind, source.id] for text, kind, source in known.kept(kinds)]
