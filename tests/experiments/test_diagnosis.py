"""The diagnosis claims only what its cases show, links every claim to them, and trusts no text in it."""

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from html_pages import Page
from run_shapes import loop_result, summary
from traced_runs import CONVERSATIONS, HOSTILE, traced_run

from attribution.cases import Blame
from experiments.attributing.attributions import Attributions, CaseLine, Header, TraceLine
from experiments.command import main
from experiments.diagnosis.case_clusters import case_clusters, masked
from experiments.diagnosis.diagnosis_page import render_html, render_markdown
from experiments.diagnosis.diagnosis_source import case_pictures, diagnosis_of, pages_of
from experiments.diagnosis.findings import Diagnosis, diagnose
from experiments.runs.folder import RunFolder
from optimizer.tuning.round import SettingChange
from tracing.systems.protocol import OperationSpec


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    monkeypatch.chdir(tmp_path)
    return traced_run(tmp_path / "home")


@pytest.fixture
def facts(folder: RunFolder) -> Diagnosis:
    return diagnosis_of(
        str(folder.path), folder.path, prompts="baseline", ladder=None, progress=lambda where, done, found: None
    )[0]


def case(number: int, operation: str, error_type: str, reason: str = "it lost 'x'") -> CaseLine:
    blame = Blame(operation=operation, operation_id=None, error_type=error_type, confidence=0.8, reason=reason)  # type: ignore[arg-type]
    asked = {"question_id": f"q{number}", "question": "Why?", "answers": ("a",), "reply": "b", "score": 0.0}
    return CaseLine(trace="t.jsonl", conversation=f"c{number % 3}", decisive=(blame,), **asked)  # type: ignore[arg-type]


def said(*cases: CaseLine, judged: int | None) -> Attributions:
    """Attributions of these cases; of only failures if `judged` is None."""
    found = Attributions(Header(method="survival"))
    operations = (
        OperationSpec(name="extract_facts", stage="extract", prompt="extract"),
        OperationSpec(name="retrieve", stage="retrieve", prompt=None),
        OperationSpec(name="answer", stage="answer", prompt="answer"),
    )
    count, known = (len(cases), False) if judged is None else (judged, True)
    found.add(
        TraceLine(trace="t.jsonl", digest="d", cases=count, failed=len(cases), all_judged=known, operations=operations)
    )
    for one in cases:
        found.add(one)
    return found


def test_the_page_of_a_run_links_every_claim_to_its_cases_and_fetches_nothing(
    folder: RunFolder, facts: Diagnosis
) -> None:
    html = render_html(facts, case_pictures(facts, folder.path))
    page = Page(html)
    assert page.open == [], "every element is closed"
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert {f"#{one.id}" for one in facts.cases} <= set(page.links)
    assert not {"script", "img", "link", "iframe"} & set(page.tags)
    assert "url(http" not in html
    assert "Its trace is not at hand" not in page.text
    assert HOSTILE.replace("radicchio", "hay") in page.text, "shown as text"
    for name in CONVERSATIONS:
        assert f"{name}-food" in page.text
    reason = "extract_facts read D1:1, but nothing that it made says 'radicchio'"
    assert page.text.count(reason) - page.text.count(f"for example: {reason}") == 3
    assert html.count('<li class="lost">') == 6


def test_a_case_links_to_the_page_of_its_trace_where_there_is_one(facts: Diagnosis, tmp_path: Path) -> None:
    folder, place = tmp_path / "run 1", tmp_path / "pages"
    shown = facts.cases[0]
    page_file = (folder / shown.line.trace).with_suffix(".html")
    page_file.parent.mkdir(parents=True)
    page_file.write_text("")
    pages = pages_of(facts, folder, place)
    of_this_trace = [one for one in facts.cases if one.line.trace == shown.line.trace]
    assert set(pages) == {one.id for one in of_this_trace}
    page = Page(render_html(facts, {}, pages))
    links = [link for link in page.links if not link.startswith("#")]
    assert links == list(pages.values())
    assert [link.partition("#")[2] for link in links] == [f"question={one.line.question_id}" for one in of_this_trace]
    assert all((place / unquote(link.partition("#")[0])).resolve() == page_file for link in links)


