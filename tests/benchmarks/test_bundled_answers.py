"""The answers that `python -m benchmarks gate` draws from by default."""

from benchmarks.commands.gate import BUNDLED
from benchmarks.gate_simulation import by_prompts, read_recorded


def test_the_bundled_answers_can_be_drawn_from() -> None:
    recorded = read_recorded(BUNDLED)
    assert len(recorded["baseline"]) == 24
    assert {len(rows) for rows in by_prompts(recorded).values()} == {24}
