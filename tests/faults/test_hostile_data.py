"""Whatever a data set says is data: it runs, nothing of it is lost, and nothing of it comes alive."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from bench import Tried, memtune, well_said
from markdown_it import MarkdownIt
from payloads import HIDDEN, LIVE, SECRETS, drawn, markup
from scripted_server import ScriptedServer, prompt_of
from scripted_world import kind_of

from experiments.display.terminal import visible
from experiments.runs.folder import RunFolder
from tracing import load_trace
from tracing.interchange import FORMATS
from tracing.systems.conversations import Conversation, write_conversations

pytestmark = pytest.mark.slow

DEPTH = "1/2/3/4/5/6/7/8"
"""So deep lies the folder of a run, that what climbs out of it is still seen."""

LONGEST_FACT, LONGEST_ANSWER = 140, 100


def conversation(payload: str, split: str) -> Conversation:
    """The payload in every place that a data set has."""
    questions = [
        {"id": f"{payload}{n}", "question": f"What about {payload} ({n})?", "answers": [f"{payload} {n}"]}
        for n in range(2)
    ]
    turns = [{"id": f"{payload}{n}", "speaker": payload, "text": f"Told {n}: {payload}"} for n in range(2)]
    return Conversation.model_validate(
        {
            "id": payload,
            "split": split,
            "speakers": [payload],
            "sessions": [{"id": payload, "time": payload, "turns": turns}],
            "questions": [
                {**question, "kind": payload, "evidence": [turn["id"]]}
                for question, turn in zip(questions, turns, strict=True)
            ],
        }
    )


class Repeating:
    """A model that tells what it is told: turns as facts, and for an answer what stands in the question."""

    def __init__(self, conversations: list[Conversation]) -> None:
        self.turns = [turn.spoken for one in conversations for turn in one.turns()]
        self.questions = {q.question: q.answers[0] for one in conversations for q in one.questions}
        self.sent: list[str] = []

    def __call__(self, body: dict[str, Any]) -> str:
        asked, kind = prompt_of(body), kind_of(body)
        self.sent.append(asked)
        if kind == "extract":
            return json.dumps({"facts": [turn[:LONGEST_FACT] for turn in self.turns if turn in asked][:4]})
        if kind == "decide":
            return json.dumps({"event": "ADD", "id": "1"})
        if kind == "reflect":
            return "I have no better idea."
        answer = next((answer for question, answer in self.questions.items() if question in asked), "none")
        wrong = f"no, as far as anybody could ever have told it is not so {answer}"
        return (answer if answer.endswith("0") else wrong)[:LONGEST_ANSWER]


class Page(HTMLParser):
    """What of a page is live: its elements, attributes, addresses and scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.live: list[str] = []
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action", "data")]
        self._inside = None
        if tag == "style" or (tag == "script" and dict(attrs).get("type") != "application/json"):
            self._inside = tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._inside = None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.live.append(data)


_INERT = re.compile(r"#|data:image/(png|svg\+xml)|[\w./-]*(#[\w.~%=-]*)?$")


def lifeless(text: str, where: object) -> None:
    """Make sure that no payload became a part of a page."""
    page = Page(text)
    assert not page.tags & {"x-live", "iframe", "object", "embed", "base", "form", "img", "foreignobject"}, where
    assert not [name for name in page.attributes if name.startswith("on") or name == "srcdoc"], where
    assert not [link for link in page.links if not _INERT.match(link)], (where, page.links)
    assert not [script for script in page.live if LIVE in script], where


def well(*arguments: str | Path) -> str:
    """What a command says that must go well."""
    said = memtune(*arguments)
    well_said(said)
    assert said.code == 0, said.last
    return said.out + said.err


def letters(text: str) -> str:
    """The letters of a text: what is left of it however it is wrapped, and whatever is shown of what does not show."""
    return "".join(re.findall(r"[^\W_]", re.sub(r"\\u[0-9a-f]{4}", "", visible(text))))


def outside(root: Path) -> list[Path]:
    """What lies under the root but neither in the run's folder nor on the way to it."""
    folder = root / DEPTH
    return [path for path in root.rglob("*") if not path.is_relative_to(folder) and not folder.is_relative_to(path)]


