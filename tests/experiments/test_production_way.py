"""The whole way of docs/production.md: a live Mem0 whose users complain, and in the end its next request is another."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from data_files import written
from mem0_model import Mem0Model, decide
from memtune_command import MemtuneCommand
from scripted_server import ScriptedServer, prompt_of

from experiments.attributing.attributions import Attributions
from experiments.runs.folder import RunFolder
from experiments.systems.mem0 import library
from tracing.systems.conversations import Conversation, read_conversations, write_conversations

NAMES = [
    "Ines",
    "Olga",
    "Petra",
    "Rosa",
    "Tilda",
    "Vera",
    "Wanda",
    "Yara",
    "Zita",
    "Ada",
    "Berit",
    "Clara",
    "Dora",
    "Edda",
    "Frida",
]
PLACES = [
    "harbour office",
    "old brewery",
    "glass foundry",
    "tram depot",
    "salt mill",
    "observatory",
    "paper museum",
    "rope yard",
    "ice factory",
    "bell tower",
    "seed bank",
    "clock school",
    "ferry terminal",
    "tea auction",
    "map archive",
]
PASSING = ("in passing", "Small remarks", "every concrete detail", "exact names", "Copy the sentences", "each turn")
"""Of the instructions that people write: those that ask for what is said beside the matter. The prompt has none."""
PROMPT = 'List what the user likes. Reply as JSON: {"facts": ["...", "..."]}'
_WORKS = re.compile(r"sister (\w+) works at the ([a-z ]+)")


class Model(Mem0Model):
    """Keeps of a chat what its prompt asks for, and reads what it is shown, as Mem0's model and as the author."""

    def __call__(self, body: dict[str, Any]) -> Any:
        prompt = prompt_of(body)
        asked = re.search(r"Question: .*sister (\w+) work", prompt)
        if asked is not None:
            return next((place for name, place in _WORKS.findall(prompt) if name == asked[1]), "unknown")
        if "write test questions" in prompt:
            return '{"question": "", "answer": ""}'
        everything = any(map(body["messages"][0]["content"].__contains__, PASSING))
        keeping = Mem0Model(extract=list if everything else _likings, update=self.update)
        return keeping(body)


def _likings(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if " like " in line]


def opened(server: ScriptedServer, prompts: dict[str, str]) -> Any:
    """The Mem0 of the program, with its memories on disk."""
    settings = {"api_key": "none", "openai_base_url": server.base_url}
    embedder = {**settings, "model": "e", "embedding_dims": 64}
    store = {"path": "qdrant", "collection_name": "live", "embedding_model_dims": 64, "on_disk": True}
    return library.load().Memory.from_config(
        {
            "llm": {"provider": "openai", "config": {**settings, "model": "m"}},
            "embedder": {"provider": "openai", "config": embedder},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": "history.db",
            **prompts,
        }
    )


def chat(memory: Any, handle: Callable[..., str]) -> None:
    """Fifteen users tell something on one day, and ask for it on another."""

    def reply_to(message: str, memories: list[str]) -> str:
        lines = "".join(f"- {text}\n" for text in memories)
        asked = [{"role": "user", "content": f"{lines}Question: {message}"}]
        reply = memory.llm.client.chat.completions.create(model="m", messages=asked)
        return str(reply.choices[0].message.content)

    for number, (name, place) in enumerate(zip(NAMES, PLACES, strict=True)):
        user = f"user{number}"
        handle(memory, user, "monday", f"I like the songs of {name}.", lambda message, memories: "Nice.")
        handle(memory, user, "monday", f"My sister {name} works at the {place}.", lambda message, memories: "I see.")
        handle(memory, user, "friday", f"Where does my sister {name} work?", reply_to)


def confirmed(conversation: Conversation) -> Conversation:
    questions = [question.model_copy(update={"confirmed_by": ("ana",)}) for question in conversation.questions]
    return conversation.model_copy(update={"questions": tuple(questions)})


@pytest.mark.slow
def test_complaints_of_a_live_mem0_end_in_a_prompt_that_it_sends(
    memtune: MemtuneCommand, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = Model(update=decide("ADD"))
    used = {"custom_fact_extraction_prompt": PROMPT}
    Path("live.json").write_text(json.dumps(used))

    # The program records itself as on the page, and keeps what its users complain about.
    page = (Path(__file__).parents[2] / "docs" / "production.md").read_text()
    program = runpy.run_path(str(written(Path("program.py"), re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])))
    memory = opened(scripted_server, used)
    program["start"](memory)
    chat(memory, program["handle"])
    library.close(memory)
    assert not any("user14" in path.read_text() for path in Path("traces").rglob("*.jsonl"))
    rows = [
        {
            "time": datetime.now(UTC).isoformat(),
            "user": program["RULES"].named("user", f"user{number}"),
            "question": f"Where does my sister {name} work?",
        }
        for number, name in enumerate(NAMES)
    ]
    written(Path("log.jsonl"), "".join(json.dumps(row) + "\n" for row in rows))

    # Every night
    code, out, err = memtune("attribute", "traces", "--complaints", "log.jsonl", "--since", "yesterday")
    assert code == 0, err
    assert "15 to report" in out
    assert "15 × ExtractionError at extract_facts" in out
    cases = Attributions.read(Path("complaints.jsonl")).cases.values()
    assert [case.main.operation if case.main else None for case in cases] == ["extract_facts"] * 15

    # A data set, which a person confirms
    generate = ("data", "generate", "traces", "--complaints", "log.jsonl", "--out", "questions.jsonl")
    code, out, err = memtune(*generate, "--base-url", scripted_server.base_url, "--model", "m")
    assert code == 0, err
    conversations = read_conversations(Path("questions.jsonl"))
    questions = [question for conversation in conversations for question in conversation.questions]
    assert sorted(question.answers[0] for question in questions) == sorted(PLACES)
    assert {question.source for question in questions} == {"generated"}
    write_conversations(Path("questions.jsonl"), map(confirmed, conversations))

    # A run, from the prompt that is in use
    code, out, err = memtune("import-prompts", "mem0", "--from", "live.json", "--out", "start")
    assert code == 0, err
    memtune.configure(
        "tune.yaml",
        "system: mem0\ndataset: jsonl\ndata: questions.jsonl\nrounds: 1\nprompts: {start: start, tune: [extract]}\n",
    )
    code, out, err = memtune("run", "tune.yaml", "--out", "run")
    assert code == 0, err
    summary = RunFolder(Path("run")).summary()
    assert summary.rounds[1].edited == ("extract",)
    assert (summary.baseline["test"].score, summary.verdict, summary.delta) == (0.0, "improved", 1.0)

    # Its prompt in the same Mem0
    code, out, err = memtune("export", "run", "--to", "mem0@1.0", "--out", "tuned", "--verify")
    assert code == 0, err
    tuned = json.loads(Path("tuned/mem0.json").read_text())
    assert any(map(tuned["custom_fact_extraction_prompt"].__contains__, PASSING))
    memory = opened(scripted_server, {**used, **tuned})
    asked_before = scripted_server.count
    memory.add([{"role": "user", "content": "My sister Ines works at the fish market."}], user_id="user0")
    (request, *_) = scripted_server.requests[asked_before:]
    assert request["messages"][0]["content"] == tuned["custom_fact_extraction_prompt"]
    stored = [hit["memory"] for hit in memory.search("Where does my sister Ines work?", user_id="user0")["results"]]
    library.close(memory)
    assert "My sister Ines works at the fish market." in stored
    assert "I like the songs of Ines." in stored
