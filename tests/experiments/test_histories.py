"""A folder of traces as one history: stored in one, answered in another, and attributed over all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.command import cli
from tracing import answered, operation, session, trace, variable
from tracing.systems.texts import noted, recalled, variables_of


class Assistant:
    """Takes notes and answers from them; each call is a trace of its own, as processes on different days make them."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self.folder, self.name, self.notes = folder, name, list[tuple[str, str]]()
        folder.mkdir(exist_ok=True)

    def store(self, day: str, turns: Sequence[str], notes: Sequence[str]) -> None:
        with trace(self.folder / f"{self.name}{day}.jsonl", clock=lambda: next(CLOCK)), session("chat"):
            said = [noted(turn, name=f"user{at}", kind="message") for at, turn in enumerate(turns)]
            with operation("take_notes", kind="llm", inputs={"turns": variables_of(said)}) as op:
                for text in notes:
                    note = op.output("note", text, name=f"note{len(self.notes)}", kind="memory_entry")
                    self.notes.append((note.id, text))

    def answer(self, day: str, question: str, reply: str) -> None:
        with trace(self.folder / f"{self.name}{day}.jsonl", clock=lambda: next(CLOCK)):
            query = variable(question, name="question", kind="query")
            notes = recalled(note for note, _ in self.notes)
            with operation("find", kind="retrieval", inputs={"question": query, "notes": notes}) as op:
                context = [op.output("found", text, kind="context") for _, text in self.notes]
            with operation("answer", kind="llm", inputs={"question": query, "notes": context}) as op:
                op.output("prediction", reply, kind="prediction")


CLOCK = count(1.7e9)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assistant = Assistant(tmp_path / "traces")
    assistant.store("monday", ["Mara: My dog Rex is three.", "Mara: I like tea."], ["Mara's dog Rex is three."])
    assistant.store("tuesday", ["Mara: My sister Ines works at the harbour office."], [])
    assistant.answer("friday", "Where does Ines work?", "unknown")
    assistant.answer("saturday", "How old is Rex?", "four")
    assistant.store("sunday", ["Mara: Ines starts at the bakery."], ["Ines works at the bakery."])
    return assistant.folder


def attribute(*arguments: object, out: str = "out.jsonl") -> tuple[str, dict[str, object]]:
    result = CliRunner().invoke(cli, ["attribute", *map(str, arguments), "--out", out])
    lines = [json.loads(line) for line in Path(out).read_text().splitlines()]
    return result.output, lines[-1]


def test_a_fact_dropped_in_another_trace_is_found_there_though_nothing_refers_to_it(folder: Path) -> None:
    told, case = attribute(folder, "--question", "Where does Ines work?", "--right", "the harbour office")
    assert "blame: ExtractionError at take_notes" in told
    assert "tuesday/user0" in told
    assert case["trace"] == "traces/friday.jsonl"


def test_a_note_of_another_trace_that_was_read_and_not_used_is_the_answers_fault(folder: Path) -> None:
    told, _ = attribute(folder, "--question", "How old is Rex?", "--right", "three")
    assert "blame: ResponseError at answer" in told


def test_each_complaint_of_a_log_is_attributed_over_the_whole_history(folder: Path) -> None:
    log = folder.parent / "log.csv"
    log.write_text(
        "trace,question,answers\nfriday.jsonl,Where does Ines work?,the harbour office\n"
        "saturday.jsonl,How old is Rex?,three\n"
    )
    told, _ = attribute(folder, "--complaints", log)
    assert "1 × ExtractionError at take_notes" in told
    assert "1 × ResponseError at answer" in told


def test_a_trace_alone_says_what_it_lacks(folder: Path) -> None:
    told, case = attribute(folder / "friday.jsonl", "--question", "Where does Ines work?", "--right", "the harbour")
    assert "reads 1 variables that another trace recorded" in told
    assert "the folder of all" in told
    assert case["decisive"] == []


def test_a_question_that_several_traces_answer_is_asked_back(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["attribute", str(folder), "--question", "Who is Ben?", "--out", "x.jsonl"])
    assert "0 of 5 traces have an answer to 'Who is Ben?'" in str(result.exception)


def test_histories_of_two_users_in_one_folder_stay_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, town in (("ann-", "Oslo"), ("bob-", "Rome")):
        assistant = Assistant(tmp_path / "traces", name)
        assistant.store("monday", [f"Me: I live in {town}."], ["The user lives somewhere."])
        assistant.answer("friday", f"Where do I live, {name}?", "unknown")
    for name, town in (("ann-", "Oslo"), ("bob-", "Rome")):
        told, _ = attribute(tmp_path / "traces", "--question", f"Where do I live, {name}?", "--right", town, out=name)
        assert "blame: ExtractionError at take_notes" in told
        told, _ = attribute(
            tmp_path / "traces", "--question", f"Where do I live, {name}?", "--right", "Lima", out=f"{name}2"
        )
        assert "blame: ExtractionError" not in told


def test_an_entry_of_a_library_is_known_by_its_key_and_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder, key, clock = tmp_path / "traces", "0b0e8a3c-2f41-4d7a-9a55-6f1c2d3e4f50", lambda: next(CLOCK)
    with trace(f"{folder}/", prefix="monday-", clock=clock):
        texts = "Mara: I have a dog.", "Mara: The dog is called Rex."
        said = [noted(text, name=text, kind="message").variable for text in texts]
        with operation("extract_facts", kind="llm", inputs={"messages": said}) as op:
            fact = op.output("facts", "Mara has a dog.", kind="fact")
        with operation("store", inputs={"fact": fact}) as op:
            op.output("entry", "Mara has a dog.", name=key, kind="memory_entry")
    with trace(f"{folder}/", prefix="friday-", clock=clock):
        entry = variable("Mara has a dog.", name=key, kind="memory_entry")
        query = variable("What is the dog called?", name="query", kind="query")
        with operation("retrieve", kind="retrieval", inputs={"query": query, "entries": [entry]}) as op:
            op.output("context", "Mara has a dog.", name=key, kind="context", entry=entry.id)
        answered("What is the dog called?", "unknown")
    told, _ = attribute(folder, "--question", "What is the dog called?", "--right", "Rex")
    assert "blame: ExtractionError at extract_facts" in told


def test_the_report_shows_what_is_blamed_in_another_trace(folder: Path) -> None:
    attribute(folder, "--question", "Where does Ines work?", "--right", "the harbour office")
    result = CliRunner().invoke(cli, ["diagnose", "out.jsonl"])
    assert result.exit_code == 0
    assert "My sister Ines works at the harbour office." in Path("diagnosis.html").read_text()
