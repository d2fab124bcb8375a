"""Users' own data: tables, chat exports and traces with feedback become conversations, or are refused in one line."""

from __future__ import annotations

import csv
import json
from codecs import BOM_UTF8
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from data_files import (
    CITIES,
    openai_chats,
    openai_folder,
    otlp_folder,
    sharegpt,
    sharegpt_folder,
    tables,
    traces,
    written,
)

from experiments.data.data_check import dataset_name_of, problems_of_dataset
from experiments.data.dataset_reader import Reading
from experiments.data.datasets import conversations_of
from tracing.errors import DataError
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable
from tracing.systems.conversations import Conversation, read_conversations, write_conversations


def test_tables_become_conversations_with_facts_and_several_answers(tmp_path: Path) -> None:
    first, *_ = conversations_of("csv", tables(tmp_path))
    assert first.id == "c0"
    assert first.speakers == ("Ana", "Bo")
    assert [(one.id, one.time) for one in first.sessions] == [("D1", "2026-03-04 10:00"), ("D2", "")]
    assert [turn.id for turn in first.turns()] == ["D1:1", "D1:2", "t9"]
    assert next(first.turns()).text == "I moved to Oslo, at last."
    (asked,) = first.questions
    assert (asked.id, asked.answers) == ("c0-q1", ("Oslo", "in Oslo"))
    assert (asked.evidence, asked.fact) == (("D1:1",), "f1")


def test_a_column_without_a_name_is_told_by_its_place(tmp_path: Path) -> None:
    path = tables(tmp_path) / "turns.csv"
    path.write_text(",conversation,speaker,text\n0,c0,Ana,Hi.\n", "utf-8")  # as pandas writes its index
    assert f"{path}:1: column 1 has no name; give it one, or remove it" in problems_of_dataset("csv", tmp_path).problems


def test_a_table_of_questions_says_after_which_session_they_are_asked(tmp_path: Path) -> None:
    tables(tmp_path)
    path = tmp_path / "questions.csv"
    path.write_text("conversation,question,answers,evidence,after_session\nc0,Where?,Oslo,D1:1,D1\n", "utf-8")
    assert next(iter(conversations_of("csv", tmp_path))).questions[0].after_session == "D1"
    path.write_text(path.read_text("utf-8").replace(",D1\n", ",D5\n"), "utf-8")
    with pytest.raises(DataError, match=r"questions\.c0-q1\.after_session names the unknown session 'D5'"):
        conversations_of("csv", tmp_path)


def test_times_that_are_not_read_and_sessions_out_of_order_are_told(tmp_path: Path) -> None:
    folder = tables(tmp_path)
    table = "conversation,session,time,speaker,text\n"
    rows = [
        ("c0", "A", "4.3.2026"),
        ("c0", "B", "2026-03-04 10:00"),
        ("c1", "A", "2026-03-04"),
        ("c1", "B", "3 March 2026"),
    ]
    (folder / "turns.csv").write_text(table + "".join(f"{','.join(row)},Ana,Hi.\n" for row in rows), "utf-8")
    notes = problems_of_dataset("csv", folder).notes
    assert [note.partition(":")[0] for note in notes if "session" in note] == [
        "1 of 4 times of sessions are in a form that is not known, such as '4.3.2026'",
        "1 of 2 conversations (c1) have a session before one of an earlier time; sessions are read as they stand",
    ]


def test_questions_beside_json_lines_may_not_know_what_comes_later(tmp_path: Path) -> None:
    (one, *_) = conversations_of("csv", tables(tmp_path / "tables"))
    write_conversations(tmp_path / "mine.jsonl", [one])
    row = {"conversation": "c0", "id": "q9", "question": "?", "answers": ["a"], "evidence": ["t9"], "after_session": 1}
    written(tmp_path / "questions.jsonl", json.dumps(row) + "\n")
    with pytest.raises(DataError, match=r"questions\.q9\.evidence names the turn 't9', which comes after"):
        conversations_of("jsonl", tmp_path)


def test_tables_may_be_json_lines_too(tmp_path: Path) -> None:
    tables(tmp_path)
    (tmp_path / "questions.csv").unlink()
    row = {"conversation": "c0", "question": "Where?", "answers": ["a|b"], "evidence": ["D1:1"]}
    written(tmp_path / "questions.jsonl", json.dumps(row) + "\n")
    first, second, _ = conversations_of("csv", tmp_path)
    assert first.questions[0].answers == ("a|b",)
    assert second.questions == ()


