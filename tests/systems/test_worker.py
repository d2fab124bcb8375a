"""A memory system behind the worker boundary is the same system: its results, its trace, its bills, its failures."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from light_environment import make_light
from scripted_server import ScriptedServer, prompt_of

from experiments.systems.fact_memory import FactMemory
from experiments.systems.worker import handle, in_worker
from experiments.systems.worker.environment import Environment
from experiments.systems.worker.handle import close_pools
from experiments.systems.worker.isolated import environment_of
from optimizer.evaluation.evaluator import Evaluator
from tracing.errors import BudgetExceededError, ConfigError, MemorySystemError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.plugins import look_in
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace
from tracing.systems.conformance import SMALL_TALK, MemorySystemConformance
from tracing.systems.interventions import Heard, Intervention, intervene
from tracing.systems.protocol import MemorySystem
from tracing.systems.registry import open_system

Open = Callable[..., ModelAccess]
Apart = in_worker(requirements=())(FactMemory)
BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}

OWN = """
import os
import subprocess
import sys
import time

from tracing import operation, variable
from tracing.systems.prompts import Contract, PromptSpec
from tracing.systems.protocol import Answer, Memory, OperationSpec
from experiments.systems.worker import handle, in_worker


@in_worker(requirements=())
class Odd:
    name = "odd-{own}"
    prompts = {}
    operations = (OperationSpec("reply", "answer", None),)

    def __init__(self, *, odd="", folder=""):
        self.odd, self.folder = odd, folder
        self.settings = {"odd": odd, "folder": folder}

    def build(self, conversation, candidate, access):
        print("said on standard output")
        subprocess.run(["echo", "said by a child"])
        text = access.task.chat([{"role": "user", "content": conversation.id}], max_tokens=9, whole=False).text
        if self.odd == "dies" or (self.odd == "dies once" and not os.path.exists(f"{self.folder}/died")):
            open(f"{self.folder}/died", "a").write("x")
            print("fatal: api_key=sk-secretsecretsecret42 and no room left", file=sys.stderr, flush=True)
            os._exit(7)
        if self.odd == "raises":
            raise KeyError("no such shelf")
        if self.odd == "waits":
            child = subprocess.Popen(["sleep", "600"])
            open(f"{self.folder}/waiting.part", "w").write(f"{os.getpid()} {child.pid}")
            os.rename(f"{self.folder}/waiting.part", f"{self.folder}/waiting")
            time.sleep(600)
        if self.odd == "no JSON":
            return Memory({"seen": {1, 2}})
        if self.odd == "naps":
            time.sleep(0.5)
        return Memory({"pid": os.getpid(), "environ": sorted(os.environ.items()), "reply": text,
                       "key": str(access.task.settings.key()), "python": sys.prefix})

    def answer(self, memory, question, candidate, access):
        with operation("reply") as op:
            made = op.output("prediction", "yellow", kind="prediction")
        return Answer("yellow", made.id or None)
"""


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the environment of the fact memory; that of a test's own system is a link to it."""
    folder = tmp_path_factory.mktemp("systems")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MEMTUNE_SYSTEMS", str(folder))
        environment = environment_of(Apart)
        assert environment is not None
        make_light(environment)
        yield folder
        close_pools()


@pytest.fixture(autouse=True)
def _folder_of_systems(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(home))


