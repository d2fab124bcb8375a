"""Data that looks like markup or steers a terminal, in every place that commands read from."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import yaml
from scripted_server import ScriptedServer

from tracing import ExecutionGraph, Operation, Session, Variable, save_trace
from tracing.systems.conversations import Conversation, write_conversations

MARKUP = ("[/INST]", "[tea]", "[/etc/x]", "[bold red]x[/]", "[link=e.example]x[/link]", ":smile:", "$a_{$")
STEERING = (
    "\x1b]8;;e.example\x1b\\x",
    "\x1b[2Jgone",
    "\x9b2Jgone",
    "\u202egnp.exe",
    "\x07bell",
    "\rover",
    "\x00nul",
    "\u2028line",
)
PAYLOADS = (*MARKUP, *STEERING)
TEXT = " ".join(PAYLOADS)


STEER = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of characters that act and are not seen."""


def shown(text: str) -> str:
    """The text as it is to be read on a terminal."""
    return "".join(
        json.dumps(one)[1:-1] if unicodedata.category(one) in STEER and one not in "\n\t" else one for one in text
    )


def conversations() -> list[Conversation]:
    """Nine conversations in which every text that may be any text is hostile."""
    return [
        Conversation.model_validate(
            {
                "id": f"{number} {TEXT}",
                "speakers": [f"Ann {TEXT}", f"Ben {TEXT}"],
                "sessions": [
                    {
                        "id": f"D1 {TEXT}",
                        "time": f"2024-03-04 10:00 {TEXT}",
                        "turns": [
                            {"id": f"D1:1 {TEXT}", "speaker": f"Ann {TEXT}", "text": f"I like tea. {TEXT}"},
                            {"id": f"D1:2 {TEXT}", "speaker": f"Ben {TEXT}", "text": f"I moved to Oslo. {TEXT}"},
                        ],
                    }
                ],
                "questions": [
                    {
                        "id": f"q{number} {TEXT}",
                        "question": f"What does Ann like? {TEXT}",
                        "answers": [f"tea {TEXT}", "tea"],
                        "kind": f"kind {TEXT}",
                        "evidence": [f"D1:1 {TEXT}"],
                    }
                ],
            }
        )
        for number in range(9)
    ]


def graph(other: str = "", *, payloads: tuple[str, ...] = (*PAYLOADS, "\ud800half")) -> ExecutionGraph:
    """For each payload a session, two variables and an operation of which all texts hold it."""
    variables, operations, sessions = [], [], []
    for n, payload in enumerate(payloads):
        sessions.append(Session(f"s{n} {payload}", f"session {payload}"))
        value = {f"key {payload}": f"v {payload}{other}"}
        read = Variable(f"r{n} {payload}", f"read {payload}", f"kind {payload}", f"value {payload}")
        made = Variable(f"m{n} {payload}", f"made {payload}", f"kind {payload}", value, session=f"s{n} {payload}")
        variables += [read, made]
        operations.append(
            Operation(
                f"o{n} {payload}",
                f"step {payload}",
                f"kind {payload}",
                ((f"role {payload}", read.id),),
                ((f"role {payload}", made.id),),
                None,
                f"s{n} {payload}",
                float(n),
                n + 1.0,
                "error",
                f"Error: {payload}",
                f"model {payload}",
                1,
                attributes={f"fact {payload}": payload},
            )
        )
    return ExecutionGraph(variables, operations, sessions, {f"file {TEXT}": TEXT})


def annotated() -> dict[str, object]:
    """A graph of smartcomment with one labelled wrong answer, and a row that is no edge."""
    common = {"graph_id": "g", "session_id": "s", "filename": "f", "lineno": 1, "metadata": {}}

    def node(name: str, value: str, category: str, owner: str | None = None, **facts: object) -> dict[str, object]:
        row = {"name": name, "value": value, "category": category, "class_name": owner, "metadata": facts}
        return {**common, **row}

    names = {"message": f"D1:1 {TEXT}", "query": f"q {TEXT}", "prediction": f"p {TEXT}", "context": f"c {TEXT}"}
    nodes = [
        node(names["message"], f"Ann {TEXT}: I like tea. {TEXT}", "message"),
        node(names["query"], f"What does Ann like? {TEXT}", "message & query", "query", evidence=[names["message"]]),
        node(names["context"], f"Ann likes tea. {TEXT}", "memory_context"),
        node(names["prediction"], f"wine {TEXT}", "prediction", "prediction"),
        node(f"g {TEXT}", "tea", "golden_answers", "golden_answers"),
        node(f"j {TEXT}", "0.0", "judge_score", "judge_score"),
    ]
    ids = {
        "query": f"query:{names['query']}@1",
        "prediction": f"prediction:{names['prediction']}@1",
        "context": f"{names['context']}@1",
        "gold": f"golden_answers:g {TEXT}@1",
        "score": f"judge_score:j {TEXT}@1",
    }
    links = [
        ("r", f"search {TEXT}", ("query",), "context"),
        ("a", "qa", ("context", "query"), "prediction"),
        ("j", "llm-judge", ("query", "prediction", "gold"), "score"),
    ]
    operations = [{**common, "op_id": f"{oid} {TEXT}", "op_name": name} for oid, name, _, _ in links]
    edges: list[object] = [
        {**common, "op_id": f"{oid} {TEXT}", "source_full_node_id": ids[one], "target_full_node_id": ids[target]}
        for oid, _, sources, target in links
        for one in sources
    ]
    edges.append({"op_id": f"lost {TEXT}", "source_full_node_id": ids["query"], "target_full_node_id": ids["context"]})
    operations.append({**common, "op_id": f"a {TEXT}", "op_name": "twice"})
    label = {
        "query_id": ids["query"],
        "query": f"What does Ann like? {TEXT}",
        "golden_answers": "tea",
        "prediction_id": ids["prediction"],
        "source_evidence_ids": [f"{names['message']}@1"],
        "final_error_type": "ResponseError",
        "final_op_id": f"a {TEXT}",
        "acceptable_op_ids": [f"a {TEXT}"],
    }
    sessions = [{**common, "session_name": TEXT}]
    data = {"nodes": nodes, "edges": edges, "operations": operations, "sessions": sessions, "annotations": [label]}
    return {"graph_id": "g", "data": data}


def write_world(folder: Path, server: ScriptedServer, tracking: str) -> None:
    """The files that commands are given: a data set, a configuration, four traces, and a graph of another tool."""
    write_conversations(folder / "data.jsonl", conversations())
    endpoint = {"base_url": server.base_url, "retries": 0, "api_key": "sk-test-key-1234567"}
    config = {
        "system": "rag",
        "dataset": "jsonl",
        "data": "data.jsonl",
        "rounds": 1,
        "proposals": 2,
        "models": {"task": {"model": f"m {TEXT}", **endpoint}, "embedding": {"model": f"e {TEXT}", **endpoint}},
        "tracking": {"uri": tracking, "experiment": folder.name},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    save_trace(graph(), folder / "trace.jsonl")
    save_trace(graph(" changed"), folder / "other.jsonl")
    save_trace(graph(payloads=PAYLOADS), folder / "text.jsonl")  # which UTF-8 holds, as what a model is sent must be
    unknown = json.dumps({"type": f"type {TEXT}"})
    (folder / "cut.jsonl").write_text((folder / "trace.jsonl").read_text() + f"{unknown}\n", encoding="utf-8")
    (folder / "annotated.json").write_text(json.dumps(annotated()), encoding="utf-8")