@pytest.mark.parametrize(
    ("file", "before", "after", "problem"),
    [
        ("turns.csv", "speaker,text", "spaeker,text", "turns.csv:1: spaeker: unknown key; did you mean 'speaker'?"),
        ("turns.csv", "speaker,text", "speaker", "turns.csv:1: text: the column is missing; add it"),
        ("turns.csv", ",speaker,text", ",text,text", "turns.csv:1: text: the column is there twice"),
        ("turns.csv", "conversation,", "conversation;", "turns.csv:1: conversation;session: unknown key"),
        ("turns.csv", "t9", "D1:1", "turns.csv:4: turn: 'D1:1' is that of "),
        ("turns.csv", '"I moved to Oslo, at last."', "I moved to Oslo, at last.", "turns.csv:2: has 7 cells under 6"),
        ("turns.csv", '"I moved to Ulm, at last."', '"I moved', "turns.csv:10: not CSV (unexpected end of data)"),
        ("questions.csv", "\nc1,", "\nc9,", "questions.csv:3: conversation: 'c9' is not the id of a conversation"),
        ("questions.csv", "Jena | in Jena,D1:1", "Jena,D7:7", "questions.csv:3: evidence: 'D7:7' is not the id"),
        ("questions.csv", "Oslo | in Oslo", " | ", "questions.csv:2: answers: Tuple should have at least 1 item"),
        ("questions.csv", "Oslo | in Oslo", "", "questions.csv:2: answers: Field required"),
        ("questions.csv", ",f1,", ",f7,", "questions.csv:2: fact: 'f7' is not the id of a fact"),
        ("facts.csv", "c2,f1,D1:1", "c2,f1,D8:8", "facts.csv:4: turn: 'D8:8' is not the id of a turn"),
        ("facts.csv", "c2,f1", "c5,f1", "facts.csv:4: conversation: 'c5' is not in turns.csv"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_with_file_line_column_and_remedy(
    tmp_path: Path, file: str, before: str, after: str, problem: str
) -> None:
    path = tables(tmp_path) / file
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), "utf-8")
    with pytest.raises(DataError) as caught:
        conversations_of("csv", tmp_path)
    assert problem in str(caught.value)
    assert ";" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert any(problem in each for each in problems_of_dataset("csv", tmp_path).problems)


@pytest.mark.parametrize("sign", [";", "\t"])
def test_tables_of_spreadsheets_that_separate_otherwise_are_read(tmp_path: Path, sign: str) -> None:
    meant = conversations_of("csv", tables(tmp_path / "commas"))
    for path in tables(tmp_path / "others").glob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, *rows = csv.reader(file)
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file, delimiter=sign).writerows([[name.title() for name in header], *rows])
    assert conversations_of("csv", tmp_path / "others") == meant


