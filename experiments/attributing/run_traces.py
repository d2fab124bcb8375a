"""Which of a run's traces are those of its baseline or champion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from experiments.runs.cases_file import traces_seen
from experiments.runs.folder import CASES, TRACES, RunFolder
from tracing.errors import TraceError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import read_memory

_PROMPT = b'"prompt"'


def run_traces(folder: RunFolder, prompts: str) -> list[Path]:
    """The trace files of a run's candidate, `baseline` or `champion`, or of `all` it tried.

    Of a candidate they are those that its scores are from: the same prompts may also have been asked again for fresh
    replies, or under other settings. Of a run that was killed, only the prompts tell whose a trace is.
    """
    if prompts != "all" and (folder.path / CASES).is_file():
        return traces_seen(folder, prompts)
    paths = sorted((folder.path / TRACES).glob("*/*.jsonl"))
    if prompts == "all":
        return paths
    candidate = folder.prompts(prompts)
    return [path for path in paths if _made_with(path, candidate)]


def _made_with(path: Path, candidate: Mapping[str, str]) -> bool:
    """Whether every prompt that a trace shows is the candidate's. One that cannot be read is for others to report.

    Only the lines of prompts are parsed: a run has many traces, and most of them are of other candidates.
    """
    values: dict[str, object] = {}  # of the prompts so far, by id: a file holds a long text once
    prompt_count = 0
    try:
        with path.open("rb") as file:
            for line in file:
                if _PROMPT not in line:
                    continue
                record = json.loads(line)
                if record.get("kind") != "prompt":
                    continue
                holder = record.get("value_of")
                if holder is not None and holder not in values:
                    return _shows_only(read_memory(path)[0], candidate)
                value = values[record["id"]] = record.get("value") if holder is None else values[holder]
                if record.get("name") in candidate:
                    prompt_count += 1
                    if value != candidate[record["name"]]:
                        return False
        if not prompt_count:
            read_memory(path)
    except (OSError, ValueError, RecursionError, KeyError, AttributeError, TraceError):
        return True
    return prompt_count > 0


def _shows_only(graph: ExecutionGraph, candidate: Mapping[str, str]) -> bool:
    prompts = [prompt for prompt in graph.find_variables(kind="prompt") if prompt.name in candidate]
    return bool(prompts) and all(prompt.value == candidate[prompt.name] for prompt in prompts)