class Ran:
    """A run on hostile data in a folder of its own, from which it must not get out."""

    def __init__(self, root: Path, server: ScriptedServer, store: Path, payloads: Mapping[str, str]) -> None:
        self.root, self.payloads = root, payloads
        self.folder = root / DEPTH
        self.folder.mkdir(parents=True)
        self.home = self.folder / "home"
        self.home.mkdir()
        copy(store, self.home)
        splits = ("train", "validation", "test")
        self.conversations = [conversation(text, splits[at % 3]) for at, text in enumerate(payloads.values())]
        self.data = self.folder / "data.jsonl"
        write_conversations(self.data, self.conversations)
        self.model = Repeating(self.conversations)
        server.script, server.embed_reply = self.model, None
        reached = f"base_url: '{server.base_url}', retries: 0"
        name = json.dumps("[/INST] [red]{} \u202e<b>m</b>")
        self.config = self.folder / "run.yaml"
        self.config.write_text(
            f"dataset: jsonl\ndata: {self.data}\nsystem_settings: {{near: 0.0}}\nrounds: 1\nproposals: 1\n"
            f"tracking: {{traces: 4}}\nmodels:\n"
            f"  task: {{model: {name}, {reached}}}\n  embedding: {{model: {name}, {reached}}}\n"
        )
        self.said = well("run", self.config, "--home", self.home)
        self.run = RunFolder.find(self.home, "latest")

    @property
    def traces(self) -> list[Path]:
        """Those of the baseline's prompts, one a conversation."""
        return sorted(self.run.path.glob("traces/*/*.jsonl"))


PACKS = ["known", *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(3))]


@pytest.fixture(scope="module", params=PACKS)
def ran(
    request: pytest.FixtureRequest, server: ScriptedServer, store: Path, tmp_path_factory: pytest.TempPathFactory
) -> Ran:
    root = tmp_path_factory.mktemp("hostile")
    payloads = markup(root) if request.param == "known" else drawn(request.param, 40)
    return Ran(root, server, store, payloads)


def test_it_runs_and_leads_nowhere_out_of_the_home(ran: Ran, tried: Tried) -> None:
    tried("hostile data, run", len(ran.payloads))
    assert ran.run.summary().stopped == "all rounds done"
    assert not outside(ran.root)
    assert "MLflow did not record" not in ran.said


def test_the_model_is_sent_and_the_trace_keeps_every_word(ran: Ran, tried: Tried) -> None:
    tried("hostile data, kept", len(ran.payloads))
    sent = "\n".join(ran.model.sent)
    kept: dict[str, set[str]] = {}
    for path in ran.traces:
        loaded = load_trace(path)
        assert (loaded.problem, loaded.notes) == (None, ())
        for one in loaded.graph.variables.values():
            kept.setdefault(one.kind, set()).add(str(one.value))
    for one in ran.conversations:
        assert all(turn.spoken in sent and turn.spoken in kept["message"] for turn in one.turns()), one.id[:99]
        assert all(q.question in sent and q.question in kept["query"] for q in one.questions), one.id[:99]


