"""`python -m benchmarks generate`: questions that are generated, counted, and written to be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.generating.measuring import ReadRow, part_of, write_rows
from experiments.data.datasets import sample


def ran(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_what_was_looked_at_is_in_no_other_part() -> None:
    parts = [{one.id for one in part_of(sample(None), part)} for part in ("development", "held-out")]  # type: ignore[arg-type]
    assert parts[0].isdisjoint(parts[1])
    assert len(parts[0] | parts[1]) == len(sample(None))


def test_an_author_that_knows_the_written_questions_has_most_of_them_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = ("--part", "development", "--conversations", "24")
    rows, target = tmp_path / "rows.jsonl", tmp_path / "figures.json"
    assert ran("generate", *part, "--rows", str(rows), "--json", str(target)) == 0
    figures = json.loads(target.read_text())
    refused = sum(figures["dropped"].values()) - figures["dropped"]["the author had nothing to ask"]
    kept = sum(figures["kept"].values())
    assert kept > refused
    assert figures["rows_a_session"] == pytest.approx(kept / figures["sessions"])
    read = [ReadRow.model_validate_json(line) for line in rows.read_text().splitlines()]
    assert len(read) == kept
    assert all(row.turns and row.right is None for row in read)
    # Until somebody has read one, there is nothing to count.
    assert ran("generate", "--read", str(rows)) == 2
    assert "no row has all three verdicts" in capsys.readouterr().err
    judged = [
        row.model_copy(update={"right": True, "answerable": True, "unambiguous": n > 0}) for n, row in enumerate(read)
    ]
    write_rows(rows, judged[:4])
    assert ran("generate", "--read", str(rows), "--json", str(target)) == 0
    assert json.loads(target.read_text())["share_sound"] == 0.75
