"""Attribution of many cases: in threads, each result written as it comes, and no case stops the others."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attribution.attributor import checked_attribution
from attribution.cases import Attribution, Case
from experiments.attributing.attributions import Attributions, CaseLine, TraceLine, case_line
from tracing.errors import BudgetExceededError, in_one_line
from tracing.recording.redaction import redact

if TYPE_CHECKING:
    from attribution.attributor import Attributor
    from attribution.recordings import Recording
    from experiments.attributing.source import Source, TraceContent
    from tracing.llm.access import ModelAccess

Make = Callable[["Recording"], "Attributor"]
Progress = Callable[[str, int, int], None]
"""Called with where it is, the wrong answers attributed and those found so far."""

_AHEAD = 4
"""Cases handed out for each worker, so that a graph is released soon after its last case."""


@dataclass(slots=True)
class Tally:
    """The outcome of a batch: cases attributed now (`fresh`), and those that were in the file already (`reused`).

    Of all of them, some have no verdict (`abstained`), could not be attributed (`failed`), or lack the result of a
    failed model call (`incomplete`). Traces with a problem are `malformed`; `unmatched` complaints match no answer.
    Entries of one user were in the context of another `leaks` times.
    Of what is from before the time asked for, wrong answers that were looked at (`earlier`) and traces that were not
    even read (`over`) are left out.
    """

    traces: int = 0
    fresh: int = 0
    reused: int = 0
    abstained: int = 0
    failed: int = 0
    incomplete: int = 0
    malformed: int = 0
    unmatched: int = 0
    leaks: int = 0
    earlier: int = 0
    over: int = 0
    tokens: int = 0
    stopped: str | None = None

    def line(self) -> str:
        """The same in a sentence."""
        total = self.fresh + self.reused
        attributed = total - self.abstained - self.failed
        answers, traces = _counted(total, "wrong answer"), _counted(self.traces, "trace")
        parts = [f"{answers} in {traces}: {attributed} attributed, {self.abstained} abstained from"]
        parts += [f"{self.failed} failed"] * bool(self.failed)
        parts += [f"{self.incomplete} without the model, whose calls failed"] * bool(self.incomplete)
        parts += [f"{_counted(self.malformed, 'trace')} damaged or without a judge"] * bool(self.malformed)
        complaints = "1 complaint matches" if self.unmatched == 1 else f"{self.unmatched} complaints match"
        parts += [f"{complaints} no answer"] * bool(self.unmatched)
        earlier = " and ".join(
            _counted(count, noun) for count, noun in ((self.earlier, "wrong answer"), (self.over, "trace")) if count
        )
        parts += [f"{earlier} from before left out"] * bool(earlier)
        parts += [f"{_counted(self.leaks, 'leak')} between users"] * bool(self.leaks)
        parts += [f"{self.reused} known from before"] * bool(self.reused)
        parts += [f"{self.tokens:,} tokens"] * bool(self.tokens)
        parts += [f"stopped: {self.stopped}"] * bool(self.stopped)
        return ", ".join(parts)

    @property
    def complete(self) -> bool:
        """Whether nothing failed."""
        return not (self.failed or self.incomplete or self.malformed or self.unmatched or self.stopped)


def _key(case: Case) -> str:
    return redact(case.prediction or case.question.id)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


class Batch:
    """Attribute the wrong answers of traces, several in parallel, and write each result as it comes.

    Cases in earlier `attributions` are not attributed again, except those that failed in part or whole. Paths in the
    results are relative to `folder`. The tokens of `access` are counted.

    Attributes:
        tally: the outcome so far.
        wrong: keys of the wrong answers found so far, in order.
    """

    def __init__(
        self,
        make: Make,
        attributions: Attributions,
        write: Callable[[TraceLine | CaseLine], None],
        *,
        folder: Path,
        access: ModelAccess | None = None,
        threads: int = 1,
    ) -> None:
        self._make, self._attributions, self._write, self._folder = make, attributions, write, folder
        self._access, self._threads = access, threads
        self._stop = threading.Event()
        self._progress: Progress = lambda where, attributed, wrong: None
        self._where = ""
        self.tally = Tally()
        self.wrong: list[tuple[str, str]] = []

    def run(self, sources: Sequence[Source], progress: Progress | None = None) -> Tally:
        """Attribute everything. A spent budget ends it early, which the tally records."""
        self._progress = progress or self._progress
        pending: dict[Future[CaseLine | None], None] = {}
        with ThreadPoolExecutor(self._threads, thread_name_prefix="memtune-attribute") as pool:
            try:
                for place, source in enumerate(sources, start=1):
                    self._where = f"wrong answers, trace {place} of {len(sources)}"
                    for job in self._jobs(source):
                        while len(pending) >= self._threads * _AHEAD:
                            self._collect(pending)
                        pending[pool.submit(job)] = None
                while pending:
                    self._collect(pending)
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return self.tally

    def _jobs(self, source: Source) -> Iterator[Callable[[], CaseLine | None]]:
        """The cases of a trace that are still to be attributed."""
        tally, name = self.tally, os.path.relpath(source.path, self._folder)
        digest = ""
        try:
            if source.is_over:
                tally.over += 1
                return
            tally.traces += 1
            digest = source.digest
            content = source.read()
        except Exception as error:  # whatever a damaged file brings about
            if source.complaint is not None:
                raise  # the only one there is, and most likely misquoted
            tally.malformed += 1
            self._write(TraceLine(trace=name, digest=digest, problem=in_one_line(error)))
            return
        wrong = [case for case in content.cases if not case.passed]
        earlier = {_key(case) for case in wrong if source.is_earlier(content, case)}
        # Of an earlier one that is known, the line lasts, also if its trace has grown.
        left_out = {key for key in earlier if (name, key) not in self._attributions.cases}
        wrong = [case for case in wrong if _key(case) not in left_out]
        tally.earlier += len(earlier)
        keys = tuple(map(_key, wrong))
        tally.malformed += content.problem is not None and not content.unmatched
        tally.unmatched += len(content.unmatched)
        tally.leaks += len(content.leaks)
        before = self._attributions.traces.get(name)
        if left_out and not wrong and content.problem is None:
            return
        if source.complaint is None or before is None or before.digest != digest:
            self._write(_trace_line(name, digest, content, len(left_out), keys, alone=source.complaint is not None))
        self.wrong += [(name, key) for key in keys if key not in earlier]
        self._tell()
        methods: dict[int, Attributor | Exception] = {}
        for key, case in zip(keys, wrong, strict=True):
            line = self._attributions.cases.get((name, key))
            if line is not None and line.is_complete and line.answers == tuple(map(redact, case.question.answers)):
                tally.reused += key not in earlier
                tally.abstained += key not in earlier and line.abstained is not None
                continue
            recording = content.of(case)
            if id(recording) not in methods:
                try:
                    methods[id(recording)] = self._make(recording)
                except Exception as error:  # the fault of one graph, told with each of its cases
                    methods[id(recording)] = error
            yield partial(self._attribute, name, case, methods[id(recording)])

    def _attribute(self, name: str, case: Case, method: Attributor | Exception) -> CaseLine | None:
        """The line of one case; None where the work was stopped."""
        if self._stop.is_set():
            return None
        started = time.perf_counter()
        failed = None
        with self._access.watch() if self._access is not None else nullcontext() as watch:
            try:
                if isinstance(method, Exception):
                    raise method
                attribution = checked_attribution(method.attribute(case), case)
            except BudgetExceededError as error:
                self.tally.stopped = in_one_line(error)
                self._stop.set()
                return None
            except Exception as error:  # one case never stops the others
                failed = in_one_line(error)
                attribution = Attribution(case, abstained=failed)
        tokens = watch.prompt_tokens + watch.completion_tokens if watch is not None else 0
        trouble = watch.failures[0] if watch is not None and watch.failures else None
        if not attribution.decisive:
            failed, trouble = failed or trouble, None
        ms = (time.perf_counter() - started) * 1000
        return case_line(attribution, name, failed=failed, incomplete=trouble, tokens=tokens, ms=ms)

    def _collect(self, pending: dict[Future[CaseLine | None], None]) -> None:
        for future in wait(pending, return_when=FIRST_COMPLETED).done:
            del pending[future]
            line = future.result()
            if line is None:
                continue
            self.tally.fresh += 1
            self.tally.abstained += line.abstained is not None
            self.tally.failed += line.failed is not None
            self.tally.incomplete += line.incomplete is not None
            self.tally.tokens += line.tokens
            self._write(line)
        self._tell()

    def _tell(self) -> None:
        self._progress(self._where, self.tally.fresh + self.tally.reused, len(self.wrong))


def _trace_line(
    name: str, digest: str, content: TraceContent, left_out: int, wrong: tuple[str, ...], *, alone: bool
) -> TraceLine:
    prompts_known = content.system_known
    operations = content.recording.operations
    if not prompts_known:
        operations = tuple(replace(operation, prompt=None) for operation in operations)
    return TraceLine(
        trace=name,
        digest=digest,
        conversation=content.recording.conversation.id,
        cases=len(content.cases) - left_out,
        failed=len(wrong),
        all_judged=content.all_judged,
        wrong=None if alone else wrong,
        operations=operations,
        prompts_known=prompts_known,
        problem=content.problem,
        leaks=content.leaks,
        unclear=content.unclear,
    )
