"""The report is one file that shows a run, whole or cut short, and trusts no text in it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from html_pages import TABLES, Page, shipped
from run_shapes import BASELINE, TUNED, facts, loop_result, record, run_folder, summary

from experiments.display.tables import verdict_lines
from experiments.reports.run_report import ReportInput, render_report
from experiments.reports.text_difference import DiffLine, difference
from experiments.runs.cases_file import CaseReply, RunCase, Side
from experiments.runs.comparison import compare
from experiments.runs.summary import summarize
from optimizer.evaluation.noise import NoiseFloor
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.proposers.template import add_instruction
from optimizer.tuning.results import LoopResult
from optimizer.tuning.round import ChangedCase, RewriteRecord, accepted_edit
from optimizer.tuning.stopped import Stopped
from tracing.llm.accounting.price import Price


def page_of(result: LoopResult, champion: dict[str, str] | None = None) -> str:
    given = ReportInput(
        summary=summary(result),
        baseline=BASELINE,
        champion=champion or dict(result.champion_candidate),
        error_types={"answer": {"ResponseError": 7}},
        power=result.power,
        operations={
            "answer": dict.fromkeys(
                ("calls_made", "calls_cached", "prompt_tokens", "completion_tokens", "cost", "seconds"), 1
            )
        },
        settings={"rounds": 2},
        rewrites=[
            (
                1,
                RewriteRecord(
                    "answer", "bank", "added: <i>brevity</i>", "text", 0.25, GateDecision(GateOutcome.ACCEPTED, "+0.2")
                ),
            ),
            (2, RewriteRecord("answer", "reflection", "rewritten", "text")),
        ],
    )
    return render_report(given)


def test_the_report_says_how_much_of_the_data_was_generated() -> None:
    written = page_of(loop_result())
    assert "2 conversations, 20 questions</dd>" in written
    assert "were generated" not in written
    splits = {name: replace(split, generated=5) for name, split in facts().splits.items()}
    result = loop_result()
    page = render_report(
        ReportInput(
            summary=summarize(replace(facts(), splits=splits), result),
            baseline=BASELINE,
            champion=dict(result.champion_candidate),
            error_types={},
            power=result.power,
            operations={},
            settings={},
            rewrites=[],
        )
    )
    assert page.count("20 questions, of which 25% were generated") == 3
    assert page.count("were generated and confirmed by people") == 1


def test_the_report_shows_scores_blame_prompts_and_cost() -> None:
    page = Page(page_of(loop_result()))
    assert not page.open
    assert page.tags.count("svg") == 2
    for shown in (
        "improved",
        "0.520",
        "+0.100",
        "+0.020 to +0.180",
        "0.031",
        "ResponseError 7",
        "700",
        "added: <i>brevity</i>",
        "+0.250 accepted +0.2",
        "of 2,600",
        "322",
    ):
        assert shown in page.text, shown


def test_money_is_told_where_prices_are_known(tmp_path: Path) -> None:
    result = loop_result()
    assert "money" not in Page(page_of(result)).text
    paid = replace(result, calls=replace(result.calls, money=0.0483))
    assert "money 0.0483 in the currency of the models' prices" in Page(page_of(paid)).text
    prices = {"task": Price(1.0, 2.0, 1.0, 2.0, "settings"), "proposer": None, "judge": None}
    some = Page(render_report(ReportInput(replace(summary(paid), prices=prices), BASELINE, TUNED))).text
    assert "of the models' prices, without proposer and judge" in some
    assert any("without reuse; money 0.0483" in line.plain for line in verdict_lines(summary(paid), None))
    found = compare(run_folder(tmp_path, 1, result=paid), run_folder(tmp_path))
    rows = {what: values for what, *values in found.rows}
    assert rows["money"] == ["0.0483", "–"]


@pytest.mark.slow
@pytest.mark.parametrize("verdict", ["improved", "inconclusive", "regressed", None])
def test_the_report_is_self_contained_whatever_came_out(verdict: str | None) -> None:
    html = page_of(loop_result(verdict=verdict))
    page = Page(html)
    assert all(link.startswith("#") for link in page.links)
    assert not {"link", "img", "iframe", "object"} & set(page.tags)
    assert page.programs == shipped(*TABLES)
    without_names = re.sub(r'xmlns(:\w+)?="[^"]*"', "", html).replace('"http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|//[a-z]+\.|url\((?!#)|@import", without_names)
    assert len(page.ids) == len(set(page.ids))


def test_an_accepted_edit_is_shown_with_its_difference_and_what_it_fixed_and_broke() -> None:
    fixed = ChangedCase("c1", "q1", "Where does Ann live?", "unknown", "<b>Oslo</b>")
    broken = ChangedCase("c2", "q2", "Who is Bea?", "a baker", "nobody")
    edit = accepted_edit({"answer": "Reply."}, {"answer": "Reply briefly."}, [], [])
    edit = replace(edit, compared=20, fixed=(fixed,), broken=(broken,))
    result = loop_result()
    result = replace(result, rounds=(replace(result.rounds[0], edit=edit), *result.rounds[1:]))
    text = Page(page_of(result)).text
    assert "Round 1: 1 fixed, 1 broken of 20 questions" in text
    assert "Reply. Reply briefly." in text
    told = ("broken Who is Bea? c2 · q2 – a baker nobody", "fixed Where does Ann live? c1 · q1 – unknown <b>Oslo</b>")
    assert [text.index(case) for case in told] == sorted(text.index(case) for case in told), "what broke comes first"
    found = summary(result).rounds[0].edit
    assert found is not None
    assert (found.fixed[0].before, found.broken[0].after) == ("unknown", "nobody")
    assert "+Reply briefly." in found.diffs["answer"]


@pytest.mark.parametrize(
    ("samples", "noise", "told"),
    [
        (False, None, "does not sample, so nothing was asked twice"),
        (True, None, "could not be measured"),
        (True, 0.04, "differences of up to 0.040 may be noise (95 %)."),
        (True, 0.12, "The difference of +0.100 is within noise."),
    ],
)
def test_noise_is_told_in_report_and_terminal_and_a_gain_below_it_is_called_so(
    samples: bool, noise: float | None, told: str
) -> None:
    floor = NoiseFloor(noise, 0.02, 3, 20, (0.4, 0.42)) if noise is not None else None
    found = summarize(replace(facts(), samples=samples), replace(loop_result(), noise=floor))
    assert told in Page(render_report(ReportInput(summary=found, baseline=BASELINE, champion=TUNED))).text
    assert any(told in line.plain for line in verdict_lines(found, None))
    assert (noise == 0.12) is ("is within noise" in (found.noise_sentence or ""))
    assert summary(loop_result(verdict=None)).noise_sentence is None


def test_a_run_cut_short_before_anything_was_scored_has_a_report() -> None:
    empty = replace(loop_result(verdict=None, stopped="interrupted"), baseline={})
    page = Page(page_of(empty))
    assert "The run was interrupted" in page.text
    assert "Known so far: no score; 0 rounds done" in page.text


def test_text_of_prompts_and_operations_is_shown_not_executed() -> None:
    evil = {"answer": "<script>alert(1)</script> {question} {context}"}
    odd = replace(record(1, accepted=True), blame={"<b>op</b> $x^2$": record(1, accepted=True).blame["answer"]})
    html = page_of(replace(loop_result(), rounds=(odd,)), champion=evil)
    assert Page(html).programs == shipped(*TABLES)
    assert "<b>op" not in html
    assert "<script>alert(1)</script>" in Page(html).text


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, True),
        ({"models.task.base_url": "http://h/v1"}, False),
        ({"models.task.litellm": True}, False),
        ({"models.task.base_url": "http://h/v1", "system_settings.reply_schema": "always"}, True),
    ],
)
def test_a_reply_schema_that_the_system_alone_would_not_have_is_told(settings: dict[str, str], told: bool) -> None:
    of_mem0 = replace(summary(loop_result()), system="mem0")
    page = Page(render_report(ReportInput(summary=of_mem0, baseline=BASELINE, champion=BASELINE, settings=settings)))
    assert ("were constrained to a JSON schema" in page.text) == told


def test_each_line_of_the_champion_is_told_with_what_it_brought_alone() -> None:
    before = "Look up.\n\n{question}"
    added, both = (
        add_instruction(before, "Be brief."),
        add_instruction(add_instruction(before, "Be brief."), "Be exact."),
    )
    accepted = GateDecision(GateOutcome.ACCEPTED, "+0.2")
    rewrites = [
        (1, RewriteRecord("answer", "bank", "", added, local=0.25, gate=accepted)),
        (1, RewriteRecord("answer", "bank", "", add_instruction(before, "Be kind."), local=0.5)),
        (2, RewriteRecord("answer", "bank", "", both, local=0.125)),
    ]
    content = ReportInput(summary(loop_result()), {"answer": before}, {"answer": both}, rewrites=rewrites)
    text = Page(render_report(content)).text
    assert "added: Be brief.: +0.250" in text
    assert "added: Be exact.: +0.125" in text
    unknown = ReportInput(summary(loop_result()), {"answer": before}, {"answer": both}, rewrites=rewrites[:1])
    assert "added: Be exact.: not tried alone" in Page(render_report(unknown)).text


def test_a_failed_run_says_so_with_what_is_known_and_how_to_go_on() -> None:
    broken = replace(loop_result(verdict=None), stopped=Stopped("error", "the endpoint is down; start it"))
    content = ReportInput(summary(broken), BASELINE, BASELINE, resume="memtune run --resume /runs/r1")
    text = Page(render_report(content)).text
    assert "The run failed the endpoint is down; start it" in text
    assert "memtune run --resume /runs/r1" in text
    assert "the baseline prompts score 0.4" in text
    assert "The run failed" not in page_of(loop_result())


def asked(question: str, *passed: bool) -> RunCase:
    sides: tuple[Side, Side] = ("baseline", "champion")
    replies = {
        side: CaseReply(reply=f"reply {number}", score=float(right), passed=right)
        for number, (side, right) in enumerate(zip(sides, passed, strict=False))
    }
    return RunCase(
        split="test", conversation="c", question_id=question, question=question, answers=("Oslo",), replies=replies
    )


def test_cases_stand_in_one_table_what_broke_first() -> None:
    cases = [asked("kept", True, True), asked("fixed", False, True), asked("lost", False), asked("broke", True, False)]
    content = ReportInput(summary(loop_result()), BASELINE, TUNED, cases=cases)
    table = render_report(content).partition('id="case-table"')[2]
    rows = [table.index(f">{question}<br>") for question in ("broke", "lost", "fixed", "kept")]
    assert rows == sorted(rows)
    assert "1 / 1 see the broken ones" in Page(render_report(content)).text


def test_an_attempt_opens_to_its_difference_from_the_champion_of_its_round() -> None:
    rewrites = [(1, RewriteRecord("answer", "bank", "", "First.")), (2, RewriteRecord("answer", "bank", "", "Second."))]
    content = ReportInput(
        summary(loop_result()),
        {"answer": "Baseline."},
        {"answer": "First."},
        rewrites=rewrites,
        champions={2: {"answer": "First."}},
    )
    _, first, second = render_report(content).partition('id="attempt-table"')[2].split("<details>")
    assert ("Baseline" in first, "Baseline" in second) == (True, False)


def test_no_value_is_written_as_python_writes_it() -> None:
    settings = {"sampled": True, "own": None, "modules": ["a", "b"]}
    text = Page(render_report(ReportInput(summary(loop_result()), BASELINE, TUNED, settings=settings))).text
    assert 'sampled true own – modules ["a", "b"]' in text


def test_where_fewer_tokens_are_sought_a_tile_has_them() -> None:
    tokens = {"baseline": 95.3, "champion": 83.9}
    sought = replace(summary(loop_result()), margin=0.02, tokens_per_question=tokens)
    for shown, made in ((True, sought), (False, replace(sought, margin=None))):
        assert (
            "tokens a question, test 95 → 84" in Page(render_report(ReportInput(made, BASELINE, TUNED))).text
        ) is shown


def test_unchanged_prompts_are_said_to_be_unchanged() -> None:
    page = Page(page_of(loop_result(), champion=BASELINE))
    assert "no rewrite took their place" in page.text
    assert "not changed" in page.text


def test_a_comparison_of_prompts_holds_both_texts_in_order() -> None:
    lines = difference(BASELINE["answer"], TUNED["answer"])
    before = ["".join(text for text, _ in line.parts) for line in lines if line.kind in ("same", "removed")]
    after = ["".join(text for text, _ in line.parts) for line in lines if line.kind in ("same", "added")]
    assert before == BASELINE["answer"].splitlines()
    assert after == TUNED["answer"].splitlines()


def test_long_unchanged_stretches_are_folded_with_their_length() -> None:
    common = [f"line {n}" for n in range(40)]
    lines = difference("\n".join(["a", *common, "b"]), "\n".join(["x", *common, "y"]))
    assert DiffLine("fold", fold=32) in lines
    assert sum(line.kind == "same" for line in lines) == 8
