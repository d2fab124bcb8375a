"""`memtune.system`: an existing program as a memory system, with nothing of it changed."""

from __future__ import annotations

import base64
import hashlib
import inspect
import re
import string
import sys
import tempfile
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from experiments.systems.wrapped.background import follow_background, with_tasks
from experiments.systems.wrapped.own_caches import separate_caches
from experiments.systems.wrapped.places import PromptPlace, place_of
from experiments.systems.wrapped.processes import follow_processes
from experiments.systems.wrapped.program_files import program_files
from experiments.systems.wrapped.requests import redirect_clients
from experiments.systems.wrapped.running import BUILDING, RunningProgram, kept_texts, operation_name
from experiments.systems.wrapped.stores import GlobalStore
from tracing.errors import ConfigError, ContractError, MemorySystemError, MemtuneError
from tracing.instrument.known_texts import known_texts
from tracing.instrument.library_calls import recorded_elsewhere
from tracing.instrument.patches import bound_threads
from tracing.plugins import code_of
from tracing.recording.operations import operation
from tracing.recording.recorder import open_recorder
from tracing.recording.redaction import excerpt
from tracing.recording.trace_context import session, variable
from tracing.recording.wrapping import is_future
from tracing.systems.calls import PASSING_ON, settled
from tracing.systems.prompts import Contract, PromptSpec, placeholders_of
from tracing.systems.protocol import Answer, Memory, OperationSpec, Stage

if TYPE_CHECKING:
    from tracing.instrument.stages import Watched
    from tracing.llm.access import ModelAccess
    from tracing.systems.conversations import Conversation, Question
    from tracing.systems.prompts import Candidate

PASSING_ON.update((__file__, with_tasks.__code__.co_filename))

_STAGES: tuple[Stage, ...] = get_args(Stage)
_PURPOSES: Mapping[Stage, str] = {
    "extract": "Take from the conversation everything that a later question may be about, with its concrete values.",
    "update": "Keep what is stored current and whole when something new is told.",
    "retrieve": "Find what is stored about the question.",
    "answer": "Answer the question from what is remembered, in as few words as it needs.",
}
_ASKS = re.compile(r"question|query|asked|ask\b|\bq\b", re.IGNORECASE)
_UPDATES = re.compile(r"updat|merg|consolidat|reconcil|dedup|conflict|existing|old_|previous", re.IGNORECASE)
_MERGES = re.compile(r"\b(?:existing|merge|contradict)", re.IGNORECASE)
_REMEMBERS = re.compile(r"memor|context|facts|notes|remember", re.IGNORECASE)
_FINDS = re.compile(r"rewrit|retriev|search|expand|rerank|hyde|keyword", re.IGNORECASE)
_ANSWERS = re.compile(r"answer|repl|respon|chat", re.IGNORECASE)
_NO_KEY = re.compile(r"(?:missing|must be set|could not resolve)[^\0]*(?:credentials|api_key|auth)", re.IGNORECASE)
"""What clients say that were given no key."""
_KEY = re.compile(r'[{,]\s*("\w+")\s*:')
_FEWEST_LETTERS = 8
_EMPTY = 2
"""Builds in which a program may keep nothing of what it was replied before any kept something."""
_NOTHING = 2
"""Most words of a reply that says that there is nothing to keep."""


