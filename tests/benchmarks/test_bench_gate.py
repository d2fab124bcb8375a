"""`python -m benchmarks gate`: what the gate and the verdict find, by challengers whose effect is known."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.gate_simulation import Recorded, by_prompts, measure_gate, read_recorded
from tracing.errors import DataError

pytestmark = pytest.mark.slow

KEYS = {
    "null_rate",
    "null_accepted",
    "power",
    "calls",
    "changed",
    "by_prompts",
    "conversations",
    "test",
    "trials",
}


def made(churn: float) -> Recorded:
    drawn = random.Random(3)  # noqa: S311
    baseline = {f"c{n}": "".join(drawn.choice("+--") for _ in range(10)) for n in range(24)}
    other = {
        name: "".join(drawn.choice("+--") if drawn.random() < churn else mark for mark in marks)
        for name, marks in baseline.items()
    }
    return {"baseline": baseline, "other": other}


def evaluated(recorded: Recorded) -> str:
    """As `memtune eval --json` writes it, as far as it is read."""
    return json.dumps({"evaluated": [{"prompts": name, "answers": marks} for name, marks in recorded.items()]})


@pytest.mark.thorough
def test_a_greater_effect_is_found_more_often_and_none_hardly_ever() -> None:
    figures = measure_gate(made(0.4), conversations=24, test=32, trials=60)
    assert figures.null_rate <= 0.05
    assert figures.power["0.15"] > figures.power["0.05"] > figures.null_rate
    assert 4 <= figures.calls <= 24
    assert figures == measure_gate(made(0.4), conversations=24, test=32, trials=60)


@pytest.mark.thorough
def test_what_an_edit_changes_decides_how_much_is_found() -> None:
    little, much = made(0.1), made(0.8)
    recorded = {"baseline": little["baseline"], "little": little["other"], "much": much["other"]}
    figures = measure_gate(recorded, conversations=24, test=32, trials=60)
    assert set(figures.by_prompts) == {"little", "much"}
    assert figures.by_prompts["little"].changed < figures.changed < figures.by_prompts["much"].changed
    assert figures.by_prompts["little"].power["0.05"] > figures.by_prompts["much"].power["0.05"]
    alone = measure_gate(little, conversations=24, test=32, trials=60)
    assert alone.by_prompts == {}
    assert alone.power == figures.by_prompts["little"].power


def test_few_test_conversations_never_find_anything() -> None:
    figures = measure_gate(made(0.4), conversations=24, test=5, trials=20)
    assert set(figures.power.values()) == {0.0}


def test_prompts_without_a_conversation_of_the_baseline_are_left_out(tmp_path: Path) -> None:
    sides = {"baseline": {"a": "+-"}, "x": {"a": "-+"}, "y": {"b": "-+"}}
    (tmp_path / "mine.json").write_text(evaluated(sides))
    assert by_prompts(read_recorded(tmp_path / "mine.json")) == {"x": [("+-", "-+")]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "give what `memtune eval --json` wrote"),
        ('{"evaluated": [{"prompts": "baseline", "answers": {"a": "right"}}]}', "evaluated.0.answers.a"),
        (evaluated({"baseline": {"a": "+-"}, "other": {"a": "+"}}), "other: has other questions than 'baseline'"),
        (evaluated({"baseline": {"a": "++"}, "other": {"a": "++"}}), "other: no answer is wrong (-)"),
        (
            evaluated({"baseline": {"a": "++", "b": "+-"}, "x": {"b": "++"}, "y": {"a": "++"}}),
            "y: no answer is wrong (-)",
        ),
        (evaluated({"baseline": {"a": "+-"}, "other": {"b": "+"}}), "no prompts that have a conversation in common"),
    ],
)
def test_a_file_that_cannot_be_drawn_from_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"mine\.json") as caught:
        read_recorded(path)
    assert said in str(caught.value)


def test_the_command_writes_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, file = tmp_path / "mine.json", tmp_path / "gate.json"
    mine.write_text(evaluated(made(0.3)))
    with pytest.raises(SystemExit) as ended:
        main(["gate", "--recorded", str(mine), "--trials", "4", "--json", str(file)])
    assert ended.value.code == 0
    assert set(json.loads(file.read_text())) == KEYS
    assert "+0.10" in capsys.readouterr().out
