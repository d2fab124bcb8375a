"""What the tables of a run's report do in a browser: they are filtered, and drawn as charts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from page_titles import NO_BROWSER, told_by
from run_shapes import BASELINE, TUNED, loop_result, summary

from experiments.reports.run_report import ReportInput, render_report
from experiments.runs.cases_file import CaseBlame, CaseReply, RunCase
from optimizer.evaluation.scores import SplitName
from optimizer.tuning.round import RewriteRecord

pytestmark = [pytest.mark.slow, NO_BROWSER]


def case(number: int, split: SplitName, operation: str) -> RunCase:
    blame = CaseBlame(operation=operation, error_type="ResponseError", confidence=0.5, reason="because")
    replies = {
        "baseline": CaseReply(reply="yes", score=1, passed=True),
        "champion": CaseReply(reply=f"no {number}", score=0, passed=False, blame=(blame,)),
    }
    return RunCase.model_validate(
        {
            "split": split,
            "conversation": "c",
            "question_id": f"q{number}",
            "question": f"what {number}?",
            "answers": ["yes"],
            "replies": replies,
        }
    )


def report() -> str:
    cases = [case(number, "train" if number < 50 else "test", f"<b>op{number % 2}") for number in range(60)]
    rewrites = [(1, RewriteRecord("answer", "bank", "why", TUNED["answer"], local=gain)) for gain in (0.5, None)]
    made = replace(summary(loop_result()), tried=())
    return render_report(ReportInput(made, BASELINE, TUNED, cases=cases, rewrites=rewrites))


FILTER = """
const form = document.querySelector('.filters[data-table="case-table"]');
const rows = () => [...document.querySelectorAll("#case-table tbody")].filter((row) => !row.hidden).length;
const choose = (name, value) => {
  form.querySelector(`[name=${name}]`).value = value;
  form.dispatchEvent(new Event("input"));
};
"""


def test_cases_are_filtered_by_split_change_operation_and_text(tmp_path: Path) -> None:
    script = f"""{FILTER}
    told.push(rows());
    form.querySelector("button").click(); told.push(rows());
    choose("split", "test"); told.push(rows());
    choose("operation", "<b>op1"); told.push(rows());
    choose("text", "WHAT 51"); told.push(rows(), form.querySelector("output").textContent);
    document.querySelector('a[data-filters="case-table"]').click();
    told.push(rows(), form.querySelector("[name=change]").value);
    """
    said = told_by(report(), script, tmp_path)
    assert said == ["40", "60", "10", "5", "1", "1 of 60", "10", "right → wrong"]


def test_a_point_of_the_chart_opens_its_attempt(tmp_path: Path) -> None:
    script = """
    const points = document.querySelectorAll('figure[data-table="attempt-table"] circle');
    told.push(points.length, document.querySelector("#attempt-1 details").open);
    points[0].dispatchEvent(new Event("click"));
    told.push(document.querySelector("#attempt-1 details").open);
    """
    assert told_by(report(), script, tmp_path) == ["1", "false", "true"]


def test_every_control_has_a_name_and_headings_follow_one_another(tmp_path: Path) -> None:
    script = """
    for (const control of document.querySelectorAll("input, select"))
      if (!control.getAttribute("aria-label")) told.push(control.outerHTML);
    let last = 0;
    for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
      const level = Number(heading.tagName[1]);
      if (level > last + 1) told.push(heading.textContent);
      last = level;
    }
    """
    assert told_by(report(), script, tmp_path) == [""]
