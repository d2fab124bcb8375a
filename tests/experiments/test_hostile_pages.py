"""Pages, pictures and Markdown show data as it is: no formula, link, tag or colour comes of it, and nothing fails."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote
from xml.dom.minidom import Element, parseString

import pytest
from hostile_world import PAYLOADS, TEXT, graph, shown
from html_pages import TABLES, Page, shipped
from hypothesis import example, given
from hypothesis import strategies as st
from judged_cases import seen_case
from markdown_it import MarkdownIt
from page_titles import NO_BROWSER, told_by
from run_shapes import BASELINE, FILES, loop_result, record, summary

from attribution.cases import Blame
from attribution.signals import Signal
from experiments.attributing.attributions import Attributions, CaseLine, Header, TraceLine
from experiments.diagnosis.diagnosis_page import render_html, render_markdown
from experiments.diagnosis.findings import Diagnosis, diagnose
from experiments.display.terminal import literal, one_line
from experiments.mlflow_tracking.case_traces import case_traces, question_set
from experiments.mlflow_tracking.outbox import Outbox
from experiments.mlflow_tracking.run_description import LONGEST, describe
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore
from experiments.mlflow_tracking.tracking import MlflowRun
from experiments.mlflow_tracking.writes import StartRun
from experiments.reports import run_charts
from experiments.reports.comparison_page import render_comparison
from experiments.reports.run_report import ReportInput, render_report
from experiments.runs.cases_file import CaseBlame, CaseReply, RunCase, write_cases
from experiments.runs.comparison import compare
from experiments.runs.folder import RunFolder
from experiments.views.trace_map import render_map
from experiments.views.trace_page import pictures_in, render_page
from optimizer.evaluation.ladder import Rung
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.tuning.round import BlameShare, RewriteRecord
from tracing.systems.protocol import OperationSpec

NAMES = (
    *PAYLOADS,
    "price $a_{$",
    "_hidden",
    "#1e293b",
    'id="x',
    "url(#x)",
    "-->",
    "]]>",
    "<b>&amp;",
    "<script>alert(1)</script>",
    "</script><!--",
    "日本語 👋",
    "![x](http://e.example/i.png)",
    "[x](javascript:alert(1))",
    "`code` **bold** ~~gone~~ _it_",
    "| a | b |",
    "# title",
    "- item",
    "1. item",
    "http://e.example www.e.example",
    "\\| \\* \\",
    " ",
    "",
    "\ud800half",
)
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def _texts(svg: str, tag: str) -> list[str]:
    """The texts of a well-formed picture's elements."""
    found: list[Element] = parseString(svg.encode()).getElementsByTagName(tag)  # noqa: S318 (we drew it)
    return ["".join(part.data for part in one.childNodes) for one in found]


def seen(text: str) -> str:
    """The text as a page shows it."""
    return " ".join(shown(text.replace("\r\n", "\n")).split())


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_a_chart_is_drawn_as_it_is(name: str) -> None:
    shares = {name: BlameShare(0.5, (0.1, 0.9)), "other": BlameShare(0.5, (0.1, 0.9))}
    chart = run_charts.blame(replace(record(1, accepted=False), blame=shares))
    assert chart is not None
    drawn = _texts(chart, "text")
    assert [text for text in drawn if text.strip() == one_line(name)] or not name.strip()
    assert "other" in drawn


def test_a_name_of_any_length_leaves_the_chart_its_room() -> None:
    (chart,) = {run_charts.blame(replace(summary().rounds[0], blame=_shares("x" * 5000)))}
    assert chart is not None
    assert "x" * 50 not in chart
    assert len(chart) < 20_000


def _shares(name: str) -> dict[str, object]:
    return {name: summary().rounds[0].blame["answer"]}