@pytest.fixture
def odd(home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Opens a system of the user's own, in a module of the test's own, that does something odd."""
    own = f"odd_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{own}.py").write_text(OWN.replace("{own}", own))
    (home / f"odd-{own}").symlink_to(home / "fact-memory")
    look_in(tmp_path)
    yield lambda odd="", **settings: open_system(f"{own}:Odd", {"odd": odd, "folder": str(tmp_path), **settings})
    close_pools()
    sys.path.remove(str(tmp_path))


def fact_model(body: dict[str, Any]) -> str:
    """Extracts each line said as a fact, and lets a later fact replace the first memory near it."""
    schema = json.dumps(body.get("response_format", {}))
    if '"facts"' in schema:
        lines = re.findall(r"^(?:Aurel|Birte): (.*)$", prompt_of(body), re.MULTILINE)
        return json.dumps({"facts": [line[:100] for line in lines]})
    return json.dumps({"event": "UPDATE", "id": "1"}) if '"event"' in schema else "yellow"


def apart() -> FactMemory:
    return Apart(near=0.4)


@pytest.fixture
def access(scripted_server: ScriptedServer, open_access: Open) -> ModelAccess:
    scripted_server.script = fact_model
    return open_access(cache=False)


class TestApart(MemorySystemConformance):
    @pytest.fixture(autouse=True)
    def _models(self, access: ModelAccess) -> None:
        self.opened = access

    def access(self) -> ModelAccess:
        return self.opened

    def system(self) -> MemorySystem:
        return apart()


def both(access: ModelAccess, system: MemorySystem) -> tuple[Any, ExecutionGraph]:
    with trace(prefix="b") as recorder, operation("outer"):
        memory = system.build(SMALL_TALK, BASELINE, access)
        answer = system.answer(memory, SMALL_TALK.questions[0], BASELINE, access)
    return answer.text, recorder.graph


def described(graph: ExecutionGraph) -> list[Any]:
    """What was done, without ids and times."""
    value = {vid: (one.name, one.kind, one.value, one.version) for vid, one in graph.variables.items()}
    name = {None: None, **{one.id: one.name for one in graph.operations.values()}}
    return [
        (
            op.name,
            op.kind,
            [(role, value[vid]) for role, vid in op.inputs],
            [(role, value[vid]) for role, vid in op.outputs],
            name[op.parent],
            op.session and graph.sessions[op.session].name,
            op.calls,
            op.prompt_tokens,
            op.model,
        )
        for op in sorted(graph.operations.values(), key=lambda op: (op.started, op.name))
    ]


def test_the_trace_has_what_it_has_without_a_worker(access: ModelAccess) -> None:
    here, there = both(access, FactMemory(near=0.4)), both(access, apart())
    assert there[0] == here[0]
    assert described(there[1]) == described(here[1])


def test_interventions_hear_and_change_what_a_worker_emits(access: ModelAccess) -> None:
    class Swap(Intervention):
        def extracted(self, step: Any, messages: Any, statements: list[str]) -> list[str]:
            return [text.replace("huskies", "geese") for text in statements]

        def answered(self, step: Any, query: Any, context: Any, reply: str) -> str:
            return f"{reply} {len(context)}"

    found = []
    for system in (FactMemory(near=0.4), apart()):
        heard = Heard()
        with intervene(Swap()), intervene(heard):
            text, graph = both(access, system)
        texts = [one.value for one in graph.find_variables(kind="fact")]
        found.append((text, texts, heard.silent))
    assert found[0] == found[1]
    assert any("geese" in text for text in found[1][1])
    assert not found[1][2]


def test_the_same_work_again_makes_no_new_call(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = fact_model
    first = both(open_access(), apart())
    made = scripted_server.asked, len(scripted_server.embedding_requests)
    close_pools()
    again = both(open_access(), apart())
    assert (scripted_server.asked, len(scripted_server.embedding_requests)) == made
    assert made[0] > 3
    assert again[0] == first[0]


def test_an_answer_that_failed_leaves_no_other_memory_in_the_worker(
    scripted_server: ScriptedServer, open_access: Open
) -> None:
    scripted_server.script = fact_model
    access = open_access(cache=False, concurrency=1)
    first = Apart().with_entries(["Birte plays the bassoon."], access)
    other = Apart().with_entries(["Birte plays the triangle."], access)
    ask = Apart().answer
    ask(first, SMALL_TALK.questions[1], BASELINE, access)
    with pytest.raises(BudgetExceededError):
        ask(other, SMALL_TALK.questions[1], BASELINE, open_access(Limits(calls=0), cache=False, concurrency=1))
    ask(first, SMALL_TALK.questions[1], BASELINE, access)
    assert "bassoon" in prompt_of(scripted_server.requests[-1])


def test_budgets_hold_and_watches_count_across_the_boundary(scripted_server: ScriptedServer, open_access: Open) -> None:
    scripted_server.script = fact_model
    with pytest.raises(BudgetExceededError, match="calls"):
        Apart().build(SMALL_TALK, BASELINE, open_access(Limits(calls=2), cache=False))
    access = open_access(cache=False)
    with access.watch() as watch:
        Apart().build(SMALL_TALK, BASELINE, access)
    assert watch.calls == access.budget.spent.calls > 2


def test_a_worker_gets_no_key_and_may_print_what_it_likes(
    odd: Callable[..., Any], open_access: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real-key-0123456789")
    monkeypatch.setenv("MY_OWN", "sk-another-key-0123456789")
    # These begin as variables do that a worker gets.
    for name in ("LANGSMITH_API_KEY", "HOMEBREW_GITHUB_API_TOKEN", "TEMPORAL_API_KEY", "LC_KEY_2"):
        monkeypatch.setenv(name, "a-key-0123456789")
    access = open_access(api_key_env="MY_OWN")
    state = odd().build(SMALL_TALK, {}, access).state
    assert state["reply"] == "ok"
    assert "0123456789" not in json.dumps(state)
    assert state["pid"] != os.getpid()
    assert state["python"] != sys.prefix


def test_a_worker_that_dies_taints_the_build_and_the_conversation_is_tried_again(
    odd: Callable[..., Any], open_access: Open, tmp_path: Path
) -> None:
    evaluator = Evaluator(odd("dies once"), open_access(), "contains", snapshots=tmp_path / "s")
    (outcome,) = evaluator.evaluate({}, [SMALL_TALK])
    assert outcome.tainted is None
    assert len(outcome.cases) == 2
    assert (tmp_path / "died").read_text() == "x"


def test_a_build_that_another_worker_begins_again_pays_and_counts_no_call_twice(
    odd: Callable[..., Any], scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    evaluator = Evaluator(odd("dies once"), open_access(cache=False), "contains", snapshots=tmp_path / "s")
    (outcome,) = evaluator.evaluate({}, [SMALL_TALK])
    assert outcome.tainted is None
    assert (tmp_path / "died").exists()
    assert scripted_server.asked == 1
    calls = evaluator.calls
    assert (calls.without_reuse, calls.sent, calls.cached) == (1, 1, 0)


def test_a_worker_that_is_killed_while_it_starts_is_replaced(
    odd: Callable[..., Any], open_access: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[str]] = []

    class Killed(subprocess.Popen[str]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(self)
            if len(started) == 1:
                self.kill()

    monkeypatch.setattr(handle.subprocess, "Popen", Killed)
    assert odd().build(SMALL_TALK, {}, open_access()).state["pid"] == started[1].pid


def test_a_build_whose_workers_always_die_is_never_scored_and_says_their_last_words(
    odd: Callable[..., Any], open_access: Open, tmp_path: Path
) -> None:
    evaluator = Evaluator(odd("dies"), open_access(), "contains", snapshots=tmp_path / "s")
    (outcome,) = evaluator.evaluate({}, [SMALL_TALK])
    assert outcome.cases == ()
    assert "its worker died in build (exit code 7; it said last:" in str(outcome.tainted)
    assert "no room left" in str(outcome.tainted)
    assert "secretsecret" not in str(outcome.tainted)
    assert (tmp_path / "died").read_text() == "xxx"


def test_an_error_of_the_systems_own_says_where(odd: Callable[..., Any], open_access: Open) -> None:
    with pytest.raises(MemorySystemError, match=r"failed in build .*odd_\d+\.py:\d+\): KeyError: 'no such shelf'"):
        odd("raises").build(SMALL_TALK, {}, open_access())


def test_a_memory_that_is_no_json_is_an_error_of_the_system_and_not_a_death(
    odd: Callable[..., Any], open_access: Open
) -> None:
    with pytest.raises(MemorySystemError, match="set is not JSON serializable"):
        odd("no JSON").build(SMALL_TALK, {}, open_access())


def test_workers_are_as_many_as_requests_may_be_made_at_a_time(
    odd: Callable[..., Any], open_access: Open, tmp_path: Path
) -> None:
    access = open_access(concurrency=2)
    system = odd("naps")
    talks = [SMALL_TALK.model_copy(update={"id": f"talk {number}"}) for number in range(5)]
    built = access.threads.map(lambda talk: system.build(talk, {}, access), talks)
    assert len({memory.state["pid"] for memory in built}) == 2


def ends(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_worker_and_what_it_started_end_with_a_host_that_is_killed(
    odd: Callable[..., Any], scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    name = type(odd()).__module__
    host = f"""
from tracing.plugins import look_in
from pathlib import Path
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings
from tracing.systems.conformance import SMALL_TALK
from tracing.systems.registry import open_system
look_in(Path({str(tmp_path)!r}))
model = ModelSettings(model="scripted", base_url={scripted_server.base_url!r})
with ModelAccess.open({{"task": model, "embedding": model}}, cache_dir=None, limits=Limits()) as access:
    open_system("{name}:Odd", {{"odd": "waits", "folder": {str(tmp_path)!r}}}).build(SMALL_TALK, {{}}, access)
"""
    process = subprocess.Popen([sys.executable, "-c", host])
    try:
        for _ in range(400):
            if (tmp_path / "waiting").exists():
                break
            time.sleep(0.05)
        pids = [int(pid) for pid in (tmp_path / "waiting").read_text().split()]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [ends(pid) for pid in pids] == [True, True]


def test_without_its_environment_a_system_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, access: ModelAccess
) -> None:
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(tmp_path / "none"))
    system = open_system("mem0@2")
    seed = {name: spec.text for name, spec in system.prompts.items()}
    for use in (system.require_library, lambda: system.build(SMALL_TALK, seed, access)):  # type: ignore[attr-defined]
        with pytest.raises(ConfigError, match=r"not installed: memtune system install mem0@2$"):
            use()
    with pytest.raises(
        ConfigError,
        match=r"mem0 has no version '3'; did you mean 'mem0@2'\?; choose one of mem0@0.1, mem0@1.0, mem0@2$",
    ):
        open_system("mem0@3")


def test_an_environment_of_another_memtune_is_refused_with_the_command_that_mends_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, access: ModelAccess
) -> None:
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(tmp_path / "own"))
    environment = environment_of(Apart)
    assert isinstance(environment, Environment)
    make_light(environment)
    (code,) = environment.folder.glob("lib/python3.*/site-packages/tracing/errors.py")
    code.write_text(code.read_text() + "# changed\n")
    with pytest.raises(ConfigError, match=r"belongs to another memtune; .*: memtune system install fact-memory$"):
        Apart().build(SMALL_TALK, BASELINE, access)
    marker = environment.folder / "memtune.json"
    marker.write_text(marker.read_text().replace('"fingerprint": "', '"fingerprint": "0'))
    with pytest.raises(ConfigError, match=r"made by another memtune .*: memtune system install fact-memory$"):
        Apart().build(SMALL_TALK, BASELINE, access)
