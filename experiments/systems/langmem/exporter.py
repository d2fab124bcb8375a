"""LangMem's instructions, and the proof that its memory manager sends them."""

from __future__ import annotations

from pathlib import Path

from experiments.systems.exporting.arguments import Arguments
from experiments.systems.exporting.places import Place
from experiments.systems.exporting.proving import Library
from experiments.systems.worker.environment import Environment

LANGMEM = Library(
    "langmem", ("0.0.30",), Environment("langmem@0.0.30", f"{__name__}:LangmemInstructions", ("langmem==0.0.30",))
)


class LangmemInstructions(Arguments):
    """The arguments of `create_memory_manager`, whose tools set the form of the reply."""

    library, proof, file = LANGMEM, Path(__file__).with_name("proof.py"), "langmem.json"
    environment = LANGMEM.environment
    places = (Place("instructions", "extract"),)