def test_a_runs_report_shows_hostile_names_and_texts_as_they_are() -> None:
    shares = {name: BlameShare(1 / len(NAMES), (0.0, 0.1)) for name in NAMES}
    result = replace(loop_result(), rounds=tuple(replace(record(n, accepted=False), blame=shares) for n in (1, 2)))
    told = replace(summary(result), model=TEXT, dataset=TEXT, run_id=TEXT, stopped=TEXT)
    prompts = {f"p{n} {name}": name for n, name in enumerate(NAMES)}
    uses = ("calls_made", "calls_cached", "prompt_tokens", "completion_tokens", "seconds")
    page = render_report(
        ReportInput(
            told,
            baseline=prompts,
            champion={name: f"{text} changed" for name, text in prompts.items()},
            error_types={name: {name: 1} for name in NAMES},
            operations={name: dict.fromkeys(uses, 1) for name in NAMES},
            settings={f"key {name}": name for name in NAMES},
            rewrites=[
                (1, RewriteRecord(name, name, name, "text", 0.1, GateDecision(GateOutcome.NOT_TRIED, name)))
                for name in NAMES
            ],
            cases=[asked(name) for name in NAMES],
        )
    )
    _is_only_text(page, *TABLES)


def asked(name: str, *, passed: bool = False, page: str | None = None) -> RunCase:
    """A question of which every text is hostile."""
    name = name.encode("utf-8", "replace").decode()
    blame = CaseBlame(operation=f"op {name}", error_type="ResponseError", confidence=0.5, reason=f"because {name}")
    reply = CaseReply(reply=f"reply {name}", score=float(passed), passed=passed, blame=(blame,), page=page)
    return RunCase(
        split="test",
        conversation=name,
        question_id=f"q {name}",
        question=f"why {name}",
        answers=(f"gold {name}",),
        replies={"baseline": reply, "champion": reply},
    )


def test_a_comparison_of_runs_shows_hostile_names_and_texts_as_they_are_and_links_only_to_files(tmp_path: Path) -> None:
    folders = [RunFolder(tmp_path / f"{name} {TEXT.replace('/', ' ').replace(chr(0), '')}") for name in "ab"]
    for folder, passed in zip(folders, (True, False), strict=True):
        folder.write_prompts("champion", {"answer": "text"})
        folder.write_summary(replace(summary(), model=TEXT, stopped=TEXT))
        folder.write("traces/k/page.html", "")
        write_cases(folder, [asked(name, passed=passed, page="traces/k/page.html") for name in NAMES])
    html = render_comparison(folders, compare(*folders), tmp_path)
    page = Page(html)
    assert page.open == []
    assert page.programs == shipped(*TABLES)
    assert not {"img", "iframe", "link", "object"} & set(page.tags)
    names = [one for one in NAMES if "\ud800" not in one]
    assert [one for one in names if seen(f"why {one}") not in page.text or seen(f"gold {one}") not in page.text] == []
    assert [one for one in names if seen(f"because {one}") not in page.text] == []
    traces = [unquote(link.partition("#")[0]) for link in page.links if "#question=" in link]
    assert len(traces) == 2 * len({asked(one).key for one in NAMES})
    assert all((tmp_path / link).is_file() for link in traces)
    html.encode()


def _is_only_text(html: str, *scripts: str) -> None:
    page = Page(html)
    assert page.open == []
    assert page.programs == shipped(*scripts)
    assert not {"img", "iframe", "link", "object"} & set(page.tags)
    assert all(link.startswith("#") for link in page.links)
    assert [name for name in NAMES if seen(name) not in page.text] == []
    html.encode()


