"""Runs on the bundled sample with a scripted model that tells the gold answers, each in a process of its own."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

from scripted_server import Reply, prompt_of

from experiments.command import main
from experiments.data.loaders import load_dataset
from experiments.interrupts import own_process
from experiments.runs.config_file import load_config
from experiments.runs.folder import RunFolder
from experiments.systems.fact_memory import FactMemory

OUTPUT, PEAK, BEGUN = "output.txt", "peak.txt", "begun.txt"

PATIENCE_S = 60.0

SYSTEMS = "MEMTUNE_SYSTEMS"
"""Where environments are: the server that starts processes has that of the test which needed it first."""

SEED_ANSWER = FactMemory.prompts["answer"].text.partition("{context}")[0]

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["experiments.running.run", "optimizer.search.optimize", "mlflow.tracking", "sqlalchemy"]
)


class GoldModel:
    """Extracts the gold facts of the turns it is shown; answers in a long sentence until the prompt is rewritten."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.facts: dict[str, list[str]] = {}
        self.answers: dict[str, str] = {}
        for group in load_dataset(load_config(None)).splits.named().values():
            for conversation in group:
                turns = {turn.id: turn.text for turn in conversation.turns()}
                for fact in conversation.facts:
                    self.facts.setdefault(turns[fact.turn], []).append(fact.text)
                self.answers |= {question.question: question.answers[0] for question in conversation.questions}

    def __call__(self, body: dict[str, Any]) -> Reply:
        return Reply(self._text(body), delay=self.delay)

    def _text(self, body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        properties = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
        if "facts" in properties:
            return json.dumps(
                {"facts": [fact for turn, facts in self.facts.items() if turn in prompt for fact in facts]}
            )
        if "event" in properties:
            return json.dumps({"event": "ADD", "id": "1"})
        if "one line at a time" in prompt:
            return "I have no better idea."
        reply = next((text for question, text in self.answers.items() if f"Question: {question}" in prompt), "no idea")
        long = prompt.startswith(SEED_ANSWER) and prompt.endswith("Answer in a few words:")
        return f"As far as I can make out from all that they have told each other it is {reply}" if long else reply


def started(arguments: list[str], name: str = "", command: Callable[[list[str]], None] = main) -> ForkServerProcess:
    """A process in which memtune, or another command, runs from the current folder.

    There `begun.txt` has its id once it runs, `output.txt` what it says, and `peak.txt` the most memory it took, in kB;
    `name` is put before these.
    """
    process = _processes.Process(target=_memtune, args=(arguments, os.getcwd(), os.environ.get(SYSTEMS), name, command))
    process.start()
    return process


def _memtune(
    arguments: list[str], folder: str, systems: str | None, name: str, command: Callable[[list[str]], None]
) -> None:
    os.chdir(folder)
    if systems is not None:
        os.environ[SYSTEMS] = systems
    own_process()
    # It stays open: what goes wrong while the process ends is said there too, and would change its exit code unseen.
    sys.stdout = sys.stderr = open(name + OUTPUT, "a", buffering=1)  # noqa: SIM115
    Path(name + BEGUN).write_text(str(os.getpid()))
    try:
        command(arguments)
    finally:
        with contextlib.suppress(OSError):  # some tests leave it no room
            Path(name + PEAK).write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


def live(arguments: list[str], seconds: float | None, command: Callable[[list[str]], None] = main) -> int | None:
    """Run memtune in a process of its own, killed after `seconds`; its exit code, negative where it was killed."""
    process = started(arguments, command=command)
    process.join(seconds)
    if process.is_alive():
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    return process.exitcode


def killed(arguments: list[str], number: signal.Signals, moment: Callable[[], bool], more: float = 0.0) -> int:
    """Run memtune in a process of its own, send it a signal `more` seconds after a moment unless it has ended before,
    and give its exit code.
    """
    process = started(arguments)
    begun = Path(BEGUN)
    _until(lambda: not process.is_alive() or (begun.exists() and begun.read_text() == str(process.pid)))
    _until(lambda: moment() or not process.is_alive())
    time.sleep(more)
    if process.is_alive() and process.pid is not None:
        os.kill(process.pid, number)
    process.join(PATIENCE_S)
    assert not process.is_alive(), f"goes on after {number.name}"
    assert process.exitcode is not None
    return process.exitcode


def _until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not happened() and time.monotonic() < end:
        time.sleep(0.002)


def outcome(folder: RunFolder) -> dict[str, Any]:
    """What a run ended with, without names and places."""
    found = folder.summary().as_json()
    rewrites = folder.path / "rewrites.jsonl"
    return {
        **{key: value for key, value in found.items() if key not in ("run_id", "mlflow", "report", "prompts_dir")},
        "prompts": folder.prompts("champion"),
        "rewrites": rewrites.read_text() if rewrites.exists() else "",
    }


def without_costs(found: dict[str, Any]) -> dict[str, Any]:
    """An outcome without what its search and its rounds paid, which depends on what others had paid before."""
    paid = ("calls_made", "calls_cached", "tokens", "search_calls")
    rows = [{key: value for key, value in each.items() if key not in paid} for each in found["rounds"]]
    return {**{key: value for key, value in found.items() if key != "search"}, "rounds": rows}


def curves(folder: RunFolder) -> dict[str, list[tuple[str, int, float]]]:
    """Every point in MLflow of the run and its nested runs, with its name."""
    from mlflow.tracking import MlflowClient

    link = folder.summary().mlflow
    assert link is not None
    client = MlflowClient(link.tracking_uri)
    nested = client.search_runs([link.experiment_id], f"tags.mlflow.parentRunId = '{link.run_id}'")
    found = {}
    for run in [client.get_run(link.run_id), *nested]:
        name = run.data.tags.get("memtune.part", "parent")
        assert name not in found
        assert run.info.status == "FINISHED"
        points = [
            (key, point.step, point.timestamp, point.value)
            for key in run.data.metrics
            for point in client.get_metric_history(run.info.run_id, key)
        ]
        found[name] = [(key, step, value) for key, step, _, value in sorted(points)]
    return found


def latest(points: dict[str, list[tuple[str, int, float]]]) -> dict[str, dict[str, tuple[int, float]]]:
    """The last point of each of the curves."""
    return {name: {key: (step, value) for key, step, value in found} for name, found in points.items()}


class Whole(NamedTuple):
    """What the run that nobody disturbed ends with, and the requests it makes."""

    outcome: dict[str, Any]
    curves: dict[str, list[tuple[str, int, float]]]
    calls: int


class Once:
    """Does something at a request of this number, and lets a model reply."""

    def __init__(self, model: Callable[[dict[str, Any]], Any], number: int, do: Callable[[], None]) -> None:
        self._model, self._left, self._do = model, number, do

    def __call__(self, body: dict[str, Any]) -> Any:
        self._left -= 1
        if self._left == 0:
            self._do()
        return self._model(body)
