"""What a run on this machine would stumble over: packages, extras, home, disk, stores, models, MLflow, its start.

If asked for, also whether the memory system builds a memory, records it, and does again what was recorded.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, packages_distributions, requires, version
from pathlib import Path
from typing import Literal

from experiments.data.loaders import load_dataset
from experiments.mlflow_tracking.outbox import OUTBOX
from experiments.mlflow_tracking.store import check_store
from experiments.running.parts import asked_alternatives, open_access, open_evaluator, ready_system
from experiments.running.run_parts import check_run
from experiments.runs.config import RunConfig
from experiments.runs.folder import RunFolder
from optimizer.evaluation.evaluator import Evaluator, Outcome
from optimizer.evaluation.system_steps import SystemSteps
from optimizer.objectives.asking_again import NOTHING_MADE, AskingAgain
from optimizer.objectives.local_evaluation import recorded_inputs
from tracing.errors import MemtuneError
from tracing.llm.cache import ResponseCache
from tracing.llm.capabilities import Accepted
from tracing.llm.serving.embedded import memory_needed, runtime_library
from tracing.llm.serving.weights import CATALOGUE, locate
from tracing.llm.settings import Role
from tracing.package_data import packaged_text
from tracing.recording.redaction import excerpt
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate, baseline_candidate
from tracing.systems.protocol import MemorySystem, RerunsOperations
from tracing.systems.recording_check import (
    message_faults,
    prediction_faults,
    prompt_faults,
    rerun_difference,
    sees_calls,
    unrecorded_operations,
)

State = Literal["ok", "missing", "broken"]
OLDEST = (3, 11)
DEVELOPMENT = frozenset({"dev", "docs"})
_OURS = "memtune"
_FOR = {
    "mem0": "the memory system mem0",
    "postgres": "a trace memory in Postgres",
}
"""What needs an extra that most people do not."""
LEAST_FREE_GB = 2.0
"""Disk space of a run: weights, environments of memory systems, traces and the MLflow store."""
_GB = 1e9
_SUITE = "run the conformance suite on it (docs/extending.md)"
_TINY = Conversation.model_validate_json(packaged_text("experiments", "templates/doctor_conversation.json"))
"""What `check_build` builds a memory of."""


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """What a check says of its subject, and the remedy, if something has to be done.

    What is `missing` is not needed by everyone; a run would fail on what is `broken`.
    """

    subject: str
    state: State
    says: str
    remedy: str = ""


def health(config: RunConfig, home: Path, *, build: bool) -> list[HealthCheck]:
    """Every check of what a run of a configuration needs; `build` adds that of its memory system's work."""
    checks = [
        check_python(),
        *check_packages(),
        *check_extras(),
        *check_home(home),
        *check_stores(home),
        _checked(f"system {config.system}", "can be opened", lambda: ready_system(config)),
        *check_models(config),
        check_tracking(config, home),
    ]
    if not any_broken(checks):  # it would repeat what is broken above
        starts = f"would start, on the data set {config.dataset}"
        checks.append(_checked("run", starts, lambda: check_run(config, load_dataset(config), home)))
    if build and not any_broken(checks):
        checks += check_build(config)
    return checks


def any_broken(checks: list[HealthCheck]) -> bool:
    """Whether a run would fail on something."""
    return any(check.state == "broken" for check in checks)


def check_python() -> HealthCheck:
    """Whether this Python is new enough."""
    says = f"{platform.python_version()} in {sys.prefix}"
    if sys.version_info >= OLDEST:
        return HealthCheck("Python", "ok", says)
    return HealthCheck("Python", "broken", says, f"memtune needs Python {OLDEST[0]}.{OLDEST[1]} or newer")


def check_packages() -> Iterator[HealthCheck]:
    """Whether memtune is installed, and no other distribution has packages of the same names.

    Which of two packages of one name is imported depends on where they were installed to; that of another distribution
    also loses its files when either is uninstalled.
    """
    try:
        yield HealthCheck(_OURS, "ok", version(_OURS))
    except PackageNotFoundError:
        yield HealthCheck(_OURS, "broken", "runs from a folder", "install it: pip install -e '.[run]'")
    for name, owners in packages_distributions().items():
        others = sorted({owner for owner in owners if owner != _OURS})
        if others and _OURS in owners:
            says = f"the distribution {', '.join(others)} has a package of this name too"
            yield HealthCheck(
                f"package {name}", "broken", says, f"pip uninstall {others[0]}, or use another environment"
            )


