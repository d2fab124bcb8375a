"""The annotation server: for bearers of its token, with checked ids; others' labels are shown only afterwards."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from annotated_traces import write_trace
from scripted_server import ScriptedServer

from experiments.annotating.annotation_server import AnnotationServer
from experiments.annotating.attribution_methods import Methods
from experiments.annotating.labels import LabelStore
from experiments.annotating.page_server import server_key
from experiments.annotating.workspace import Workspace
from experiments.attributing.source import Source
from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace as recording
from tracing.recording.trace_context import variable


class Client:
    """Asks a server as the page does."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.key = parse_qs(parts.fragment)["key"][0]

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, Any]]:
        sent = {"Authorization": f"Bearer {self.key}", **headers}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.origin}{path}", data, sent)  # noqa: S310 (http on loopback)
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:  # noqa: S310
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    write_trace(tmp_path / "a.jsonl")
    with served(tmp_path, tmp_path / "a.jsonl") as client:
        yield client


@contextmanager
def served(tmp_path: Path, trace: Path) -> Iterator[Client]:
    workspace = Workspace([Source(trace)])
    workspace.read()
    with ExitStack() as stack:
        methods = Methods(
            workspace, stack, home=tmp_path, prompts="champion", access=_no_model, calls=None, seconds=9.0
        )
        server = AnnotationServer(
            workspace, LabelStore(tmp_path / "labels.sqlite"), methods, exports=tmp_path / "out", port=None
        )
        stack.callback(server.close)
        server.start()
        yield Client(server.address)


def _no_model(stack: ExitStack) -> Any:
    raise AssertionError("no model is needed")


def wrong_case(client: Client) -> dict[str, str]:
    (graph,) = client.ask("/v1/overview")[1]["graphs"]
    return {"graph": graph["id"], "case": next(one["id"] for one in graph["cases"] if one["state"] == "wrong")}


def test_the_page_has_no_data_and_a_policy_and_the_data_want_a_token(client: Client) -> None:
    for path in ("/", "/annotate.js", "/annotate.css"):
        with urllib.request.urlopen(client.origin + path, timeout=20) as page:  # noqa: S310
            policy = page.headers["Content-Security-Policy"]
            assert b"Oslo" not in page.read()
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
    for key in ("", "Bearer wrong"):
        assert client.ask("/v1/overview", Authorization=key)[0] == 401
    assert client.ask("/v1/overview", Origin="http://evil.example")[0] == 403
    assert client.ask("/v1/overview", Host="evil.example")[0] == 403


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"operations": ["o99"]}, r"operations: 'o99' names no operation of this graph; did you mean 'o"),
        ({"operations": ["extract_facts"]}, "operations: extract_facts ran 3 times; give the id of one execution"),
        ({"evidence": ["D9:9"]}, "evidence: 'D9:9' names no variable of this graph"),
        ({"error_type": "Oops"}, "error type: 'Oops' is none"),
        ({"error_type": None}, "error type: is missing"),
        ({"error_type": "JudgeError", "operations": ["o1"]}, "operations: JudgeError names no operation"),
        ({"annotator": " "}, "annotator: give a name"),
        ({"case": "v999"}, "case 'v999': is in none of the traces"),
        ({"note": "x" * 5000}, "note: has 5,000 characters; 4,000 are taken"),
    ],
)
def test_what_is_wrong_with_a_label_is_told_and_nothing_is_kept(
    client: Client, given: dict[str, Any], told: str
) -> None:
    good = {"annotator": "ann", "action": "labelled", "error_type": "UpdateError", **wrong_case(client)}
    status, said = client.ask("/v1/label", {**good, **given})
    assert status == 422
    assert told in said["error"]["message"]
    assert client.ask("/v1/standing", {"annotator": "ann"})[1]["counts"] == {}


def test_progress_counts_answers_that_nothing_judged(tmp_path: Path) -> None:
    trace = tmp_path / "a.jsonl"
    with recording(trace), operation("answer", inputs={"query": variable("Where?", name="q1", kind="query")}) as answer:
        answer.output("prediction", "Oslo", name="prediction", kind="prediction")
    with served(tmp_path, trace) as client:
        assert client.ask("/v1/standing", {"annotator": "ann"})[1]["open"] == 1


def test_names_that_only_one_has_are_taken_for_ids(client: Client) -> None:
    label = {"annotator": "ann", "action": "labelled", "error_type": "UpdateError", "evidence": ["D1:1"]}
    status, said = client.ask("/v1/label", {**label, **wrong_case(client), "note": "key sk-abcdefghijklmnopqrstuvwx"})
    assert status == 200
    assert said["mine"]["evidence"] == ["v1"]
    assert "sk-abcdef" not in said["mine"]["note"]


