"""The program that docs/tutorial.md shows, and a model that answers it as its own model did."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from experiments.data.loaders import load_dataset
from experiments.runs.config import RunConfig

DOCS = Path(__file__).resolve().parents[2] / "docs"
TUTORIAL = (DOCS / "tutorial.md").read_text(encoding="utf-8")
TUTORIAL_FILES = dict(re.findall(r"```(?:python|yaml)\n# (\S+)\n(.*?)```", TUTORIAL, re.DOTALL))

REPLIES = {
    "I am up at four now": "Mara sold the van to a florist in Aberdeen, and Theo finally sold the van to a florist in "
    "Aberdeen.",
    "bought a cargo bike instead of the van.\n": "The chat involves Theo buying a cargo bike instead of a van and "
    "leaving the bakery. Mara repairs clocks with old Mr. Brandt.",
    "Who bought Theo's van?": "Theo bought Theo's van.",
    "Where does Ines work?": "Ines works in the bakery.",
    "What does Mara do now?": "Mara repairs clocks with old Mr. Brandt.",
}
"""What Qwen 0.5B replied to requests that hold these words."""


class SmallModel:
    """Keeps the last turn of a chat if it is to summarize, all if it is told otherwise; answers what it reads."""

    def __init__(self) -> None:
        dataset = load_dataset(RunConfig(dataset="sample"))
        self.answers = {
            question.question: question.answers
            for split in dataset.splits.named().values()
            for conversation in split
            for question in conversation.questions
        }

    def __call__(self, body: dict[str, Any]) -> str:
        request = body["messages"][-1]["content"]
        recorded = [reply for words, reply in REPLIES.items() if words in request]
        if recorded:
            return recorded[-1]
        asked = re.search(r"Question: (.*)", request)
        if asked:
            known = [one for one in self.answers.get(asked[1], ()) if one.lower() in request.lower()]
            return known[0] if known else "unknown"
        turns = re.findall(r"^\w+: .+$", request, re.MULTILINE)
        return "\n".join(turns[-1:] if request.startswith("Summarize this chat in a few lines.\n\nChat") else turns)


def console_commands(page: str) -> list[tuple[str, list[str]]]:
    """The commands of a page in order, each with the lines that the page shows below it."""
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    parts = [part.splitlines() for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(line, shown) for line, *shown in parts]
