"""Methods that are replaced temporarily: of a library while it is recorded, and of threads."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import Context, ContextVar
from importlib.util import find_spec
from inspect import iscoroutinefunction
from typing import Any

from tracing.recording.recorder import open_recorder
from tracing.recording.scope import bind, current

_MARK = "_memtune_replacement"
_REPLACING = threading.RLock()

BINDING: list[ContextVar[Any]] = []
"""Variables that let `bound_threads` bind threads where they are set."""
BEGINNING: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = []
"""Each takes what a thread or a pool that is bound is to run, and gives what it runs in its place."""
_SHARED: list[Instrumentation] = []
_SHARING = threading.Lock()

ResultHandler = Callable[[Any], None]
"""Takes what a recorded method returned."""


class _Replacement:
    """A replaced method, and how many need it replaced; `own` is what the owner itself had, None for nothing."""

    def __init__(self, owner: Any, name: str, own: Any) -> None:
        self.users = 0
        self._owner, self._name, self._own = owner, name, own

    def leave(self) -> None:
        """Restore the original once nobody needs it replaced."""
        with _REPLACING:
            self.users -= 1
            if self.users:
                return
            if self._own is None:
                delattr(self._owner, self._name)
            else:
                setattr(self._owner, self._name, self._own)


class Instrumentation(ExitStack):
    """Replaced methods; `undo`, or the end of a `with`, restores the originals.

    Example:
        >>> with instrument.threads() as instrumentation:
        ...     isinstance(instrumentation, Instrumentation)
        True
    """

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Replace a method of a class or an instance by `wrap(original)`.

        A method already wrapped stays, until the last of those that replaced it is undone.
        """
        with _REPLACING:
            original = getattr(owner, name)
            replacement: _Replacement | None = getattr(original, _MARK, None)
            if replacement is None:
                own = vars(owner).get(name)  # of a static method or one of a class, not what `getattr` makes of it
                wrapped, replacement = wrap(original), _Replacement(owner, name, own)
                setattr(wrapped, _MARK, replacement)
                setattr(owner, name, staticmethod(wrapped) if isinstance(own, staticmethod | classmethod) else wrapped)
            replacement.users += 1
        self.callback(replacement.leave)

    def undo(self) -> None:
        """Restore everything; a second call does nothing."""
        self.close()


def within_each(around: Callable[..., AbstractContextManager[ResultHandler]]) -> Callable[[Any], Any]:
    """Wraps a method, plain or async: each call of it runs within `around`.

    `around` takes the arguments of the call, and gives a function for what the call returns.
    """

    def wrap(original: Any) -> Any:
        if iscoroutinefunction(original):

            @functools.wraps(original)
            async def called_async(*args: Any, **kwargs: Any) -> Any:
                with around(*args, **kwargs) as on_result:
                    result = await original(*args, **kwargs)
                    on_result(result)
                return result

            return called_async

        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            with around(*args, **kwargs) as on_result:
                result = original(*args, **kwargs)
                on_result(result)
            return result

        return called

    return wrap


def recorded(around: Callable[..., AbstractContextManager[ResultHandler]]) -> Callable[[Any], Any]:
    """As `within_each`, but only while something is recorded: `around` takes the recorder first."""

    def around_recorded(*args: Any, **kwargs: Any) -> AbstractContextManager[ResultHandler]:
        recorder = open_recorder()
        return nullcontext(lambda _: None) if recorder is None else around(recorder, *args, **kwargs)

    return within_each(around_recorded)


def is_installed(module: str) -> bool:
    """Whether a module can be imported, which it is not here."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # nor its package
        return False


def with_subclasses(kind: Any) -> list[Any]:
    """A class and all classes below it, each once."""
    classes = dict.fromkeys([kind])
    for subclass in kind.__subclasses__():
        classes |= dict.fromkeys(with_subclasses(subclass))
    return list(classes)


def threads() -> Instrumentation:
    """Let every `threading.Thread`, and all work of a `ThreadPoolExecutor`, record in the context that started it.

    It applies only while something is recorded or a variable of `BINDING` is set, and to other context variables too.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with instrument.threads(), trace() as recorder, ThreadPoolExecutor() as pool:
        ...     home = pool.submit(variable, "Oslo", name="home").result()
        >>> home.id in recorder.graph.variables
        True
    """
    instrumentation = Instrumentation()

    def starting(original: Any) -> Any:
        @functools.wraps(original)
        def start(thread: threading.Thread) -> None:
            if _binds():
                thread.run = _bound(thread.run)  # type: ignore[method-assign]
            original(thread)

        return start

    def submitting(original: Any) -> Any:
        @functools.wraps(original)
        def submit(pool: ThreadPoolExecutor, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if _binds():
                function = _bound(function)
            # A worker that is started here will do other people's work too.
            return Context().run(original, pool, function, *args, **kwargs)

        return submit

    instrumentation.replace(threading.Thread, "start", starting)
    instrumentation.replace(ThreadPoolExecutor, "submit", submitting)
    return instrumentation


def _binds() -> bool:
    return current.get().recorder is not None or any(held.get() is not None for held in BINDING)


def _bound(function: Any) -> Any:
    for begin in BEGINNING:
        function = begin(function)
    return bind(function)


@contextmanager
def bound_threads() -> Iterator[None]:
    """As `threads`, where several are inside at once, each in a thread of its own.

    Example:
        >>> BINDING.append(held := ContextVar("held", default=None))
        >>> with bound_threads(), ThreadPoolExecutor() as pool:
        ...     _ = held.set("mine")
        ...     pool.submit(held.get).result()
        'mine'
    """
    with _SHARING:
        _SHARED.append(threads())
    try:
        yield
    finally:
        with _SHARING:
            # The first replaced the methods for all, and is the last to go.
            _SHARED.pop().undo()