def test_what_it_counts_adds_up(facts: Diagnosis) -> None:
    counts = facts.counts
    assert (counts.judged, counts.failures, counts.attributed, counts.abstained, counts.undone) == (9, 6, 6, 0, 0)
    assert [(step.reached, step.lost) for step in facts.flow] == [(9, 0), (6, 3), (6, 0), (6, 0), (3, 3)]
    assert {loss.operation: loss.failures for loss in facts.operations if loss.failures} == {
        "extract_facts": 3,
        "answer": 3,
    }
    assert sum(loss.share for loss in facts.operations) == pytest.approx(1.0)
    assert facts.fixable == pytest.approx(1.0), "extraction and answer have prompts"
    assert sum(prompt.loss for prompt in facts.prompts) == pytest.approx(6 / 9)
    assert {name for prompt in facts.prompts if prompt.loss for name in prompt.operations} == {
        "extract_facts",
        "answer",
    }
    assert sum(loss.loss or 0 for loss in facts.operations) == pytest.approx(6 / 9)
    known = {one.id for one in facts.cases}
    for claim in (*facts.operations, *facts.clusters, *facts.actions, *facts.flow):
        assert set(claim.cases) <= known
    assert sorted(one for cluster in facts.clusters for one in cluster.cases) == sorted(known)
    assert Diagnosis.model_validate_json(facts.model_dump_json()) == facts


def test_actions_are_ranked_by_gain_and_told_apart_by_what_can_do_them() -> None:
    cases = [case(n, "extract_facts", "ExtractionError") for n in range(3)]
    cases += [case(n, "retrieve", "RetrievalError") for n in range(3, 8)]
    cases += [case(8, "annotation", "AnnotationError"), case(9, "judge", "JudgeError")]
    facts = diagnose(said(*cases, judged=20), title="t", subtitle="s")
    assert [action.by for action in facts.actions] == ["system", "prompt", "data", "judge"]
    assert [action.gain for action in facts.actions] == pytest.approx([5 / 20, 3 / 20, 1 / 20, 1 / 20])
    markdown = render_markdown(facts)
    assert "No prompt steers retrieve" in markdown.partition("## What no prompt can fix")[2]
    assert "Rewrite the prompt extract" not in markdown.partition("## What no prompt can fix")[2]
    assert facts.counts.beyond == 2
    assert facts.flow[0].reached == 18, "what is not the system's fault did not flow through it"


def test_a_reply_that_could_not_be_used_is_no_loss_of_information_and_no_rewrite_mends_it() -> None:
    cases = [case(1, "extract_facts", "ExtractionError"), case(2, "extract_facts", "UnusableReplyError")]
    facts = diagnose(said(*cases, judged=4), title="t", subtitle="s")
    assert [(step.reached, step.lost) for step in facts.flow[:2]] == [(3, 0), (2, 1)]
    assert {action.by: action.failures for action in facts.actions} == {"prompt": 1, "system": 1}
    assert "raise models.task.max_tokens" in render_markdown(facts)


def test_what_replay_says_of_the_blames_is_shown_by_operation_and_case() -> None:
    cases = [case(n, "extract_facts", "ExtractionError") for n in range(2)]
    verdicts = ("confirmed", "refuted")
    replayed = [
        one.model_copy(update={"decisive": (replace(one.decisive[0], verdict=verdict),)})
        for one, verdict in zip(cases, verdicts, strict=True)
    ]
    facts = diagnose(said(*replayed, judged=4), title="t", subtitle="s")
    assert [loss.confirmed for loss in facts.operations] == [0.5, None, None]
    page = Page(render_html(facts, {})).text
    assert "confirmed by replay" in page
    assert "refuted by replay" in page
    assert "extract_facts: 50% of its replayed blames" in render_markdown(facts)
    assert "by replay" not in Page(render_html(diagnose(said(*cases, judged=4), title="t", subtitle="s"), {})).text


def test_without_failures_or_traces_there_is_still_a_page() -> None:
    empty = diagnose(said(judged=5), title="t", subtitle="s")
    assert "Nothing went wrong" in Page(render_html(empty, {})).text
    assert "# t" in render_markdown(empty)
    bare = diagnose(said(case(1, "answer", "ResponseError"), judged=None), title="t", subtitle="s")
    assert bare.counts.judged is None
    assert all(action.gain is None for action in bare.actions)
    assert "Its trace is not at hand" in Page(render_html(bare, {})).text


def test_leaks_are_shown_where_nothing_else_went_wrong_and_many_are_folded() -> None:
    attributions = Attributions(Header(method="survival"))
    leaks = tuple(f"leak: search gave 'mara' the entry <m{number}> of 'theo'" for number in range(15))
    attributions.add(TraceLine(trace="t.jsonl", digest="d", leaks=leaks))
    diagnosis = diagnose(attributions, title="t", subtitle="s")
    source = render_html(diagnosis, {})
    assert "<m14>" not in source
    page = Page(source)
    assert "Nothing went wrong" not in page.text
    assert "and 3 more" in page.text
    assert "leaks 15 between users" in page.text
    assert all(f"t.jsonl: {leak}" in page.text for leak in leaks)
    lines = render_markdown(diagnosis).splitlines()
    assert sum("leak: search gave" in line for line in lines) == 15
    assert lines[lines.index("## Leaks between users") - 1] == ""


