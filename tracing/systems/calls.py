"""Calling any memory system: its errors and results are checked before they are used, and coroutines run to their end.

Coroutines run on one event loop, which lives as long as the process. A client that a system keeps belongs to the loop
in which it was first used; a loop for each call would leave it with closed ones.
"""

from __future__ import annotations

import asyncio
import concurrent.futures._base as futures
import contextlib
import inspect
import json
import logging
import traceback
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from tracing.errors import MemorySystemError, MemtuneError
from tracing.llm.http.event_loop import EventLoop
from tracing.recording.redaction import excerpt
from tracing.systems.conversations import Conversation, Question, Stretch
from tracing.systems.layouts import Parts
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Answer, BuildsStepwise, Memory, MemorySystem, RerunsOperations

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess


T = TypeVar("T")

_LOOP = EventLoop()
_log = logging.getLogger(__name__)

_LONGEST = 300
PASSING_ON = {__file__, str(futures.__file__)}
"""Files between here and a system's own code, or the program that it runs."""


def build_memory(system: MemorySystem, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
    """The memory that `system.build` makes of a conversation, as JSON gives it back, whether or not it is stored.

    Raises:
        MemorySystemError: it raised its own error (of its client, for example), or did not return a `Memory` of JSON.
        ModelError, BudgetExceededError: a call through the access failed.
    """
    with _own_errors("build"):
        memory = settled(system.build(conversation, candidate, access))
    return _checked_memory(memory)


def builds_stepwise(system: object) -> TypeGuard[BuildsStepwise]:
    """Whether a system builds stepwise as it builds: not if only a class that it derives from does."""
    building = {"build", "build_stepwise"}
    return "build_stepwise" in next((vars(cls) for cls in type(system).__mro__ if building & vars(cls).keys()), ())


def build_stepwise(
    system: BuildsStepwise, stretches: Sequence[Stretch], candidate: Candidate, access: ModelAccess
) -> Iterator[Memory]:
    """The memory after each stretch of a conversation, by `system.build_stepwise`. Raises as `build_memory`."""
    built = 0
    with _own_errors("build_stepwise"):
        for memory in system.build_stepwise([stretch.sessions for stretch in stretches], candidate, access):
            built += 1
            yield _checked_memory(memory)
    if built != len(stretches):
        raise MemorySystemError(
            f"the memory system's build_stepwise gave {built} memories of {len(stretches)} stretches of sessions; "
            "give one after each"
        )


def _checked_memory(memory: object) -> Memory:
    if not isinstance(memory, Memory):
        raise MemorySystemError(f"the memory system's build returned a {type(memory).__name__}, not a Memory")
    try:
        return Memory(json.loads(json.dumps(memory.state)))
    except (TypeError, ValueError) as error:
        raise MemorySystemError(
            f"the memory system's build returned a memory whose state is not JSON: {error}; let it hold dictionaries "
            "with texts as keys, lists, texts, numbers, booleans and None only"
        ) from error


def answer_question(
    system: MemorySystem, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess
) -> Answer:
    """The answer of `system.answer`. Raises as `build_memory`."""
    with _own_errors("answer"):
        answer = settled(system.answer(memory, question, candidate, access))
    if not (isinstance(answer, Answer) and isinstance(answer.text, str)):
        raise MemorySystemError(f"the memory system's answer returned a {type(answer).__name__}, not an Answer")
    return answer


def rerun_operation(
    system: RerunsOperations, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess
) -> None:
    """Execute an operation by `system.rerun`. Raises as `build_memory`."""
    with _own_errors("rerun"):
        settled(system.rerun(prompt, parts, candidate, access))  # type: ignore[func-returns-value]


def call_method(system: MemorySystem, method: str, arguments: Mapping[str, Any]) -> Any:
    """What any method of a system returns, unchecked. Raises as `build_memory`."""
    with _own_errors(method):
        return settled(getattr(system, method)(**arguments))


@contextlib.contextmanager
def _own_errors(method: str) -> Iterator[None]:
    try:
        yield
    except MemtuneError:
        raise
    except (Exception, SystemExit) as error:  # a program that is used to be a command ends itself
        _log.debug("the memory system's %s failed", method, exc_info=True)
        theirs = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in PASSING_ON]
        # The last frame that is in the system's own folder.
        own = [frame for frame in theirs if _is_beside(frame.filename, theirs[0].filename)]
        at = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
        reason = excerpt(" ".join(f"{type(error).__name__}: {error}".split()), _LONGEST)
        raise MemorySystemError(f"the memory system failed in {method}{at}: {reason}") from error


def _is_beside(file: str, own: str) -> bool:
    return file == own or (Path(file).is_relative_to(Path(own).parent) and "site-packages" not in file)


def settled(result: Any) -> Any:
    """What a method returned, or what the coroutine that it returned does; recorded where this is called."""
    if not inspect.iscoroutine(result):
        return result
    future = _LOOP.start(_within, result, copy_context())
    try:
        return future.result()
    except BaseException:
        future.cancel()  # the caller was interrupted
        raise


async def _within(work: Coroutine[Any, Any, T], context: Context) -> T:
    return await asyncio.get_running_loop().create_task(_without_exit(work), context=context)


async def _without_exit(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    except SystemExit as error:  # it would end the loop
        raise RuntimeError(f"SystemExit: {error}").with_traceback(error.__traceback__) from None
