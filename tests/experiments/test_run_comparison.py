"""Two or more runs beside one another: what differs, and which questions flipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from html_pages import Page
from memtune_command import Command, MemtuneCommand
from run_shapes import loop_result, run_folder

from experiments.runs.cases_file import CaseBlame, CaseReply, RunCase, read_cases, write_cases
from experiments.runs.comparison import flips_of
from experiments.runs.export_manifest import manifest_of
from experiments.runs.folder import RunFolder
from optimizer.evaluation.scores import SplitName
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.tuning.round import SettingsRecord
from tracing.errors import RunError

PAGE = "traces/key/c-1.html"
BLAME = CaseBlame(operation="extract_facts", error_type="ExtractionError", confidence=0.9, reason="lost 'Oslo'")


def asked(question: str, right: bool, split: SplitName = "test", conversation: str = "c1") -> RunCase:
    """A question that the champion of a run was asked."""
    text = f"reply to {question}, {'right' if right else 'wrong'}"
    reply = CaseReply(reply=text, score=float(right), passed=right, blame=() if right else (BLAME,), page=PAGE)
    return RunCase(
        split=split,
        conversation=conversation,
        question_id=question,
        question=f"What of {question}?",
        answers=(f"gold {question}",),
        replies={"champion": reply},
    )


@pytest.fixture
def folders(tmp_path: Path) -> list[RunFolder]:
    """Three runs; the third was asked one question less."""
    home = tmp_path / "home"
    marks = [{"q1": True, "q2": False, "q3": True}, {"q1": True, "q2": True, "q3": False}, {"q1": False, "q2": True}]
    made = []
    for second, right in enumerate(marks):
        folder = run_folder(home, second)
        folder.write(PAGE, "a page")
        write_cases(folder, [asked(name, found, "train" if name == "q3" else "test") for name, found in right.items()])
        made.append(folder)
    return made


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs memtune; no model is asked and nothing is tracked."""
    return MemtuneCommand(capsys, "", "")


def test_flips_are_the_questions_asked_by_all_that_not_all_answer_alike(folders: list[RunFolder]) -> None:
    test, train = flips_of([read_cases(folder) for folder in folders[:2]])
    assert (test.split, test.questions, test.right) == ("test", 2, (1, 2))
    assert [one.case.question_id for one in test.flips] == ["q2"]
    assert [verdict.delta for verdict in test.differences] == [0.5]
    assert (train.split, train.questions, train.right) == ("train", 1, (1, 0))
    (of_three,) = flips_of([read_cases(folder) for folder in folders])
    assert [one.case.question_id for one in of_three.flips] == ["q1", "q2"]
    assert [verdict.delta for verdict in of_three.differences] == [0.5, 0.0]


def test_a_question_that_was_rewritten_or_has_other_answers_is_another_one() -> None:
    before = [asked("q1", True), asked("q2", True), asked("q3", True)]
    changes: list[dict[str, object]] = [{"question": "What of it?"}, {"answers": ("silver",)}, {}]
    after = [case.model_copy(update=change) for case, change in zip(before, changes, strict=True)]
    (test,) = flips_of([before, after])
    assert (test.questions, test.right) == (1, (1, 1))


def test_the_page_has_both_replies_gold_blame_and_links_to_the_traces(
    folders: list[RunFolder], command: Command, tmp_path: Path
) -> None:
    out = tmp_path / "pages" / "c.html"
    code, said, err = command("compare", *(str(one.path) for one in folders[:2]), "--html", str(out))
    assert (code, said, err) == (0, f"written to {out}\n", "")
    page = Page(out.read_text())
    assert not page.open
    assert "Questions that flipped: 2" in page.text
    for shown in (
        "What of q2?",
        "gold q2",
        "reply to q2, wrong",
        "reply to q2, right",
        "lost 'Oslo'",
        "+0.500 in mean",
    ):
        assert shown in page.text
    assert "What of q1?" not in page.text
    assert out.read_text().partition('id="flips"')[2].partition("</table>")[0].count("<tbody>") == 2, (
        "one a row, to filter"
    )
    traces = [link for link in page.links if "#question=" in link]
    assert [link.partition("=")[2] for link in traces] == ["q3", "q3", "q2", "q2"], "what turned wrong comes first"
    assert [(out.parent / unquote(link.partition("#")[0])).read_text() for link in traces] == ["a page"] * 4


def test_the_paired_difference_comes_first_on_the_terminal_with_its_interval(
    folders: list[RunFolder], command: Command
) -> None:
    code, out, _ = command("compare", *(str(one.path) for one in folders[:2]))
    first, figures, turned, *_ = out.splitlines()
    ids = [folder.id for folder in folders]
    assert (code, first.strip()) == (0, f"{ids[1]} against {ids[0]}, test:")
    assert figures.startswith("  inconclusive: +0.500 (")
    assert turned == "  of 2 questions 1 turned right ✓, 0 turned wrong ✗"
    assert "prompt answer: no difference" in out


def test_a_run_without_its_cases_is_compared_in_all_else_and_one_run_alone_is_refused(
    folders: list[RunFolder], command: Command, tmp_path: Path
) -> None:
    (folders[1].path / "cases.jsonl").unlink()
    with pytest.raises(RunError, match="run the experiment again, from replies that are paid for: memtune run"):
        read_cases(folders[1])
    out = tmp_path / "c.html"
    names = [str(one.path) for one in folders]
    assert command("compare", *names, "--html", str(out))[0] == 0
    text = Page(out.read_text()).text
    assert "The questions are not compared" in text
    assert "champion, test 0.520 (0.420–0.620) 0.520 (0.420–0.620) 0.520" in text
    assert "The questions are not compared" in command("compare", *names)[1]
    code, _, err = command("compare", names[0])
    assert (code, "give two or more runs" in err) == (2, True)


def test_a_page_gives_each_run_its_own_prompts_though_those_of_another_cannot_be_read(
    folders: list[RunFolder], command: Command, tmp_path: Path
) -> None:
    (folders[1].path / "prompts" / "champion" / "answer.txt").unlink()
    folders[2].write_prompts("champion", {"answer": "That of the third."})
    out = tmp_path / "c.html"
    assert command("compare", *(str(one.path) for one in folders), "--html", str(out))[0] == 0
    prompts = out.read_text().partition('id="prompts"')[2].partition('id="questions"')[0]
    assert f"{folders[2].id} against {folders[0].id}" in prompts
    assert f"{folders[1].id} against {folders[0].id}" not in prompts


def test_a_round_counts_as_accepted_without_a_rewrite_and_unchanged_settings_are_no_caveat_of_an_export(
    tmp_path: Path, command: Command
) -> None:
    result = loop_result()
    unseen = SettingsRecord(
        {"top_k": 2}, (), None, None, None, GateDecision(GateOutcome.NOT_TRIED, "nothing can be seen")
    )
    result = replace(result, rounds=(replace(result.rounds[0], settings=(unseen,)), *result.rounds[1:]))
    folders = [run_folder(tmp_path / "home", second, result=result) for second in (0, 1)]
    _, out, _ = command("compare", *(str(folder.path) for folder in folders))
    assert "rewrites accepted" not in out
    assert "1 of 2 rounds" in out
    summary = folders[0].summary()
    assert str(summary.settings_sentence).startswith("No setting of the memory system was changed")
    assert not any("settings" in caveat for caveat in manifest_of(folders[0], summary)["caveats"])
