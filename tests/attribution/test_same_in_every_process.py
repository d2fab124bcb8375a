"""What words weigh together is the same in every process: the order of a set is not, and thresholds decide by it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from attribution.evidence_index import EvidenceIndex
from attribution.gold_answers.transcript import Transcript
from attribution.text.content import Vocabulary, content_of
from experiments.data.loaders import load_dataset
from experiments.runs.config_file import load_config

conversation = load_dataset(load_config(None)).splits.train[0]
turns = [turn.text for turn in conversation.turns()]
vocabulary, transcript, index = Vocabulary(turns), Transcript(conversation), EvidenceIndex(conversation)
for turn, other in zip(turns, turns[1:]):
    both, half = content_of(turn + other), content_of(turn)
    print(repr(vocabulary.coverage(both, half)), transcript.best(both), repr(transcript.share(both, range(9))))
    print(index.scores(turn + " " + other))
"""


def said_with(seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stdout


def test_weights_of_words_are_summed_alike_whatever_the_order_of_sets() -> None:
    first, second = said_with(1), said_with(2)
    assert first == second
    assert first.count("\n") > 20
