"""How sure a verdict by survival is: fitted on cases of four sources, and said where it was not."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attribution.cases import OUTSIDE_THE_SYSTEM, ErrorType
from attribution.survival.calibration import SURVIVAL, Grounds, confidence_of, is_calibrated, signs_of
from benchmarks.calibration.fitting import fit, measure
from benchmarks.calibration.verdicts import KnownVerdict, Source

CLEAR = Grounds(
    error_type="ExtractionError",
    stated=0.9,
    named=True,
    about=1.0,
    traced=True,
    given=1.0,
    followed=True,
    ran=True,
    pieced=True,
    answered=True,
    unknown=False,
    told=0.0,
    extracted=0.0,
    verbatim=False,
    unstated=False,
    disputed=False,
    standing=None,
    language="en",
    read=True,
)
FLAGS = ("named", "traced", "followed", "ran", "pieced", "answered", "unknown", "verbatim", "unstated")


@st.composite
def drawn_grounds(draw: st.DrawFn) -> Grounds:
    flags = {name: draw(st.booleans()) for name in FLAGS}
    return replace(
        CLEAR,
        error_type=draw(st.sampled_from(get_args(ErrorType))),
        stated=draw(st.floats(0, 1)),
        about=draw(st.floats(0, 1)),
        given=draw(st.floats(0, 1)),
        told=draw(st.floats(0, 1)),
        extracted=draw(st.none() | st.floats(0, 1)),
        **flags,
    )


@given(drawn_grounds())
def test_a_confidence_is_a_probability_that_never_falls_with_what_is_stated_and_given(grounds: Grounds) -> None:
    assert 0 < confidence_of(grounds) < 1
    for better in ("stated", "given"):
        value = min(1.0, getattr(grounds, better) + 0.2)
        assert confidence_of(replace(grounds, **{better: value})) >= confidence_of(grounds)


def test_in_a_language_that_is_not_read_a_verdict_is_half_as_sure() -> None:
    for kind in get_args(ErrorType):
        clear = replace(CLEAR, error_type=kind)
        assert confidence_of(replace(clear, read=False)) == pytest.approx(confidence_of(clear) / 2, abs=0.001)


def test_every_sign_has_a_weight_and_sources_are_named_with_their_cases() -> None:
    assert list(SURVIVAL.weights) == list(signs_of(CLEAR))
    assert set(SURVIVAL.cases) == set(get_args(Source))
    assert not any(signs_of(CLEAR).values())


@pytest.mark.parametrize(
    "worse",
    [
        {"traced": False},
        {"named": False},
        {"about": 0.2},
        {"given": 0.5},
        {"pieced": False},
        {"unknown": True},
        {"followed": False},
    ],
)
def test_a_response_error_is_less_sure_where_its_grounds_are_worse(worse: dict[str, bool | float]) -> None:
    clear = replace(CLEAR, error_type="ResponseError", stated=0.7)
    assert confidence_of(replace(clear, **worse)) < confidence_of(clear)  # type: ignore[arg-type]


def test_what_was_not_calibrated_is_known() -> None:
    assert is_calibrated(CLEAR)
    assert not is_calibrated(replace(CLEAR, language="de"))
    assert not is_calibrated(replace(CLEAR, error_type="JudgeError"))
    for outside in OUTSIDE_THE_SYSTEM:
        assert confidence_of(replace(CLEAR, error_type=outside, stated=0.8)) == 0.8


def test_the_fit_finds_the_sign_by_which_verdicts_are_wrong_and_carries_over_to_a_source_left_out() -> None:
    verdicts = [*_drawn("labelled", 80), *_drawn("injected", 800), *_drawn("spoiled", 400)]
    assert fit(verdicts).weights["not named"] < -1
    figures = measure(verdicts)
    assert figures["fitted"]["cases"] == {"labelled": 80, "injected": 800, "spoiled": 400}
    assert figures["all"]["n"] == 1280
    for source in figures["sources"]:
        row = figures["sources"][source]
        assert row["ece"] < 0.12
        assert 0.5 < row["auc_ci"][0] < row["auc"] < row["auc_ci"][1] <= 1
        assert row["found"] > 0.6 * row["possible"]
    assert figures["all"]["ece"] < figures["all"]["stated_ece"]


def test_leaving_a_source_out_needs_two() -> None:
    with pytest.raises(ValueError, match="two sources"):
        measure(_drawn("labelled", 30))


def _drawn(source: Source, count: int) -> list[KnownVerdict]:
    """Verdicts that state the same, of which those that name nobody are wrong two times of three."""
    chance = random.Random(source)  # noqa: S311
    found: list[KnownVerdict] = []
    for at in range(count):
        named = at % 8 > 0
        right = chance.random() < (0.95 if named else 1 / 3)
        found.append(KnownVerdict(source, source, replace(CLEAR, named=named, stated=0.7), right))
    return found
