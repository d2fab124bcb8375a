"""A program's own functions as operations of a memory: each with its stage, and what it reads and makes as that tells.

What is the same object keeps its variable. Programs copy texts, too: into a request, a database, a list of results.
Where the text of something recorded stands in what a function reads, it is an input of it; what was found so is marked
as `linked` by text, as traces of other tools are.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tracing.errors import ConfigError, MalformedReplyError
from tracing.graph.elements import Operation, Variable
from tracing.graph.values import snapshot
from tracing.instrument.clients import clients
from tracing.instrument.known_texts import known_texts, says_something
from tracing.instrument.patches import Instrumentation
from tracing.interchange.agent_memory import BY_TEXT, LINKED, STAGE
from tracing.interchange.agent_memory.notes import notes_in, text_in
from tracing.llm.reply_json import read_json
from tracing.recording.operations import ActiveOperation
from tracing.recording.scope import InputNote, RecorderLike, Scope
from tracing.recording.wrapping import wrapped_in
from tracing.suggestions import did_you_mean

if TYPE_CHECKING:
    from tracing.systems.protocol import Stage

P = ParamSpec("P")
R = TypeVar("R")

SOURCES: Mapping[str, tuple[str, ...]] = {
    "extract": ("message", "memory_entry", "fact"),
    "update": ("memory_entry", "fact", "message"),
    "retrieve": ("query", "memory_entry", "fact", "message"),
    "answer": ("query", "context", "memory_entry", "fact", "message"),
}
"""Stage → kinds of what it reads, that which is nearest to it first."""

_NEW = {"extract": "message", "update": "fact", "retrieve": "query", "answer": "query"}
_ENTRIES = ("fact", "memory_entry")
_REPLIES = ("raw", "final_output", "output_text", "output", "response", "text")
"""Attributes that hold the text of what agents and clients return: CrewAI's, OpenAI's, pydantic-ai's and others'."""
_UPDATING: set[str] = set()
"""Modules with a step that stores what others have extracted."""


class StagedOperation(ActiveOperation):
    """An execution of a function that does something with what a memory holds.

    Attributes:
        entry_kind: of what it makes where it writes: a fact where a further step, of stage update, stores that.
    """

    __slots__ = ("_by_text", "_pieces", "_replies", "_stage", "entry_kind")
    entry_kind: str

    def begin(self, recorder: RecorderLike, scope: Scope, input_notes: Iterable[InputNote]) -> None:
        """Start here, with the arguments as inputs."""
        self._stage: str = self.attributes[STAGE]
        self._by_text, self._pieces, self._replies = False, list[str](), list[str]()
        with recorder.lock:  # another thread may record more of what is looked through here
            if isinstance(scope.operation, StagedOperation):
                scope.operation.keep_replies()  # this may read them
            inputs = [link for role, value, _ in input_notes for link in self._read(recorder, scope, role, value)]
            super().begin(recorder, scope, inputs)

    def passed(self, role: str, value: Any) -> None:
        """Record what it returns or yields: entries, what was found, or the answer."""
        recorder = self.recorder
        if recorder is None or recorder.ended:
            return
        pieces = value if isinstance(value, list | tuple) else [value]
        if self._stage == "retrieve":
            with recorder.lock:
                for piece in pieces:
                    self._find(recorder, text_of(piece), recorder.recalled(piece))
        else:
            # A streamed answer comes in pieces; what is returned after them is the whole.
            before = self._pieces if role == "item" else []
            text = _reply_text if self._stage == "answer" else text_of
            self._pieces = [*before, *map(text, pieces)]

    def end(self, error: BaseException | None = None) -> None:
        """End it, with what its model calls tell of what it read and made."""
        recorder, record = self.recorder, self.settled()
        if recorder is not None and record is not None and not recorder.ended and self.ended is None:
            with recorder.lock:
                replies = self._of_kind(recorder, record.output_ids(), "reply") if record.calls else []
                if record.calls and (not replies or any(map(_says, replies))):
                    record.kind = "llm"
                self._link_requests(recorder, record)
                if self._stage in ("extract", "update") and error is None:
                    self._keep(recorder, record)
                elif self._stage == "answer" and "".join(self._pieces):
                    self.output("prediction", "".join(self._pieces), name="prediction", kind="prediction")
        super().end(error)

    def keep_replies(self) -> None:
        """What its models have replied so far, as what it made."""
        recorder, record = self.recorder, self.settled()
        if recorder is not None and record is not None and self._stage in ("extract", "update"):
            self._link_requests(recorder, record)
            replied = self._of_kind(recorder, record.output_ids(), "reply")
            replies = [variable.value for variable in replied if _says(variable)][len(self._replies) :]
            self._replies += map(str, replies)
            for text in (text for reply in replies for text in entries_in(reply)):
                self._write(recorder, text)

    def _keep(self, recorder: RecorderLike, record: Operation) -> None:
        """What it made: what it returned, unless that is no more than a word that all went well."""
        said = filter(_says, self._of_kind(recorder, record.output_ids(), "reply"))
        replied = [text for item in said for text in (str(item.value), *entries_in(item.value))]
        returned = [text for text in self._pieces if says_something(text)]
        if replied:
            returned = [text for text in returned if any(text in reply for reply in replied)]
        if returned and not self._replies:
            for text in returned:
                self._write(recorder, text)
        elif replied:
            self.keep_replies()
        elif not any(variable.kind in _ENTRIES for variable in self._made_inside(recorder, record)):
            # Without a model, it keeps what it was given.
            for variable in self._of_kind(recorder, record.input_ids(), "message", "fact"):
                self._write(recorder, str(variable.value))

    def _write(self, recorder: RecorderLike, text: str) -> None:
        known = known_texts(recorder)
        facts: dict[str, Any] = {LINKED: BY_TEXT} if self._by_text else {}
        name = f"{self.name}{known.count(self.entry_kind) + 1}"
        known.add(self.output("entry", text, name=name, kind=self.entry_kind, **facts), self.entry_kind, text)

    def _find(self, recorder: RecorderLike, text: str, source: Variable | None) -> None:
        """Record what was found: the variable of this object, or those whose texts it shows."""
        if not text:
            return
        known, kinds = known_texts(recorder), _ENTRIES[::-1]
        sources = [source] if source is not None else known.shown_in(text, kinds)
        sources = sources or known.around(text, kinds) or known.shown_in(text, ("message",))
        for entry in sources:
            self.use("entries", entry)
        facts: dict[str, Any] = {"entry": sources[0].id} if sources else {}
        facts |= {LINKED: BY_TEXT} if source is None and sources else {}
        name = f"found{known.count('context') + 1}"
        known.add(self.output("context", text, name=name, kind="context", **facts), "context", text)

    def _read(self, recorder: RecorderLike, scope: Scope, role: str, value: Any) -> Iterator[InputNote]:
        known = known_texts(recorder)
        several = isinstance(value, list | tuple)
        for piece in value if several else [value]:
            variable = piece if isinstance(piece, Variable) else recorder.recalled(piece)
            text = text_of(piece)
            if variable is not None or not says_something(text):
                yield (role, variable, None) if variable is not None else (role, piece, snapshot(piece))
                continue
            shown = known.shown_in(text, SOURCES[self._stage])
            self._by_text = self._by_text or bool(shown)
            if not shown:
                kind = "context" if several and self._stage == "answer" else _NEW[self._stage]
                name = f"message{known.count(kind) + 1}" if kind == "message" else role
                shown = [known.add(recorder.make(scope, None, text, name, kind, None, {}), kind, text)]
            yield from ((role, variable, None) for variable in shown)

    def _link_requests(self, recorder: RecorderLike, record: Operation) -> None:
        """The texts that its requests show are inputs; of an answer without a request, what was found inside it."""
        known = known_texts(recorder)
        requests = self._of_kind(recorder, record.input_ids(), "request")
        shown = [
            variable
            for request in requests
            for variable in known.shown_in(text_in(request.value), SOURCES[self._stage])
        ]
        if self._stage == "answer" and not requests:
            shown = [variable for variable in self._made_inside(recorder, record) if variable.kind == "context"]
        linked = {*record.input_ids(), *record.output_ids()}
        for variable in {item.id: item for item in shown if item.id not in linked}.values():
            self._by_text = self._by_text or bool(requests)
            self.use(variable.kind, variable)

    @staticmethod
    def _made_inside(recorder: RecorderLike, record: Operation) -> list[Variable]:
        later = takewhile(lambda operation: operation is not record, reversed(recorder.graph.operations.values()))
        ids = [vid for operation in later if operation.parent == record.id for vid in operation.output_ids()]
        return [recorder.graph.variables[vid] for vid in reversed(ids)]

    @staticmethod
    def _of_kind(recorder: RecorderLike, ids: Iterable[str], *kinds: str) -> list[Variable]:
        variables = [recorder.graph.variables[vid] for vid in ids]
        return [variable for variable in variables if variable.kind in kinds]


def _says(variable: Variable) -> bool:
    """Whether a reply is what a model said, and not the vectors that one made."""
    return not (isinstance(variable.value, Mapping) and "embeddings" in variable.value)


def text_of(value: Any) -> str:
    """The text of an argument or a result: itself, or what its fields hold."""
    if isinstance(value, str):
        return value
    try:
        return text_in(_plain(value))
    except Exception:  # what a user's object does when it is read is no reason to end the program
        return ""


def _reply_text(value: Any) -> str:
    """The text of an answer, of what an agent returns beside how it came to it."""
    held = (getattr(value, name, None) for name in _REPLIES)
    return text_of(next((text for text in held if isinstance(text, str)), value))


def _plain(value: Any) -> Any:
    if isinstance(value, type):
        return ""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float) else ""


def entries_in(reply: Any) -> list[str]:
    """What a model's reply lists: the texts of its JSON, or its lines without their bullets."""
    if isinstance(reply, str) and reply.strip()[:1] in ("{", "[", "`"):
        with contextlib.suppress(MalformedReplyError):
            reply = read_json(reply)
    return [note.text for note in notes_in(reply) if says_something(note.text)]


