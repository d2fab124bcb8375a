"""Every error memtune raises on purpose; one root, so that a caller can catch them all."""


class MemtuneError(Exception):
    """Root of memtune's errors. The message says what is wrong, where, and the command or key that mends it."""


class ConfigError(MemtuneError):
    """A setting, option or configuration file is wrong."""


class DataError(MemtuneError):
    """A data file is missing or a row of it is malformed."""


class TraceError(MemtuneError):
    """A trace file or an execution graph is malformed."""


class ContractError(MemtuneError):
    """A prompt breaks the contract of its operation."""


class RunError(MemtuneError):
    """A run folder is missing, unfinished or does not fit what was asked of it."""


class WeightsError(MemtuneError):
    """Model weights could not be fetched, verified or stored."""


class ModelError(MemtuneError):
    """A call to a model did not give a usable reply."""


class CallFailedError(ModelError):
    """The endpoint refused the call, or every retry of it failed."""


class ReplyCutShortError(ModelError):
    """The reply hit its token limit where a whole reply is needed."""


class MalformedReplyError(ModelError):
    """The reply does not parse, or breaks the reply schema of the prompt's contract."""


class MemorySystemError(ModelError):
    """A memory system raised an error of its own, or handed back something else than it was asked for."""


class OutOfTimeError(MemtuneError):
    """The time for one case is over; the others go on."""


class BudgetExceededError(MemtuneError):
    """A hard budget (calls, tokens, money or seconds) does not allow the next call."""


def in_one_line(error: BaseException) -> str:
    """What an error says, on one line; with its type where it is not one of memtune's."""
    said = " ".join(str(error).split())
    return said if isinstance(error, MemtuneError) else f"{type(error).__name__}: {said}"