class WrappedProgram:
    """A program as a memory system; made by `memtune.system`, which says what its arguments are.

    Attributes:
        places: prompt name → where it stands in the program.
        watched: functions that are recorded beside its prompts.
        guessed: names of the prompts whose stage was not told, but guessed from their names and placeholders.
        program_code: digest of the program's source, by which other code is told from it.
    """

    def __init__(
        self,
        *,
        build: Callable[[Path, Conversation], Any],
        answer: Callable[[Path, str], Any],
        prompts: Mapping[str, str],
        stages: Mapping[str, Stage | Sequence[Stage]],
        watched: Watched | None,
        alone: bool = False,
        stores: Mapping[str, str] | None = None,
    ) -> None:
        folder = Path(inspect.getsourcefile(build) or ".").resolve().parent
        unknown = sorted(set(stages) - set(prompts))
        if unknown or not prompts:
            raise ConfigError(f"stages: {unknown[0]!r} is no prompt" if unknown else "prompts: name at least one")
        self._build, self._answer, self.watched = build, answer, watched
        self._asking, self._modules = set[str](), 0
        self._late: list[MemtuneError] = []
        self._building, self._has_stored, self._empty = list[threading.Event](), False, 0
        self._turn: AbstractContextManager[Any] = threading.Lock() if alone or stores else nullcontext()
        self.places = {name: place_of(place, folder) for name, place in prompts.items()}
        self._folders = {folder, *(place.file.parent for place in self.places.values())}
        self._stores = [GlobalStore.at(place, name) for place, name in (stores or {}).items()]
        self.name = f"{getattr(build, '__module__', '')}:{getattr(build, '__qualname__', '')}"
        self.version = self.program_code = _version([build, answer], self.places.values())
        texts = {name: _text_of(place) for name, place in self.places.items()}
        listed = {name: [stage] if isinstance(stage, str) else [*stage] for name, stage in stages.items()}
        wrong = next((stage for given in listed.values() for stage in given if stage not in _STAGES), None)
        if wrong is not None:
            raise ConfigError(f"stages: unknown: {wrong!r}; choose one of {', '.join(_STAGES)}")
        self.guessed = [name for name in prompts if name not in stages]
        self._stages: dict[str, list[Stage]] = {
            name: listed.get(name) or [guessed_stage(name, text)] for name, text in texts.items()
        }
        self.prompts = {name: self._spec(name, text) for name, text in texts.items()}
        # What its requests hold, also in a run that starts from other texts.
        self._sent = self.prompts
        self.operations = self._operations()

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Let the program read the conversation into a folder of its own; what is in that is the memory."""
        with self._turn, _empty_folder() as folder, self._beside_others() as at_once:
            recorder = open_recorder()
            for part in conversation.sessions if recorder is not None else ():
                with session(part.id, time=part.time):
                    for turn in part.turns:
                        message = variable(turn.spoken, name=turn.id, kind="message")
                        known_texts(recorder).add(message, "message", turn.spoken, turn.text)  # type: ignore[arg-type]
            with self._running(folder, conversation.model_dump_json(), candidate, access, builds=True):
                _whole(self._build(folder, conversation))
            files = {
                path.relative_to(folder).as_posix(): base64.b64encode(zlib.compress(path.read_bytes())).decode()
                for path in sorted(folder.rglob("*"))
                if path.is_file()
            }
        texts = kept_texts(known_texts(recorder)) if recorder is not None else []
        lost = next((text for text, kind, _ in texts if kind != "message" and len(text.split()) > _NOTHING), None)
        self._has_stored = self._has_stored or bool(files)
        if lost is not None and not files:
            self._empty += 1
            if at_once.is_set() or (not self._has_stored and self._empty > _EMPTY):
                raise MemorySystemError(
                    f"build left nothing in its folder, though the program was replied {excerpt(lost, 60)!r}; let it "
                    "store there. If its store's place is something global (a variable of a module or of the "
                    "environment, the current folder), builds at once take it from each other, and if it rightly kept "
                    "nothing, that cannot be told from this: memtune.system(…, alone=True)"
                )
        return Memory({"files": files, "texts": texts})

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Let the program answer from a copy of the folder, which nothing that it writes leaves."""
        with self._turn, _empty_folder() as folder:
            for name, content in memory.state["files"].items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(zlib.decompress(base64.b64decode(content)))
            self._has_stored = self._has_stored or bool(memory.state["files"])
            recorder = open_recorder()
            if recorder is not None:
                known = known_texts(recorder)
                for text, kind, vid in memory.state["texts"]:
                    source = recorder.referred(vid)
                    if source is not None:
                        known.add(source, kind, text)
                query = variable(question.question, name=question.id, kind="query")
                known.add(query, "query", question.question)
            asked = f"{question.question}\n{memory.state['files']}"
            with self._running(folder, asked, candidate, access, builds=False) as running:
                reply = _whole(self._answer(folder, question.question))
            if not isinstance(reply, str):
                raise MemorySystemError(
                    f"answer returned a {type(reply).__name__}, not the text of the answer; let it return that alone"
                )
            prediction = running.answered(reply)
            if prediction is None:
                inputs = {} if recorder is None else {"question": query}
                with operation(self.operations[-1].name, inputs=inputs) as op:
                    prediction = op.output("prediction", reply, name="prediction", kind="prediction")
        return Answer(reply, prediction.id or None)

    @contextmanager
    def _beside_others(self) -> Iterator[threading.Event]:
        """Around a build: what is set once another runs at the same time."""
        mine, others = threading.Event(), [*self._building]
        for each in [*others, mine] if others else []:
            each.set()
        self._building.append(mine)
        try:
            yield mine
        finally:
            self._building.remove(mine)

    @contextmanager
    def _running(
        self, folder: Path, given: str, candidate: Candidate, access: ModelAccess, *, builds: bool
    ) -> Iterator[RunningProgram]:
        """While it is open, what the program asks here is asked by a build or an answer of what it is given."""
        if self._late:
            raise self._late.pop()
        redirect_clients()
        follow_background()
        if self._modules != len(sys.modules):
            follow_processes()
            separate_caches(self._folders)
            self._modules = len(sys.modules)
        given_to = (self._sent, self._stages, self.guessed, candidate, access, self._late)
        running = RunningProgram(*given_to, builds=builds)
        try:
            with ExitStack() as stack:
                for store in self._stores:
                    stack.enter_context(store.within(folder))
                stack.enter_context(bound_threads())
                stack.enter_context(recorded_elsewhere())
                stack.enter_context(running.runs())
                yield running
        except Exception as error:
            if running.failures:
                raise running.failures[0] from None
            if _NO_KEY.search(str(error)):
                raise MemorySystemError(
                    "the program's client wants a key; the run's models are asked in place of its own, so any text "
                    f"will do, such as OPENAI_API_KEY=none: {error}"
                ) from error
            raise
        if running.failures:
            raise running.failures[0]
        key = hashlib.sha256(given.encode()).hexdigest()
        if running.requests:
            self._asking.add(key)
        elif key in self._asking:
            raise MemorySystemError(
                f"the program made no request in {'a build' if builds else 'an answer'}, where it made one before: it "
                "keeps what it was replied with other prompts. Let the file with build turn that cache off or empty it "
                "there; a dict of the program can be one of `stores`"
            )
        due = [name for name, stages in self._stages.items() if any((stage in BUILDING) == builds for stage in stages)]
        if due and running.requests and not running.seen:
            places = ", ".join(f"{name} ({self.places[name].name})" for name in due)
            raise MemorySystemError(
                f"none of the {running.requests} requests of {'a build' if builds else 'an answer'} holds {places}; "
                "name the place where the text that is sent is written"
            )

    def _spec(self, name: str, text: str) -> PromptSpec:
        stages = self._stages[name]
        literals = [literal for literal, *_ in string.Formatter().parse(text)]
        if sum(map(str.isalpha, "".join(literals))) < _FEWEST_LETTERS:
            raise ConfigError(f"prompts: {name}: {self.places[name].name} has too little text to be known by: {text!r}")
        markers = tuple(dict.fromkeys(key for literal in literals for key in _KEY.findall(literal)))
        return PromptSpec(
            name=name,
            text=text,
            operation=operation_name(name, stages[-1], self._stages),
            contract=Contract(
                placeholders=frozenset(placeholders_of(text)),
                markers=markers,
                rules=(partial(self.places[name].problems, self.places[name].content()),),
            ),
            purpose=_PURPOSES[stages[-1]],
            builds=any(stage in BUILDING for stage in stages),
        )

    def _operations(self) -> tuple[OperationSpec, ...]:
        listed = [
            OperationSpec(operation_name(name, stage, self._stages), stage, name)
            for name, stages in self._stages.items()
            for stage in stages
        ]
        found = self.watched.stages.items() if self.watched is not None else ()
        listed += [OperationSpec(name, stage, None) for name, stage in found if stage == "retrieve"]
        if not any(spec.stage == "answer" for spec in listed):
            listed.append(OperationSpec("answer_question", "answer", None))
        return tuple(sorted(listed, key=lambda spec: _STAGES.index(spec.stage)))


