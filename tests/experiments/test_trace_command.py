"""`memtune trace` shows what a trace holds, to people and to scripts, and finds where two executions part."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from page_titles import NO_BROWSER, title_of, told_by
from traced_runs import HOSTILE, traced_run

from experiments.attributing.case_sources import judged_in
from experiments.command import main
from experiments.views.trace_map import render_map
from experiments.views.trace_page import questions_of, render_page
from experiments.views.trace_tree import tree_lines
from tests.tracing.recordings import record_memory
from tracing import ExecutionGraph, Operation, Variable, load_trace, operation, save_trace, session, trace, variable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    record_memory(path, fails=True)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["trace", *map(str, arguments)])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_stats_count_operations_kinds_tokens_cost_and_errors(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, _ = run(capsys, "stats", file)
    assert code == 0
    for words in ("2 sessions, 5 operations", "1 model calls", "30+5 tokens", "memory_entry 2", "ValueError: no reply"):
        assert words in out
    _, out, _ = run(capsys, "stats", file, "--json")
    figures = json.loads(out)
    assert figures["by_operation"][0]["name"] == "update_memory"
    assert sum(one["errors"] for one in figures["by_operation"]) == 1
    assert figures["by_session"][1][1:] == ["Q1", 2, 2]


def test_show_is_a_tree_of_sessions_operations_and_values_without_colours(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    _, out, _ = run(capsys, "show", file)
    lines = out.splitlines()
    assert lines[0].startswith("D1")
    assert next(line for line in lines if "extract_facts" in line).startswith("    extract_facts")
    assert "→ facts v3: Mara lives in Oslo" in out
    assert "✗ ValueError: no reply" in out
    assert "\x1b" not in out
    _, out, _ = run(capsys, "show", file, "--session", "Q1", "--depth", "0")
    assert "D1" not in out
    assert "answer ×1" in out
    _, out, _ = run(capsys, "show", file, "--operation", "o3")
    assert "extract_facts" in out
    code, _, err = run(capsys, "show", file, "--session", "Q9")
    assert code == 2
    assert "'Q9'" in err


def test_values_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with trace(tmp_path / "t.jsonl"), operation("\x1b[2Jstep", inputs={"x": "\x1b]0;title\x07[red]text[/red]"}):
        pass
    for command in (("stats",), ("show",), ("show", "--operation", "o1")):
        _, out, _ = run(capsys, command[0], tmp_path / "t.jsonl", *command[1:])
        assert "\x1b" not in out
        assert "\x07" not in out
    assert "[red]text[/red]" in out


def test_a_long_trace_is_shown_closed_and_says_how_to_open_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with trace(tmp_path / "t.jsonl", prefix=""), session("D1"):
        for _ in range(300):
            with operation("step"):
                pass
    _, out, err = run(capsys, "show", tmp_path / "t.jsonl")
    assert out.split() == ["D1", "s1", "step", "×300"]
    assert "--session" in err


def test_search_prints_a_line_a_hit_and_fails_without_one(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, _ = run(capsys, "search", file, "oslo", "--kind", "message")
    assert (code, out) == (0, "v2  message  D1:2: I moved to Oslo\n")
    code, out, _ = run(capsys, "search", file, "[A-Z]slo", "--regex", "--kind", "fact", "--json")
    assert json.loads(out)["id"] == "v3"
    assert run(capsys, "search", file, "Paris")[0] == 1
    code, _, err = run(capsys, "search", file, "(a", "--regex")
    assert code == 2
    assert err.count("\n") == 1
    _, out, _ = run(capsys, "search", file, "", "--from", "1970-01-01T00:00:00+00:00", "--to", "1003", "--json")
    assert "answer" not in out
    assert "extract_facts" in out
    assert run(capsys, "search", file, "", "--from", "some day")[0] == 2


def test_a_slice_is_shown_or_written_as_a_trace(capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path) -> None:
    _, out, _ = run(capsys, "slice", file, "v3")
    assert "extract_facts" in out
    assert "retrieve" not in out
    cut = tmp_path / "cut.jsonl"
    code, out, _ = run(capsys, "slice", file, "v5", "--forward", "--out", cut)
    assert (code, out) == (0, f"2 operations and 2 variables written to {cut}\n")
    loaded = load_trace(cut)
    assert loaded.problem is None
    assert loaded.graph.variables["v5"].version == 2
    code, _, err = run(capsys, "slice", file, "v5", "--out", cut)
    assert code == 2
    assert "exists already" in err
    _, out, _ = run(capsys, "slice", file, "v7", "--kind", "embedding", "--depth", "1", "--json")
    assert [json.loads(line)["type"] for line in out.splitlines()][-1] == "operation"
    for wrong in (["slice", file, "v99"], ["show", file, "--operation", "v99"]):
        code, _, err = run(capsys, *wrong)
        assert code == 2
        assert f"'v99'; `memtune trace search {file} TEXT` finds ids" in err
    code, out, err = run(capsys, "slice", file, "v1")
    assert (code, out, err) == (0, "D1  s1\n", "no operation that was asked for made v1\n")


def test_an_imported_variable_whose_id_is_its_name_is_named_once() -> None:
    graph = ExecutionGraph()
    graph.add_variable(Variable("D1:3@1", "D1:3", "message", "hello"))
    graph.add_operation(Operation("o", "read", inputs=(("message", "D1:3@1"),)))
    assert "    ← message D1:3@1: hello" in [line.plain for line in tree_lines(graph)]


def test_diff_names_the_first_difference_and_exits_like_diff(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    record_memory(good)
    record_memory(bad, fact="Mara lives in Rome")
    code, out, _ = run(capsys, "diff", good, good)
    assert (code, out) == (0, "no difference in 5 operations\n")
    code, out, _ = run(capsys, "diff", good, bad)
    assert code == 1
    assert out.splitlines()[0] == "extract_facts in D1 makes something else of the same inputs (o2, o2)"
    assert "- Mara lives in Oslo" in out
    assert "+ Mara lives in Rome" in out
    assert "follows from it: store ×1, retrieve ×1, answer ×1" in out
    code, out, _ = run(capsys, "diff", good, bad, "--json")
    assert code == 1
    assert json.loads(out)["cause"]["name"] == "extract_facts"


def test_what_is_right_and_whose_fault_is_what_is_not_is_told_with_the_questions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = traced_run(tmp_path)
    path = next(folder.path.glob("traces/*/one*.jsonl"))
    _, out, _ = run(capsys, "show", path)
    lines = out.splitlines()
    food, gecko = (next(n for n, line in enumerate(lines) if line.startswith(f"one-{q}")) for q in ("food", "gecko"))
    assert lines[food + 1] == "  ✗ wrong: ExtractionError · extract_facts  right: radicchio"
    lost = "extracted ✗ ExtractionError · extract_facts → in memory – → retrieved – → given – → reply –"
    assert lines[food + 2] == f"    needs ✓ → said ✓ → {lost}"
    assert lines[gecko + 1] == "  ✓ right  right: papaya"
    other = path.parent.parent / "other" / path.name
    other.parent.mkdir()
    other.write_text(path.read_text().replace("Bergen", "Oslo"))
    code, out, _ = run(capsys, "diff", path, other)
    assert code == 1
    assert "Where did Mara move to?\n  ✗ wrong: ResponseError · answer - Bergen\n  ✓ right + Oslo\n" in out


@pytest.mark.parametrize("command", ["stats", "show", "search", "slice", "diff"])
def test_every_command_has_examples_and_refuses_a_bad_file_in_one_line(
    capsys: pytest.CaptureFixture[str], command: str, tmp_path: Path
) -> None:
    assert f"memtune trace {command}" in run(capsys, command, "--help")[1]
    bad = tmp_path / "bad.jsonl"
    bad.write_text("hello\n")
    more = {"search": ["x"], "slice": ["v1"], "diff": [bad]}.get(command, [])
    code, _, err = run(capsys, command, bad, *more)
    assert code == 2
    assert err.count("\n") == 1
    assert str(bad) in err


def test_a_trace_cut_short_is_shown_with_a_warning(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    code, out, err = run(capsys, "stats", file)
    assert code == 0
    assert "4 operations" in out
    assert "the last line is unfinished" in err


def hostile() -> ExecutionGraph:
    with trace(prefix="") as recorder, session("</script><script>alert(1)</script>"):
        strange = variable("</script><!-- \u2028", name="<i>")
        with operation("<b>step</b>", inputs={"x": strange}) as op:
            op.output("y", "</style>")
    return recorder.graph


def test_page_and_picture_are_whole_files_that_fetch_nothing_and_run_nothing_foreign() -> None:
    page, picture = render_page(hostile(), "<t>"), render_map(hostile(), "<t>")
    assert page.count("</script>") == 2
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    shown = json.loads(data[1])
    assert shown["values"][shown["variables"]["v1"][2]] == "</script><!-- \u2028"
    assert "default-src 'none'" in page
    assert not re.findall(r"(?:src|href)\s*=|url\(|@import", page)
    assert "<b>" not in picture
    assert html.escape("<b>step</b>") in picture


def test_a_written_picture_is_well_formed(capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path) -> None:
    from xml.dom.minidom import parse

    code, out, _ = run(capsys, "show", file, "--svg", tmp_path / "t.svg", "--html", tmp_path / "t.html")
    assert code == 0
    assert out.count("written to") == 2
    svg = parse(str(tmp_path / "t.svg"))  # noqa: S318 (we wrote it)
    assert len(svg.getElementsByTagName("rect")) == 1 + 5
    code, _, err = run(capsys, "show", file, "--html", file / "no" / "t.html")
    assert code == 2
    assert err.count("\n") == 1


@NO_BROWSER
def test_the_page_opens_by_keyboard_shows_and_searches(tmp_path: Path) -> None:
    script = """<script>
    const told = [];
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    tree.firstElementChild.focus();
    told.push(tree.children.length);
    press("ArrowRight"); press("ArrowRight"); press("ArrowRight");
    told.push(tree.querySelectorAll(".row.operation").length);
    press("ArrowDown"); press("Enter");
    told.push(view.querySelector("h2").textContent, view.querySelectorAll("#flow .node").length);
    press("ArrowLeft"); press("ArrowLeft"); press("ArrowLeft"); press("ArrowLeft");
    told.push(tree.children.length);
    search.value = "no reply"; find();
    told.push(document.getElementById("found").textContent, tree.querySelector(".name").textContent);
    go("v3"); mark("v3", true);
    told.push(document.getElementById("found").textContent);
    document.title = told.join("|");
    </script></body>"""
    page = render_page(record_memory(fails=True).graph, "t").replace("</body>", script)
    # Two sessions; the first holds an operation with two inside; the first of these read two messages and made a fact.
    assert title_of(page, tmp_path) == "2|3|extract_facts|5|2|1 found|answer|marked: 1 operations, 3 variables"


@NO_BROWSER
def test_the_page_takes_ids_for_nothing_but_ids(tmp_path: Path) -> None:
    ids = ("__proto__", "constructor", "toString")
    graph = ExecutionGraph(
        [Variable(one, one, "value", one) for one in ids],
        [Operation(f"{one}2", one, inputs=((one, one),), parent="valueOf", status="ok") for one in ids],
    )
    script = """<script>
    const told = [];
    for (const id in O) { go(id); told.push(chosen.entry.name, view.querySelector("h2").textContent); }
    for (const id in V) { go(id); told.push(view.querySelector("h2").textContent); }
    document.title = told.join("|");
    </script></body>"""
    page = render_page(graph, "t").replace("</body>", script)
    assert title_of(page, tmp_path) == "|".join([*(one for one in ids for _ in range(2)), *ids])


@pytest.mark.slow
@NO_BROWSER
def test_a_trace_of_a_run_opens_on_its_questions_with_reply_beside_gold_and_blame(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = traced_run(tmp_path / "home")
    file = folder.path / "traces" / "key-one" / "one.jsonl"
    code, _, err = run(capsys, "show", file, "--html", tmp_path / "page.html")
    assert code == 0, err
    page = (tmp_path / "page.html").read_text()
    script = """
    const cells = (row) => [...row.cells].map((cell) => cell.textContent).join(" / ");
    told.push(view.querySelector("h2").textContent, ...[...view.querySelectorAll(".questions tbody tr")].map(cells));
    told.push([...tree.querySelectorAll(".row.session")].map((row) => row.textContent).join(" "));
    """
    hay = HOSTILE.replace("radicchio", "hay")
    title, first, second, third, sessions = told_by(page, script, tmp_path)
    assert title == "1 of 3 questions answered right"
    assert (
        first
        == f"✗ / What food does Mara's tortoise come out for? / radicchio / {hay} / ExtractionError · extract_facts"
    )
    assert second == "✗ / Where did Mara move to? / Oslo / Bergen / ResponseError · answer"
    assert third == "✓ / What does Ilya's gecko eat? / papaya / papaya / "
    assert "✗one-foodWhat food does Mara's tortoise come out for?" in sessions
    script = """
    const texts = (chosen) => [...view.querySelectorAll(chosen)].map((one) => one.textContent);
    told.push(...texts("h2").slice(0, 1), ...texts(".sides pre"));
    told.push(view.querySelector(".failure .lost .fault").textContent);
    told.push(view.querySelector(".failure .lost .fault a").getAttribute("href"));
    """
    asked, gold, reply, blame, link = told_by(page, script, tmp_path, at="#question=one-food")
    assert (asked, gold, reply) == ("✗ What food does Mara's tortoise come out for?", "radicchio", hay)
    assert "extract_facts read D1:1, but nothing that it made says 'radicchio'" in blame
    (operation_name,) = told_by(page, 'told.push(view.querySelector("h2").textContent);', tmp_path, at=link)
    assert operation_name == "extract_facts"


@NO_BROWSER
def test_what_nobody_judged_has_no_mark_and_without_questions_the_page_opens_on_the_map(tmp_path: Path) -> None:
    asked = "told.push(view.querySelector('h2').textContent, document.querySelector('.questions .verdict').title);"
    assert told_by(render_page(record_memory().graph, "t"), asked, tmp_path) == ["1 questions asked", "not judged"]
    with trace() as recorder, operation("step"):
        pass
    shown = "told.push(document.getElementById('open-questions').hidden, Boolean(view.querySelector('.picture svg')));"
    assert told_by(render_page(recorder.graph, "t"), shown, tmp_path) == ["true", "true"]


def test_a_graph_with_a_judge_tells_its_right_answers_too(tmp_path: Path) -> None:
    graph = ExecutionGraph()
    for n, score in enumerate(("1.0", "0.0")):
        for kind, value in (
            ("query", f"q {n}?"),
            ("prediction", "tea"),
            ("golden_answers", "tea"),
            ("judge_score", score),
        ):
            graph.add_variable(Variable(f"{kind}{n}", f"{kind}{n}", kind, value))
        read = (("query", f"query{n}"), ("prediction", f"prediction{n}"), ("gold", f"golden_answers{n}"))
        graph.add_operation(Operation(f"a{n}", "answer", inputs=read[:1], outputs=(("reply", f"prediction{n}"),)))
        graph.add_operation(Operation(f"j{n}", "judge", inputs=read, outputs=(("score", f"judge_score{n}"),)))
    save_trace(graph, tmp_path / "t.jsonl")
    judged = judged_in(graph, tmp_path / "t.jsonl")
    assert [case.passed for case, _ in judged] == [True, False]
    assert [found["passed"] for found in questions_of(graph, judged)] == [True, False]


@NO_BROWSER
def test_the_waterfall_shows_what_each_operation_took_and_cuts_idle_time_short(tmp_path: Path) -> None:
    def ran(name: str, start: float, end: float, **facts: object) -> Operation:
        return Operation(name, name, started=start, ended=end, status="ok", **facts)  # type: ignore[arg-type]

    graph = ExecutionGraph(
        [],
        [
            ran("build", 0.0, 4.0, calls=1, prompt_tokens=300, completion_tokens=100, cost=0.25),
            ran("inner", 1.0, 2.0, parent="build"),
            ran("ask", 864_000.0, 864_001.0, calls=2, cached_calls=1, prompt_tokens=40, cost=0.5),
        ],
    )
    script = """
    waterfallView();
    const texts = (chosen) => [...view.querySelectorAll(chosen)].map((one) => one.textContent).join(" ");
    const steps = () => texts(".fall:not(.heads):not(.idle) .step");
    told.push(texts(".sums b"), steps(), texts(".heads span"));
    const [build, inner, ask] = [...view.querySelectorAll(".time i")].map((bar) => bar.getBoundingClientRect());
    told.push(Math.round(build.width / ask.width), Math.round(build.width / inner.width));
    told.push(ask.left - build.right < build.width / 8);
    view.querySelectorAll(".heads button")[3].click();
    told.push(steps());
    """
    sums, steps, cut, *ratios, idle_is_short, costliest = told_by(render_page(graph, "t"), script, tmp_path)
    assert sums == "5.0 s 340 + 100 3 0.750"
    assert (steps, cut) == ("build inner ask", "time (10 days idle cut short)")
    assert (ratios, idle_is_short, costliest) == (["4", "4"], "true", "ask build inner")