def test_a_run_that_got_nothing_right_has_everything_to_gain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = traced_run(tmp_path / "home", questions=2)
    all_wrong, _ = diagnosis_of(
        str(folder.path), folder.path, prompts="baseline", ladder=None, progress=lambda *_: None
    )
    assert (all_wrong.counts.judged, all_wrong.counts.failures) == (6, 6)
    assert sum(loss.loss or 0 for loss in all_wrong.operations) == pytest.approx(1.0)
    assert sum(prompt.loss for prompt in all_wrong.prompts) == pytest.approx(1.0)
    assert all(action.gain for action in all_wrong.actions)


def test_a_champion_is_called_the_baseline_only_where_its_settings_are_the_baselines_too(folder: RunFolder) -> None:
    told = []
    for changed in ({}, {"top_k": SettingChange(4, 8)}):
        folder.write_summary(summary(replace(loop_result(), settings=changed)))
        found, _ = diagnosis_of(
            str(folder.path), folder.path, prompts="champion", ladder=None, progress=lambda *_: None
        )
        told.append(any(note.startswith("The champion is the baseline") for note in found.notes))
    assert told == [True, False]


def test_reasons_that_differ_in_their_values_alone_are_one_cluster() -> None:
    one = "extract_facts read D1:1 and D2:14, but nothing that it made says 'Mara's goat, isn't it'"
    other = "extract_facts read D3:7, but nothing that it made says 'tea'"
    assert masked(one) == masked(other) == "extract_facts read …, but nothing that it made says …"
    different = "extract_facts turned D1:1 into 'a goat', which says something else"
    cases = [
        case(n, "extract_facts", "ExtractionError", reason) for n, reason in enumerate((one, different, other, one))
    ]
    assert [len(cluster.cases) for cluster in case_clusters(cases)] == [3, 1]
    assert len(case_clusters([case(1, "a", "UpdateError"), case(2, "b", "UpdateError")])) == 2


def test_a_cluster_whose_name_leaves_out_what_differs_gives_an_example() -> None:
    long = f"extract_facts read D1:1, but nothing that it made says 'tea{' again' * 100}'"
    cases = [
        case(1, "extract_facts", "ExtractionError", "extract_facts read D1:1, but nothing that it made says 'tea'")
    ]
    facts = diagnose(said(*cases, judged=4), title="t", subtitle="s")
    example = "for example: extract_facts read D1:1, but nothing that it made says 'tea'"
    assert example in Page(render_html(facts, {})).text
    assert example in render_markdown(facts).replace("\\", "")
    assert any(example in action.why for action in facts.actions)
    assert [one.example for one in case_clusters([case(1, "answer", "ResponseError", "the reply is empty")])] == [None]
    (shortened,) = [one.example or "" for one in case_clusters([case(1, "extract_facts", "ExtractionError", long)])]
    assert len(shortened) == 240
    assert shortened.endswith("…")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    out, err = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, out, err


def test_the_commands_work_together(folder: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    home = ("--home", str(folder.path.parents[1]))
    code, out, err = run(capsys, "attribute", "latest", "--out", "a.jsonl", *home)
    assert (code, err) == (0, "")
    assert out.startswith("6 wrong answers in 3 traces: 6 attributed, 0 abstained from; see a.jsonl")
    rungs = [{"name": "gold context", "score": 0.9, "ci": [0.8, 1.0], "n": 9, "stage": "retrieve"}]
    (folder.path / "ladder.json").write_text(json.dumps(rungs))
    code, out, _ = run(capsys, "diagnose", "latest", "--out", "d.html", *home)
    assert (code, "see d.html" in out) == (0, True)
    assert "Oracle ladder" in Path("d.html").read_text()
    code, _, _ = run(capsys, "diagnose", "a.jsonl", "--out", "d.json", *home)
    assert json.loads(Path("d.json").read_text())["counts"]["failures"] == 6
    run(capsys, "diagnose", "a.jsonl", "--out", "d.md", *home)
    assert "3× extract_facts, ExtractionError" in Path("d.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["attribute", "nowhere"], "nowhere: no such run"),
        (["attribute", "empty"], "empty: holds no traces"),
        (["diagnose", "nowhere"], "nowhere: no such run"),
        (["diagnose", "notes.txt"], "notes.txt: is not what `memtune attribute` wrote; it looks like plain text; "),
        (["diagnose", "latest", "--out", "r.pdf"], "r.pdf: ends in neither"),
        (["diagnose", "latest", "--ladder", "notes.txt"], "notes.txt: "),
    ],
)
def test_whatever_is_wrong_is_told_in_one_line(
    folder: RunFolder, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    Path("notes.txt").write_text("not a trace\n")
    Path("empty").mkdir()
    code, _, err = run(capsys, *arguments, "--home", str(folder.path.parents[1]))
    assert (code, err.count("\n"), expected in err) == (2, 1, True), err