@pytest.fixture
def facts() -> Diagnosis:
    """A diagnosis in which every text is hostile: operations, prompts, ids, reasons and notes."""
    found = Attributions(Header(method=f"survival {TEXT}", model=TEXT))
    operations = tuple(
        OperationSpec(name=f"op {name}", stage="answer", prompt=f"prompt {name}") for name in dict.fromkeys(NAMES)
    )
    found.add(
        TraceLine(
            trace=TEXT, digest="d", cases=99, failed=len(NAMES), all_judged=True, operations=operations, problem=TEXT
        )
    )
    for name in NAMES:
        blame = Blame(
            operation=f"op {name}",
            operation_id=f"o {name}",
            error_type="ResponseError",
            confidence=0.8,
            reason=f"because of {name}",
        )
        case = {"trace": TEXT, "conversation": name, "question": name, "answers": (name,), "reply": name, "score": 0.0}
        found.add(CaseLine(**case, question_id=f"q {name}", evidence=(name,), decisive=(blame,)))  # type: ignore[arg-type]
        found.add(CaseLine(**case, question_id=f"r {name}", abstained=f"unsure of {name}"))  # type: ignore[arg-type]
    rungs = [Rung(f"rung {name}", 0.5, (0.4, 0.6), 10) for name in NAMES]
    return diagnose(found, title=TEXT, subtitle=TEXT, ladder=rungs, notes=NAMES)


def test_a_diagnosis_shows_hostile_texts_as_they_are(facts: Diagnosis) -> None:
    _is_only_text(render_html(facts, {}))


def test_a_diagnosis_in_markdown_reads_as_its_data_does(facts: Diagnosis) -> None:
    page = Page(MARKDOWN.render(render_markdown(facts)))
    assert set(page.tags) <= {"h1", "h2", "p", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.tags.count("h1") == 1
    assert page.tags.count("table") == 1
    assert page.tags.count("tr") == 1 + len(facts.operations)
    assert page.tags.count("td") == 6 * len(facts.operations)
    for name in NAMES:
        for text in (f"op {name}", f"prompt {name}", f"rung {name}", f"unsure of {name}"):
            assert seen(text) in page.text
        assert seen(f"{name}/q {name}") in page.text
    for text in (facts.title, facts.subtitle):
        assert seen(text) in page.text


@given(st.text(st.sampled_from("\\`*_[]()<>&|~$^#+-=.:/!1a \n\t\x1b\u202ew") | st.characters(), max_size=40))
@example("\r\n")
@example("0\n#")
def test_any_text_reads_as_itself_in_markdown(text: str) -> None:
    for before in ("", "- ", "1. ", "# ", "a "):
        page = Page(MARKDOWN.render(before + literal(text)))
        assert not set(page.tags) - {"p", "ul", "ol", "li", "h1"}
        assert page.text == f"{before if before == 'a ' else ''}{seen(text)}".strip()
    cells = Page(MARKDOWN.render(f"| a | b |\n|---|---|\n| {literal(text)} | x |"))
    assert cells.tags.count("td") == 2
    assert cells.text == " ".join(f"a b {seen(text)} x".split())


def test_a_blame_in_mlflow_which_shows_it_as_markdown_is_literal() -> None:
    case = seen_case(1, "unknown", lost_at="answer")
    assert case.attribution is not None
    (blame,) = case.attribution.decisive
    hostile = replace(case.attribution, decisive=(replace(blame, reason=" ".join(NAMES)),))
    cases = [replace(case, attribution=hostile)]
    questions = question_set(cases, cases, most=1)
    (trace,) = case_traces("baseline", cases, questions, metric="em", method="survival", prompts={})
    (rationale,) = [one.rationale for one in trace.feedback if one.rationale is not None]
    page = Page(MARKDOWN.render(rationale))
    assert page.tags == ["p"]
    assert page.text == f"{blame.error_type}: {seen(' '.join(NAMES))}"


def test_a_runs_description_in_mlflow_holds_what_was_planted_in_a_prompt_as_text() -> None:
    planted = "\n".join(("```", "~~~~~", "````", "# heading", "| a | b |", "|---|---|", *NAMES))
    page = Page(MARKDOWN.render(describe(summary(), BASELINE, {"answer": planted})))
    assert not {"img", "script", "a", "h1", "em", "b"} & set(page.tags)
    assert (page.tags.count("table"), page.tags.count("pre")) == (0, 1)
    assert "+ ```".replace(" ", "") in page.text
    assert "+# heading" in page.text


def test_a_description_is_no_longer_than_mlflow_keeps_and_says_what_is_left_out() -> None:
    texts = {f"prompt {n}": "".join(f"line {m} of {n}\n" for m in range(2000)) for n in range(3)}
    note = describe(summary(), {}, texts)
    assert len(note) <= LONGEST
    assert "lines more, in the artifact `prompts`" in note
    assert note.count("too long to show here") == 2


def test_a_trace_as_a_page_and_as_a_picture_is_well_formed_and_only_text() -> None:
    picture = render_map(graph(), TEXT)
    titles = _texts(picture, "title")
    for payload in PAYLOADS:
        assert any(shown(f"step {payload}") in title for title in titles)
    page = render_page(graph(), TEXT)
    assert page.count("<script") == page.count("</script>") == 2
    assert seen(TEXT) in Page(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)).text


