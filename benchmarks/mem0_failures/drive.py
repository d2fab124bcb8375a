"""A program with a Mem0 of its own, as a user writes it, recorded by one line; what its own store says at the end.

It runs where the library is: here, or in the environment of a release.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"

from experiments.systems.mem0 import library
from experiments.systems.mem0.recorder import mem0 as recorded
from tracing import answered, save_trace, session, trace, variable

ASKING = "Answer from these memories."
DIMENSIONS = 256
TOP = 4
"""Entries that the search finds."""
USER = {"user_id": "u"}


def converse(sessions: Sequence[Sequence[str]], question: str, base_url: str, path: Path) -> dict[str, Any]:
    """Tell Mem0 the sessions, ask the question, and write the trace; what the library's own store says, as JSON.

    Returns:
        stored: the texts that the library has; history: its own events, each with the text before and after.
    """
    generation = next(each for each in library.GENERATIONS if each.is_here())
    memory = _opened(generation, base_url)
    with recorded(memory), trace() as recorder:
        for number, turns in enumerate(sessions, start=1):
            with session(f"D{number}", time=f"2025-0{number}-10 18:00"):
                for place, spoken in enumerate(turns, start=1):
                    variable(spoken, name=f"D{number}:{place}", kind="message")
                memory.add([{"role": "user", "content": spoken} for spoken in turns], **USER)
        here = {"filters": USER, "top_k": TOP} if generation is library.V2 else {**USER, "limit": TOP}
        found = [hit["memory"] for hit in memory.search(question, **here)["results"]]
        lines = "\n".join(f"- {text}" for text in found)
        asked = [{"role": "user", "content": f"{ASKING}\n{lines}\n\nQuestion: {question}"}]
        answered(question, memory.llm.generate_response(messages=asked))
    everything = {"filters": USER, "top_k": 100} if generation is library.V2 else {**USER, "limit": 100}
    stored = memory.get_all(**everything)["results"]
    rows = [row for key in _keys(memory) for row in memory.history(key)]
    library.close(memory)
    save_trace(recorder.graph, path)
    return {
        "stored": [entry["memory"] for entry in stored],
        "history": [[row["event"], row["old_memory"], row["new_memory"]] for row in rows],
    }


def _opened(generation: library.Generation, base_url: str) -> Any:
    memory = library.open_memory(
        {},
        base_url=base_url,
        key="sk-none",
        chat_model="scripted",
        embedding_model="scripted",
        instance=library.Instance(generation, ids=USER),
    )
    library.fit(memory, DIMENSIONS)
    return memory


def _keys(memory: Any) -> list[str]:
    """Every entry that there ever was, by the library's own history."""
    rows = memory.db.connection.execute("SELECT DISTINCT memory_id FROM history ORDER BY rowid").fetchall()
    return [row[0] for row in rows]


def main() -> None:
    """For each line that comes in, the arguments of `converse` as JSON, write a line with what it returns."""
    replies, sys.stdout = sys.stdout, sys.stderr  # where the library prints
    for line in sys.stdin:
        story: Mapping[str, Any] = json.loads(line)
        result = converse(story["sessions"], story["question"], story["base_url"], Path(story["path"]))
        replies.write(f"{json.dumps(result)}\n")
        replies.flush()


if __name__ == "__main__":
    main()
