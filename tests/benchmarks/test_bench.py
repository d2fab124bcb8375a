"""The benchmark measures what it says, on files that are what they claim to be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import loading, recording_cost
from benchmarks.__main__ import benchmarks
from benchmarks.figures import Bar, TracingFigures, bars
from tracing import current_recorder, load_trace


def test_the_native_file_has_what_is_said_and_a_slice_of_ten_thousand_nodes(tmp_path: Path):
    path = tmp_path / "native.jsonl"
    last = loading.write_native(path, 20_000)
    loaded = load_trace(path)
    assert loaded.problem is None
    assert (len(loaded.graph.variables), len(loaded.graph.operations)) == (20_000, 5_000)
    part = loaded.graph.backward_slice(last)
    assert abs(len(part.variables) + len(part.operations) - 10_000) < 10


def test_loading_is_measured_in_a_process_of_its_own_and_its_growth_over_sizes(tmp_path: Path):
    figures, growth, json_loads_s = loading.measure_native(
        tmp_path, lambda text: None, sizes=(200, 2_000), repetitions=1
    )
    assert figures.load_s > 0
    assert figures.record_us > 0
    assert json_loads_s > 0
    assert 10 < figures.rss_mib < 1000
    assert -1 < growth < 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("power", "scale"), [(1.0, 3.0), (2.0, 0.1)])
def test_the_growth_exponent_is_the_power(power: float, scale: float):
    sizes = (10, 100, 1000)
    assert loading.growth_exponent(sizes, [scale * size**power for size in sizes]) == pytest.approx(power)


def test_the_smartcomment_file_is_one(tmp_path: Path):
    from tracing.interchange import smartcomment

    path = tmp_path / "s.json"
    path.write_text(json.dumps(loading.smartcomment_graph(400)))
    graph = smartcomment.load(path)
    assert (len(graph.variables), len(graph.operations)) == (400, 40)
    assert len(graph.backward_slice(next(reversed(graph.variables))).variables) == 10
    assert min(loading.measure_smartcomment(tmp_path, lambda text: None, nodes=400, repetitions=1)) > 0


def test_what_is_timed_records_what_it_should(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    recorders = []

    def seen(work, times):
        work(times)
        recorders.append(current_recorder())
        return 1.0

    monkeypatch.setattr(recording_cost, "processor_microseconds", seen)
    monkeypatch.setattr(recording_cost, "typical_microseconds", seen)
    recording_cost.in_memory(5)
    recording_cost.mutable(5)
    recording_cost.durable(tmp_path / "t.jsonl", 5)
    for recorder in recorders:
        steps = recorder.graph.find_operations(name="step")
        assert [(len(step.inputs), len(step.outputs)) for step in steps] == [(1, 1)] * 5
    assert len(load_trace(tmp_path / "t.jsonl").graph.operations) == 5
    assert recording_cost.disabled(5) == 0.0
    assert recorders[-1] is None


FIGURES = TracingFigures.model_validate(
    {
        "record_us": {"depth0": 5.0, "depth20": 5.0, "depth60": 7.0},
        "mutable_us": 20.0,
        "durable_us": 9.0,
        "otel_span_us": 20.0,
        "mlflow_span_us": 150.0,
        "disabled_us": 0.2,
        "load_smartcomment_40k_s": 0.5,
        "native_1m": {"load_s": 4.0, "rss_mib": 900.0, "slice_10k_ms": 9.0, "record_us": 3.0},
        "growth_exponent": 1.0,
        "json_loads_40k_s": 1.0,
        "json_loads_1m_s": 8.0,
    }
)


def test_a_figure_above_its_bar_is_not_met():
    assert [bar.figure for bar in bars(FIGURES) if not bar.met] == ["record_us.depth60", "durable_us (≤ MLflow / 20)"]
    assert Bar("x", 1.0, 1.0).met


def test_the_command_writes_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    measured = {"depth0": 5.0, "depth20": 5.0, "depth60": 7.0, "mutable": 20.0, "durable": 9.0, "floor": 4.0}
    measured |= {"otel": 20.0, "mlflow": 150.0, "disabled": 0.2}
    monkeypatch.setattr(recording_cost, "measure_recording", lambda folder, progress: measured)
    monkeypatch.setattr(loading, "measure_smartcomment", lambda folder, progress: (0.5, 1.0))
    monkeypatch.setattr(loading, "measure_native", lambda folder, progress: (FIGURES.native_1m, 1.0, 8.0))
    ran = CliRunner().invoke(benchmarks, ["tracing", "--json", str(tmp_path / "f.json")])
    assert ran.exit_code == 0, ran.output
    assert TracingFigures.model_validate_json((tmp_path / "f.json").read_text()) == FIGURES
    assert ran.output.count("not met") == 2
