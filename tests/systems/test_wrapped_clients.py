"""Programs with other clients than of chat completions, and with global stores: what they send and keep is replaced."""

from __future__ import annotations

import contextlib
import importlib
import json
import queue
import re
import sqlite3
import subprocess
import sys
import threading
import types
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import httpx
import langchain_core.globals
import litellm
import openai
import pytest
from scripted_server import Reply, ScriptedServer

import memtune
from experiments.starter.wrapping import problems_of, write_wrapping
from experiments.systems.wrapped import background, processes
from tracing.errors import CallFailedError, ConfigError, MemorySystemError
from tracing.llm.access import ModelAccess
from tracing.recording.trace_context import trace
from tracing.systems.calls import build_memory
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

PROGRAMS = Path(__file__).parents[1] / "programs"
NOTE = "Write down each thing that is told here."
CHAT = Conversation(
    id="chat",
    speakers=("Mara", "Theo"),
    sessions=(DialogueSession(id="D1", turns=(Turn(id="D1:1", speaker="Theo", text="I sold the van to a florist."),)),),
    questions=(Question(id="q1", question="Who bought the van?", answers=("a florist",), evidence=("D1:1",)),),
)


def said(body: Mapping[str, Any]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The programs can be imported, and clients be made with keys that nobody would take."""
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "sk-test")
    monkeypatch.syspath_prepend(str(PROGRAMS))
    yield
    for name in [name for name in sys.modules if name.endswith("_program")]:
        wrapped = getattr(sys.modules.pop(name), "system", None)
        if wrapped is not None and wrapped.watched is not None:
            wrapped.watched.undo()


def imported(name: str, source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A program that is written into a folder."""
    monkeypatch.syspath_prepend(str(folder))
    (folder / f"{name}.py").write_text(source)
    return importlib.import_module(name)


def by_responses(text: str) -> str:
    return openai.OpenAI().responses.create(model="gpt", instructions=NOTE, input=text).output_text


def by_messages(text: str) -> str:
    asked: Any = [{"role": "user", "content": text}]
    with anthropic.Anthropic().messages.stream(model="c", system=NOTE, max_tokens=9, messages=asked) as stream:
        return "".join(stream.text_stream)


def by_litellm(text: str, model: str = "openai/gpt-4o") -> str:
    asked = [{"role": "system", "content": NOTE}, {"role": "user", "content": text}]
    return str(litellm.completion(model=model, messages=asked).choices[0].message.content)


def by_litellm_of_anthropic(text: str) -> str:
    return by_litellm(text, "anthropic/claude-sonnet-4-5")


async def by_async_litellm_of_anthropic(text: str) -> str:
    asked = [{"role": "user", "content": f"{NOTE}\n{text}"}]
    pieces = await litellm.acompletion(model="anthropic/claude-sonnet-4-5", messages=asked, stream=True)
    return "".join([piece.choices[0].delta.content or "" async for piece in pieces])


def by_httpx(text: str) -> str:
    asked = [{"role": "user", "content": [{"type": "text", "text": NOTE}, {"type": "text", "text": text}]}]
    body = {"model": "m", "messages": asked}
    reply = httpx.post("https://models.invalid/v1/chat/completions", json=body, headers={"Authorization": "Bearer s"})
    return str(reply.raise_for_status().json()["choices"][0]["message"]["content"])


def wrapped(ask: Callable[[str], Any], folder: Path, **options: Any) -> Any:
    async def build(folder: Path, conversation: Conversation) -> None:
        for turn in conversation.turns():
            reply = ask(turn.spoken)
            (folder / "notes.txt").write_text(reply if isinstance(reply, str) else await reply)

    (folder / "note.txt").write_text(NOTE)
    prompts = {"note": str(folder / "note.txt")}
    options = {"answer": lambda folder, question: "unknown", "prompts": prompts, **options}
    return memtune.system(**{"build": build, **options})


@pytest.mark.parametrize(
    "ask",
    [by_responses, by_messages, by_litellm, by_litellm_of_anthropic, by_async_litellm_of_anthropic, by_httpx],
)
def test_a_request_of_any_client_has_the_candidate_and_is_counted_cached_and_recorded(
    ask: Callable[[str], Any],
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    tmp_path: Path,
) -> None:
    scripted_server.script = lambda body: "Theo sold the van."
    system, access, candidate = wrapped(ask, tmp_path), open_access(), {"note": "List every fact."}
    with trace() as recorder:
        system.build(CHAT, candidate, access)
    (body,) = scripted_server.requests
    assert said(body) == "List every fact.\nTheo: I sold the van to a florist."
    (operation,) = recorder.graph.operations.values()
    assert (operation.name, operation.calls) == ("note", 1)
    assert [recorder.graph.variables[vid].value for vid in operation.output_ids()] == ["Theo sold the van."]
    with trace():
        system.build(CHAT, candidate, access)
    totals = access.meter.totals()
    assert (totals["calls_made"], totals["calls_cached"], scripted_server.count) == (1, 1, 1)


def test_a_request_that_cannot_be_passed_on_ends_the_build_though_its_error_is_swallowed(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    def ask(text: str) -> str:
        url = "https://models.invalid/v1beta/models/gemini:generateContent"
        return str(httpx.post(url, json={"contents": [{"parts": [{"text": text}]}]}).status_code)

    def swallowing(text: str) -> str:
        scripted_server.script = lambda body: Reply("no", status=403)
        try:
            return by_responses(text)
        except openai.APIStatusError:
            return "nothing"

    with pytest.raises(MemorySystemError, match=r"by /v1beta/models/gemini:generateContent; memtune passes on"):
        wrapped(ask, tmp_path).build(CHAT, {"note": NOTE}, open_access())
    with trace() as recorder, pytest.raises(CallFailedError):
        wrapped(swallowing, tmp_path).build(CHAT, {"note": NOTE}, open_access())
    (operation,) = recorder.graph.find_operations(name="note")
    assert operation.status == "error"


def test_an_error_of_a_program_is_told_with_its_place_and_so_is_an_exit(
    open_access: Callable[..., ModelAccess], tmp_path: Path
) -> None:
    def failing(text: str) -> str:
        raise KeyError("no such user")

    def ending(text: str) -> str:
        sys.exit(0)  # as the main function of a command does

    for ask, reason in ((failing, "KeyError: 'no such user'"), (ending, "RuntimeError: SystemExit: 0")):
        with pytest.raises(MemorySystemError, match=rf"failed in build \({re.escape(__file__)}:\d+\): {reason}"):
            build_memory(wrapped(ask, tmp_path), CHAT, {"note": NOTE}, open_access())


def test_a_chat_model_that_is_asked_without_httpx_is_refused_and_nothing_else_is(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    def posting(path: str) -> Callable[[str], str]:
        def ask(text: str) -> str:
            with contextlib.suppress(urllib.error.HTTPError, MemorySystemError):
                urllib.request.urlopen(f"{scripted_server.base_url}{path}", b'{"model": "m", "input": "x"}')  # noqa: S310
            return text

        return ask

    for path in ("/chat/completions", "/messages?beta=true", "/model/a.b-c/converse-stream"):
        with pytest.raises(
            MemorySystemError, match=rf"{path.partition('?')[0]} by a client without httpx, such as req"
        ):
            wrapped(posting(path), tmp_path).build(CHAT, {"note": NOTE}, open_access())
    assert scripted_server.count == 0
    wrapped(posting("/embeddings"), tmp_path).build(CHAT, {"note": NOTE}, open_access())


@pytest.mark.parametrize("program", ["journal", "concierge", "tutor"])
def test_programs_are_wrapped_by_init_with_nothing_to_mend(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Functions around a database with responses; an async service of Anthropic's; LiteLLM, Jinja2 and a stream."""
    monkeypatch.chdir(tmp_path)
    name = f"{program}_program" + (":Concierge" if program == "concierge" else "")
    wrapping = write_wrapping(name, tmp_path)
    text = (tmp_path / f"wrapped_{program}_program.py").read_text()
    assert len([line for line in text.splitlines() if line.strip()]) <= 25
    assert wrapping.can_run
    assert problems_of(f"wrapped_{program}_program:system") == []


THREADED = """
import functools
from concurrent.futures import ThreadPoolExecutor

import openai

REPLIES = {}
NOTE = "Write down each thing that is told here."

def ask(text):
    asked = [{"role": "user", "content": NOTE + " " + text}]
    return openai.OpenAI(max_retries=0).chat.completions.create(model="gpt", messages=asked).choices[0].message.content

def again(function):
    @functools.wraps(function)
    def asked(text):
        return function(text)
    return asked

@again
@functools.lru_cache
def cached(text):
    return ask(text)

def in_a_thread(text):
    with ThreadPoolExecutor() as pool:
        return pool.submit(cached, text).result()

def kept(text):
    return REPLIES[text] if text in REPLIES else REPLIES.setdefault(text, ask(text))
"""


@pytest.mark.parametrize("ask", ["in_a_thread", "kept"])
def test_every_candidate_is_asked_with_whatever_the_program_keeps_of_replies(
    ask: str,
    open_access: Callable[..., ModelAccess],
    scripted_server: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In threads, too, and though nothing is recorded: there the program would ask its own model for money."""
    program = imported("threaded_program", THREADED, tmp_path, monkeypatch)
    system = wrapped(getattr(program, ask), tmp_path, prompts={"note": "threaded_program:NOTE"})
    access = open_access()
    system.build(CHAT, {"note": "Be brief."}, access)
    if ask == "kept":
        with pytest.raises(MemorySystemError, match=r"made no request in a build, where it made one before: it keeps"):
            system.build(CHAT, {"note": "Be exact."}, access)
        return
    system.build(CHAT, {"note": "Be exact."}, access)
    assert [said(body).partition(". ")[0] for body in scripted_server.requests] == ["Be brief", "Be exact"]


CACHED = """
import cachetools
import diskcache
import joblib
import litellm
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_openai import ChatOpenAI
from threaded_program import NOTE, ask

DISK, FILES = diskcache.Cache("replies"), joblib.Memory("replies", verbose=0)
LANGCHAIN, litellm.cache = InMemoryCache(), litellm.Cache()

def by_langchain(text):
    set_llm_cache(LANGCHAIN)
    return ChatOpenAI(model="gpt").invoke(NOTE + " " + text).content

def by_litellm(text):
    asked = [{"role": "user", "content": NOTE + " " + text}]
    return litellm.completion(model="openai/gpt", messages=asked, caching=True).choices[0].message.content

@DISK.memoize()
def by_diskcache(text):
    return ask(text)

@FILES.cache
def by_joblib(text):
    return ask(text)

@cachetools.cached(cachetools.TTLCache(9, 9))
def by_cachetools(text):
    return ask(text)
"""


def test_caches_of_libraries_neither_give_nor_keep_a_reply_while_a_candidate_is_tried(
    open_access: Callable[..., ModelAccess],
    scripted_server: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What they keep on disk is the program's own, and would answer its users with what a candidate was replied."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(litellm, "cache", None)
    monkeypatch.setattr(langchain_core.globals, "_llm_cache", None)
    imported("threaded_program", THREADED, tmp_path, monkeypatch)
    program, access = imported("cached_program", CACHED, tmp_path, monkeypatch), open_access()
    for library in ("langchain", "litellm", "diskcache", "joblib", "cachetools"):
        system = wrapped(
            lambda text, library=library: getattr(program, f"by_{library}")(text),  # type: ignore[misc]
            tmp_path,
            prompts={"note": "cached_program:NOTE"},
        )
        for text in (f"Be brief, {library}.", f"Be exact, {library}."):
            system.build(CHAT, {"note": text}, access)
            assert said(scripted_server.requests[-1]).startswith(text), library
    assert (len(program.DISK), program.LANGCHAIN._cache, litellm.cache.cache.cache_dict) == (0, {}, {})
    assert not list((tmp_path / "replies").rglob("output.pkl"))
    program.DISK.close()


def test_a_program_may_keep_nothing_of_a_conversation_but_not_of_all(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    """An agent decides that, or a rewrite makes replies that the program cannot read."""
    scripted_server.script = lambda body: "There is nothing here that is worth a note."

    def built(keeps: list[bool]) -> list[int]:
        def build(folder: Path, conversation: Conversation) -> None:
            reply = by_responses(conversation.id)
            if keep := keeps.pop(0):
                (folder / "notes.txt").write_text(f"{keep} {reply}")

        system, access = wrapped(by_responses, tmp_path, build=build), open_access()
        memories = []
        while keeps:
            with trace():
                memories.append(len(system.build(CHAT, {"note": NOTE}, access).state["files"]))
        return memories

    assert built([False, False, True, False, False]) == [0, 0, 1, 0, 0]
    with pytest.raises(MemorySystemError, match="build left nothing in its folder, though the program was replied"):
        built([False, False, False])


TYPED = """
import openai
from pydantic import BaseModel, Field

class Memory(BaseModel):
    \"\"\"Anything that somebody may ask about later.\"\"\"

    content: str = Field(description="What was said, in the words of the speaker.")

def ask(text):
    tools = [openai.pydantic_function_tool(Memory)]
    asked = [{"role": "user", "content": text}]
    openai.OpenAI().chat.completions.create(model="gpt", messages=asked, tools=tools)
    asked = openai.OpenAI().responses.parse(model="gpt", input=text, text_format=Memory)
    return text
"""


def test_descriptions_of_tools_schemas_and_fields_are_prompts(
    open_access: Callable[..., ModelAccess],
    scripted_server: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = imported("typed_program", TYPED, tmp_path, monkeypatch)
    scripted_server.script = lambda body: json.dumps({"content": "a van"})
    places = {"memory": "typed_program:Memory.__doc__", "content": "typed_program:Memory.content"}
    options = {"prompts": places, "stages": dict.fromkeys(places, "extract")}
    system = wrapped(program.ask, tmp_path, **options)
    candidate = {"memory": "Whatever was sold.", "content": "Quote it."}
    with trace() as recorder:
        system.build(CHAT, candidate, open_access())
    assert len(scripted_server.requests) == 2
    for body in scripted_server.requests:
        forms = json.dumps([body.get("tools"), body.get("response_format")])
        assert all(f'"description": "{text}"' in forms for text in candidate.values())
    (operation, _) = recorder.graph.find_operations(name="content")
    beside = [recorder.graph.variables[vid].value for role, vid in operation.inputs if role != "prompt"]
    assert beside == [CHAT.sessions[0].turns[0].spoken]


class TestStoresOfVariables:
    @pytest.fixture
    def module(self) -> Iterator[types.ModuleType]:
        module = types.ModuleType("set_program")
        sys.modules["set_program"] = module
        yield module
        del sys.modules["set_program"]

    def used(self, module: types.ModuleType, tmp_path: Path, use: Callable[[str], Any], **stores: str) -> list[Any]:
        """What is in the memory of a build that uses the store, and of an answer after it."""
        seen: list[Any] = []

        def build(folder: Path, conversation: Conversation) -> Iterator[str]:
            yield f"{use('told')}"

        def answer(folder: Path, question: str) -> Iterator[str]:
            seen.append(use("asked"))
            yield "un"
            yield "known"

        places = {f"set_program:{name}": file for name, file in stores.items()}
        system = wrapped(by_responses, tmp_path, build=build, answer=answer, stores=places)
        memory = system.build(CHAT, {"note": NOTE}, None)
        reply = system.answer(memory, CHAT.questions[0], {"note": NOTE}, None)
        assert reply.text == "unknown"
        return [sorted(memory.state["files"]), *seen]

    @pytest.mark.parametrize("is_path", [False, True])
    def test_a_database_is_another_with_the_same_tables(
        self, module: types.ModuleType, tmp_path: Path, *, is_path: bool
    ) -> None:
        own = sqlite3.connect(tmp_path / "own.db")
        own.execute("create table facts (id integer primary key autoincrement, text text)")
        own.execute("create virtual table words using fts5(text)")
        own.execute("insert into facts (text) values ('mine')")
        own.commit()
        own.row_factory = sqlite3.Row
        module.db = f"sqlite:///{tmp_path / 'own.db'}" if is_path else own  # type: ignore[attr-defined]

        def use(text: str) -> list[str]:
            place = module.db
            database = sqlite3.connect(place.removeprefix("sqlite:///")) if is_path else place
            with database:
                database.execute("insert into facts (text) values (?)", (text,))
                database.execute("insert into words values (?)", (text,))
            rows = [row[0] for row in database.execute("select text from facts order by id")]
            assert is_path or database.row_factory is sqlite3.Row
            if is_path:
                database.close()
            return rows

        assert self.used(module, tmp_path, use, db="memory.db") == [["memory.db"], ["told", "asked"]]
        assert [row[0] for row in own.execute("select text from facts")] == ["mine"]
        own.close()

    def test_what_is_no_store_is_refused(self, module: types.ModuleType, tmp_path: Path) -> None:
        module.client = object()  # type: ignore[attr-defined]
        for name, problem in (
            ("client", r"is a builtins\.object, and no path"),
            ("clien", "has no attribute 'clien'; did you"),
        ):
            with pytest.raises(ConfigError, match=problem):
                self.used(module, tmp_path, str, **{name: "x"})


BESIDE = """
import queue
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed

from threaded_program import NOTE, ask

JOBS, POOL, FOUND = queue.Queue(), ThreadPoolExecutor(4), []

def work():
    while True:
        text = JOBS.get()
        FOUND.append(ask(text))
        JOBS.task_done()

threading.Thread(target=work, daemon=True).start()

def by_a_worker(text):
    JOBS.put(text)

def by_threads_in_turn(text):
    for each in "abcd":
        threading.Thread(target=lambda each=each: ask(each + text), daemon=each != "b").start()

def by_a_pool_as_completed(text):
    for _ in as_completed([POOL.submit(ask, each + text) for each in "abcd"]):
        pass

def by_threads_that_wait_for_each_other(text):
    ready = threading.Event()
    with ThreadPoolExecutor() as pool:
        pool.submit(lambda: (ready.wait(), ask(text)))
        pool.submit(ready.set)

def by_processes(text):
    with ProcessPoolExecutor(2) as pool:
        return list(pool.map(ask, [each + text for each in "abcd"]))[0]

def long_after(text):
    threading.Timer(0.3, ask, (text,)).start()
    time.sleep(0.1)
"""


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    imported("threaded_program", THREADED, tmp_path, monkeypatch)
    return imported("beside_program", BESIDE, tmp_path, monkeypatch)


class TestWhatAProgramDoesBeside:
    @pytest.mark.parametrize(
        ("ask", "asked"),
        [
            ("by_a_worker", ["T"]),
            ("by_threads_in_turn", ["aT", "bT", "cT", "dT"]),
            ("by_a_pool_as_completed", ["aT", "bT", "cT", "dT"]),
            ("by_threads_that_wait_for_each_other", ["T"]),
            ("by_processes", ["aT", "bT", "cT", "dT"]),
            ("long_after", ["T"]),
        ],
    )
    def test_it_belongs_to_the_build_which_ends_after_it_and_asks_in_turn(
        self,
        beside: types.ModuleType,
        ask: str,
        asked: list[str],
        open_access: Callable[..., ModelAccess],
        scripted_server: ScriptedServer,
        tmp_path: Path,
    ) -> None:
        """A worker that began with the program, and a process, would ask the user's own model with the baseline."""
        scripted_server.script = lambda body: "Theo sold the van to a florist."
        system = wrapped(lambda text: str(getattr(beside, ask)(text)), tmp_path)
        with trace() as recorder:
            system.build(CHAT, {"note": "Be brief."}, open_access())
        sent = [said(body).replace("Theo: I sold the van to a florist.", "T") for body in scripted_server.requests]
        assert sent == [f"Be brief. {text}" for text in asked]
        assert [operation.name for operation in recorder.graph.operations.values()] == ["note"] * len(asked)

    def test_a_thread_without_a_build_is_taken_for_the_only_one_and_refused_with_several(
        self, beside: types.ModuleType, open_access: Callable[..., ModelAccess], tmp_path: Path
    ) -> None:
        """What gives such a thread its work is not seen, as with a pipe or a poll."""
        work, meeting, access = queue.SimpleQueue[Any](), threading.Barrier(2, timeout=60), open_access()

        def serve() -> None:
            for text, done in iter(work.get, None):
                with contextlib.suppress(openai.APIError):
                    beside.ask(text)
                done.set()

        def ask(text: str, *, alone: bool = True) -> str:
            _ = alone or meeting.wait()
            work.put((text, done := threading.Event()))
            _ = done.wait(), alone or meeting.wait()
            return "Done."

        server = threading.Thread(target=serve)
        server.start()
        with trace() as recorder:
            wrapped(ask, tmp_path).build(CHAT, {"note": "Be brief."}, access)
        assert [operation.calls for operation in recorder.graph.operations.values()] == [1]
        several = wrapped(ask, tmp_path, build=lambda folder, conversation: ask(conversation.id, alone=False))
        with ThreadPoolExecutor(2) as pool:
            builds = [pool.submit(several.build, CHAT, {"note": NOTE}, access) for _ in range(2)]
        for build in builds:
            assert "alone=True" in str(build.exception())
        work.put(None)
        server.join()

    @pytest.mark.parametrize(
        ("command", "shell", "is_python"),
        [
            ("python3 ask.py", False, True),
            ("./ask.py", False, True),
            ("/usr/bin/env python ask.py", False, True),
            ("bash -c 'python ask.py'", False, True),
            ("uv run ask.py", False, True),
            ("cd there && python ask.py", True, True),
            ("git add ask.py", False, False),
            ("bash -c ls", False, False),
            ("gone", False, False),
        ],
    )
    def test_a_command_is_known_for_a_python_however_it_is_started(
        self, command: str, shell: bool, is_python: bool
    ) -> None:
        assert processes._starts_python(command.split(), passed_on=shell) == is_python

    @pytest.mark.parametrize(
        "begins", ["#!/venv/bin/python", "#!/bin/sh\n'''exec' /long/python3", "#!/bin/sh\nls\n# python"]
    )
    def test_a_script_of_the_environment_is_known_for_a_python(
        self, begins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        (tmp_path / "ask").write_text(f"{begins}\n")
        (tmp_path / "ask").chmod(0o755)
        assert processes._starts_python([str(tmp_path / "ask")], passed_on=False) == (not begins.endswith("# python"))

    def test_another_python_is_refused_and_so_is_what_is_asked_too_late(
        self, beside: types.ModuleType, open_access: Callable[..., ModelAccess], tmp_path: Path
    ) -> None:
        access, may_ask, asked = open_access(), threading.Event(), threading.Event()

        def by_a_command(text: str) -> str:
            with contextlib.suppress(MemorySystemError):
                subprocess.run([sys.executable, "-c", "print(1)"], check=True)
            return text

        def too_late(text: str) -> str:
            def later() -> None:
                background._WAITING.add(threading.get_ident())  # as if it waited for an item
                may_ask.wait()
                with contextlib.suppress(openai.APIError):
                    beside.ask(text)
                background._WAITING.discard(threading.get_ident())
                asked.set()

            threading.Thread(target=later).start()
            return text

        with pytest.raises(MemorySystemError, match=r"starts another Python \(.*python.* -c print\(1\)\)"):
            wrapped(by_a_command, tmp_path).build(CHAT, {"note": NOTE}, access)
        system = wrapped(too_late, tmp_path)
        system.build(CHAT, {"note": NOTE}, access)
        may_ask.set()
        asked.wait()
        with pytest.raises(MemorySystemError, match="after the build or answer that this is for has returned"):
            system.build(CHAT, {"note": NOTE}, access)
        assert access.meter.totals()["calls_made"] == 0