def system(
    *,
    build: Callable[[Path, Conversation], Any],
    answer: Callable[[Path, str], Any],
    prompts: Mapping[str, str],
    stages: Mapping[str, Stage | Sequence[Stage]] | None = None,
    watched: Watched | None = None,
    alone: bool = False,
    stores: Mapping[str, str] | None = None,
) -> WrappedProgram:
    """An existing program as a memory system that memtune can tune, with nothing of the program changed.

    Its prompts are found in the requests that it sends by httpx (as the packages openai, anthropic and litellm do), and
    replaced there; the requests go to the run's task model, through its cache and budgets. Each that holds a prompt is
    recorded as an operation with the name of the prompt, and with what fills its placeholders.

    Args:
        build: lets the program read a conversation into a store in an empty folder; plain or `async`.
        answer: lets it answer a question from such a folder, and returns the text, or yields it in pieces; it gets a
            copy.
        prompts: name → where the text stands: `module:NAME`, `module:Class.method` for one put together in it, a
            file, or `file.yaml:key.key`, relative to the file with `build`. What the program fills in stays.
        stages: name → what the prompt is for, if that cannot be seen by its name and placeholders: `extract`, `update`,
            `retrieve`, `answer`, or several.
        watched: functions that find what is stored (`memtune.watch(module.Memory, retrieve="search")`).
        alone: builds and answers run one after the other in a process, not at once. A program needs that if it finds
            its store by something global: a variable of a module or of the environment, or the current folder.
        stores: what of that is a variable → the file or folder that takes its place, by its name in `folder`:
            `{"module:DATABASE": "memory.db"}`. It is a path, a connection to SQLite, or what keeps memories: a dict, a
            list, a set or an object. A database is another one that is empty, with the same tables. Implies `alone`.

    Raises:
        ConfigError: a prompt or a store has no such place, or a prompt too little text to be known by in a request.

    Example:
        >>> Path("notes.py").write_text('REPLY = "Notes: {notes}\\\\nAsked: {question}\\\\nReply in a few words:"')
        66
        >>> notes = system(build=lambda folder, conversation: None, answer=..., prompts={"reply": "notes:REPLY"})
        >>> notes.prompts["reply"].contract.placeholders == {"notes", "question"}, notes.operations[0].stage
        (True, 'answer')
    """
    return WrappedProgram(
        build=build, answer=answer, prompts=prompts, stages=stages or {}, watched=watched, alone=alone, stores=stores
    )


