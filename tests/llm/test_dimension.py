"""Vectors of different lengths never meet: an endpoint that changes its model behind one name is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mem0_model import Mem0Model
from scripted_server import ScriptedServer

from experiments.systems.mem0.prompts import PROMPTS as MEM0_PROMPTS
from experiments.systems.mem0.system import Mem0
from experiments.systems.rag import Rag
from optimizer.evaluation.evaluator import Evaluator
from tracing.errors import CallFailedError, ModelError
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation

Open = Callable[..., ModelAccess]
TALK = Conversation.model_validate(
    {
        "id": "talk",
        "speakers": ["Ann"],
        "sessions": [{"id": "D1", "turns": [{"id": "D1:1", "speaker": "Ann", "text": "My cottage is green."}]}],
        "questions": [{"id": "q1", "question": "What colour is the cottage?", "answers": ["green"]}],
    }
)


def long(length: int) -> Callable[[str], list[float]]:
    return lambda text: [1.0, *[0.0] * (length - 1)]


def test_another_length_fails_with_the_remedy_and_is_not_kept(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.embed = long(3)
    access = open_access(retries=1)
    access.embedding.embed(["a", "b"])
    scripted_server.embed = long(2)
    with access.watch() as watch, pytest.raises(CallFailedError) as failure:
        access.embedding.embed(["b", "c"])
    said = str(failure.value)
    assert "2 numbers" in said
    assert "had 3" in said
    assert "name or base_url of its own" in said
    assert len(watch.failures) == 1
    scripted_server.embed = long(3)
    assert access.embedding.embed(["c"]) == [[1.0, 0.0, 0.0]]


def test_a_length_that_is_wrong_once_is_asked_for_again(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.embed = long(3)
    access = open_access()
    access.embedding.embed(["a"])
    lengths = [2, 3]
    scripted_server.embed = lambda text: long(lengths.pop(0))(text)
    assert access.embedding.embed(["b"]) == [[1.0, 0.0, 0.0]]
    assert open_access().embedding.identity == access.embedding.identity


def test_vectors_that_are_cached_tell_the_length_too(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.embed = long(3)
    open_access().embedding.embed(["a"])
    scripted_server.embed = long(2)
    with pytest.raises(CallFailedError, match="numbers"):
        open_access(retries=0).embedding.embed(["a", "b"])


def test_the_next_run_takes_the_new_model_for_another_and_either_can_come_back(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.embed = long(3)
    old = open_access(retries=0)
    old.embedding.embed(["a"])
    scripted_server.embed = long(2)
    with pytest.raises(CallFailedError):
        old.embedding.embed(["b"])
    new = open_access(retries=0)
    assert new.identities()["embedding"] != old.identities()["embedding"]
    assert new.embedding.embed(["a", "b"]) == [[1.0, 0.0], [1.0, 0.0]]
    scripted_server.embed = long(3)
    with pytest.raises(CallFailedError):
        new.embedding.embed(["c"])
    again = open_access(retries=0)
    assert again.identities() == old.identities()
    sent = len(scripted_server.embedding_requests)
    assert again.embedding.embed(["a"]) == [[1.0, 0.0, 0.0]]
    assert len(scripted_server.embedding_requests) == sent


def test_what_was_being_built_is_tainted_and_the_next_run_builds_it_anew(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.script = lambda body: "green"
    scripted_server.embed = long(3)

    def evaluated(access: ModelAccess) -> str | float:
        rag = Rag()
        evaluator = Evaluator(rag, access, "short_contains", snapshots=tmp_path / "memories")
        (outcome,) = evaluator.evaluate({name: spec.text for name, spec in rag.prompts.items()}, [TALK])
        return outcome.tainted or outcome.score

    asked = TALK.questions[0].question
    # The memory is built with one model, and the question meets another one.
    scripted_server.embed = lambda text: long(2 if text == asked else 3)(text)
    assert "another model answers under this name" in str(evaluated(open_access(retries=0)))
    scripted_server.embed = long(2)
    assert evaluated(open_access(retries=0)) == 1.0


def test_a_memory_that_outlived_the_cache_is_told_from_one_of_the_present_model(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.script = lambda body: "green"
    scripted_server.embed = long(3)
    rag, prompts = Rag(), {name: spec.text for name, spec in Rag.prompts.items()}

    def evaluated() -> str | None:
        access = open_access(cache=False, retries=0)
        (outcome,) = Evaluator(rag, access, "short_contains", snapshots=tmp_path / "memories").evaluate(prompts, [TALK])
        return outcome.tainted

    assert evaluated() is None
    scripted_server.embed = long(2)
    assert "memor" in str(evaluated())
    assert "3" in str(evaluated())


@pytest.mark.slow
def test_mem0_too_is_told_that_its_memory_is_of_another_model(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = Mem0Model()
    scripted_server.embed = long(3)
    mem0, prompts = Mem0(), {name: spec.text for name, spec in MEM0_PROMPTS.items()}
    memory = mem0.build(TALK, prompts, open_access(cache=False))
    scripted_server.embed = long(2)
    with pytest.raises(ModelError, match="another embedding model"):
        mem0.answer(memory, TALK.questions[0], prompts, open_access(cache=False))
