"""`memtune data generate`: from conversations alone to a data set, with a model that knows what was written of them."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of
from traced_runs import conversation, record

import memtune
from attribution.text.tokens import contains
from benchmarks.generating.scripted_author import ScriptedAuthor
from experiments.command import main
from experiments.data.datasets import sample
from experiments.data.generating.chats import Chats
from experiments.data.generating.complaints import objects_to_reply
from experiments.data.loaders import load_sealed
from experiments.runs.config_file import load_config
from tracing.errors import DataError
from tracing.systems.conversations import Conversation, Question, read_conversations, write_conversations

WRITTEN = sample(None)[:12]


def bare(conversations: Sequence[Conversation]) -> list[Conversation]:
    return [
        conversation.model_copy(update={"questions": (), "facts": (), "split": None}) for conversation in conversations
    ]


@pytest.fixture
def author(scripted_server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    """Conversations without a question in `chats.jsonl`, and a server that knows the written ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_conversations(tmp_path / "chats.jsonl", bare(WRITTEN))
    knowing = ScriptedAuthor(WRITTEN)
    scripted_server.script = lambda body: knowing(body)
    return scripted_server


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def generate(author: ScriptedServer, *arguments: str) -> int:
    return run("data", "generate", *arguments, "--base-url", author.base_url, "--model", "strong")


def questions_in(file: str) -> list[Question]:
    return [question for conversation in read_conversations(Path(file)) for question in conversation.questions]


