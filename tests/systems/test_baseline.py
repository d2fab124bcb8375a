"""A system starts from the prompts that it is given, and stays the system that it is."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from experiments.systems.building_blocks.recall import Retrieval
from experiments.systems.mem0.system import Mem0
from experiments.systems.rag import Rag
from tracing.errors import ContractError
from tracing.systems.baseline import with_baseline
from tracing.systems.description import describe
from tracing.systems.protocol import HoldsEntries, MemorySystem, RerunsOperations


class _Own(Rag):
    """A system whose prompts are computed, and which has slots."""

    __slots__ = ()
    name = "own"

    @property
    def prompts(self):  # type: ignore[no-untyped-def, override]
        return Rag.prompts


@dataclass(frozen=True)
class _Frozen(Rag):
    """A system that refuses assignments."""

    name = "frozen"
    chunk_tokens: int = 200
    overlap: int = 0
    top_k: int = 2
    retrieval: Retrieval = "dense"
    rerank: int = 0


@pytest.mark.parametrize("system", [Rag(top_k=3), _Own(), _Frozen()])
def test_only_the_seeds_change(system: Rag) -> None:
    text = "Known: {context}. Asked: {question}."
    seeded = with_baseline(system, {"answer": text})
    assert seeded.prompts["answer"].text == text
    assert system.prompts["answer"].text != text
    assert describe(seeded) == describe(system)
    assert isinstance(seeded, MemorySystem)
    assert isinstance(seeded, HoldsEntries)
    assert isinstance(seeded, RerunsOperations)
    assert seeded.prompts["answer"].alternatives == (system.prompts["answer"].text,)
    assert with_baseline(system, {"answer": system.prompts["answer"].text}).prompts["answer"].alternatives == ()
    assert with_baseline(seeded, {"answer": text + "!"}).prompts["answer"].text == text + "!"


def test_prompts_that_an_object_has_itself_are_replaced() -> None:
    mem0 = Mem0()
    mem0.prompts = dict(mem0.prompts)
    texts = {name: spec.text + "\nMind it." for name, spec in mem0.prompts.items()}
    assert {name: spec.text for name, spec in with_baseline(mem0, texts).prompts.items()} == texts


def test_a_longer_seed_has_room_for_its_rewrites() -> None:
    seeded = with_baseline(Rag(), {"answer": "x" * 8000 + "{context}{question}"})
    assert seeded.prompts["answer"].contract.max_chars > 16_000


def test_a_word_that_a_seed_spells_otherwise_is_kept_as_it_spells_it() -> None:
    texts = {name: spec.text for name, spec in Mem0().prompts.items()}
    seeded = with_baseline(Mem0(), {**texts, "extract": 'In json: {{"facts": []}}'})
    contract = seeded.prompts["extract"].contract
    assert contract.violations('{{"facts": []}} as json') == []
    assert contract.violations('{{"facts": []}}') == ["the marker 'json' is missing"]
    with pytest.raises(ContractError, match="the marker '\"facts\"' is missing"):
        with_baseline(Mem0(), {**texts, "extract": 'In JSON: {{"FACTS": []}}'})


def test_a_seed_that_breaks_its_contract_is_refused() -> None:
    with pytest.raises(ContractError, match=r"answer: the placeholder \{question\} is missing"):
        with_baseline(Rag(), {"answer": "{context}"})
    with pytest.raises(ContractError, match="answer: missing"):
        with_baseline(Rag(), {})
    with pytest.raises(ContractError, match="extract: no such prompt"):
        with_baseline(Rag(), {"answer": "{context} {question}", "extract": "x"})