def staged(stage: Stage, name: str | None = None, **attributes: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: record each call of a function as an operation of this stage (`memtune.operation`).

    Raises:
        ConfigError: there is no such stage.
    """
    if stage not in SOURCES:
        raise ConfigError(f"stage: unknown: {stage!r}; choose one of {', '.join(SOURCES)}")
    kind = "retrieval" if stage == "retrieve" else "function"

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        module = getattr(function, "__module__", "")
        if stage == "update":
            _UPDATING.add(module)

        def begun(*details: Any) -> StagedOperation:
            operation = StagedOperation(*details)
            operation.entry_kind = "fact" if stage == "extract" and module in _UPDATING else "memory_entry"
            return operation

        wrapped: Callable[P, R] = wrapped_in(begun, function, name, kind, {**attributes, STAGE: stage}, False)
        return wrapped

    return decorate


class Watched(Instrumentation):
    """Functions that are recorded from outside; `undo`, or the end of a `with`, leaves them as they were.

    Attributes:
        stages: name of the operation → its stage.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stages: dict[str, Stage] = {}


def watch(owner: Any, **names: str | Sequence[str]) -> Watched:
    """Record functions of a class, an object or a module as operations, with the model calls inside, without a change.

    Args:
        owner: what has them. Of a module, calls by a name that another module has imported are not seen.
        names: stage (`extract`, `update`, `retrieve`, `answer`) → the name of a function, or several.

    Returns:
        A context manager that undoes it, also with the method `undo`.

    Raises:
        ConfigError: a stage or a function is unknown, or a function is a task of LangGraph.

    Example:
        >>> class Notes:
        ...     def search(self, query):
        ...         return ["Mara lives in Oslo."]
        >>> with watch(Notes, retrieve="search"), trace() as recorder:
        ...     notes = Notes().search("Where does Mara live?")
        >>> [variable.kind for variable in recorder.graph.variables.values()]
        ['query', 'context']
    """
    watched = Watched()
    for stage, listed in names.items():
        decorate = staged(stage)  # type: ignore[arg-type]
        for name in [listed] if isinstance(listed, str) else listed:
            function = getattr(owner, name, None)
            if type(function).__module__.startswith("langgraph."):
                raise ConfigError(
                    f"watch: {name!r} is run by LangGraph, and may return before it has run; record it by "
                    "tracing.instrument.langgraph()"
                )
            if not callable(function):
                title = getattr(owner, "__name__", type(owner).__name__)
                raise ConfigError(f"watch: {title} has no function {name!r}{did_you_mean(name, dir(owner))}")
            watched.replace(owner, name, decorate)
            watched.stages[name] = stage  # type: ignore[assignment]
    watched.callback(clients().undo)
    return watched