def test_conversations_alone_become_a_data_set_that_passes_validate_and_audit(
    author: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(author, "chats.jsonl", "--out", "questions.jsonl") == 0
    said = capsys.readouterr()
    assert "cost: at most" in said.err
    assert "dropped: the author had nothing to ask" in said.out
    assert "confirm: memtune data review questions.jsonl" in said.out
    questions = questions_in("questions.jsonl")
    written = {question.question: question for one in WRITTEN for question in one.questions}
    kept = [question for question in questions if question.kind != "never_said"]
    assert len(kept) > len(WRITTEN)
    assert {question.source for question in questions} == {"generated"}
    assert {question.kind for question in questions} >= {"fact", "change", "taken_back", "never_said"}
    for question in kept:
        original = written[question.question]
        assert question.evidence[-1] == original.evidence[-1]
        assert question.unanswerable == original.unanswerable
        assert question.unanswerable or contains(question.answers[0], original.answers[0])
    assert run("data", "validate", "questions.jsonl") == 0
    assert run("data", "audit", "--gold", "--dataset", "jsonl", "--data", "questions.jsonl") == 0
    assert f"0 of {len(questions)} gold answers are suspicious" in capsys.readouterr().out


def test_nothing_is_sent_but_to_the_author(
    author: ScriptedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    contacted: set[tuple[str, int]] = set()
    connect = socket.socket.connect

    def noted(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            contacted.add(address[:2])
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", noted)
    other = ScriptedServer()
    models = "".join(
        f"  {role}: {{model: m, base_url: '{(author if role == 'proposer' else other).base_url}'}}\n"
        for role in ("task", "proposer", "judge", "embedding")
    )
    Path("author.yaml").write_text(f"models:\n{models}")
    try:
        assert run("data", "generate", "chats.jsonl", "author.yaml", "--out", "questions.jsonl") == 0
    finally:
        other.close()
    assert author.asked > 50
    assert other.count == 0
    port = int(author.base_url.rpartition(":")[2].removesuffix("/v1"))
    assert contacted == {("127.0.0.1", port)}


def test_a_pass_that_a_budget_stopped_goes_on_and_ends_as_one_that_was_not(
    author: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(author, "chats.jsonl", "--out", "whole.jsonl", "--home", "first") == 0
    calls = author.asked
    capsys.readouterr()
    assert generate(author, "chats.jsonl", "--out", "parts.jsonl", "--home", "second", "--budget-calls", "40") == 0
    assert "stopped: " in capsys.readouterr().out
    assert author.asked <= calls + 40
    assert len(questions_in("parts.jsonl")) < len(questions_in("whole.jsonl"))
    # What was cut off in the middle of a line by a kill is done again.
    progress = Path("parts.jsonl.progress")
    progress.write_text(progress.read_text() + '{"key": "half')
    assert generate(author, "chats.jsonl", "--out", "parts.jsonl", "--home", "second") == 0
    assert author.asked == 2 * calls
    assert Path("parts.jsonl").read_text() == Path("whole.jsonl").read_text()
    assert not progress.exists()


def test_an_author_that_fails_leaves_what_is_done(author: ScriptedServer, capsys: pytest.CaptureFixture[str]) -> None:
    knowing, answered = author.script, list[str]()

    def failing(body: dict[str, Any]) -> Reply | str:
        answered.append("")
        return knowing(body) if len(answered) < 60 else Reply(status=403)

    author.script = failing
    assert generate(author, "chats.jsonl", "--out", "questions.jsonl") == 2
    assert "the sessions that are done are kept; the same command goes on" in capsys.readouterr().err
    assert not Path("questions.jsonl").exists()
    assert Path("questions.jsonl.progress").read_text().count("\n") > 3
    author.script = knowing
    assert generate(author, "chats.jsonl", "--out", "questions.jsonl") == 0
    assert questions_in("questions.jsonl")


def test_a_dry_run_tells_the_most_it_can_cost_and_asks_nobody(
    author: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(author, "chats.jsonl", "--out", "questions.jsonl", "--dry-run") == 0
    assert author.count == 0
    said = capsys.readouterr().out
    most = int(said.partition("at most ")[2].partition(" calls")[0].replace(",", ""))
    assert generate(author, "chats.jsonl", "--out", "questions.jsonl") == 0
    assert 0 < author.asked <= most


def test_a_data_set_that_is_there_is_not_overwritten(
    author: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.jsonl").write_text("mine")
    assert generate(author, "chats.jsonl", "--out", "mine.jsonl") == 2
    assert "mine.jsonl: is there already; give --out another file, or remove it" in capsys.readouterr().err
    assert generate(author, "chats.jsonl", "--out", "nowhere/mine.jsonl") == 2
    assert generate(author, "chats.jsonl", "--out", "new.jsonl", "--kinds", "facts") == 2
    assert "there is no 'facts'; did you mean 'fact'?" in capsys.readouterr().err
    assert author.count == 0


def test_python_programs_generate_too(author: ScriptedServer) -> None:
    generated = memtune.generate(
        bare(WRITTEN[:3]), "questions.jsonl", model=f"{author.base_url}#strong", kinds=["fact"], per_session=2
    )
    assert set(generated.kept) == {"fact"}
    assert generated.drafts["fact"] <= 2 * generated.sessions
    assert generated.kept.total() + generated.dropped.total() == generated.drafts.total()
    assert generated.conversations == read_conversations(Path("questions.jsonl"))


CHAT = [
    ("user", "I moved from Oslo to Bergen in May, and it rains a lot."),
    ("assistant", "Bergen has its charms."),
    ("user", "Where do I live?"),
    ("assistant", "You live in Oslo."),
    ("user", "No, that's wrong. I already told you."),
]


def test_complaints_become_rows_with_the_reply_that_they_object_to(author: ScriptedServer) -> None:
    sessions = [
        {"id": f"s{at}", "turns": [{"id": f"s{at}:{n}", "speaker": s, "text": x} for n, (s, x) in enumerate(part, 1)]}
        for at, part in enumerate((CHAT[:2], CHAT[2:]), start=1)
    ]
    chat = {"id": "chat", "speakers": ["user", "assistant"], "sessions": sessions}

    def script(body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        if "Ask about: " in str(body["messages"][-1]["content"]):
            return "Nothing."
        return "Bergen" if "moved from Oslo to Bergen" in prompt else "unknown"

    author.script = script
    generated = memtune.generate(
        [Conversation.model_validate(chat)], "questions.jsonl", model=f"{author.base_url}#strong"
    )
    (row,) = generated.conversations[0].questions
    assert (row.question, row.answers, row.objected) == ("Where do I live?", ("Bergen",), "You live in Oslo.")
    assert (row.kind, row.evidence, row.after_session, row.source) == ("complaint", ("s1:1",), "s1", "generated")


def test_conversations_without_questions_offer_the_command(
    author: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", "--data", "chats.jsonl", "--dry-run") == 2
    offered = "memtune data generate chats.jsonl --dataset jsonl --out questions.jsonl"
    assert capsys.readouterr().err.rstrip().endswith(offered)
    assert run("data", "validate", "chats.jsonl") == 0
    assert offered in capsys.readouterr().err


def test_no_generated_question_is_in_the_test_until_somebody_confirmed_it(
    author: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate(author, "chats.jsonl", "--out", "questions.jsonl", "--kinds", "fact") == 0
    assert run("run", "--data", "questions.jsonl", "--dry-run") == 2
    assert "confirm some first: memtune data review" in capsys.readouterr().err
    confirmed = [
        conversation.model_copy(
            update={"questions": tuple(q.model_copy(update={"confirmed_by": ("ana",)}) for q in conversation.questions)}
        )
        for conversation in read_conversations(Path("questions.jsonl"))
    ]
    write_conversations(Path("confirmed.jsonl"), confirmed)
    dry = ("--dry-run", "--base-url", author.base_url, "--model", "m", "--system", "long-context")
    assert run("run", "--data", "confirmed.jsonl", *dry) == 0
    assert "nobody has confirmed" not in capsys.readouterr().out
    write_conversations(Path("some.jsonl"), [*confirmed[:6], *read_conversations(Path("questions.jsonl"))[6:]])
    assert run("run", "--data", "some.jsonl", *dry) == 0
    said = capsys.readouterr().out
    assert "generated questions of the test that nobody has confirmed left out" in said
    assert "questions (100%) were generated, " in said
    sealed = [
        conversation.model_copy(update={"split": "sealed"})
        for conversation in read_conversations(Path("questions.jsonl"))
    ]
    write_conversations(Path("sealed.jsonl"), sealed)
    with pytest.raises(DataError, match="its sealed questions were generated and nobody has confirmed them"):
        load_sealed(load_config(None, overrides={"dataset": "jsonl", "data": "sealed.jsonl"}))


def test_a_conversation_keeps_its_written_questions(author: ScriptedServer) -> None:
    generated = memtune.generate(WRITTEN[:2], "questions.jsonl", model=f"{author.base_url}#strong")
    for before, after in zip(WRITTEN, generated.conversations, strict=False):
        assert after.questions[: len(before.questions)] == before.questions
    assert "another question asks the same" in generated.dropped


def test_complaints_about_answers_in_traces_become_rows(author: ScriptedServer) -> None:
    traces = Path("traces")
    for name in ("one", "two"):
        record(traces / f"{name}.jsonl", conversation(name))
    log = traces / "complaints.jsonl"
    rows = [
        {"question": "Where did Mara move to?", "trace": "one"},
        {"question": "What food does Mara's tortoise come out for?", "answers": ["radicchio"], "trace": "two"},
    ]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    author.script = lambda body: "Oslo" if "I moved to Oslo" in prompt_of(body) else "unknown"
    generated = memtune.generate(traces, "questions.jsonl", complaints=log, model=f"{author.base_url}#strong")
    kept = {conversation.id: conversation.questions for conversation in generated.conversations}
    ((moved,), (food,)) = kept["one"], kept["two"]
    assert (moved.answers, moved.objected, moved.evidence) == (("Oslo",), "Bergen", ("D1:2",))
    assert (food.answers, food.evidence, food.kind) == (("radicchio",), ("D1:1",), "complaint")


def test_a_log_of_complaints_needs_traces(author: ScriptedServer) -> None:
    log = Path("log.jsonl")
    log.write_text(json.dumps({"question": "Where?"}) + "\n")
    with pytest.raises(DataError, match=r"--complaints log\.jsonl: is about answers in traces"):
        memtune.generate("chats.jsonl", "questions.jsonl", complaints=log)
    assert Chats(()).complaints == {}


OBJECTIONS = """Nope, that is incorrect.
But I already mentioned that I'm allergic.
Sorry, this isn't right.
You are mixing that up with my brother.
I told you yesterday, it's on Monday.
Have you forgotten?
It's wrong, she is called Ida.
That's outdated, we moved.
Nein, das war falsch.
Das hatte ich dir doch schon gesagt: Dienstag.
Ich habe dir das bereits erklärt.
Du verwechselst mich mit Paul.
No, eso es incorrecto.
Ya te lo había dicho.
Te has equivocado de fecha.
Eso ya no es así.
Mais c'est faux.
Je te l'avais déjà dit.
Vous vous trompez.
Non, ce n'est pas exact."""
OTHER_TURNS = """That's a good one.
I told him that he is wrong.
It is true that I like tea.
My answer was wrong in the quiz.
He already told me about the party.
I mentioned your name to the doctor.
You are right about that.
Please don't forget my birthday.
We got lost and took the wrong turn.
That's not bad at all!
Das war ein schöner Tag.
Ich habe ihm das schon gesagt.
Das ist nicht so teuer wie gedacht.
Du hast recht.
Eso es lo mejor.
Ya le dije a mi madre que sí.
No es lo mismo sin ti.
C'est pas mal du tout.
Je lui ai déjà dit oui.
C'est ce que je pensais."""


def test_complaints_are_told_from_other_turns_in_four_languages() -> None:
    assert [text for text in OBJECTIONS.splitlines() if not objects_to_reply(text)] == []
    assert [text for text in OTHER_TURNS.splitlines() if objects_to_reply(text)] == []
