"""Talks in which what is asked for is said in passing: a memory that keeps only what is liked has no answer."""

from __future__ import annotations

import json
import re
from pathlib import Path

PASSING = ("in passing", "Small remarks", "every concrete detail", "exact names", "Copy the sentences", "each turn")
"""Of the instructions that people write: those that ask for what is said beside the matter."""
_PLACES = ["harbour", "brewery", "foundry", "depot", "mill", "museum", "rope yard", "ice factory", "bell tower"]
_PLACES += ["seed bank", "clock school", "ferry", "tea auction", "map archive", "observatory"]
_NAMES = ["Ines", "Olga", "Petra", "Rosa", "Tilda", "Vera", "Wanda", "Yara", "Zita", "Ada", "Berit", "Clara", "Dora"]
_PLACE_OF = dict(zip([*_NAMES, "Edda", "Frida"], _PLACES, strict=True))
_WORKS = re.compile(r"sister (\w+) works at the ([a-z ]+)")
_ASKED = re.compile(r"Question: .*sister (\w+) work")


def write_talks(path: Path) -> None:
    """Write the talks, one a line."""
    rows = []
    for number, (name, place) in enumerate(_PLACE_OF.items()):
        said = [f"I like the songs of {name}.", f"My sister {name} works at the {place}."]
        turns = [{"id": f"D1:{at}", "speaker": "Mara", "text": text} for at, text in enumerate(said)]
        question = f"Where does the sister {name} work?"
        rows.append(
            {
                "id": f"talk{number}",
                "speakers": ["Mara"],
                "sessions": [{"id": "D1", "turns": turns}],
                "questions": [{"id": f"q{number}", "question": question, "answers": [place], "evidence": ["D1:1"]}],
            }
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def answered(text: str) -> str | None:
    """What a request that asks is answered by what it shows; None for one that does not ask."""
    asked = _ASKED.search(text)
    if asked is None:
        return None
    return next((place for name, place in _WORKS.findall(text) if name == asked[1]), "unknown")
