"""Every error that memtune raises on purpose, with one root so that a caller can catch them all."""

from __future__ import annotations

from collections.abc import Sequence


class MemtuneError(Exception):
    """Root of memtune's errors. The message says what is wrong, where, and the command or key that fixes it.

    Example:
        >>> try:
        ...     load_trace("run.jsonl")
        ... except MemtuneError as error:
        ...     print(error)
        run.jsonl: cannot be read: No such file or directory; give the path of a recorded trace
    """


class ConfigError(MemtuneError):
    """A setting, option or configuration file is wrong.

    Example:
        >>> raise ConfigError("top_k: 0 is less than 1")
        Traceback (most recent call last):
        tracing.errors.ConfigError: top_k: 0 is less than 1
    """


class DataError(MemtuneError):
    """A data file is missing or a row of it is malformed."""


class TraceError(MemtuneError):
    """A trace file or an execution graph is malformed.

    Example:
        >>> graph_of([]).variable("v9")
        Traceback (most recent call last):
        tracing.errors.TraceError: the graph has no variable 'v9'; take ids from this graph's `variables`
    """


class ContractError(MemtuneError):
    """A prompt breaks the contract of its operation.

    Example:
        >>> render("Notes: {notes}", {})
        Traceback (most recent call last):
        tracing.errors.ContractError: the prompt names unknown placeholders: notes
    """


class RunError(MemtuneError):
    """A run folder is missing, unfinished or does not fit what was asked of it."""


class WeightsError(MemtuneError):
    """Model weights could not be fetched, verified or stored."""


class InstallError(MemtuneError):
    """The environment of a memory system could not be made."""


class ModelError(MemtuneError):
    """A call to a model did not give a usable reply.

    Example:
        >>> try:
        ...     raise MalformedReplyError("the reply has no key 'facts'")
        ... except ModelError as error:
        ...     print(error)
        the reply has no key 'facts'
    """


class CallFailedError(ModelError):
    """The endpoint refused the call, or every retry of it failed."""


class ReplyCutShortError(ModelError):
    """The reply hit its token limit, and a whole reply is needed."""


class MalformedReplyError(ModelError):
    """The reply does not parse, or breaks the reply schema of the prompt's contract.

    Example:
        >>> raise MalformedReplyError("the reply has no key 'facts'")
        Traceback (most recent call last):
        tracing.errors.MalformedReplyError: the reply has no key 'facts'
    """


class MemorySystemError(ModelError):
    """A memory system raised its own error, or returned something other than it was asked for."""


class WorkerDiedError(ModelError):
    """The processes in which a step was tried ended one after the other."""


class BudgetExceededError(MemtuneError):
    """A hard budget (calls, tokens, money or seconds) does not allow the next call.

    Example:
        >>> raise BudgetExceededError("all 500 calls are made; raise the limit 'calls'")
        Traceback (most recent call last):
        tracing.errors.BudgetExceededError: all 500 calls are made; raise the limit 'calls'
    """


class PartSpentError(BudgetExceededError):
    """What a setting allows for a part of a run is spent; the budget of the whole is not."""


class ShareSpentError(BudgetExceededError):
    """One of several shares of a budget is spent; the others are not."""


def raise_first(failures: Sequence[MemtuneError]) -> None:
    """Raise the first failure, of a spent budget before others, since that ends everything; none is nothing."""
    spent = [failure for failure in failures if isinstance(failure, BudgetExceededError)]
    for failure in (*spent, *failures):
        raise failure


def in_one_line(error: BaseException) -> str:
    """An error's message on one line, with its type if it is not one of memtune's."""
    message = " ".join(str(error).split())
    return message if isinstance(error, MemtuneError) else f"{type(error).__name__}: {message}"