@NO_BROWSER
@pytest.mark.parametrize("pictured", [False, True])
def test_questions_on_the_page_of_a_trace_run_nothing_and_hide_nothing(pictured: bool, tmp_path: Path) -> None:
    script = "</script><script>window.ran = true</script><img src=x onerror='window.ran = true'>"
    hostile = f"{script} {TEXT}".replace("\x00", "")
    seen_one = seen_case(1, f"wrong {hostile}", lost_at="answer")
    assert seen_one.attribution is not None
    (blame,) = seen_one.attribution.decisive
    question = seen_one.case.question.model_copy(
        update={"id": f"q {hostile}", "question": f"why {hostile}", "answers": (f"gold {hostile}",)}
    )
    case = replace(seen_one.case, question=question)
    attribution = replace(seen_one.attribution, decisive=(replace(blame, reason=f"since {hostile}"),))
    judged = [(case, attribution)]
    page = render_page(seen_one.graph, TEXT, judged, pictures_in(seen_one.graph, judged) if pictured else {})
    telling = r"""
    const texts = () => { const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); let found = "";
      while (all.nextNode()) if (all.currentNode.parentNode.tagName !== "SCRIPT") found += all.currentNode.data;
      return found; };
    const shown = [texts()];
    showQuestion(Q[0]); shown.push(texts());
    go(Q[0].prediction); shown.push(texts());
    search.value = "window.ran"; find(); shown.push(texts());
    told.push(Boolean(window.ran), document.querySelectorAll("img, #view script, #tree script").length);
    told.push(shown.every((text) => !/[\p{Cf}\p{Zl}\p{Zp}\x00-\x08\x0b-\x1f\x7f-\x9f]/u.test(text)));
    const whole = (word) => shown[1].includes(`${word} <${"/"}script><script>window.ran = true<${"/"}script><img`);
    told.push(["why", "gold", "wrong", "since"].every(whole));
    told.push(document.getElementById("found").textContent);
    """
    telling += "showQuestion(Q[0]); told.push(document.querySelectorAll('.failure li.lost').length);"
    assert told_by(page, telling, tmp_path) == ["false", "0", "true", "true", "2 found", str(int(pictured))]


def test_blame_of_operations_with_any_name_arrives_in_mlflow(mlflow_home: Path) -> None:
    folder = RunFolder.create(mlflow_home, system="rag", now=datetime(2026, 1, 4), files=FILES)
    box = Outbox(TrackingStore(store_uri(mlflow_home), "hostile names", "k"), folder)
    observer = MlflowRun(box, "rag", {}, folder)
    box.send(StartRun(title="r", moment=1, tags={}))
    names = [*NAMES[:-1], "..", "a/../b", "x" * 500]  # the last one is no UTF-8, which is all that MLflow takes
    observer.blame(1, [Signal(name, None, 0.1, (0.0, 0.2), 1, 0.1, {name: 1}, (name,), False) for name in names])
    box.flush(seconds=600)
    assert (box.refused, box.waiting) == ([], 0)
    metrics = box.store.client.get_run(box.store.run_id("round 1")).data.metrics
    assert len([key for key in metrics if key.startswith("blame/")]) == len(set(names))
    assert len(box.store.client.list_artifacts(box.store.run_id(), "images")) == 2  # a picture and its thumbnail
