"""`python -m benchmarks evidence`: how much of the annotated evidence the search finds."""

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main

pytestmark = pytest.mark.slow

CONV_26 = Path(__file__).parents[3] / "shared" / "data" / "memeval" / "conv-26.json"


@pytest.mark.skipif(not CONV_26.is_file(), reason="needs ../shared/data/memeval/conv-26.json")
def test_recall_grows_with_what_is_searched_with_and_how_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "evidence.json"
    with pytest.raises(SystemExit) as caught:
        main(["evidence", "--suite", str(CONV_26), "--words", "--json", str(target)])
    assert caught.value.code == 0
    figures = json.loads(target.read_text())
    words = figures["recall"]["words"]
    assert figures["n"] == 78
    assert words["question"]["1"] < words["question"]["8"] < words["gold"]["8"]
    assert "question + gold" in capsys.readouterr().out
