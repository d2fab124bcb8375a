"""Spans of other tools become operations with what they read and made; ours are readable by other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from graph_exchange import recorded

from tracing import TraceError, records_of
from tracing.interchange import mlflow_traces, otlp

TRACE = "5b8efff798038103d269b633813fc60c"


def attributes(**facts: Any) -> list[dict[str, Any]]:
    def value(fact: Any) -> dict[str, Any]:
        if isinstance(fact, list):
            return {"arrayValue": {"values": [value(one) for one in fact]}}
        if isinstance(fact, dict):
            return {"kvlistValue": {"values": [{"key": key, "value": value(one)} for key, one in fact.items()]}}
        kinds = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
        return {kinds[type(fact)]: str(fact) if type(fact) is int else fact}

    return [{"key": key.replace("__", "."), "value": value(fact)} for key, fact in facts.items()]


def span(sid: str, parent: str = "", start: int = 1_700_000_000_000_000_000, **more: Any) -> dict[str, Any]:
    times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 2_500_000_000)}
    return {"traceId": TRACE, "spanId": sid, "parentSpanId": parent, "name": f"step {sid}", **times, **more}


def exported(*spans: Any) -> dict[str, Any]:
    resource = {"attributes": attributes(service__name="shop")}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "lib"}, "spans": [*spans]}]}]}


def read(path: Path, document: Any) -> Any:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return otlp.read(path)


def test_a_model_call_of_another_tool_is_an_operation_with_messages_tokens_and_parent(tmp_path: Path):
    said = [{"role": "system", "parts": [{"type": "text", "content": "Be brief."}]}]
    said += [{"role": "user", "parts": [{"type": "text", "content": "Tea?"}]}]
    chat = attributes(
        gen_ai__operation__name="chat",
        gen_ai__request__model="tiny",
        gen_ai__usage__input_tokens=12,
        gen_ai__usage__output_tokens=3,
        gen_ai__conversation__id="c7",
        gen_ai__input__messages=json.dumps(said),
        gen_ai__output__messages=[{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}],
    )
    inner = span("b", "a", start=1_700_000_001_000_000_000, attributes=chat, status={"code": 1}, flags=257)
    imported = read(tmp_path / "f", exported(inner, span("a", status={"code": "STATUS_CODE_ERROR", "message": "no"})))
    assert imported.warnings == ()
    graph = imported.graph
    outer, call = graph.operations["a"], graph.operations["b"]
    assert (call.kind, call.model, call.prompt_tokens, call.completion_tokens, call.calls) == ("llm", "tiny", 12, 3, 1)
    assert (call.parent, call.started, call.ended, call.status) == ("a", 1_700_000_001.0, 1_700_000_003.5, "ok")
    assert (outer.status, outer.error, outer.parent) == ("error", "no", None)
    assert graph.sessions[call.session].name == "c7"
    assert graph.sessions[outer.session].name == TRACE
    given = [(role, graph.variables[vid].kind, graph.variables[vid].value) for role, vid in call.inputs]
    assert given == [("system", "prompt", "Be brief."), ("user", "message", "Tea?")]
    assert [graph.variables[vid].value for vid in call.output_ids("assistant")] == ["Yes."]
    assert call.attributes["span"]["resource"] == {"service.name": "shop"}
    assert call.attributes["span"]["flags"] == 257


@pytest.mark.parametrize(
    ("facts", "inputs", "outputs"),
    [
        ({"input__value": '{"q": "x", "k": 2}', "output__value": "text"}, {"q": "x", "k": 2}, {"output": "text"}),
        ({"traceloop__entity__input": "[1]", "traceloop__entity__output": "2"}, {"input": [1]}, {"output": "2"}),
        ({"gen_ai__prompt__0__role": "user", "gen_ai__prompt__0__content": "hi"}, {"user": "hi"}, {}),
        (
            {"llm__output_messages__0__message__content": "a", "llm__output_messages__0__message__role": "assistant"},
            {},
            {"assistant": "a"},
        ),
        ({"gen_ai__retrieval__query__text": "tea"}, {"query": "tea"}, {}),
        (
            {"gen_ai__tool__call__arguments": {"x": [1, 2.5]}, "gen_ai__tool__call__result": "r"},
            {"x": [1, 2.5]},
            {"result": "r"},
        ),
    ],
)
def test_contents_are_found_under_the_names_of_several_conventions(
    tmp_path: Path, facts: Any, inputs: dict[str, Any], outputs: dict[str, Any]
):
    graph = read(tmp_path / "f", exported(span("a", attributes=attributes(**facts)))).graph
    one = graph.operations["a"]
    assert {role: graph.variables[vid].value for role, vid in one.inputs} == inputs
    assert {role: graph.variables[vid].value for role, vid in one.outputs} == outputs


def test_an_exception_event_says_what_went_wrong_and_former_events_what_was_said(tmp_path: Path):
    events = [
        {"name": "gen_ai.user.message", "timeUnixNano": "5", "attributes": attributes(content="hi")},
        {"name": "exception", "attributes": attributes(exception__type="ValueError", exception__message="no")},
    ]
    graph = read(tmp_path / "f", exported(span("a", events=events, status={"code": 2}))).graph
    assert graph.operations["a"].error == "ValueError: no"
    assert [graph.variables[vid].value for vid in graph.operations["a"].input_ids("user")] == ["hi"]


def test_lines_of_a_collector_lists_and_snake_case_are_read_and_a_cut_line_is_told(tmp_path: Path):
    first, second = exported(span("a")), exported(span("b", "a"))
    lines = json.dumps(first) + "\n\n" + json.dumps(second)
    assert list(read(tmp_path / "f", lines).graph.operations) == ["a", "b"]
    assert list(read(tmp_path / "f", [first, second]).graph.operations) == ["a", "b"]
    cut = read(tmp_path / "f", lines[:-20])
    assert list(cut.graph.operations) == ["a"]
    assert cut.warnings == ("line 3: is not JSON and was left out",)
    snake = json.dumps(first)
    for camel in ("resourceSpans", "scopeSpans", "spanId", "traceId", "startTimeUnixNano", "endTimeUnixNano"):
        snake = snake.replace(camel, "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in camel))
    assert read(tmp_path / "f", snake).graph.operations["a"].ended == 1_700_000_002.5


def test_damaged_spans_are_repaired_and_told(tmp_path: Path):
    broken = [span("a"), span("a", "a"), 5, {"name": 7}, span("b", "b", start=-3), span("c", "d"), span("d", "c")]
    broken += [span("e", start=9**40), span("f", attributes=[{"key": 1}, 3, {"key": "x"}], events={}, status="bad")]
    broken.append({**span("g"), "endTimeUnixNano": "5"})
    imported = read(tmp_path / "f", {"resourceSpans": [*exported(*broken)["resourceSpans"], 3]})
    graph, warnings = imported.graph, "\n".join(imported.warnings)
    assert len(graph.operations) == 9
    assert graph.operations["b"].parent is None
    assert graph.operations["g"].status == "open"
    for words in (
        "spans[2], resourceSpans[1]: is not an object",
        "spanId: is missing",
        "is the id of several",
    ):
        assert words in warnings
    assert "startTimeUnixNano: is not a time" in warnings
    assert "events: is not a list" in warnings
    assert "ends before it begins" in warnings


def test_a_record_of_ours_that_was_tampered_with_is_left_out_and_told(tmp_path: Path):
    document = otlp.document_of(recorded())
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for one, text in zip(spans[1:], ("{", "[]", '{"type": "riddle"}', '{"type": "operation", "id": 5}'), strict=False):
        for fact in one["attributes"]:
            if fact["key"] == "memtune.record":
                fact["value"]["stringValue"] = text
    imported = read(tmp_path / "f", document)
    warnings = "\n".join(imported.warnings)
    assert "memtune.record that is not a JSON object" in warnings
    assert "riddle" in warnings
    assert "cannot be taken as memtune wrote it" in warnings


def test_other_tools_find_our_model_calls_under_the_conventions():
    spans = otlp.document_of(recorded())["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert len({one["spanId"] for one in spans}) == len(spans)
    seen: set[str] = {""}
    for one in spans:
        assert one["parentSpanId"] in seen
        assert int(one["endTimeUnixNano"]) >= int(one["startTimeUnixNano"]) > 1.6e18
        assert (len(one["traceId"]), len(one["spanId"])) == (32, 16)
        seen.add(one["spanId"])
    extract = next(one for one in spans if one["name"] == "extract_facts")
    facts = {fact["key"]: next(iter(fact["value"].values())) for fact in extract["attributes"]}
    assert facts["gen_ai.operation.name"] == "chat"
    assert facts["gen_ai.request.model"] == "tiny"
    assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == ("24", "6")
    assert facts["gen_ai.conversation.id"] == "D1"
    said = json.loads(facts["gen_ai.input.messages"])
    assert [one["role"] for one in said] == ["user", "user", "system"]
    failed = next(one for one in spans if one["name"] == "answer")
    assert failed["status"] == {"code": 2, "message": "ValueError: no reply\nin two lines"}
    assert {"key": "error.type", "value": {"stringValue": "ValueError"}} in failed["attributes"]


def test_the_opentelemetry_library_takes_our_document():
    pytest.importorskip("opentelemetry.proto")
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    document = otlp.document_of(recorded())
    parsed = ParseDict(document, ExportTraceServiceRequest())
    assert len(parsed.resource_spans[0].scope_spans[0].spans) == 9


def test_mlflow_takes_our_document_and_gives_it_back(tmp_path: Path):
    mlflow = pytest.importorskip("mlflow")
    graph = recorded()
    taken = mlflow.entities.Trace.from_json(json.dumps(mlflow_traces.document_of(graph)))
    extract = next(one for one in taken.data.spans if one.name == "extract_facts")
    assert extract.span_type == "LLM"
    assert extract.inputs["p"] == "Extract facts from: {messages}"
    assert taken.info.state == "ERROR"
    (tmp_path / "again.json").write_text(taken.to_json())
    assert records_of(mlflow_traces.load(tmp_path / "again.json")) == records_of(graph)


def test_a_trace_that_mlflow_made_itself_becomes_operations(tmp_path: Path):
    rows = [
        {"span_id": "CDiUez1IyeM=", "parent_span_id": None, "name": "root", "start_time_unix_nano": 10**18}
        | {"end_time_unix_nano": 10**18 + 5, "status": {"code": "STATUS_CODE_OK"}, "events": []}
        | {
            "attributes": {"mlflow.spanType": '"CHAIN"', "mlflow.spanInputs": '{"q": "x"}', "mlflow.spanOutputs": '"y"'}
        },
        {"context": {"span_id": "0xab"}, "parent_id": "0x0838947b3d48c9e3", "name": "two", "start_time": 10**18}
        | {"end_time": 10**18 + 3, "status_code": "ERROR", "status_message": "no", "attributes": {}},
    ]
    info = {"trace_id": "tr-1", "assessments": [{"name": "score"}]}
    path = tmp_path / "f"
    path.write_text(json.dumps({"info": info, "data": {"spans": [*rows, 4]}}))
    imported = mlflow_traces.read(path)
    assert imported.warnings == ("data.spans[2]: is not an object and was left out",)
    root, two = imported.graph.operations.values()
    assert (root.kind, root.id, two.parent, two.error) == ("chain", "0838947b3d48c9e3", root.id, "no")
    assert [imported.graph.variables[vid].value for vid in (*root.input_ids("q"), *root.output_ids("result"))] == [
        "x",
        "y",
    ]
    assert imported.graph.attributes["mlflow"]["traces"] == [info]


def test_a_file_without_spans_is_refused(tmp_path: Path):
    for module, words in ((otlp, "holds no OTLP spans"), (mlflow_traces, "holds no spans of MLflow")):
        for document in ({}, {"resourceSpans": [{}]}, {"data": {"spans": []}}, [1]):
            (tmp_path / "f").write_text(json.dumps(document))
            with pytest.raises(TraceError, match=words):
                module.load(tmp_path / "f")