def test_a_label_of_a_trace_that_is_still_being_read_is_to_be_sent_again(tmp_path: Path) -> None:
    trace, labels = tmp_path / "a.jsonl", LabelStore(tmp_path / "labels.sqlite")
    write_trace(trace)
    known = Workspace([Source(trace)])
    known.read()
    case = known.queue()[0].id
    workspace = Workspace([Source(trace)])
    with ExitStack() as stack:
        given = {"home": tmp_path, "prompts": "champion", "access": _no_model, "calls": None, "seconds": 9.0}
        methods = Methods(workspace, stack, **given)  # type: ignore[arg-type]
        server = AnnotationServer(workspace, labels, methods, exports=tmp_path / "out", port=None)
        stack.callback(server.close)
        with workspace._lock:  # the reader waits for it
            server.start()
            client = Client(server.address)
            label = {"annotator": "ann", "action": "labelled", "error_type": "UpdateError"}
            label |= {"graph": case.trace, "case": case.case, "request": "one"}
            status, said = client.ask("/v1/label", label)
            assert (status, said["error"]["message"][:7]) == (503, "a.jsonl")
        while not workspace.done:
            time.sleep(0.01)
        assert client.ask("/v1/label", label)[0] == 200
        gone = {**label, "case": "v999"}
        assert client.ask("/v1/label", gone)[0] == 422
    assert len(labels.in_force()) == 1


def test_others_are_shown_once_one_has_labelled_too_and_agreement_follows(client: Client) -> None:
    case = wrong_case(client)
    label = {"action": "labelled", "error_type": "UpdateError", **case}
    client.ask("/v1/label", {"annotator": "ann", **label})
    said = client.ask("/v1/case", {"annotator": "ben", **case})[1]
    assert (said["others"], said["others_count"], said["mine"]) == (None, 1, None)
    said = client.ask("/v1/label", {"annotator": "ben", **label, "error_type": "RetrievalError"})[1]
    assert [one["annotator"] for one in said["others"]] == ["ann"]
    found = client.ask("/v1/agreement")[1]
    assert (found["shared"], len(found["disputed"])) == (1, 1)
    said = client.ask("/v1/undo", {"annotator": "ben", **case})[1]
    assert (said["mine"], said["others"]) == (None, None)
    assert client.ask("/v1/undo", {"annotator": "ben", **case})[0] == 422


def test_a_correct_reply_is_not_labelled(client: Client) -> None:
    (graph,) = client.ask("/v1/overview")[1]["graphs"]
    right = next(one["id"] for one in graph["cases"] if one["state"] == "right")
    label = {"annotator": "ann", "action": "labelled", "error_type": "UpdateError"}
    status, said = client.ask("/v1/label", {**label, "graph": graph["id"], "case": right})
    assert (status, said["error"]["message"][:5]) == (422, "case:")


def test_a_verdict_has_its_picture_in_which_the_blamed_step_is_lost(client: Client) -> None:
    said = client.ask("/v1/explain", {**wrong_case(client), "method": "survival"})[1]
    states = re.findall('<li class="([a-z]+)"', said["picture"])
    assert states == ["carried", "carried", "lost", "after", "after", "after", "after"]
    (blame,) = said["decisive"]
    assert blame["error_type"] == "ExtractionError"
    assert f'<a href="#{blame["operation_id"]}">extract_facts</a>' in said["picture"]
    assert client.ask("/v1/explain", {**wrong_case(client), "method": "no-such"})[0] == 422


def test_a_method_that_asks_a_model_shows_its_steps_and_opens_the_model_once(
    tmp_path: Path, scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    write_trace(tmp_path / "a.jsonl")
    workspace = Workspace([Source(tmp_path / "a.jsonl")])
    workspace.read()
    asked: list[ModelAccess] = []

    def access(stack: ExitStack) -> ModelAccess:
        asked.append(open_access(retries=0))
        return asked[0]

    scripted_server.script = lambda body: "JudgeError"
    with ExitStack() as stack:
        given = {"home": tmp_path, "prompts": "champion", "access": access, "calls": None, "seconds": 9.0}
        methods = Methods(workspace, stack, **given)  # type: ignore[arg-type]
        assert methods.names() == ["survival"]
        found = [methods.explain(one.id, "asking_method:ASKING") for one in workspace.queue()]
    assert len(asked) == 1
    for one in found:
        assert one.attribution.decisive[0].error_type == "JudgeError"
        assert [(step.title, step.text) for step in one.steps] == [("asked", "JudgeError")]


def test_versions_of_a_variable_differ_by_words(client: Client) -> None:
    graph = wrong_case(client)["graph"]
    case = client.ask("/v1/case", {"annotator": "ann", **wrong_case(client)})[1]
    entry = next(one["id"] for column in case["columns"] for one in column if "version 2" in one.get("name", ""))
    said = client.ask("/v1/element", {"graph": graph, "id": entry})[1]
    assert [one["version"] for one in said["versions"]] == [1, 2]
    assert ["added", [["Mara moved.", False], [" Noted.", True]]] in [
        [kind, _joined(words)] for kind, words, _ in said["versions"][1]["difference"]
    ]
    assert [one["name"] for one in said["messages"]] == ["D1:1"]


def _joined(words: list[list[Any]]) -> list[list[Any]]:
    """Neighbours of one kind as one."""
    found: list[list[Any]] = []
    for text, changed in words:
        if found and found[-1][1] == changed:
            found[-1][0] += text
        else:
            found.append([text, changed])
    return found


def test_the_token_outlives_the_server_and_is_its_owners_alone(tmp_path: Path) -> None:
    key = server_key(tmp_path)
    assert server_key(tmp_path) == key
    assert (tmp_path / "annotate-key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "annotate-key").write_text("")
    with pytest.raises(ConfigError, match="annotate-key: holds no token; remove it"):
        server_key(tmp_path)
