"""A step that runs in another process gives what it gives here, and the process with the run keeps all the books.

The two sides speak JSON by a mailbox. Here both are in one process; `test_ray_executor.py` has them on a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mem0_model import Mem0Model
from scripted_server import Reply, ScriptedServer
from scripted_world import WeakModel, kind_of, memory, world

from attribution.judging.llm_judge import LlmJudge
from experiments.systems.fact_memory import FactMemory
from experiments.systems.mem0.system import Mem0
from optimizer.cluster.mailbox import Desk, Mailbox
from optimizer.cluster.steps import StepExecutor, perform, result_of
from optimizer.cluster.worker import WorkerSetup
from optimizer.evaluation.evaluator import Evaluator, Outcome
from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.objectives.objectives import objectives_of
from tracing.errors import BudgetExceededError, ConfigError, ShareSpentError
from tracing.files.loading import load_trace
from tracing.files.trace_file import records_of
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.forwarding import forwarded_calls
from tracing.llm.forwarding.forwarded_calls import RepeatableStep
from tracing.llm.settings import Limits
from tracing.systems.conformance import SMALL_TALK
from tracing.systems.protocol import MemorySystem

Open = Callable[..., ModelAccess]
BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
TALKS = [talk for group in world(3, 2, 1).named().values() for talk in group]
KEY = "sk-key-that-no-worker-needs-1234"


class Elsewhere(StepExecutor):
    """An executor whose workers are threads that share nothing with the run but texts.

    Attributes:
        told: every text that went from one side to the other.
    """

    def __init__(self, system: MemorySystem) -> None:
        self.told: list[str] = []
        self._system = system
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._mailbox = Mailbox()
        self._desk = Desk(
            lambda: self._there(self._mailbox.take()),
            lambda number, answer: self._there(self._mailbox.answer(number, answer)),
            threads=16,
        )

    def close(self) -> None:
        self._desk.close()
        self._loop.call_soon_threadsafe(self._loop.stop)

    def result(self, access: ModelAccess, about: str, step: str) -> dict[str, Any]:
        result: list[str] = []
        with self._desk.attempt(RepeatableStep(partial(forwarded_calls.answered, access))) as name:

            def ask(request: str) -> str:
                answer = self._there(self._mailbox.ask(name, request))
                self.told += [request, answer]
                return str(answer)

            # A thread of its own has no watch, trace or operation of the run in its context.
            worker = threading.Thread(target=lambda: result.append(perform(self._system, step, ask)))
            worker.start()
            worker.join()
        self.told += [step, *result]
        return result_of(result[0])

    def _there(self, waiting: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(waiting, self._loop).result()


@pytest.fixture(autouse=True)
def model(scripted_server: ScriptedServer) -> None:
    scripted_server.script = WeakModel("answer")


@pytest.fixture
def elsewhere() -> Iterator[Callable[[MemorySystem], Elsewhere]]:
    opened: list[Elsewhere] = []

    def open_it(system: MemorySystem) -> Elsewhere:
        opened.append(Elsewhere(system))
        return opened[-1]

    yield open_it
    for each in opened:
        each.close()


def plain(graph: ExecutionGraph) -> list[dict[str, Any]]:
    """A graph without its times."""
    return [
        {key: value for key, value in record.items() if key not in ("started", "ended")} for record in records_of(graph)
    ]


def seen(outcomes: list[Outcome]) -> list[Any]:
    """All of an evaluation that does not depend on the clock."""
    return [(each.cases, each.tainted, each.calls, each.tokens, plain(each.graph)) for each in outcomes]


@pytest.mark.parametrize("judged", ["by words", "by a model"])
def test_outcomes_traces_and_every_count_are_those_of_threads(
    open_access: Open, tmp_path: Path, elsewhere: Callable[..., Elsewhere], judged: str
) -> None:
    def evaluated(where: str, executor: Elsewhere | None) -> list[Any]:
        folder = tmp_path / where
        with contextlib.closing(Ledger(folder_of(folder) / "ledger.jsonl")) as ledger:
            access = open_access(cache=False, price_in=2.0, price_out=3.0).with_ledger(ledger)
            judge = LlmJudge(access.judge) if judged == "by a model" else None
            judging = Evaluator(
                memory(), access, "short_contains", folder / "memories", folder / "traces", judge, executor
            )
            outcomes = judging.evaluate(BASELINE, TALKS)
            # The second time, memories and replies are there.
            again = judging.repeated(1).evaluate(BASELINE, TALKS[:1])
        files = sorted((folder / "traces").rglob("*.jsonl"))
        kept = [plain(load_trace(file).graph) for file in files]
        meter = {
            name: {key: round(value, 9) for key, value in usage.items() if key != "seconds"}
            for name, usage in access.meter.snapshot().items()
        }
        lines = (folder / "ledger.jsonl").read_text().splitlines()
        paid = sorted(str({**json.loads(line), "seconds": 0, "took": 0}) for line in lines)
        spent = access.budget.spent
        budget = [spent.calls, spent.tokens, round(spent.money, 9)]
        return [seen(outcomes), seen(again), kept, meter, budget, judging.calls, paid]

    here, there = evaluated("here", None), evaluated("there", elsewhere(memory()))
    for of_here, of_there in zip(here, there, strict=True):
        assert of_there == of_here


def test_recorded_inputs_measured_elsewhere_have_the_same_credits(
    open_access: Open, tmp_path: Path, elsewhere: Callable[..., Elsewhere], scripted_server: ScriptedServer
) -> None:
    system = FactMemory(near=0.0)
    access = open_access()
    judging = Evaluator(system, access, "short_contains", tmp_path)
    outcomes = judging.evaluate(BASELINE, TALKS)
    for prompt in BASELINE:
        text = f"Be brief.\n{BASELINE[prompt]}"
        credits = []
        for executor in (None, elsewhere(system)):
            local = LocalEvaluation(system, system.prompts, objectives_of(judging, {}), access, executor)
            credits.append(local.measure(prompt, text, local.inputs(prompt, outcomes)))
        assert credits[0] == credits[1]
        assert prompt == "decide" or None not in credits[0]


def test_a_failed_call_taints_the_outcome_elsewhere_too(
    open_access: Open, tmp_path: Path, elsewhere: Callable[..., Elsewhere], scripted_server: ScriptedServer
) -> None:
    able = WeakModel()

    def failing(body: dict[str, Any]) -> Reply | str:
        of_first = "Ankevalidation0" in str(body) or "Anketrain0" in str(body)
        return Reply("no", status=400) if kind_of(body) == "answer" and of_first else able(body)

    scripted_server.script = failing
    found = []
    for executor in (None, elsewhere(memory())):
        folder = tmp_path / str(executor is None)
        judging = Evaluator(memory(), open_access(cache=False), "short_contains", folder, executor=executor)
        found.append(seen(judging.evaluate(BASELINE, TALKS)))
    assert found[0] == found[1]
    assert "no" in str(found[0][0][1])


def test_a_budget_is_never_exceeded_by_calls_from_elsewhere(
    open_access: Open, tmp_path: Path, elsewhere: Callable[..., Elsewhere], scripted_server: ScriptedServer
) -> None:
    access = open_access(Limits(calls=11))
    judging = Evaluator(memory(), access, "short_contains", tmp_path, executor=elsewhere(memory()))
    with pytest.raises(BudgetExceededError, match="11 calls"):
        judging.evaluate(BASELINE, TALKS)
    assert scripted_server.count + len(scripted_server.embedding_requests) == access.budget.spent.calls <= 11


def test_a_share_that_is_spent_elsewhere_ends_no_more_than_the_share(
    open_access: Open, tmp_path: Path, elsewhere: Callable[..., Elsewhere]
) -> None:
    access = open_access(Limits(calls=22))
    judging = Evaluator(memory(), access, "short_contains", tmp_path, executor=elsewhere(memory()))
    with access.budget.share(0.5), pytest.raises(ShareSpentError, match="its share of 11 calls is spent"):
        judging.evaluate(BASELINE, TALKS)


def test_no_key_is_in_what_the_two_sides_tell_each_other(
    open_access: Open,
    tmp_path: Path,
    elsewhere: Callable[..., Elsewhere],
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    executor = elsewhere(memory())
    for given in ({}, {"api_key": KEY}):
        access = open_access(cache=False, **given)
        Evaluator(memory(), access, "short_contains", tmp_path / str(given), executor=executor).evaluate(
            BASELINE, TALKS
        )
    assert set(scripted_server.keys) == {KEY}
    assert len(executor.told) > 20
    assert KEY not in "".join(executor.told)


@pytest.mark.slow
def test_a_system_with_its_own_client_reaches_the_models_from_elsewhere(
    open_access: Open, tmp_path: Path, elsewhere: Callable[..., Elsewhere], scripted_server: ScriptedServer
) -> None:
    """Mem0 asks by the gateway, which serves on the loopback of the worker's own machine."""
    baseline = {name: spec.text for name, spec in Mem0.prompts.items()}
    scripted_server.script = Mem0Model()
    found = []
    for executor in (None, elsewhere(Mem0())):
        folder = tmp_path / str(executor is None)
        judging = Evaluator(Mem0(), open_access(cache=False), "contains", folder, executor=executor)
        outcomes = judging.evaluate(baseline, [SMALL_TALK])
        names = [operation.name for operation in outcomes[0].graph.operations.values()]
        found.append((names, outcomes[0].cases, outcomes[0].calls))
    assert found[0] == found[1]
    assert found[0][2] > 3, outcomes[0].tainted


def test_a_worker_refuses_a_system_with_other_code_and_is_sent_no_secret_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])
    (tmp_path / "my_system_of_old.py").write_text(
        "from experiments.systems.rag import Rag\n\nclass Mine(Rag):\n    pass\n"
    )
    import my_system_of_old  # type: ignore[import-not-found]

    setup = WorkerSetup.of("my_system_of_old:Mine", {}, (tmp_path,), my_system_of_old.Mine())
    sent = WorkerSetup.model_validate_json(setup.model_dump_json())
    assert sent.open().prompts.keys() == {"answer"}
    with pytest.raises(ConfigError, match=r"on the worker .*other code"):
        sent.model_copy(update={"digest": "another"}).open()
    with pytest.raises(ConfigError, match=r"system_settings\.client\.api_key: .*environment of each worker"):
        WorkerSetup.of("rag", {"client": {"api_key": "x"}}, (), memory())


def folder_of(path: Path) -> Path:
    path.mkdir(parents=True)
    return path
