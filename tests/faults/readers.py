"""Everything that reads files: sound ones of each kind, how they are damaged, and what must hold of what is read."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from damage import Damage, in_bytes, in_json, in_lines, in_text
from damaged_data import DATA
from graph_exchange import recorded, unusual
from judged_cases import seen_case
from recordings import record_memory
from run_shapes import BASELINE, run_folder
from traced_runs import conversation, record

from attribution.cases import Attribution
from experiments.attributing.attributions import Attributions, AttributionsFile, Header, case_line
from experiments.attributing.source import Judging, Source
from experiments.data.dataset_reader import Reading
from experiments.data.loaders import load_dataset
from experiments.data.published.locomo import read_locomo
from experiments.mlflow_tracking.outbox import OUTBOX, Outbox
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.writes import LogMetrics, LogText, SetTag, StartRun
from experiments.running.run_parts import read_rewrites
from experiments.runs.cases_file import read_verdicts, write_verdicts
from experiments.runs.config import RunConfig
from experiments.runs.config_file import load_config
from experiments.runs.fingerprint import check_fingerprint
from experiments.runs.folder import CONFIG, FINGERPRINT, LEDGER, SUMMARY, VERDICTS, RunFolder, read_prompts
from experiments.runs.measurement_files import ladder_json, read_ladder
from experiments.systems.fact_memory import FactMemory
from experiments.views.trace_figures import figures_of
from experiments.views.trace_tree import tree_lines
from optimizer.evaluation.ladder import Rung
from optimizer.evaluation.memories import SnapshotStore
from tracing import load_trace, records_of, save_trace
from tracing.graph.search import search
from tracing.interchange import FORMATS, format_named, mlflow_traces, otlp, smartcomment
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.accounting.token_counts import TokenCounts
from tracing.llm.cache import ResponseCache
from tracing.systems.conversations import read_conversations, write_conversations


@dataclass(frozen=True)
class Reader:
    """One kind of file.

    Attributes:
        sound: sound contents.
        damage: how they are damaged.
        read: reads a file and checks what it gives; gives False where there was nothing to give.
        file: its name.
    """

    sound: Callable[[], Sequence[bytes]]
    damage: Damage
    read: Callable[[Path], bool]
    file: str = "input"


def _made(write: Callable[[Path], Any], name: str = "file") -> bytes:
    """What is written under a name into a new folder."""
    with TemporaryDirectory() as folder:
        write(Path(folder))
        return (Path(folder) / name).read_bytes()


def _as_json(*documents: Any) -> list[bytes]:
    return [json.dumps(document).encode() for document in documents]


# Traces, ours and others'.


def _traces() -> list[bytes]:
    graphs = (recorded(), unusual(), record_memory().graph, record_memory(fails=True).graph)
    return [_made(lambda folder, graph=graph: save_trace(graph, folder / "file")) for graph in graphs]


def _read_trace(path: Path) -> bool:
    loaded = load_trace(path)
    graph = loaded.graph
    kept = path.with_name("kept")
    kept.unlink(missing_ok=True)
    save_trace(graph, kept)
    again = load_trace(kept)
    assert again.problem is None, again.problem
    assert len(again.graph.variables) == len(graph.variables)
    assert len(again.graph.operations) == len(graph.operations)
    assert all(isinstance(line.plain, str) for line in islice(tree_lines(graph), 300))
    figures_of(graph)
    for one in islice(search(graph, "o"), 3):
        graph.backward_slice(one.item.id) if one.item.id in graph.variables else None
    return loaded.problem is None


def _judged_traces() -> list[bytes]:
    return [_made(lambda folder: record(folder / "file", conversation("told")))]


def _read_judged(path: Path) -> bool:
    """A trace as `memtune attribute` reads it, with the questions that were asked in it."""
    found = Source(path, Judging({path.stem: conversation("told")})).read()
    return found.problem is None and len(found.cases) == 3


def _smartcomments() -> list[bytes]:
    rows = [{"name": name, "value": "[1, 'x']", "version": version} for name in "abc" for version in (1, 2)]
    ends = [("a@1", "b@1"), ("b@1", "b@1"), ("b@1", "a@2"), ("c@2", "c@1")]
    edges = [
        {"op_id": f"o{n % 2}", "source_full_node_id": s, "target_full_node_id": t} for n, (s, t) in enumerate(ends)
    ]
    plain = {"graph_id": "g", "data": {"nodes": rows, "edges": edges, "operations": [{"op_id": "o0"}], "sessions": []}}
    return _as_json(plain, *(smartcomment.document_of(graph) for graph in (recorded(), unusual())))


def _otlp() -> list[bytes]:
    span = {"traceId": "t", "spanId": "s", "name": "n", "startTimeUnixNano": "5", "endTimeUnixNano": 6}
    said = [{"key": "gen_ai.input.messages", "value": {"stringValue": '[{"role": "user", "content": "x"}]'}}]
    foreign = {"resourceSpans": [{"scopeSpans": [{"spans": [span, {**span, "spanId": "u", "attributes": said}]}]}]}
    return _as_json(foreign, *(otlp.document_of(graph) for graph in (recorded(), unusual())))


def _mlflow() -> list[bytes]:
    other = {"info": {}, "data": {"spans": [{"span_id": "a", "name": "n", "attributes": {"mlflow.spanInputs": "{}"}}]}}
    return _as_json(other, *(mlflow_traces.document_of(graph) for graph in (recorded(), unusual())))


def _imported(name: str) -> Callable[[Path], bool]:
    """What could be imported can be kept as a trace and written in every format."""

    def read(path: Path) -> bool:
        imported = format_named(name).read(path)
        kept, out = path.with_name("kept"), path.with_name("out")
        kept.unlink(missing_ok=True)
        save_trace(imported.graph, kept)
        loaded = load_trace(kept)
        assert loaded.problem is None, loaded.problem
        for target in FORMATS:
            out.unlink(missing_ok=True)
            format_named(target).write(imported.graph, out)
            again = format_named(target).read(out)
            assert len(again.graph.variables) == len(imported.graph.variables)
            assert len(again.graph.operations) == len(imported.graph.operations)
            if target != "smartcomment":
                assert len(records_of(again.graph)) == len(records_of(imported.graph))
        return True

    return read


# Data sets and settings.


def _conversations() -> list[bytes]:
    told = [conversation(name) for name in ("one", "two", "three")]
    return [_made(lambda folder: write_conversations(folder / "file", told))]


def _read_dataset(path: Path) -> bool:
    for one in read_conversations(path):
        assert one.sessions
    config = RunConfig.model_validate({"dataset": "jsonl", "data": path})
    return all(load_dataset(config).splits.named().values())


def _locomo() -> list[bytes]:
    def turn(n: int) -> dict[str, Any]:
        return {"speaker": "Ann", "dia_id": f"D1:{n}", "text": "I moved.", "blip_caption": "a van"}

    def asked(n: int) -> dict[str, Any]:
        return {"question": "Who moved?", "answer": "Ann", "evidence": ["D1:1; D1:2"], "category": n}

    told = {"session_1": [turn(1), turn(2)], "session_1_date_time": "1 May", "speaker_a": "Ann", "speaker_b": "Bo"}
    return _as_json(
        [{"sample_id": f"c{n}", "conversation": told, "qa": [asked(1), asked(5)]} for n in range(3)],
    )


def _read_locomo(path: Path) -> bool:
    assert list(read_locomo(path, Reading(), (1, 2, 3, 4, 5)))
    config = RunConfig.model_validate({"dataset": "locomo", "data": path})
    return all(load_dataset(config).splits.named().values())


def _configs() -> list[bytes]:
    full = (
        "system: rag\nsystem_settings: {top_k: 3}\ndataset: sample\nlimits: {conversations: 9, sessions: 2}\n"
        "models:\n  task: {model: m, base_url: 'http://127.0.0.1:9/v1', api_key_env: KEY, price_in: 0.5}\n"
        "  judge: {model: j, base_url: 'https://h/v1', timeout_s: 3}\nmetric: short_contains\nrounds: 2\n"
        "budget: {calls: 5, minutes: 1.5}\ntracking: {uri: 'http://u:pw@127.0.0.1:9', experiment: x, traces: 3}\n"
    )
    short = "system: fact-memory\nmodels:\n  task:\n    model: m\nlocomo:\n  categories:\n  - 1\n  - 2\nseed: 0\n"
    laughs = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9) if n else 'lol'}]\n" for n in range(9))
    return [full.encode(), short.encode(), laughs.encode()]


def _read_config(path: Path) -> bool:
    rounds = load_config(str(path)).rounds
    assert rounds is None or rounds >= 0
    return True


# What a run's folder keeps.


def _prompts() -> list[bytes]:
    return [BASELINE["answer"].encode(), FactMemory.prompts["extract"].text.encode()]


def _read_prompts(path: Path) -> bool:
    return bool(read_prompts(path.parent, ["answer"])["answer"])


def _read_candidate(path: Path) -> bool:
    return bool(read_rewrites(path, FactMemory.prompts))


def _ledgers() -> list[bytes]:
    def write(folder: Path) -> None:
        with contextlib.closing(Ledger(folder / "file")) as ledger:
            for n in range(5):
                ledger.record_call([f"key{n}", f"other{n}"], TokenCounts(n, n), float(n))
            ledger.memory("memory")

    return [_made(write)]


def _read_ledger(path: Path) -> bool:
    with contextlib.closing(Ledger(path)) as ledger:
        for n in range(5):
            for paid in ledger.claim([f"key{n}"]):
                assert paid.prompt_tokens >= 0
                assert paid.seconds >= 0
        ledger.record_call(["next"], TokenCounts(1, 1), 9.0)
    with contextlib.closing(Ledger(path)) as again:
        assert [paid.seconds for paid in again.claim(["next"])] == [9.0]
    return True


def _run_file(name: str) -> Callable[[], list[bytes]]:
    def sound() -> list[bytes]:
        with TemporaryDirectory() as home:
            folder = run_folder(Path(home))
            write_verdicts(folder, [seen_case(n, "Bergen").case for n in range(3)])
            box = Outbox(TrackingStore("http://127.0.0.1:9", "e", "k"), folder, clock=lambda: 0.0)
            box.keep_off(OSError("away"))
            box.send(StartRun(title="t", moment=1, tags={}), SetTag(key="k", value="v"))
            box.send(LogMetrics(values={"m": 1.0}, step=1, moment=2), LogText(path="p", text="t"))
            folder.write(FINGERPRINT, json.dumps({"config.rounds": "2", "data": "x"}))
            return [(folder.path / name).read_bytes()]

    return sound


def _read_summary(path: Path) -> bool:
    return RunFolder(path.parent).summary().run_id is not None


def _read_fingerprint(path: Path) -> bool:
    check_fingerprint(RunFolder(path.parent), {"config.rounds": "2", "data": "x"})
    return True


def _read_verdicts(path: Path) -> bool:
    return bool(read_verdicts(RunFolder(path.parent)))


def _read_outbox(path: Path) -> bool:
    waiting = Outbox.load(RunFolder(path.parent)).waiting
    assert waiting >= 0
    return waiting > 0


def _attributions() -> list[bytes]:
    def write(folder: Path) -> None:
        with AttributionsFile.open(folder / "file", Header(method="survival")) as file:
            for n in range(3):
                seen = seen_case(n, "Bergen", lost_at="answer")
                file.append(case_line(seen.attribution or Attribution(seen.case), "trace.jsonl"))

    return [_made(write)]


def _read_attributions(path: Path) -> bool:
    with AttributionsFile.open(path, Header(method="survival")) as file:
        for case in file.attributions.cases.values():
            assert case.attribution().case.question.id == case.question_id
    return Attributions.read(path).header.method == "survival"


def _ladders() -> list[bytes]:
    return [
        ladder_json([Rung("baseline pipeline", 0.5, (0.4, 0.6), 20), Rung("gold facts", 0.8, (0.7, 0.9), 20)]).encode()
    ]


def _read_ladder(path: Path) -> bool:
    return bool(read_ladder(path))


# Caches: what is damaged counts as absent.


def _snapshots() -> list[bytes]:
    return _as_json({"memory": {"state": {"entries": []}}, "records": [], "calls": 3})


def _read_snapshot(path: Path) -> bool:
    folder = path.parent / "snapshots"
    stored = folder / "ab" / "abc.json"
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(path.read_bytes())
    return SnapshotStore(folder).load("abc") is not None


def _caches() -> list[bytes]:
    def write(folder: Path) -> None:
        with contextlib.closing(ResponseCache(folder)) as cache:
            cache.put_many({f"key{n}": b"x" * 900 for n in range(40)})
        with contextlib.closing(sqlite3.connect(folder / "responses.sqlite")) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    return [_made(write, "responses.sqlite")]


def _read_cache(path: Path) -> bool:
    for beside in path.parent.glob("responses.sqlite-*"):
        beside.unlink()
    with contextlib.closing(ResponseCache(path.parent)) as cache:
        found = cache.get_many([f"key{n}" for n in range(40)])
        assert all(isinstance(value, bytes) for value in found.values())
        cache.put("new", b"y")
    return len(found) == 40


def _more_bytes(content: bytes, draw: random.Random) -> bytes:
    """A database with a run of bytes changed, for it has many."""
    damaged = bytearray(content)
    for _ in range(draw.randint(1, 3)):
        at, length = draw.randrange(len(damaged)), draw.choice((1, 4, 100, 4096))
        damaged[at : at + length] = draw.randbytes(length)[: len(damaged) - at]
    return in_bytes(bytes(damaged), draw)


READERS: Mapping[str, Reader] = {
    "trace": Reader(_traces, in_lines, _read_trace),
    "judged trace": Reader(_judged_traces, in_lines, _read_judged),
    "smartcomment": Reader(_smartcomments, in_json, _imported("smartcomment")),
    "otlp": Reader(_otlp, in_json, _imported("otlp")),
    "mlflow": Reader(_mlflow, in_json, _imported("mlflow")),
    "conversations": Reader(_conversations, in_lines, _read_dataset),
    "LoCoMo": Reader(_locomo, in_json, _read_locomo),
    "config": Reader(_configs, in_text, _read_config, CONFIG),
    "prompts": Reader(_prompts, in_text, _read_prompts, "answer.txt"),
    "candidate": Reader(_prompts, in_text, _read_candidate, "answer.txt"),
    "ledger": Reader(_ledgers, in_lines, _read_ledger, LEDGER),
    "summary": Reader(_run_file(SUMMARY), in_json, _read_summary, SUMMARY),
    "fingerprint": Reader(_run_file(FINGERPRINT), in_json, _read_fingerprint, FINGERPRINT),
    "verdicts": Reader(_run_file(VERDICTS), in_lines, _read_verdicts, VERDICTS),
    "outbox": Reader(_run_file(OUTBOX), in_lines, _read_outbox, OUTBOX),
    "attributions": Reader(_attributions, in_lines, _read_attributions),
    "ladder": Reader(_ladders, in_json, _read_ladder),
    "snapshot": Reader(_snapshots, in_json, _read_snapshot),
    **{f"data: {name}": Reader(each.sound, each.damage, each.read, each.file) for name, each in DATA.items()},
    "response cache": Reader(_caches, _more_bytes, _read_cache, "responses.sqlite"),
}


@cache
def sound(name: str) -> Sequence[bytes]:
    """The sound files of a kind, made once."""
    return READERS[name].sound()
