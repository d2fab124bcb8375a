"""LangMem's instructions, and the proof that its memory manager sends them."""

from __future__ import annotations

from pathlib import Path

from experiments.systems.exporting.arguments import Arguments
from experiments.systems.exporting.places import Place
from experiments.systems.exporting.proving import proven_in
from experiments.systems.worker.environment import Environment


class LangmemInstructions(Arguments):
    """The arguments of `create_memory_manager`, whose tools set the form of the reply."""

    environment = Environment("langmem@0.0.30", f"{__name__}:LangmemInstructions", ("langmem==0.0.30",))
    library = proven_in(environment, "langmem", "0.0.30")
    proof, file = Path(__file__).with_name("proof.py"), "langmem.json"
    places = (Place("instructions", "extract"),)