def check_extras() -> Iterator[HealthCheck]:
    """For each extra, whether its libraries are installed in the versions that memtune is made for."""
    from packaging.requirements import Requirement

    try:
        extras = [extra for extra in metadata(_OURS).get_all("Provides-Extra") or [] if extra not in DEVELOPMENT]
        needed = [Requirement(line) for line in requires(_OURS) or ()]
    except PackageNotFoundError:
        return
    for extra in extras:
        absent, unfit = [], []
        for requirement in needed:
            marker = requirement.marker
            if requirement.name == _OURS or marker is None or not marker.evaluate({"extra": extra}):
                continue
            try:
                installed = version(requirement.name)
            except PackageNotFoundError:
                absent.append(requirement.name)
                continue
            if not requirement.specifier.contains(installed, prereleases=True):
                unfit.append(f"{requirement.name} {installed}, where {requirement.specifier} is needed")
        remedy = f"pip install 'memtune[{extra}]'"
        if unfit:
            yield HealthCheck(f"extra {extra}", "broken", "; ".join(unfit), remedy)
        elif absent:
            use = f"; only {_FOR[extra]} needs it" if extra in _FOR else ""
            yield HealthCheck(f"extra {extra}", "missing", f"without {', '.join(absent)}{use}", remedy)
        else:
            yield HealthCheck(f"extra {extra}", "ok", "installed")