def test_the_data_is_shown_as_it_is(ran: Ran, tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    tried("hostile data, data show", len(ran.payloads))
    monkeypatch.setenv("COLUMNS", "4000")
    for one in ran.conversations:
        path = ran.folder / "shown.jsonl"
        rest = [conversation(f"sound {n}", split) for n, split in enumerate(("validation", "test"))]
        write_conversations(path, [one.model_copy(update={"split": "train"}), *rest])
        shown = letters(well("data", "show", "--dataset", "jsonl", "--data", path))
        assert letters(one.questions[0].question[:2000]) in shown, one.id[:99]


def test_its_pages_are_lifeless(ran: Ran, tried: Tried) -> None:
    tried("hostile data, pages", len(ran.payloads))
    home = ("--home", ran.home)
    well("attribute", "latest", "--traces-of", "baseline", "--out", ran.folder / "said.jsonl", *home)
    report = ran.folder / "diagnosis"
    for ending in ("html", "md", "json"):
        well("diagnose", "latest", "--traces-of", "baseline", "--out", f"{report}.{ending}", *home)
    lifeless((ran.run.path / "report.html").read_text(), "report.html")
    lifeless(Path(f"{report}.html").read_text(), "diagnosis.html")
    lifeless(MarkdownIt("commonmark", {"html": True}).enable("table").render(Path(f"{report}.md").read_text()), "md")
    said = json.loads(Path(f"{report}.json").read_text())
    assert said["counts"]["failures"] >= len(ran.conversations)
    page, picture = ran.folder / "trace.html", ran.folder / "trace.svg"
    for path in ran.traces:
        well("trace", "show", path, "--html", page, "--svg", picture)
        lifeless(page.read_text(), path)
        lifeless(picture.read_text(), path)
        ElementTree.fromstring(picture.read_bytes())  # noqa: S314 - ours


def test_its_traces_are_looked_through_and_exchanged(ran: Ran, tried: Tried) -> None:
    tried("hostile data, traces", len(ran.payloads))
    for number, path in enumerate(ran.traces):
        well("trace", "stats", path)
        shown = letters(well("trace", "show", path))
        messages = [v for v in load_trace(path).graph.variables.values() if v.kind == "message"]
        assert letters(str(messages[0].value)[:12]) in shown
        well("trace", "search", path, "--", str(messages[0].value)[:40].split("\n")[0])
        well("trace", "slice", path, messages[0].id, "--forward")
        if number % 5:
            continue
        for format_ in FORMATS:
            there, back = ran.folder / f"{number}.{format_}", ran.folder / f"{number}.{format_}.jsonl"
            well("trace", "export", path, "--to", format_, "--out", there)
            well("trace", "import", there, "--from", format_, "--out", back)
            again = [v.value for v in load_trace(back).graph.variables.values() if v.name == messages[0].name]
            assert messages[0].value in again


def test_its_prompts_are_exported_and_its_runs_listed(ran: Ran, tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    tried("hostile data, lists")
    monkeypatch.setenv("COLUMNS", "4000")
    well("export", "latest", "--home", ran.home, "--to", "text", "--out", ran.folder / "tuned")
    listed = well("runs", "--home", ran.home) + well("compare", "latest", "latest", "--home", ran.home)
    assert "[/INST]" in listed
    assert not outside(ran.root)


def test_what_looks_like_a_secret_is_sent_and_kept_for_nobody_to_see(
    server: ScriptedServer, store: Path, tried: Tried, tmp_path: Path
) -> None:
    tried("secrets in the data", len(SECRETS))
    ran = Ran(tmp_path, server, store, SECRETS)
    sent = "\n".join(ran.model.sent)
    for one in ran.conversations:
        assert all(turn.spoken in sent for turn in one.turns()), one.id
    looked_at = [ran.run.path, *(ran.home / name for name in ("mlflow.db", "artifacts"))]
    files = [path for place in looked_at for path in ([place] if place.is_file() else place.rglob("*"))]
    for path in files:
        data = path.read_bytes() if path.is_file() else b""
        assert not [word for word in HIDDEN if word.encode() in data], path
        assert not [word for word in HIDDEN if word in path.name], path


@pytest.mark.parametrize(
    "text", ["half \\ud83d", "half \\udfff of", "\\udc00\\ud800"], ids=["first half", "second half", "turned round"]
)
def test_what_no_text_can_hold_is_refused_by_its_line(tried: Tried, tmp_path: Path, text: str) -> None:
    tried("halves of surrogate pairs in the data")
    path = tmp_path / "data.jsonl"
    write_conversations(path, [conversation(name, "train") for name in ("sound", "PLACE")])
    path.write_text(path.read_text().replace("PLACE", text))
    said = memtune("data", "show", "--dataset", "jsonl", "--data", path)
    well_said(said)
    assert said.code == 2
    assert f"{path}:2" in said.last


def test_equal_ids_are_refused_or_kept_apart(tried: Tried, tmp_path: Path) -> None:
    tried("equal question ids in two conversations")
    rows = [conversation(f"c{n}", split) for n, split in enumerate(("train", "validation", "test"))]
    equal = {"questions": rows[0].questions, "sessions": rows[0].sessions}
    path = tmp_path / "data.jsonl"
    write_conversations(path, [one.model_copy(update=equal) for one in rows])
    said = memtune("data", "show", "--dataset", "jsonl", "--data", path)
    well_said(said)
    assert said.code == 0 or "c00" in said.last


def test_an_id_of_any_length_is_told_in_a_line(tried: Tried, tmp_path: Path) -> None:
    tried("error that quotes the data")
    path = tmp_path / "data.jsonl"
    write_conversations(path, [conversation("long " * 50_000, split) for split in ("train", "validation", "test")])
    said = memtune("data", "show", "--dataset", "jsonl", "--data", path)
    well_said(said)
    assert said.code == 2
    assert f"{path}:2" in said.last
