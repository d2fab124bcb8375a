"""The plots of the Python API: what is drawn, on whose axes, and in colours of any page."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from run_shapes import run_folder, summary

import memtune
from attribution.conformance import recorded
from experiments.api.plots import NEUTRAL, loss_plot, scores_plot
from optimizer.tuning.tried import TriedCandidate
from tracing.errors import ConfigError, RunError

TRIED = (
    TriedCandidate("another answer", 0.6, 0.2, 90, 0.1, 6, champion=True, front=True),
    TriedCandidate("the baseline", 0.4, 0.0, 100, 0.0, 6),
    TriedCandidate("top_k 9", 0.5, 0.1, 150, -0.5, 4),
)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    with pyplot.style.context("dark_background"):
        yield
    pyplot.close("all")


def test_the_loss_is_drawn_before_and_after_the_first_on_top() -> None:
    before, after = {"extract": 11, r"answer $\no{$": 3}, {r"answer $\no{$": 2}
    axes = loss_plot([("baseline", before), ("champion", after)])
    assert [label.get_text() for label in axes.get_yticklabels()] == [r"answer $\no{$", "extract"]
    axes.figure.canvas.draw()
    assert not any(text.get_parse_math() for text in axes.get_yticklabels())
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
    assert widths == {"baseline": [3, 11], "champion": [2, 0]}
    places = [[bar.get_y() for bar in bars] for bars in axes.containers]
    assert all(first > second for first, second in zip(*places, strict=True))


def test_the_scores_have_every_attempt_the_baseline_and_the_test_with_its_interval() -> None:
    axes = scores_plot(replace(summary(), tried=TRIED))
    attempts, champion = (collection for collection in axes.collections if len(collection.get_offsets()))
    assert attempts.get_offsets().tolist() == [[0, 0], [50, 0.1]]
    assert champion.get_offsets().tolist() == [[-10, 0.2]]
    assert [line.get_ydata()[0] for line in axes.lines] == [0, 0.1]  # type: ignore[index]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [  # type: ignore[union-attr]
        "baseline",
        "champion on the test: +0.100",
        "95 % interval of that",
        "attempt",
        "champion in the search",
    ]


def test_where_nothing_was_tried_there_is_nothing_to_draw(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    with pytest.raises(RunError, match="nothing met whole conversations"):
        memtune.load(folder.path).plot_scores()


def test_axes_of_ones_own_are_drawn_on_and_returned() -> None:
    attributed = memtune.attribute(*recorded_graph())
    _, own = pyplot.subplots()
    assert attributed.plot_loss(own) is own
    assert attributed.plot_loss(ax=own) is own
    assert len(pyplot.get_fignums()) == 1


def test_texts_can_be_read_on_white_and_on_black() -> None:
    axes = memtune.attribute(*recorded_graph()).plot_loss()
    assert axes.figure.get_facecolor()[3] == axes.get_facecolor()[3] == 0  # type: ignore[index]
    texts = [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label, *axes.texts]
    assert {text.get_color() for text in texts} == {NEUTRAL}
    light = sum(
        share * ((part + 0.055) / 1.055) ** 2.4
        for share, part in zip((0.2126, 0.7152, 0.0722), to_rgb(NEUTRAL), strict=True)
    )
    assert min(1.05 / (light + 0.05), (light + 0.05) / 0.05) >= 4.5


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    attributed = memtune.attribute(*recorded_graph())
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.delattr("matplotlib.pyplot")
    with pytest.raises(ConfigError, match=r"plots need matplotlib.*: pip install 'memtune\[run\]'"):
        attributed.plot_loss()


def recorded_graph() -> tuple[object, object]:
    recording, cases = recorded()
    return recording.graph, cases