def check_home(home: Path) -> Iterator[HealthCheck]:
    """Whether the home can be written to, and has room."""
    there = next(path for path in (home, *home.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        remedy = "give --home a writable folder, or set $MEMTUNE_HOME"
        yield HealthCheck("home", "broken", f"{there} cannot be written to", remedy)
        return
    yield HealthCheck("home", "ok", f"{home}{'' if home.exists() else ' (made by the first run)'}")
    free = shutil.disk_usage(there).free / _GB
    says = f"{free:.1f} GB free on the disk of {there}"
    if free < LEAST_FREE_GB:
        yield HealthCheck("disk", "broken", says, f"free {LEAST_FREE_GB:.0f} GB, or put --home on another disk")
    else:
        yield HealthCheck("disk", "ok", says)


def check_stores(home: Path) -> Iterator[HealthCheck]:
    """Whether the response cache of a home can be used, and MLflow has what the runs there wrote; makes nothing."""
    cache = home / "cache"
    if cache.is_dir():
        yield _checked("cache", str(cache), lambda: ResponseCache(cache).close())
    waiting = [run.id for run in RunFolder.all(home) if (run.path / OUTBOX).exists()]
    if waiting:
        says = f"MLflow misses a part of {len(waiting)} run{'' if len(waiting) == 1 else 's'}: {', '.join(waiting[:3])}"
        yield HealthCheck("outbox", "missing", says, f"memtune mlflow send {waiting[0]}, once no run works on it")


def check_models(config: RunConfig) -> Iterator[HealthCheck]:
    """Whether embedded models are on this machine, and what endpoints take, each of which gets a small request."""
    roles = config.models.roles()
    for role, settings in roles.items():
        if not settings.embedded or role == "embedding":
            continue
        try:
            runtime_library()
            yield HealthCheck(f"{role} model", "ok", f"{settings.model}, embedded: {locate(settings.model)}")
        except MemtuneError as error:
            yield _broken(f"{role} model", error)
    yield from _check_memory(config)
    if all(settings.embedded for settings in roles.values()):
        return
    try:
        with (
            tempfile.TemporaryDirectory(prefix="memtune-doctor-") as folder,
            open_access(config, Path(folder), surely=False) as access,
        ):
            answers = access.ask_endpoints(alternatives=asked_alternatives(config))
    except MemtuneError as error:
        yield _broken("endpoints", error)
        return
    for role, answer in answers.items():
        if isinstance(answer, MemtuneError):
            yield _broken(f"{role} model", answer)
            continue
        says = f"{roles[role].model} at {roles[role].base_url}: "
        says += answer.description or "too busy to say what it takes, which a run finds out"
        remedy = "; ".join(_lacks(config, role, answer))
        yield HealthCheck(f"{role} model", "missing" if remedy else "ok", says, remedy)


def _lacks(config: RunConfig, role: Role, accepted: Accepted) -> Iterator[str]:
    """What to do about what a run of a configuration needs and an endpoint does not take or tell."""
    judges = role == "judge" or (role == "task" and config.models.judge is None)
    if asked_alternatives(config) and judges and "logprobs" in accepted.without:
        yield "without log-probabilities the judge gives a label; for a calibrated score set models.judge to another"
    if accepted.usage is False and (config.budget.tokens or config.budget.money):
        yield "without usage, budget.tokens and budget.money cannot be exact; set budget.calls too"
    if role != "embedding" and accepted.token_limit is None:
        yield "without a limit of tokens a reply may be of any length; set budget.calls or budget.minutes"


def _check_memory(config: RunConfig) -> Iterator[HealthCheck]:
    """Whether the embedded models of a configuration have room in this machine's memory."""
    contexts = {settings.model: settings.context for settings in config.models.roles().values() if settings.embedded}
    catalogued = {name: context for name, context in contexts.items() if name in CATALOGUE}
    if not catalogued:
        return
    try:
        import psutil
    except ImportError:
        return  # the models above are broken, then
    memory = psutil.virtual_memory()
    needed = sum(memory_needed(CATALOGUE[name], context) for name, context in catalogued.items())
    says = f"{', '.join(catalogued)}: {needed / _GB:.1f} GB, and {memory.available / _GB:.1f} GB free"
    if needed < memory.available:
        yield HealthCheck("memory", "ok", says)
    elif needed < memory.total:
        yield HealthCheck("memory", "missing", says, "close other programs, or lower models.ROLE.context")
    else:
        says += f" of {memory.total / _GB:.1f} GB in this machine"
        yield HealthCheck(
            "memory", "broken", says, "take a smaller model (memtune model list), or an endpoint (base_url)"
        )


def check_tracking(config: RunConfig, home: Path) -> HealthCheck:
    """Whether the MLflow store of a configuration can be used."""
    place = "a server" if config.tracking.uri else "the store of the home"
    return _checked("MLflow", place, lambda: check_store(config.tracking.uri, config.tracking.experiment, home))


def _checked(subject: str, says: str, check: Callable[[], object]) -> HealthCheck:
    """What a check that raises nothing says, or else its error."""
    try:
        check()
    except MemtuneError as error:
        return _broken(subject, error)
    return HealthCheck(subject, "ok", says)


def _broken(subject: str, error: MemtuneError) -> HealthCheck:
    """An error as what is wrong and what to do, which stands behind its last semicolon."""
    says, _, remedy = str(error).rpartition("; ")
    return HealthCheck(subject, "broken", *((says, remedy) if says else (remedy, "")))


def check_build(config: RunConfig) -> Iterator[HealthCheck]:
    """Whether the memory system builds a memory of two turns and answers a question on it, with the models of `config`;
    whether it records what attribution needs, and its `rerun` does again what was recorded.

    Nothing is kept of it. The models are called.
    """
    subject = f"memory of {config.system}"
    with tempfile.TemporaryDirectory(prefix="memtune-doctor-") as folder:
        try:
            with open_evaluator(config, Path(folder)) as evaluator:
                baseline = baseline_candidate(evaluator.system.prompts)
                (outcome,) = evaluator.evaluate(baseline, [_TINY])
                if outcome.tainted is not None:
                    yield HealthCheck(subject, "broken", outcome.tainted, "fix the system, or give it another model")
                    return
                (case,) = outcome.cases
                exchange = f"asked {case.question.question!r} it says {excerpt(case.reply, 80)!r}"
                yield HealthCheck(subject, "ok", f"built of two turns; {exchange}")
                yield from _check_recording(evaluator.system, outcome)
                yield from _check_reruns(evaluator, baseline, outcome)
        except MemtuneError as error:
            yield _broken(subject, error)


def _check_recording(system: MemorySystem, outcome: Outcome) -> Iterator[HealthCheck]:
    (case,) = outcome.cases
    faults = (
        *prompt_faults(system, outcome.graph),
        *message_faults(_TINY, outcome.graph),
        *prediction_faults(system, case.reply, case.prediction, outcome.graph),
    )
    for fault in faults:
        yield HealthCheck("recording", "broken", fault, f"record it, or attribution goes wrong; {_SUITE}")
    unrecorded = unrecorded_operations(system, outcome.graph)
    if unrecorded is not None:
        yield HealthCheck("recording", "missing", unrecorded, "they may have nothing to do with two turns")
    elif not faults:
        yield HealthCheck("recording", "ok", "operations, prompts, messages and prediction are recorded")


_WHOLE = "rewrites are compared on whole conversations, which takes more calls; give the system rerun"


def _check_reruns(evaluator: Evaluator, baseline: Candidate, outcome: Outcome) -> Iterator[HealthCheck]:
    system = evaluator.system
    if not isinstance(system, RerunsOperations):
        asking = AskingAgain(system.prompts, evaluator.access)
        for name, spec in system.prompts.items():
            inputs = recorded_inputs(spec, [outcome], calls=True)
            hindrance = next(filter(None, asking.hindrances(name, inputs, inputs).values()), None)
            if inputs and hindrance is None:
                yield HealthCheck(f"rerun of {name}", "ok", "not needed: what its operation asked can be asked again")
            else:
                remedy = "more turns may tell: a run says how many can be asked again"
                yield HealthCheck(
                    f"rerun of {name}",
                    "missing",
                    hindrance or f"no {spec.operation} was recorded",
                    remedy if hindrance == NOTHING_MADE else _WHOLE,
                )
        return
    steps = SystemSteps(system)
    for name, spec in system.prompts.items():
        for recorded in recorded_inputs(spec, [outcome])[:1]:
            graph = steps.rerun(evaluator.access, name, recorded.parts, baseline, recorded.key[:12])
            repeatable = evaluator.access.caches and sees_calls(spec, graph)
            difference = rerun_difference(spec, recorded.parts, recorded.outputs, graph, repeatable=repeatable)
            if difference is None:
                yield HealthCheck(f"rerun of {name}", "ok", "does again what was recorded")
            else:
                remedy = f"let rerun fill the prompt with `parts` as the operation does; {_SUITE}"
                yield HealthCheck(f"rerun of {name}", "broken", difference, remedy)