def test_an_export_of_chatgpt_is_one_conversation_of_the_branches_last_shown(tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", openai_chats("Oslo"))
    (one,) = conversations_of("openai-chats", path)
    assert one.id == "conversations"
    assert [(each.id, each.time) for each in one.sessions] == [
        ("early", "2024-02-01 00:00"),
        ("late", "2024-03-05 16:00"),
    ]
    assert [(turn.id, turn.speaker, turn.text) for turn in one.sessions[0].turns] == [
        ("early:1", "user", "I moved to Oslo.\n[shares an image]"),
        ("early:2", "assistant", "Nice."),
    ]
    found = problems_of_dataset("openai-chats", path)
    assert found.problems == ()
    assert found.notes == (
        "1 hidden messages left out",
        "1 tool results left out",
        "2 messages of branches not shown last left out",
        "it has conversations and no question, which a run needs; write some (docs/data-format.md), or let a model "
        f"draft them (docs/generating.md): memtune data generate {path} --dataset openai-chats --out questions.jsonl",
    )


@pytest.mark.parametrize("form", ["array", "lines"])
def test_half_an_emoji_in_an_export_is_no_reason_to_refuse_it(tmp_path: Path, form: str) -> None:
    chats = openai_chats("Oslo \ud83d")  # as an export has it that cut an emoji in two
    text = json.dumps(chats) if form == "array" else "\n".join(map(json.dumps, chats))
    path = written(tmp_path / "conversations.json", text)
    assert dataset_name_of(path) == "openai-chats"
    (one,) = conversations_of("openai-chats", path)
    assert [turn.text for turn in one.sessions[0].turns] == ["I moved to Oslo \ufffd.\n[shares an image]", "Nice."]
    assert [turn.text for turn in one.sessions[1].turns] == ["Bye.", "Bye!"]


def test_what_was_spoken_in_a_chat_is_its_transcript(tmp_path: Path) -> None:
    chats = openai_chats("Oslo")
    spoken = {"content_type": "audio_transcription", "text": "Bye."}
    sounds = [{"content_type": f"{kind}_asset_pointer"} for kind in ("audio", "real_time_user_audio_video")]
    for name, parts in (("u", [spoken, *sounds]), ("a", sounds)):
        chats[0]["mapping"][name]["message"]["content"] = {"content_type": "multimodal_text", "parts": parts}
    (one,) = conversations_of("openai-chats", written(tmp_path / "conversations.json", chats))
    assert [turn.text for turn in one.sessions[1].turns] == ["Bye.", "[shares an audio]\n[shares an audio]"]


def test_exports_of_several_people_in_folders_get_their_questions_from_a_table(tmp_path: Path) -> None:
    found = conversations_of("openai-chats", openai_folder(tmp_path))
    assert [(one.id, one.questions[0].answers[0]) for one in found] == list(
        zip(("ann", "bo", "cy"), CITIES, strict=True)
    )
    # A large export comes in several files.
    split = openai_chats("Oslo")
    written(tmp_path / "ann" / "conversations.json", split[:1])
    written(tmp_path / "ann" / "conversations-001.json", split[1:])
    assert conversations_of("openai-chats", tmp_path) == found


def test_a_chat_that_leads_back_to_itself_ends(tmp_path: Path) -> None:
    chats = openai_chats("Oslo")
    chats[1]["mapping"]["root"]["parent"] = "end"
    path = written(tmp_path / "conversations.json", chats)
    with pytest.raises(DataError, match=r"conversations\.json: 1: mapping\.end\.parent: leads back to itself"):
        conversations_of("openai-chats", path)


@pytest.mark.parametrize("lines", [False, True], ids=["an array", "lines"])
def test_chats_of_sharegpt_are_read_from_an_array_or_lines(tmp_path: Path, lines: bool) -> None:
    text = "".join(json.dumps(row) + "\n" for row in sharegpt()) if lines else json.dumps(sharegpt())
    found = conversations_of("sharegpt", written(tmp_path / "chats.json", text))
    assert [one.id for one in found] == ["chat0", "chat1", "chat2"]
    assert [turn.spoken for turn in found[0].turns()] == ["user: I moved to Oslo.", "assistant: OK."]


def test_a_wrong_chat_is_named_by_its_place_or_line(tmp_path: Path) -> None:
    rows = sharegpt()
    del rows[1]["conversations"][0]["value"]
    array = written(tmp_path / "a.json", rows)
    with pytest.raises(DataError, match=r"a\.json: 1: conversations\.0\.value: Field required; the layout of ShareGPT"):
        conversations_of("sharegpt", array)
    lines = written(tmp_path / "b.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"b\.jsonl:2: conversations\.0\.value: Field required"):
        conversations_of("sharegpt", lines)
    twice = written(tmp_path / "c.json", [sharegpt()[0], sharegpt()[0]])
    with pytest.raises(DataError, match=r"c\.json: 1: id: 'chat0' is that of .*c\.json: 0 too"):
        conversations_of("sharegpt", twice)


def test_questions_beside_an_export_must_be_about_one_of_its_chats(tmp_path: Path) -> None:
    path = sharegpt_folder(tmp_path) / "questions.csv"
    path.write_text(path.read_text().replace("chat1", "chat7"))
    with pytest.raises(DataError, match=r"questions\.csv:3: conversation: 'chat7' is not the id of a conversation"):
        conversations_of("sharegpt", tmp_path)


def test_traces_with_feedback_become_questions_whose_truth_is_known(tmp_path: Path) -> None:
    reading = Reading()
    found = {one.id: one for one in conversations_of("traces", traces(tmp_path), reading)}
    assert sorted(found) == ["one", "three", "two"]
    assert [(q.question, q.answers) for q in found["one"].questions] == [
        ("Where did Mara move to?", ("Oslo",)),
        ("What does Ilya's gecko eat?", ("papaya",)),
    ]
    assert "Mara: My tortoise only comes out for radicchio." in [turn.spoken for turn in found["one"].turns()]
    assert reading.omissions["one"] == {"wrong answers without a correction": 1}


@pytest.mark.parametrize("within", [lambda: session("chat"), nullcontext])
def test_several_answers_of_one_session_or_of_none_are_questions_of_their_own(
    tmp_path: Path, within: Callable[[], AbstractContextManager[object]]
) -> None:
    asked = {"Where does Mara live?": "Bergen", "Who is Mara?": "a friend"}
    with trace(tmp_path / "t.jsonl"), within():
        variable("Mara: I live in Bergen.", name="m1", kind="message")
        for question, reply in asked.items():
            query = variable(question, name="query", kind="query")
            with operation("answer", kind="llm", inputs={"query": query}) as answer:
                answer.output("prediction", reply, kind="prediction")
    rows = [{"trace": "t", "question": one, "right": True} for one in asked]
    written(tmp_path / "feedback.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    (found,) = conversations_of("traces", tmp_path)
    assert {one.question: one.answers for one in found.questions} == {one: (reply,) for one, reply in asked.items()}
    assert len({one.id for one in found.questions}) == 2


def test_spans_of_other_tools_are_exchanges_and_what_was_judged_is_no_part_of_the_dialogue(tmp_path: Path) -> None:
    first, *_ = conversations_of("traces", otlp_folder(tmp_path))
    assert [turn.spoken for turn in first.turns()] == ["user: I moved to Oslo.", "assistant: Noted."]
    assert [session.id for session in first.sessions] == ["chat-1"]
    assert [(q.question, q.answers) for q in first.questions] == [("Where do I live?", ("Oslo",))]


def test_a_byte_order_mark_is_no_part_of_the_data(tmp_path: Path) -> None:
    """Some editors and spreadsheets on Windows write one."""
    chats = "".join(json.dumps(row) + "\n" for row in sharegpt())
    (tmp_path / "chats.jsonl").write_bytes(BOM_UTF8 + chats.encode())
    (tmp_path / "one.json").write_bytes(BOM_UTF8 + json.dumps(sharegpt()[0], indent=1).encode())
    lines = problems_of_dataset("sharegpt", tmp_path / "chats.jsonl")
    assert (lines.problems, lines.conversations) == ((), len(sharegpt()))
    assert problems_of_dataset("sharegpt", tmp_path / "one.json").problems == ()
    marked = [tmp_path / "own.jsonl", traces(tmp_path / "traces") / "feedback.jsonl"]
    write_conversations(marked[0], [*conversations_of("csv", tables(tmp_path / "tables"))])
    for path in marked:
        path.write_bytes(BOM_UTF8 + path.read_bytes())
    assert len(read_conversations(marked[0])) == len(CITIES)
    assert len(list(conversations_of("traces", marked[1].parent))) == 3


Change = Callable[[Path], object]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda at: (at / "feedback.csv").unlink(), ": has no feedback.csv or feedback.jsonl; write which answers"),
        (lambda at: written(at / "feedback.csv", "trace,rihgt\nt0,no\n"), ":1: rihgt: unknown key; did you mean"),
        (lambda at: written(at / "feedback.csv", "trace,right\nt0,maybe\n"), ":2: right: Input should be a valid b"),
        (lambda at: written(at / "feedback.csv", "trace,right\nt9,no\n"), ":2: trace: 't9' is not a trace in"),
        (lambda at: written(at / "feedback.csv", "trace,right\nt0,no\n"), ":2: question: 2 answers of the trace fit"),
        (
            lambda at: written(at / "feedback.csv", "trace,question,right\nt0,Who?,no\n"),
            ":2: question: the trace has no such answer; questions in it are: 'I moved to Oslo.'; 'Where do I live?'",
        ),
        (lambda at: written(at / "t0.json", '{"resourceSpans": 7}'), "t0.json: holds no OTLP spans"),
        (lambda at: written(at / "feedback.jsonl", ""), ": has feedback.csv and feedback.jsonl; keep one of them"),
    ],
)  # fmt: skip
def test_wrong_feedback_is_refused_with_file_line_column_and_remedy(
    tmp_path: Path, change: Change, problem: str
) -> None:
    change(otlp_folder(tmp_path))
    with pytest.raises(DataError) as caught:
        conversations_of("traces", tmp_path)
    assert problem in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_every_problem_of_a_jsonl_file_is_told_by_its_line(tmp_path: Path) -> None:
    turn = {"id": "t1", "speaker": "Ana", "text": "Hello."}
    rows = [
        Conversation.model_validate(
            {
                "id": f"c{n}",
                "speakers": ["Ana"],
                "sessions": [{"id": "D1", "turns": [turn]}],
                "questions": [{"id": f"q{n}", "question": "?", "answers": ["a"], "evidence": ["t1"]}],
            }
        )
        for n in range(5)
    ]
    path = tmp_path / "mine.jsonl"
    write_conversations(path, rows)
    lines = path.read_text().splitlines()
    lines[0] = lines[0].replace('"evidence"', '"evidnce"').replace('"speaker"', '"spaeker"')
    lines[1] = lines[1][:40]
    lines[3] = lines[3].replace('"c3"', '"c2"')
    path.write_text("\n".join(lines))
    found = problems_of_dataset("jsonl", path)
    assert [
        problem.removeprefix(str(path)).partition("; see")[0].partition(" at line")[0] for problem in found.problems
    ] == [
        ":1: sessions.0.turns.0.spaeker: unknown key; did you mean 'speaker'?",
        ":1: questions.0.evidnce: unknown key; did you mean 'evidence'?",
        ":1: sessions.0.turns.0.speaker: Field required",
        ":2: Invalid JSON: EOF while parsing an object",
        ":4: id: 'c2' is that of line 3 too; give each conversation its own id",
    ]
    assert found.conversations == 2
