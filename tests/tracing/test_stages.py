"""A program's own functions are recorded as they are, with what they read and made, also where they copy texts."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from pydantic import BaseModel
from scripted_server import ScriptedServer

import memtune
from tracing import ExecutionGraph, Operation, bind
from tracing.errors import ConfigError
from tracing.instrument.stages import entries_in

PROGRAMS = Path(__file__).parents[1] / "programs"
BAKERY, VAN = "Mara: The bakery gave me the early shift.", "Theo: I sold the van to a florist in Aberdeen."
BIKE = "Theo: I have bought a cargo bike for the florist in Aberdeen."


def replied(body: dict[str, Any]) -> str:
    """Repeats what was said as notes, merges a note with the first that is there, and answers with the notes."""
    text = "\n".join(str(message["content"]) for message in body["messages"])
    if "New note" in text:
        return json.dumps({"replaces": 0, "note": re.findall("New note: (.*)", text)[0] + " He said so."})
    if "Question:" in text or "remember:" in text:
        return "a florist"
    return "\n".join(f"- {line.partition(': ')[2]}" for line in text.splitlines() if re.match("(Mara|Theo): ", line))


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, scripted_server: ScriptedServer) -> Iterator[ScriptedServer]:
    monkeypatch.syspath_prepend(str(PROGRAMS))
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    scripted_server.script = replied
    return scripted_server


def inputs(graph: ExecutionGraph, operation: Operation, kind: str) -> list[Any]:
    return [graph.variables[vid].value for vid in operation.input_ids() if graph.variables[vid].kind == kind]


def outputs(graph: ExecutionGraph, operation: Operation, kind: str) -> list[Any]:
    return [graph.variables[vid].value for vid in operation.output_ids() if graph.variables[vid].kind == kind]


def before(graph: ExecutionGraph, operation: Operation) -> set[str]:
    """All texts that what an operation made comes from."""
    return {str(variable.value) for variable in graph.backward_slice(*operation.output_ids()).variables.values()}


class TestAnAsyncClassWithADatabase:
    @pytest.fixture
    def graph(self, program: ScriptedServer) -> ExecutionGraph:
        import notes_program

        async def use() -> str:
            memory = notes_program.Memory(":memory:")
            await memory.add([BAKERY, VAN])
            await memory.add([BIKE])
            return str(await memory.reply("Who bought the cargo bike?"))

        names = {"extract": "add", "update": "store", "retrieve": "search", "answer": "reply"}
        with memtune.watch(notes_program.Memory, **names), memtune.trace() as recorder:
            assert asyncio.run(use()) == "a florist"
        assert not hasattr(notes_program.Memory.add, "_memtune_original")
        return recorder.graph

    def test_each_step_has_what_it_read_and_made(self, graph: ExecutionGraph) -> None:
        first, _ = graph.find_operations(name="add")
        assert first.attributes["stage"] == "extract"
        assert (first.kind, first.calls) == ("llm", 1)
        assert inputs(graph, first, "message") == [BAKERY, VAN]
        assert outputs(graph, first, "fact") == [
            "The bakery gave me the early shift.",
            "I sold the van to a florist in Aberdeen.",
        ]
        (answer,) = graph.find_operations(name="reply")
        assert outputs(graph, answer, "prediction") == ["a florist"]
        assert inputs(graph, answer, "query") == ["Who bought the cargo bike?"]

    def test_what_was_said_is_followed_through_the_database_into_the_answer(self, graph: ExecutionGraph) -> None:
        (answer,) = graph.find_operations(name="reply")
        assert {VAN, BIKE} <= before(graph, answer)

    def test_a_step_without_a_model_keeps_what_it_was_given(self, graph: ExecutionGraph) -> None:
        first, _, merging = graph.find_operations(name="store")
        assert outputs(graph, first, "memory_entry") == inputs(graph, first, "fact")
        assert (first.kind, merging.kind) == ("function", "llm")
        assert outputs(graph, merging, "memory_entry") == [f"{BIKE.partition(': ')[2]} He said so."]

    def test_what_is_linked_by_its_text_is_marked(self, graph: ExecutionGraph) -> None:
        contexts = graph.find_variables(kind="context")
        assert contexts
        assert all(context.attributes["linked"] == "by text" for context in contexts)
        assert all(graph.variables[context.attributes["entry"]].kind == "memory_entry" for context in contexts)


def test_an_agent_of_a_graph_is_recorded_from_outside(program: ScriptedServer, tmp_path: Path) -> None:
    import agent_program

    names = {"extract": "remember", "retrieve": "memories", "answer": "respond"}
    with memtune.watch(agent_program.Agent, **names), memtune.trace() as recorder:
        agent = agent_program.Agent(tmp_path)
        agent.chat(VAN)
        assert agent.chat("Who has the van?") == "a florist"
    graph = recorder.graph
    (remember,), (respond,) = graph.find_operations(name="remember"), graph.find_operations(name="respond")
    assert inputs(graph, remember, "message") == [VAN]
    assert outputs(graph, remember, "memory_entry") == ["I sold the van to a florist in Aberdeen."]
    assert inputs(graph, respond, "context") == ["- I sold the van to a florist in Aberdeen."]
    assert outputs(graph, respond, "prediction") == ["a florist"]
    assert VAN in before(graph, respond)


def test_a_decorator_records_functions_and_generators_as_they_are() -> None:
    @memtune.operation(stage="extract")
    async def keep(turns: list[str]) -> list[str]:
        return [turn.partition(": ")[2] for turn in turns]

    @memtune.operation(stage="retrieve")
    def find(question: str, notes: list[str]) -> Iterator[str]:
        yield from (note for note in notes if "van" in note)

    @memtune.operation("reply", stage="answer")
    async def answered(question: str, notes: list[str]) -> Any:
        for piece in ("a ", "florist"):
            yield piece

    async def stream(question: str, notes: list[str]) -> list[str]:
        return [piece async for piece in answered(question, notes)]

    question = "Who has the van?"
    with memtune.trace() as recorder:
        notes = asyncio.run(keep([BAKERY, VAN]))
        context = list(find(question, notes))
        assert asyncio.run(stream(question, context)) == ["a ", "florist"]
    graph = recorder.graph
    (reply,) = graph.find_operations(name="reply")
    assert outputs(graph, reply, "prediction") == ["a florist"]
    assert inputs(graph, reply, "query") == [question]
    assert {VAN} <= before(graph, reply)
    assert asyncio.run(keep([VAN])) == ["I sold the van to a florist in Aberdeen."]


def test_what_a_step_promises_is_what_it_makes() -> None:
    class Notes:
        def add(self, text: str) -> Future[str]:
            return pool.submit(str.upper, text)

        def reply(self, question: str, notes: list[str]) -> Future[str]:
            return pool.submit(" ".join, ("a", "florist"))

    with ThreadPoolExecutor() as pool, memtune.watch(Notes, extract="add", answer="reply"), memtune.trace() as recorder:
        note = Notes().add(VAN).result()
        assert Notes().reply("Who has the van?", [note]).result() == "a florist"
    add, reply = recorder.graph.operations.values()
    assert outputs(recorder.graph, add, "memory_entry") == [VAN.upper()]
    assert outputs(recorder.graph, reply, "prediction") == ["a florist"]
    assert VAN in before(recorder.graph, reply)


def test_steps_in_several_threads_do_not_fail_by_being_recorded() -> None:
    add = memtune.operation("add", stage="extract")(lambda text: [f"{text}, and it was noted"])
    find = memtune.operation("find", stage="retrieve")(lambda question: [f"{question} was asked before"])

    def work(thread: int) -> None:
        for step in range(150):
            add(f"Thing {step} was said in {thread}")
            find(f"What of {step} in {thread}?")

    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with memtune.trace() as recorder, ThreadPoolExecutor() as pool:
            list(pool.map(bind(work), range(4)))
    finally:
        sys.setswitchinterval(switching)
    assert len(recorder.graph.operations) == 4 * 2 * 150


def test_calls_of_anthropic_are_part_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def respond(request: httpx2.Request) -> httpx2.Response:
        block = {"type": "text", "text": "Theo sold the van."}
        usage = {"input_tokens": 7, "output_tokens": 4}
        body = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn"}
        return httpx2.Response(200, json={**body, "content": [block], "usage": usage})

    client = anthropic.Anthropic(
        api_key="sk-test",
        base_url="http://127.0.0.1",
        http_client=httpx2.Client(transport=httpx2.MockTransport(respond)),
    )

    class Notes:
        def add(self, text: str) -> None:
            client.messages.create(
                model="claude", max_tokens=9, system="Keep notes.", messages=[{"role": "user", "content": text}]
            )

    with memtune.watch(Notes, extract="add"), memtune.trace() as recorder:
        Notes().add(VAN)
    (add,) = recorder.graph.find_operations(name="add")
    assert (add.calls, add.prompt_tokens, add.completion_tokens) == (1, 7, 4)
    assert outputs(recorder.graph, add, "memory_entry") == ["Theo sold the van."]
    assert inputs(recorder.graph, add, "request")[0][0] == {"role": "system", "content": "Keep notes."}


def test_static_methods_and_those_of_classes_stay_what_they_are() -> None:
    class Notes:
        @staticmethod
        def find(query: str) -> list[str]:
            return [query]

        @classmethod
        def answer(cls, query: str) -> str:
            return f"{cls.__name__} {query}"

    with memtune.watch(Notes, retrieve="find", answer="answer"), memtune.trace() as recorder:
        assert (Notes.find("the van"), Notes().answer("the van")) == (["the van"], "Notes the van")
    assert [operation.name for operation in recorder.graph.operations.values()] == ["find", "answer"]
    assert (Notes().find("the van"), Notes.answer("the van")) == (["the van"], "Notes the van")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("client", ["openai", "litellm"])
def test_a_step_that_asks_only_for_vectors_keeps_and_finds_what_it_is_given(
    client: str, program: ScriptedServer
) -> None:
    class Verbatim:
        def __init__(self) -> None:
            self.rows: list[str] = []

        def vector(self, text: str) -> Any:
            if client == "litellm":
                import litellm

                return litellm.embedding(model="openai/small", input=[text], api_base=program.base_url)
            return openai.OpenAI().embeddings.create(model="small", input=[text])

        def add(self, text: str) -> int:
            self.rows.append(text)
            return len(self.vector(text).data)

        def search(self, query: str) -> list[str]:
            return self.rows[: len(self.vector(query).data)]

    if client == "litellm":
        pytest.importorskip("litellm")
    with memtune.watch(Verbatim, extract="add", retrieve="search"), memtune.trace() as recorder:
        memory = Verbatim()
        memory.add(VAN)
        assert memory.search("Who bought the van?") == [VAN]
    graph = recorder.graph
    add, search = graph.operations.values()
    assert (add.calls, search.calls, search.kind) == (1, 1, "retrieval")
    assert outputs(graph, add, "memory_entry") == [VAN]
    assert inputs(graph, search, "memory_entry") == [VAN]
    (reply,) = outputs(graph, add, "reply")
    assert (reply["embeddings"], set(reply)) == (1, {"embeddings", "dimensions"})


@dataclass
class Ran:
    """What an agent returns: its reply, beside how it came to it."""

    raw: str
    messages: tuple[str, ...] = ("the user has asked for a place", "it is looked up")


def test_an_answer_is_the_reply_of_what_an_agent_returns() -> None:
    class Companion:
        def ask(self, question: str) -> Ran:
            return Ran("Mara lives in Oslo.")

    with memtune.watch(Companion, answer="ask"), memtune.trace() as recorder:
        ran = Companion().ask("Where does Mara live?")
    assert isinstance(ran, Ran)
    predictions = [each.value for each in recorder.graph.variables.values() if each.kind == "prediction"]
    assert predictions == ["Mara lives in Oslo."]


def test_a_task_of_langgraph_is_not_watched_since_it_returns_before_it_has_run() -> None:
    func = pytest.importorskip("langgraph.func")

    class Agent:
        memorize = func.task(lambda text: text)
        workflow = func.entrypoint()(lambda text: text)

    for name in ("memorize", "workflow"):
        with pytest.raises(ConfigError, match=rf"'{name}' is run by LangGraph, .* tracing\.instrument\.langgraph\(\)"):
            memtune.watch(Agent, extract=name)


def test_what_is_not_there_is_named() -> None:
    class Notes:
        def search(self) -> None: ...

    with pytest.raises(ConfigError, match="watch: Notes has no function 'serch'; did you mean 'search'"):
        memtune.watch(Notes, retrieve="serch")
    with pytest.raises(ConfigError, match="stage: unknown: 'recall'; choose one of extract, update, retrieve, answer"):
        memtune.operation(stage="recall")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "fact", "asked"),
    [
        ("I moved to Oslo last week.", "Mara lives in Oslo.", "Where does Mara live?"),
        ("我上周搬到了奥斯陆。", "她住在奥斯陆。", "玛拉住在哪里?"),
        ("先週オスロに引っ越しました。", "マラはオスロに住んでいる。", "マラはどこに住んでいますか"),
        ("ฉันย้ายไปออสโลเมื่อสัปดาห์ที่แล้ว", "มาราอาศัยอยู่ในออสโล", "มาราอาศัยอยู่ที่ไหน"),
    ],
)
def test_what_is_said_kept_and_found_is_known_without_spaces_between_words(said: str, fact: str, asked: str) -> None:
    class Notes:
        def add(self, text: str) -> list[str]:
            return [fact]

        def search(self, query: str) -> list[str]:
            return [fact]

    with memtune.watch(Notes, extract="add", retrieve="search"), memtune.trace() as recorder:
        notes = Notes()
        notes.add(said)
        notes.search(asked)
    variables = recorder.graph.variables.values()
    kinds = {variable.kind: variable for variable in variables}
    assert [str(kinds[kind].value) for kind in ("message", "query")] == [said, asked]
    entries = [variable for variable in variables if variable.value == fact and variable.kind != "context"]
    assert kinds["context"].attributes["entry"] in {variable.id for variable in entries}
    assert entries_in(json.dumps({"facts": [fact, "Mara"]})) == [fact]


@dataclass
class Locked:
    name: str
    lock: Any


class Wrapped(BaseModel, arbitrary_types_allowed=True):
    client: Any


@pytest.mark.parametrize("beside", [Locked("a", threading.Lock()), Wrapped, Wrapped(client=threading.Lock())])
def test_what_cannot_be_copied_or_dumped_ends_no_program(beside: Any) -> None:
    class Notes:
        def add(self, text: str, beside: Any) -> list[str]:
            return ["Mara lives in Oslo."]

    with memtune.watch(Notes, extract="add"), memtune.trace() as recorder:
        assert Notes().add("I moved to Oslo.", beside) == ["Mara lives in Oslo."]
    assert {"message", "memory_entry"} <= {variable.kind for variable in recorder.graph.variables.values()}
