"""A figure comes with an interval only where several conversations give one, and an effect with a power only where
there is an effect."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from html_pages import Page
from run_shapes import BASELINE, FILES, TUNED, facts, loop_result, record, score

from experiments.display.literal_console import LiteralConsole
from experiments.display.tables import result_table, run_view, verdict_lines
from experiments.reports.run_report import ReportInput, render_report
from experiments.runs.comparison import compare
from experiments.runs.folder import RunFolder
from experiments.runs.intervals import duration_text, p_phrase
from experiments.runs.summary import SplitSize, Summary, summarize
from optimizer.evaluation.evaluator import score_of
from optimizer.evaluation.scores import Score
from optimizer.search.rounds import SCREENED
from optimizer.tuning.results import LoopResult


def on_one_conversation() -> tuple[Summary, LoopResult]:
    alone = Score(score=0.2, em=0.2, f1=0.2, contains=0.2, n=5, ci=None)
    scores = {"train": alone, "validation": alone, "test": alone}
    result = replace(
        loop_result(verdict="inconclusive"), baseline=scores, champion=scores, delta=0.1, delta_ci=None, power=0.0
    )
    one = {name: SplitSize(conversations=(name,), questions=5) for name in ("train", "validation", "test")}
    return summarize(replace(facts(), splits=one), result), result


def page_of(summary: Summary, result: LoopResult, champion: dict[str, str] = TUNED) -> str:
    return Page(
        render_report(ReportInput(summary=summary, baseline=BASELINE, champion=champion, power=result.power))
    ).text


def printed(capsys: pytest.CaptureFixture[str], summary: Summary, result: LoopResult) -> str:
    console = LiteralConsole()
    console.print(result_table(summary))
    for line in verdict_lines(summary, result.power):
        console.print(line)
    with run_view() as view:
        view.baseline("test", result.baseline["test"])
    out, err = capsys.readouterr()
    return " ".join(f"{out} {err}".split())


@pytest.mark.slow
def test_a_score_over_one_conversation_has_no_interval_wherever_it_is_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    summary, result = on_one_conversation()
    shown = [printed(capsys, summary, result), page_of(summary, result)]
    folder = RunFolder.create(tmp_path, system="rag", now=datetime(2026, 1, 2), files=FILES)
    folder.write_summary(summary)
    folder.write_prompts("champion", TUNED)
    shown.append(" ".join(value for row in compare(folder, folder).rows for value in row))
    for text in shown:
        assert "1 conversation" in text
        assert "0.200–0.200" not in text
        assert "0.200 – 0.200" not in text
        assert "0.200 to 0.200" not in text
        assert "None" not in text
        assert "nan" not in text


def test_an_interval_needs_two_conversations() -> None:
    class Judged:
        score, em, f1, contains = 0.2, 0.2, 0.2, 0.2

    class Case:
        judgement = Judged()

    class Outcome:
        score, cases = 0.2, (Case(),)

    assert score_of([Outcome()]).ci is None  # type: ignore[list-item]
    ci = score_of([Outcome(), Outcome()]).ci  # type: ignore[list-item]
    assert ci is not None
    assert ci[0] < 0.05
    assert ci[1] > 0.6


@pytest.mark.slow
def test_no_power_is_told_where_nothing_was_seen(capsys: pytest.CaptureFixture[str]) -> None:
    seen = replace(loop_result(verdict="inconclusive"), power=0.31)
    equal = replace(seen, delta=0.0, delta_ci=(0.0, 0.0), p_value=1.0, power=0.0)
    untouched = replace(equal, rounds=(record(1, accepted=False),), champion_candidate=BASELINE)
    assert "found with a chance of 31%" in page_of(summarize(facts(), seen), seen)
    assert "power 0.31" in printed(capsys, summarize(facts(), seen), seen)
    for result in (equal, untouched):
        summary = summarize(facts(), result)
        text = page_of(summary, result) + printed(capsys, summary, result)
        assert "chance of" not in text
        assert "power" not in text
    text = page_of(summary, untouched, BASELINE) + printed(capsys, summary, untouched)
    assert "the champion is the baseline prompts, so there is no difference to test" in text
    assert "+0.000 to" not in text


def test_replies_that_count_as_wrong_for_their_length_are_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    long = Score(score=0.0, em=0.0, f1=0.1, contains=0.28, n=25, ci=(0.0, 0.1))
    result = replace(loop_result(), baseline={"test": long}, champion={"test": long})
    told = "28% of the replies contain an accepted answer in more than 12 words"
    summary = summarize(facts(), result)
    for text in (page_of(summary, result), printed(capsys, summary, result)):
        assert told in text
        assert "--metric contains" in text
    fine = loop_result()
    assert "of the replies contain" not in printed(capsys, summarize(facts(), fine), fine)


def test_the_report_tells_how_proposals_are_screened() -> None:
    from optimizer.tuning.round import RewriteRecord

    result = loop_result()
    given = ReportInput(
        summary=summarize(facts(), result),
        baseline=BASELINE,
        champion=TUNED,
        rewrites=[(1, RewriteRecord("answer", "bank", "shorter", "text", 0.25))],
    )
    text = Page(render_report(given)).text
    assert f"on {SCREENED} train conversations, drawn at random from those in which the rewritten prompt failed" in text
    assert "worst" not in text


def test_a_score_with_an_interval_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    result = replace(loop_result(), baseline={"test": score(0.4)})
    assert "0.300–0.500" in printed(capsys, summarize(facts(), result), result)


def test_a_p_value_is_never_told_as_nothing() -> None:
    assert [p_phrase(p) for p in (1.0, 0.0123, 0.001, 0.00004)] == ["p 1.000", "p 0.012", "p 0.001", "p < 0.001"]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0 µs"),
        (5.6e-05, "56 µs"),
        (0.00745, "7.5 ms"),
        (0.351, "351 ms"),
        (1.0, "1 s"),
        (84.2, "84 s"),
        (751.0, "12.5 min"),
    ],
)
def test_a_time_is_told_in_the_unit_that_a_person_reads(seconds: float, told: str) -> None:
    assert duration_text(seconds) == told
