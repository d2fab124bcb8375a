"""cognee's prompts as arguments of its functions, and the proof that it sends them."""

from __future__ import annotations

from pathlib import Path

from experiments.systems.exporting.arguments import Arguments
from experiments.systems.exporting.places import Place
from experiments.systems.exporting.proving import proven_in
from experiments.systems.worker.environment import Environment


class CogneePrompts(Arguments):
    """The arguments of `cognify` and `search`: system prompts, beside which cognee puts the data and its schema."""

    environment = Environment("cognee@1.6", f"{__name__}:CogneePrompts", ("cognee==1.6.5",))
    library = proven_in(environment, "cognee", "1.6.")
    proof, file = Path(__file__).with_name("proof.py"), "cognee.json"
    places = (Place("cognify.custom_prompt", "extract"), Place("search.system_prompt", "answer"))