def guessed_stage(name: str, text: str) -> Stage:
    """What a prompt is probably for, by its name and its placeholders."""
    fields = " ".join(placeholders_of(text))
    if _FINDS.search(name):
        return "retrieve"
    if _ASKS.search(fields) or _ANSWERS.search(name):
        return "answer"
    if _UPDATES.search(f"{name} {fields}") or _MERGES.search(text):
        return "update"
    return "answer" if _REMEMBERS.search(fields) else "extract"


def _whole(result: Any) -> Any:
    """What a function returned, or a future of it has; what it yielded as one text, if it is texts."""
    if inspect.iscoroutine(result):
        result = settled(with_tasks(result))
    if is_future(result):
        result = result.result()
    if isinstance(result, AsyncIterator):
        result = iter(settled(with_tasks(_listed(result))))
    if not isinstance(result, Iterator):
        return result
    pieces = list(result)
    return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else pieces


async def _listed(pieces: AsyncIterator[Any]) -> list[Any]:
    return [piece async for piece in pieces]


@contextmanager
def _empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "memory"
        folder.mkdir()
        yield folder


def _text_of(place: PromptPlace) -> str:
    try:
        return place.template().text
    except ContractError as error:
        raise ConfigError(f"prompts: {place.name}: {error}") from None


def _version(parts: Sequence[Any], places: Any) -> str:
    """Changes with the program: with its wrapping, what that imports, and each file that has a prompt."""
    digest = hashlib.sha256("".join(str(code_of(part)) for part in parts).encode())
    modules = [getattr(part, "__module__", "") for part in parts]
    for file in sorted({*program_files(modules), *(place.file for place in places)}):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
