"""The parts of an attribution benchmark: a suite of labelled cases, and the methods to measure on it."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attribution.attributor import Attributor, bound, open_attributor
from attribution.judging.words import by_words, judge_reply
from attribution.recordings import Recording
from attribution.replay.replay_method import Replay
from attribution.survival.matching.matcher import WORDS
from benchmarks import attribution_measuring as attribution
from benchmarks.attribution_measuring import Make, complaints_in, read_suite, remarks_on
from benchmarks.attribution_scores import calibration_error, score
from benchmarks.confidence_curve import cross_fitted
from benchmarks.controls import Constant, Random
from benchmarks.injected_faults.hard import hardened
from benchmarks.injected_faults.injector import Injected, Injector
from benchmarks.injected_faults.kinds import KINDS
from benchmarks.labelled_cases import LabelledCase, Suite
from benchmarks.scripted_model import ScriptedModel, serve
from experiments.bench.attribution import Progress
from experiments.data.loaders import load_dataset
from experiments.runs.config import RunConfig
from tracing.errors import ConfigError, DataError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits
from tracing.systems.conversations import Conversation
from tracing.systems.registry import open_system

INJECTED, HARD = "injected", "injected-hard"
"""Suites that make their own cases: as they are recorded, and as foreign traces or with missing parts."""

IN_PROCESS = ("rag", "long-context", "fact-memory", "evermemos", "trace-memory")
"""The systems to inject faults into where none is named: those that need no further library or environment."""

CONTROLS = ("replay", "majority", "random")
"""Measured in addition to the attribution methods: an upper and two lower bounds."""

SCRIPTED_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    # The scripted embedding puts unrelated texts at right angles, a real one close together.
    "fact-memory": {"near": 0.4},
    "trace-memory": {"near": 0.4},
    "langmem": {"enable_deletes": True},
    "mem0": {"reply_schema": "never"},
    "mem0@0.1": {"reply_schema": "never"},
    "mem0@1.0": {"reply_schema": "never"},
    "mem0@2": {"reply_schema": "always"},
    "everos": {"reply_schema": "always"},
}

Models = Callable[[], AbstractContextManager[ModelAccess]]


@dataclass(frozen=True, slots=True)
class Bench:
    """A suite with what its methods need.

    Attributes:
        suite: the labelled cases.
        systems: by system, which of them it made, as a slice of the suite; empty for a suite that was loaded.
        replay: sets replay up for a recording; None if the systems cannot be run.
        access: the models of the systems; None if none is run.
        notes: what a reader of the figures must know, one line each.
    """

    suite: Suite
    systems: Mapping[str, slice]
    replay: Make | None
    access: ModelAccess | None
    notes: tuple[str, ...]

    def as_complaints(self) -> Bench:
        """The same with cases of which only question and reply are known; no system is run again for them."""
        return replace(self, suite=complaints_in(self.suite), replay=None)


@contextmanager
def open_bench(
    suite: str,
    config: RunConfig,
    systems: Sequence[str],
    *,
    models: Models | None,
    count: int,
    seed: int,
    home: Path,
    progress: Progress,
) -> Iterator[Bench]:
    """The suite at a path, the public one (`memtracebench`, kept in the home), or one of injected faults.

    The other arguments and errors are those of `open_injected`.
    """
    if suite in (INJECTED, HARD):
        with open_injected(suite, config, systems, models=models, count=count, seed=seed, progress=progress) as bench:
            yield bench
    else:
        loaded = read_suite(suite, home, progress)
        yield Bench(loaded, {}, None, None, remarks_on(loaded))


@contextmanager
def open_injected(
    suite: str,
    config: RunConfig,
    systems: Sequence[str],
    *,
    models: Models | None,
    count: int,
    seed: int,
    progress: Progress,
) -> Iterator[Bench]:
    """A suite of injected faults; its models are closed at the end.

    Args:
        suite: "injected" or "injected-hard".
        config: data set, metric and settings of the run that faults are injected into.
        systems: names of the systems to inject into.
        models: opens their models; None for the scripted one.
        count: faults in each system, at most.
        seed: of the choice of cases.
        progress: called with a phase, what is done of it and its total.

    Raises:
        DataError: no case could be made.
        ConfigError, ModelError: a setting does not fit; a call of the run without faults failed.
    """
    splits = load_dataset(config).splits
    conversations = [*splits.train, *splits.validation, *splits.test]
    metric = by_words(config.metric)
    with ExitStack() as stack:
        access = stack.enter_context(models() if models is not None else scripted_access(conversations))
        injections: dict[str, tuple[Injector, Injected]] = {}
        for name in systems:
            settings = SCRIPTED_SETTINGS.get(name, {}) if models is None else {}
            if name == config.system:
                settings = {**settings, **config.system_settings}
            system = open_system(name, settings)
            injector = Injector(
                system,
                access,
                lambda question, reply: judge_reply(question, reply, metric),
                seed=seed,
                rewords=models is None,
            )
            phase = f"faults in {name}"
            injected = injector.inject(
                conversations,
                count,
                lambda done, total, phase=phase: progress(phase, done, total),  # type: ignore[misc]
            )
            if models is None and not injected.passed:
                raise ConfigError(
                    f"--system {name}: none of {injected.asked} questions was answered right, since the scripted model "
                    "does not know its prompts; name one with --model and --base-url"
                )
            injections[name] = injector, injected
        bench = _bench(injections, access)
        yield _hardened(bench, seed) if suite == HARD else bench


def attributor(method: str, bench: Bench, helper: ModelAccess | None, *, seed: int, matcher: str = WORDS) -> Make:
    """What sets a method up for a recording; `helper` has the models that it may ask.

    Raises:
        ConfigError: there is no such method, or it is not for this suite.
    """
    if method == "majority":
        types = Counter(labelled.error_type for labelled in bench.suite.cases)
        return lambda recording: Constant(recording, types.most_common(1)[0][0])
    if method == "random":
        return lambda recording: Random(recording, seed)
    if method != "replay":
        return bound(open_attributor(method, matcher=matcher), helper or bench.access)
    if bench.replay is None:
        raise ConfigError(
            "--method replay: the systems of this suite cannot be run again; take --suite injected, "
            "or --method survival"
        )
    return bench.replay


def measure(bench: Bench, make: Make, helper: ModelAccess | None, *, seed: int, progress: Progress) -> dict[str, Any]:
    """Attribute every case of the suite and score it: the keys of `attribution.measure`, and

    ece_cross_fitted: the calibration error with each fifth of the cases calibrated on the other four. If the method's
        own calibration was fitted on this suite, `ece` flatters it and this does not.
    by_system: n, eta, oia and by_fault for each system with injected faults.
    by_nature: the same sums for faults that remove the content, alter it, or leave it to be ignored.
    """
    predictions, figures = attribution.measure(bench.suite, make, helper or bench.access, seed=seed, progress=progress)
    blames = [prediction.attribution.main for prediction in predictions]
    types = [labelled.error_type for labelled in bench.suite.cases]
    sure = [(blame.confidence, blame.error_type == named) for blame, named in zip(blames, types, strict=True) if blame]
    figures["ece_cross_fitted"] = calibration_error(cross_fitted(sure))
    figures["by_nature"] = _by_nature(figures["by_fault"])
    figures["by_system"] = {}
    for name, part in bench.systems.items():
        own = score(predictions[part], Suite(name, bench.suite.cases[part]), seed=seed)
        figures_of_system = {
            key: own[key] for key in ("n", "eta", "eta_ci", "oia", "oia_n", "oia_ci", "by_fault", "by_condition")
        }
        figures["by_system"][name] = {**figures_of_system, "by_nature": _by_nature(own["by_fault"])}
    return figures


@contextmanager
def scripted_access(conversations: Sequence[Conversation]) -> Iterator[ModelAccess]:
    """Access to the scripted model."""
    # Its address differs every time, so a persistent cache would never hit.
    with (
        tempfile.TemporaryDirectory(prefix="memtune-bench-") as folder,
        serve(ScriptedModel(conversations)) as roles,
        ModelAccess.open(roles, cache_dir=Path(folder), limits=Limits()) as access,
    ):
        yield access


def _bench(injections: Mapping[str, tuple[Injector, Injected]], access: ModelAccess) -> Bench:
    cases = [case for _, injected in injections.values() for case in injected.cases]
    if not cases:
        raise DataError("no fault made an answer wrong; give more conversations, or a model that answers some of them")
    owners = {recording: (injector, one) for injector, one in injections.values() for recording in one.systems}
    systems: dict[str, slice] = {}
    notes: list[str] = []
    for name, (_, injected) in injections.items():
        start = sum(part.stop - part.start for part in systems.values())
        systems[name] = slice(start, start + len(injected.cases))
        harmless = sum(injected.harmless.values())
        notes.append(
            f"{name}: {injected.passed} of {injected.asked} questions were answered right without a fault; "
            f"{len(injected.cases)} faults made an answer wrong, {harmless} did not; "
            f"{sum(injected.ambiguous.values())} left another copy of the content in the memory and are not counted"
        )

    def replay(recording: Recording) -> Attributor:
        injector, injected = owners[recording]
        return replay_of(injector, injected, recording)

    return Bench(Suite(INJECTED, tuple(cases)), systems, replay, access, tuple(notes))


def _hardened(bench: Bench, seed: int) -> Bench:
    """The same cases under hard conditions; what runs a system again does not fit them."""
    cases: list[LabelledCase] = []
    systems: dict[str, slice] = {}
    for name, part in bench.systems.items():
        hard_cases = hardened(bench.suite.cases[part], seed)
        systems[name] = slice(len(cases), len(cases) + len(hard_cases))
        cases += hard_cases
    lost = len(bench.suite.cases) - len(cases)
    notes = (*bench.notes, *([f"{lost} cases cannot be told as a foreign trace"] if lost else []))
    return Bench(Suite(HARD, tuple(cases)), systems, None, None, notes)


def replay_of(injector: Injector, injected: Injected, recording: Recording) -> Replay:
    """What replays the cases of a recording with an injected fault; the fault stays, whatever is repaired."""
    system, conversation = injected.systems[recording], recording.conversation
    return Replay(system, injector.candidate, injector.access, conversation, injector.judged, graph=recording.graph)


def _by_nature(by_fault: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The rows of kinds of fault, summed by what they do to the content."""
    sums: dict[str, dict[str, Any]] = {}
    for name, row in by_fault.items():
        total = sums.setdefault(KINDS[name].nature, {"n": 0, "eta": 0.0, "oia": None, "oia_n": 0})
        n = total["n"] + row["n"]
        total["eta"] = (total["eta"] * total["n"] + row["eta"] * row["n"]) / n
        total["n"] = n
        if row["oia_n"]:
            located = total["oia_n"] + row["oia_n"]
            total["oia"] = ((total["oia"] or 0.0) * total["oia_n"] + row["oia"] * row["oia_n"]) / located
            total["oia_n"] = located
    return sums
